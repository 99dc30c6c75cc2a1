"""Small random reports of an execution: few cycles, so that steps touch, nest, coincide, overlap and take none."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import cbor2

from tests.oracle.reports import SCHEMA, Rows

TYPES = ("OnTileExecute", "OnTileExecute", "DoExchange", "GlobalExchange", "StreamCopyBegin", "StreamCopyMid",
         "StreamCopyMid", "StreamCopyEnd", "Sync", "SyncAns", "OnEveryTileSwitch", "Something new")  # fmt: skip
NAMES = (
    "",
    "a",
    "a/b",
    "a/b/c",
    "a/c",
    "model/encoder/0/mm",
    "model/encoder/1/mm",
    "it's\n",
    "日本/語",
    "External Sync",
)
DIRECTIONS = ("HostToDevice", "DeviceToHost", "RemoteToDevice", "DeviceToRemote")
HORIZON = 60


def make_execution_report(directory: Path, seed: int) -> Path:
    """Write a random report into a directory, which is made, and return the path of its profile.pop."""
    rng = random.Random(seed)
    directory.mkdir(parents=True)
    replicas = rng.choice((1, 1, 2))
    ipus, tiles_per_ipu = replicas * rng.randint(1, 3), rng.randint(1, 5)
    tiles = ipus * tiles_per_ipu
    contexts = rng.choice((0, 6))
    programs = [_program(rng, number, tiles, contexts) for number in range(rng.randint(1, 14))]
    runs = sorted(rng.sample(range(9), rng.choice((1, 1, 2, 4))))
    steps = [
        {"step_id": step, "run_id": rng.choice(runs), "program_id": rng.randrange(len(programs) + 1),
         "cycles_by_tile": _per_tile(rng, tiles, 0.5)}
        for step in rng.sample(range(100), rng.randint(1, 40))
    ]  # fmt: skip
    rows: dict[str, Rows] = {
        "target": [{"type": "Ipu", "architecture": rng.choice(("Ipu1", "Ipu2", "Unknown")), "num_ipus": ipus,
                    "num_replicas": replicas, "tiles_per_ipu": tiles_per_ipu, "num_tiles": tiles,
                    "bytes_per_tile": 1, "clock_frequency": rng.choice((1.33e9, 10.0))}],
        "runs": [{"run_id": run, "name": f"run {run}", "start_us": run * 10, "end_us": run * 10 + 7} for run in runs],
        "programs": programs,
        "compute_sets": [
            {"compute_set_id": number, "name": f"cs/{number}", "flops": rng.choice((None, 0, 1000, 10**12)),
             "estimated_cycles_by_tile": _per_tile(rng, tiles, 0.7), "debug_context_id": _context(rng, contexts)}
            for number in range(4)
        ],
        "stream_copies": [
            {"program_id": program["program_id"], "stream": f"s{number}", "direction": rng.choice(DIRECTIONS), "bytes": 8}
            for program in programs for number in range(rng.choice((0, 1, 1, 2)))
        ],
        "execution_steps": steps,
        "execution_step_ipus": _step_rows(rng, [step["step_id"] for step in steps], ipus),
    }  # fmt: skip
    dropped = rng.choice(((), (), (), ("runs",), ("compute_sets",), ("stream_copies",), ("programs",),
                          ("execution_steps",), ("execution_step_ipus",)))  # fmt: skip
    kept = {name: found for name, found in rows.items() if name not in dropped}
    (directory / "profile.pop").write_bytes(_database(kept, dropped))
    if contexts:
        _write_contexts(directory / "debug.cbor", rng, contexts)
    return directory / "profile.pop"


def _database(rows: dict[str, Rows], dropped: Sequence[str]) -> bytes:
    """Return a profile.pop; made in memory, so that many are made fast."""
    with closing(sqlite3.connect(":memory:")) as connection, connection:
        connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO report_info VALUES ('layout', 'pvanalyse-1')")
        for table, records in rows.items():
            for record in records:
                places = ", ".join("?" for _ in record)
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(record)}) VALUES ({places})", tuple(record.values())
                )
        for table in dropped:
            connection.execute(f"DROP TABLE {table}")
        connection.commit()
        return connection.serialize()


def _program(rng: random.Random, number: int, tiles: int, contexts: int) -> dict[str, Any]:
    kind = rng.choice(TYPES)
    return {
        "program_id": number,
        "type": kind,
        "name": rng.choice(("Internal Sync", "External Sync", "")) if kind == "Sync" else rng.choice(NAMES),
        "compute_set_id": rng.choice((None, 0, 1, 2, 3)) if kind == "OnTileExecute" else None,
        "estimated_cycles_by_tile": _per_tile(rng, tiles, 0.5) if kind == "DoExchange" else None,
        "debug_context_id": _context(rng, contexts),
    }


def _context(rng: random.Random, contexts: int) -> int | None:
    return rng.choice((None, rng.randint(1, max(1, contexts))))


def _per_tile(rng: random.Random, tiles: int, chance: float) -> bytes | None:
    return (
        struct.pack(f"<{tiles}I", *(rng.choice((0, rng.randint(0, 50))) for _ in range(tiles)))
        if rng.random() < chance
        else None
    )


def _step_rows(rng: random.Random, steps: list[int], ipus: int) -> Rows:
    backwards = rng.random() < 0.15
    rows = []
    for number, step in enumerate(steps):
        for ipu in range(ipus):
            if number and rng.random() < 0.15:
                continue
            begin, end = _interval(rng, backwards)
            all_begin, all_end = (begin, end) if rng.random() < 0.5 else _interval(rng, backwards)
            rows.append({
                "step_id": step, "ipu": ipu, "cycles": rng.choice((0, rng.randint(0, 50))),
                "active_from_min": begin, "active_from_max": begin, "active_to_min": end, "active_to_max": end,
                "all_from_min": all_begin, "all_from_max": all_begin, "all_to_min": all_end, "all_to_max": all_end,
                "tile_balance": rng.choice((None, 0.0, 1.0, rng.random())), "active_tile_balance": 1.0,
                "data_in": rng.choice((None, 0, rng.randint(0, 99))), "data_out": rng.choice((None, rng.randint(0, 99))),
            })  # fmt: skip
    if rng.random() < 0.3:  # rows of a step that is not there
        rows.append({**rows[0], "step_id": 1000})
    rng.shuffle(rows)
    return rows


def _interval(rng: random.Random, backwards: bool) -> tuple[int, int]:
    begin = rng.randint(0, HORIZON)
    end = rng.choice((begin, min(begin + rng.randint(1, 4), HORIZON), rng.randint(begin, HORIZON)))
    return (end, begin) if backwards and rng.random() < 0.2 else (begin, end)


def _write_contexts(path: Path, rng: random.Random, number: int) -> None:
    strings = ["op", "matmul", "model.py", "layer.cpp", "f", ""]
    contexts: list[dict[str, Any]] = []
    for identity in range(1, number + 1):
        one: dict[str, Any] = {"id": identity, "parentId": rng.randint(0, identity - 1), "layer": "poplar"}
        if rng.random() < 0.7:
            one["name"] = rng.choice((0, 1, 5))
        if rng.random() < 0.5:
            one["location"] = {"functionName": 4, "fileName": rng.choice((2, 3)), "lineNumber": rng.randint(1, 9)}
        contexts.append(one)
    path.write_bytes(cbor2.dumps({"contexts": contexts, "stringTable": strings}))
