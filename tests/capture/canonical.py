"""The contents of a profile.pop in a form that does not depend on numbers which libpva does not show.

Read with the standard library and counted out in plain Python. What libpva does not tell is left out, and what it
tells in one way only (zeros for nothing, steps by their place, a vertex type by its name and size) has that way here.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.libpva.reports import Raw, random_report

REGIONS = ("nonInterleaved", "interleaved", "overflowed")
TOLD_FACTS = (
    *("poplar_major", "poplar_minor", "poplar_point", "poplar_package_hash", "poplar_version"),
    *("format_major", "format_minor", "format_point", "format_unstable", "instrument_compute"),
    *("instrument_external_exchange", "layout"),
)
TARGET = ("type", "architecture", "num_ipus", "num_replicas", "tiles_per_ipu", "num_tiles", "bytes_per_tile",
          "clock_frequency")  # fmt: skip
TILE = ("total_including_gaps", "total_excluding_gaps", "overflowed_including_gaps", "overflowed_excluding_gaps",
        "always_live_bytes", "not_always_live_bytes")  # fmt: skip
TYPES = (
    *("Sequence", "Repeat", "Call", "OnTileExecute", "OnEveryTileSwitch", "DoExchange", "GlobalExchange"),
    *("StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd", "Sync", "SyncAns", "Sans"),
)
KINDS = ("common", "streamCopy", "overflow", "blockFlush")
IPU_STEP = (
    *("cycles", "active_from_min", "active_from_max", "active_to_min", "active_to_max"),
    *("all_from_min", "all_from_max", "all_to_min", "all_to_max"),
    *("tile_balance", "active_tile_balance", "data_in", "data_out"),
)


class Canonical:
    """The tables of a report by name, each in a form that two equal reports share."""

    def __init__(self, directory: Path) -> None:
        self.raw = Raw(directory)
        self.tiles = range(self.raw.target["num_tiles"])
        self.types = {row["vertex_type_id"]: (row["name"], row["instance_bytes"]) for row in self.raw["vertex_types"]}
        self.steps = sorted(row["step"] for row in self.raw["liveness_steps"])
        self.lowered = {row["lowered_variable_id"]: row for row in self.raw["lowered_variables"]
                        if row["tile"] in self.tiles}  # fmt: skip
        self.labels: dict[int, int] = {}  # of each variable that is on a tile, the least of its lowered ones
        for number in sorted(self.lowered):
            if self.lowered[number]["variable_id"] is not None:
                self.labels.setdefault(self.lowered[number]["variable_id"], number)

    def tables(self) -> dict[str, Any]:
        names = [name for name in vars(Canonical) if not name.startswith("_") and name != "tables"]
        return {name: getattr(self, name)() for name in names}

    def report_info(self) -> Any:
        facts = {row["key"]: row["value"] for row in self.raw["report_info"]}
        return {key: facts.get(key, "Unknown" if key.startswith("instrument_") else None) for key in TOLD_FACTS}

    def target(self) -> Any:
        return {name: self.raw.target[name] for name in TARGET}

    def graph(self) -> Any:
        return [(row["num_vertices"], row["num_compute_sets"]) for row in self.raw["graph"]]

    def tile_memory(self) -> Any:
        rows = self.raw.by("tile_memory", "tile")
        return [[rows[tile][name] if tile in rows else 0 for name in TILE] for tile in self.tiles]

    def tile_memory_category(self) -> Any:
        return {
            (row["tile"], row["category"], row["region"]): (row["non_overlapped"], row["overlapped"])
            for row in self.raw["tile_memory_category"]
            if row["tile"] in self.tiles and row["region"] in REGIONS and (row["non_overlapped"] or row["overlapped"])
        }

    def tile_vertices(self) -> Any:
        code: Counter[Any] = Counter()
        for row in self.raw["tile_vertices"]:
            if row["tile"] in self.tiles:
                code[row["tile"], self.types.get(row["vertex_type_id"], ("", 0))] += row["code_bytes"]
        return dict(code)

    def compute_sets(self) -> Any:
        rows = sorted(self.raw["compute_sets"], key=lambda row: row["compute_set_id"])
        return [self._compute_set(row["compute_set_id"]) for row in rows]

    def _compute_set(self, number: int | None) -> Any:
        row = self.raw.by("compute_sets", "compute_set_id").get(number)
        if row is None:
            return ("", self.raw.per_tile(None), {})
        counts: dict[Any, list[int]] = {}
        for one in self.raw["compute_set_vertices"]:
            if one["compute_set_id"] == number:
                kind, there = self.types.get(one["vertex_type_id"], ("", 0)), self.raw.per_tile(one["count_by_tile"])
                counts[kind] = [a + b for a, b in zip(counts.get(kind, [0] * len(there)), there, strict=True)]
        for kind, there in counts.items():
            if max(there) >= 2**32:  # of types that the report does not describe, which are one; left out, and said
                counts[kind] = [0] * len(there)
        return (row["name"], self.raw.per_tile(row["estimated_cycles_by_tile"]), counts)

    def programs(self) -> Any:
        found = {}
        for row in self.raw["programs"]:
            kind = row["type"] if row["type"] in TYPES else "Unknown"
            exchange = kind == "DoExchange"
            found[row["program_id"]] = (
                kind,
                row["name"],
                self._compute_set(row["compute_set_id"]) if kind == "OnTileExecute" else None,
                self.raw.per_tile(row["control_code_by_tile"]),
                self.raw.per_tile(row["code_bytes_by_tile"]) if exchange else None,
                self.raw.per_tile(row["estimated_cycles_by_tile"]) if exchange else None,
            )
        return found

    def program_children(self) -> Any:
        children = defaultdict(list)
        known = self.raw.by("programs", "program_id")
        for row in sorted(self.raw["program_children"], key=lambda row: row["position"]):
            if row["program_id"] in known:
                children[row["program_id"]].append(row["child_id"])
        return dict(children)

    def program_lowered_variables(self) -> Any:
        known = self.raw.by("programs", "program_id")
        pairs = ((row["program_id"], row["lowered_variable_id"]) for row in self.raw["program_lowered_variables"])
        everywhere = self.raw.by("lowered_variables", "lowered_variable_id")
        return {pair for pair in pairs if pair[0] in known and pair[1] in everywhere}

    def lowered_variables(self) -> Any:
        declared = self.raw.by("variables", "variable_id")
        spans = defaultdict(set)
        for row in self.raw["equivalence_class_intervals"]:
            live = range(row["step_begin"], row["step_end"])
            spans[row["equivalence_class_id"]].update(at for at, step in enumerate(self.steps) if step in live)
        found = {}
        for number, row in self.lowered.items():
            variable = row["variable_id"]
            name = declared.get(variable, {}).get("name", "") or row["name"] if variable is not None else None
            live = set() if row["always_live"] else spans[row["equivalence_class_id"]]
            label = self.labels.get(variable)
            always = (bool(row["always_live"]), row["equivalence_class_id"] if row["always_live"] else None)
            found[number] = (label, row["name"], row["tile"], row["bytes"], always, live)
            assert name is None or label is not None
        return found

    def variables(self) -> Any:
        declared = self.raw.by("variables", "variable_id")
        return {label: declared.get(variable, {}).get("name", "") or self.lowered[label]["name"]
                for variable, label in self.labels.items()}  # fmt: skip

    def liveness_steps(self) -> Any:
        rows = sorted(self.raw["liveness_steps"], key=lambda row: row["step"])
        return [(row["program_id"], row["not_always_live_bytes"]) for row in rows]

    def _who(self, row: dict[str, Any]) -> Any:
        """Return who a variable of a list is: by its label when it is on a tile, else by its name."""
        return self.labels.get(row["variable_id"], row["name"])

    def always_live_variables(self) -> Any:
        return [(row["name"], self._who(row), row["bytes"]) for row in self.raw["always_live_variables"]]

    def variable_liveness(self) -> Any:
        """What is live at each step, whatever rows say so."""
        at_step: list[dict[Any, int]] = [{} for _ in self.steps]
        for row in self.raw["variable_liveness"]:
            for at, step in enumerate(self.steps):
                if row["step_begin"] <= step < row["step_end"]:
                    at_step[at][self._who(row)] = at_step[at].get(self._who(row), 0) + row["bytes"]
        return at_step

    def runs(self) -> Any:
        rows = sorted(self.raw["runs"], key=lambda row: row["run_id"])
        return [(row["name"], row["start_us"], row["end_us"]) for row in rows]

    def execution_steps(self) -> Any:
        """The steps run by run, with what they took on each IPU; IPUs of which nothing but zeros is told have none."""
        on_ipus = defaultdict(dict)
        for row in self.raw["execution_step_ipus"]:
            values = [row[name] or 0 for name in IPU_STEP]
            if any(values):
                on_ipus[row["step_id"]][row["ipu"]] = values
        runs = sorted(row["run_id"] for row in self.raw["runs"])
        rows = sorted(self.raw["execution_steps"], key=lambda row: (row["run_id"], row["step_id"]))
        return [
            (runs.index(row["run_id"]), row["program_id"], self.raw.per_tile(row["cycles_by_tile"]),
             on_ipus[row["step_id"]])
            for row in rows if row["run_id"] in runs
        ]  # fmt: skip

    def execution_blocks(self) -> Any:
        names = {row["program_id"]: row["name"] for row in self.raw["programs"]}
        rows = sorted(self.raw["execution_blocks"], key=lambda row: (row["tile"], row["block_id"]))
        return [
            (row["tile"], row["program_id"], names.get(row["program_id"], ""),
             row["kind"] if row["kind"] in KINDS else None, row["cycles_from"], row["cycles_to"])
            for row in rows if row["tile"] in self.tiles
        ]  # fmt: skip


def consistent_report(directory: Path, seed: int) -> Path:
    """Write a random report in which a variable goes by one name, and return its directory."""
    random_report(directory, seed)
    with closing(sqlite3.connect(directory / "profile.pop")) as database, database:
        for table in ("variable_liveness", "always_live_variables"):
            database.execute(f"UPDATE {table} SET name = 'v' || variable_id WHERE variable_id IS NOT NULL")
    return directory
