"""Unions of intervals: when something went on, whatever the number of things that did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pvanalyse.analysis.columns import Integers, Reals, exact_sum

Stretches = tuple[Integers, Integers]
"""Begins and ends of half-open intervals in order that neither touch nor overlap."""

NO_STRETCHES: Stretches = (np.empty(0, np.int64), np.empty(0, np.int64))


def merged(begin: Integers, end: Integers) -> Stretches:
    """Return the union of half-open intervals; empty and inverted ones hold nothing, those that touch become one."""
    real = end > begin
    if not real.all():
        begin, end = begin[real], end[real]
    if not len(begin):
        return NO_STRETCHES
    if (begin[1:] < begin[:-1]).any():
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
    reach = np.maximum.accumulate(end)
    starts = np.flatnonzero(begin[1:] > reach[:-1]) + 1
    return np.concatenate((begin[:1], begin[starts])), np.concatenate((reach[starts - 1], reach[-1:]))


def union(parts: Sequence[Stretches]) -> Stretches:
    """Return the union of several unions."""
    if not parts:
        return NO_STRETCHES
    return merged(np.concatenate([begin for begin, _ in parts]), np.concatenate([end for _, end in parts]))


def length(stretches: Stretches) -> int:
    """Return how many cycles a union holds."""
    return exact_sum(stretches[1]) - exact_sum(stretches[0])


def complement(stretches: Stretches, first: int, last: int) -> Stretches:
    """Return what a union leaves of the interval from ``first`` to ``last``."""
    begin = np.clip(np.concatenate(([first], stretches[1])), first, None)
    end = np.clip(np.concatenate((stretches[0], [last])), None, last)
    real = end > begin
    return begin[real], end[real]


def coverage(begin: Integers, end: Integers, edges: Reals) -> Reals:
    """Return which share of each column the union of half-open intervals covers, 0 to 1."""
    begin, end = merged(begin, end)
    if not len(begin):
        return np.zeros(len(edges) - 1)
    before = np.concatenate(([0], np.cumsum(end - begin)))
    at = np.searchsorted(begin, edges, "right")
    covered = before[at] - np.where(at > 0, np.maximum(0, end[np.maximum(at, 1) - 1] - edges), 0)
    return np.asarray(np.diff(covered) / np.diff(edges))
