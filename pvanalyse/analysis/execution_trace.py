"""One pass over the intervals of an execution, from which every question about where the cycles went is answered.

What is kept is small: sums for each cell, which is a program in a run on an IPU, and for each run and IPU the union of
the intervals of each kind of program. The intervals themselves go by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.intervals import UNKNOWN, IntervalKind, available_kinds, interval_batches
from pvanalyse.analysis.stretches import Stretches, merged, union
from pvanalyse.errors import PvanalyseError
from pvanalyse.tables import TableSource

Mask = npt.NDArray[np.bool_]
KINDS = ("compute", "exchange", "inter-IPU", "host", "sync", "other")
"""What an IPU's cycles go into; :data:`KIND_OF_TYPE` says which program does what, all others do something else."""

KIND_OF_TYPE: Mapping[str, str] = {
    "OnTileExecute": "compute",
    "DoExchange": "exchange",
    "GlobalExchange": "inter-IPU",
    "StreamCopyBegin": "host",
    "StreamCopyMid": "host",
    "StreamCopyEnd": "host",
    "streamCopy": "host",  # a block of lightweight profiling
    "Sync": "sync",
    "SyncAns": "sync",
    "InternalSync": "sync",
    "ExternalSync": "sync",
}
COPIES = ("StreamCopyMid", "streamCopy")
"""The types that move bytes between IPU and host: the other parts of a stream copy wait for it or end it."""
PATHS = ("host", "remote", "mixed", "unknown")
"""What a stream copy moves bytes to or from; see :func:`copy_paths`."""
HOST_WAIT = "StreamCopyBegin"
WORK, ANY = "work", "any"
"""Unions over all tiles: of what works, see :func:`waits`, and of everything but answers to syncs."""

_COLUMNS = ("step_id", "run_id", "ipu", "program_id", "begin", "end", "all_begin", "all_end", "cycles",
            "tile_balance", "data_in", "data_out")  # fmt: skip
_MOST_CYCLES = 2.0**62  # sums stay clear of the limits of int64
_DIRECTIONS = {"HostToDevice": "host", "DeviceToHost": "host", "RemoteToDevice": "remote", "DeviceToRemote": "remote"}


@dataclass(frozen=True)
class Trace:
    """What one pass over the intervals leaves.

    Attributes
    ----------
    source
        The report.
    kind
        What recorded the intervals.
    runs, ipus
        Which of them were asked for, None for all.
    cells
        A row for each program in a run on an IPU: ``run_id``, ``ipu``, ``program_id`` (−1 unknown), ``type``,
        ``name``, ``kind`` of :data:`KINDS`, ``path`` of :data:`PATHS` (empty for what is no stream copy),
        ``num_steps``, ``num_executions`` (those steps of which this is the first IPU, so that a step on several counts
        once), ``cycles`` and ``longest_cycles`` of a step, ``lost_cycles`` by tile balance, see
        :func:`lost_by_balance`, ``num_unknown`` steps without a balance, and ``data_in`` and ``data_out`` (Int64).
    spans
        A row for each run and IPU: ``run_id``, ``ipu``, ``first`` and ``last``, the cycles over all tiles between
        which it ran.
    steps_of_run
        Number of steps of each run, whatever the number of IPUs they ran on.
    stretches
        For each run and IPU and each of :data:`KINDS`, of ``copy:`` :data:`PATHS`, :data:`WORK` and :data:`ANY` the
        union of the intervals; a union that is empty may be missing.
    """

    source: TableSource
    kind: IntervalKind
    runs: tuple[int, ...] | None
    ipus: tuple[int, ...] | None
    cells: pd.DataFrame
    spans: pd.DataFrame
    steps_of_run: Mapping[int, int]
    stretches: Mapping[tuple[int, int], Mapping[str, Stretches]]

    def run_spans(self) -> dict[int, tuple[int, int]]:
        """Return from which cycle to which each run ran, over its IPUs."""
        by_run = self.spans.groupby("run_id", sort=True).agg({"first": "min", "last": "max"})
        return dict(zip(by_run.index.tolist(), zip(by_run["first"], by_run["last"], strict=True), strict=True))


