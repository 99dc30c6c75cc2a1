"""``pvanalyse export``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.whole_files import is_special, whole_file
from pvanalyse.errors import UsageError
from pvanalyse.tables import TABLES, table

if TYPE_CHECKING:
    from pvanalyse.render.document import Document
    from pvanalyse.render.trace_tracks import TraceWritten
    from pvanalyse.report import Report

TRACES = ("perfetto", "speedscope", "chrome")
FILES = ("csv", "parquet", "sqlite")


def _known(_ctx: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(table(name).name for name in names)


@click.command("export")
@click.argument("kind", type=click.Choice([*TRACES, *FILES]), metavar="KIND")
@report_options
@click.option("--output", "-o", "file", required=True, metavar="FILE", help="The file to write.")
@click.option("--table", "names", multiple=True, metavar="NAME", callback=_known,
              help="A table of the data model, such as execution_steps: one for csv and parquet; repeatable for "
                   "sqlite, which has all that were captured without it.")  # fmt: skip
@click.option("--run", "runs", type=int, multiple=True, metavar="N", help="Only this run of a trace. Repeatable.")
@click.option("--ipu", "ipus", type=int, multiple=True, metavar="N", help="Only this IPU of a trace. Repeatable.")
def command(report: Report, output: Output, kind: str, file: str, names: tuple[str, ...], runs: tuple[int, ...],
            ipus: tuple[int, ...]) -> None:  # fmt: skip
    """Write a report into a file that other tools open, and say what is in it.

    KIND is one of:

    \b
      perfetto     the execution as a trace for ui.perfetto.dev and trace_processor, with groups by name
                   and counters of live memory and bytes moved
      speedscope   the execution as profiles for speedscope.app
      chrome       the execution in Chrome's trace event format, as JSON
      csv          a table
      parquet      a table, with types and units
      sqlite       tables in one database

    A trace has what there is: executed steps, else blocks of lightweight profiling, else the cache of the vendor's
    viewer. Files are streamed, and written whole or not at all.
    """  # noqa: D301  (a backspace tells click to leave the list as it is)
    target = Path(file)
    _check_options(kind, names, runs, ipus)
    _check_target(target, report, output)
    with whole_file(target) as place:
        if kind in TRACES:
            written = _write_trace(kind, report, place, runs or None, ipus or None)
            found = _trace_found(written)
        else:
            found = _tables_found(_write_tables(kind, report, place, names))
        size = 0 if is_special(place) else place.stat().st_size
    if kind in TRACES and found["clock_hz"] is None:
        from pvanalyse.render.trace_tracks import Clock

        output.note([Clock(None).remark])
    if not is_special(target):  # which may well be standard output
        about = {"report": str(report.files.directory), "kind": kind, "file": file, "bytes": size}
        output.write(_document({**about, **found}))


# -------------------------------------------------------------------------------------------------------------- checks
def _check_options(kind: str, names: Sequence[str], runs: Sequence[int], ipus: Sequence[int]) -> None:
    for flag, given, kinds in (("--table", names, FILES), ("--run", runs, TRACES), ("--ipu", ipus, TRACES)):
        if given and kind not in kinds:
            raise UsageError(f"{flag} is not for {kind} but for {', '.join(kinds)}")
    if kind in ("csv", "parquet") and len(names) != 1:
        raise UsageError(f"{kind} is a file of one table: name it with --table, such as --table execution_steps")


def _check_target(target: Path, report: Report, output: Output) -> None:
    """Refuse to overwrite what is not to be, above all the report that is read.

    Raises
    ------
    UsageError
        The file is there and ``--force`` was not given, or it is another file of this command.
    """
    output.refuse_to_overwrite(target)
    place = os.path.realpath(target)
    directory = report.files.directory
    if place in {os.path.realpath(directory / one.name) for one in report.files.files}:
        raise UsageError(f"{target}: is a file of the report itself")
    if any(one.path != "-" and os.path.realpath(one.path) == place for one in output.destinations):
        raise UsageError(f"two answers go to {target}")


# ------------------------------------------------------------------------------------------------------------- writing
def _write_trace(
    kind: str, report: Report, place: Path, runs: Sequence[int] | None, ipus: Sequence[int] | None
) -> TraceWritten:
    if kind == "perfetto":
        from pvanalyse.render.perfetto import write_perfetto

        with place.open("wb") as binary:
            return write_perfetto(report, binary, runs=runs, ipus=ipus)
    with place.open("w", encoding="ascii", newline="\n") as text:
        if kind == "chrome":
            from pvanalyse.render.chrome_trace import write_chrome_trace

            return write_chrome_trace(report, text, runs=runs, ipus=ipus)
        from pvanalyse.render.speedscope import write_speedscope

        return write_speedscope(report, text, name=report.files.directory.name, runs=runs, ipus=ipus)


def _write_tables(kind: str, report: Report, place: Path, names: Sequence[str]) -> Mapping[str, int]:
    from pvanalyse.render import table_files

    if kind == "sqlite":
        if is_special(place):
            raise UsageError(f"{place}: a database is a regular file")
        captured = [name for name in TABLES if not names and report.captured(name)]
        return table_files.write_sqlite(report, names or captured, place)
    write: Callable[..., int] = {"csv": table_files.write_csv, "parquet": table_files.write_parquet}[kind]
    with place.open("wb") as out:
        return {names[0]: write(report, names[0], out)}


# ---------------------------------------------------------------------------------------------------------- the answer
def _trace_found(written: TraceWritten) -> dict[str, Any]:
    return {"slices": written.slices, "groups": written.groups, "tracks": written.tracks, "ipus": list(written.ipus),
            "clock_hz": written.clock_hz}  # fmt: skip


def _tables_found(rows: Mapping[str, int]) -> dict[str, Any]:
    return {"tables": [{"table": name, "rows": count} for name, count in rows.items()]}


def _document(data: Mapping[str, Any]) -> Document:
    from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit

    facts = [Fact("File", data["file"]), Fact("Size", data["bytes"], Unit.BYTES)]
    grids = []
    if "slices" in data:
        facts += [
            Fact("Slices", data["slices"], Unit.COUNT),
            *([Fact("Groups", data["groups"], Unit.COUNT)] if data["groups"] else []),
            Fact("Tracks", data["tracks"], Unit.COUNT),
            Fact("IPUs", ", ".join(map(str, data["ipus"]))),
            Fact("Clock", data["clock_hz"], Unit.HERTZ),
        ]
    else:
        fields = [Field("Table", "table"), Field("Rows", "rows", Unit.COUNT)]
        grids = [Grid("Tables", fields, [(one["table"], one["rows"]) for one in data["tables"]])]
    return Document(f"Exported {data['report']} as {data['kind']}", [Section("Written", facts, grids)], data)
