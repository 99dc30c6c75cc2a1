"""Where the cycles went: totals over the executed steps, in one pass over them.

An executed step has a row per IPU. Steps of different tiles may run at the same time, so the cycles of steps add up
to more than the time that passed; that is the span of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Keys, Reals, Sums, codes, integers, reals
from pvanalyse.analysis.stretches import Stretches, length, merged, union
from pvanalyse.tables import TableSource

UNKNOWN = "Unknown"
"""The type of a program that the report does not describe."""

_NO_BALANCE = ("Sync", "SyncAns")  # all that these do is wait
_COMPUTE, _STREAM = "OnTileExecute", "StreamCopyMid"
_COLUMNS = ("step_id", "ipu", "cycles", "active_from_max", "active_to_max", "all_from_min", "all_to_max",
            "tile_balance", "active_tile_balance", "data_in", "data_out")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One call of Engine::run; what was not captured is None."""

    run_id: int
    name: str = ""
    host_us: int | None = None
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutionTotals:
    """Totals over all runs; what was not captured is None or empty.

    Attributes
    ----------
    num_runs, num_steps
        Rows of ``runs`` and ``execution_steps``.
    cycles
        Sum over runs of the span from the first cycle of the first step to the last of the last, over all IPUs.
    cycles_by_type, steps_by_type
        Sum of the steps' cycles over IPUs, and the number of (step, IPU) rows, by program type.
    tile_balance, active_tile_balance
        Mean over (step, IPU) rows, without synchronisation and steps that took no time.
    compute_io_overlap
        Share of the cycles in which compute and stream copies run at the same time; see :func:`overlap`.
    stream_bytes_in, stream_bytes_out, exchange_bytes
        Bytes moved by stream copies, and sent by exchanges between IPUs.
    runs
        Each run, in order.
    """

    num_runs: int | None = None
    num_steps: int | None = None
    cycles: int | None = None
    cycles_by_type: Mapping[str, int] = field(default_factory=dict)
    steps_by_type: Mapping[str, int] = field(default_factory=dict)
    tile_balance: float | None = None
    active_tile_balance: float | None = None
    compute_io_overlap: float | None = None
    stream_bytes_in: int | None = None
    stream_bytes_out: int | None = None
    exchange_bytes: int | None = None
    runs: tuple[Run, ...] = ()

    @property
    def host_us(self) -> int | None:
        """Host time of all runs in microseconds."""
        times = [run.host_us for run in self.runs if run.host_us is not None]
        return sum(times) if self.num_runs is not None else None


def execution_totals(source: TableSource) -> ExecutionTotals:
    """Return the totals of a report's execution."""
    runs = _read_runs(source)
    totals = ExecutionTotals(
        num_runs=source.count("runs") or None,
        num_steps=source.count("execution_steps") or None,
        runs=tuple(runs.values()),
    )
    if not (source.captured("execution_steps") and source.captured("execution_step_ipus")):
        return totals
    steps = _Steps(source)
    sums = _Sums(steps)
    for batch in source.batches("execution_step_ipus", _COLUMNS):
        sums.add(batch)
    spans = sums.run_cycles()
    for run_id, cycles in spans.items():
        runs[run_id] = replace(runs.get(run_id, Run(run_id)), cycles=cycles)
    totals = replace(totals, cycles=sum(spans.values()), runs=tuple(runs.values()))
    return sums.with_types(totals) if steps.typed else totals


def overlap(first: Stretches, second: Stretches) -> float | None:
    """Return the share of the smaller of two unions of intervals that lies in the other; None when one is empty."""
    sizes = length(first), length(second)
    if not min(sizes):
        return None
    return (sum(sizes) - length(union([first, second]))) / min(sizes)


def _read_runs(source: TableSource) -> dict[int, Run]:
    if not source.captured("runs"):
        return {}
    rows = source.arrow("runs").to_pylist()
    return {
        row["run_id"]: Run(row["run_id"], row["name"] or "", (row["end_us"] or 0) - (row["start_us"] or 0))
        for row in rows
    }


class _Steps:
    """Run and program type of each executed step."""

    def __init__(self, source: TableSource) -> None:
        table = source.arrow("execution_steps", ["step_id", "run_id", "program_id"])
        self._keys = Keys(integers(table.column(0)))
        self.run_ids, self.run = np.unique(integers(table.column(1)), return_inverse=True)
        self.types: dict[str, int] = {UNKNOWN: 0}
        self.typed = source.captured("programs")
        self.type = self._types(source, integers(table.column(2))) if self.typed else np.zeros_like(self.run)

    def _types(self, source: TableSource, program_of_step: Integers) -> Integers:
        programs = source.arrow("programs", ["program_id", "type"])
        at = Keys(integers(programs.column(0))).positions(program_of_step)
        type_of_program = np.concatenate([codes(chunk, self.types) for chunk in programs.column(1).chunks])
        return np.where(at < 0, self.types[UNKNOWN], type_of_program[at])

    def rows(self, step_id: Integers) -> Integers:
        """Return the position of each step, -1 for a step that has no row of its own."""
        return self._keys.positions(step_id)


