"""Liveness: every frame, whole, against brute force; relations between them; and cases worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pvanalyse import Report, open_report
from pvanalyse.analysis import liveness, peak_reduction
from pvanalyse.errors import NotCaptured, UsageError
from tests.analysis.memory_cases import CONSISTENT, RANDOM, SAMPLE_NAMES, captured_of, report_of
from tests.oracle import liveness as brute
from tests.oracle.frames import Captured, assert_not_captured, assert_same, outcome, plain
from tests.oracle.reports import write_profile

Case = tuple[Report, Captured]


@pytest.fixture(scope="module", params=[*SAMPLE_NAMES, *CONSISTENT, *RANDOM])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    directory = report_of(request.param, tmp_path_factory)
    with open_report(directory) as report:
        yield report, captured_of(directory / "profile.pop")


def choices(captured: Captured) -> list[list[int]]:
    tiles = list(range(captured.target["num_tiles"])) if "target" in captured else [0]
    return [tiles[-1:], tiles[::3][::-1]]


def steps_of(captured: Captured) -> list[int]:
    last = max((row["step"] for row in captured.get("liveness_steps", [])), default=0)
    return sorted({0, last // 2, last})


def array(tiles: list[int] | None) -> Any:
    return None if tiles is None else np.array(tiles, np.int64)


# --------------------------------------------------------------------------------------------------- whole frames
@pytest.mark.parametrize("always_live", [False, True])
def test_curves_are_those_of_brute_force(case: Case, always_live: bool) -> None:
    report, captured = case
    if always_live and "target" not in captured:
        pytest.skip("one replica of how many is unknown")
    scopes: list[tuple[int | None, list[int] | None]] = [(None, None), *((None, tiles) for tiles in choices(captured))]
    if "target" in captured:
        scopes += [(captured.target["num_ipus"] - 1, None), (0, [0])]
    for ipu, tiles in scopes:
        found = outcome(liveness.curve, report, ipu, array(tiles), always_live)
        assert_same(found, outcome(brute.curve, captured, ipu, tiles, always_live), (ipu, tiles))


@pytest.mark.parametrize("count", [1, 3, 10**6])
def test_peaks_are_those_of_brute_force(case: Case, count: int) -> None:
    report, captured = case
    assert_same(outcome(liveness.peaks, report, count), outcome(brute.peaks, captured, count))


def test_peaks_of_tiles_are_those_of_brute_force(case: Case) -> None:
    report, captured = case
    assert_same(outcome(liveness.tile_peaks, report), outcome(brute.tile_peaks, captured))


def test_headroom_is_that_of_brute_force(case: Case) -> None:
    report, captured = case
    for tiles in choices(captured):
        assert_same(outcome(liveness.headroom, report, array(tiles)), outcome(brute.headroom, captured, tiles))


def test_what_is_live_at_a_step_is_that_of_brute_force(case: Case) -> None:
    report, captured = case
    for step in steps_of(captured):
        for tiles in (None, *choices(captured)):
            found = outcome(liveness.live_at_frame, report, step, array(tiles))
            assert_same(found, outcome(brute.live_at, captured, step, tiles), (step, tiles))


@pytest.mark.parametrize("count", [None, 1, 3])
def test_lifetimes_are_those_of_brute_force(case: Case, count: int | None) -> None:
    report, captured = case
    assert_same(
        outcome(liveness.lifetimes_frame, report, None, count), outcome(brute.lifetimes_frame, captured, None, count)
    )
    names = {row["name"] for row in captured.get("variable_liveness", [])}
    found = outcome(liveness.lifetimes_frame, report, "a.*t", count)
    matched = {name for name in names if "t" in name.partition("a")[2].split("\n")[0]}
    assert_same(found, outcome(brute.lifetimes_frame, captured, matched, count))


def test_differences_are_those_of_brute_force(case: Case) -> None:
    report, captured = case
    steps = steps_of(captured)
    for first, second in ((steps[0], steps[-1]), (steps[-1], steps[len(steps) // 2]), (0, 0)):
        found = outcome(liveness.difference, report, first, second)
        assert_same(found, outcome(brute.difference, captured, first, second), (first, second))


def test_always_live_variables_are_those_of_brute_force(case: Case) -> None:
    report, captured = case
    assert_same(outcome(liveness.always_live_frame, report), outcome(brute.always_live, captured))


@pytest.mark.parametrize("reduce_by", [1, 40, 10**12])
def test_what_would_lower_the_peak_is_that_of_brute_force(case: Case, reduce_by: int) -> None:
    report, captured = case
    if reduce_by == 10**12 and len(captured.get("liveness_steps", [])) > 12:
        reduce_by = max(row["not_always_live_bytes"] for row in captured["liveness_steps"]) // 20
    # WHEN it is asked what would lower the peak
    found = outcome(peak_reduction.explain_peak, report, reduce_by)
    # THEN each row is what adding everything up afresh gives, and the set reaches the goal as far as it can be
    expected = outcome(brute.explain_peak, captured, reduce_by)
    assert_same(found, expected)
    if found != "not captured" and found[1]:
        peak = max(row["not_always_live_bytes"] for row in captured["liveness_steps"])
        assert all(row[3] > max(peak - reduce_by, 0) for row in found[1][:-1])


def test_lowering_a_consistent_peak_reaches_any_goal(consistent: Case) -> None:
    # GIVEN a report whose curve is the sum of its variables
    report, captured = consistent
    peak = max(row["not_always_live_bytes"] for row in captured["liveness_steps"])
    for reduce_by in {1, max(1, peak // 20), peak // 7 + 1} if peak else set():
        # WHEN the peak is to be lower by any number of bytes; THEN it is, and the step before was not enough
        frame = peak_reduction.explain_peak(report, reduce_by)
        assert frame["peak_after_bytes"].iloc[-1] <= peak - reduce_by
        assert (frame["peak_after_bytes"].iloc[:-1] > peak - reduce_by).all()


@pytest.mark.parametrize("worst", [1, 2, 50])
def test_candidates_for_half_precision_are_those_of_brute_force(case: Case, worst: int) -> None:
    report, captured = case
    assert_same(outcome(peak_reduction.fp16_candidates, report, worst), outcome(brute.fp16_candidates, captured, worst))


def test_what_was_not_captured_is_named(case: Case) -> None:
    report, captured = case
    questions: list[Callable[[], Any]] = [
        lambda: liveness.curve(report),
        lambda: liveness.curve(report, tiles=np.array([0])),
        lambda: liveness.peaks(report),
        lambda: liveness.tile_peaks(report),
        lambda: liveness.headroom(report, np.array([0])),
        lambda: liveness.live_at_frame(report, 0),
        lambda: liveness.live_at_frame(report, 0, np.array([0])),
        lambda: liveness.lifetimes_frame(report),
        lambda: liveness.difference(report, 0, 0),
        lambda: liveness.always_live_frame(report),
        lambda: peak_reduction.explain_peak(report, 1),
        lambda: peak_reduction.fp16_candidates(report),
    ]
    for question in questions:
        try:
            frame = question()
        except NotCaptured as error:
            assert_not_captured(error, captured)
            continue
        for name in set(frame.columns) - {
            "name",
            "element_type",
            "shape",
            "program_type",
            "program_name",
            "operation",
            "location",
        }:
            assert frame[name].dtype in ("int64", "Int64"), name


# ------------------------------------------------------------------------------------------------------- relations
WITH_LOWERED = [name for name in SAMPLE_NAMES if name != "no_lowered_variables"]


@pytest.fixture(scope="module", params=[*WITH_LOWERED, *CONSISTENT])
def consistent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    directory = report_of(request.param, tmp_path_factory)
    with open_report(directory) as report:
        yield report, captured_of(directory / "profile.pop")


def test_stored_peaks_of_tiles_are_the_computed_ones(consistent: Case) -> None:
    frame = liveness.tile_peaks(consistent[0])
    assert frame["peak_bytes"].tolist() == frame["stored_bytes"].tolist()


def test_variables_of_the_worst_tile_add_up_to_its_memory(consistent: Case) -> None:
    # GIVEN the tile with the largest peak
    report, captured = consistent
    worst = liveness.tile_peaks(report).sort_values("peak_total_bytes").iloc[-1]
    tile, step = int(worst["tile"]), int(worst["peak_step"])
    # WHEN its always-live variables, and those that live at its peak, are added up
    always = sum(row["bytes"] for row in captured["lowered_variables"] if row["tile"] == tile and row["always_live"])
    live = liveness.live_at_frame(report, step, np.array([tile]))["bytes"].sum()
    # THEN the sum is what the report stores for the tile
    stored = next(row for row in captured["tile_memory"] if row["tile"] == tile)
    assert always + live == stored["always_live_bytes"] + stored["not_always_live_bytes"]


def test_stored_curve_is_that_of_the_tiles_of_each_replica(consistent: Case) -> None:
    report, captured = consistent
    replicas = captured.target["num_replicas"]
    width = captured.target["num_tiles"] // replicas
    for replica in range(replicas):
        tiles = np.arange(replica * width, (replica + 1) * width)
        for always_live in (False, True):
            assert_same(plain(liveness.curve(report, tiles=tiles, always_live=always_live)),
                        plain(liveness.curve(report, always_live=always_live)))  # fmt: skip


def test_headroom_is_lowest_at_the_peak_of_each_tile(consistent: Case) -> None:
    report, captured = consistent
    peaks = liveness.tile_peaks(report)
    headroom = liveness.headroom(report, peaks["tile"].to_numpy()[:50])
    for tile, step, total in peaks[["tile", "peak_step", "peak_total_bytes"]].head(50).itertuples(index=False):
        assert headroom[tile].min() == headroom.loc[step, tile] == captured.target["bytes_per_tile"] - total


def test_live_variables_of_a_step_add_up_to_the_curve(consistent: Case) -> None:
    report, captured = consistent
    curve = liveness.curve(report).set_index("step")["bytes"]
    if "variable_liveness" not in captured:  # nothing is ever live
        assert not curve.any()
        return
    for step in steps_of(captured):
        assert liveness.live_at_frame(report, step)["bytes"].sum() == curve[step]


# --------------------------------------------------------------------------------------------------------- by hand
def steps_report(directory: Path, sizes: list[int]) -> Path:
    directory.mkdir()
    steps = [{"step": at, "program_id": at, "not_always_live_bytes": size} for at, size in enumerate(sizes)]
    write_profile(directory / "profile.pop", {"liveness_steps": steps})
    return directory


@pytest.mark.parametrize(
    ("sizes", "tops"),
    [
        ([5], [0]),  # a single step
        ([0, 0, 0], [0]),  # nothing is ever live
        ([0, 7, 7, 7, 0], [1]),  # a plateau counts once
        ([7, 7, 3, 9], [3, 0]),  # at both edges
        ([1, 2, 2, 3, 3, 2], [3]),  # a ledge is no peak
        ([4, 1, 4, 1, 4], [0, 2, 4]),  # equals in the order of the steps
        ([3, 2, 2, 3], [0, 3]),  # a plateau in a valley is none
        ([1, 2, 3], [2]),
    ],
)
def test_peaks_worked_out_by_hand(tmp_path: Path, sizes: list[int], tops: list[int]) -> None:
    with open_report(steps_report(tmp_path / "report", sizes)) as report:
        frame = liveness.peaks(report, 100)
    assert frame["step"].tolist() == tops
    assert frame["bytes"].tolist() == [sizes[at] for at in tops]


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=12), count=st.integers(1, 4))
def test_peaks_of_any_curve_are_those_of_brute_force(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], count: int
) -> None:
    directory = steps_report(tmp_path_factory.mktemp("steps") / "report", sizes)
    with open_report(directory) as report:
        assert_same(outcome(liveness.peaks, report, count), brute.peaks(Captured(directory / "profile.pop"), count))


def test_candidates_for_half_precision_worked_out_by_hand(make_profile: Callable[..., Path]) -> None:
    # GIVEN two tiles; on each a float and a half live at its peak, two floats share a name, one is live at another time
    target = ("Ipu", "Ipu2", 1, 1, 3, 3, 1000, 1e9, None, None, None)
    memory = [(tile, *[0] * 8, always, 0) for tile, always in enumerate((0, 50, 1))]
    variables = [(1, "w", "float", "[8]", None), (2, "h", "half", "[8]", None), (3, "w", "float", "[2]", None),
                 (4, "late", "float", None, None)]  # fmt: skip
    drawn = [(1, 0, 32, 1), (2, 0, 16, 1), (3, 0, 8, 1), (4, 0, 20, 2), (1, 1, 12, 1), (4, 2, 5, 2), (None, 1, 4, 1)]
    lowered = [(at, of, "x", tile, 0, size, 4, "variable", "nonInterleaved", 0, 0, 0, one)
               for at, (of, tile, size, one) in enumerate(drawn)]  # fmt: skip
    steps = [(0, 0, 0), (1, 0, 0)]
    profile = make_profile({"target": [target], "tile_memory": memory, "variables": variables, "liveness_steps": steps,
                            "lowered_variables": lowered, "equivalence_class_intervals": [(1, 0, 1), (2, 1, 2)]})  # fmt: skip
    # WHEN the two worst tiles are looked at: tile 1 with 50 + 16 bytes, then tile 0 with 56, both at step 0
    with open_report(profile) as report:
        frame = peak_reduction.fp16_candidates(report, worst=2)
        everywhere = peak_reduction.fp16_candidates(report, worst=3)
    # THEN the floats of one name are one candidate; what only lives elsewhere, or at another time, is none
    assert plain(frame)[1] == [("w", 52, 26, 2, 0, 20)]
    assert plain(everywhere)[1] == [("w", 52, 26, 2, 0, 20), ("late", 5, 2, 1, 2, 2)]


def test_candidates_without_lowered_variables_are_those_of_the_peak_of_a_replica() -> None:
    with open_report(report_of("no_lowered_variables", None)) as report:
        frame = peak_reduction.fp16_candidates(report)
        peak = int(liveness.peaks(report)["step"][0])
        live = liveness.live_at_frame(report, peak)
    assert frame["bytes"].sum() == live.loc[live["element_type"] == "float", "bytes"].sum() > 0
    assert frame[["num_tiles", "largest_tile", "largest_tile_saving_bytes"]].isna().all(axis=None)


def test_the_regression_between_the_transformers_is_found() -> None:
    name = "bert/encoder/layer_1/attention/self/scores:0"
    with open_report(report_of("transformer_after", None)) as report:
        spans = liveness.lifetimes_frame(report, f"^{name}$")
        peak = liveness.peaks(report).iloc[0]
    assert plain(spans[["bytes", "step_begin", "step_end"]])[1] == [(7_340_032, 41, 105)]  # live in steps 41 to 104
    assert peak["bytes"] == 45_650_176


# ---------------------------------------------------------------------------------------------------------- refusals
def test_questions_that_make_no_sense_are_refused() -> None:
    with open_report(report_of("replicated", None)) as report:
        last = int(liveness.curve(report)["step"].max())
        for question in (
            lambda: liveness.live_at_frame(report, last + 1),
            lambda: liveness.live_at_frame(report, -1),
            lambda: liveness.difference(report, 0, 10**20),
            lambda: peak_reduction.explain_peak(report, 0),
            lambda: peak_reduction.explain_peak(report, -5),
            lambda: liveness.peaks(report, 0),
            lambda: liveness.peaks(report, -1),
            lambda: liveness.lifetimes_frame(report, "("),
            lambda: liveness.lifetimes_frame(report, count=0),
            lambda: peak_reduction.fp16_candidates(report, 0),
            lambda: liveness.curve(report, ipu=99),
            lambda: liveness.curve(report, tiles=np.array([10**6]), always_live=True),
        ):
            with pytest.raises(UsageError):
                question()
