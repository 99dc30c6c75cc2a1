"""Reports held against limits, for people and programs: the verdict first, then the checks, then why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

from pvanalyse.analysis.checks import Check, CheckResult, ReportCheck, Why
from pvanalyse.analysis.metrics import Number
from pvanalyse.analysis.rules import Limit, Rule, importance
from pvanalyse.names import shorten
from pvanalyse.render.check_words import (
    WORDS,
    amount,
    change_text,
    changed_by,
    growth_text,
    limit_text,
    report_verdict,
    verdict,
)
from pvanalyse.render.document import Document, Field, Formatter, Grid, Section, Unit, Value, formatter
from pvanalyse.render.html import render_html
from pvanalyse.render.markdown import render_markdown
from pvanalyse.render.metrics import unit_of
from pvanalyse.render.parts import records
from pvanalyse.render.text import render_text
from pvanalyse.units import ByteUnits, format_fraction

MARKDOWN_CHARACTERS = 65_536
"""The longest comment that GitHub takes."""

_ORDER = {status: position for position, status in enumerate(WORDS)}
_OMITTED = "JSON has them all."
_NUMBER = Unit.COUNT  # of amounts in several units: such a column is aligned to the right, and never cut


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a result is shown, None for all.

    Attributes
    ----------
    contributors, whys, checks
        Rows of each explanation; explanations and checks of each report.
    reports
        Reports of which more than a line is shown, those that failed first.
    name
        Characters of a name.
    layers
        Whether the layer is shown of a variable whose name begins with it, too.
    """

    contributors: int | None = 10
    whys: int | None = 6
    checks: int | None = None
    reports: int | None = None
    name: int | None = None
    layers: bool = False


_LESS_AND_LESS = (
    Detail(20, 12, None, 100, 400, layers=True),
    Detail(10, 6, 200, 100, 200, layers=True),
    Detail(5, 3, 60, 50, 200),
    Detail(3, 1, 20, 20, 120),
    Detail(1, 1, 5, 10, 80),
    Detail(0, 0, 1, 1, 80),
)


def check_document(result: CheckResult, units: ByteUnits = "binary", detail: Detail | None = None) -> Document:
    """Return a result as a document.

    Parameters
    ----------
    result
        Of one report or of many.
    units
        Of sizes for people.
    detail
        How much people are shown; programs get all.
    """
    return replace(_for_people(result, units, detail or Detail()), data=check_data(result), grid=_exact_grid(result))


def full_text(result: CheckResult, units: ByteUnits = "binary") -> str:
    """Return a result as the command prints it into a pipe."""
    out = StringIO()
    render_text(_for_people(result, units, Detail()), out, formatter(units))
    return out.getvalue()


def markdown_text(result: CheckResult, units: ByteUnits = "binary", most: int = MARKDOWN_CHARACTERS) -> str:
    """Return a result as Markdown of at most so many characters, the most important first and less of what is not."""
    text = ""
    for detail in _LESS_AND_LESS:
        out = StringIO()
        render_markdown(_for_people(result, units, detail), out, formatter(units))
        text = out.getvalue()
        if len(text) <= most:
            return text
    cut = "\n\n- This was too long to be shown in full.\n"
    return text[: most - len(cut)].rpartition("\n")[0] + cut


# ----------------------------------------------------------------------------------------------------------- for people
def _for_people(result: CheckResult, units: ByteUnits, detail: Detail) -> Document:
    one = result.reports[0].report if len(result.reports) == 1 else f"{len(result.reports)} reports"
    return Document(
        title=_short(one, detail),
        sections=list(_sections(result, formatter(units), detail)),
        data=None,
        verdict=verdict(result, units),
        alarming=not result.passed,
    )


def _sections(result: CheckResult, write: Formatter, detail: Detail) -> Iterator[Section]:
    alone = len(result.reports) == 1
    if not alone:
        yield _overview(result, write, detail)
    ordered = sorted(result.reports, key=lambda one: one.exit_code == 0)
    for report in ordered[: detail.reports]:
        title = "" if alone else f"{_short(report.report, detail)}: "
        yield _checks(report, title, write, detail)
        yield from _explanations(report, title, write, detail)
        yield _differences(report, title, write, detail)
        yield Section(f"{title}Notes", sentences=report.notes)


