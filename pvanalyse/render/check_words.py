"""What came of checks, in words and sentences; the renderers put them where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pvanalyse.analysis.checks import Check, CheckResult, ReportCheck, Status, Why
from pvanalyse.analysis.metrics import Number
from pvanalyse.analysis.rules import Increase, Limit, captured_by, importance
from pvanalyse.render.document import Formatter, Unit, formatter
from pvanalyse.render.metrics import unit_of
from pvanalyse.render.parts import records
from pvanalyse.units import ByteUnits, counted, format_fraction

WORDS = {
    Status.FAILED: "FAILED",
    Status.NOT_CAPTURED: "NOT CAPTURED",
    Status.ACCEPTED: "accepted",
    Status.NEW: "new",
    Status.VANISHED: "vanished",
    Status.IMPROVED: "improved",
    Status.PASSED: "passed",
}
"""The outcomes for people, those that want most attention first."""

_BY_CODE = {0: "PASSED", 1: "FAILED", 3: "CANNOT BE CHECKED", 4: "NOT CAPTURED"}


def verdict(result: CheckResult, units: ByteUnits = "binary") -> str:
    """Return the outcome in a sentence: what decided it, by how much, and whose line it is."""
    words = _BY_CODE[result.exit_code]
    worst = [one for one in result.reports if one.exit_code == result.exit_code]
    if result.exit_code == 0:
        return f"{words}: {_passed(result)}."
    first = worst[0]
    decisive = _decisive(first, formatter(units))
    if len(result.reports) == 1:
        return f"{words}: {decisive}"
    name = "" if first.problem else f"{first.report}: "
    return f"{words}: {len(worst)} of {len(result.reports)} reports; {name}{decisive}"


def _passed(result: CheckResult) -> str:
    parts = [counted(len(result.checks), "check")]
    if len(result.reports) > 1:
        parts[0] += f" of {len(result.reports)} reports"
    for status in (Status.IMPROVED, Status.NEW, Status.VANISHED, Status.ACCEPTED):
        number = sum(check.status is status for check in result.checks)
        if number:
            parts.append(f"{number:,} {WORDS[status]}")
    return ", ".join(parts)


def report_verdict(report: ReportCheck, write: Formatter) -> str:
    """Return the outcome of one report of many in a sentence."""
    if report.exit_code == 0:
        return f"passed {counted(len(report.checks), 'check')}"
    return f"{_BY_CODE[report.exit_code]}: {_decisive(report, write)}"


def _decisive(report: ReportCheck, write: Formatter) -> str:
    if report.problem:
        return report.problem
    missing = report.having(Status.NOT_CAPTURED)
    if missing:
        more = f" And {len(missing) - 1:,} more." if len(missing) > 1 else ""
        failed = len(report.having(Status.FAILED))
        over = f" {counted(failed, 'check')} failed besides." if failed else ""
        return f"{not_captured(missing[0])}.{more}{over}"
    failures = sorted(report.having(Status.FAILED), key=lambda check: importance(check.metric))
    of = f"{len(failures):,} of {counted(len(report.checks), 'check')}"
    why = next((why for why in report.whys if why.metric == failures[0].metric), None)
    causes = leading(why) if why else []
    mostly = f", mostly {contributor(causes[0])}" if causes else ""
    return f"{of}; {sentence(failures[0], write)}{mostly}."


def sentence(check: Check, write: Formatter) -> str:
    """Return a check's outcome in a sentence without its full stop."""
    if check.status is Status.NOT_CAPTURED:
        return not_captured(check)
    value, bound = _told_apart(check, write)
    change = ""
    if check.change is not None:
        change = f" ({', '.join(_grown(check.change, check.baseline, unit_of(check.metric), write))})"
    if check.status is not Status.FAILED:
        return f"{check.metric} is {value or 'gone'}{change}, {WORDS[check.status]} ({limit_text(check, write)})"
    if isinstance(check.rule, Limit) and check.rule.sense.side == ">":
        return f"{check.metric} is {value}{change}, under its limit of {bound}"
    if isinstance(check.rule, Limit) and check.rule.sense.side == "=":
        return f"{check.metric} is {value}{change}, not {bound}"
    return f"{check.metric} is {value}{change}, over its limit of {bound}"


