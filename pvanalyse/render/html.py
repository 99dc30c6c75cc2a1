"""Documents as an HTML fragment, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from pvanalyse.render.document import Document, Formatter, Grid, Section, Unit, formatter


def render_html(document: Document) -> str:
    """Return a document as an HTML fragment; every name is escaped."""
    write = formatter("binary")
    colour = "#b00020" if document.alarming else "#0a6b2d"
    parts = [f"<h3>{_text(document.title, write)}</h3>"]
    if document.verdict:
        parts.append(f'<p style="color:{colour};font-weight:bold">{_text(document.verdict, write)}</p>')
    for section in filter(None, document.sections):
        parts += _section(section, write)
    return f"<div>{''.join(parts)}</div>"


def _section(section: Section, write: Formatter) -> Iterator[str]:
    yield f"<details open><summary><b>{_text(section.title, write)}</b></summary>"
    if section.facts:
        rows = ((_text(fact.label, write), escape(write(fact.value, fact.unit))) for fact in section.facts)
        yield "<table>" + "".join(f"<tr><th>{label}</th><td>{value}</td></tr>" for label, value in rows) + "</table>"
    yield from (_grid(grid.for_people(), write) for grid in section.grids if grid.rows)
    yield from (f"<p>{_text(sentence, write)}</p>" for sentence in section.sentences)
    yield "</details>"


def _grid(grid: Grid, write: Formatter) -> str:
    head = "".join(f"<th>{_text(field.label, write)}</th>" for field in grid.fields)
    body = "".join(
        "<tr>" + "".join(_cell(write(v, f.unit), f.unit) for v, f in zip(row, grid.fields, strict=True)) + "</tr>"
        for row in grid.rows
    )
    caption = f"<caption>{_text(grid.title, write)}</caption>" if grid.title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, unit: Unit) -> str:
    align = "left" if unit is Unit.TEXT else "right"
    return f'<td style="text-align:{align}">{escape(text)}</td>'


def _text(text: str, write: Formatter) -> str:
    return escape(write(text, Unit.TEXT))
