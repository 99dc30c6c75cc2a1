"""A report: one directory, its tables read when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pvanalyse import tables as model
from pvanalyse.discovery import resolve_report
from pvanalyse.errors import NotCaptured, PvanalyseError, UnreadableFile
from pvanalyse.report_files import FileKind, ReportFiles
from pvanalyse.tables import TABLES, Where, table

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.accessors import (
        ExecutionAccessor,
        LivenessAccessor,
        MemoryAccessor,
        OperationsAccessor,
        ProgramsAccessor,
    )
    from pvanalyse.analysis.insights import Insights, Limits
    from pvanalyse.analysis.metrics import Metrics
    from pvanalyse.analysis.splitting.pipeline_split import PipelineSplit
    from pvanalyse.analysis.summary import Summary
    from pvanalyse.html.page import Page
    from pvanalyse.plots.accessor import Plots
    from pvanalyse.readers.dialect import Dialect
    from pvanalyse.readers.sources import Source

Progress = Callable[[str, int], None]
"""Called with the name of the table being read and the number of its rows so far."""

StrPath = str | PathLike[str]


def open_report(
    path: StrPath,
    dialect: StrPath | None = None,
    debug_info: StrPath | None = None,
    progress: Progress | None = None,
) -> Report:
    """Open the report at a path; nothing but the directory is read yet.

    Parameters
    ----------
    path
        A report directory, a file in one, or a directory with exactly one report below it.
    dialect
        A dialect file, for a profile.pop whose layout is not built in.
    debug_info
        A debug.cbor to use instead of the one found for the report.
    progress
        Called while tables are read.

    Raises
    ------
    ReportNotFound
        There is no report at the path.
    AmbiguousReport
        Several reports lie below it.
    UsageError
        The dialect file cannot be used.
    """
    from pvanalyse.readers.dialect import load_dialect

    return Report(
        resolve_report(path),
        dialect=load_dialect(dialect) if dialect is not None else None,
        debug_info=Path(debug_info) if debug_info is not None else None,
        progress=progress,
    )


class Report:
    """One report directory. A context manager; :func:`open_report` makes one.

    Attributes
    ----------
    files
        What the directory holds; see :class:`pvanalyse.discovery.ReportFiles`.
    tables
        The report's tables as DataFrames, by name; shows which were captured.
    """

    def __init__(
        self,
        files: ReportFiles,
        dialect: Dialect | None = None,
        debug_info: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.files = files
        self.tables = Tables(self)
        self._dialect = dialect
        self._debug_info = debug_info
        self._progress = progress or (lambda _table, _rows: None)
        self._readers: dict[str, Source] = {}
        self._captured: dict[str, bool] = {}
        self._columns: dict[tuple[str, str], pa.ChunkedArray] = {}

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the report's files; tables already read stay."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    # ---------------------------------------------------------------------------------------------- answers

    def summary(self) -> Summary:
        """Return the report in brief: what was compiled, what fits, what ran, and what was not captured.

        Raises
        ------
        UnreadableFile
            A file of the report is damaged.
        """
        import pvanalyse.render.summary  # noqa: F401  (for notebooks)
        from pvanalyse.analysis.summary import summarise

        about = {
            "directory": str(self.files.directory),
            "engine": self.files.engine,
            "cluster": self.files.cluster,
            "created": self.files.created.isoformat(" ") if self.files.created else "",
        }
        files = [{"name": file.name, "bytes": file.bytes, "note": file.note} for file in self.files.files]
        debug_info = self._debug_info or self.files.debug_info
        if debug_info is not None and (self._debug_info or self.files.debug_info_origin == "parent"):
            size = debug_info.stat().st_size if debug_info.is_file() else 0
            files.append({"name": str(debug_info), "bytes": size, "note": ""})
        return summarise(self, {key: value for key, value in about.items() if value}, files, self._notes())

    def metrics(self) -> Metrics:
        """Return every metric of the report, by name; one whose data was not captured is absent.

        Raises
        ------
        UnreadableFile
            A file of the report is damaged.
        """
        from pvanalyse.analysis.metrics import metrics

        return metrics(self)

    def insights(self, limits: Limits | None = None, only: Sequence[str] = ()) -> Insights:
        """Return what stands out in the report's memory and liveness, with evidence and advice, most severe first.

        Parameters
        ----------
        limits
            From where on something is worth saying; see :class:`pvanalyse.analysis.insights.Limits`.
        only
            Evaluate only these rules; all of them when there are none.
        """
        import pvanalyse.render.insights  # noqa: F401  (for notebooks)
        from pvanalyse.analysis.insights import insights

        sizes = {file.kind: file.bytes for file in self.files.files}
        return insights(self, limits, profile_bytes=sizes.get(FileKind.PROFILE), only=only)

    def split(
        self, num_ipus: int, layer_regex: str | None = None, method: str = "exact", limit: int | None = None
    ) -> PipelineSplit:
        """Return where to split a program for one IPU into the stages of a pipeline, and what they need.

        See :func:`pvanalyse.analysis.splitting.pipeline_split.pipeline_split` for what can be asked.
        """
        from pvanalyse.analysis.splitting.pipeline_split import pipeline_split

        return pipeline_split(self, num_ipus, layer_regex, method, limit)

    def html(self, other: Report | None = None, tiles: str | Sequence[int] | None = None) -> Page:
        """Return a page with everything in it, which a notebook shows; see :class:`pvanalyse.html.page.Page`.

        Parameters
        ----------
        other
            Another report, to be shown side by side with this one.
        tiles
            Tiles whose memory maps go into the page besides the most telling ones.
        """
        from pvanalyse.html.page import page

        reports = [self] if other is None else [self, other]
        return page([(str(report.files.directory), report) for report in reports], tiles=tiles)

    @cached_property
    def plot(self) -> Plots:
        """Every kind of plot as a method that returns Axes, such as ``report.plot.memory_by_tile()``."""
        from pvanalyse.plots.accessor import Plots

        return Plots(self)

    @cached_property
    def memory(self) -> MemoryAccessor:
        """Where the bytes are: by tile, IPU, category, vertex, variable and more."""
        from pvanalyse.accessors import MemoryAccessor

        return MemoryAccessor(self)

    @cached_property
    def execution(self) -> ExecutionAccessor:
        """Where the cycles go: by run, type, operation; imbalance, overlap, bandwidth and more."""
        from pvanalyse.accessors import ExecutionAccessor

        return ExecutionAccessor(self)

    @cached_property
    def programs(self) -> ProgramsAccessor:
        """The program tree, and what each program costs with everything below it."""
        from pvanalyse.accessors import ProgramsAccessor

        return ProgramsAccessor(self)

    @cached_property
    def operations(self) -> OperationsAccessor:
        """What the operations that a user wrote cost, and where things came from."""
        from pvanalyse.accessors import OperationsAccessor

        return OperationsAccessor(self)

    @cached_property
    def liveness(self) -> LivenessAccessor:
        """When the bytes are live: the curve, its peaks, lifetimes, what would lower the peak."""
        from pvanalyse.accessors import LivenessAccessor

        return LivenessAccessor(self)

    def sql(self, query: str) -> pd.DataFrame:
        """Return the result of a SELECT on profile.pop, in the file's own layout.

        Raises
        ------
        UsageError
            The query does more than read, or is not SQL.
        NotCaptured
            The report has no profile.pop.
        """
        from pvanalyse.readers.profile import Profile

        reader = self._reader(model.PROFILE)
        if not isinstance(reader, Profile):
            raise NotCaptured(model.PROFILE, TABLES["programs"].capture)
        return to_pandas(reader.database.query(query))

    @property
    def warnings(self) -> list[str]:
        """What had to be left out while reading, a sentence each."""
        return [warning for reader in self._readers.values() for warning in getattr(reader, "warnings", [])]

    # ----------------------------------------------------------------------------------------------- tables

    def captured(self, name: str) -> bool:
        """Tell whether the report holds a table.

        Raises
        ------
        UsageError
            There is no table of that name in the data model.
        """
        if name not in self._captured:
            reader = self._reader(table(name).source)
            self._captured[name] = reader is not None and reader.captured(name)
        return self._captured[name]

    def count(self, name: str) -> int:
        """Return a table's number of rows without reading it; 0 when it was not captured."""
        reader = self._reader(table(name).source)
        return reader.count(name) if reader is not None and self.captured(name) else 0

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        """Return a table, or only some of its columns; each column is read once and kept.

        Parameters
        ----------
        name, columns
            The table, and which of its columns.
        where
            Only rows with these numbers, such as ``{"tile": [947]}``; these are read each time, and not kept.

        Raises
        ------
        NotCaptured
            The report does not hold the table.
        UsageError
            There is no such table or column, or the rows' column holds no integers.
        UnreadableFile
            The file is damaged.
        """
        wanted = self._wanted(name, columns)
        if where:
            return self._joined(name, [column.name for column in wanted], where)
        fresh = [column.name for column in wanted if (name, column.name) not in self._columns]
        if fresh:
            read = self._joined(name, fresh)
            self._columns.update({(name, column): read.column(column) for column in fresh})
        return pa.table({column.name: self._columns[name, column.name] for column in wanted})

    def _joined(self, name: str, columns: Sequence[str], where: Where | None = None) -> pa.Table:
        batches = list(self.batches(name, columns, where))
        # Each batch brings a dictionary of its own; a column has one.
        return pa.Table.from_batches(batches, table(name).arrow_schema(list(columns))).unify_dictionaries()

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream a table in the order of its keys, without keeping it; see :meth:`arrow`."""
        wanted = [column.name for column in self._wanted(name, columns)]
        if where:
            table(name).check_where(where)
        reader = self._reader(table(name).source)
        assert reader is not None
        return self._told(name, reader.batches(name, wanted, where))

    def _wanted(self, name: str, columns: Sequence[str] | None) -> tuple[model.Column, ...]:
        """Return the columns asked for of a table that was captured."""
        wanted = table(name).select(None if columns is None else list(columns))
        if not self.captured(name):
            raise NotCaptured(name, table(name).capture)
        return wanted

    def _told(self, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in batches:
            yield batch
            rows += batch.num_rows
            self._progress(name, rows)

    def table(self, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table as a DataFrame with Arrow types, categories as pandas categories; see :meth:`arrow`."""
        return to_pandas(self.arrow(name, columns))

    def _reader(self, source: str) -> Source | None:
        if source not in self._readers:
            path = self.files.path_of(source)
            if source == model.DEBUG_INFO and self._debug_info is not None:
                path = self._debug_info
            if path is None and source in self.files.unusable:
                raise UnreadableFile(self.files.directory / source, self.files.unusable[source])
            if path is None:
                return None
            from pvanalyse.readers.sources import open_source

            self._readers[source] = open_source(source, path, self._dialect, self._progress)
        return self._readers[source]

    def trace_cache_is_fresh(self) -> bool | None:
        """Tell whether profile.pop_cache was made from this profile.pop; None when one of them is not there."""
        from pvanalyse.readers.sqlite import read_header
        from pvanalyse.readers.trace_cache import TraceCache

        cache, profile = self.files.path_of(model.TRACE_CACHE), self.files.path_of(model.PROFILE)
        if cache is None or profile is None:
            return None
        with TraceCache(cache) as opened:
            return opened.profile_change_counter == read_header(profile)

    def _notes(self) -> list[str]:
        stale = "profile.pop_cache is stale: it was made from another state of profile.pop"
        return [*self.files.notes, *([stale] if self.trace_cache_is_fresh() is False else [])]

    # ---------------------------------------------------------------------------------------------- display

    def __repr__(self) -> str:
        try:
            return f"<Report {str(self.files.directory)!r}: {', '.join(self._holds()) or 'nothing that can be read'}>"
        except PvanalyseError as error:
            return f"<Report that cannot be read: {error}>"

    def _holds(self) -> Iterator[str]:
        from pvanalyse.analysis.columns import only_row
        from pvanalyse.units import format_count

        target = only_row(self, "target")
        if target:
            yield f"{target.get('num_ipus', '?')} IPU(s) of {format_count(target.get('tiles_per_ipu', 0))} tiles"
        counted = (
            "programs",
            "liveness_steps",
            "runs",
            "execution_steps",
            "trace_blocks",
            "archive_tiles",
            "debug_contexts",
        )
        for name in counted:
            if self.captured(name):
                yield f"{format_count(self.count(name))} {name.replace('_', ' ')}"

    def _repr_html_(self) -> str:
        from pvanalyse.plots import KINDS
        from pvanalyse.plots.inline import pictures
        from pvanalyse.render.document import Document
        from pvanalyse.render.html import render_html

        try:
            shown = str(self.summary()._repr_html_())
            return shown + pictures([KINDS["memory-by-tile"], KINDS["liveness"]], self)
        except PvanalyseError as error:
            return render_html(Document("Report that cannot be read", (), None, verdict=str(error), alarming=True))


