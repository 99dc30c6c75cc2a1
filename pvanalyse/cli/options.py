"""What commands share: the report they are about, and where their answer goes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

import click

from pvanalyse.cli.progress import progress
from pvanalyse.cli.streams import say, standard_output, write_file
from pvanalyse.errors import UsageError
from pvanalyse.units import BYTE_UNITS, ByteUnits

if TYPE_CHECKING:
    from pvanalyse.render.document import Document, Formatter

FORMATS = ("text", "json", "csv", "markdown")
_FOR_PEOPLE = ("text", "markdown")

Renderer = Callable[["Document", TextIO, "Formatter"], None]
Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class Destination:
    """A format and the file it goes to; ``-`` is standard output."""

    format: str
    path: str = "-"


@dataclass(frozen=True, slots=True)
class Output:
    """The output options of a command, and what they do.

    ``settle`` is called before anything is written, so that no progress is shown amid an answer.
    """

    destinations: tuple[Destination, ...]
    units: ByteUnits
    quiet: bool
    force: bool
    settle: Callable[[], None] = lambda: None

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
        places = [one.path if one.path == "-" else os.path.realpath(one.path) for one in self.destinations]
        for one, place in zip(self.destinations, places, strict=True):
            if places.count(place) > 1:
                raise UsageError(f"two formats go to {'standard output' if place == '-' else one.path}")

    def refuse_to_overwrite(self, path: Path) -> None:
        """Raise UsageError when a file cannot be written there, or is there and ``--force`` was not given."""
        # Unlike Path's, these raise no error where one may not look.
        if os.path.isdir(path):  # noqa: PTH112
            raise UsageError(f"{path}: is a directory, name a file to write")
        if os.path.isfile(path) and not self.force:  # noqa: PTH113
            raise UsageError(f"{path}: exists already; --force overwrites it")
        if not os.path.isdir(path.parent):  # noqa: PTH112
            raise UsageError(f"{path}: there is no directory '{path.parent}'")

    def write(self, document: Document, renderers: Mapping[str, Renderer] = MappingProxyType({})) -> None:
        """Write the document in every format asked for.

        Parameters
        ----------
        document
            The answer.
        renderers
            Of the formats that this command has besides those of all, or in place of them.
        """
        from pvanalyse.render.document import formatter

        self.settle()
        write = formatter(self.units)
        for one in self.destinations:
            render = renderers.get(one.format) or _renderer(one.format)
            if one.path == "-":
                render(document, standard_output(exact=one.format not in _FOR_PEOPLE), write)
            else:
                text = StringIO(newline="")
                render(document, text, write)
                write_file(Path(one.path), text.getvalue())

    def note(self, sentences: Sequence[str]) -> None:
        """Say something beside the answer, on standard error."""
        if not self.quiet:
            for sentence in sentences:
                say(sentence)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the output options; it gets them as its keyword ``output``, an :class:`Output`."""
    return output_options_with(())(command)


def output_options_with(formats: Sequence[str]) -> Wrapper:
    """Return :func:`output_options` with more formats, whose renderers the command gives to :meth:`Output.write`."""
    known = (*FORMATS, *formats)

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--format", "-f", "formats", multiple=True, metavar="FORMAT[:PATH]",
                      callback=functools.partial(_destinations, known),
                      help=f"How to write the answer: {', '.join(known)}; with :PATH to a file ('-' is standard "
                           "output). Repeatable. Default: text.")  # fmt: skip
        @click.option("--units", type=click.Choice(BYTE_UNITS), default="binary", show_default=True,
                      help="Sizes in text and Markdown; JSON and CSV always have plain bytes.")  # fmt: skip
        @click.option("--force", is_flag=True, help="Overwrite the files that are named for output.")
        @click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks on standard error.")
        @functools.wraps(command)
        def wrapped(*args: Any, formats: tuple[Destination, ...], units: ByteUnits, force: bool, quiet: bool,
                    **kwargs: Any) -> Any:  # fmt: skip
            output = Output(formats, units, quiet, force)
            output.check()
            return command(*args, output=output, **kwargs)

        return wrapped

    return give


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for opening reports, as its keywords ``dialect`` and ``debug_info``."""
    dialect = click.option("--dialect", type=click.Path(), metavar="FILE",
                           help="Read profile.pop through this dialect; 'pvanalyse inspect' drafts one.")  # fmt: skip
    debug_info = click.option("--debug-info", type=click.Path(), metavar="FILE", help="Use this debug.cbor.")
    return dialect(debug_info(command))


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the REPORT it is about, opened, as its keyword ``report``; outside :func:`output_options`."""

    @click.argument("path", metavar="REPORT")
    @reading_options
    @functools.wraps(command)
    def wrapped(*args: Any, path: str, dialect: str | None, debug_info: str | None, output: Output,
                **kwargs: Any) -> Any:  # fmt: skip
        from pvanalyse.report import open_report

        with progress(output.quiet) as shown, open_report(path, dialect, debug_info, shown.update) as report:
            result = command(*args, report=report, output=replace(output, settle=shown.stop), **kwargs)
            output.note(report.warnings)
        return result

    return output_options(wrapped)


def _destinations(
    formats: Sequence[str], _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> tuple[Destination, ...]:
    found = []
    for value in values or ("text",):
        name, colon, path = value.partition(":")
        if name not in formats:
            raise click.BadParameter(f"'{name}' is none of {', '.join(formats)}")
        if colon and not path:
            raise click.BadParameter(f"'{value}' names no file after the colon")
        found.append(Destination(name, path or "-"))
    return tuple(found)


def _renderer(name: str) -> Renderer:
    if name == "text":
        from pvanalyse.render.text import render_text

        return render_text
    if name == "markdown":
        from pvanalyse.render.markdown import render_markdown

        return render_markdown
    from pvanalyse.render import machine

    return {"json": machine.render_json, "csv": machine.render_csv}[name]