class _Sums:
    """Sums over batches of ``execution_step_ipus``."""

    def __init__(self, steps: _Steps) -> None:
        self.steps = steps
        num_types, num_runs = len(steps.types), len(steps.run_ids)
        self.cycles = Sums(num_types)
        self.rows = np.zeros(num_types, np.int64)
        self.data = {name: Sums(num_types) for name in ("data_in", "data_out")}
        self.data_rows = {name: np.zeros(num_types, np.int64) for name in self.data}
        self.first = np.full(num_runs, np.iinfo(np.int64).max)
        self.last = np.full(num_runs, np.iinfo(np.int64).min)
        self.balance = {name: _Mean() for name in ("tile_balance", "active_tile_balance")}
        self.intervals: dict[str, list[npt.NDArray[np.int64]]] = {_COMPUTE: [], _STREAM: []}
        self.has_balance = np.array([name not in _NO_BALANCE for name in steps.types])

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch into the sums; rows of a step that is not in ``execution_steps`` belong to nothing."""
        row = self.steps.rows(integers(batch.column("step_id")))
        known = row >= 0
        if not known.all():
            batch, row = batch.filter(pa.array(known)), row[known]
        column = {name: batch.column(name) for name in batch.schema.names}
        kind, run = self.steps.type[row], self.steps.run[row]
        self.cycles.add(kind, integers(column["cycles"]))
        self.rows += np.bincount(kind, minlength=len(self.rows))
        for name, total in self.data.items():
            total.add(kind, integers(column[name]))
            valid = column[name].is_valid().to_numpy(zero_copy_only=False)
            self.data_rows[name] += np.bincount(kind[valid], minlength=len(self.rows))
        self._add_spans(run, integers(column["all_from_min"]), integers(column["all_to_max"]))
        begin, end = integers(column["active_from_max"]), integers(column["active_to_max"])
        busy = (begin != end) & self.has_balance[kind]
        for name, mean in self.balance.items():
            mean.add(reals(column[name])[busy])
        for name, kept in self.intervals.items():
            chosen = (kind == self.steps.types.get(name, -1)) & (end > begin)
            kept.append(np.stack((run[chosen], integers(column["ipu"])[chosen], begin[chosen], end[chosen])))

    def _add_spans(self, run: Integers, begin: Integers, end: Integers) -> None:
        # The rows of a run follow each other, so there are few stretches of one run to take the extremes of.
        starts = np.flatnonzero(np.diff(run, prepend=-1))
        if len(starts):
            np.minimum.at(self.first, run[starts], np.minimum.reduceat(begin, starts))
            np.maximum.at(self.last, run[starts], np.maximum.reduceat(end, starts))

    def run_cycles(self) -> dict[int, int]:
        """Return the span of each run that has steps."""
        return {
            int(run_id): int(last) - int(first)
            for run_id, first, last in zip(self.steps.run_ids, self.first, self.last, strict=True)
            if first <= last
        }

    def with_types(self, totals: ExecutionTotals) -> ExecutionTotals:
        """Return the totals with those that need to know the type of a step's program."""
        seen = {name: code for name, code in self.steps.types.items() if self.rows[code]}
        return replace(
            totals,
            cycles_by_type={name: self.cycles[code] for name, code in seen.items()},
            steps_by_type={name: int(self.rows[code]) for name, code in seen.items()},
            tile_balance=self.balance["tile_balance"].value,
            active_tile_balance=self.balance["active_tile_balance"].value,
            compute_io_overlap=self._overlap(),
            stream_bytes_in=self._bytes("data_in", _STREAM),
            stream_bytes_out=self._bytes("data_out", _STREAM),
            exchange_bytes=self._bytes("data_out", "GlobalExchange"),
        )

    def _bytes(self, name: str, kind: str) -> int | None:
        code = self.steps.types.get(kind)
        if code is None or not self.rows[code]:
            return 0  # captured, and nothing was moved
        return self.data[name][code] if self.data_rows[name][code] else None

    def _overlap(self) -> float | None:
        compute, stream = (dict(_by_run_and_ipu(np.concatenate(kept, axis=1))) for kept in self.intervals.values())
        shares = [overlap(compute[key], stream[key]) for key in compute if key in stream]
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if known else None


def _by_run_and_ipu(rows: Integers) -> Iterator[tuple[tuple[int, int], Stretches]]:
    """Yield run and IPU with the union of the intervals in columns (run, ipu, begin, end)."""
    rows = rows[:, np.lexsort((rows[1], rows[0]))]
    cuts = np.flatnonzero((np.diff(rows[0]) != 0) | (np.diff(rows[1]) != 0)) + 1
    for part in np.split(rows, cuts, axis=1):
        if part.shape[1]:
            yield (int(part[0, 0]), int(part[1, 0])), merged(part[2], part[3])


class _Mean:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, values: Reals) -> None:
        known = values[~np.isnan(values)]
        self.total += float(known.sum())
        self.count += len(known)

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None