def not_captured(check: Check) -> str:
    """Return what is missing of a check that cannot be judged."""
    if check.value is not None:
        return f"{check.metric} is limited, but not in the baseline"
    how = captured_by(check.metric)
    return f"{check.metric} is limited, but not captured{f'; to capture it: {how}' if how else ''}"


def limit_text(check: Check, write: Formatter) -> str:
    """Return what a check's metric was held against; nothing when there is no baseline to know it from."""
    bound = _told_apart(check, write)[1]
    sense = check.rule.sense.value if isinstance(check.rule, Limit) else "<="
    return f"{sense} {bound}" if bound else ""


def growth_text(checks: Iterable[Check], write: Formatter) -> str:
    """Return what metrics may grow by, in a sentence; nothing when that is not limited."""
    rules = {check.rule: check.metric for check in checks if isinstance(check.rule, Increase)}
    found = []
    for rule, metric in rules.items():
        amount = f"{float(100 * rule.share):g} %" if rule.share is not None else write(rule.amount, unit_of(metric))
        found.append(f"{rule.pattern} by {amount}" if rule.pattern else f"memory by {amount}")
    return f"What may grow over the baseline: {', '.join(found)}." if found else ""


def _told_apart(check: Check, write: Formatter) -> tuple[str, str]:
    """Return value and bound; with all their digits where they would look the same."""
    unit = unit_of(check.metric)
    if check.value is None or check.bound is None or write(check.value, unit) != write(check.bound, unit):
        return amount(check.value, unit, write), amount(check.bound, unit, write)
    if check.value == check.bound:
        return write(check.value, unit), write(check.bound, unit)
    suffix = " B" if unit is Unit.BYTES else ""
    return f"{check.value:,}{suffix}", f"{check.bound:,}{suffix}"


def amount(value: Number | None, unit: Unit, write: Formatter) -> str:
    """Return a number as people read it, nothing for none."""
    return "" if value is None else write(value, unit)


def change_text(check: Check, write: Formatter) -> str:
    """Return a check's change over the baseline, nothing when it is not known."""
    return "" if check.change is None else changed_by(check.change, check.baseline, unit_of(check.metric), write)


def changed_by(change: Number, baseline: Number | None, unit: Unit, write: Formatter) -> str:
    """Return a change with its sign, and in brackets what it is of the baseline."""
    amount, *share = _grown(change, baseline, unit, write)
    return f"{amount} ({share[0]})" if share else amount


def _grown(change: Number, baseline: Number | None, unit: Unit, write: Formatter) -> list[str]:
    """Return a change with its sign and, where that says something, as a share of the baseline."""
    if not change:
        return ["0"]
    if unit is Unit.FRACTION:
        return [f"{_signed(format_fraction(change)).removesuffix('%')}points"]
    return [_signed(write(change, unit)), *([_signed(format_fraction(change / abs(baseline)))] if baseline else [])]


def _signed(text: str) -> str:
    return f"+{text}" if text[0].isdigit() else text


def leading(why: Why) -> list[dict[str, Any]]:
    """Return the contributors that go the way of what is explained, the largest first, without those against it."""
    column = "value" if why.baseline is None else "change"
    return [row for row in records(why.rows) if row[column] * why.whole > 0]


def contributor(row: Mapping[str, Any]) -> str:
    """Return a row of an explanation in words."""
    if not row["variable"]:
        return str(row["category"] or row["operation"])
    where = [f"layer {row['layer']}"] if row["layer"] else []
    where += [row["location"]] if row["location"] else []
    return f"{row['variable']} ({', '.join(where)})" if where else str(row["variable"])
