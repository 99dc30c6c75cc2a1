"""Which bytes are live on which tile at which step, for all tiles at once.

A lowered variable that is not always live belongs to an equivalence class, and a class is live during intervals of
steps. So each allocation adds its bytes where an interval begins and takes them away where it ends, and the running
sum of these changes along the steps is what is live. Nothing here loops over tiles, classes or steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pvanalyse.analysis.columns import Integers, integers
from pvanalyse.errors import PvanalyseError
from pvanalyse.tables import TableSource

Indices = npt.NDArray[np.int32]

_CELLS_AT_ONCE = 1 << 23  # of a matrix (groups, steps): 64 MB, and a few of them
_STEPS_PER_ROW = 64  # numbers of steps may have gaps, but not any
_DENSE = 32  # a matrix is filled when it has at most so many cells for each change
_COLUMNS = ("tile", "bytes", "always_live", "equivalence_class_id")


@dataclass(frozen=True)
class Lifetimes:
    """The allocations that are not always live, and when they are.

    Attributes
    ----------
    tile, bytes, class_index
        Of each allocation, shape (allocations,): its tile, its bytes, and the position of its class.
    class_ids
        Ids of the classes, shape (classes,), ascending.
    first_interval
        Where the intervals of each class start, shape (classes + 1,).
    begin, end
        Steps of each interval, half-open, shape (intervals,), those of a class together.
    num_steps
        Number of steps; all intervals lie in [0, num_steps).
    """

    tile: Indices
    bytes: Integers
    class_index: Indices
    class_ids: Integers
    first_interval: Integers
    begin: Integers
    end: Integers
    num_steps: int

    @cached_property
    def intervals_of_class(self) -> Integers:
        """Number of intervals of each class."""
        return np.diff(self.first_interval)

    def select(self, rows: npt.NDArray[Any]) -> Lifetimes:
        """Return the lifetimes of some allocations, by position or mask."""
        return Lifetimes(self.tile[rows], self.bytes[rows], self.class_index[rows], self.class_ids,
                         self.first_interval, self.begin, self.end, self.num_steps)  # fmt: skip

    def group_of(self, tiles: Integers) -> Integers:
        """Return for each allocation the position of its tile in ``tiles``, −1 where it is not among them."""
        if np.array_equal(tiles, np.arange(len(tiles))):  # all of them: no need to look
            return np.where(self.tile < len(tiles), self.tile, -1)
        order = np.argsort(tiles, kind="stable")
        at = np.minimum(np.searchsorted(tiles, self.tile, sorter=order), max(0, len(tiles) - 1))
        return np.where(tiles[order[at]] == self.tile, order[at], -1) if len(tiles) else np.full(len(self.tile), -1)

    def live_at(self, step: int) -> npt.NDArray[np.bool_]:
        """Tell for each allocation whether it is live at a step."""
        live = np.zeros(len(self.class_ids), bool)
        of_interval = np.repeat(np.arange(len(self.class_ids)), self.intervals_of_class)
        live[of_interval[(self.begin <= step) & (step < self.end)]] = True
        return live[self.class_index]

    def curves(self, group: npt.NDArray[Any], num_groups: int) -> Integers:
        """Return the live bytes of each group of allocations at each step.

        Parameters
        ----------
        group
            The group of each allocation, 0 to ``num_groups`` − 1; a negative one leaves an allocation out.
        num_groups
            Number of groups.

        Returns
        -------
        numpy.ndarray
            int64 of shape (groups, steps): as many numbers as there are cells, so ask for few groups at a time.
        """
        chosen = self.select(group >= 0) if (group < 0).any() else self
        return _dense(*chosen._changes(group[group >= 0]), num_groups, self.num_steps).astype(np.int64)

    def peaks(self, group: npt.NDArray[Any], num_groups: int) -> tuple[Integers, Integers]:
        """Return each group's peak.

        Parameters
        ----------
        group, num_groups
            As for :meth:`curves`; there may be many groups.

        Returns
        -------
        bytes, step
            int64 of shape (groups,): the largest sum of live bytes, and the first step that reaches it. A group
            with nothing live at any step has 0 bytes at step 0.
        """
        size, step = np.zeros(num_groups, np.int64), np.zeros(num_groups, np.int64)
        chosen = self.select(group >= 0) if (group < 0).any() else self
        for first, last, part, mine in chosen._parts(group[group >= 0], num_groups):
            changes = part._changes(mine)
            cells = (last - first) * (self.num_steps + 1)
            peaks = _dense_peaks if cells <= _DENSE * len(changes[0]) else _sparse_peaks
            size[first:last], step[first:last] = peaks(*changes, last - first, self.num_steps)
        return size, step

    def _parts(
        self, group: npt.NDArray[Any], num_groups: int
    ) -> Iterator[tuple[int, int, Lifetimes, npt.NDArray[Any]]]:
        """Split into parts of neighbouring groups, small enough for a matrix."""
        at_once = max(1, _CELLS_AT_ONCE // (self.num_steps + 1))
        if num_groups <= at_once:
            yield 0, num_groups, self, group
            return
        part_of = (group // at_once).astype(np.uint16 if num_groups // at_once < 2**16 else np.int64)
        order = np.argsort(part_of, kind="stable")  # a radix sort for 16 bits
        cuts = np.searchsorted(part_of[order], np.arange(num_groups // at_once + 2))
        for part, (low, high) in enumerate(pairwise(cuts)):
            first, last = part * at_once, min((part + 1) * at_once, num_groups)
            if first < last:
                rows = order[low:high]
                yield first, last, self.select(rows), group[rows] - first

    def _changes(self, group: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Integers, Integers, Integers]:
        """Return group, begin, end and bytes of every interval of every allocation."""
        counts = self.intervals_of_class[self.class_index]
        if (counts == 1).all():
            at = self.first_interval[self.class_index]
            return group, self.begin[at], self.end[at], self.bytes
        row = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = self.first_interval[self.class_index[row]] + nth
        return group[row], self.begin[at], self.end[at], self.bytes[row]


def read_lifetimes(source: TableSource) -> Lifetimes:
    """Read the lifetimes of a report's allocations.

    Raises
    ------
    NotCaptured
        The report has no lowered variables, or no intervals of their classes.
    PvanalyseError
        The steps of the report cannot be.
    """
    num_steps = number_of_steps(source)
    class_ids, first_interval, begin, end = class_intervals(source, num_steps)
    tiles, sizes, classes = [], [], []
    for batch in source.batches("lowered_variables", _COLUMNS):
        known = batch.column("equivalence_class_id").is_valid().to_numpy(zero_copy_only=False)
        known &= ~batch.column("always_live").fill_null(False).to_numpy(zero_copy_only=False)
        identity = integers(batch.column("equivalence_class_id"))[known]
        at = np.minimum(np.searchsorted(class_ids, identity), max(0, len(class_ids) - 1))
        live = class_ids[at] == identity if len(class_ids) else np.zeros(len(at), bool)
        tile = np.clip(integers(batch.column("tile")), -1, np.iinfo(np.int32).max)  # what is no tile stays none
        tiles.append(tile[known][live].astype(np.int32))
        sizes.append(integers(batch.column("bytes"))[known][live])
        classes.append(at[live].astype(np.int32))
    return Lifetimes(np.concatenate(tiles), np.concatenate(sizes), np.concatenate(classes), class_ids,
                     first_interval, begin, end, num_steps)  # fmt: skip


def number_of_steps(source: TableSource) -> int:
    """Return the number of compile-time steps: the last one, and one more.

    Raises
    ------
    PvanalyseError
        A step is negative, or far beyond what the number of rows allows: arrays of that length are not made.
    """
    steps = integers(source.arrow("liveness_steps", ["step"]).column(0))
    first, last = int(steps.min()), int(steps.max())
    if first < 0 or last >= _STEPS_PER_ROW * len(steps) + _CELLS_AT_ONCE:
        wrong = first if first < 0 else last
        raise PvanalyseError(f"table 'liveness_steps' cannot be: it has a step {wrong:,} among {len(steps):,} rows")
    return last + 1


def class_intervals(source: TableSource, num_steps: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the classes that are ever live and when they are.

    Returns
    -------
    tuple of numpy.ndarray
        int64: ids of the classes, ascending; where the intervals of each begin in the last two, and one more; begin and
        end of each interval in steps.
    """
    table = source.arrow("equivalence_class_intervals")
    table = table.filter(table.column(0).is_valid())
    identity, begin, end = (integers(table.column(at)) for at in range(3))
    begin, end = np.clip(begin, 0, num_steps), np.clip(end, 0, num_steps)
    real = begin < end
    identity, begin, end = identity[real], begin[real], end[real]
    order = np.argsort(identity, kind="stable")
    class_ids, counts = np.unique(identity, return_counts=True)
    return class_ids, np.concatenate(([0], np.cumsum(counts))), begin[order], end[order]