def read_trace(
    source: TableSource,
    runs: Sequence[int] | None = None,
    ipus: Sequence[int] | None = None,
    kind: IntervalKind | None = None,
) -> Trace:
    """Make the pass.

    Parameters
    ----------
    source
        A report.
    runs, ipus
        Only these.
    kind
        What recorded the intervals; by default the best that there is.

    Raises
    ------
    NotCaptured
        The report holds no intervals.
    UsageError
        There is no such run or IPU, or the intervals do not say which run they belong to.
    PvanalyseError
        Cycles or bytes add up to more than a 64-bit number holds.
    """
    chosen = kind or next(iter(available_kinds(source)), None)
    texts = {"steps": (), "cache": ("type", "name", "destination")}.get(
        str(chosen), ("type", "name")
    )  # names cost most
    batches = interval_batches(source, kind, runs, ipus, [*_COLUMNS, *texts])
    assert chosen is not None  # else this was not captured
    pass_ = _Pass(source)
    for batch in batches:
        if len(batch):
            pass_.add(batch)
    cells, spans, stretches = pass_.cells(), pass_.spans(), pass_.stretches()
    return Trace(source, chosen, None if runs is None else tuple(runs), None if ipus is None else tuple(ipus),
                 cells, spans, pass_.steps_of_run, stretches)  # fmt: skip


def waits(kind: str, name: str) -> bool:
    """Tell whether a program waits for others rather than works.

    An answer to a sync and the beginning of a stream copy, which is where the host is waited for, do; and so does a
    sync unless its name or type says that it is internal to the IPU, which takes next to no time.
    """
    if kind == "Sync":
        return "internal" not in name.lower()
    return kind in ("SyncAns", "ExternalSync", HOST_WAIT)


