"""Intervals in Chrome's trace event format, which about:tracing, Perfetto and other viewers open.

The format: "Trace Event Format", https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers
from pvanalyse.render.trace_tracks import TRACKS, Batch, Clock, Labels, Lanes, TraceWritten, traced
from pvanalyse.tables import TableSource

_COLUMNS = ("step_id", "run_id", "ipu", "program_id", "type", "name", "begin", "end", "cycles", "tile_balance",
            "data_in", "data_out")  # fmt: skip
_ARGUMENTS = {"step_id": "step", "run_id": "run", "program_id": "program", "cycles": "cycles",
              "tile_balance": "tile balance", "data_in": "bytes in", "data_out": "bytes out"}  # fmt: skip
_NEVER_NEGATIVE = ("step_id", "run_id", "program_id")


def write_chrome_trace(
    source: TableSource,
    out: TextIO,
    runs: Sequence[int] | None = None,
    ipus: Sequence[int] | None = None,
) -> TraceWritten:
    """Write the best intervals that a report holds, as complete events; streamed, a line each.

    An IPU is a process, and a thread of it each of :data:`~pvanalyse.render.trace_tracks.TRACKS`; intervals on it that
    overlap without nesting lie on further threads. Times are in microseconds with three decimals, which are exact.

    Parameters
    ----------
    source
        A report.
    out
        A text file.
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
    clock = Clock.of(source)
    lanes, labels, slices, described = Lanes(), Labels(), 0, 0
    about = {"tool": "pvanalyse", "clock_hz": clock.hz, **({"remark": clock.remark} if clock.remark else {})}
    with traced(source, runs, ipus, _COLUMNS) as batches:
        out.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[\n')
        for batch in batches:
            lines = _events(batch, lanes, labels, clock)
            lines = [*_threads(lanes.track_of_lane, described), *lines]
            if lines:
                out.write((",\n" if slices else "") + ",\n".join(lines))
            described = len(lanes.track_of_lane)
            slices += len(batch.frame)
        out.write("\n]}\n")
    ipus_seen = tuple(sorted({track // len(TRACKS) for track in lanes.track_of_lane}))
    return TraceWritten(slices, described, ipus_seen, clock.hz)


def _events(batch: Batch, lanes: Lanes, labels: Labels, clock: Clock) -> list[str]:
    """Return an event for each interval, in the order in which they lie on their lanes."""
    label = labels.of(batch.frame)
    placed = lanes.add(batch.ipu * len(TRACKS) + batch.track, batch.begin, batch.end, label)
    begins = placed.row >= 0
    rows, lane = placed.row[begins], placed.lane[begins]
    time = clock.nanoseconds(batch.begin[rows])
    duration = clock.nanoseconds(batch.end[rows]) - time
    texts = [f'"name":{json.dumps(name)},"cat":{json.dumps(kind)}' for name, kind in labels.numbers]
    columns = (label[rows], batch.ipu[rows] + 1, lane + 1, _microseconds(time), _microseconds(duration))
    arguments = _arguments(batch.frame.iloc[rows])
    return [
        f'{{"ph":"X",{texts[which]},"pid":{process},"tid":{thread},"ts":{at},"dur":{lasts},"args":{{{more}}}}}'
        for which, process, thread, at, lasts, more in zip(
            *(column.tolist() if isinstance(column, np.ndarray) else column for column in columns), arguments,
            strict=True,
        )
    ]  # fmt: skip


def _threads(track_of_lane: Sequence[int], described: int) -> Iterator[str]:
    """Yield the names of processes and threads that are new; a name may come twice."""
    for lane, track in enumerate(track_of_lane[described:], described):
        ipu, kind = divmod(track, len(TRACKS))
        for name, value in (("process_name", f"IPU {ipu}"), ("thread_name", TRACKS[kind])):
            yield _metadata(name, ipu, lane, {"name": value})
        yield _metadata("thread_sort_index", ipu, lane, {"sort_index": kind})


def _metadata(name: str, ipu: int, lane: int, arguments: dict[str, Any]) -> str:
    event = {"ph": "M", "name": name, "pid": ipu + 1, "tid": lane + 1, "args": arguments}
    return json.dumps(event, separators=(",", ":"))


def _microseconds(nanoseconds: Integers) -> list[str]:
    whole, part = np.divmod(nanoseconds, 1000)
    return [f"{us}.{ns:03d}" if ns else str(us) for us, ns in zip(whole.tolist(), part.tolist(), strict=True)]


def _arguments(frame: pd.DataFrame) -> list[str]:
    """Return what is known about each interval, as the inside of a JSON object."""
    parts: list[list[str]] = []
    for column, name in _ARGUMENTS.items():
        values = frame[column]
        known = (values >= 0 if column in _NEVER_NEGATIVE else np.isfinite(values).fillna(False)).tolist()
        text = f"{json.dumps(name)}:"
        parts.append([f"{text}{value!r}" if there else "" for value, there in zip(values.tolist(), known, strict=True)])
    return [",".join(filter(None, row)) for row in zip(*parts, strict=True)]
