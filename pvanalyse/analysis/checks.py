"""What comes of holding a report's metrics against rules; see :mod:`pvanalyse.analysis.rules`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from pvanalyse.analysis.metrics import Metrics, Number
from pvanalyse.analysis.rules import (
    DEFAULT,
    AnyRule,
    Better,
    Increase,
    Limit,
    Rule,
    Rules,
    better,
    catalogue_order,
    family,
    finite,
    is_glob,
    most_specific,
)
from pvanalyse.analysis.shown import Shown

if TYPE_CHECKING:
    import pandas as pd


class Status(StrEnum):
    """What came of a check."""

    FAILED = "failed"
    NOT_CAPTURED = "not captured"
    ACCEPTED = "accepted"
    NEW = "new"
    VANISHED = "vanished"
    IMPROVED = "improved"
    PASSED = "passed"


@dataclass(frozen=True, slots=True)
class Check:
    """One metric held against one rule.

    Attributes
    ----------
    metric
        Its name; the rule's pattern when that is for metrics none of which was captured.
    status
        ``FAILED``: over the rule. ``NOT_CAPTURED``: it cannot be judged, which is a failure too. ``ACCEPTED``: it
        would have failed, but the baseline was replaced. ``NEW``: not in the baseline, so that growth cannot be judged.
        ``VANISHED``: in the baseline, and now nothing is left of it. ``IMPROVED``: better than the baseline.
    rule
        What it was held against.
    value, baseline
        Of the report and of the baseline, None where there is none.
    bound
        The value it may have at most (or at least), None when there is no baseline to know it from.
    change
        Value less baseline, None when that is not known; what a captured family of metrics lacks is 0.
    """

    metric: str
    status: Status
    rule: Rule
    value: Number | None = None
    baseline: Number | None = None
    bound: Number | None = None
    change: Number | None = None

    @property
    def ok(self) -> bool:
        """Whether the check lets the report pass."""
        return self.status not in (Status.FAILED, Status.NOT_CAPTURED)


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric that differs from the baseline and is held against nothing."""

    metric: str
    value: Number | None
    baseline: Number | None


@dataclass(frozen=True, slots=True)
class Why:
    """What a metric, or its growth, is made of.

    Attributes
    ----------
    metric
        Its name.
    value, baseline
        Of the report and of the baseline; without one, the rows are about the value itself.
    rows
        Columns category, layer, operation, variable, location and ``value`` or, with a baseline, ``before``, ``after``
        and ``change``; the largest first, those that explain most of it.
    explained
        The sum of ``value`` or ``change`` over these rows.
    """

    metric: str
    value: Number
    baseline: Number | None
    rows: pd.DataFrame
    explained: int

    @property
    def whole(self) -> Number:
        """What there is to explain."""
        return self.value if self.baseline is None else self.value - self.baseline


EXIT_FAILED, EXIT_UNREADABLE, EXIT_NOT_CAPTURED = 1, 3, 4
_WORST = (EXIT_UNREADABLE, EXIT_NOT_CAPTURED, EXIT_FAILED)


