"""Runs the compiled program: which steps, on which IPU, from which cycle to which.

Each IPU works through its steps one after another. Steps that all IPUs do together (external syncs, exchanges between
IPUs, stream copies) begin when the slowest has arrived: they cut a run into segments, within which times are sums.
An external sync lasts from an IPU's own arrival to the end of the sync, so it holds the waiting. A sync answer lasts
until the next common step begins. An overlapped stream copy takes no time from its IPU, but the common step that
follows waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import CONTAINERS, EXTERNAL_SYNC, Graph, Program
from .machine import CLOCK_HZ
from .noise import Noise
from .settings import Settings

Matrix = NDArray[np.int64]
START_SKEW = 24
"""Cycles between the first and the last tile's start of a compute set."""
_SYNC_CYCLES = {"Internal Sync": 110, EXTERNAL_SYNC: 180}
_SWITCH_CYCLES = 48
_FIRST_WAIT = 26_600_000
"""Cycles that the first stream copy of all waits for the host: 20 ms."""
_LOADED_US = 1_651_573_200_000_000


@dataclass
class Run:
    """One call of the engine.

    Attributes
    ----------
    start_us, end_us
        Host time.
    programs
        Program number of each step, shape (steps,).
    active_from, active_to
        Cycles of the tiles that work, shape (2, steps, IPUs of a replica): the earliest and the latest tile.
    all_from, all_to
        The same over all tiles.
    """

    name: str
    start_us: int
    end_us: int
    programs: NDArray[np.int64]
    active_from: Matrix
    active_to: Matrix
    all_from: Matrix
    all_to: Matrix


class Costs:
    """What each program costs on each IPU of a replica; arrays of shape (programs, IPUs).

    Attributes
    ----------
    cycles, shortest
        Cycles of the slowest and of the fastest tile that works.
    tile_balance, active_balance
        Mean over all tiles, and over those that work, of their cycles divided by the largest; NaN where nothing runs.
    skew
        Cycles by which the slowest tile starts late.
    some_idle
        Whether some tiles do nothing.
    data_in, data_out
        Bytes; -1 where the program moves none.
    """

    def __init__(self, graph: Graph, stages: int) -> None:
        shape = (len(graph.programs), stages)
        self.cycles = np.zeros(shape, np.int64)
        self.shortest = np.zeros(shape, np.int64)
        self.skew = np.zeros(shape, np.int64)
        self.some_idle = np.zeros(shape, bool)
        self.tile_balance = np.full(shape, np.nan)
        self.active_balance = np.full(shape, np.nan)
        self.data_in = np.full(shape, -1, np.int64)
        self.data_out = np.full(shape, -1, np.int64)
        for program in graph.programs:
            for ipu in program.ipus:
                self._measure(program, ipu)

    def _measure(self, program: Program, ipu: int) -> None:
        at = program.number, ipu
        self.tile_balance[at] = self.active_balance[at] = 0.0 if program.name in (EXTERNAL_SYNC, "SyncAns") else 1.0
        if program.compute_set is not None:
            self._spread(at, program.compute_set.measured[ipu])
            self.skew[at] = START_SKEW
        elif program.type in ("DoExchange", "GlobalExchange", "StreamCopyMid"):
            self._spread(at, program.exchange_cycles[ipu])
            self.shortest[at] = self.cycles[at]
            self.tile_balance[at] = self.active_balance[at] = 1.0
            self.data_in[at] = program.data_in.get(ipu, 0)
            self.data_out[at] = program.data_out.get(ipu, 0)
        else:
            fixed = {"OnEveryTileSwitch": _SWITCH_CYCLES, "StreamCopyBegin": 1_200, "StreamCopyEnd": 140}
            self.cycles[at] = fixed.get(program.type, _SYNC_CYCLES.get(program.name, 0))
            self.shortest[at] = self.cycles[at]

    def _spread(self, at: tuple[int, int], cycles: NDArray[np.int64]) -> None:
        working = cycles[cycles > 0]
        longest = int(cycles.max())
        self.cycles[at] = longest
        self.shortest[at] = int(working.min())
        self.some_idle[at] = working.size < cycles.size
        self.tile_balance[at] = int(cycles.sum()) / (cycles.size * longest)
        self.active_balance[at] = int(working.sum()) / (working.size * longest)


