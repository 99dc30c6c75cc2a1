"""What metrics are made of and what changes them: exact, on every kind of random report; and the known regression."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pvanalyse import UsageError, open_report
from pvanalyse.analysis.breakdowns import Breakdowns, is_broken_down
from pvanalyse.analysis.contributions import (
    COLUMNS,
    OTHERS,
    Contributions,
    Key,
    Share,
    changes,
    explaining,
    from_rows,
    from_shares,
)
from pvanalyse.analysis.metrics import CATALOGUE
from tests.conftest import SAMPLES
from tests.oracle import contributions as oracle
from tests.oracle.execution_reports import make_execution_report
from tests.oracle.frames import Captured
from tests.oracle.memory_reports import make_memory_report
from tests.oracle.reports import make_report

KEY = list(COLUMNS[:-1])
MAKERS = {"any": make_report, "memory": make_memory_report, "execution": make_execution_report}
CASES = [f"{kind} {seed}" for kind in MAKERS for seed in range(12)]
SAMPLE_NAMES = sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("profile.pop"))
WITHOUT = ("target.", "graph.", "variables.", "archive.", "debug.", "execution.fraction.", "execution.stream_bytes.")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that returns the profile.pop of a case, made once."""

    @cache
    def made(case: str) -> Path:
        kind, _, seed = case.partition(" ")
        if not seed:
            return SAMPLES / case / "profile.pop"
        return MAKERS[kind](tmp_path_factory.mktemp(kind) / "report", int(seed))

    return made


@cache
def all_of(profile: Path) -> dict[str, Contributions]:
    """The breakdown of every metric that has one, each held against the metric."""
    found = {}
    with open_report(profile.parent) as report:
        breakdowns = Breakdowns(report)
        for name, value in report.metrics().items():
            made = breakdowns.of(name)
            if made is not None:
                assert is_broken_down(name)
                assert (made.metric, made.value) == (name, value)
                found[name] = made
    return found


# ------------------------------------------------------------------------------------------------------- breakdowns
@pytest.mark.parametrize("case", [*CASES, *SAMPLE_NAMES])
def test_the_rows_add_up_to_the_metric(reports: Any, case: str) -> None:
    # GIVEN any report; WHEN its metrics are broken down
    for made in all_of(reports(case)).values():
        rows = made.rows
        # THEN the rows add up exactly, are distinct and in order, and say what they are
        assert sum(rows["value"].tolist()) == made.value
        assert list(rows.columns) == [*COLUMNS, "value"]
        assert rows["value"].dtype == "int64"
        assert not rows.duplicated(KEY).any()
        assert rows["value"].is_monotonic_decreasing
        assert not rows[list(COLUMNS)].isna().any(axis=None)
        nobodys = rows["category"] == ""
        assert rows.loc[nobodys, "variable"].str.fullmatch(r"\(.+\)").all()


@pytest.mark.parametrize("case", [*CASES, *SAMPLE_NAMES])
def test_the_rows_are_those_of_brute_force(reports: Any, case: str) -> None:
    # GIVEN any report, and its rows read by other means
    profile = reports(case)
    captured = Captured(profile)
    found = all_of(profile)
    for kind in ("including", "excluding"):
        made = found.get(f"memory.tile_max_{kind}_gaps")
        if made is not None and "lowered_variables" in captured and not profile.parent.match("any*/*"):
            # THEN what lies on the fullest tile is there by category
            expected = oracle.allocations_on(captured, oracle.tile_of(captured, kind))
            assert _by_category(made) == {name or "Unknown": size for name, size in expected.items() if size}
            # AND what belongs to nobody: gaps, and the addresses that are used more than once
            tile = oracle.row_of(captured, oracle.tile_of(captured, kind))
            assert _nobodys(made) == _not_zero({
                "(addresses shared over time)": tile["total_excluding_gaps"] - sum(expected.values()),
                "(gaps)": tile[f"total_{kind}_gaps"] - tile["total_excluding_gaps"],
            })  # fmt: skip
    if (made := found.get("liveness.peak_not_always_live")) is not None:
        assert sum(_by_category(made).values()) == oracle.live_at_the_peak(captured)
    if (made := found.get("execution.cycles")) is not None:
        cycles = oracle.cycles_of_programs(captured)
        assert _by_category(made) == {kind: n for kind, n in cycles.items() if kind != "SyncAns" and n}
        for name, one in found.items():
            if name.startswith("execution.step_cycles."):
                assert one.value == cycles[name.removeprefix("execution.step_cycles.")]


def _by_category(made: Contributions) -> dict[str, int]:
    rows = made.rows[made.rows["category"] != ""]
    sums = rows.groupby("category")["value"].sum()
    return {str(name): int(size) for name, size in sums.items() if size}


def _nobodys(made: Contributions) -> dict[str, int]:
    rows = made.rows[made.rows["category"] == ""]
    return dict(zip(rows["variable"].tolist(), rows["value"].tolist(), strict=True))


def _not_zero(sizes: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size}


