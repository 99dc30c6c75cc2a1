"""One way to ask every file of a report for its tables, whatever the file's format."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.readers.dialect import Dialect
from pvanalyse.tables import APP, ARCHIVE, DEBUG_INFO, FRAMEWORK, PROFILE, TRACE_CACHE, Where, table, tables_of

Progress = Callable[[str, int], None]
"""Called with the name of the table being read and how far it is: rows, or bytes of the file."""


class Source(Protocol):
    """One file of a report, as the tables that come from it."""

    def captured(self, name: str) -> bool:
        """Tell whether the table is there and has a row."""

    def count(self, name: str) -> int:
        """Return the table's number of rows."""

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the table, or only some of its columns and rows."""

    def close(self) -> None:
        """Close the file."""


def open_source(source: str, path: Path, dialect: Dialect | None, progress: Progress) -> Source:
    """Open the file that serves as ``source``, a name such as ``profile.pop``.

    Raises
    ------
    UnreadableFile
        The file is missing, damaged, or not of its kind.
    """
    # Each reader is imported when its file is there: a summary of profile.pop needs no CBOR.
    if source == PROFILE:
        from pvanalyse.readers.profile import Profile

        return Profile(path, dialect)
    openers: dict[str, Callable[[], Source]] = {
        ARCHIVE: lambda: _ArchiveSource(path),
        DEBUG_INFO: lambda: _DebugInfoSource(path, progress),
        TRACE_CACHE: lambda: _TraceCacheSource(path),
        FRAMEWORK: lambda: _MetadataSource(path, FRAMEWORK),
        APP: lambda: _MetadataSource(path, APP),
    }
    return openers[source]()


class _Unindexed:
    """A source of a file that has to be read from one end to the other, whatever rows are wanted."""

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        if not where:
            yield from self.every_row(name, columns)
            return
        wanted = list(table(name).column_names if columns is None else columns)
        for batch in self.every_row(name, list(dict.fromkeys([*wanted, *where]))):
            masks = [pc.is_in(batch.column(one), pa.array(values, pa.int64())) for one, values in where.items()]
            yield batch.filter(functools.reduce(pc.and_, masks)).select(wanted)

    def every_row(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


class _Whole(_Unindexed):
    """A source whose tables are small enough, or cheap enough, to be read whole."""

    def __init__(self) -> None:
        self._tables: dict[str, pa.Table] = {}

    def read(self, name: str) -> pa.Table:
        raise NotImplementedError

    def whole(self, name: str) -> pa.Table:
        """Return a table, read once."""
        if name not in self._tables:
            self._tables[name] = self.read(name)
        return self._tables[name]

    def captured(self, name: str) -> bool:
        return self.count(name) > 0

    def count(self, name: str) -> int:
        return int(self.whole(name).num_rows)

    def every_row(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        whole = self.whole(name)
        yield from (whole if columns is None else whole.select(list(columns))).to_batches()

    def close(self) -> None:
        self._tables.clear()


class _ArchiveSource(_Whole):
    def __init__(self, path: Path) -> None:
        from pvanalyse.readers.archive import Archive

        super().__init__()
        self._archive = Archive(path)

    def count(self, name: str) -> int:
        return self._archive.count(name)

    def read(self, name: str) -> pa.Table:
        return {
            "archive_tiles": self._archive.tiles,
            "archive_segments": self._archive.segments,
            "archive_sections": self._archive.sections,
            "archive_symbols": self._archive.symbols,
        }[name]()

    def close(self) -> None:
        super().close()
        self._archive.close()


class _DebugInfoSource(_Unindexed):
    def __init__(self, path: Path, progress: Progress) -> None:
        self._path = path
        self._progress = progress
        self._count: int | None = None
        self.warnings: list[str] = []

    def count(self, name: str) -> int:  # noqa: ARG002  (the file holds one table)
        if self._count is None:
            from pvanalyse.readers.debug_info import count_contexts

            self._count = count_contexts(self._path)
        return self._count

    def every_row(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        from pvanalyse.readers.debug_info import describe_problems, read_debug_info

        # Decoding what a layer recorded costs most, so it is not done for somebody who asks for names.
        read = read_debug_info(self._path, columns, lambda done, _total: self._progress(name, done))
        if not self.warnings and {"debug_context_id", "parent_id"} <= set(read.column_names):
            self.warnings += [f"{self._path}: {problem}" for problem in describe_problems(read)]
        yield from read.to_batches()

    def captured(self, name: str) -> bool:
        return self.count(name) > 0

    def close(self) -> None:
        pass  # the file is open only while it is read


class _TraceCacheSource(_Unindexed):
    def __init__(self, path: Path) -> None:
        from pvanalyse.readers.trace_cache import TraceCache

        self.cache = TraceCache(path)

    @property
    def warnings(self) -> list[str]:
        return self.cache.database.warnings

    def captured(self, name: str) -> bool:
        return self.count(name) > 0

    def count(self, name: str) -> int:  # noqa: ARG002  (the file holds one table)
        return self.cache.count()

    def every_row(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        return self.cache.batches(columns)

    def close(self) -> None:
        self.cache.close()


class _MetadataSource(_Whole):
    def __init__(self, path: Path, source: str) -> None:
        super().__init__()
        self._path = path
        (self._schema,) = tables_of(source)

    def read(self, name: str) -> pa.Table:
        from pvanalyse.readers.metadata import read_metadata

        return read_metadata(self._path).cast(table(name).arrow_schema())
