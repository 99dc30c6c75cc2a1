"""Unions of intervals against sets of single cycles."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.analysis.execution import overlap
from pvanalyse.analysis.stretches import length, merged

INTERVALS = st.lists(st.tuples(st.integers(-30, 60), st.integers(-30, 60)), max_size=12)


def columns(intervals: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    begin, end = (np.array([one[at] for one in intervals], np.int64) for at in (0, 1))
    return begin, end


def cycles(intervals: list[tuple[int, int]]) -> set[int]:
    return {cycle for begin, end in intervals for cycle in range(begin, end)}


@given(INTERVALS)
def test_the_union_covers_each_cycle_once(intervals: list[tuple[int, int]]) -> None:
    assert length(merged(*columns(intervals))) == len(cycles(intervals))


@given(INTERVALS, INTERVALS)
def test_overlap_is_the_share_of_the_smaller_union(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    mine, theirs = cycles(first), cycles(second)
    expected = len(mine & theirs) / min(len(mine), len(theirs)) if mine and theirs else None
    assert overlap(merged(*columns(first)), merged(*columns(second))) == expected


def test_touching_intervals_are_exact_beyond_the_precision_of_floats() -> None:
    begin = np.array([2**61, 2**60, 2**60 + 1], np.int64)
    end = np.array([2**61 + 3, 2**60 + 1, 2**60 + 2], np.int64)
    assert length(merged(begin, end)) == 5