class Tables(Mapping[str, "pd.DataFrame"]):
    """The tables of a report as DataFrames, by name or attribute; only captured ones are listed."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def __getitem__(self, name: str) -> pd.DataFrame:
        return self._report.table(name)

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name in TABLES:
            return self._report.table(name)
        raise AttributeError(f"a report has no table {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TABLES]

    def __iter__(self) -> Iterator[str]:
        return (name for name in TABLES if self._report.captured(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in TABLES and self._report.captured(str(name))

    def listing(self) -> pd.DataFrame:
        """Return what there is: columns table, captured, rows, source, capture (how to get it) and what a row is."""
        import pandas as pd

        rows = [
            (name, self._report.captured(name), self._report.count(name), schema.source, schema.capture, schema.doc)
            for name, schema in TABLES.items()
        ]
        return pd.DataFrame(rows, columns=["table", "captured", "rows", "source", "capture", "doc"])

    def get(self, name: str, default: Any = None) -> Any:
        """Return a table, or the default when there is none of that name or it was not captured."""
        return self[name] if name in self else default  # noqa: SIM401  (this is that)

    def __repr__(self) -> str:
        try:
            return str(self.listing().drop(columns="doc").to_string(index=False))
        except PvanalyseError as error:
            return f"<Tables that cannot be read: {error}>"

    def _repr_html_(self) -> str:
        try:
            return str(self.listing().to_html(index=False))
        except PvanalyseError as error:
            return f"<p>Tables that cannot be read: {escape(str(error))}</p>"


def to_pandas(arrow: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a DataFrame that keeps its types; dictionaries become categories."""
    import pandas as pd

    frame: pd.DataFrame = arrow.to_pandas(
        types_mapper=lambda kind: None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind)
    )
    return frame
