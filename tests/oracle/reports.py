"""Report directories for tests: written from given rows, or small random ones.

The contents of a random report are legal but need not agree with one another: a metric that is computed from the
columns of its definition is right for any numbers, and one that takes a short cut through other columns is not.
"""

from __future__ import annotations

import json
import random
import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cbor2

SCHEMA = Path(__file__).with_name("pvanalyse_1.sql")

Rows = list[dict[str, Any]]
Segment = tuple[int, int, int]  # p_type, p_filesz, p_memsz

NAMED_TYPES = ("OnTileExecute", "StreamCopyMid", "GlobalExchange", "Sync", "SyncAns")  # those that metrics name
OTHER_TYPES = ("DoExchange", "StreamCopyBegin", "Sequence", "Unknown", "sync", "Sync ", "On.Tile.Execute")
CATEGORIES = ("vertexCode", "controlCode", "variable", "Variable", "variable ", "internalExchangeCode", "total")
ODD_NAMES = (
    *("", "a.b.c", "it's", '"quoted"', "two\nlines\ttabs", "日本語", "🔥", "%s{}", "x; DROP TABLE runs;--"),
    *("na\u00efve", "nai\u0308ve", "\u202eabc", "\u200b"),  # composed and decomposed, right to left, invisible
)
REGIONS = ("nonInterleaved", "interleaved", "overflowed")
METRIC_TABLES = (
    *("target", "graph", "tile_memory", "tile_memory_category", "programs", "variables", "lowered_variables"),
    *("liveness_steps", "runs", "execution_steps", "execution_step_ipus"),
)
EXECUTION_TABLES = ("runs", "execution_steps", "execution_step_ipus")