def _overview(result: CheckResult, write: Formatter, detail: Detail) -> Section:
    fields = [Field("Report", "report"), Field("Verdict", "verdict", prose=True)]
    ordered = sorted(result.reports, key=lambda one: one.exit_code == 0)
    most = None if detail.reports is None else 10 * detail.reports
    rows = [(_short(one.report, detail), _short(report_verdict(one, write), detail)) for one in ordered[:most]]
    return Section("Reports", grids=[Grid("", fields, rows)], sentences=_omitted(len(ordered), len(rows), "reports"))


def _checks(report: ReportCheck, title: str, write: Formatter, detail: Detail) -> Section:
    fields = [
        Field("Metric", "metric"),
        Field("Value", "value", _NUMBER),
        Field("Limit", "limit", _NUMBER),
        Field("Baseline", "baseline", _NUMBER),
        Field("Change", "change", _NUMBER),
        Field("Verdict", "status"),
    ]
    ordered = sorted(report.checks, key=lambda check: (_ORDER[check.status], importance(check.metric)))
    rows = [_check_row(check, write, detail) for check in ordered[: detail.checks]]
    against = [f"Compared with {report.baseline}.", growth_text(report.checks, write)] if report.baseline else []
    problem = [report.problem] if report.problem else []
    omitted = _omitted(len(ordered), len(rows), "checks")
    return Section(
        f"{title}Checks", grids=[Grid("", fields, rows)], sentences=[*problem, *filter(None, against), *omitted]
    )


def _check_row(check: Check, write: Formatter, detail: Detail) -> tuple[Value, ...]:
    unit = unit_of(check.metric)
    return (
        _short(check.metric, detail),
        amount(check.value, unit, write),
        limit_text(check, write),
        amount(check.baseline, unit, write),
        change_text(check, write),
        WORDS[check.status],
    )


def _explanations(report: ReportCheck, title: str, write: Formatter, detail: Detail) -> Iterator[Section]:
    """Yield a section for each explanation that says something else than those before it."""
    distinct: dict[tuple[object, ...], Why] = {}
    alike: dict[str, list[str]] = {}
    for why in report.whys:
        names = tuple(sorted(zip(why.rows["category"], why.rows["variable"], strict=True)))
        first = distinct.setdefault((why.baseline is None, *names), why)
        if first is not why:
            alike.setdefault(first.metric, []).append(f"{why.metric} ({_whole(why, write)})")
    shown = list(distinct.values())
    for why in shown[: detail.whys]:
        yield _explanation(why, title, alike.get(why.metric, []), write, detail)
    if detail.whys is not None and len(shown) > detail.whys:
        others = ", ".join(_short(why.metric, detail) for why in shown[detail.whys :][:20])
        yield Section(f"{title}Why, for other metrics", sentences=[f"Explained too: {others}; {_OMITTED}"])


def _explanation(why: Why, title: str, alike: Sequence[str], write: Formatter, detail: Detail) -> Section:
    unit, compared = unit_of(why.metric), why.baseline is not None
    fields = [
        Field("Change" if compared else "Value", "amount", _NUMBER),
        Field("From", "before", _NUMBER),
        Field("To", "after", _NUMBER),
        Field("Category", "category"),
        Field("Variable", "variable"),
        Field("Layer", "layer"),
        Field("Source line", "location"),
    ]
    found = records(why.rows)
    rows = [
        (
            changed_by(row["change"], None, unit, write) if compared else write(row["value"], unit),
            amount(row.get("before"), unit, write),
            amount(row.get("after"), unit, write),
            _short(row["category"] or row["operation"], detail),
            _short(row["variable"], detail),
            ""
            if row["variable"].startswith(f"{row['layer']}/") and not detail.layers
            else _short(row["layer"], detail),
            _short(row["location"], detail),
        )
        for row in found[: detail.contributors]
    ]
    sentences = [f"{_these(len(found))} {format_fraction(why.explained / why.whole)} of it."] if why.whole else []
    sentences += _omitted(len(found), len(rows), "rows")
    if alike:
        sentences.append(f"The same explains {', '.join(_short(one, detail) for one in alike[:20])}.")
    return Section(f"{title}Why {why.metric} {_whole(why, write)}", grids=[Grid("", fields, rows)], sentences=sentences)


