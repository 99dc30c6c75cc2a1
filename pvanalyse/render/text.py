"""Documents for a terminal, and for the pipe behind it."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from pvanalyse.names import shorten
from pvanalyse.render.document import Document, Fact, Field, Formatter, Grid, Section, Unit

_PIPE_WIDTH = 120
_LEAST_WIDTH = 40  # narrower than this, lines are longer than the terminal
_LEAST_TEXT = 12  # columns of a name, however little room there is
_GAP = 3  # that rich leaves between columns
_INDENT = 2
_TRAILING = re.compile(r"(?:\x1b\[[\d;]*m|\s)+$")
_UNLIMITED = 100_000  # rich cuts what is wider than its console; widths are decided here


def render_text(document: Document, out: TextIO, write: Formatter) -> None:
    """Write a document for reading.

    On a terminal it takes the terminal's width and colour (not with ``NO_COLOR``, https://no-color.org); elsewhere it
    is plain and 120 columns wide, or as wide as ``COLUMNS`` says. Names are cut to fit, numbers never are.
    """
    width = max(_width(out), _LEAST_WIDTH)
    drawn = StringIO()
    # Drawn aside, because rich fills lines up with blanks, which a terminal would wrap and a pipe does not want.
    console = Console(
        file=drawn,
        width=_UNLIMITED,
        force_terminal=out.isatty(),
        color_system="auto" if out.isatty() else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for part in _parts(document, write, width):
        console.print(part)
    out.writelines(f"{_TRAILING.sub(_without_blanks, line)}\n" for line in drawn.getvalue().splitlines())


def _without_blanks(trailing: re.Match[str]) -> str:
    return "\x1b[0m" if "\x1b" in trailing[0] else ""


def _width(out: TextIO) -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) < 6 and int(columns):
        return int(columns)
    try:
        return (out.isatty() and os.get_terminal_size(out.fileno()).columns) or _PIPE_WIDTH
    except OSError:
        return _PIPE_WIDTH


def _parts(document: Document, write: Formatter, width: int) -> Iterator[RenderableType]:
    yield Text(write(document.title, Unit.TEXT), "bold")
    if document.verdict:
        yield Text(
            _wrapped(write(document.verdict, Unit.TEXT), width), "bold red" if document.alarming else "bold green"
        )
    for section in filter(None, document.sections):
        yield ""
        yield Text(write(section.title, Unit.TEXT), "bold cyan")
        for part in _section(section, write, width - _INDENT):
            yield part if part == "" else Padding(part, (0, 0, 0, _INDENT), expand=False)


def _section(section: Section, write: Formatter, width: int) -> Iterator[RenderableType]:
    if section.facts:
        yield from _facts(section.facts, write, width)
    blank = bool(section.facts)
    for grid in filter(lambda one: one.rows, section.grids):
        if blank:
            yield ""
        if grid.title:
            yield Text(_wrapped(write(grid.title, Unit.TEXT), width), "italic")
        yield _grid(grid.for_people(), write, width)
        blank = True
    if blank and section.sentences:
        yield ""
    for sentence in section.sentences:
        yield Text(_wrapped(write(sentence, Unit.TEXT), width))


def _facts(facts: Sequence[Fact], write: Formatter, width: int) -> Iterator[RenderableType]:
    """Draw label and value side by side; a label that leaves too little room for values has its own below it."""
    labels = [write(fact.label, Unit.TEXT) for fact in facts]
    values = [write(fact.value, fact.unit) for fact in facts]
    most = max(width // 2, width - 2 - max(map(cell_len, values)))
    column = max((cell_len(label) for label in labels if cell_len(label) <= most), default=0)
    for label, value in zip(labels, values, strict=True):
        fits = cell_len(label) <= column
        if not fits:
            yield Text(_wrapped(label, width))
        row = Table.grid(Column(width=column, no_wrap=True), Column(no_wrap=True), padding=(0, 2))
        row.add_row(Text(label if fits else ""), Text(_wrapped(value, width - column - 2)))
        yield row


def _grid(grid: Grid, write: Formatter, width: int) -> Table:
    labels = [write(field.label, Unit.TEXT) for field in grid.fields]
    cells = [[write(v, f.unit) for v, f in zip(row, grid.fields, strict=True)] for row in grid.rows]
    text = [at for at, field in enumerate(grid.fields) if field.unit is Unit.TEXT]
    widths = _widths(labels, cells, text, width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="")
    for at, label in enumerate(labels):
        heading = Text("\n".join(textwrap.wrap(label, max(1, widths[at]))), "bold")
        table.add_column(heading, justify="left" if at in text else "right", vertical="bottom", no_wrap=True)
    for row in cells:
        fitted = (_fitted(cell, widths[at], grid.fields[at]) if at in text else cell for at, cell in enumerate(row))
        table.add_row(*map(Text, fitted))
    return table


def _widths(labels: Sequence[str], cells: Sequence[Sequence[str]], text: Sequence[int], width: int) -> list[int]:
    """Return the width of each column: numbers keep theirs, headings break between words, names share what is left."""
    data = [max(cell_len(row[at]) for row in cells) for at in range(len(labels))]
    natural = [max(size, cell_len(label)) for size, label in zip(data, labels, strict=True)]
    room = width - _GAP * (len(labels) - 1)
    if room < sum(size if at not in text else min(size, _LEAST_TEXT) for at, size in enumerate(natural)):
        natural = [max(size, _longest_word(label)) for size, label in zip(data, labels, strict=True)]
    room -= sum(size for at, size in enumerate(natural) if at not in text)
    limits = _share(room, {at: natural[at] for at in text})
    return [limits.get(at, size) for at, size in enumerate(natural)]


def _share(room: int, wanted: dict[int, int]) -> dict[int, int]:
    """Give each text column what it wants, or an even part of what is left, but some in any case."""
    limits: dict[int, int] = {}
    for position, (at, need) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        limits[at] = min(need, max(_LEAST_TEXT, room // (len(wanted) - position)))
        room -= limits[at]
    return limits


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _wrapped(text: str, width: int) -> str:
    """Break text between words; one that is longer than a line, such as a path, stays whole to be copied."""
    return "\n".join(textwrap.wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False))


def _fitted(text: str, width: int, field: Field) -> str:
    """Shorten a text to a number of terminal columns, of which some characters take two."""
    fitted = text
    for length in range(min(len(text), width), 4, -1):
        if cell_len(fitted) <= width:
            break
        fitted = f"{text[: length - 1]}…" if field.prose else shorten(text, length)
    return fitted
