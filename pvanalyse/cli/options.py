"""What commands share: the report they are about, and where their answer goes."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from pvanalyse.errors import UnreadableFile, UsageError
from pvanalyse.units import BYTE_UNITS, ByteUnits

if TYPE_CHECKING:
    from pvanalyse.render.document import Document, Formatter

FORMATS = ("text", "json", "csv", "markdown")
_SLOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Destination:
    """A format and the file it goes to; ``-`` is standard output."""

    format: str
    path: str = "-"


@dataclass(frozen=True, slots=True)
class Output:
    """The output options of a command, and what they do."""

    destinations: tuple[Destination, ...]
    units: ByteUnits
    quiet: bool
    force: bool

    def check(self) -> None:
        """Refuse to overwrite files, before any work is done.

        Raises
        ------
        UsageError
            A file is there already and ``--force`` was not given, or two formats go to one place.
        """
        for one in self.destinations:
            if one.path != "-":
                self.refuse_to_overwrite(Path(one.path))
        targets = [one.path for one in self.destinations]
        for target in targets:
            if targets.count(target) > 1:
                raise UsageError(f"two formats go to {'standard output' if target == '-' else target}")

    def refuse_to_overwrite(self, path: Path) -> None:
        """Raise UsageError when a file cannot be written there, or is there and ``--force`` was not given."""
        if path.is_dir():
            raise UsageError(f"{path}: is a directory, name a file to write")
        if path.is_file() and not self.force:
            raise UsageError(f"{path}: exists already; --force overwrites it")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no directory '{path.parent}'")

    def write(self, document: Document) -> None:
        """Write the document in every format asked for."""
        from pvanalyse.render.document import formatter

        write = formatter(self.units)
        for one in self.destinations:
            render = _renderer(one.format)
            if one.path == "-":
                _make_encodable(sys.stdout)
                render(document, sys.stdout, write)
            else:
                text = StringIO(newline="")
                render(document, text, write)
                replace_file(Path(one.path), text.getvalue())

    def note(self, sentences: Sequence[str]) -> None:
        """Say something beside the answer, on standard error."""
        from pvanalyse.names import printable_lines

        if not self.quiet:
            for sentence in sentences:
                click.echo(f"pvanalyse: {printable_lines(sentence)}", err=True)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the output options; it gets them as its keyword ``output``, an :class:`Output`."""

    @click.option("--format", "-f", "formats", multiple=True, metavar="FORMAT[:PATH]", callback=_destinations,
                  help=f"How to write the answer: {', '.join(FORMATS)}; with :PATH to a file ('-' is standard "
                       "output). Repeatable. Default: text.")  # fmt: skip
    @click.option("--units", type=click.Choice(BYTE_UNITS), default="binary", show_default=True,
                  help="Sizes in text and Markdown; JSON and CSV always have plain bytes.")  # fmt: skip
    @click.option("--force", is_flag=True, help="Overwrite files that --format names.")
    @click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks on standard error.")
    @functools.wraps(command)
    def wrapped(*args: Any, formats: tuple[Destination, ...], units: ByteUnits, force: bool, quiet: bool,
                **kwargs: Any) -> Any:  # fmt: skip
        output = Output(formats, units, quiet, force)
        output.check()
        return command(*args, output=output, **kwargs)

    return wrapped


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the REPORT it is about, opened, as its keyword ``report``; outside :func:`output_options`."""

    @click.argument("path", metavar="REPORT")
    @click.option("--dialect", type=click.Path(), metavar="FILE",
                  help="Read profile.pop through this dialect; 'pvanalyse inspect' drafts one.")  # fmt: skip
    @click.option("--debug-info", type=click.Path(), metavar="FILE", help="Use this debug.cbor.")
    @functools.wraps(command)
    def wrapped(*args: Any, path: str, dialect: str | None, debug_info: str | None, output: Output,
                **kwargs: Any) -> Any:  # fmt: skip
        from pvanalyse.report import open_report

        with progress(output.quiet) as tell, open_report(path, dialect, debug_info, tell) as report:
            result = command(*args, report=report, output=output, **kwargs)
            output.note(report.warnings)
        return result

    return output_options(wrapped)


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """Yield a function that takes what is being read and how far; it is shown when that takes over a second.

    On a terminal it is one line that is rewritten and goes away; elsewhere a line per table, so that a log stays
    readable.
    """
    if quiet:
        yield lambda _table, _rows: None
        return
    shown = _Progress(sys.stderr)
    try:
        yield shown.update
    finally:
        shown.stop()


class _Progress:
    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._status: Any = None
        self._table = ""
        self._since = 0.0
        self._told = True
        # A terminal shows that something is going on even while the first batch is being read.
        self._timer = threading.Timer(_SLOW_SECONDS, self._start) if out.isatty() else None
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def update(self, table: str, rows: int) -> None:
        with self._lock:
            if self._status is not None:
                self._status.update(f"reading {table}: {rows:,}")
            elif self._timer is None:
                self._log(table)
            self._table = table

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._status is not None:
                self._status.stop()

    def _log(self, table: str) -> None:
        if table != self._table:
            self._since, self._told = time.monotonic(), False
        elif not self._told and time.monotonic() - self._since > _SLOW_SECONDS:
            self._told = True
            self._out.write(f"pvanalyse: reading {table} …\n")

    def _start(self) -> None:
        from rich.console import Console

        with self._lock:
            self._status = Console(file=self._out).status(f"reading {self._table or 'the report'} …")
            self._status.start()


def _destinations(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[Destination, ...]:
    found = []
    for value in values or ("text",):
        name, colon, path = value.partition(":")
        if name not in FORMATS:
            raise click.BadParameter(f"'{name}' is none of {', '.join(FORMATS)}")
        if colon and not path:
            raise click.BadParameter(f"'{value}' names no file after the colon")
        found.append(Destination(name, path or "-"))
    return tuple(found)


def _renderer(name: str) -> Callable[[Document, TextIO, Formatter], None]:
    if name == "text":
        from pvanalyse.render.text import render_text

        return render_text
    if name == "markdown":
        from pvanalyse.render.markdown import render_markdown

        return render_markdown
    from pvanalyse.render import machine

    return {"json": machine.render_json, "csv": machine.render_csv}[name]


def _make_encodable(out: TextIO) -> None:
    """Let a stream that cannot write a character, such as ≥ in an ASCII locale, write an escape instead."""
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="backslashreplace")


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all; a symbolic link's target, a pipe or a device is written where it is."""
    target = path.resolve() if path.is_symlink() else path
    in_place = target.exists() and not target.is_file()
    written = target if in_place else target.with_name(f".{target.name}.part")
    try:
        written.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
        if not in_place:
            written.replace(target)
    except OSError as error:
        if not in_place:
            written.unlink(missing_ok=True)
        raise UnreadableFile(path, f"cannot be written ({error.strerror})") from None
