"""``pvanalyse capture``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pvanalyse.cli.options import Output, output_options
from pvanalyse.cli.progress import progress
from pvanalyse.errors import ReportNotFound, UsageError
from pvanalyse.report_files import CAPTURED, FileKind

if TYPE_CHECKING:
    from pvanalyse.capture import Captured
    from pvanalyse.render.document import Document

Shown = Callable[[str, int, int], None]


@click.command("capture")
@click.argument("path", metavar="REPORT")
@click.option("--output", "-o", "directory", metavar="DIR",
              help="The directory to write profile.pop into. Default: 'captured' in the report.")  # fmt: skip
@click.option("--pva", "module", default="pva", show_default=True, metavar="MODULE",
              help="The Python module to read with: the SDK's, or another one with its interface, such as "
                   "pvanalyse.libpva.")  # fmt: skip
@click.option("--skip", multiple=True, metavar="PART",
              help="Leave a part out: report, target, graph, tiles, compute sets, lifetimes, lowered variables (which "
                   "takes long), always-live variables, liveness steps, programs, runs, executed steps or blocks. "
                   "Repeatable.")  # fmt: skip
@output_options
def command(path: str, output: Output, directory: str | None, module: str, skip: tuple[str, ...]) -> None:
    """Read a report with the SDK's own library, and write a profile that pvanalyse reads anywhere.

    For a machine with the Poplar SDK: the layout of its profile.pop is not public, but the objects of its library
    libpva are. They are walked and written down; then DIR is a report of its own, without the SDK. What the library
    does not tell is listed in the end, with what is missing for it.

    It may be interrupted at any time: the same command continues where it stopped, as long as the report is the same.
    The report itself is not written to.
    """
    from pvanalyse.capture import PARTS, capture_report, open_module
    from pvanalyse.discovery import resolve_report

    for part in skip:
        if part not in PARTS:
            raise UsageError(f"there is no part '{part}'; there are: {', '.join(PARTS)}")
    files = resolve_report(path)
    source = next((file.path for file in files.files if file.kind is FileKind.PROFILE), None)
    if source is None:
        raise ReportNotFound(f"{files.directory}: there is no profile.pop to capture")
    target = Path(directory) if directory is not None else source.parent / CAPTURED
    _check_target(target / "profile.pop", source, output)
    library = open_module(module)
    with _progress(output.quiet, str(source)) as shown:
        captured = capture_report(source, target, library, skip=skip, progress=shown)
    output.note(captured.remarks)
    output.write(_document(captured, str(source), module))


def _check_target(target: Path, source: Path, output: Output) -> None:
    """Refuse to overwrite the report, or what is there without ``--force``."""
    if target.exists():
        if os.path.samefile(target, source):  # noqa: PTH121
            raise UsageError(f"{target}: is the report itself; name another directory with -o")
        output.refuse_to_overwrite(target)


@contextmanager
def _progress(quiet: bool, what: str) -> Iterator[Shown]:
    """Yield what shows how far each part is: a bar on a terminal, a line for each slow part elsewhere."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        with progress(quiet, what) as shown:
            yield lambda part, done, _total: shown.update(part, done)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("capturing {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def update(part: str, done: int, total: int) -> None:
            if part not in tasks:
                tasks[part] = bar.add_task(part, total=total)
            bar.update(tasks[part], completed=done, visible=done < total)

        yield update


def _document(captured: Captured, source: str, module: str) -> Document:
    from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit

    size, without = captured.profile.stat().st_size, captured.without
    facts = [Fact("File", str(captured.profile)), Fact("Size", size, Unit.BYTES), Fact("Read by", module)]
    rows = Grid("Tables", [Field("Table", "table"), Field("Rows", "rows", Unit.COUNT)], list(captured.tables.items()))
    data = {
        "report": source,
        "file": str(captured.profile),
        "bytes": size,
        "pva": module,
        "tables": [{"table": name, "rows": count} for name, count in captured.tables.items()],
        "not_told": [{"table": one.table, "columns": list(one.columns), "meaning": one.meaning} for one in without],
        "remarks": list(captured.remarks),
    }
    sections = [
        Section("Written", facts, [rows]),
        Section("What libpva does not tell, and what that means", [Fact(one.table, one.meaning) for one in without]),
    ]
    return Document(f"Captured {source}", sections, data)