def run_program(graph: Graph, settings: Settings, costs: Costs) -> list[Run]:
    """Run the main control program `settings.runs` times and then, after training, fetch the weights."""
    noise = Noise(settings.seed)
    ends_us = _LOADED_US + noise.integer("loaded", 900_000, 1_100_000)
    plan = [(f"step_{number}", graph.controls[0]) for number in range(settings.runs)]
    plan += [("weightsToHost", control) for control in graph.controls[1:]]
    runs = []
    for number, (name, control) in enumerate(plan):
        start_us = ends_us + noise.integer(f"{name}:pause", 40, 400)
        launched = -(-(start_us - _LOADED_US) * CLOCK_HZ // 1_000_000)
        programs = steps_of(control)
        run = _simulate(graph, costs, programs, launched, noise, number)
        cycles = int(run.all_to.max()) - int(run.all_from.min())
        ends_us = start_us + -(-cycles * 1_000_000 // CLOCK_HZ) + noise.integer(f"{name}:host", 30, 90)
        run.name, run.start_us, run.end_us = name, start_us, ends_us
        runs.append(run)
    return runs


def steps_of(program: Program) -> NDArray[np.int64]:
    """Return the numbers of the steps that a program takes, in order; of a switch, the first case."""
    if program.type == "OnEveryTileSwitch":
        return np.concatenate([np.array([program.number]), steps_of(program.children[0])])
    if program.type not in CONTAINERS:
        return np.array([program.number])
    body = [steps_of(child) for child in program.children]
    steps = np.concatenate(body) if body else np.zeros(0, np.int64)
    return np.tile(steps, program.repeat_count or 1)


def _simulate(graph: Graph, costs: Costs, programs: NDArray[np.int64], launched: int, noise: Noise, number: int) -> Run:
    kinds = _Kinds(graph)
    cycles, skew = costs.cycles[programs], costs.skew[programs]
    common = kinds.common[programs]
    answers = kinds.answers[programs]
    overlapped = kinds.overlapped[programs]
    _host_waits(kinds.waits[programs], cycles, noise, number)
    local = ~(common | answers | overlapped)
    advance = np.where(local[:, None], cycles + skew, 0)

    # time since the segment's begin, for each step and IPU
    passed = np.cumsum(advance, axis=0) - advance
    borders = np.flatnonzero(common)
    segment = np.cumsum(common) - common
    at_border = passed[borders]
    passed -= np.concatenate([np.zeros((1, cycles.shape[1]), np.int64), at_border])[segment]

    # a segment is as long as its slowest IPU or its overlapped stream copy
    held = np.zeros(borders.size + 1, np.int64)
    np.maximum.at(held, segment[overlapped], (passed + cycles)[overlapped].max(axis=1))
    length = np.maximum(passed[borders].max(axis=1), held[:-1])
    taken = length + cycles[borders].max(axis=1)
    begins = launched + np.concatenate([[0], np.cumsum(taken)])
    common_begins = np.concatenate([begins[:-1] + length, [int(begins[-1] + passed[-1].max())]])

    start = begins[segment][:, None] + passed
    works = kinds.takes_part[programs]
    end = start + np.where(works, skew + cycles, 0)
    end = np.where(works & common[:, None], (common_begins[segment] + cycles.max(axis=1))[:, None], end)
    end = np.where(works & answers[:, None], common_begins[segment][:, None], end)
    late = start + np.where(works, skew, 0)
    fastest = np.where(works & local[:, None], start + costs.shortest[programs], end)
    fastest = np.where(works & (skew == 0), end, fastest)
    idle = costs.some_idle[programs]
    return Run(
        "",
        0,
        0,
        programs,
        np.stack([start, late]),
        np.stack([fastest, end]),
        np.stack([start, late]),
        np.stack([np.where(idle, start, fastest), end]),
    )


class _Kinds:
    """How each program behaves in time; arrays of shape (programs,), `takes_part` (programs, IPUs)."""

    def __init__(self, graph: Graph) -> None:
        programs = graph.programs
        stages = max(ipu for program in programs for ipu in program.ipus) + 1
        self.common = np.array([program.is_global for program in programs])
        self.answers = np.array([program.type == "SyncAns" for program in programs])
        self.overlapped = np.array([program.overlapped for program in programs])
        self.waits = np.array([program.type == "StreamCopyBegin" for program in programs])
        self.takes_part = np.array([[ipu in program.ipus for ipu in range(stages)] for program in programs])


def _host_waits(waits: NDArray[np.bool_], cycles: Matrix, noise: Noise, run: int) -> None:
    """Let each stream copy wait for the host, the very first one for long."""
    at = np.flatnonzero(waits)
    waited = noise.integers(f"run {run}:host", 0, 9_000, at.size)
    if run == 0:
        waited[0] += _FIRST_WAIT
    cycles[at] += waited[:, None]