def lost_by_balance(cycles: Integers, balance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cycles that tiles waited for the slowest of them: max − mean = cycles × (1 − tile balance).

    A balance of 0 cannot be where a tile works, it stands for one that is not known. NaN where it is not known and
    any cycles went by.
    """
    known = (balance > 0) | (cycles <= 0)
    share = np.where(cycles > 0, 1 - np.clip(balance, 0, 1), 0)
    return np.where(known, cycles * share, np.nan)


def copy_paths(source: TableSource) -> dict[int, str]:
    """Return for each program in ``stream_copies`` what its bytes go to or come from.

    ``host`` or ``remote`` (a remote buffer, in the memory of the host too) when all of its streams do, else ``mixed``.
    """
    paths: dict[int, str] = {}
    if source.captured("stream_copies"):
        table = source.arrow("stream_copies", ["program_id", "direction"])
        for program, direction in zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True):
            path = _DIRECTIONS.get(direction, "unknown")
            paths[program] = path if paths.get(program, path) == path else "mixed"
    return paths


def path_to(destination: str) -> str:
    """Return which of :data:`PATHS` the viewer's cache means by a destination: ``Host``, remote buffers, or both."""
    if destination == "Host":
        return "host"
    return "mixed" if re.search(r"\bHost\b", destination) else "remote"


class Programs:
    """Every program met, with what it is; batches come without names when their programs are described elsewhere."""

    def __init__(self, source: TableSource) -> None:
        self._paths = copy_paths(source)
        self._described: dict[int, tuple[str, str]] = {}
        if source.captured("programs"):
            table = source.arrow("programs", ["program_id", "type", "name"]).to_pydict()
            for program, kind, name in zip(*table.values(), strict=True):
                self._described[program] = (kind or UNKNOWN, name or "")
        self._numbers: dict[tuple[int, str, str, str | None], int] = {}
        self._traits: list[tuple[int, int, bool, bool]] = []

    def codes(self, batch: pd.DataFrame) -> Integers:
        """Return the number of each row's program."""
        if "type" in batch:
            texts = [name for name in ("program_id", "type", "name", "destination") if name in batch]
            keys = batch.groupby(texts, sort=False, dropna=False)
            rows = batch.loc[~batch.duplicated(texts), texts].astype(object)
            known = [self._number(*row) for row in rows.where(rows.notna(), None).itertuples(index=False)]
            return np.array(known, np.int64)[keys.ngroup().to_numpy()]
        code, programs = pd.factorize(batch["program_id"].to_numpy(np.int64))
        known = [self._number(one, *self._described.get(one, (UNKNOWN, ""))) for one in programs.tolist()]
        return np.array(known, np.int64)[code]

    def _number(self, program: int, kind: str, name: str, destination: str | None = None) -> int:
        key = (program, kind, name, destination)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            known = self._paths.get(program, "unknown") if destination is None else path_to(destination)
            path = PATHS.index(known) if kind in COPIES else -1
            what = KINDS.index(KIND_OF_TYPE.get(kind, "other"))
            self._traits.append((what, path, not waits(kind, name), kind != "SyncAns"))
        return self._numbers[key]

    def traits(self) -> Integers:
        """Return shape (programs, 4): position of the kind, of the path (−1 none), whether it works and counts."""
        return np.array(self._traits, np.int64).reshape(-1, 4)

    def frame(self) -> pd.DataFrame:
        """Return a row per program, in the order of their numbers."""
        keys = list(self._numbers)
        return pd.DataFrame({
            "program_id": np.array([key[0] for key in keys], np.int64),
            "type": pd.Series([key[1] for key in keys], dtype="str"),
            "name": pd.Series([key[2] for key in keys], dtype="str"),
            "kind": pd.Series([KINDS[one[0]] for one in self._traits], dtype="str"),
            "path": pd.Series(["" if one[1] < 0 else PATHS[one[1]] for one in self._traits], dtype="str"),
        })  # fmt: skip


class _Numbering:
    """Numbers values in the order in which they come."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def codes(self, values: Integers) -> Integers:
        code, distinct = pd.factorize(values)
        return np.array([self.values.setdefault(one, len(self.values)) for one in distinct.tolist()], np.int64)[code]


class _Growing:
    """Sums, or largest values, by a position that grows."""

    def __init__(self, dtype: type, start: int, take: Any = np.add) -> None:
        self._values: npt.NDArray[Any] = np.full(1024, start, dtype)
        self._start, self._take, self._magnitude = start, take, 0.0

    def add(self, at: Integers, values: npt.NDArray[Any], size: int) -> None:
        if size > len(self._values):
            more = np.full(max(size, 2 * len(self._values)) - len(self._values), self._start, self._values.dtype)
            self._values = np.concatenate((self._values, more))
        if self._take is np.add and values.dtype.kind == "i":
            self._magnitude += float(np.abs(values.astype(np.float64)).sum())
            if self._magnitude > _MOST_CYCLES:
                raise PvanalyseError("table 'execution_step_ipus' cannot be: its cycles or bytes add up to more than "
                                     "2**62")  # fmt: skip
        self._take.at(self._values, at, values)

    def values(self, size: int) -> npt.NDArray[Any]:
        return self._values[:size]


class _Pass:
    def __init__(self, source: TableSource) -> None:
        self._programs = Programs(source)
        self._runs, self._ipus = _Numbering(), _Numbering()
        self._places, self._cells = _Numbering(), _Numbering()
        self._sums = {name: _Growing(np.int64, 0) for name in ("num_steps", "num_executions", "cycles", "num_unknown")}
        self._sums["lost_cycles"] = _Growing(np.float64, 0)
        self._longest = _Growing(np.int64, np.iinfo(np.int64).min, np.maximum)
        self._data = {name: (_Growing(np.int64, 0), _Growing(np.int64, 0)) for name in ("data_in", "data_out")}
        self._first = _Growing(np.int64, np.iinfo(np.int64).max, np.minimum)
        self._last = _Growing(np.int64, np.iinfo(np.int64).min, np.maximum)
        self._stretches: dict[int, dict[str, list[Stretches]]] = {}
        self._last_step: int | None = None
        self.steps_of_run: dict[int, int] = {}

    def add(self, batch: pd.DataFrame) -> None:
        program = self._programs.codes(batch)
        column = {name: batch[name].to_numpy() for name in _COLUMNS if name not in self._data}
        run, ipu = self._runs.codes(column["run_id"]), self._ipus.codes(column["ipu"])
        place = self._places.codes(run << 32 | ipu)
        traits = self._programs.traits()[program]
        fresh = self._first_rows(column["step_id"])
        self._add_sums(batch, self._cells.codes(place << 32 | program), column, traits, fresh)
        self._first.add(place, column["all_begin"], len(self._places.values))
        self._last.add(place, column["all_end"], len(self._places.values))
        self._count_steps(column["run_id"][fresh])
        self._add_stretches(place, column, traits)

    def _add_sums(
        self, batch: pd.DataFrame, cell: Integers, column: Mapping[str, Any], traits: Integers, fresh: Mask
    ) -> None:
        size = len(self._cells.values)
        cycles = column["cycles"]
        lost = lost_by_balance(cycles, column["tile_balance"])
        lost[traits[:, 0] == KINDS.index("sync")] = 0  # all that these do is wait
        unknown = np.isnan(lost)
        self._sums["num_steps"].add(cell, np.ones(len(cell), np.int64), size)
        self._sums["num_executions"].add(cell, fresh.astype(np.int64), size)
        self._sums["cycles"].add(cell, cycles, size)
        self._sums["num_unknown"].add(cell, unknown.astype(np.int64), size)
        self._sums["lost_cycles"].add(cell, np.where(unknown, 0, lost), size)
        self._longest.add(cell, cycles, size)
        for name, (total, known) in self._data.items():
            valid = batch[name].notna().to_numpy(bool)
            total.add(cell[valid], batch[name].fillna(0).to_numpy(np.int64)[valid], size)
            known.add(cell[valid], np.ones(int(valid.sum()), np.int64), size)

    def _first_rows(self, step: Integers) -> Mask:
        """Tell which rows are the first of their step; the rows of a step follow each other."""
        begins = self._last_step is None or int(step[0]) != self._last_step
        self._last_step = int(step[-1])
        return np.concatenate(([begins], step[1:] != step[:-1]))

    def _count_steps(self, run: Integers) -> None:
        ids, counts = np.unique(run, return_counts=True)
        for one, count in zip(ids.tolist(), counts.tolist(), strict=True):
            self.steps_of_run[one] = self.steps_of_run.get(one, 0) + count

    def _add_stretches(self, place: Integers, column: Mapping[str, Any], traits: Integers) -> None:
        order = np.argsort(place.astype(np.uint16) if len(self._places.values) < 1 << 16 else place, kind="stable")
        cuts = np.flatnonzero(np.diff(place[order])) + 1
        for rows in np.split(order, cuts):
            kept = self._stretches.setdefault(int(place[rows[0]]), {})
            for name, one in _unions(column, traits, rows):
                if len(one[0]):
                    kept.setdefault(name, []).append(one)

    def cells(self) -> pd.DataFrame:
        cells = np.array(list(self._cells.values), np.int64)
        size = len(cells)
        run, ipu = self._places_frame(cells >> 32)
        programs = self._programs.frame().iloc[cells & 0xFFFFFFFF].reset_index(drop=True)
        found: dict[str, Any] = {"run_id": run, "ipu": ipu, **{str(name): programs[name] for name in programs}}
        found |= {name: self._sums[name].values(size) for name in ("num_steps", "num_executions", "cycles")}
        found["longest_cycles"] = self._longest.values(size)
        found |= {name: self._sums[name].values(size) for name in ("lost_cycles", "num_unknown")}
        for name, (total, known) in self._data.items():
            found[name] = pd.arrays.IntegerArray(total.values(size), known.values(size) == 0)
        frame = pd.DataFrame(found)
        return frame.sort_values(["run_id", "ipu", "program_id", "type", "name"], kind="stable", ignore_index=True)

    def spans(self) -> pd.DataFrame:
        size = len(self._places.values)
        run, ipu = self._places_frame(np.arange(size))
        frame = pd.DataFrame({"run_id": run, "ipu": ipu, "first": self._first.values(size),
                              "last": self._last.values(size)})  # fmt: skip
        return frame.sort_values(["run_id", "ipu"], kind="stable", ignore_index=True)

    def stretches(self) -> dict[tuple[int, int], dict[str, Stretches]]:
        runs, ipus = self._places_frame(np.arange(len(self._places.values)))
        keys = list(zip(runs.tolist(), ipus.tolist(), strict=True))
        found = {keys[at]: {name: union(parts) for name, parts in kept.items()}
                 for at, kept in self._stretches.items()}  # fmt: skip
        return dict(sorted(found.items()))

    def _places_frame(self, places: Integers) -> tuple[Integers, Integers]:
        """Return run and IPU of places."""
        codes = np.array(list(self._places.values), np.int64)[places]
        runs, ipus = (np.array(list(one.values), np.int64) for one in (self._runs, self._ipus))
        return runs[codes >> 32], ipus[codes & 0xFFFFFFFF]


def _unions(column: Mapping[str, Any], traits: Integers, rows: Integers) -> Iterator[tuple[str, Stretches]]:
    """Yield the union of the intervals of each kind and more; see :class:`Trace`."""
    begin, end, all_begin, all_end = (column[name][rows] for name in ("begin", "end", "all_begin", "all_end"))
    kind, path, works, counts = traits[rows].T
    for at, name in enumerate(KINDS):
        yield name, merged(begin[kind == at], end[kind == at])
    if (path >= 0).any():
        for at, name in enumerate(PATHS):
            yield f"copy:{name}", merged(begin[path == at], end[path == at])
    yield WORK, merged(all_begin[works > 0], all_end[works > 0])
    yield ANY, merged(all_begin[counts > 0], all_end[counts > 0])
