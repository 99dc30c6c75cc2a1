"""Intervals as a Perfetto trace: TrackEvent packets, which ui.perfetto.dev and ``trace_processor`` open.

Field numbers are those of ``protos/perfetto/trace/perfetto_trace.proto``; how tracks, interned names and debug
annotations work together is told at https://perfetto.dev/docs/reference/synthetic-track-event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from pvanalyse.analysis.columns import Integers, Keys
from pvanalyse.analysis.flame import GROUPED_COLUMNS, GroupStream
from pvanalyse.analysis.liveness import live_bytes_of_programs
from pvanalyse.render.protobuf import (
    Rows,
    constant_fields,
    double_fields,
    encode_field,
    integer_fields,
    merged,
    message_fields,
)
from pvanalyse.render.trace_tracks import TRACKS, Batch, Clock, Events, Labels, Lanes, TraceWritten, traced
from pvanalyse.tables import TableSource

_TRACE_PACKET = 1
# TracePacket
_TIMESTAMP, _SEQUENCE_ID, _TRACK_EVENT, _INTERNED, _SEQUENCE_FLAGS, _TRACK_DESCRIPTOR = 8, 10, 11, 12, 13, 60
_STATE_CLEARED, _NEEDS_STATE = 1, 2
# TrackDescriptor
_UUID, _TRACK_NAME, _PROCESS, _PARENT, _COUNTER, _CHILD_ORDERING, _ORDER_RANK = 1, 2, 3, 5, 8, 11, 12
_EXPLICIT = 3
_PID, _PROCESS_NAME, _PROCESS_LABELS = 1, 6, 8
_COUNTER_UNIT, _SIZE_BYTES = 3, 3
# TrackEvent
_CATEGORY_IIDS, _ANNOTATIONS, _TYPE, _NAME_IID, _TRACK, _COUNTER_VALUE = 3, 4, 9, 10, 11, 30
_BEGIN, _END, _COUNT = 1, 2, 4
# InternedData and its entries
_CATEGORIES, _EVENT_NAMES, _ANNOTATION_NAMES, _IID, _ENTRY_NAME = 1, 2, 3, 1, 2
# DebugAnnotation
_ANNOTATION_IID, _INT, _DOUBLE = 1, 4, 5

_SEQUENCE = 1
_MOST_NAMES = 1 << 18  # what a reader keeps in mind; after that the names begin anew
_COLUMNS = ("step_id", "run_id", "ipu", "program_id", "type", "name", "begin", "end", "cycles", "tile_balance",
            "active_tile_balance", "data_in", "data_out")  # fmt: skip
_IDENTITIES = {"step": "step_id", "run": "run_id", "program": "program_id"}
_BALANCES = {"tile balance": "tile_balance", "active tile balance": "active_tile_balance"}
_MOVED = {"bytes in": "data_in", "bytes out": "data_out"}
LIVE = "live memory of the replica"
"""The counter of what is live and not always live."""
GROUPS = "groups"
"""The track of groups of intervals by name."""
_GROUP = "group"
_ANNOTATED = (*_IDENTITIES, "cycles", *_BALANCES, *_MOVED)


def write_perfetto(
    source: TableSource,
    out: BinaryIO,
    runs: Sequence[int] | None = None,
    ipus: Sequence[int] | None = None,
) -> TraceWritten:
    """Write the best intervals that a report holds; streamed, so the memory does not depend on their number.

    A process for each IPU has a track for each of :data:`~pvanalyse.render.trace_tracks.TRACKS`; intervals on it that
    overlap without nesting lie on tracks of the same name, which the Perfetto UI shows as one. A slice has the
    interval's name, its type as category, and step, run, program, cycles, balance and bytes as debug annotations, as
    far as they are known. Above them is a track of the groups that names make, nested, as those of
    :func:`pvanalyse.analysis.flame.flame_blocks` are.

    Counters of an IPU are the bytes that steps which have ended by then moved into and out of it, and the live memory
    of its replica: the bytes that are not always live, over the tiles of one replica, at the liveness step of the
    program that began last on the IPU, see :func:`pvanalyse.analysis.liveness.live_bytes_of_programs`. SyncAns, steps
    that took no time and programs that liveness does not know leave it as it is.

    Parameters
    ----------
    source
        A report.
    out
        A binary file.
    runs, ipus
        Only these.

    Raises
    ------
    NotCaptured
        The report holds no intervals.
    UsageError
        There is no such run or IPU.
    PvanalyseError
        A cycle or the number of an IPU is beyond what a trace can say.
    """
    trace = _Trace(out, Clock.of(source), live_bytes_of_programs(source))
    with traced(source, runs, ipus, _COLUMNS) as batches:
        for batch in batches:
            trace.add(batch)
    return trace.finish()


class _Trace:
    """A trace that is being written."""

    def __init__(self, out: BinaryIO, clock: Clock, live: tuple[Integers, Integers]) -> None:
        self._out = out
        self._clock = clock
        self._live_at, self._live_bytes = Keys(live[0]), live[1]
        self._lanes, self._group_lanes, self._labels = Lanes(), Lanes(), Labels()
        self._categories: dict[str, int] = {}
        self._category_of_label: list[int] = []
        self._descriptors = _Descriptors(out, clock.remark)
        self._moved: dict[tuple[int, str], _Total] = {}
        self._live: dict[int, _Level] = {}
        self._grouping: dict[int, GroupStream] = {}
        self._slices, self._groups = 0, 0
        self._begin_state()

    def add(self, batch: Batch) -> None:
        """Write a batch of intervals."""
        if len(self._labels.numbers) > _MOST_NAMES:
            self._begin_state()
        label = self._labels.of(batch.frame)
        self._intern()
        events = self._lanes.add(batch.ipu * len(TRACKS) + batch.track, batch.begin, batch.end, label)
        self._write(events, self._lane, batch.frame)
        self._count_moved(batch)
        self._count_live(batch)
        self._slices += len(batch.frame)
        took_time = np.flatnonzero(batch.end > batch.begin)
        intervals, of_ipu = batch.frame[list(GROUPED_COLUMNS)].take(took_time), batch.ipu[took_time]
        for ipu in np.unique(of_ipu).tolist():
            stream = self._grouping.setdefault(ipu, GroupStream())
            self._add_groups(ipu, stream.add(intervals[of_ipu == ipu]))

    def finish(self) -> TraceWritten:
        """Write the groups and the ends that are still to come."""
        for ipu, stream in self._grouping.items():
            self._add_groups(ipu, stream.finish())
        self._write(self._group_lanes.finish(), self._group_lane)
        self._write(self._lanes.finish(), self._lane)
        tracks = self._lanes.track_of_lane
        ipus = tuple(sorted({track // len(TRACKS) for track in tracks}))
        return TraceWritten(self._slices, len(tracks), ipus, self._clock.hz, self._groups)

    def _begin_state(self) -> None:
        """Begin with no interned names but those of annotations."""
        self._labels, self._categories, self._category_of_label = Labels(), {}, []
        names = [_entry(_ANNOTATION_NAMES, iid, name) for iid, name in enumerate(_ANNOTATED, 1)]
        self._out.write(_packet(encode_field(_SEQUENCE_FLAGS, _STATE_CLEARED),
                                encode_field(_INTERNED, b"".join(names))))  # fmt: skip

    def _intern(self) -> None:
        """Write the names and categories that have not been seen before; their numbers count from 1."""
        entries = []
        for (name, kind), label in list(self._labels.numbers.items())[len(self._category_of_label) :]:
            if kind not in self._categories:
                self._categories[kind] = len(self._categories) + 1
                entries.append(_entry(_CATEGORIES, self._categories[kind], kind))
            self._category_of_label.append(self._categories[kind])
            entries.append(_entry(_EVENT_NAMES, label + 1, name))
        if entries:
            self._out.write(_packet(encode_field(_SEQUENCE_FLAGS, _NEEDS_STATE),
                                    encode_field(_INTERNED, b"".join(entries))))  # fmt: skip

    def _lane(self, lane: int) -> int:
        return self._descriptors.lane(lane, self._lanes.track_of_lane[lane])

    def _group_lane(self, lane: int) -> int:
        return self._descriptors.group_lane(lane, self._group_lanes.track_of_lane[lane])

    def _add_groups(self, ipu: int, groups: pd.DataFrame) -> None:
        """Write groups of an IPU."""
        if not len(groups):
            return
        label = self._labels.of(groups.assign(type=_GROUP))
        self._intern()
        track = np.full(len(groups), ipu, np.int64)
        begin, end = (groups[name].to_numpy() for name in ("begin", "end"))
        self._write(self._group_lanes.add(track, begin, end, label), self._group_lane)
        self._groups += len(groups)

    def _write(self, events: Events, uuid_of: Callable[[int], int], frame: pd.DataFrame | None = None) -> None:
        """Write events on lanes, and what is known of the intervals that begin when they are in a frame."""
        if not len(events.lane):
            return
        used, lane = np.unique(events.lane, return_inverse=True)
        uuid = np.array([uuid_of(one) for one in used.tolist()], np.int64)[lane]
        time = self._clock.nanoseconds(events.cycle)
        begins = events.row >= 0
        ends = _packets(time[~begins], _END, uuid[~begins], [])
        if not begins.any():
            self._out.write(ends.to_bytes())
        else:
            label = events.label[begins]
            details = [integer_fields(_CATEGORY_IIDS, np.array(self._category_of_label, np.int64)[label]),
                       integer_fields(_NAME_IID, label + 1),
                       *(() if frame is None else _annotations(frame, events.row[begins]))]  # fmt: skip
            self._out.write(merged(_packets(time[begins], _BEGIN, uuid[begins], details), begins, ends))

    def _count_moved(self, batch: Batch) -> None:
        """Write the counters of bytes moved."""
        for name, column in _MOVED.items():
            values, known = _nullable(batch.frame[column])
            known = known & (values != 0)
            for one in np.unique(batch.ipu[known]).tolist():
                chosen = np.flatnonzero(known & (batch.ipu == one))
                chosen = chosen[np.argsort(batch.end[chosen], kind="stable")]
                total = self._moved.setdefault((one, name), _Total())
                self._count(one, name, *total.add(batch.end[chosen], values[chosen]))

    def _count_live(self, batch: Batch) -> None:
        """Write the counters of live memory."""
        at = self._live_at.positions(batch.frame["program_id"].to_numpy())
        known = (at >= 0) & (batch.end > batch.begin) & (batch.frame["type"] != "SyncAns").to_numpy()
        for one in np.unique(batch.ipu[known]).tolist():
            chosen = np.flatnonzero(known & (batch.ipu == one))
            chosen = chosen[np.argsort(batch.begin[chosen], kind="stable")]
            level = self._live.setdefault(one, _Level())
            self._count(one, LIVE, *level.add(batch.begin[chosen], self._live_bytes[at[chosen]]))

    def _count(self, ipu: int, name: str, at: Integers, values: Integers) -> None:
        uuid = np.full(len(at), self._descriptors.counter(ipu, name), np.int64)
        value = integer_fields(_COUNTER_VALUE, values)
        self._out.write(_packets(self._clock.nanoseconds(at), _COUNT, uuid, [value]).to_bytes())


class _Total:
    """A running total over time; what comes late counts from the latest time so far."""

    def __init__(self) -> None:
        self._latest, self._sum = 0, 0

    def add(self, at: Integers, values: Integers) -> tuple[Integers, Integers]:
        """Return the times, in order, and the total from each on."""
        at = np.maximum(at, self._latest)
        so_far = self._sum + np.cumsum(values)
        self._latest, self._sum = int(at[-1]), int(so_far[-1])
        return at, so_far


class _Level:
    """A value that changes over time; what comes late changes it at the latest time so far."""

    def __init__(self) -> None:
        self._latest, self._value = 0, -1

    def add(self, at: Integers, values: Integers) -> tuple[Integers, Integers]:
        """Return when the value changes, in order, and to what."""
        at = np.maximum(at, self._latest)
        changed = np.diff(values, prepend=self._value) != 0
        self._latest, self._value = int(at[-1]), int(values[-1])
        return at[changed], values[changed]


class _Descriptors:
    """The tracks of a trace, each described when it is first used."""

    def __init__(self, out: BinaryIO, remark: str) -> None:
        self._out = out
        self._remark = remark
        self._uuids: dict[tuple[str, int, str], int] = {}

    def lane(self, lane: int, track: int) -> int:
        """Return the uuid of a lane of a track."""
        ipu, kind = divmod(track, len(TRACKS))
        # Lanes of a track have one name, by which the UI makes them one.
        return self._uuid(("lane", lane, ""), ipu, TRACKS[kind], encode_field(_ORDER_RANK, kind + 1))

    def group_lane(self, lane: int, ipu: int) -> int:
        """Return the uuid of a lane of the groups of an IPU."""
        return self._uuid(("groups", lane, ""), ipu, GROUPS, encode_field(_ORDER_RANK, 0))

    def counter(self, ipu: int, name: str) -> int:
        """Return the uuid of a counter of bytes of an IPU."""
        unit = encode_field(_COUNTER, encode_field(_COUNTER_UNIT, _SIZE_BYTES))
        return self._uuid(("counter", ipu, name), ipu, name, unit + encode_field(_ORDER_RANK, len(TRACKS) + 1))

    def _uuid(self, key: tuple[str, int, str], ipu: int, name: str, more: bytes) -> int:
        if key not in self._uuids:
            parent = self._process(ipu)
            self._describe(key, encode_field(_PARENT, parent) + encode_field(_TRACK_NAME, name) + more)
        return self._uuids[key]

    def _process(self, ipu: int) -> int:
        key = ("process", ipu, "")
        if key not in self._uuids:
            # Process 0 is the idle process of Linux to whoever reads a trace.
            process = encode_field(_PID, ipu + 1) + encode_field(_PROCESS_NAME, f"IPU {ipu}")
            if self._remark:
                process += encode_field(_PROCESS_LABELS, self._remark)
            self._describe(key, encode_field(_PROCESS, process) + encode_field(_CHILD_ORDERING, _EXPLICIT))
        return self._uuids[key]

    def _describe(self, key: tuple[str, int, str], fields: bytes) -> None:
        self._uuids[key] = uuid = len(self._uuids) + 1
        self._out.write(_packet(encode_field(_TRACK_DESCRIPTOR, encode_field(_UUID, uuid) + fields)))


# ------------------------------------------------------------------------------------------------------------- packets
def _packet(*fields: bytes) -> bytes:
    return encode_field(_TRACE_PACKET, b"".join((encode_field(_SEQUENCE_ID, _SEQUENCE), *fields)))


def _entry(field: int, iid: int, name: str) -> bytes:
    return encode_field(field, encode_field(_IID, iid) + encode_field(_ENTRY_NAME, name))


def _packets(time: Integers, event_type: int, uuid: Integers, details: Sequence[Rows]) -> Rows:
    """Return packets with one track event each."""
    count = len(time)
    event = [constant_fields(count, _TYPE, event_type), integer_fields(_TRACK, uuid), *details]
    return message_fields(_TRACE_PACKET, [
        integer_fields(_TIMESTAMP, time),
        constant_fields(count, _SEQUENCE_ID, _SEQUENCE),
        constant_fields(count, _SEQUENCE_FLAGS, _NEEDS_STATE),
        message_fields(_TRACK_EVENT, event),
    ])  # fmt: skip


def _annotations(frame: pd.DataFrame, rows: Integers) -> Iterator[Rows]:
    """Yield the debug annotations of intervals, each where its value is known."""
    for name, column in _IDENTITIES.items():
        values = frame[column].to_numpy()[rows]
        yield _annotation(name, integer_fields(_INT, values), values >= 0)
    yield _annotation("cycles", integer_fields(_INT, frame["cycles"].to_numpy()[rows]), None)
    for name, column in _BALANCES.items():
        balance = frame[column].to_numpy()[rows]
        yield _annotation(name, double_fields(_DOUBLE, balance), ~np.isnan(balance))
    for name, column in _MOVED.items():
        values, known = _nullable(frame[column])
        yield _annotation(name, integer_fields(_INT, values[rows]), known[rows])


def _annotation(name: str, value: Rows, present: npt.NDArray[np.bool_] | None) -> Rows:
    iid = constant_fields(len(value), _ANNOTATION_IID, _ANNOTATED.index(name) + 1)
    return message_fields(_ANNOTATIONS, [iid, value], present)


def _nullable(column: pd.Series) -> tuple[Integers, npt.NDArray[np.bool_]]:
    return column.to_numpy(np.int64, na_value=0), column.notna().to_numpy()
