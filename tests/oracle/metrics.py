"""The metrics once more, by brute force: slow, exact and short enough to check by eye against their definitions.

Plain Python only, rows fetched one table at a time, sums as integers of any size and means as fractions. Nothing
here knows how the package computes its numbers; the tests hold the two against each other.

Where the definitions leave a choice, this is what is taken:

* a table that is missing and a table without rows are the same: not captured; every metric that needs it is absent;
* a value that is NULL makes the metric absent where it is the only value (a graph count) and is left out where it
  is one of many (a balance, bytes moved), the metric being absent when nothing remains;
* a ratio whose denominator is 0 is absent, and so is `memory.ipu_max_including_gaps` when an IPU has 0 tiles;
* `memory.tiles_out_of_memory` needs the target, because it needs the size of a tile;
* a step belongs to the run that its own `run_id` names; the table of runs is not needed for metrics in cycles, and a
  run without steps adds no cycles;
* everything about types of programs needs the table of programs, but a program that this table does not hold has the
  type 'Unknown'; a row of `execution_step_ipus` whose step is unknown belongs to no run and no type, and is left out;
* `execution.step_cycles.<type>` is present for the types of which there is a (step, IPU) row;
* bytes moved are 0 when there are rows of steps but none of that type, absent when all such rows are NULL;
* an interval that does not end after it begins is empty.
"""

from __future__ import annotations

import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import cbor2

Row = dict[str, Any]
Number = int | float
Interval = tuple[int, int]


def brute_force(profile: Path) -> dict[str, Number]:
    """Compute every metric of the report directory that a profile lies in."""
    with closing(sqlite3.connect(profile)) as connection:
        captured = {name: rows for name in _table_names(connection) if (rows := _rows(connection, name))}
    return {
        **_target(captured),
        **_graph(captured),
        **_memory(captured),
        **_categories(captured),
        **_liveness(captured),
        **_variables(captured),
        **_runs(captured),
        **_steps(captured),
        **_archive(profile.parent / "archive.a"),
        **_debug_info(profile.parent / "debug.cbor"),
    }


# ------------------------------------------------------------------------------------------------------- reading
def _table_names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def _rows(connection: sqlite3.Connection, table: str) -> list[Row]:
    cursor = connection.execute(f'SELECT * FROM "{table}"')
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


# --------------------------------------------------------------------------------------------------- compilation
def _target(captured: dict[str, list[Row]]) -> dict[str, Number]:
    if "target" not in captured:
        return {}
    [row] = captured["target"]
    found: dict[str, Number] = {
        f"target.{name}": row[name] for name in ("num_ipus", "num_replicas", "num_tiles", "bytes_per_tile")
    }
    found["target.clock_frequency"] = float(row["clock_frequency"])
    return found


def _graph(captured: dict[str, list[Row]]) -> dict[str, Number]:
    if "graph" not in captured:
        return {}
    [row] = captured["graph"]
    return {f"graph.{name}": value for name, value in row.items() if value is not None}


def _memory(captured: dict[str, list[Row]]) -> dict[str, Number]:
    if "tile_memory" not in captured:
        return {}
    tiles = captured["tile_memory"]
    including = [tile["total_including_gaps"] for tile in tiles]
    excluding = [tile["total_excluding_gaps"] for tile in tiles]
    overflowed = [tile["overflowed_including_gaps"] for tile in tiles]
    found: dict[str, Number] = {
        "memory.total_including_gaps": sum(including),
        "memory.total_excluding_gaps": sum(excluding),
        "memory.tile_max_including_gaps": max(including),
        "memory.tile_max_excluding_gaps": max(excluding),
        "memory.tile_mean_including_gaps": float(Fraction(sum(including), len(including))),
        "memory.tile_p99_including_gaps": float(_percentile(including, 99)),
        "memory.gaps": sum(including) - sum(excluding),
        "memory.overflowed": sum(overflowed),
        "memory.always_live": sum(tile["always_live_bytes"] for tile in tiles),
        "memory.not_always_live": sum(tile["not_always_live_bytes"] for tile in tiles),
        "memory.region.non_interleaved": sum(tile["non_interleaved_including_gaps"] for tile in tiles),
        "memory.region.interleaved": sum(tile["interleaved_including_gaps"] for tile in tiles),
        "memory.region.overflowed": sum(overflowed),
    }
    if max(including) != 0:
        found["memory.tile_balance"] = float(Fraction(sum(including), len(including)) / max(including))
    if "target" in captured:
        found |= _memory_of_target(tiles, captured["target"][0])
    return found


