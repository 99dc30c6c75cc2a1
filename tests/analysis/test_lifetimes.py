"""Live bytes of all tiles at once against a loop over every allocation and step."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import open_report
from pvanalyse.analysis import lifetimes
from pvanalyse.analysis.lifetimes import Lifetimes, read_lifetimes
from tests.conftest import SAMPLES

STEPS, TILES = 9, 4


@st.composite
def allocations(draw: st.DrawFn) -> tuple[Lifetimes, dict[tuple[int, int], int]]:
    """Random lifetimes, and live bytes by (tile, step) from a plain loop."""
    interval = st.tuples(st.integers(0, STEPS - 1), st.integers(1, STEPS)).filter(lambda one: one[0] < one[1])
    classes = draw(st.lists(st.lists(interval, min_size=1, max_size=3), min_size=1, max_size=5))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, TILES - 1), st.integers(0, 50), st.integers(0, len(classes) - 1)), max_size=15
        )
    )
    expected: dict[tuple[int, int], int] = defaultdict(int)
    for tile, size, index in rows:
        for begin, end in classes[index]:
            for step in range(begin, end):
                expected[tile, step] += size
    columns = np.array(rows, np.int64).reshape(-1, 3)
    flat = np.array([one for intervals in classes for one in intervals])
    first = np.concatenate(([0], np.cumsum([len(intervals) for intervals in classes])))
    return Lifetimes(columns[:, 0].astype(np.int32), columns[:, 1], columns[:, 2].astype(np.int32),
                     np.arange(len(classes)), first, flat[:, 0], flat[:, 1], STEPS), expected  # fmt: skip


@given(allocations())
def test_curves_are_those_of_the_loop(given_: tuple[Lifetimes, dict[tuple[int, int], int]]) -> None:
    live, expected = given_
    got = live.curves(live.tile, TILES)
    assert got.tolist() == [[expected[tile, step] for step in range(STEPS)] for tile in range(TILES)]


@pytest.mark.parametrize(("cells", "dense"), [(1 << 23, 10**9), (1 << 23, 0), (15, 10**9), (15, 0)])
@given(given_=allocations())
def test_peaks_are_those_of_the_loop_however_they_are_computed(
    cells: int, dense: int, given_: tuple[Lifetimes, dict[tuple[int, int], int]]
) -> None:
    live, expected = given_
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifetimes, "_CELLS_AT_ONCE", cells)
        patch.setattr(lifetimes, "_DENSE", dense)
        size, step = live.peaks(live.tile, TILES)
    for tile in range(TILES):
        curve = [expected[tile, at] for at in range(STEPS)]
        assert (size[tile], step[tile]) == (max(curve), curve.index(max(curve)))


@pytest.mark.parametrize("sample", ["transformer_before", "out_of_memory", "replicated", "pipelined/training"])
def test_peaks_of_a_sample_are_the_stored_ones(sample: str) -> None:
    with open_report(SAMPLES / sample) as report:
        stored = report.arrow("tile_memory", ["tile", "not_always_live_bytes"]).to_pydict()
        live = read_lifetimes(report)
    size, _ = live.peaks(live.tile, len(stored["tile"]))
    assert size.tolist() == stored["not_always_live_bytes"]
