"""Checks as JUnit XML, which CI servers show as tests.

A report is a test suite and a check a test case: over its limit is a failure, not captured an error. A report that
could not be read is a suite with one error. The exact numbers of a check are its output: properties of a test case are
not in the schema that CI servers hold such files against. Names are printable, because XML has no place for most
control characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from pvanalyse.analysis.checks import Check, CheckResult, ReportCheck, Status, Why
from pvanalyse.analysis.rules import Limit
from pvanalyse.names import printable
from pvanalyse.render.check_words import changed_by, contributor, sentence
from pvanalyse.render.document import Formatter
from pvanalyse.render.metrics import unit_of
from pvanalyse.render.parts import records

_ROWS = 20


def render_junit(result: CheckResult, out: TextIO, write: Formatter) -> None:
    """Write a result as JUnit XML.

    Parameters
    ----------
    result
        Of one report or of many.
    out
        Text, to be encoded as UTF-8.
    write
        Writes amounts in messages.
    """
    document = JUnitXml("pvanalyse check")
    for report in result.reports:
        document.add_testsuite(_suite(report, write))
    # Not document.update_statistics(), which adds an attribute that the schema has only for suites.
    document.tests = len(result.checks) + sum(bool(one.problem) for one in result.reports)
    document.failures = sum(check.status is Status.FAILED for check in result.checks)
    document.errors = document.tests - document.failures - sum(check.ok for check in result.checks)
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{text.decode().rstrip()}\n')


def _suite(report: ReportCheck, write: Formatter) -> TestSuite:
    suite = TestSuite(printable(report.report))
    for name, value in (("engine", report.engine), ("baseline", report.baseline)):
        if value:
            suite.add_property(name, printable(value))
    whys = {why.metric: why for why in report.whys}
    cases = [_case(report, check, whys.get(check.metric), write) for check in report.checks]
    if report.problem:
        cases.append(_made(report, "can be read", [_outcome(Error, report.problem, "unreadable", report.problem)]))
    suite.add_testcases(cases)
    return suite


def _case(report: ReportCheck, check: Check, why: Why | None, write: Formatter) -> TestCase:
    said = sentence(check, write)
    outcomes: list[FinalResult] = []
    if check.status is Status.FAILED:
        outcomes = [_outcome(Failure, said, "over the limit", "\n".join([said, *_explained(why, write)]))]
    elif check.status is Status.NOT_CAPTURED:
        outcomes = [_outcome(Error, said, "not captured", said)]
    # The number of the limit is not part of the name, so that the history of a test outlives a change of it.
    held = f"{check.rule.sense} limit" if isinstance(check.rule, Limit) else "growth"
    case = _made(report, f"{check.metric} {held}", outcomes)
    numbers = (("value", check.value), ("bound", check.bound), ("baseline", check.baseline), ("change", check.change))
    known = [f"{name} = {value}" for name, value in numbers if value is not None]
    case.system_out = "\n".join([f"verdict = {check.status}", *known])
    return case


def _made(report: ReportCheck, name: str, outcomes: Sequence[FinalResult]) -> TestCase:
    case = TestCase(printable(name), classname=printable(report.report), time=0)
    case.result = list(outcomes)
    return case


def _outcome(kind: type[FinalResult], message: str, type_: str, text: str) -> FinalResult:
    made = kind(printable(message), type_)
    made.text = "\n".join(map(printable, text.split("\n")))
    return made


def _explained(why: Why | None, write: Formatter) -> list[str]:
    """Return a line for each contributor."""
    if why is None:
        return []
    unit, column = unit_of(why.metric), "value" if why.baseline is None else "change"
    lines = []
    for row in records(why.rows.head(_ROWS)):
        amount = write(row["value"], unit) if column == "value" else changed_by(row["change"], None, unit, write)
        category = f"{row['category']}  " if row["category"] and row["variable"] else ""
        lines.append(printable(f"  {amount}  {category}{contributor(row)}"))
    return lines