def _memory_of_target(tiles: list[Row], target: Row) -> dict[str, Number]:
    total = sum(tile["total_including_gaps"] for tile in tiles)
    available = target["num_tiles"] * target["bytes_per_tile"]
    out_of_memory = [
        tile
        for tile in tiles
        if tile["overflowed_including_gaps"] > 0 or tile["total_including_gaps"] > target["bytes_per_tile"]
    ]
    found: dict[str, Number] = {"memory.tiles_out_of_memory": len(out_of_memory)}
    if available != 0:
        found["memory.used_fraction"] = float(Fraction(total, available))
    if target["tiles_per_ipu"] != 0:
        by_ipu: dict[int, int] = defaultdict(int)
        for tile in tiles:
            by_ipu[tile["tile"] // target["tiles_per_ipu"]] += tile["total_including_gaps"]
        found["memory.ipu_max_including_gaps"] = max(by_ipu.values())
    return found


def _percentile(values: list[int], percent: int) -> Fraction:
    """Percentile by linear interpolation between the two values nearest to its rank."""
    ordered = sorted(values)
    rank = Fraction(percent, 100) * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


def _categories(captured: dict[str, list[Row]]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for row in captured.get("tile_memory_category", []):
        name = f"memory.category.{row['category']}"
        found[name] = found.get(name, 0) + row["non_overlapped"]
    return found


def _liveness(captured: dict[str, list[Row]]) -> dict[str, Number]:
    if "liveness_steps" not in captured:
        return {}
    steps = captured["liveness_steps"]
    peak = max(step["not_always_live_bytes"] for step in steps)
    found: dict[str, Number] = {
        "liveness.num_steps": len(steps),
        "liveness.peak_not_always_live": peak,
        "liveness.peak_step": min(step["step"] for step in steps if step["not_always_live_bytes"] == peak),
    }
    if "target" in captured and "tile_memory" in captured:
        [target] = captured["target"]
        always_live = sum(tile["always_live_bytes"] for tile in captured["tile_memory"])
        total = always_live + target["num_replicas"] * peak
        found["liveness.peak"] = total
        available = target["num_tiles"] * target["bytes_per_tile"]
        if available != 0:
            found["liveness.peak_fraction"] = float(Fraction(total, available))
    return found


def _variables(captured: dict[str, list[Row]]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    if "lowered_variables" in captured:
        found["variables.num_lowered"] = len(captured["lowered_variables"])
    if "variables" in captured:
        found["variables.num_unlowered"] = len(captured["variables"])
    return found


# ----------------------------------------------------------------------------------------------------- execution
def _runs(captured: dict[str, list[Row]]) -> dict[str, Number]:
    if "runs" not in captured:
        return {}
    return {
        "execution.num_runs": len(captured["runs"]),
        "execution.host_seconds": float(Fraction(_host_us(captured), 1_000_000)),
    }


def _host_us(captured: dict[str, list[Row]]) -> int:
    return sum(run["end_us"] - run["start_us"] for run in captured["runs"])


def _steps(captured: dict[str, list[Row]]) -> dict[str, Number]:
    if "execution_steps" not in captured:
        return {}
    found: dict[str, Number] = {"execution.num_steps": len(captured["execution_steps"])}
    if "execution_step_ipus" not in captured:
        return found
    rows = _step_rows(captured)
    found |= _cycles(rows, captured)
    if "programs" in captured:
        found |= _types(rows)
        found |= _balances(rows)
        found |= _overlap(rows)
        found |= _moved(rows, captured)
    return found


def _step_rows(captured: dict[str, list[Row]]) -> list[Row]:
    """Rows of (step, IPU), each with the run and the type of its step; 'Unknown' for an unknown program."""
    type_of = {program["program_id"]: program["type"] for program in captured.get("programs", [])}
    steps = {step["step_id"]: step for step in captured["execution_steps"]}
    rows = []
    for row in captured["execution_step_ipus"]:
        if row["step_id"] in steps:
            step = steps[row["step_id"]]
            rows.append({**row, "run_id": step["run_id"], "type": type_of.get(step["program_id"], "Unknown")})
    return rows


def _cycles(rows: list[Row], captured: dict[str, list[Row]]) -> dict[str, Number]:
    total = 0
    for run in {row["run_id"] for row in rows}:
        first = min(row["all_from_min"] for row in rows if row["run_id"] == run)
        last = max(row["all_to_max"] for row in rows if row["run_id"] == run)
        total += last - first
    found: dict[str, Number] = {"execution.cycles": total}
    if "target" in captured and captured["target"][0]["clock_frequency"] != 0:
        found["execution.seconds"] = float(total / Fraction(captured["target"][0]["clock_frequency"]))
    return found


def _types(rows: list[Row]) -> dict[str, Number]:
    cycles: dict[str, int] = defaultdict(int)
    for row in rows:
        cycles[row["type"]] += row["cycles"]
    found: dict[str, Number] = {f"execution.step_cycles.{kind}": total for kind, total in cycles.items()}
    everything = sum(cycles.values())
    if everything != 0:
        found |= {f"execution.fraction.{kind}": float(Fraction(n, everything)) for kind, n in cycles.items()}
    return found


def _balances(rows: list[Row]) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for column in ("tile_balance", "active_tile_balance"):
        values = [
            Fraction(row[column])
            for row in rows
            if row["type"] not in ("Sync", "SyncAns")
            and row["active_from_max"] != row["active_to_max"]
            and row[column] is not None
        ]
        if values:
            found[f"execution.{column}"] = float(sum(values) / len(values))
    return found


def _overlap(rows: list[Row]) -> dict[str, Number]:
    shares = []
    for run, ipu in {(row["run_id"], row["ipu"]) for row in rows}:
        here = [row for row in rows if (row["run_id"], row["ipu"]) == (run, ipu)]
        compute = [(r["active_from_max"], r["active_to_max"]) for r in here if r["type"] == "OnTileExecute"]
        stream = [(r["active_from_max"], r["active_to_max"]) for r in here if r["type"] == "StreamCopyMid"]
        in_compute, in_stream, in_both = lengths(compute, stream)
        if in_compute > 0 and in_stream > 0:
            shares.append(Fraction(in_both, min(in_compute, in_stream)))
    return {"execution.compute_io_overlap": float(sum(shares) / len(shares))} if shares else {}


def lengths(a: Iterable[Interval], b: Iterable[Interval]) -> tuple[int, int, int]:
    """Cycles in any interval of `a`, in any of `b`, and in both.

    Between two neighbouring ends of intervals nothing begins or ends: such a piece is inside an interval or outside.
    """
    a, b = list(a), list(b)
    bounds = sorted({bound for interval in a + b for bound in interval})
    in_a = in_b = in_both = 0
    for begin, end in pairwise(bounds):
        covered_by_a = any(low <= begin and end <= high for low, high in a)
        covered_by_b = any(low <= begin and end <= high for low, high in b)
        in_a += (end - begin) * covered_by_a
        in_b += (end - begin) * covered_by_b
        in_both += (end - begin) * (covered_by_a and covered_by_b)
    return in_a, in_b, in_both


def lengths_cycle_by_cycle(a: Iterable[Interval], b: Iterable[Interval]) -> tuple[int, int, int]:
    """Compute the same as `lengths`, for small numbers: every cycle is written down."""
    cycles_of_a = {cycle for begin, end in a for cycle in range(begin, end)}
    cycles_of_b = {cycle for begin, end in b for cycle in range(begin, end)}
    return len(cycles_of_a), len(cycles_of_b), len(cycles_of_a & cycles_of_b)


def _moved(rows: list[Row], captured: dict[str, list[Row]]) -> dict[str, Number]:
    moved: dict[str, int] = {}
    for name, kind, column in (
        ("execution.stream_bytes.in", "StreamCopyMid", "data_in"),
        ("execution.stream_bytes.out", "StreamCopyMid", "data_out"),
        ("execution.exchange_bytes.global", "GlobalExchange", "data_out"),
    ):
        values = [row[column] for row in rows if row["type"] == kind]
        known = [value for value in values if value is not None]
        if known or not values:
            moved[name] = sum(known)
    found: dict[str, Number] = {**moved}
    streams = [moved[name] for name in ("execution.stream_bytes.in", "execution.stream_bytes.out") if name in moved]
    if len(streams) == 2 and "runs" in captured and _host_us(captured) != 0:
        found["execution.host_bandwidth"] = float(Fraction(sum(streams) * 1_000_000, _host_us(captured)))
    return found


# --------------------------------------------------------------------------------------------------- other files
def _archive(path: Path) -> dict[str, Number]:
    if not path.exists():
        return {}
    loaded = [_loaded_bytes(content) for content in _members(path.read_bytes()) if content[:4] == b"\x7fELF"]
    return {
        "archive.num_tiles": len(loaded),
        "archive.loaded_bytes": sum(loaded),
        "archive.tile_max_loaded_bytes": max(loaded),
    }


def _members(archive: bytes) -> list[bytes]:
    """Contents of the members of an ar archive: a header of 60 bytes each, the size as decimal digits from byte 48."""
    position, members = 8, []
    while position < len(archive):
        size = int(archive[position + 48 : position + 58])
        members.append(archive[position + 60 : position + 60 + size])
        position += 60 + size + size % 2
    return members


def _loaded_bytes(elf: bytes) -> int:
    """Sum of `p_memsz` of the loaded segments of a 32-bit little-endian ELF file."""
    (first,) = struct.unpack_from("<I", elf, 28)
    entry_size, count = struct.unpack_from("<HH", elf, 42)
    headers = [struct.unpack_from("<8I", elf, first + i * entry_size) for i in range(count)]
    return sum(header[5] for header in headers if header[0] == 1)


def _debug_info(path: Path) -> dict[str, Number]:
    if not path.exists():
        return {}
    return {"debug.num_contexts": len(cbor2.loads(path.read_bytes())["contexts"])}
