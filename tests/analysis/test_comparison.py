"""Reports compared: nothing differs from itself, the way back is the same, nothing is lost; and the known regression."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pvanalyse
from pvanalyse import NotCaptured, UsageError
from pvanalyse.analysis.comparison import Comparison
from pvanalyse.analysis.side_by_side import changed_rows, side_by_side
from tests.analysis.memory_cases import SAMPLE_NAMES
from tests.conftest import SAMPLES
from tests.oracle import contributions as oracle
from tests.oracle.frames import Captured
from tests.oracle.memory_reports import make_memory_report
from tests.oracle.reports import make_report
from tests.plots.sources import Rows, target, tile

FRAMES = ("metrics", "categories", "ipus", "tiles", "variables", "layers", "operations", "peak", "vertices",
          "compute_sets", "exchanges", "programs")  # fmt: skip
MAKERS: dict[str, Callable[..., Path]] = {"any": make_report, "memory": make_memory_report}
CASES = [*SAMPLE_NAMES, *(f"{kind} {seed}" for kind in MAKERS for seed in range(200, 205))]
BEFORE, AFTER = SAMPLES / "transformer_before", SAMPLES / "transformer_after"


def profile_of(case: str, directory: Path) -> Path:
    kind, _, seed = case.partition(" ")
    return MAKERS[kind](directory / case / "report", int(seed)) if seed else SAMPLES / case / "profile.pop"


def frames_of(comparison: Comparison) -> dict[str, pd.DataFrame | None]:
    """Every frame, None where a report lacks what it is about or has other tiles."""
    found: dict[str, pd.DataFrame | None] = {}
    for name in FRAMES:
        try:
            found[name] = getattr(comparison, name)
        except (NotCaptured, UsageError):
            found[name] = None
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_report_compared_with_itself_has_no_differences(tmp_path: Path, case: str) -> None:
    report = profile_of(case, tmp_path).parent
    with pvanalyse.compare(report, report) as same:
        # THEN no frame has a row that changed, and nothing is said of the targets
        for name, frame in frames_of(same).items():
            assert frame is None or changed_rows(frame).empty, name
        assert not [note for note in same.notes if "differ" in note or note.startswith("Only")]


@pytest.mark.parametrize(("first", "second"), list(pairwise(CASES)))
def test_the_way_back_is_the_same_with_the_other_sign(tmp_path: Path, first: str, second: str) -> None:
    # GIVEN two reports that have next to nothing in common
    reports = [profile_of(case, tmp_path).parent for case in (first, second)]
    with pvanalyse.compare(*reports) as there, pvanalyse.compare(*reversed(reports)) as back:
        frames, backs = frames_of(there), frames_of(back)
    for name, frame in frames.items():
        other = backs[name]
        assert (frame is None) == (other is None), name
        if frame is not None and other is not None:
            # THEN values change places and changes their sign
            assert _rows(frame, "a", "b", 1) == _rows(other, "b", "a", -1), name


def _rows(frame: pd.DataFrame, first: str, second: str, sign: int) -> list[tuple[Any, ...]]:
    keys = [name for name in ("type", frame.columns[0]) if name in frame]
    values = [[None if pd.isna(one) else one for one in frame[name].tolist()] for name in (first, second)]
    changes = [None if pd.isna(one) else sign * one for one in frame["b_change"].tolist()]
    return sorted(zip(*(frame[name].tolist() for name in keys), *values, changes, strict=True), key=repr)


@pytest.mark.parametrize("case", [*CASES, "memory 300", "memory 301", "memory 302"])
def test_values_are_those_of_brute_force(tmp_path: Path, case: str) -> None:
    # GIVEN any report, whose rows are added up by plain loops
    profile = profile_of(case, tmp_path)
    captured = Captured(profile)
    with pvanalyse.compare(profile.parent, profile.parent) as same:
        frames = frames_of(same)
    # THEN every frame has the sums of the rows of one stable name
    for name, expected in _expected(captured).items():
        frame = frames[name]
        assert frame is not None, name
        assert dict(zip(frame.iloc[:, 0].tolist(), frame["a"].tolist(), strict=True)) == expected, name


def _expected(captured: Captured) -> dict[str, Mapping[Any, int]]:
    expected: dict[str, Mapping[Any, int]] = {}
    if "tile_memory" in captured:
        expected["tiles"] = {row["tile"]: row["total_including_gaps"] for row in captured["tile_memory"]}
    if "tile_memory_category" in captured:
        expected["categories"] = _sums(captured["tile_memory_category"], "category", "non_overlapped")
    if {"vertex_types", "tile_vertices", "compute_set_vertices", "target"} <= captured.keys():
        expected["vertices"] = oracle.code_and_state_of_vertices(captured)
    if {"always_live_variables", "variable_liveness"} <= captured.keys():
        expected["variables"] = oracle.sizes_of_variables(captured)
    return expected


def _sums(rows: Sequence[Mapping[str, Any]], key: str, value: str) -> dict[Any, int]:
    sums: dict[Any, int] = defaultdict(int)
    for row in rows:
        sums[row[key]] += row[value]
    return dict(sums)


# ---------------------------------------------------------------------------------------------------- side by side
SIDES = st.lists(
    st.dictionaries(st.tuples(st.sampled_from("aAbß")), st.integers(-(2**40), 2**40)), min_size=2, max_size=4
)


@settings(deadline=None)
@given(SIDES)
def test_side_by_side_loses_nothing(sides: list[dict[tuple[str], int]]) -> None:
    frame = side_by_side(["name"], sides)
    letters = "abcd"[: len(sides)]
    # THEN each side can be read from its column, and what is missing is null and said
    for letter, side in zip(letters, sides, strict=True):
        held = frame[frame[letter].notna()]
        assert dict(zip(held["name"], held[letter], strict=True)) == {name: size for (name,), size in side.items()}
    for row in frame.to_dict("records"):
        have = [letter.upper() for letter in letters if not pd.isna(row[letter])]
        assert row["only_in"] == ("" if len(have) == len(sides) else ", ".join(have))
        for at, letter in enumerate(letters[1:], 1):
            assert row[f"{letter}_change"] == sides[at].get((row["name"],), 0) - sides[0].get((row["name"],), 0)
    largest = [max(abs(row[f"{letter}_change"]) for letter in letters[1:]) for row in frame.to_dict("records")]
    assert largest == sorted(largest, reverse=True)


# ------------------------------------------------------------------------------------------------- the known change
def test_the_regression() -> None:
    documented = json.loads((SAMPLES.parent / "tests/sample_reports/transformer_change.json").read_text("utf-8"))
    before, after = documented["before"], documented["after"]
    variable = documented["variable"]
    with pvanalyse.compare(BEFORE, AFTER) as found:
        # THEN the metrics changed as documented
        metrics = found.metrics.set_index("metric")
        for name in ("memory.always_live", "memory.not_always_live", "memory.tile_max_including_gaps",
                     "memory.total_including_gaps", "liveness.peak_not_always_live"):  # fmt: skip
            row = metrics.loc[name]
            assert (row["a"], row["b"], row["b_change"]) == (before[name], after[name], after[name] - before[name])
            assert row["b_relative"] == pytest.approx(after[name] / before[name] - 1)
        # AND only the variable and its gradient differ, the variable first
        differing = changed_rows(found.variables)
        assert differing["variable"].tolist() == [variable, f"Gradient___{variable}"]
        assert (differing["a"][0], differing["b"][0]) == (before["bytes"], after["bytes"])
        assert differing["location"][0] == after["source"]
        # AND it is the only one that entered the peak
        peak = changed_rows(found.peak)
        assert peak[["variable", "b", "b_event", "only_in"]].values.tolist() == [
            [variable, after["bytes"], "entered", "B"]
        ]
        assert changed_rows(found.operations)["location"].tolist() == [after["source"]]
        # AND each tile's change is that of the tables
        tiles = {row["tile"]: row["total_including_gaps"] for row in Captured(BEFORE / "profile.pop")["tile_memory"]}
        for row in Captured(AFTER / "profile.pop")["tile_memory"]:
            tiles[row["tile"]] = row["total_including_gaps"] - tiles[row["tile"]]
        assert dict(zip(found.tiles["tile"], found.tiles["b_change"], strict=True)) == tiles
        bins = found.tile_changes()
        for begin, end, number in bins.iloc[1:-1].itertuples(index=False):
            assert number == sum(begin <= change < end for change in tiles.values() if change)
        assert bins["num_tiles"].sum() == len(tiles)
        assert bins.values.tolist()[0] == [0, 0, sum(not change for change in tiles.values())]


def test_three_reports_are_each_compared_with_the_first() -> None:
    with pvanalyse.compare(BEFORE, AFTER, BEFORE) as found, pvanalyse.compare(BEFORE, AFTER) as two:
        assert not found.metrics["c_change"].astype(bool).any()
        pd.testing.assert_frame_equal(
            found.metrics[["metric", "a", "b", "b_change"]], two.metrics[["metric", "a", "b", "b_change"]]
        )
        assert found.contributions("liveness.peak", 2)["change"].eq(0).all()
        pd.testing.assert_frame_equal(found.contributions("liveness.peak", 1), two.contributions("liveness.peak"))


def test_other_targets_are_compared_as_far_as_that_makes_sense() -> None:
    # GIVEN reports of other tiles, replicas and IPUs
    with pvanalyse.compare(BEFORE, SAMPLES / "replicated") as found:
        # THEN that is said
        assert found.notes == [
            "The targets differ in IPUs: A 1, B 4.",
            "The targets differ in replicas: A 1, B 2.",
            "The targets differ in tiles: A 368, B 192.",
            "Sizes of variables are those of all replicas together.",
        ]
        # AND tiles are not compared one by one, but as they are distributed
        with pytest.raises(UsageError, match="different tiles.*A 368, B 192"):
            found.tiles  # noqa: B018
        quantiles = found.tile_quantiles.set_index("quantile")
        assert (quantiles["a"][1.0], quantiles["b"][1.0]) == (
            found.metric_values[0]["memory.tile_max_including_gaps"],
            found.metric_values[1]["memory.tile_max_including_gaps"],
        )
        assert set(found.ipus["only_in"]) == {"", "B"}


def test_what_only_one_report_captured() -> None:
    with pvanalyse.compare(BEFORE, SAMPLES / "no_lowered_variables") as found:
        assert "Only A captured lowered variables." in found.notes
        # THEN no change is made of what was not captured
        row = found.metrics.set_index("metric").loc["variables.num_lowered"]
        assert (row["only_in"], row["b"], row["b_change"]) == ("A", None, None)
        # AND the fullest tiles are still compared, by category
        changed = found.contributions("memory.tile_max_including_gaps")
        assert set(changed.loc[changed["category"] != "", "variable"]) == {""}
        assert changed["change"].sum() == (
            found.metric_values[1]["memory.tile_max_including_gaps"]
            - found.metric_values[0]["memory.tile_max_including_gaps"]
        )
    with pvanalyse.compare(BEFORE, SAMPLES / "out_of_memory") as found, pytest.raises(NotCaptured):
        found.programs  # noqa: B018


def test_names_that_only_numbering_tells_apart_are_matched() -> None:
    # GIVEN two compiles in which the compiler numbered its copies otherwise
    sources = [
        Rows({
            "target": [target(2, 2)], "tile_memory": [tile(0, 10), tile(1, 20)],
            "always_live_variables": [{"name": name, "variable_id": at, "bytes": size}
                                      for at, (name, size) in enumerate(variables)],
            "variables": [{"variable_id": at, "name": name} for at, (name, _) in enumerate(variables)],
            "variable_liveness": [],
        })
        for variables in ([("copy85_/a", 5), ("w_1", 7), ("x#12", 1), ("gone", 2)],
                          [("copy9_/a", 6), ("w_1", 7), ("x#13", 1), ("x#14", 1), ("new", 3)])
    ]  # fmt: skip
    found = Comparison(sources)
    # THEN they are the same, and what has no partner is listed
    assert found.variables[["variable", "a", "b", "only_in"]].astype(object).where(
        found.variables[["variable", "a", "b", "only_in"]].notna(), None
    ).values.tolist() == [
        ["new", None, 3, "B"], ["gone", 2, None, "A"], ["copy_/a", 5, 6, ""], ["x", 1, 2, ""], ["w_1", 7, 7, ""],
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------------------- refusals
def test_questions_that_cannot_be_answered() -> None:
    with pytest.raises(UsageError, match="2 to 26 reports can be compared, not 1"):
        pvanalyse.compare(BEFORE)
    with pvanalyse.compare(BEFORE, AFTER) as found:
        with pytest.raises(UsageError, match=r"no metric 'memory.tile_maxx'; did you mean memory\.tile_"):
            found.contributions("memory.tile_maxx")
        with pytest.raises(UsageError, match="'memory.tile_balance' is not made of parts"):
            found.contributions("memory.tile_balance")
        with pytest.raises(UsageError, match="there is no report 2 besides A"):
            found.contributions("liveness.peak", 2)


def test_a_comparison_shows_itself_and_escapes_names(tmp_path: Path, make_profile: Any) -> None:
    with pvanalyse.compare(BEFORE, AFTER) as found:
        html = found._repr_html_()
        assert "model/attention.py:88" in html
        text, *pictures = html.split("<img ")
        assert len(text) < 100_000
        assert len(pictures) == 3  # tiles, liveness, contributions
        assert len(html) < 300_000
        assert repr(found).startswith("<Comparison of ")
    # AND what cannot be read is said instead of raised
    (tmp_path / "a<b>").mkdir()
    (tmp_path / "a<b>" / "profile.pop").write_bytes(b"no database")
    with pvanalyse.compare(BEFORE, tmp_path / "a<b>") as broken:
        assert "a&lt;b&gt;" in broken._repr_html_()


def test_reports_that_were_given_open_stay_open() -> None:
    with pvanalyse.open_report(BEFORE) as before:
        with pvanalyse.compare(before, AFTER) as found:
            assert found.sources[0] is before
        assert before.table("programs") is not None
