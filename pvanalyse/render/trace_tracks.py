"""What every trace format needs: cycles as time, and tracks on which intervals nest.

The viewers of traces draw a track as a stack of slices: one that begins within another has to end within it. What an
IPU does at the same time need not be like that, so a track has as many lanes as its intervals ask for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.errors import PvanalyseError
from pvanalyse.render.streaming import ended
from pvanalyse.tables import TableSource

TRACKS = ("compute", "exchange", "inter-IPU exchange", "sync", "stream copies", "other")
"""The tracks of an IPU, in the order in which they are shown."""
_TRACK_OF_TYPE = {
    "OnTileExecute": 0,
    "DoExchange": 1,
    "GlobalExchange": 2,
    **dict.fromkeys(("Sync", "InternalSync", "ExternalSync", "SyncAns"), 3),
    **dict.fromkeys(("StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd", "StreamCopy"), 4),
}

_MOST_LANES = 128
_LATEST_NS = (1 << 63) - 1
_HIGHEST_IPU = (1 << 31) - 2


@dataclass(frozen=True, slots=True)
class TraceWritten:
    """What was written into a trace.

    Attributes
    ----------
    slices
        As many as there are intervals.
    tracks
        Lanes that they lie on, over all IPUs.
    ipus
        Those that have any.
    clock_hz
        Of the target; None: not known, and a cycle was written as a nanosecond.
    groups
        Groups of intervals by name, which are slices of their own; only a Perfetto trace has them.
    """

    slices: int
    tracks: int
    ipus: tuple[int, ...]
    clock_hz: float | None
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock that turns cycles into time.

    Attributes
    ----------
    hz
        Cycles per second; None: not known, a cycle counts as a nanosecond.
    """

    hz: float | None

    @classmethod
    def of(cls, source: TableSource) -> Clock:
        """Return the clock of a report's target."""
        hz = only_row(source, "target").get("clock_frequency")
        return cls(hz if hz is not None and math.isfinite(hz) and hz > 0 else None)

    @property
    def remark(self) -> str:
        """What has to be known about times; empty when they are what they seem."""
        return "" if self.hz else "the clock of the target is not known: a cycle is shown as a nanosecond"

    def nanoseconds(self, cycles: Integers) -> Integers:
        """Return cycles as nanoseconds: the nearest, halves up, by exact arithmetic, so that order is kept.

        Raises
        ------
        PvanalyseError
            A cycle is before 0, or later than 2⁶³ ns, which no trace can say.
        """
        if not len(cycles):
            return cycles
        rate = Fraction(10**9) / Fraction(self.hz) if self.hz else Fraction(1)
        for cycle in (int(cycles.min()), int(cycles.max())):
            if not 0 <= cycle * rate <= _LATEST_NS - 1:
                raise PvanalyseError(f"cycle {cycle:,} is a time that a trace has no room for")
        up, down = rate.numerator, rate.denominator
        if 2 * up * down + down < 1 << 63:
            # In two parts, so that no product needs more than 64 bits.
            whole, part = np.divmod(cycles, down)
            return np.asarray(whole * up + (2 * part * up + down) // (2 * down))
        return np.array([(2 * cycle * up + down) // (2 * down) for cycle in cycles.tolist()], np.int64)


@dataclass(frozen=True, slots=True)
class Events:
    """Begins and ends on lanes, in an order that is right on each lane.

    Attributes
    ----------
    lane
        Number of the lane, over all tracks.
    cycle
        When.
    row
        The row of the batch that begins, −1 for an end.
    label
        That of the interval that begins or ends.
    """

    lane: Integers
    cycle: Integers
    row: Integers
    label: Integers

    @classmethod
    def of(cls, parts: Sequence[Integers]) -> Events:
        """Return events given as int64[n, 4] in the order of the fields."""
        return cls(*np.concatenate([np.empty((0, 4), np.int64), *parts]).T)


_Event = tuple[int, int, int, int]  # lane, cycle, row, label


class _Lane:
    __slots__ = ("latest", "number", "open")

    def __init__(self, number: int, first: int) -> None:
        self.number = number
        self.latest = first
        self.open: list[tuple[int, int]] = []  # end and label of what has not ended, outermost first


class Lanes:
    """Places intervals on lanes as they come, so that on each lane they nest and begin in order of time.

    Lanes are made when they are needed and belong to a track. Only the last ones of a track are kept open, so the
    memory does not depend on the number of intervals.

    Attributes
    ----------
    track_of_lane
        The track of each lane, by the lane's number.
    """

    def __init__(self) -> None:
        self.track_of_lane: list[int] = []
        self._lanes: dict[int, list[_Lane]] = {}

    def add(self, track: Integers, begin: Integers, end: Integers, label: Integers) -> Events:
        """Return the events of a batch of intervals, none of which ends before it begins.

        Parameters
        ----------
        track, begin, end, label
            A value per interval; the label is what :attr:`Events.label` repeats.
        """
        order = np.lexsort((-end, begin, track))  # the outer of two that begin together comes first
        parts = []
        for rows in np.split(order, np.flatnonzero(np.diff(track[order])) + 1):
            if len(rows):
                lanes = self._lanes.setdefault(int(track[rows[0]]), [])
                intervals = (rows, begin[rows], end[rows], label[rows])
                if lanes and _follow(lanes[0], *intervals[1:3]):
                    parts.append(_one_by_one(lanes[0], *intervals))
                else:
                    parts.append(self._place(int(track[rows[0]]), lanes, *intervals))
        return Events.of(parts)

    def finish(self) -> Events:
        """Return the ends of all intervals that have not ended yet."""
        events: list[_Event] = []
        for lanes in self._lanes.values():
            for lane in lanes:
                _end(lane, 0, events)
        self._lanes.clear()
        return Events.of([_array(events)])

    def _place(self, track: int, lanes: list[_Lane], *intervals: Integers) -> Integers:
        """Place the intervals (row, begin, end, label) of a track, each on the first lane that it fits."""
        events: list[_Event] = []
        for row, begin, end, label in zip(*(values.tolist() for values in intervals), strict=True):
            for lane in lanes:
                if begin < lane.latest:
                    continue
                stack = lane.open
                depth = len(stack)
                while depth and stack[depth - 1][0] <= begin:
                    depth -= 1
                if not depth or stack[depth - 1][0] >= end:
                    _end(lane, depth, events)
                    break
            else:
                lane = self._new(track, begin, lanes, events)
            lane.latest = begin
            lane.open.append((end, label))
            events.append((lane.number, begin, row, label))
        return _array(events)

    def _new(self, track: int, begin: int, lanes: list[_Lane], events: list[_Event]) -> _Lane:
        if len(lanes) == _MOST_LANES:
            _end(lanes.pop(0), 0, events)
        lane = _Lane(len(self.track_of_lane), begin)
        lanes.append(lane)
        self.track_of_lane.append(track)
        return lane


def _end(lane: _Lane, depth: int, events: list[_Event]) -> None:
    """End all but the outermost ``depth`` intervals of a lane, the innermost first."""
    while len(lane.open) > depth:
        end, label = lane.open.pop()
        events.append((lane.number, end, -1, label))


def _array(events: list[_Event]) -> Integers:
    return np.array(events, np.int64).reshape(-1, 4)


def _follow(lane: _Lane, begin: Integers, end: Integers) -> bool:
    """Tell whether intervals in order of time come one after the other, after all that is on a lane."""
    after = max([lane.latest, *(open_end for open_end, _ in lane.open[:1])])
    return bool(begin[0] >= after and (begin[1:] >= end[:-1]).all())


def _one_by_one(lane: _Lane, row: Integers, begin: Integers, end: Integers, label: Integers) -> Integers:
    """Place intervals that :func:`_follow`, as one at a time would be, but much faster; the last is left open."""
    before: list[_Event] = []
    _end(lane, 0, before)
    begins = np.stack((np.full_like(row, lane.number), begin, row, label), axis=1)
    ends = np.stack((begins[:, 0], end, np.full_like(row, -1), label), axis=1)
    lane.latest = int(begin[-1])
    lane.open.append((int(end[-1]), int(label[-1])))
    return np.concatenate((_array(before), np.stack((begins, ends), axis=1).reshape(-1, 4)[:-1]))


@dataclass(frozen=True, slots=True)
class Batch:
    """Intervals that come together.

    Attributes
    ----------
    frame
        The intervals, see :func:`pvanalyse.analysis.intervals.interval_batches`.
    ipu, track
        IPU and position in :data:`TRACKS` of each.
    begin, end
        Cycles; no interval ends before it begins.
    """

    frame: pd.DataFrame
    ipu: Integers
    track: Integers
    begin: Integers
    end: Integers

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Batch:
        """Return a batch.

        Raises
        ------
        PvanalyseError
            An IPU has a number that no process in a trace can have.
        """
        ipu = frame["ipu"].to_numpy()
        for number in (int(ipu.min()), int(ipu.max())) if len(ipu) else ():
            if not 0 <= number <= _HIGHEST_IPU:
                raise PvanalyseError(f"{number} is no number of an IPU")
        codes, types = pd.factorize(frame["type"])
        tracks = [_TRACK_OF_TYPE.get(one, len(TRACKS) - 1) for one in types.tolist()]
        begin, end = (frame[name].to_numpy() for name in ("begin", "end"))
        return cls(frame, ipu, np.array(tracks or [0], np.int64)[codes], begin, np.maximum(begin, end))


@contextmanager
def traced(
    source: TableSource, runs: Sequence[int] | None, ipus: Sequence[int] | None, columns: Sequence[str]
) -> Iterator[Iterator[Batch]]:
    """Yield the best intervals that a report holds, batch after batch; see :func:`interval_batches`.

    Raises
    ------
    NotCaptured
        The report holds no intervals.
    UsageError
        There is no such run or IPU.
    """
    with ended(interval_batches(source, runs=runs, ipus=ipus, columns=columns)) as frames:
        yield (Batch.of(frame) for frame in frames)


class Labels:
    """Numbers texts, or pairs of them, in the order in which they are first seen."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str], int] = {}

    def of(self, frame: pd.DataFrame) -> Integers:
        """Return the number of each interval's name and type; one without a name goes by its type."""
        type_codes, types = pd.factorize(frame["type"])
        name_codes, names = pd.factorize(frame["name"])
        pair_codes, pairs = pd.factorize(name_codes * len(types) + type_codes)
        name_list, type_list = names.tolist(), types.tolist()
        numbers = self.numbers
        found = []
        for pair in pairs.tolist():
            name, kind = name_list[pair // len(types)], type_list[pair % len(types)]
            found.append(numbers.setdefault((name or kind, kind), len(numbers)))
        return np.array(found, np.int64)[pair_codes]