# ----------------------------------------------------------------------------------------------------- given rows
def write_profile(path: Path, rows: Mapping[str, Rows], dropped: Iterable[str] = ()) -> Path:
    """Write a profile.pop with these rows by table; a column that a row does not name is NULL."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO report_info VALUES ('layout', 'pvanalyse-1')")
        for table, records in rows.items():
            for record in records:
                columns = ", ".join(f'"{column}"' for column in record)
                places = ", ".join("?" for _ in record)
                connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", tuple(record.values()))
        for table in dropped:
            connection.execute(f"DROP TABLE {table}")
    return path


def write_archive(path: Path, tiles: Mapping[int, Sequence[Segment]]) -> Path:
    """Write an archive.a with an executable per tile, and a member that is none."""
    members = {f"tile_{tile}.elf": _executable(segments) for tile, segments in tiles.items()} | {"note.txt": b"none"}
    content = b"!<arch>\n"
    for name, data in members.items():
        header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n"
        content += header.encode("ascii") + data + b"\n" * (len(data) % 2)
    path.write_bytes(content)
    return path


def _executable(segments: Sequence[Segment]) -> bytes:
    """Return a stripped ELF32 little-endian executable of a Mk2 IPU: its headers, and no bytes of code."""
    identity = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    first = 52 if segments else 0
    header = struct.pack("<HHIIIIIHHHHHH", 2, 248, 1, 0x4C000, first, 0, 0x02, 52, 32, len(segments), 40, 0, 0)
    offset, programs, data = 52 + 32 * len(segments), b"", b""
    for kind, in_file, in_memory in segments:
        programs += struct.pack("<8I", kind, offset, 0x4C000, 0x4C000, in_file, in_memory, 5, 4)
        data += bytes(in_file)
        offset += in_file
    return identity + header + programs + data


def write_debug_info(path: Path, contexts: int) -> Path:
    """Write a debug.cbor with a chain of so many contexts."""
    records = [{"id": i + 1, "parentId": i, "name": i % 3, "layer": "poplar"} for i in range(contexts)]
    path.write_bytes(cbor2.dumps({"contexts": records, "stringTable": ["first", "second", "third"]}))
    return path


def write_metadata(directory: Path) -> None:
    """Write the two small JSON files of a report directory."""
    framework = {
        "TensorFlow": {"Version": "2.6.3", "Cluster": "cluster_1"},
        "System Information": {"Machine": "x86_64"},
    }
    (directory / "framework.json").write_text(json.dumps(framework), encoding="utf-8")
    (directory / "app.json").write_text(json.dumps({"Model": {"Name": "small", "Layers": 2}}), encoding="utf-8")


def write_trace_cache(path: Path, profile: Path) -> Path:
    """Write a profile.pop_cache of two blocks that was made from this profile, as its change counter tells."""
    changes = int.from_bytes(profile.read_bytes()[24:28], "big")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE cache_info (id INTEGER NOT NULL, profile_pop_fcc INTEGER NOT NULL);"
            "CREATE TABLE execution_trace_blocks_v3_101111 (id INTEGER NOT NULL PRIMARY KEY, parent_id INTEGER,"
            " tag TEXT NOT NULL, ipu INTEGER NOT NULL, graph INTEGER NOT NULL, row INTEGER NOT NULL, name TEXT,"
            " cycles_from INTEGER NOT NULL, cycles_to INTEGER NOT NULL, step_ids BLOB NOT NULL,"
            " tile_balance REAL NOT NULL, stream_copy_destination TEXT);"
            "CREATE TABLE execution_trace_overview_v2_101111 (id INTEGER NOT NULL PRIMARY KEY, tag TEXT NOT NULL,"
            " ipu INTEGER NOT NULL, graph INTEGER NOT NULL, row INTEGER NOT NULL, name TEXT,"
            " cycles_from INTEGER NOT NULL, cycles_to INTEGER NOT NULL);"
            "INSERT INTO execution_trace_blocks_v3_101111 VALUES"
            " (1, NULL, 'FlameGraphNode', 0, 0, 0, 'matmul', 0, 90, x'8081', 1.0, NULL),"
            " (2, 1, 'OnTileExecute', 0, 0, 1, 'matmul/Convolve', 0, 90, x'8081', 0.5, NULL);"
            "INSERT INTO execution_trace_overview_v2_101111 VALUES (1, 'OnTileExecute', 0, 0, 0, 'matmul', 0, 90);"
        )
        connection.execute("INSERT INTO cache_info VALUES (0, ?)", (changes,))
    return path


# --------------------------------------------------------------------------------------------------------- random
@dataclass(frozen=True)
class Shape:
    """What a random report is like; `make_report` draws all of it and takes any of it as given."""

    ipus: int
    replicas: int
    tiles_per_ipu: int
    programs: int
    runs: int
    steps: int
    largest: int
    """Upper end of bytes, cycles and other plain numbers."""
    horizon: int
    """Upper end of the cycles that steps begin and end at; small ones make them touch, nest and coincide."""
    backwards: bool
    """Whether some intervals end before they begin."""
    orphans: bool
    """Whether some rows of `execution_step_ipus` belong to no step."""
    dropped: frozenset[str] = field(default_factory=frozenset)
    emptied: frozenset[str] = field(default_factory=frozenset)
    archive: bool = True
    debug_info: bool = True

    @property
    def tiles(self) -> int:
        return self.ipus * self.tiles_per_ipu


def make_report(directory: Path, seed: int, **what: Any) -> Path:
    """Write a random report into a directory, which is made, and return the path of its profile.pop.

    Equal seeds make equal reports; `what` fixes fields of `Shape`.
    """
    rng = random.Random(seed)
    shape = Shape(**{**_shape(rng), **what})
    directory.mkdir(parents=True, exist_ok=True)
    rows = {**_compilation(rng, shape), **_execution(rng, shape)}
    kept = {table: records for table, records in rows.items() if table not in shape.dropped | shape.emptied}
    write_profile(directory / "profile.pop", kept, sorted(shape.dropped))
    _fill_other_tables(directory / "profile.pop", rng, shape, set(rows))
    if shape.archive:
        write_archive(directory / "archive.a", _segments(rng, shape))
    if shape.debug_info:
        write_debug_info(directory / "debug.cbor", rng.randint(1, 300))
    return directory / "profile.pop"


def _shape(rng: random.Random) -> dict[str, Any]:
    replicas = rng.choice((1, 1, 2, 4))
    dropped, emptied = _absences(rng)
    return {
        "ipus": replicas * rng.randint(1, 4 // replicas),
        "replicas": replicas,
        "tiles_per_ipu": rng.randint(2, 40),
        "programs": rng.randint(1, 30),
        "runs": rng.randint(1, 5),
        "steps": rng.randint(1, 40),
        "largest": rng.choice((0, 3, 1000, 638_976, 2**31, 2**50)),
        "horizon": rng.choice((3, 12, 60, 60, 5000, 2**50)),
        "backwards": rng.random() < 0.15,
        "orphans": rng.random() < 0.2,
        "dropped": dropped,
        "emptied": emptied,
        "archive": rng.random() < 0.7,
        "debug_info": rng.random() < 0.7,
    }


def _absences(rng: random.Random) -> tuple[frozenset[str], frozenset[str]]:
    """Draw the tables to be missing and those to be empty: none, the execution part, one, or several of each."""
    case = rng.random()
    if case < 0.3:
        return frozenset(), frozenset()
    if case < 0.4:
        return frozenset(EXECUTION_TABLES), frozenset()
    if case < 0.5:
        return frozenset(), frozenset(EXECUTION_TABLES)
    if case < 0.75:
        alone = frozenset({rng.choice(METRIC_TABLES)})
        return (alone, frozenset()) if rng.random() < 0.5 else (frozenset(), alone)
    fate = {table: rng.random() for table in METRIC_TABLES}
    dropped = frozenset(table for table, chance in fate.items() if chance < 0.2)
    return dropped, frozenset(table for table, chance in fate.items() if chance > 0.8)


def _compilation(rng: random.Random, shape: Shape) -> dict[str, Rows]:
    def number() -> int:
        return rng.randint(0, shape.largest)

    # tiles without a row are legal, and so is a report of a single tile's row
    tiles = [tile for tile in range(shape.tiles) if rng.random() < 0.95] or [shape.tiles - 1]
    target = {
        "type": "Ipu",
        "architecture": "Ipu2",
        "num_ipus": shape.ipus,
        "num_replicas": shape.replicas,
        "tiles_per_ipu": shape.tiles_per_ipu,
        "num_tiles": shape.tiles,
        "bytes_per_tile": rng.choice((1, 638_976, shape.largest // 2 + 1)),
        "clock_frequency": rng.choice((1.33e9, 1.85e9, 1e9 / 3, 1)),
        "interleaved_begin": rng.choice((None, 348_160)),
        "relative_sync_delay_by_tile": _per_tile(rng, shape),
        "min_sync_delay": rng.choice((None, 100)),
    }
    graph_columns = ("num_vertices", "num_edges", "num_variables", "num_compute_sets")
    return {
        "target": [target],
        "graph": [{column: rng.choice((None, number(), number())) for column in graph_columns}],
        "tile_memory": [_tile_memory(rng, shape, tile) for tile in tiles],
        "tile_memory_category": [
            {"tile": tile, "category": category, "region": region, "non_overlapped": number(), "overlapped": number()}
            for category in rng.sample(CATEGORIES + ODD_NAMES, rng.randint(1, 8))
            for tile in rng.sample(tiles, min(len(tiles), 6))
            for region in rng.sample(REGIONS, rng.randint(1, 3))
        ],
        "programs": [_program(rng, shape, program) for program in range(shape.programs) if rng.random() < 0.9]
        or [_program(rng, shape, 0)],
        "variables": [
            {"variable_id": i, "name": f"v/{i}", "element_type": "half", "shape": rng.choice((None, "[4,4]"))}
            for i in range(rng.randint(1, 20))
        ],
        "lowered_variables": [_lowered_variable(rng, shape, i) for i in range(rng.randint(1, 60))],
        "liveness_steps": _liveness_steps(rng, shape),
    }


def _tile_memory(rng: random.Random, shape: Shape, tile: int) -> dict[str, int]:
    regions = ("total", "non_interleaved", "interleaved", "overflowed")
    columns = [f"{region}_{gaps}_gaps" for region in regions for gaps in ("including", "excluding")]
    row = {column: rng.randint(0, shape.largest) for column in (*columns, "always_live_bytes", "not_always_live_bytes")}
    if rng.random() < 0.7:
        row["overflowed_including_gaps"] = row["overflowed_excluding_gaps"] = 0
    return {"tile": tile, **row}


def _program(rng: random.Random, shape: Shape, program: int) -> dict[str, Any]:
    kind = rng.choice(NAMED_TYPES if rng.random() < 0.7 else OTHER_TYPES + ODD_NAMES)
    return {
        "program_id": program,
        "type": kind,
        "name": rng.choice(("", "matmul/Convolve", "it's\n")),
        "control_code_by_tile": _per_tile(rng, shape),
        "code_bytes_by_tile": _per_tile(rng, shape),
        "estimated_cycles_by_tile": _per_tile(rng, shape),
    }


def _lowered_variable(rng: random.Random, shape: Shape, number: int) -> dict[str, Any]:
    always_live = rng.randint(0, 1)
    return {
        "lowered_variable_id": number,
        "variable_id": rng.choice((None, 0)),
        "name": f"v/{number}",
        "tile": rng.randrange(shape.tiles),
        "offset": rng.choice((None, 4 * number)),
        "bytes": rng.randint(0, shape.largest),
        "alignment": 4,
        "category": rng.choice(CATEGORIES + ODD_NAMES),
        "region": rng.choice(REGIONS),
        "always_live": always_live,
        "is_constant": 0,
        "is_executable": 0,
        "equivalence_class_id": None if always_live else rng.randint(0, 9),
    }


def _liveness_steps(rng: random.Random, shape: Shape) -> Rows:
    """Return steps with few distinct sizes, so that several reach the peak, and with gaps in their numbers."""
    sizes = [rng.randint(0, shape.largest) for _ in range(4)]
    count = rng.randint(1, 50)
    numbers = rng.sample(range(3 * count), count) if rng.random() < 0.3 else range(count)
    return [
        {"step": step, "program_id": rng.randrange(shape.programs), "not_always_live_bytes": rng.choice(sizes)}
        for step in numbers
    ]


def _execution(rng: random.Random, shape: Shape) -> dict[str, Rows]:
    run_ids = rng.sample(range(3 * shape.runs), shape.runs)
    # some runs are left without steps, and the steps of a run are scattered among those of the others
    busy = rng.sample(run_ids, rng.randint(1, shape.runs))
    step_ids = rng.sample(range(rng.choice((shape.steps, 10_000, 2**40))), shape.steps)
    return {
        "runs": [_run(rng, run) for run in run_ids],
        "execution_steps": [
            {
                "step_id": step,
                "run_id": rng.choice(busy),
                "program_id": rng.randrange(shape.programs),
                "cycles_by_tile": _per_tile(rng, shape),
            }
            for step in step_ids
        ],
        "execution_step_ipus": _step_rows(rng, shape, step_ids),
    }


def _run(rng: random.Random, run: int) -> dict[str, Any]:
    start = rng.randint(0, 2**50)
    duration = rng.choice((0, 1, 999, 10**7, 2**45))
    return {
        "run_id": run,
        "name": rng.choice(("training", "", "lauf Ω")),
        "start_us": start,
        "end_us": start + duration,
    }


def _step_rows(rng: random.Random, shape: Shape, step_ids: list[int]) -> Rows:
    # each column of a report is NULL never, at times, or always
    chance_of_null = {column: rng.choice((0, 0.3, 1)) for column in ("tile_balance", "active_tile_balance")}
    chance_of_null |= {column: rng.choice((0, 0.3, 1)) for column in ("data_in", "data_out")}
    rows = []
    for number, step in enumerate(step_ids):
        # the first step has a row on every IPU; others are at times without any
        ipus = range(shape.ipus) if number == 0 else (ipu for ipu in range(shape.ipus) if rng.random() < 0.9)
        rows += [_step_row(rng, shape, step, ipu, chance_of_null) for ipu in ipus]
    if shape.orphans:
        rows += [_step_row(rng, shape, max(step_ids) + 1 + i, 0, chance_of_null) for i in range(5)]
    rng.shuffle(rows)
    return rows


def _step_row(
    rng: random.Random, shape: Shape, step: int, ipu: int, chance_of_null: Mapping[str, float]
) -> dict[str, Any]:
    active_from, active_to = _interval(rng, shape)
    all_from, all_to = _interval(rng, shape)
    optional = {
        "tile_balance": rng.choice((0, 1, rng.random())),
        "active_tile_balance": rng.random(),
        "data_in": rng.randint(0, shape.largest),
        "data_out": rng.randint(0, shape.largest),
    }
    return {
        "step_id": step,
        "ipu": ipu,
        "cycles": rng.choice((0, rng.randint(0, shape.largest))),
        "active_from_min": rng.randint(0, shape.horizon),
        "active_from_max": active_from,
        "active_to_min": rng.randint(0, shape.horizon),
        "active_to_max": active_to,
        "all_from_min": all_from,
        "all_from_max": rng.randint(0, shape.horizon),
        "all_to_min": rng.randint(0, shape.horizon),
        "all_to_max": all_to,
        **{column: None if rng.random() < chance_of_null[column] else value for column, value in optional.items()},
    }


def _interval(rng: random.Random, shape: Shape) -> tuple[int, int]:
    """Return an interval that is short, long, empty or, in some reports, backwards."""
    begin = rng.randint(0, shape.horizon)
    end = rng.choice((begin, min(begin + rng.randint(1, 4), shape.horizon), rng.randint(begin, shape.horizon)))
    return (end, begin) if shape.backwards and rng.random() < 0.3 else (begin, end)


def _per_tile(rng: random.Random, shape: Shape) -> bytes | None:
    return rng.choice((None, rng.randbytes(4 * shape.tiles)))


def _segments(rng: random.Random, shape: Shape) -> dict[int, list[Segment]]:
    """Draw loaded (1), note (4) and unknown segments for every tile, in any number, none included."""
    kinds = (1, 1, 4, 0x6000_0000)
    return {
        tile: [(rng.choice(kinds), rng.randint(0, 9), rng.randint(9, 2**20)) for _ in range(rng.randint(0, 4))]
        for tile in range(shape.tiles)
    }


def _fill_other_tables(profile: Path, rng: random.Random, shape: Shape, filled: set[str]) -> None:
    """Put a few rows into the tables that no metric speaks of, each value of the type that its column declares."""
    with closing(sqlite3.connect(profile)) as connection, connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(set(names) - filled - {"report_info"}):
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            for _ in range(rng.randint(1, 12)):
                values = [_any_value(rng, shape, name, kind, bool(needed)) for _, name, kind, needed, *_ in columns]
                places = ", ".join("?" for _ in columns)
                connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({places})", values)


def _any_value(rng: random.Random, shape: Shape, name: str, kind: str, needed: bool) -> int | str | bytes | None:
    if not needed and rng.random() < 0.3:
        return None
    if kind == "BLOB":
        return rng.randbytes(4 * shape.tiles)
    if kind == "TEXT":
        return rng.choice((*ODD_NAMES, "variable", "control", "function", "common"))
    return rng.randrange(shape.tiles) if name == "tile" else rng.randint(0, 20)