@dataclass(frozen=True, slots=True)
class ReportCheck:
    """One report held against its rules.

    Attributes
    ----------
    report
        Its directory as it was named.
    engine
        Its engine's name, or nothing.
    baseline
        What it was compared with, for people; nothing when it was not.
    checks
        In the order of the catalogue of metrics.
    whys
        What explains the failures, the most important first.
    differences
        What else differs from the baseline.
    problem
        Why nothing could be checked: a sentence, empty when all went well.
    notes
        Sentences for a person.
    """

    report: str
    engine: str = ""
    baseline: str = ""
    checks: tuple[Check, ...] = ()
    whys: tuple[Why, ...] = ()
    differences: tuple[Difference, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()

    def having(self, *statuses: Status) -> tuple[Check, ...]:
        """Return the checks with one of these outcomes."""
        return tuple(check for check in self.checks if check.status in statuses)

    @property
    def exit_code(self) -> int:
        """0, or what is wrong; see :attr:`CheckResult.exit_code`."""
        if self.problem:
            return EXIT_UNREADABLE
        if self.having(Status.NOT_CAPTURED):
            return EXIT_NOT_CAPTURED
        return EXIT_FAILED if self.having(Status.FAILED) else 0


@dataclass(frozen=True, slots=True)
class CheckResult(Shown):
    """All reports of one call.

    Attributes
    ----------
    reports
        In the order in which they were named.
    """

    reports: tuple[ReportCheck, ...]

    @property
    def exit_code(self) -> int:
        """0 when all passed, 1 when something is over its limit.

        Before that, 3 when a report could not be read and 4 when what is limited was not captured: then it is not
        known what else is over.
        """
        codes = {one.exit_code for one in self.reports}
        return next((code for code in _WORST if code in codes), 0)

    @property
    def passed(self) -> bool:
        """Whether everything passed."""
        return self.exit_code == 0

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of all reports."""
        return tuple(check for one in self.reports for check in one.checks)


# ----------------------------------------------------------------------------------------------------------- evaluation
def evaluate(metrics: Metrics, rules: Rules, baseline: Metrics | None = None) -> tuple[Check, ...]:
    """Hold a report's metrics against rules.

    Parameters
    ----------
    metrics
        Of the report.
    rules
        All of them; their increases are left out without a baseline.
    baseline
        Metrics to compare with.

    Returns
    -------
    tuple
        A check for each metric and rule that holds for it, in the order of the catalogue. A metric of a family such
        as ``memory.category.`` that is missing where others of its family are there counts as 0.
    """
    metrics, before = _finite(metrics), None if baseline is None else _finite(baseline)
    found = list(_limit_checks(metrics, rules.limits, before))
    if before is not None:
        found += _increase_checks(metrics, rules.increases, before)
    return tuple(sorted(found, key=lambda check: catalogue_order(check.metric)))


def differences(metrics: Metrics, baseline: Metrics, checks: Iterable[Check]) -> tuple[Difference, ...]:
    """Return the metrics that differ from the baseline and are in no check, in the order of the catalogue."""
    checked = {check.metric for check in checks}
    names = sorted({*metrics, *baseline} - checked, key=catalogue_order)
    pairs = (Difference(name, metrics.get(name), baseline.get(name)) for name in names)
    return tuple(pair for pair in pairs if pair.value != pair.baseline)


def accepted(checks: Iterable[Check], new: Iterable[Check]) -> tuple[Check, ...]:
    """Return checks as they are after their baseline was replaced.

    Parameters
    ----------
    checks
        Against the old baseline.
    new
        Against the new one.
    """
    wrong = {(check.metric, check.rule) for check in new if not check.ok}
    return tuple(
        check if check.ok or (check.metric, check.rule) in wrong else replace(check, status=Status.ACCEPTED)
        for check in checks
    )


def _limit_checks(metrics: Metrics, limits: Sequence[Limit], baseline: Metrics | None) -> Iterator[Check]:
    for side in dict.fromkeys(limit.sense.side for limit in limits):
        those = [limit for limit in limits if limit.sense.side == side]
        for name, limit in _pairs(those, {*metrics, *(baseline or {})}):
            value = _value(metrics, name)
            status = Status.NOT_CAPTURED
            if value is not None:
                status = Status.PASSED if limit.sense.holds(value, limit.value) else Status.FAILED
            change = _change(value, _value(baseline or {}, name))
            yield Check(name, status, limit, value, (baseline or {}).get(name), limit.value, change)


def _increase_checks(metrics: Metrics, increases: Sequence[Increase], baseline: Metrics) -> Iterator[Check]:
    for name, rule in _pairs(increases, {*metrics, *baseline}):
        value, before = _value(metrics, name), _value(baseline, name)
        bound = None if before is None else rule.bound(before)
        status = _growth(name, rule, value, before, bound)
        if status in (Status.PASSED, Status.IMPROVED) and (name in metrics) != (name in baseline):
            status = Status.NEW if name in metrics else Status.VANISHED
        whole = isinstance(value, int) and isinstance(before, int)
        shown = None if bound is None else floor(bound) if whole else float(bound)
        change = _change(value, before)
        yield Check(name, status, rule, metrics.get(name), baseline.get(name), shown, change)


def _growth(name: str, rule: Increase, value: Number | None, before: Number | None, bound: Fraction | None) -> Status:
    if value is None:
        return Status.NOT_CAPTURED
    if before is None or bound is None:
        return Status.NOT_CAPTURED if rule.pattern == name else Status.NEW
    if Fraction(value) > bound:
        return Status.FAILED
    less = {Better.LESS: value < before, Better.MORE: value > before, Better.NEITHER: False}
    return Status.IMPROVED if less[better(name)] else Status.PASSED


def _pairs(rules: Sequence[AnyRule], names: set[str]) -> Iterator[tuple[str, AnyRule]]:
    """Yield each name with the rule that holds for it, and a rule that holds for none of them with its pattern."""
    fixed = {rule.pattern for rule in rules if rule.pattern != DEFAULT and not is_glob(rule.pattern)}
    for name in sorted(names | fixed):
        rule = most_specific(rules, name)
        if rule is not None:
            yield name, rule
    for rule in rules:
        if rule.pattern not in fixed and not any(rule.fits(name) for name in names):
            yield rule.pattern or "memory.*", rule


def _value(metrics: Metrics, name: str) -> Number | None:
    """Return a metric; 0 for a member that a captured family lacks, None for what was not captured."""
    start = family(name)
    zero = 0 if start and any(other.startswith(start) for other in metrics) else None
    return metrics.get(name, zero)


def _change(value: Number | None, baseline: Number | None) -> Number | None:
    return None if value is None or baseline is None else value - baseline


def _finite(metrics: Mapping[str, Number]) -> Metrics:
    return {name: value for name, value in metrics.items() if finite(value)}
