"""Documents for a terminal, and for the pipe behind it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len

from pvanalyse.names import shorten
from pvanalyse.render.document import Document, Fact, Field, Formatter, Grid, Section, Unit

_PIPE_WIDTH = 120
_LEAST_WIDTH = 40  # narrower than this, lines are longer than the terminal
_LEAST_TEXT = 12  # columns of a name, however little room there is
_INDENT = "  "

Line = tuple[str, str]
"""A line and its style."""


def render_text(document: Document, out: TextIO, write: Formatter) -> None:
    """Write a document for reading.

    On a terminal it takes the terminal's width and colour (not with ``NO_COLOR``, https://no-color.org); elsewhere it
    is plain and 120 columns wide, or as wide as ``COLUMNS`` says. Names are cut to fit, numbers never are.
    """
    if not out.isatty():
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() and int(columns) else _PIPE_WIDTH
        out.writelines(f"{line.rstrip()}\n" for line, _ in _lines(document, write, max(width, _LEAST_WIDTH)))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, highlight=False, emoji=False, markup=False)
    for line, style in _lines(document, write, max(console.width, _LEAST_WIDTH)):
        console.print(Text(line.rstrip(), style=style), soft_wrap=True)


def _lines(document: Document, write: Formatter, width: int) -> Iterator[Line]:
    yield write(document.title, Unit.TEXT), "bold"
    style = "bold red" if document.alarming else "bold green"
    yield from ((line, style) for line in _wrapped(write(document.verdict, Unit.TEXT), width, ""))
    for section in filter(None, document.sections):
        yield "", ""
        yield write(section.title, Unit.TEXT), "bold cyan"
        yield from _section(section, write, width)


def _section(section: Section, write: Formatter, width: int) -> Iterator[Line]:
    yield from _facts(section.facts, write, width)
    blank = bool(section.facts)
    for grid in filter(lambda one: one.rows, section.grids):
        if blank:
            yield "", ""
        yield from ((line, "italic") for line in _wrapped(write(grid.title, Unit.TEXT), width))
        yield from _grid(grid.for_people(), write, width - len(_INDENT))
        blank = True
    if blank and section.sentences:
        yield "", ""
    for sentence in section.sentences:
        yield from ((line, "") for line in _wrapped(write(sentence, Unit.TEXT), width))


def _facts(facts: Sequence[Fact], write: Formatter, width: int) -> Iterator[Line]:
    """Yield label and value side by side; a label that leaves too little room for values has its own below it."""
    labels = [write(fact.label, Unit.TEXT) for fact in facts]
    values = [write(fact.value, fact.unit) for fact in facts]
    room = width - 2 * len(_INDENT)
    most = max(room // 2, room - max(map(cell_len, values), default=0))
    column = max([cell_len(label) for label in labels if cell_len(label) <= most], default=0)
    hanging = " " * (column + 2 * len(_INDENT))
    for label, text in zip(labels, values, strict=True):
        value = _wrapped(text, width, hanging)
        if cell_len(label) > column:
            yield from ((line, "") for line in (*_wrapped(label, width), *value))
        else:
            first, *more = value or [hanging]
            yield f"{_INDENT}{_padded(label, column)}{first.removeprefix(_INDENT + ' ' * column)}", ""
            yield from ((line, "") for line in more)


def _grid(grid: Grid, write: Formatter, width: int) -> Iterator[Line]:
    labels = [write(field.label, Unit.TEXT) for field in grid.fields]
    cells = [[write(v, f.unit) for v, f in zip(row, grid.fields, strict=True)] for row in grid.rows]
    text = [at for at, field in enumerate(grid.fields) if field.unit is Unit.TEXT]
    widths, gap = _widths(labels, cells, text, width)

    def line(row: Sequence[str]) -> str:
        return _INDENT + (" " * gap).join(
            _padded(cell, widths[at], right=at not in text) for at, cell in enumerate(row)
        )

    heads = [textwrap.wrap(label, max(1, widths[at])) or [""] for at, label in enumerate(labels)]
    tallest = max(map(len, heads))
    for level in range(tallest):
        yield line([head[level - tallest] if level >= tallest - len(head) else "" for head in heads]), "bold"
    yield _INDENT + "─" * (sum(widths) + gap * (len(widths) - 1)), ""
    for row in cells:
        fitted = (_fitted(cell, widths[at], grid.fields[at]) if at in text else cell for at, cell in enumerate(row))
        yield line(list(fitted)), ""


def _widths(
    labels: Sequence[str], cells: Sequence[Sequence[str]], text: Sequence[int], width: int
) -> tuple[list[int], int]:
    """Return the width of each column and the gap between them.

    Numbers keep their width. When room is short, headings break between words, and names share what is left.
    """
    data = [max(cell_len(row[at]) for row in cells) for at in range(len(labels))]
    for gap, heads in ((3, [len(label) for label in labels]), (2, [_longest_word(label) for label in labels])):
        natural = [max(pair) for pair in zip(data, heads, strict=True)]
        room = width - gap * (len(labels) - 1) - sum(size for at, size in enumerate(natural) if at not in text)
        if room >= sum(natural[at] if at == 0 else min(natural[at], _LEAST_TEXT) for at in text):
            break
    limits = _share(room, {at: natural[at] for at in text})
    return [limits.get(at, size) for at, size in enumerate(natural)], gap


def _share(room: int, wanted: dict[int, int]) -> dict[int, int]:
    """Give each text column what it wants, or an even part of what is left, but some in any case."""
    limits: dict[int, int] = {}
    for position, (at, need) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        limits[at] = min(need, max(_LEAST_TEXT, room // (len(wanted) - position)))
        room -= limits[at]
    return limits


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _wrapped(text: str, width: int, indent: str = _INDENT) -> list[str]:
    """Break text between words; one that is longer than a line, such as a path, stays whole to be copied."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _padded(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _fitted(text: str, width: int, field: Field) -> str:
    """Shorten a text to a number of terminal columns, of which some characters take two."""
    fitted = text
    for length in range(min(len(text), width), 4, -1):
        if cell_len(fitted) <= width:
            break
        fitted = f"{text[: length - 1]}…" if field.prose else shorten(text, length)
    return fitted