def _dense(
    group: npt.NDArray[Any], begin: Integers, end: Integers, size: Integers, num_groups: int, num_steps: int
) -> npt.NDArray[Any]:
    """Return the live bytes, whole numbers, of shape (groups, steps)."""
    width = num_steps + 1
    base = group.astype(np.int64) * width
    if int(size.max(initial=0)) * len(size) < 2**53:  # of any real report; then float64 weights are exact
        changes = np.bincount(base + begin, size, num_groups * width)
        changes -= np.bincount(base + end, size, num_groups * width)
    else:
        changes = np.zeros(num_groups * width, np.int64)
        np.add.at(changes, base + begin, size)
        np.subtract.at(changes, base + end, size)
    live = changes.reshape(num_groups, width)
    return np.cumsum(live, axis=1, out=live)[:, :num_steps]


def _dense_peaks(
    group: npt.NDArray[Any], begin: Integers, end: Integers, size: Integers, num_groups: int, num_steps: int
) -> tuple[Integers, Integers]:
    live = _dense(group, begin, end, size, num_groups, num_steps)
    step = live.argmax(axis=1)
    return np.take_along_axis(live, step[:, None], axis=1)[:, 0].astype(np.int64), step


def _sparse_peaks(
    group: npt.NDArray[Any], begin: Integers, end: Integers, size: Integers, num_groups: int, num_steps: int
) -> tuple[Integers, Integers]:
    """Return the same as :func:`_dense_peaks` by sorting the changes; for many steps and few changes."""
    peak, step = np.zeros(num_groups, np.int64), np.zeros(num_groups, np.int64)
    if not len(group):
        return peak, step
    base = group.astype(np.int64) * (num_steps + 1)
    key = np.concatenate((base + begin, base + end))
    order = np.argsort(key, kind="stable")
    key = key[order]
    changes = np.concatenate((size, -size))[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    # Everything that begins in a group also ends in it, so the sum is back at 0 where the next group starts.
    live = np.cumsum(np.add.reduceat(changes, starts))
    of_group = key[starts] // (num_steps + 1)
    first = np.flatnonzero(np.diff(of_group, prepend=-1))
    highest = np.maximum.reduceat(live, first)
    reached = np.flatnonzero(live == np.repeat(highest, np.diff(first, append=len(live))))
    at = reached[np.searchsorted(reached, first)]  # the first that reaches it, of each group
    peak[of_group[first]], step[of_group[first]] = highest, key[starts][at] % (num_steps + 1)
    step[peak == 0] = 0
    return peak, step
