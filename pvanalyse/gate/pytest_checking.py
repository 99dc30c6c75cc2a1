"""Holding the reports of one test against what its marks demand."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pvanalyse.analysis.checks import CheckResult
from pvanalyse.analysis.rules import importance
from pvanalyse.discovery import find_reports, resolve_report, survey
from pvanalyse.errors import AmbiguousReport, PvanalyseError, ReportNotFound, UsageError
from pvanalyse.gate.baseline import Baseline, baseline_text
from pvanalyse.gate.budgets import Budget, read_budget
from pvanalyse.gate.checking import StrPath, make_gate
from pvanalyse.gate.pytest_marks import MARK, UPDATE_OPTION, Demand, baseline_path
from pvanalyse.names import printable
from pvanalyse.render.check_words import amount, limit_text, verdict
from pvanalyse.render.checks import check_document
from pvanalyse.render.document import formatter
from pvanalyse.render.metrics import unit_of
from pvanalyse.render.text import render_text
from pvanalyse.report import Report, open_report
from pvanalyse.report_files import FileKind, ReportFiles, Survey
from pvanalyse.units import counted

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a test's marks.

    Attributes
    ----------
    passed
        Whether its reports keep their limits.
    line
        That, and the number that decided it, in a line.
    text
        All of it: the checks, and why they failed.
    properties
        Metrics that were checked, their limits and baselines, exact: for JUnit XML.
    """

    passed: bool
    line: str
    text: str
    properties: tuple[tuple[str, int | float], ...] = ()


@dataclass(frozen=True, slots=True)
class Checking:
    """What a test's reports are held against; all that can be wrong with it before there is a report was refused.

    Attributes
    ----------
    item
        The test.
    demand
        What its marks say.
    budget
        The budget that they name.
    update
        Whether baselines are replaced by what there is now.
    """

    item: pytest.Item
    demand: Demand
    budget: Budget | None
    update: bool

    def outcome(self, profiled: Iterable[Path], opened: Sequence[Opened]) -> Outcome:
        """Hold the reports of the test against its demand.

        Parameters
        ----------
        profiled
            Directories that the test was to profile its programs into.
        opened
            What the test opened.
        """
        try:
            return self._outcome(_Reports.found(self.demand.report, profiled, opened))
        except PvanalyseError as error:
            return refusal(error)

    def _outcome(self, reports: _Reports) -> Outcome:
        own = self._own_baselines(reports.files)
        gate = make_gate(self.demand.rules.limits, self.budget, own, self.demand.rules.increases or None)
        if self.update and (own or self._budgeted_baseline(reports.files)):
            result, written = gate.accept(reports.paths, reports.open)
            notes = [f"{_write(path, baseline)} is the baseline now" for path, baseline in written.items()]
        else:
            for baseline in own:
                _refuse_missing(baseline)
            result, notes = gate.check(reports.paths, reports.open), []
        if not result.checks and not notes and result.passed:
            raise UsageError("nothing was checked: neither report nor baseline has a metric that could have grown")
        line = f"{_line(result)}{'; a new baseline' if notes else ''}"
        text = "\n".join([line, _text(result), *notes])
        return Outcome(result.passed, line, text, tuple(_properties(result)))

    def _own_baselines(self, files: Sequence[ReportFiles]) -> list[Path]:
        """Return the baseline of all reports, or one for each; none when the budget names them or nothing needs any."""
        if self.demand.baseline is not None:
            return [self.demand.baseline]
        if not self.demand.rules.increases or self._budgeted_baseline(files):
            return []
        if len(files) == 1:
            return [baseline_path(self.item)]
        names = [one.engine or one.cluster for one in files]
        distinct = len({*names}) == len(names) and all(names)
        return [baseline_path(self.item, name if distinct else f"{name or 'report'}-{position}")
                for position, name in enumerate(names)]  # fmt: skip

    def _budgeted_baseline(self, files: Iterable[ReportFiles]) -> bool:
        return any(self.budget.baseline_for(one.directory, one.engine) for one in files) if self.budget else False


def prepare(item: pytest.Item, demand: Demand, update: bool) -> Checking:
    """Return what a test's reports will be held against, before it compiles anything.

    Raises
    ------
    UsageError
        The budget is none, or there is no baseline.
    UnreadableFile
        The budget cannot be read.
    """
    if demand.baseline is not None and not update:
        _refuse_missing(demand.baseline)
    return Checking(item, demand, None if demand.budget is None else read_budget(demand.budget), update)


def refusal(error: PvanalyseError) -> Outcome:
    """Return the outcome of what could not be checked."""
    text = f"CANNOT BE CHECKED: {error}"
    return Outcome(False, printable(text.partition("\n")[0]), text)


# -------------------------------------------------------------------------------------------------------------- reports
@dataclass(frozen=True, slots=True)
class Opened:
    """A report that a test opened.

    Attributes
    ----------
    path
        As the test named it.
    report
        Open until the end of the test.
    """

    path: str
    report: Report


