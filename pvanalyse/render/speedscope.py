"""Intervals for speedscope: evented profiles, of which https://www.speedscope.app draws flame graphs.

The format: https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TextIO

import numpy as np

from pvanalyse.render.trace_tracks import Batch, Clock, Events, Labels, Lanes, TraceWritten, traced
from pvanalyse.tables import TableSource

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_COLUMNS = ("ipu", "type", "name", "begin", "end")
_IN_MEMORY = 1 << 20  # bytes of a profile before they go into a file


def write_speedscope(
    source: TableSource,
    out: TextIO,
    name: str = "",
    runs: Sequence[int] | None = None,
    ipus: Sequence[int] | None = None,
) -> TraceWritten:
    """Write the best intervals that a report holds.

    An IPU is a profile. Intervals of it that overlap without nesting, as compute and stream copies may, lie in further
    profiles of the IPU, since a profile is one stack of frames. A frame is a name with its type. Events go through
    temporary files, one a profile; in memory are only the names.

    Parameters
    ----------
    source
        A report.
    out
        A text file.
    name
        What speedscope calls it.
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
    with ExitStack() as files:
        profiles = _Profiles(clock, files)
        slices = 0
        for batch in files.enter_context(traced(source, runs, ipus, _COLUMNS)):
            profiles.add(batch)
            slices += len(batch.frame)
        profiles.finish()
        _write(out, name, clock, profiles)
        return TraceWritten(slices, len(profiles.spools), tuple(sorted(set(profiles.ipu_of_spool))), clock.hz)


class _Spool:
    """The events of one profile."""

    def __init__(self, files: ExitStack) -> None:
        spool = tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="ascii")  # noqa: SIM115
        self.file = files.enter_context(spool)
        self.first: int | None = None
        self.last = 0

    def write(self, at: list[int], kinds: list[str], frames: list[int]) -> None:
        events = zip(at, kinds, frames, strict=True)
        lines = [f'{{"type":"{kind}","at":{time},"frame":{frame}}}' for time, kind, frame in events]
        if self.first is None:
            self.first = at[0]
        else:
            self.file.write(",\n")
        self.file.write(",\n".join(lines))
        self.last = at[-1]


class _Profiles:
    def __init__(self, clock: Clock, files: ExitStack) -> None:
        self._clock = clock
        self._files = files
        self._lanes = Lanes()
        self.labels = Labels()
        self.spools: list[_Spool] = []

    @property
    def ipu_of_spool(self) -> list[int]:
        return self._lanes.track_of_lane

    def add(self, batch: Batch) -> None:
        self._take(self._lanes.add(batch.ipu, batch.begin, batch.end, self.labels.of(batch.frame)))

    def finish(self) -> None:
        self._take(self._lanes.finish())

    def _take(self, events: Events) -> None:
        while len(self.spools) < len(self.ipu_of_spool):
            self.spools.append(_Spool(self._files))
        time = self._clock.nanoseconds(events.cycle)
        order = np.argsort(events.lane, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(events.lane[order])) + 1):
            if len(rows):
                kinds = ["C" if row < 0 else "O" for row in events.row[rows].tolist()]
                spool = self.spools[int(events.lane[rows[0]])]
                spool.write(time[rows].tolist(), kinds, events.label[rows].tolist())


def _write(out: TextIO, name: str, clock: Clock, profiles: _Profiles) -> None:
    frames = ",\n".join(json.dumps({"name": one, "file": kind}) for one, kind in profiles.labels.numbers)
    about = {"$schema": SCHEMA, "exporter": "pvanalyse", "name": name or "pvanalyse"}
    out.write(f'{json.dumps(about)[:-1]},\n"shared":{{"frames":[\n{frames}\n]}},\n"profiles":[')
    seen: dict[int, int] = {}
    for at, (spool, ipu) in enumerate(zip(profiles.spools, profiles.ipu_of_spool, strict=True)):
        seen[ipu] = seen.get(ipu, 0) + 1
        profile = {
            "type": "evented",
            "name": f"IPU {ipu}" + (f", at the same time ({seen[ipu]})" if seen[ipu] > 1 else ""),
            "unit": "nanoseconds" if clock.hz else "none",
            "startValue": spool.first or 0,
            "endValue": spool.last,
        }
        out.write(f'{"," if at else ""}\n{json.dumps(profile)[:-1]},"events":[\n')
        spool.file.seek(0)
        shutil.copyfileobj(spool.file, out)
        out.write("\n]}")
    out.write("\n]}\n")
