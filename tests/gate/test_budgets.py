"""Budget files: what they mean for which report, and where a mistake in one is."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pvanalyse.analysis.rules import DEFAULT, Increase, Limit, Rules, Sense
from pvanalyse.errors import PvanalyseError, UnreadableFile, UsageError
from pvanalyse.gate.budgets import read_budget

BUDGET = """\
baseline = "all.json"

[limits]
"memory.gaps" = "600 KiB"
execution.tile_balance = ">= 0.7"
"memory.category.*" = ["<= 10 MiB", ">= 1 KiB"]

[limits.liveness]
peak = 123

[max_increase]
default = "2%"
"memory.category.*" = "64 KiB"

[engine."train*".limits]
"memory.gaps" = "700 KiB"

[report."*/nightly/*"]
baseline = "nightly.json"
max_increase = "1%"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "budget.toml"
    path.write_text(text, "utf-8")
    return path


def rules(*limits: Limit, increases: tuple[Increase, ...]) -> tuple[set[Limit], set[Increase]]:
    return set(limits), set(increases)


def as_sets(found: Rules) -> tuple[set[Limit], set[Increase]]:
    return set(found.limits), set(found.increases)


def test_a_budget_means_for_each_report_what_it_says(tmp_path: Path) -> None:
    # GIVEN a budget for all, for an engine and for paths; WHEN read
    budget = read_budget(write(tmp_path, BUDGET))
    common = [
        Limit("execution.tile_balance", Sense.AT_LEAST, 0.7),
        Limit("memory.category.*", Sense.AT_MOST, 10 << 20, "bytes"),
        Limit("memory.category.*", Sense.AT_LEAST, 1024, "bytes"),
        Limit("liveness.peak", Sense.AT_MOST, 123),
    ]
    gaps = Limit("memory.gaps", Sense.AT_MOST, 600 << 10, "bytes")
    training = Limit("memory.gaps", Sense.AT_MOST, 700 << 10, "bytes")
    some = Increase("memory.category.*", 64 << 10, None, "bytes")
    two, one = Increase(DEFAULT, share=Fraction(1, 50)), Increase(DEFAULT, share=Fraction(1, 100))
    # THEN each report has its rules and its baseline, which lies beside the budget
    assert as_sets(budget.rules_for(Path("a"), "")) == rules(gaps, *common, increases=(two, some))
    assert as_sets(budget.rules_for(Path("a"), "training")) == rules(training, *common, increases=(two, some))
    nightly = Path("x/nightly/3")
    assert as_sets(budget.rules_for(nightly, "training")) == rules(training, *common, increases=(one, some))
    assert budget.baseline_for(Path("a")) == tmp_path / "all.json"
    assert budget.baseline_for(nightly) == tmp_path / "nightly.json"


def test_a_rule_knows_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, BUDGET)
    places = {rule.pattern: rule.where for rule in read_budget(path).rules_for(Path("a"))}
    assert places == {
        "memory.gaps": f'{path}, line 4, limits."memory.gaps"',
        "execution.tile_balance": f"{path}, line 5, limits.execution.tile_balance",
        "memory.category.*": f'{path}, line 13, max_increase."memory.category.*"',
        "liveness.peak": f"{path}, line 9, limits.liveness.peak",
        DEFAULT: f"{path}, line 12, max_increase.default",
    }


MISTAKES = {
    '\n[limits]\n"memory.tile_maxx" = 1\n': ('line 3, limits."memory.tile_maxx"', "nearest: memory.tile_max_"),
    "[limits]\nmemory.tile_maxx = 1\n": ("line 2, limits.memory.tile_maxx", "nearest: memory.tile_max_"),
    '[limits]\n"memory.gaps" = "600 XB"': ('line 2, limits."memory.gaps"', "'XB' is no unit"),
    '[limits]\n"memory.gaps" = 600 XB': ("line 2", "expected newline"),
    '[limits]\n"memory.gaps" = true': ('line 2, limits."memory.gaps"', "must be a number"),
    '[limits]\n"memory.gaps" = ["<= 1", 07:32:00]': ('line 2, limits."memory.gaps"', "must be a number"),
    '[limits]\n"memory.gaps" = -1': ('line 2, limits."memory.gaps"', "a number"),
    '[limits]\n"memory.gaps" = nan': ('line 2, limits."memory.gaps"', "a number"),
    '[limits]\n"execution.tile_balance" = 0.7': ("line 2", "more of execution.tile_balance is better"),
    '[limit]\n"memory.gaps" = 1': ("line 1, limit", "none of baseline, limits"),
    "limits = 3": ("line 1, limits", "must be a table"),
    'limits = { "memory.gops" = 1 }': ("line 1", "nearest: memory.gaps"),
    "[engine]\nx = 1": ("line 2, engine.x", "must be a table"),
    "[engine.x]\nfoo = 1": ("line 2, engine.x.foo", "none of baseline, limits, max_increase"),
    '[report."*"]\nbaseline = 3': ('line 2, report."*".baseline', "must be the path"),
    'max_increase = "2 percent"': ("line 1, max_increase", "'percent' is no unit"),
    'max_increase = "%"': ("line 1, max_increase", "a number"),
    '[max_increase]\n"memory.gops" = "2%"': ('line 2, max_increase."memory.gops"', "nearest: memory.gaps"),
    "[limits": ("line 1", "expected ']'"),
    "[limits]\n[limits]": ("line 2", "declare"),
    "x = " + "[" * 5000: ("", "nested too deeply"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_an_error_with_line_and_key(tmp_path: Path, text: str) -> None:
    place, problem = MISTAKES[text]
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_budget(path)
    assert str(caught.value).startswith(str(path))
    assert place in str(caught.value)
    assert problem in str(caught.value)


@given(st.text("[]\"'=.,{}#\n abm123*%-", max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_budget_or_a_usage_error(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text or "#")
    assert problem_of(path) == "" or problem_of(path).startswith(str(path))


def problem_of(path: Path) -> str:
    try:
        read_budget(path)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "empty", "not UTF-8", "device"])
def test_what_is_no_text_file_is_unreadable(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "budget.toml"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("this system has no named pipes")
        os.mkfifo(path)
    elif kind == "empty":
        path.touch()
    elif kind == "not UTF-8":
        path.write_bytes(b"a = 1\nb = '\xff'")
    elif kind == "device":
        path = Path(os.devnull)
    with pytest.raises(UnreadableFile) as caught:
        read_budget(path)
    assert isinstance(caught.value, PvanalyseError)
    assert str(caught.value).startswith(f"{path}: ")