@dataclass(frozen=True, slots=True)
class _Reports:
    """The reports of one test, each once.

    Attributes
    ----------
    paths
        What each is opened by.
    files
        What each is made of.
    """

    paths: list[StrPath] = field(default_factory=list)
    files: list[ReportFiles] = field(default_factory=list)
    opened: dict[StrPath, Report] = field(default_factory=dict)

    @classmethod
    def found(cls, named: Path | None, profiled: Iterable[Path], opened: Sequence[Opened]) -> _Reports:
        """Return all reports of a test.

        Raises
        ------
        ReportNotFound
            There are none, or none where some should be.
        UnreadableFile
            A directory cannot be read.
        """
        reports = cls(opened={one.path: one.report for one in opened})
        for one in opened:
            reports._add(one.path, one.report.files)
        for directory in profiled:
            for files in _profiled_reports(directory):
                reports._add(files.directory, files)
        for path, files in _named_reports(named):
            reports._add(path, files)
        if not reports.paths:
            raise ReportNotFound("the test made no report: it opened none with open_report, did not ask for ipu_report "
                                 f"to profile into, and @pytest.mark.{MARK}(report=…) names none")  # fmt: skip
        return reports

    def open(self, path: StrPath) -> Report:
        """Open a report, or return it as the test opened it."""
        return self.opened[path] if path in self.opened else open_report(path)

    def _add(self, path: StrPath, files: ReportFiles) -> None:
        if _identity(files) not in map(_identity, self.files):
            self.paths.append(path)
            self.files.append(files)


def _identity(files: ReportFiles) -> tuple[str, ...]:
    return (os.path.realpath(files.directory), *sorted(file.name for file in files.files))


def _profiled_reports(directory: Path) -> list[ReportFiles]:
    """Return the reports in a directory that programs were to be profiled into.

    A profile has its name only once its engine is gone, and an engine may be kept by a cycle of objects.

    Raises
    ------
    ReportNotFound
        There is none, or one whose engine is still there.
    """
    found = survey(directory)
    if not found.reports or any(_unfinished(found)):
        gc.collect()
        found = survey(directory)
    for path in _unfinished(found):
        raise ReportNotFound(f"{printable(str(path))}: the profile is not finished, because its engine lives on beyond "
                             "the test; delete what holds it, or end the test after it")  # fmt: skip
    if not found.reports:
        raise ReportNotFound(f"{printable(str(directory))}: the test profiled nothing into ipu_report: it compiled "
                             "nothing, or found it in a cache of executables")  # fmt: skip
    return list(found.reports)


def _unfinished(found: Survey) -> Iterator[Path]:
    files = chain(*(one.files for one in found.remains), *(one.leftovers for one in found.reports))
    return (file.path for file in files if file.kind is FileKind.UNFINISHED)


def _named_reports(path: Path | None) -> Iterator[tuple[StrPath, ReportFiles]]:
    if path is None:
        return
    try:
        yield path, resolve_report(path)
    except AmbiguousReport:
        if not path.is_dir():
            raise
        for files in find_reports(path):
            yield files.directory, files


# ------------------------------------------------------------------------------------------------------------ baselines
def _refuse_missing(baseline: Path) -> None:
    if not os.path.lexists(baseline):
        raise UsageError(f"{printable(str(baseline))}: there is no such baseline yet; "
                         f"'pytest {UPDATE_OPTION}' writes it")  # fmt: skip


def _write(path: Path, baseline: Baseline) -> str:
    """Write a baseline file in place of what there was; return its name for people."""
    name = printable(str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(baseline_text(baseline), "utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{name}: the baseline cannot be written ({error.strerror or error})") from None
    return name


# ---------------------------------------------------------------------------------------------------------------- words
def _line(result: CheckResult) -> str:
    """Return the outcome in a line: the number that decided it, or the most telling of those that passed."""
    if not result.passed:
        return printable(verdict(result))
    if not result.checks:
        return "PASSED: there was no baseline to compare with"
    check = min(result.checks, key=lambda check: importance(check.metric))
    write, unit = formatter("binary"), unit_of(check.metric)
    parts = [f"{check.metric} is {amount(check.value, unit, write)}", f"limit {limit_text(check, write)}"]
    if check.baseline is not None:
        parts.append(f"baseline {amount(check.baseline, unit, write)}")
    if more := len(result.checks) - 1:
        parts.append(f"and {counted(more, 'more check')}")
    return printable(f"PASSED: {', '.join(parts)}")


def _text(result: CheckResult) -> str:
    """Return the checks and why they failed; not what differs and is not limited, which a test is not about."""
    reports = tuple(replace(one, differences=()) for one in result.reports)
    document = replace(check_document(replace(result, reports=reports)), verdict="")
    out = StringIO()
    render_text(document, out, formatter("binary"))
    return out.getvalue()


def _properties(result: CheckResult) -> Iterator[tuple[str, int | float]]:
    several = len(result.reports) > 1
    for report in result.reports:
        label = f"{report.engine or report.report}: " if several else ""
        for check in report.checks:
            numbers = {"": check.value, " limit": check.bound, " baseline": check.baseline}
            yield from ((f"{label}{check.metric}{what}", one) for what, one in numbers.items() if one is not None)
