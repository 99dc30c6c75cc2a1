"""Holding reports against budgets and baselines: what the command and the pytest plugin call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from pvanalyse.analysis.checks import CheckResult, ReportCheck, accepted, differences, evaluate
from pvanalyse.analysis.rules import NO_GROWTH, Rules, unmatched
from pvanalyse.discovery import resolve_report
from pvanalyse.errors import AmbiguousReport, PvanalyseError, UsageError
from pvanalyse.gate.baseline import Baseline, make_baseline, read_baseline
from pvanalyse.gate.budgets import Budget, read_budget
from pvanalyse.gate.explaining import explained
from pvanalyse.gate.limits import IncreasesLike, LimitsLike, read_increases, read_limits, unknown_name
from pvanalyse.gate.measured import Measured, Measurement
from pvanalyse.names import printable
from pvanalyse.readers.files import regular_file
from pvanalyse.report import Report, open_report
from pvanalyse.report_files import KINDS

StrPath = str | PathLike[str]
Opening = Callable[[StrPath], Report]

BaselineLike = StrPath | Report | Baseline
"""A baseline, its file, a report, or where one is."""

_DATABASES = (b"SQLite format 3\0", b"!<arch>\n", b"!<thin>\n")


def check(
    report: Report | StrPath,
    *,
    limits: LimitsLike = (),
    budget: Budget | StrPath | None = None,
    baseline: BaselineLike | None = None,
    max_increase: IncreasesLike | None = None,
) -> CheckResult:
    """Hold a report against limits, a budget or a baseline.

    Parameters
    ----------
    report
        The report, or where it is.
    limits
        Bounds of metrics; in place of those of the budget for the same metrics.
    budget
        A budget or its file.
    baseline
        What to compare with, in place of the budget's.
    max_increase
        What metrics may grow by; without any, and with a baseline, no bytes of memory at all.

    Raises
    ------
    UsageError
        A limit cannot be read or is for no metric, or there is nothing to check.
    UnreadableFile, ReportNotFound
        The report, the budget or the baseline cannot be read.
    """
    import pvanalyse.render.checks  # noqa: F401  (for notebooks)

    gate = make_gate(limits, budget, [] if baseline is None else [baseline], max_increase)
    with nullcontext(report) if isinstance(report, Report) else open_report(report) as opened:
        return _result([gate.judge(Measured(opened), opened, gate.baseline_of(opened, 0))])


def make_gate(
    limits: LimitsLike = (),
    budget: Budget | StrPath | None = None,
    baselines: Sequence[BaselineLike] = (),
    max_increase: IncreasesLike | None = None,
) -> Gate:
    """Return what reports are held against; see :func:`check`.

    Raises
    ------
    UsageError
        There is nothing to hold reports against, or a limit cannot be read.
    UnreadableFile
        The budget cannot be read.
    """
    rules = Rules(read_limits(limits), read_increases(max_increase))
    read = budget if budget is None or isinstance(budget, Budget) else read_budget(budget)
    if not rules.limits and read is None and not baselines:
        needed = "; an increase is one over a baseline" if rules else ""
        raise UsageError(f"there is nothing to check against: give a budget, a limit or a baseline{needed}")
    return Gate(rules, read, tuple(baselines))


@dataclass(frozen=True)
class Judged:
    """A report that was held against its rules, and the metrics that it and its baseline have."""

    check: ReportCheck
    rules: Rules
    names: frozenset[str]


@dataclass(frozen=True)
class Gate:
    """What reports are held against.

    Attributes
    ----------
    rules
        Of the call; they take the place of the budget's.
    budget
        If any.
    baselines
        None, one for all reports, or one for each in the order of the reports; in place of the budget's.
    """

    rules: Rules
    budget: Budget | None = None
    baselines: tuple[BaselineLike, ...] = ()

    def check(self, paths: Sequence[StrPath], opening: Opening = open_report) -> CheckResult:
        """Hold reports against their rules; one that cannot be read has a ``problem``.

        Parameters
        ----------
        paths
            Reports, or directories with several below them.
        opening
            Opens one of them.

        Raises
        ------
        UsageError
            There is nothing to check for one of the reports, or a rule is for no metric of any of them.
        """
        return _result(
            self._each(
                paths, opening, lambda report, at: self.judge(Measured(report), report, self.baseline_of(report, at))
            )
        )

    def accept(
        self, paths: Sequence[StrPath], opening: Opening = open_report
    ) -> tuple[CheckResult, dict[Path, Baseline]]:
        """Hold reports against their rules, and return the baselines with which they would not grow.

        What fails for growth alone is ``ACCEPTED``. A baseline file need not be there yet.

        Returns
        -------
        tuple
            The result, and what is to be written where.

        Raises
        ------
        UsageError
            As for :meth:`check`, or a report has no baseline file of its own.
        """
        written: dict[Path, Baseline] = {}

        def accept_one(report: Report, position: int) -> Judged:
            place = self._file_to_write(report, position)
            if place in written:
                raise UsageError(f"{place}: two reports would be written to this one baseline")
            measured = Measured(report)
            old = self.baseline_of(report, position) if os.path.lexists(place) else None
            judged = self.judge(measured, report, old, growing=old is None)
            written[place] = make_baseline(measured)
            new = evaluate(measured.metrics, judged.rules, measured.metrics)
            return replace(judged, check=replace(judged.check, checks=accepted(judged.check.checks, new)))

        return _result(self._each(paths, opening, accept_one)), written

    def baseline_of(self, report: Report, position: int) -> BaselineLike | None:
        """Return what the report at a position of the call is compared with, None when with nothing."""
        if self.baselines:
            return self.baselines[position if len(self.baselines) > 1 else 0]
        files = report.files
        return self.budget.baseline_for(files.directory, files.engine) if self.budget else None

    def rules_of(self, report: Report) -> Rules:
        """Return the rules for a report."""
        files = report.files
        rules = self.budget.rules_for(files.directory, files.engine) if self.budget else Rules()
        return rules.with_later(self.rules)

    def judge(
        self, measured: Measured, report: Report, baseline: BaselineLike | None, *, growing: bool = False
    ) -> Judged:
        """Hold one open report against its rules and a baseline.

        Parameters
        ----------
        measured, report
            The report, which stays open.
        baseline
            If any.
        growing
            Whether increases may stay without a baseline, because there will be one.
        """
        rules = self.rules_of(report)
        if baseline is not None and not rules.increases:
            rules = rules.with_later(NO_GROWTH)
        _refuse_nothing(report, rules, baseline is not None or growing)
        with _measurement(baseline) as old:
            checks = evaluate(measured.metrics, rules, old.metrics if old else None)
            found = ReportCheck(
                report=str(report.files.directory),
                engine=report.files.engine,
                baseline=_name(baseline),
                checks=checks,
                whys=tuple(explained(checks, measured, old)),
                differences=differences(measured.metrics, old.metrics, checks) if old else (),
                notes=tuple([*_other_circumstances(measured, old), *report.warnings] if old else report.warnings),
            )
            return Judged(found, rules, frozenset([*measured.metrics, *(old.metrics if old else ())]))

    def _each(
        self, paths: Sequence[StrPath], opening: Opening, judge: Callable[[Report, int], Judged]
    ) -> list[Judged | ReportCheck]:
        """Open one report after the other and judge it; what cannot be read is said in place of a judgement."""
        found: list[Judged | ReportCheck] = []
        for position, path in enumerate(self._expanded(paths)):
            try:
                with opening(path) as report:
                    found.append(judge(report, position))
            except UsageError:
                raise
            except PvanalyseError as error:
                found.append(ReportCheck(os.fspath(path), problem=str(error)))
        return found

    def _expanded(self, paths: Sequence[StrPath]) -> list[StrPath]:
        """Return the reports that paths mean; a directory means all below it."""
        found: list[StrPath] = []
        for path in paths:
            try:
                resolve_report(path)
            except AmbiguousReport as error:
                if not os.path.isdir(path):  # noqa: PTH112  (raises no errors)
                    raise
                found += error.candidates
            except PvanalyseError:
                found.append(path)  # it is said when it is opened
            else:
                found.append(path)
        if len(self.baselines) > 1 and len(self.baselines) != len(found):
            raise UsageError(
                f"there are {len(self.baselines)} baselines for {len(found)} reports; give one for all, or one for each"
            )
        return found

    def _file_to_write(self, report: Report, position: int) -> Path:
        place = self.baseline_of(report, position)
        if place is None:
            raise UsageError(f"{printable(str(report.files.directory))}: there is no baseline file to update; name one")
        if not isinstance(place, (str, PathLike)) or (os.path.lexists(place) and _is_report(place)):
            raise UsageError(f"{_name(place)}: is a report, and only a baseline file can be updated")
        return Path(place)


def _refuse_nothing(report: Report, rules: Rules, has_baseline: bool) -> None:
    """Refuse to pass a report that nothing was held against."""
    name = printable(str(report.files.directory))
    if rules.increases and not has_baseline:
        raise UsageError(f"{name}: its growth is limited ({rules.increases[0].where}), but there is no baseline for it")
    if not rules and not has_baseline:
        raise UsageError(f"{name}: the budget has nothing for this report, whose engine is '{report.files.engine}'")


# ------------------------------------------------------------------------------------------------------------ baselines
@contextmanager
def _measurement(baseline: BaselineLike | None) -> Iterator[Measurement | None]:
    """Yield what a baseline measured; a report that was named is open until the end."""
    if baseline is None or isinstance(baseline, Baseline):
        yield baseline
    elif isinstance(baseline, Report):
        yield Measured(baseline)
    elif _is_report(baseline):
        with open_report(baseline) as report:
            yield Measured(report)
    else:
        yield read_baseline(baseline)


def _is_report(path: StrPath) -> bool:
    """Tell whether a path is a report's rather than that of a baseline file."""
    if os.path.isdir(path) or Path(path).name in KINDS:  # noqa: PTH112  (raises no errors)
        return True
    return regular_file(Path(path))[1].startswith(_DATABASES)


