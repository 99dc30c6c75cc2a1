"""What a trace has to hold, computed from profile.pop by the standard library alone, and reports to try it on."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.oracle.reports import make_report, write_profile
from tests.render.hostile import NAMES

KINDS = {
    "OnTileExecute": "compute",
    "DoExchange": "exchange",
    "GlobalExchange": "inter-IPU exchange",
    "Sync": "sync",
    "InternalSync": "sync",
    "ExternalSync": "sync",
    "SyncAns": "sync",
    "StreamCopyBegin": "stream copies",
    "StreamCopyMid": "stream copies",
    "StreamCopyEnd": "stream copies",
}
STEPS = """
    SELECT s.step_id AS step, s.run_id AS run, s.program_id AS program, i.ipu, i.active_from_max AS begin,
           i.active_to_max AS end, i.cycles, i.tile_balance, i.active_tile_balance, i.data_in, i.data_out,
           coalesce(p.type, 'Unknown') AS type, coalesce(p.name, '') AS name
    FROM execution_step_ipus i JOIN execution_steps s USING (step_id) LEFT JOIN programs p USING (program_id)
"""


@dataclass(frozen=True)
class Slice:
    """A slice as every kind of trace has it; times in nanoseconds."""

    ipu: int
    name: str
    type: str
    begin: int
    duration: int


@dataclass(frozen=True)
class Expected:
    hz: float
    rows: list[dict[str, Any]]

    def slices(self) -> Counter[Slice]:
        return Counter(self.slice(row) for row in self.rows)

    def slice(self, row: dict[str, Any]) -> Slice:
        begin, end = (nanoseconds(cycle, self.hz) for cycle in (row["begin"], max(row["begin"], row["end"])))
        return Slice(row["ipu"], row["name"] or row["type"], row["type"], begin, end - begin)


def nanoseconds(cycle: int, hz: float) -> int:
    return int(cycle * 10**9 / Fraction(hz) + Fraction(1, 2))


def expected(directory: Path, where: str = "1") -> Expected:
    """What a trace of the steps of a report has to hold."""
    with closing(sqlite3.connect(directory / "profile.pop")) as database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute(f"{STEPS} WHERE {where}")]
        (hz,) = database.execute("SELECT clock_frequency FROM target").fetchone()
    return Expected(hz, rows)


def random_report(directory: Path, seed: int) -> Path:
    """A report whose steps touch, nest, overlap, take no time and at times end before they begin."""
    make_report(directory, seed, dropped=frozenset(), emptied=frozenset(), steps=30 + 40 * (seed % 3),
                horizon=(3, 12, 60, 5000)[seed % 4], backwards=seed % 3 == 0, largest=(1000, 2**40)[seed % 2])  # fmt: skip
    return directory


def hostile_report(directory: Path) -> Path:
    """A report of two IPUs in which every name is hostile, one step each, one after the other."""
    names = {key: name.encode("utf-8", "backslashreplace").decode() for key, name in NAMES.items()}
    return given_report(directory, [(2 * at, 2 * at + 1, "OnTileExecute", name) for at, name in
                                    enumerate(names.values())], ipus=2)  # fmt: skip


def given_report(directory: Path, steps: Iterable[tuple[int, int, str, str]], ipus: int = 1, hz: float = 1e9) -> Path:
    """A report of one run in which each IPU does the same: begin, end, type and name of each step."""
    steps = list(steps)
    bounds = [
        f"{who}_{side}_{which}" for who in ("active", "all") for side in ("from", "to") for which in ("min", "max")
    ]
    directory.mkdir(parents=True, exist_ok=True)
    write_profile(directory / "profile.pop", {
        "target": [{"type": "Ipu", "architecture": "Ipu2", "num_ipus": ipus, "num_replicas": 1, "tiles_per_ipu": 2,
                    "num_tiles": 2 * ipus, "bytes_per_tile": 1, "clock_frequency": hz}],
        "runs": [{"run_id": 0, "name": "training", "start_us": 0, "end_us": 1}],
        "programs": [{"program_id": at, "type": kind, "name": name} for at, (_, _, kind, name) in enumerate(steps)],
        "execution_steps": [{"step_id": at, "run_id": 0, "program_id": at} for at in range(len(steps))],
        "execution_step_ipus": [
            {"step_id": at, "ipu": ipu, "cycles": end - begin,
             **{bound: begin if "from" in bound else end for bound in bounds}}
            for at, (begin, end, _, _) in enumerate(steps) for ipu in range(ipus)
        ],
    })  # fmt: skip
    return directory


def replayed(events: Iterable[tuple[Hashable, bool, int, Any]]) -> list[tuple[Hashable, Any, int, int, int]]:
    """Play events (track, whether it begins, time, what) of traces as viewers do: each track is a stack.

    Returns (track, what, begin, duration, depth) of each slice, in the order in which they end. Fails when a track goes
    back in time, or something ends that has not begun, or never ends.
    """
    stacks: dict[Hashable, list[tuple[Any, int]]] = defaultdict(list)
    latest: dict[Hashable, int] = defaultdict(int)
    slices = []
    for track, begins, time, what in events:
        assert time >= latest[track]
        latest[track] = time
        if begins:
            stacks[track].append((what, time))
        else:
            begun, begin = stacks[track].pop()
            slices.append((track, begun, begin, time - begin, len(stacks[track])))
    assert not any(stacks.values())
    return slices