def test_which_metrics_have_a_breakdown() -> None:
    names = [spec.name.replace("<", "").replace(">", "") for spec in CATALOGUE]
    having = {name for name in names if is_broken_down(name)}
    assert having == {
        *(f"memory.{kind}_{how}_gaps" for kind in ("total", "tile_max") for how in ("including", "excluding")),
        *(f"memory.region.{region}" for region in ("non_interleaved", "interleaved", "overflowed")),
        "memory.gaps", "memory.overflowed", "memory.ipu_max_including_gaps", "memory.always_live",
        "memory.not_always_live", "memory.category.category", "liveness.peak", "liveness.peak_not_always_live",
        "execution.cycles", "execution.step_cycles.ProgramType",
    }  # fmt: skip
    assert not is_broken_down("memory.category.")
    with open_report(SAMPLES / "transformer_after") as report:
        assert [Breakdowns(report).of(name) for name in ("memory.tile_balance", "nonsense", "memory.category.x")] == [
            None,
            None,
            None,
        ]


def test_a_report_without_lowered_variables_is_broken_down_by_category() -> None:
    with open_report(SAMPLES / "no_lowered_variables") as report:
        made = Breakdowns(report).of("memory.tile_max_including_gaps")
    assert made is not None
    assert "variable" in set(made.rows["category"])
    assert set(made.rows.loc[made.rows["category"] != "", "variable"]) == {""}


# ---------------------------------------------------------------------------------------------------------- changes
@pytest.mark.parametrize(("first", "second"), [*pairwise(CASES), *pairwise(SAMPLE_NAMES)])
def test_changes_add_up_and_turn_round(reports: Any, first: str, second: str) -> None:
    # GIVEN two reports that have next to nothing in common
    before, after = all_of(reports(first)), all_of(reports(second))
    for name in before.keys() & after.keys():
        there, back = changes(before[name], after[name]), changes(after[name], before[name])
        # THEN the changes add up to the metric's, and the way back is the same with the other sign
        assert sum(there["change"].tolist()) == after[name].value - before[name].value
        assert sum(there["before"].tolist()) == before[name].value
        assert sum(there["after"].tolist()) == after[name].value
        assert _changed(there) == sorted((key, after, before, -change) for key, before, after, change in _changed(back))
        # AND a report compared with itself has none
        assert not changes(before[name], before[name])["change"].any()


