"""Documents as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TextIO

from pvanalyse.render.document import Document, Formatter, Grid, Unit

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)  # GitHub makes links of bare addresses
_BLOCK = re.compile(r"([-+=]|\d+[.)])")  # opens a list or underlines a heading where a line begins with it


def render_markdown(document: Document, out: TextIO, write: Formatter) -> None:
    """Write a document as Markdown; nothing in a name is taken for markup."""

    def text(value: str) -> str:
        return escape(write(value, Unit.TEXT))

    out.write(f"# {text(document.title)}\n")
    if document.verdict:
        out.write(f"\n**{text(document.verdict).strip()}**\n")
    for section in filter(None, document.sections):
        out.write(f"\n## {text(section.title)}\n")
        if section.facts:
            rows = [[text(fact.label), escape(write(fact.value, fact.unit))] for fact in section.facts]
            _write_table(["", ""], ["---", "---"], rows, out)
        for grid in section.grids:
            if grid.rows:
                _write_grid(grid.for_people(), out, write)
        if section.sentences:
            out.write("\n" + "".join(f"- {_paragraph(text(sentence))}\n" for sentence in section.sentences))


def escape(text: str) -> str:
    """Escape everything within a line that Markdown would take for markup."""
    return _LINK.sub(r"\\\g<0>", _SPECIAL.sub(r"\\\g<0>", text))


def _paragraph(escaped: str) -> str:
    """Let escaped text begin a line without opening a list or a block of code there."""
    stripped = escaped.lstrip(" ")
    mark = _BLOCK.match(stripped)
    return stripped if mark is None else f"{mark[0][:-1]}\\{stripped[mark.end() - 1 :]}"


def _write_grid(grid: Grid, out: TextIO, write: Formatter) -> None:
    if grid.title:
        out.write(f"\n{_paragraph(escape(write(grid.title, Unit.TEXT)))}\n")
    head = [escape(write(field.label, Unit.TEXT)) for field in grid.fields]
    rules = ["---" if field.unit is Unit.TEXT else "---:" for field in grid.fields]
    rows = [[escape(write(v, f.unit)) for v, f in zip(row, grid.fields, strict=True)] for row in grid.rows]
    _write_table(head, rules, rows, out)


def _write_table(head: Sequence[str], rules: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO) -> None:
    out.write(f"\n| {' | '.join(head)} |\n|{'|'.join(rules)}|\n")
    out.writelines(f"| {' | '.join(row)} |\n" for row in rows)
