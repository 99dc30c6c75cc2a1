"""Reads the samples' files in plain Python: sqlite3, struct and cbor2, nothing of pvanalyse or of the synthesiser."""

from __future__ import annotations

import sqlite3
import struct
import weakref
from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import cbor2

SAMPLES = Path(__file__).parents[2] / "sample_reports"
SYNTHESISE = SAMPLES / "synthesise.py"
ELEMENT_BYTES = {"half": 2, "float": 4, "unsigned int": 4}


class Profile:
    """One profile.pop and the files beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.connection = sqlite3.connect(f"{(directory / 'profile.pop').as_uri()}?mode=ro&immutable=1", uri=True)
        self.connection.row_factory = sqlite3.Row
        weakref.finalize(self, self.connection.close)

    def rows(self, sql: str, *parameters: Any) -> list[sqlite3.Row]:
        return self.connection.execute(sql, parameters).fetchall()

    def value(self, sql: str) -> Any:
        return self.connection.execute(sql).fetchone()[0]

    @cached_property
    def tables(self) -> set[str]:
        return {row["name"] for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    @cached_property
    def target(self) -> sqlite3.Row:
        (row,) = self.rows("SELECT * FROM target")
        return row

    @property
    def tiles(self) -> int:
        return self.target["num_tiles"]

    @property
    def replica_tiles(self) -> int:
        return self.tiles // self.target["num_replicas"]

    @property
    def replica_ipus(self) -> int:
        return self.target["num_ipus"] // self.target["num_replicas"]

    def by_tile(self, blob: bytes | None) -> tuple[int, ...]:
        if blob is None:
            return (0,) * self.tiles
        return struct.unpack(f"<{self.tiles}I", blob)

    @cached_property
    def lowered(self) -> dict[int, list[sqlite3.Row]]:
        """Lowered variables by tile."""
        by_tile: dict[int, list[sqlite3.Row]] = defaultdict(list)
        for row in self.rows("SELECT * FROM lowered_variables"):
            by_tile[row["tile"]].append(row)
        return by_tile

    @cached_property
    def intervals(self) -> dict[int, list[tuple[int, int]]]:
        """Intervals by equivalence class."""
        by_class: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row in self.rows("SELECT * FROM equivalence_class_intervals"):
            by_class[row["equivalence_class_id"]].append((row["step_begin"], row["step_end"]))
        return by_class

    @cached_property
    def memory(self) -> dict[int, sqlite3.Row]:
        return {row["tile"]: row for row in self.rows("SELECT * FROM tile_memory")}

    @cached_property
    def category_bytes(self) -> dict[str, list[int]]:
        """Bytes of each category by tile, alone and shared, over all regions."""
        result: dict[str, list[int]] = defaultdict(lambda: [0] * self.tiles)
        for row in self.rows("SELECT * FROM tile_memory_category"):
            result[row["category"]][row["tile"]] += row["non_overlapped"] + row["overlapped"]
        return result

    @cached_property
    def programs(self) -> dict[int, sqlite3.Row]:
        return {row["program_id"]: row for row in self.rows("SELECT * FROM programs")}

    @cached_property
    def children(self) -> dict[int, list[int]]:
        result: dict[int, list[int]] = defaultdict(list)
        for row in self.rows("SELECT * FROM program_children ORDER BY program_id, position"):
            result[row["program_id"]].append(row["child_id"])
        return result

    @cached_property
    def controls(self) -> list[int]:
        sql = "SELECT program_id FROM program_roots WHERE kind = 'control' ORDER BY position"
        return [row["program_id"] for row in self.rows(sql)]

    @cached_property
    def executed(self) -> dict[int, list[sqlite3.Row]]:
        """Rows of execution_step_ipus with program and run, by IPU in the order of the steps."""
        sql = """SELECT i.*, s.run_id, s.program_id, p.type FROM execution_step_ipus i JOIN execution_steps s
                 USING (step_id) JOIN programs p USING (program_id) ORDER BY step_id, ipu"""
        by_ipu: dict[int, list[sqlite3.Row]] = defaultdict(list)
        for row in self.rows(sql):
            by_ipu[row["ipu"]].append(row)
        return by_ipu

    @cached_property
    def debug_contexts(self) -> dict[int, dict[str, Any]]:
        own = self.directory / "debug.cbor"
        return read_contexts(own if own.exists() else self.directory.parent / "debug.cbor")


def read_contexts(path: Path) -> dict[int, dict[str, Any]]:
    """Return the contexts by their id, with the indices into the string table replaced by its strings."""
    document = cbor2.loads(path.read_bytes())
    strings = document["stringTable"]
    contexts = {}
    for context in document["contexts"]:
        location = context["location"]
        context["name"] = strings[context["name"]]
        context["file"] = strings[location["fileName"]]
        context["function"] = strings[location["functionName"]]
        assert context["id"] not in contexts
        contexts[context["id"]] = context
    return contexts


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the members of an `ar` archive with short names."""
    content = path.read_bytes()
    assert content[:8] == b"!<arch>\n"
    members, at = {}, 8
    while at < len(content):
        header = content[at : at + 60]
        assert header[58:] == b"`\n"
        size = int(header[48:58])
        members[header[:16].decode().strip().rstrip("/")] = content[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return members


def program_headers(image: bytes) -> list[tuple[int, ...]]:
    """Return the fields of an ELF32 file's program headers."""
    (begin,) = struct.unpack_from("<I", image, 28)
    size, count = struct.unpack_from("<HH", image, 42)
    return [struct.unpack_from("<8I", image, begin + size * number) for number in range(count)]


def section_headers(image: bytes) -> list[tuple[int, ...]]:
    """Return the fields of an ELF32 file's section headers."""
    (begin,) = struct.unpack_from("<I", image, 32)
    size, count = struct.unpack_from("<HH", image, 46)
    return [struct.unpack_from("<10I", image, begin + size * number) for number in range(count)]


def shared_addresses(allocations: list[tuple[int, int]]) -> tuple[int, list[int]]:
    """Return how many bytes are covered at all, and for each allocation (offset, bytes) how many it has alone."""
    edges = sorted({edge for offset, size in allocations for edge in (offset, offset + size)})
    alone = [0] * len(allocations)
    union = 0
    ordered = sorted(range(len(allocations)), key=lambda number: allocations[number][0])
    open_now: list[int] = []
    following = 0
    for begin, end in pairwise(edges):
        while following < len(ordered) and allocations[ordered[following]][0] <= begin:
            open_now.append(ordered[following])
            following += 1
        open_now = [number for number in open_now if sum(allocations[number]) > begin]
        union += (end - begin) * bool(open_now)
        if len(open_now) == 1:
            alone[open_now[0]] += end - begin
    return union, alone
