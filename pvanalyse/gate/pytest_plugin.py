"""The pytest plugin: tests that fail when the program that they compile takes more memory than it may.

::

    @pytest.mark.ipu_memory(tile_max="600 KiB", increase="1%")
    def test_training_step(ipu_report):
        compile_the_training_step()  # is profiled into ipu_report, and checked after the test

A mark whose test makes no report fails. Nothing heavy is imported before a test with the mark is collected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pvanalyse.errors import PvanalyseError, UsageError
from pvanalyse.gate.pytest_marks import DESCRIPTION, MARK, SIGNATURE, UPDATE_OPTION, read_demand

if TYPE_CHECKING:
    from pvanalyse.gate.pytest_checking import Checking, Opened, Outcome
    from pvanalyse.report import Report

_BUDGET = "ipu_budget"
_ENGINE_OPTIONS = "POPLAR_ENGINE_OPTIONS"
_WANTED = {
    "autoReport.outputGraphProfile": "true",
    "autoReport.outputLoweredVars": "true",
    "autoReport.outputDebugInfo": "true",
}
"""What the check and its explanation need; what the environment says otherwise stays."""


@dataclass
class _Seen:
    """What a test with a mark has had so far."""

    checking: Checking | None = None
    outcome: Outcome | None = None
    profiled: list[Path] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)


_SEEN = pytest.StashKey[_Seen]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that accepts baselines, and the budget of a project."""
    group = parser.getgroup(MARK, "memory of IPU programs (pvanalyse)")
    group.addoption(
        UPDATE_OPTION,
        action="store_true",
        help=f"write the baselines that tests with @pytest.mark.{MARK} compare with, and accept what has grown",
    )
    parser.addini(_BUDGET, f"budget file of tests whose @pytest.mark.{MARK} names none, relative to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", f"{SIGNATURE}: {DESCRIPTION}")


# ------------------------------------------------------------------------------------------------------------- fixtures
@pytest.fixture
def ipu_report(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty directory, into which every program that the test compiles is profiled.

    Sets POPLAR_ENGINE_OPTIONS for the test: the directory, and compilation profile, lowered variables and debug
    information where the environment does not say otherwise; its other options stay. With @pytest.mark.ipu_memory, what
    was profiled is checked after the test.
    """
    directory = tmp_path / "ipu_report"
    directory.mkdir()
    options = _WANTED | _given_options() | {"autoReport.directory": str(directory)}
    monkeypatch.setenv(_ENGINE_OPTIONS, json.dumps(options))
    _seen(request.node).profiled.append(directory)
    return directory


@pytest.fixture
def open_report(request: pytest.FixtureRequest) -> Iterator[Callable[..., Report]]:
    """Return a function that opens the report at a path as pvanalyse.open_report does; closed after the test.

    With @pytest.mark.ipu_memory, what was opened is checked after the test.
    """
    seen = _seen(request.node)
    with ExitStack() as closing:

        def opening(path: str | os.PathLike[str], **how: Any) -> Report:
            from pvanalyse.gate.pytest_checking import Opened
            from pvanalyse.report import open_report

            report = closing.enter_context(open_report(path, **how))
            seen.opened.append(Opened(os.fspath(path), report))
            return report

        yield opening
    seen.opened.clear()  # pytest keeps the test to the end of its session, which need not keep the tables


def _given_options() -> dict[str, Any]:
    text = os.environ.get(_ENGINE_OPTIONS, "").strip()
    try:
        options = json.loads(text or "{}")
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        pytest.fail(f"{_ENGINE_OPTIONS} in the environment is not a JSON object: {text[:200]!r}", pytrace=False)
    return options


def _seen(item: pytest.Item) -> _Seen:
    return item.stash.setdefault(_SEEN, _Seen())


# ----------------------------------------------------------------------------------------------------------- collecting
@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Refuse marks that cannot be read before anything is run."""
    made = yield
    for one in made if isinstance(made, list) else [made]:
        if isinstance(one, pytest.Item):
            try:
                read_demand(one, _budget(one.config))
            except UsageError as error:
                raise collector.CollectError(f"{one.nodeid}: {error}") from None
    return made


def _budget(config: pytest.Config) -> Path | None:
    """Return the budget of the whole project."""
    name = config.getini(_BUDGET)
    return (config.inipath.parent if config.inipath else config.rootpath) / name if name else None


# -------------------------------------------------------------------------------------------------------------- running
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a test whose budget or baseline cannot be had, before it compiles anything."""
    item.stash[_SEEN] = seen = _Seen()
    try:
        demand = read_demand(item, _budget(item.config))
        if demand is not None:
            from pvanalyse.gate.pytest_checking import prepare

            seen.checking = prepare(item, demand, item.config.getoption("ipu_update_baselines"))
    except PvanalyseError as error:
        from pvanalyse.gate.pytest_checking import refusal

        seen.outcome = refusal(error)
    _fail_unless_passed(seen.outcome)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Check the reports of a test that has come to its end."""
    result = yield
    seen = _seen(item)
    failed_quietly = getattr(item, "_excinfo", None)  # methods of unittest's classes fail and skip without raising here
    if seen.checking is not None and not failed_quietly:
        seen.outcome = seen.checking.outcome(seen.profiled, seen.opened)
        item.user_properties.extend(seen.outcome.properties)
    _fail_unless_passed(seen.outcome)
    return result


def _fail_unless_passed(outcome: Outcome | None) -> None:
    if outcome is not None and not outcome.passed:
        pytest.fail(outcome.text, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Let the outcome travel with pytest's report, also from a worker of xdist to where the summary is written."""
    report: pytest.TestReport = yield
    seen = _seen(item)
    outcome, seen.outcome = seen.outcome, None
    if outcome is not None:
        report.ipu_memory = (outcome.passed, outcome.line)  # type: ignore[attr-defined]
        if report.passed:
            report.sections.append(("IPU memory", outcome.text))
    elif seen.checking is not None and call.when == "call" and report.failed:
        report.ipu_memory = (False, "NOT CHECKED: the test itself failed")  # type: ignore[attr-defined]
    return report


# ---------------------------------------------------------------------------------------------------------- the summary
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write a line for each test with a mark: the number that was gated, and what came of it."""
    reports = [report for several in terminalreporter.stats.values() for report in several]
    lines = {one.nodeid: one.ipu_memory for one in reports if hasattr(one, "ipu_memory")}
    if not lines:
        return
    terminalreporter.write_sep("=", "IPU memory")
    for nodeid, (passed, line) in sorted(lines.items(), key=lambda pair: pair[1][0]):
        terminalreporter.write_line(f"{nodeid}: {line}", green=passed, red=not passed)
