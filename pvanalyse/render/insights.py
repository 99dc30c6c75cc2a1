"""Insights, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pvanalyse.analysis.insights import SEVERITIES, Evidence, Insight, Insights, NotEvaluated
from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, Value, formatter
from pvanalyse.render.html import render_html
from pvanalyse.units import ByteUnits

_UNITS = {"tile": Unit.COUNT, "step": Unit.COUNT}
_COUNTED = {
    "critical": ("critical finding", "critical findings"),
    "warning": ("warning", "warnings"),
    "advice": ("piece of advice", "pieces of advice"),
    "info": ("remark", "remarks"),
}


def insights_document(title: str, insights: Insights, byte_units: ByteUnits = "binary") -> Document:
    """Return insights as a document.

    Parameters
    ----------
    title
        The report.
    insights
        What to show.
    byte_units
        Units for the sizes in sentences for people.
    """
    return Document(
        title=title,
        verdict=_verdict(insights, byte_units),
        alarming=any(one.severity == "critical" for one in insights),
        sections=list(_sections(insights, byte_units)),
        data={"report": title, **_data(insights)},
        grid=_grid(insights),
    )


def _data(insights: Insights) -> dict[str, Any]:
    data = asdict(insights)
    for one in data["found"]:
        del one["template"]  # the title says it
    return {"insights": data.pop("found"), **data}


def _verdict(insights: Insights, byte_units: ByteUnits) -> str:
    if not insights:
        return "Nothing found." if insights.nothing_found or insights.milder else ""
    severities = [one.severity for one in insights]
    numbers = {severity: severities.count(severity) for severity in reversed(SEVERITIES)}
    counts = ", ".join(f"{n} {_COUNTED[severity][n > 1]}" for severity, n in numbers.items() if n)
    first = insights[0]
    return f"{_sentence(first, byte_units)} ({counts}.)" if first.severity in ("critical", "warning") else f"{counts}."


def _sentence(one: Insight, byte_units: ByteUnits) -> str:
    write = formatter(byte_units)
    return one.written(lambda evidence: write(evidence.value, _unit(evidence)))


def _unit(evidence: Evidence) -> Unit:
    return _UNITS.get(evidence.unit) or Unit(evidence.unit)


def _sections(insights: Insights, byte_units: ByteUnits) -> Iterator[Section]:
    for one in insights:
        yield Section(f"{one.severity.capitalize()}: {one.rule}", list(_facts(one, byte_units)))
    gone = [Fact(one.rule, f"{one.needs}: {one.how}") for one in insights.not_evaluated]
    yield Section("Not evaluated, and what that needs", gone)
    yield Section("Evaluated, with nothing to say", sentences=_listed(insights.nothing_found))
    yield Section("Left out, because milder", sentences=_listed(insights.milder))


def _listed(rules: Sequence[str]) -> list[str]:
    return [", ".join(rules)] if rules else []


def _facts(one: Insight, byte_units: ByteUnits) -> Iterator[Fact]:
    yield Fact("Finding", _sentence(one, byte_units))
    for evidence in one.evidence:
        yield Fact(_label(evidence.name), evidence.value, _unit(evidence))
    if one.tiles:
        yield Fact("Tiles", ", ".join(map(str, one.tiles)))  # as --tiles takes them
    for at, name in enumerate(one.variables):
        yield Fact("" if at else "Variables", name)
    if one.advice:
        yield Fact("Advice", one.advice)
    for at, option in enumerate(one.options):
        yield Fact("" if at else "Options", option)
    if one.saving_bytes is not None:
        yield Fact("Could save, all replicas", one.saving_bytes, Unit.BYTES)


def _label(name: str) -> str:
    if name.lower() != name:  # a storage category
        return name
    words = name.removesuffix("_bytes").replace("_", " ").replace("ipu", "IPU")
    words = f"number of{words.removeprefix('num')}" if words.startswith("num ") else words
    if words.endswith("fraction"):
        words = f"{words.removesuffix('fraction').strip()}, share".removeprefix(", ")
    return words[:1].upper() + words[1:]


def _grid(insights: Insights) -> Grid:
    """Return everything as one table, a row per value."""
    rows = [row for one in insights for row in _rows(one)]
    rows += [row for one in insights.not_evaluated for row in _not_evaluated_rows(one)]
    names = ("severity", "rule", "item", "value", "unit")
    return Grid("", [Field(name.capitalize(), name) for name in names], rows)


def _rows(one: Insight) -> Iterator[tuple[Value, ...]]:
    values: list[tuple[str, Value, str]] = [("title", one.title, "")]
    values += [(evidence.name, evidence.value, evidence.unit) for evidence in one.evidence]
    values += [("saving_bytes", one.saving_bytes, "bytes")] if one.saving_bytes is not None else []
    values += [("advice", one.advice, "")] if one.advice else []
    values += [("option", option, "") for option in one.options]
    values += [("tile", tile, "tile") for tile in one.tiles]
    values += [("variable", name, "") for name in one.variables]
    for value in values:
        yield one.severity, one.rule, *value


def _not_evaluated_rows(one: NotEvaluated) -> Iterator[tuple[Value, ...]]:
    yield "not evaluated", one.rule, "needs", one.needs, ""
    yield "not evaluated", one.rule, "how", one.how, ""


Insights.show_with(lambda insights: render_html(insights_document("Insights", insights)))