def _changed(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows without the operation and the source line, which are those of the second report."""
    keys = zip(frame["category"], frame["layer"], frame["variable"], strict=True)
    return sorted(zip(keys, frame["before"], frame["after"], frame["change"], strict=True))


TEXTS = st.sampled_from(["", "a", "b", "B"])
VALUES = st.integers(-6, 6) | st.integers(-(2**61), 2**61)
SHARES = st.dictionaries(st.builds(Key, TEXTS, TEXTS, TEXTS, TEXTS), st.builds(Share, VALUES, TEXTS), max_size=8)


def made_of(shares: dict[Key, Share]) -> Contributions:
    made = from_shares("m", sum(share.value for share in shares.values()), shares)
    assert made is not None
    return made


@settings(deadline=None)
@given(SHARES, SHARES, st.integers(0, 8), st.integers(0, 8))
def test_changes_of_shortened_rows_are_exact_too(
    old: dict[Key, Share], new: dict[Key, Share], kept: int, also_kept: int
) -> None:
    # GIVEN two breakdowns of which a file kept only the largest rows
    before, after = made_of(old), made_of(new)
    shorter = [from_rows("m", one.value, one.largest(count)) for one, count in ((before, kept), (after, also_kept))]
    # WHEN they are compared
    for first, second in ((before, after), (shorter[0], after), (before, shorter[1]), (shorter[0], shorter[1])):
        changed = changes(first, second)
        # THEN nothing is lost
        assert sum(changed["before"].tolist()) == before.value
        assert sum(changed["after"].tolist()) == after.value
        assert sum(changed["change"].tolist()) == after.value - before.value
    # AND what a file holds is what it was made of
    assert shorter[0].value == before.value
    pd.testing.assert_frame_equal(from_rows("m", before.value, before.largest(99)).rows, before.rows)


def test_rows_are_matched_without_the_operation_when_they_must() -> None:
    # GIVEN a report without debug information, and the same with it
    named = {Key("variable", "l", "op", "l/x"): Share(5, "f.py:1"), Key("variable", "l", "op2", "l/y"): Share(3)}
    bare = {Key("variable", "l", "", "l/x"): Share(4), Key("variable", "l", "op2", "l/y"): Share(3)}
    # THEN a variable is still that variable
    changed = changes(made_of(bare), made_of(named))
    assert changed.to_dict("records") == [
        {"category": "variable", "layer": "l", "operation": "op", "variable": "l/x", "location": "f.py:1",
         "before": 4, "after": 5, "change": 1},
        {"category": "variable", "layer": "l", "operation": "op2", "variable": "l/y", "location": "",
         "before": 3, "after": 3, "change": 0},
    ]  # fmt: skip


def test_variables_are_compared_with_categories_by_category() -> None:
    variables = {Key("variable", "", "", "x"): Share(5), Key("variable", "", "", "y"): Share(3),
                 Key("", "", "", "(gaps)"): Share(2)}  # fmt: skip
    categories = {Key("variable", "", "", ""): Share(6), Key("", "", "", "(gaps)"): Share(1)}
    changed = changes(made_of(variables), made_of(categories))
    assert changed[["category", "variable", "change"]].values.tolist() == [["variable", "", -2], ["", "(gaps)", -1]]


def test_small_rows_may_be_among_those_left_out() -> None:
    # GIVEN a file that kept two rows, and a report with a row that may have been there, and one that cannot
    old = {Key("c", "", "", name): Share(size) for name, size in (("a", 90), ("b", 50), ("c", 20), ("d", 10))}
    file = from_rows("m", 170, made_of(old).largest(2))
    new = {Key("c", "", "", name): Share(size) for name, size in (("a", 90), ("c", 21), ("e", 60))}
    changed = changes(file, made_of(new))
    # THEN the one is part of the others, the other is new
    assert changed[["variable", "before", "after"]].values.tolist() == [
        ["e", 0, 60], ["b", 50, 0], [OTHERS, 30, 21], ["a", 90, 90],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [{}, {"value": "1"}, {"value": 1.0}, {"value": True}, {"value": 2**70}, {"value": 1, "category": 3}],
)
def test_rows_of_a_file_that_cannot_be(row: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a contributor to 'm'"):
        from_rows("m", 1, [row])


# ------------------------------------------------------------------------------------------------------- explaining
@settings(deadline=None)
@given(st.lists(st.integers(-20, 20), max_size=9), st.sampled_from([0.5, 0.9, 0.95, 1.0]))
def test_the_fewest_are_listed_that_explain_the_change(sizes: list[int], share: float) -> None:
    # GIVEN contributors
    keys = [Key("c", "", "", f"v{at}") for at in range(len(sizes))]
    nothing = made_of(dict.fromkeys(keys, Share(0)))
    after = made_of({key: Share(size) for key, size in zip(keys, sizes, strict=True)})
    changed = changes(nothing, after)
    # WHEN the change is explained
    listed = explaining(changed, share)
    total = sum(sizes)
    # THEN what is listed explains as much as asked, with as few as can be
    if not total:
        assert listed.empty
        return
    sign = 1 if total > 0 else -1
    mine = [sign * one for one in listed["change"].tolist()]
    assert sum(mine) >= share * abs(total)
    assert sum(one > 0 for one in mine) == oracle.fewest_that_explain(sizes, share)
    # AND whoever alone is more against it than may stay unexplained is listed, nobody else
    against = sorted(-sign * one for one in sizes if -sign * one > (1 - share) * abs(total))
    assert sorted(-one for one in mine if one < 0) == against
    assert [abs(one) for one in mine] == sorted(map(abs, mine), reverse=True)


# ----------------------------------------------------------------------------------------------- the known regression
@pytest.fixture(scope="module")
def regression() -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    documented = json.loads((SAMPLES.parent / "tests/sample_reports/transformer_change.json").read_text("utf-8"))
    before, after = (all_of(SAMPLES / f"transformer_{when}" / "profile.pop") for when in ("before", "after"))
    return documented, {name: changes(before[name], after[name]) for name in before.keys() & after.keys()}


@pytest.mark.parametrize(
    "metric",
    ["memory.total_including_gaps", "memory.tile_max_including_gaps", "memory.not_always_live",
     "memory.category.variable", "liveness.peak", "liveness.peak_not_always_live"],
)  # fmt: skip
def test_the_regression_is_explained_by_the_variable_that_caused_it(regression: Any, metric: str) -> None:
    # GIVEN the samples before and after a known regression; WHEN a metric's change is explained
    documented, changed = regression
    first = explaining(changed[metric]).iloc[0]
    # THEN the variable, its layer and the source line come first
    assert first["variable"] == documented["variable"]
    assert first["layer"] == documented["variable"].rpartition("/")[0]
    assert first["location"] == documented["after"]["source"]
    # AND the numbers are the documented ones
    if metric in documented["after"]:
        assert sum(changed[metric]["change"].tolist()) == documented["after"][metric] - documented["before"][metric]


def test_the_peak_grows_by_exactly_the_variable(regression: Any) -> None:
    documented, changed = regression
    rows = changed["liveness.peak_not_always_live"]
    grown = rows[rows["change"] != 0]
    assert grown[["variable", "before", "after"]].values.tolist() == [
        [documented["variable"], 0, documented["after"]["bytes"]]
    ]
    sizes = changed["memory.total_including_gaps"].set_index("variable").loc[documented["variable"]]
    assert (sizes["before"], sizes["after"]) == (documented["before"]["bytes"], documented["after"]["bytes"])


def test_more_cycles_are_explained_by_what_works_not_by_who_waits(regression: Any) -> None:
    documented, changed = regression
    listed = explaining(changed["execution.cycles"])
    assert set(listed["location"]) == {documented["after"]["source"]}
    assert "SyncAns" not in set(listed["category"])
