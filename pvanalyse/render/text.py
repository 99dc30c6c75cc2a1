"""Documents for a terminal, and for the pipe behind it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import StringIO
from typing import TextIO

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pvanalyse.render.document import Document, Fact, Formatter, Grid, Section, Unit, shorten

_PIPE_WIDTH = 120
_GAP = 3  # between columns
_LEFT = (Unit.TEXT,)
_INDENT = (0, 0, 0, 2)


def render_text(document: Document, out: TextIO, write: Formatter) -> None:
    """Write a document for reading.

    On a terminal it takes the terminal's width and colour (not with ``NO_COLOR``, https://no-color.org); elsewhere it
    is plain and 120 columns wide, or as wide as ``COLUMNS`` says.
    """
    if out.isatty():
        _print(document, Console(file=out, highlight=False, emoji=False, markup=False), write)
        return
    width = int(os.environ.get("COLUMNS", "") or _PIPE_WIDTH)
    plain = StringIO()
    _print(document, Console(file=plain, width=width, highlight=False, emoji=False, markup=False), write)
    out.writelines(f"{line.rstrip()}\n" for line in plain.getvalue().splitlines())


def _print(document: Document, console: Console, write: Formatter) -> None:
    console.print(Text(write(document.title, Unit.TEXT), style="bold"))
    if document.verdict:
        style = "bold red" if document.alarming else "bold green"
        console.print(Text(write(document.verdict, Unit.TEXT), style=style))
    for section in filter(None, document.sections):
        console.print()
        console.print(Text(write(section.title, Unit.TEXT), style="bold cyan"))
        _print_section(console, section, write)


def _print_section(console: Console, section: Section, write: Formatter) -> None:
    if section.facts:
        console.print(Padding(_facts(section.facts, write), _INDENT, expand=False))
    shown = [grid for grid in section.grids if grid.rows]
    for at, grid in enumerate(shown):
        if grid.title and (at or section.facts):
            console.print()
        if grid.title:
            console.print(Padding(Text(grid.title, style="italic"), _INDENT, expand=False))
        console.print(Padding(_grid(grid, write, console.width - 2), _INDENT, expand=False))
    for sentence in section.sentences:
        console.print(Padding(Text(write(sentence, Unit.TEXT)), _INDENT, expand=False))


def _facts(facts: Sequence[Fact], write: Formatter) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        table.add_row(Text(write(fact.label, Unit.TEXT), style="dim"), Text(write(fact.value, fact.unit)))
    return table


def _grid(grid: Grid, write: Formatter, width: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    cells = [[write(v, f.unit) for v, f in zip(row, grid.fields, strict=True)] for row in grid.rows]
    # Numbers keep their width; what is left is for the texts, of which the long ones give way first.
    text_columns = [at for at, f in enumerate(grid.fields) if f.unit in _LEFT]
    natural = [max([len(f.label), *(len(row[at]) for row in cells)]) for at, f in enumerate(grid.fields)]
    room = width - sum(natural[at] for at in range(len(natural)) if at not in text_columns) - _GAP * (len(natural) - 1)
    limits = _share(room, {at: natural[at] for at in text_columns})
    for at, grid_field in enumerate(grid.fields):
        left = at in text_columns
        table.add_column(grid_field.label, justify="left" if left else "right", no_wrap=True, header_style="bold")
    for row in cells:
        table.add_row(*(Text(shorten(cell, limits[at]) if at in limits else cell) for at, cell in enumerate(row)))
    return table


def _share(room: int, wanted: dict[int, int]) -> dict[int, int]:
    """Give each text column what it wants, or an even part of what is left; never less than 12."""
    limits: dict[int, int] = {}
    for position, (at, need) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        limits[at] = min(need, max(12, room // (len(wanted) - position)))
        room -= limits[at]
    return limits