def _these(rows: int) -> str:
    return "This row is" if rows == 1 else f"These {rows:,} rows are"


def _whole(why: Why, write: Formatter) -> str:
    unit = unit_of(why.metric)
    if why.baseline is None:
        return f"is {write(why.value, unit)}"
    return changed_by(why.whole, why.baseline, unit, write)


def _differences(report: ReportCheck, title: str, write: Formatter, detail: Detail) -> Section:
    fields = [
        Field("Metric", "metric"),
        Field("Value", "value", _NUMBER),
        Field("Baseline", "baseline", _NUMBER),
        Field("Change", "change", _NUMBER),
    ]
    rows = []
    for one in report.differences[: detail.checks]:
        unit = unit_of(one.metric)
        change = "new" if one.baseline is None else "vanished" if one.value is None else ""
        if one.value is not None and one.baseline is not None:
            change = changed_by(one.value - one.baseline, one.baseline, unit, write)
        name = _short(one.metric, detail)
        rows.append((name, amount(one.value, unit, write), amount(one.baseline, unit, write), change))
    omitted = _omitted(len(report.differences), len(rows), "metrics")
    return Section(f"{title}Different, and not limited", grids=[Grid("", fields, rows)], sentences=omitted)


def _omitted(number: int, shown: int, what: str) -> list[str]:
    return [f"The first {shown:,} of {number:,} {what}; {_OMITTED}"] if shown < number else []


def _short(text: str, detail: Detail) -> str:
    return text if detail.name is None else shorten(text, detail.name)


# --------------------------------------------------------------------------------------------------------- for programs
def check_data(result: CheckResult) -> dict[str, Any]:
    """Return a result as plain values: exact numbers, sizes in bytes."""
    return {
        "passed": result.passed,
        "exit_code": result.exit_code,
        "verdict": verdict(result, "bytes"),
        "reports": [_report_data(one) for one in result.reports],
    }


def _report_data(report: ReportCheck) -> dict[str, Any]:
    return {
        "report": report.report,
        "engine": report.engine,
        "baseline": report.baseline,
        "passed": report.exit_code == 0,
        "exit_code": report.exit_code,
        "problem": report.problem,
        "checks": [_check_data(check) for check in report.checks],
        "why": [_why_data(why) for why in report.whys],
        "differences": [
            {"metric": one.metric, "value": one.value, "baseline": one.baseline} for one in report.differences
        ],
        "notes": list(report.notes),
    }


def _check_data(check: Check) -> dict[str, Any]:
    return {
        "metric": check.metric,
        "status": check.status.value,
        "unit": unit_of(check.metric).value,
        "value": check.value,
        "bound": check.bound,
        "baseline": check.baseline,
        "change": check.change,
        "rule": _rule_data(check.rule),
    }


def _rule_data(rule: Rule) -> dict[str, Any]:
    about: dict[str, Any] = {"pattern": rule.pattern, "written": rule.written, "where": rule.where}
    if isinstance(rule, Limit):
        return {"kind": "limit", **about, "sense": rule.sense.value, "limit": rule.value}
    share: Number | None = None if rule.share is None else float(rule.share)
    return {"kind": "max_increase", **about, "share": share, "amount": None if rule.share is not None else rule.amount}


def _why_data(why: Why) -> dict[str, Any]:
    return {
        "metric": why.metric,
        "value": why.value,
        "baseline": why.baseline,
        "explained": why.explained,
        "contributors": records(why.rows),
    }


def _exact_grid(result: CheckResult) -> Grid:
    names = ("report", "metric", "status", "value", "bound", "baseline", "change", "rule")
    rows = [
        (one.report, check.metric, check.status.value, check.value, check.bound, check.baseline, check.change,
         check.rule.written)
        for one in result.reports
        for check in one.checks
    ]  # fmt: skip
    return Grid("", [Field(name, name) for name in names], rows)


CheckResult.show_with(lambda result: render_html(_for_people(result, "binary", Detail())))
