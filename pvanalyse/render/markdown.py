"""Documents as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from typing import TextIO

from pvanalyse.render.document import Document, Formatter, Grid, Unit

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!])")


def render_markdown(document: Document, out: TextIO, write: Formatter) -> None:
    """Write a document as Markdown; nothing in a name is taken for markup."""
    out.write(f"# {escape(write(document.title, Unit.TEXT))}\n")
    if document.verdict:
        out.write(f"\n**{escape(write(document.verdict, Unit.TEXT))}**\n")
    for section in filter(None, document.sections):
        out.write(f"\n## {escape(section.title)}\n")
        if section.facts:
            out.write("\n| | |\n|---|---|\n")
            out.writelines(
                f"| {escape(fact.label)} | {escape(write(fact.value, fact.unit))} |\n" for fact in section.facts
            )
        for grid in section.grids:
            if grid.rows:
                _write_grid(grid, out, write)
        for sentence in section.sentences:
            out.write(f"\n- {escape(write(sentence, Unit.TEXT))}\n")


def escape(text: str) -> str:
    """Escape everything that Markdown would take for markup."""
    return _SPECIAL.sub(r"\\\1", text)


def _write_grid(grid: Grid, out: TextIO, write: Formatter) -> None:
    if grid.title:
        out.write(f"\n{escape(grid.title)}\n")
    out.write("\n| " + " | ".join(escape(field.label) for field in grid.fields) + " |\n")
    out.write("|" + "|".join("---" if field.unit is Unit.TEXT else "---:" for field in grid.fields) + "|\n")
    for row in grid.rows:
        cells = (escape(write(value, field.unit)) for value, field in zip(row, grid.fields, strict=True))
        out.write("| " + " | ".join(cells) + " |\n")
