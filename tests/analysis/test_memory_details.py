"""Vertices, compute sets, exchanges, variables and the map of a tile, whole, against brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pvanalyse import Report, open_report
from pvanalyse.analysis import memory_details as details
from pvanalyse.errors import NotCaptured, UsageError
from tests.analysis.memory_cases import CONSISTENT, RANDOM, SAMPLE_NAMES, captured_of, report_of
from tests.oracle import memory as brute
from tests.oracle.frames import Captured, assert_not_captured, assert_same, outcome, plain

Case = tuple[Report, Captured]
FRAMES = ["vertices_frame", "compute_sets_frame", "exchanges_frame", "variables_frame"]
PATTERNS = [None, "a", "^$", r"v.*\d", "no such name at all"]


@pytest.fixture(scope="module", params=[*SAMPLE_NAMES, *CONSISTENT, *RANDOM])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    directory = report_of(request.param, tmp_path_factory)
    with open_report(directory) as report:
        yield report, captured_of(directory / "profile.pop")


def choices(captured: Captured) -> list[list[int] | None]:
    tiles = list(range(captured.target["num_tiles"])) if "target" in captured else [0]
    return [None, tiles[-1:], tiles[::3][::-1]]


def array(tiles: list[int] | None) -> Any:
    return None if tiles is None else np.array(tiles, np.int64)


@pytest.mark.parametrize("name", FRAMES)
def test_details_are_those_of_brute_force(case: Case, name: str) -> None:
    report, captured = case
    small = sum(map(len, captured.values())) < 5000
    for tiles in choices(captured):
        for pattern in PATTERNS if small else PATTERNS[:2]:
            found = outcome(getattr(details, name), report, array(tiles), pattern)
            assert_same(found, outcome(getattr(brute, name), captured, tiles, pattern), (name, tiles, pattern))


@pytest.mark.parametrize("pattern", ["", "a", "no such name at all"])
def test_tiles_of_variables_are_those_of_brute_force(case: Case, pattern: str) -> None:
    report, captured = case
    for tiles in choices(captured):
        found = outcome(details.variable_tiles, report, pattern, array(tiles))
        assert_same(found, outcome(brute.variable_tiles, captured, pattern, tiles), (tiles, pattern))


def test_maps_of_tiles_are_those_of_brute_force(case: Case) -> None:
    report, captured = case
    tiles = sorted({row["tile"] for row in captured.get("lowered_variables", [])}) or [0]
    for tile in tiles if len(tiles) < 20 else (tiles[0], tiles[-1]):
        found = outcome(details.memory_map, report, tile)
        assert_same(found, outcome(brute.memory_map, captured, tile), tile)


def test_a_tile_without_allocations_has_an_empty_map() -> None:
    with open_report(report_of("replicated", None)) as report:
        frame = details.memory_map(report, 10**6)
    assert len(frame) == 0
    assert list(frame.columns) == brute.memory_map(captured_of(report_of("replicated", None) / "profile.pop"), 10**6)[0]


def test_sizes_are_plain_64_bit_integers(case: Case) -> None:
    report, captured = case
    nullable = {"variable_id", "flops", "begin", "end", "first_step", "last_step"}
    texts = {"name", "type", "kind", "category", "region", "always_live"}
    questions: list[Callable[[], Any]] = [lambda name=name: getattr(details, name)(report) for name in FRAMES]
    for question in (*questions, lambda: details.memory_map(report, 0), lambda: details.variable_tiles(report, "")):
        try:
            frame = question()
        except NotCaptured as error:
            assert_not_captured(error, captured)
            continue
        for name in set(frame.columns) - texts:
            assert frame[name].dtype == "int64" or (name in nullable and frame[name].dtype == "Int64"), name


# --------------------------------------------------------------------------------------------------- the map of a tile
@pytest.fixture(
    scope="module", params=[*(name for name in SAMPLE_NAMES if name != "no_lowered_variables"), *CONSISTENT]
)
def consistent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    with open_report(report_of(request.param, tmp_path_factory)) as report:
        yield report


def test_gaps_and_allocations_make_up_the_extent_of_each_region(consistent: Report) -> None:
    target = consistent.arrow("target").to_pylist()[0]
    border = target["interleaved_begin"]
    rows = consistent.arrow("tile_memory").to_pylist()
    for row in rows if len(rows) < 20 else rows[:: len(rows) // 4]:
        # WHEN a tile's map is asked for
        frame = details.memory_map(consistent, row["tile"])
        gaps = frame[frame["kind"] == "gap"]
        gap_bytes = {"non_interleaved": gaps["bytes"].sum(), "interleaved": 0}
        if border is not None:
            above = gaps["begin"] >= border
            gap_bytes = {"non_interleaved": gaps["bytes"][~above].sum(), "interleaved": gaps["bytes"][above].sum()}
        # THEN its gaps are the difference of the stored totals with and without them
        for region, found in gap_bytes.items():
            assert found == row[f"{region}_including_gaps"] - row[f"{region}_excluding_gaps"]
        # THEN what found no place comes last
        assert frame["begin"].isna().tolist() == (frame["kind"] == "not allocated").tolist()
        assert frame["begin"].isna().is_monotonic_increasing


def test_a_map_worked_out_by_hand(make_profile: Callable[..., Path]) -> None:
    # GIVEN a tile with memory interleaved from 100 on: a variable across that border, one within another, an empty one
    columns = (("a", 10, 20, 1), ("inner", 12, 4, 2), ("across", 90, 20, None), ("empty", 15, 0, 1), ("far", 130, 2, 3),
               ("small", None, 5, 1), ("large", None, 7, 1))  # fmt: skip
    lowered = [
        (at, None, name, 0, offset, size, 4, "variable", "nonInterleaved", int(one is None), 0, 0, one)
        for at, (name, offset, size, one) in enumerate(columns)
    ]
    target = ("Ipu", "Ipu2", 1, 1, 1, 1, 1000, 1e9, 100, None, None)
    intervals = [(1, 2, 4), (1, 6, 7), (2, 0, 1)]
    directory = make_profile(
        {"target": [target], "lowered_variables": lowered, "equivalence_class_intervals": intervals}
    )
    # WHEN its map is asked for
    with open_report(directory) as report:
        frame = details.memory_map(report, 0)
    # THEN the border is no gap, the empty one shares nothing, and what found no place comes last, the largest first
    brief = ["begin", "end", "kind", "name", "first_step", "last_step", "overlaps"]
    assert plain(frame[brief])[1] == [
        (0, 10, "gap", "", None, None, 0),
        (10, 30, "allocation", "a", 2, 7, 1),
        (12, 16, "allocation", "inner", 0, 1, 1),
        (15, 15, "allocation", "empty", 2, 7, 0),
        (30, 90, "gap", "", None, None, 0),
        (90, 110, "allocation", "across", None, None, 0),
        (110, 130, "gap", "", None, None, 0),
        (130, 132, "allocation", "far", None, None, 0),
        (None, None, "not allocated", "large", 2, 7, 0),
        (None, None, "not allocated", "small", 2, 7, 0),
    ]


# ------------------------------------------------------------------------------------------------------- the patterns
@pytest.mark.parametrize(
    ("pattern", "caret"),
    [("(", 0), ("a[b", 1), ("ab**", 3), ("x{5,1}", 2), ("a{99999999999999}", None), ("(" * 3000 + ")" * 3000, None)],
)
@pytest.mark.parametrize("name", FRAMES)
def test_what_is_no_regular_expression_is_refused(name: str, pattern: str, caret: int | None) -> None:
    with open_report(report_of("replicated", None)) as report, pytest.raises(UsageError) as caught:
        getattr(details, name)(report, pattern=pattern)
    assert "regular expression" in str(caught.value)
    if caret is not None:
        _, shown, mark = str(caught.value).split("\n")
        assert shown.strip() == pattern
        assert mark.index("^") - (len(shown) - len(pattern)) == caret


def test_no_tiles_hold_nothing() -> None:
    with open_report(report_of("replicated", None)) as report:
        for name in FRAMES:
            frame = getattr(details, name)(report, np.array([], np.int64))
            assert len(frame) == 0
            assert list(frame.columns) == list(getattr(details, name)(report).columns)