def _name(baseline: BaselineLike | None) -> str:
    if baseline is None:
        return ""
    if isinstance(baseline, Baseline):
        return "a baseline"
    return str(baseline.files.directory) if isinstance(baseline, Report) else os.fspath(baseline)


def _other_circumstances(new: Measurement, old: Measurement) -> Iterator[str]:
    """Yield a sentence for what makes two measurements hard to compare."""
    differing = [
        f"{name} {old.target[name]} → {value}"
        for name, value in new.target.items()
        if old.target.get(name, value) != value
    ]
    if differing:
        yield f"The baseline is for another target: {', '.join(differing)}."
    if old.sdk_version and new.sdk_version and old.sdk_version != new.sdk_version:
        yield f"The baseline is from SDK {old.sdk_version}, the report from {new.sdk_version}."


# -------------------------------------------------------------------------------------------------------------- results
def _result(found: Sequence[Judged | ReportCheck]) -> CheckResult:
    """Return the result of some reports, unless one of the rules was for nothing in any of them."""
    judged = [one for one in found if isinstance(one, Judged)]
    names = frozenset[str]().union(*(one.names for one in judged))
    rules = {rule: None for one in judged for rule in one.rules}
    if len(judged) == len(found) and (wrong := unmatched(rules, names)):
        raise unknown_name(wrong[0], names)
    return CheckResult(tuple(one.check if isinstance(one, Judged) else one for one in found))
