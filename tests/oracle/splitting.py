"""Splitting into pipeline stages in plain Python, one variable, tile and layer after another.

The memory of a stage and the greedy method are those of github.com/graphcore/popliner, told in our own words: sets of
programs and variables that grow with every operation, a dictionary of bytes by equivalence class for every tile, and
the stage's memory made anew for every layer that is tried. Only the steps of a stage differ where operations nest in
time: it ends with the last operation there, with whichever ends last here; ``ends_with_last`` says which.
"""

from __future__ import annotations

import random
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.reports import write_profile

KINDS = ("variables", "vertex_code", "vertex_state", "exchange_code", "control_code")
PROPORTIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass
class Operation:
    """What runs together: its layer (None for none), its programs, and its first and last step, inclusive."""

    layer: str | None
    programs: set[int]
    first_step: int
    last_step: int
    variables: set[int] = field(default_factory=set)


class Splitter:
    """A profile, read row by row, and its operations in execution order."""

    def __init__(self, profile: Path, layer_of: Callable[[str], str | None], ends_with_last: bool = False) -> None:
        self.ends_with_last = ends_with_last
        with closing(sqlite3.connect(f"file:{profile}?mode=ro&immutable=1", uri=True)) as database:
            database.row_factory = sqlite3.Row
            (target,) = database.execute("SELECT * FROM target")
            self.num_tiles, self._width = target["tiles_per_ipu"], target["num_tiles"]
            self._read_code(database)
            self._read_variables(database)
        self._layer_of = layer_of

    def _per_tile(self, blob: bytes | None) -> np.ndarray:
        values = struct.unpack(f"<{self._width}I", blob) if blob else (0,) * self._width
        return np.array(values[: self.num_tiles], np.int64)

    def _read_code(self, database: sqlite3.Connection) -> None:
        parents = {row["program_id"] for row in database.execute("SELECT * FROM program_children")}
        sizes = {row["vertex_type_id"]: row["instance_bytes"] for row in database.execute("SELECT * FROM vertex_types")}
        vertices: dict[int, dict[tuple[int, int], np.ndarray]] = defaultdict(dict)
        for row in database.execute("SELECT * FROM compute_set_vertices"):
            kind = row["vertex_type_id"]
            vertices[row["compute_set_id"]][kind, sizes.get(kind, 0)] = self._per_tile(row["count_by_tile"])
        self.code: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.num_tiles, np.int64))
        for row in database.execute("SELECT * FROM tile_vertices"):
            if row["tile"] < self.num_tiles:
                self.code[row["vertex_type_id"]][row["tile"]] = row["code_bytes"]
        self.exchange, self.control, self.vertices = {}, {}, {}
        self.name, self.steps = {}, defaultdict(list)
        for row in database.execute("SELECT * FROM programs ORDER BY program_id"):
            one, kind, nothing = row["program_id"], row["type"], self._per_tile(None)
            self.name[one] = row["name"]
            self.exchange[one] = self._per_tile(row["code_bytes_by_tile"]) if kind == "DoExchange" else nothing
            self.control[one] = nothing if one in parents else self._per_tile(row["control_code_by_tile"])
            self.vertices[one] = vertices.get(row["compute_set_id"], {}) if kind == "OnTileExecute" else {}
        for row in database.execute("SELECT step, program_id FROM liveness_steps ORDER BY step"):
            self.steps[row["program_id"]].append(row["step"])
            self.num_steps = row["step"] + 1

    def _read_variables(self, database: sqlite3.Connection) -> None:
        self.live: dict[int | None, np.ndarray] = defaultdict(lambda: np.zeros(self.num_steps, np.int64))
        for row in database.execute("SELECT * FROM equivalence_class_intervals"):
            self.live[row["equivalence_class_id"]][row["step_begin"] : row["step_end"]] = 1
        self.live["always"] = np.ones(self.num_steps, np.int64)
        self.variables: dict[int, tuple[Any, int, int]] = {}
        self.declared: dict[int, int | None] = {}
        for row in database.execute("SELECT * FROM lowered_variables"):
            kind = "always" if row["always_live"] else row["equivalence_class_id"]
            if row["tile"] < self.num_tiles:
                self.variables[row["lowered_variable_id"]] = kind, row["bytes"], row["tile"]
                self.declared[row["lowered_variable_id"]] = row["variable_id"]
        self.uses: dict[int, set[int]] = defaultdict(set)
        for program, variable in database.execute(
            "SELECT program_id, lowered_variable_id FROM program_lowered_variables"
        ):
            if variable in self.variables:
                self.uses[program].add(variable)

    # ------------------------------------------------------------------------------------------- operations and layers
    def operations(self, programs_of: dict[str, set[int]] | None = None) -> list[Operation]:
        """Operations that run, in execution order; by default what the names of programs begin with, up to the last slash."""
        if programs_of is None:
            programs_of = defaultdict(set)
            for program, name in self.name.items():
                if name:
                    programs_of[name.rpartition("/")[0] or name].add(program)
        found = []
        for name, programs in programs_of.items():
            steps = sorted(step for program in programs for step in self.steps[program])
            if steps:
                operation = Operation(self._layer_of(name), programs, steps[0], steps[-1])
                operation.variables = {variable for program in programs for variable in self.uses[program]}
                found.append(operation)
        return sorted(found, key=lambda one: (one.first_step, min(one.programs)))

    @staticmethod
    def layers(operations: Sequence[Operation]) -> list[str]:
        return list(dict.fromkeys(one.layer for one in operations if one.layer is not None))

    # ----------------------------------------------------------------------------------------------------- one stage
    def stage(self, operations: Sequence[Operation], layers: Sequence[str]) -> dict[str, np.ndarray]:
        """Bytes of each kind on each tile for a set of layers."""
        programs: set[int] = set()
        variables: set[int] = set()
        first = last = None
        for one in operations:
            if one.layer in layers:
                programs |= one.programs
                variables |= one.variables
                first = one.first_step if first is None else first
                ends_last = last is None or self.ends_with_last or one.last_step > last
                last = one.last_step if ends_last else last
        counts: dict[tuple[int, int], np.ndarray] = defaultdict(lambda: np.zeros(self.num_tiles, np.int64))
        exchange, control = np.zeros(self.num_tiles, np.int64), np.zeros(self.num_tiles, np.int64)
        for program in programs:
            exchange += self.exchange[program]
            control += self.control[program]
            for vertex, count in self.vertices[program].items():
                counts[vertex] += count
        code, state = np.zeros(self.num_tiles, np.int64), np.zeros(self.num_tiles, np.int64)
        for (kind, size), count in counts.items():
            code += self.code[kind] * (count > 0)
            state += count * size
        assert first is not None
        assert last is not None
        values = (self._most_live(variables, first, last + 1), code, state, exchange, control)
        return dict(zip(KINDS, values, strict=True))

    def _most_live(self, variables: set[int], begin: int, end: int) -> np.ndarray:
        by_tile: list[dict[Any, int]] = [defaultdict(int) for _ in range(self.num_tiles)]
        for variable in variables:
            kind, size, tile = self.variables[variable]
            by_tile[tile][kind] += size
        most = []
        for sizes in by_tile:
            live = np.zeros(end - begin, np.int64)
            for kind, size in sizes.items():
                live += self.live[kind][begin:end] * size
            most.append(int(live.max()))
        return np.array(most)

    def fullest(self, operations: Sequence[Operation], layers: Sequence[str]) -> int:
        return int(sum(self.stage(operations, layers).values()).max())

    # ---------------------------------------------------------------------------------------------------- the method
    def greedy(self, operations: Sequence[Operation], num_ipus: int, limit: int) -> list[int] | None:
        """The stops of the stages that the published method finds, None when it finds none."""
        layers = self.layers(operations)
        return greedy(lambda first, stop: self.fullest(operations, layers[first:stop]), len(layers), num_ipus, limit)


def greedy(cost: Callable[[int, int], int], num_layers: int, num_ipus: int, limit: int) -> list[int] | None:
    """The published method over a cost, trying one layer more at a time."""
    for least in (3, 2, 1):
        for proportion in PROPORTIONS:
            stops: list[int] = []
            for _ in range(num_ipus):
                first = stops[-1] if stops else 0
                tried = range(first + least, num_layers + 1) or range(first + 1, num_layers + 1)
                fitting = None
                for stop in tried:
                    if cost(first, stop) > limit * proportion:
                        break
                    fitting = stop
                if fitting is None:
                    break
                stops.append(fitting)
                if fitting == num_layers:
                    return stops
    return None


def splits(num_layers: int, num_stages: int) -> Iterator[list[int]]:
    """Every split of so many layers into so many stages: where each stops."""
    for cuts in combinations(range(1, num_layers), num_stages - 1):
        yield [*cuts, num_layers]


# -------------------------------------------------------------------------------------------------- random reports
def make_report(directory: Path, seed: int) -> Path:
    """Write a small random profile of one IPU, or of replicas of one, without debug information."""
    rng = random.Random(seed)
    tiles, replicas = rng.randint(1, 5), rng.choice((1, 1, 2))
    width = tiles * replicas
    layers, steps = rng.randint(1, 7), rng.randint(8, 40)
    classes, types, sets = rng.sample(range(50), 6), rng.sample(range(30), 4), rng.sample(range(30), 8)

    def blob(most: int) -> bytes | None:
        return rng.choice((None, *[struct.pack(f"<{width}I", *(rng.randint(0, most) for _ in range(width)))] * 4))

    names = [f"model/layer_{rng.randrange(layers)}/{rng.choice('abc')}/{at}" for at in range(rng.randint(layers, 30))]
    names += ["host/load/begin", "end", ""]
    ids = rng.sample(range(100), len(names))
    programs = [
        {"program_id": one, "name": name, "type": rng.choice(("OnTileExecute", "OnTileExecute", "DoExchange", "Call")),
         "compute_set_id": rng.choice((*sets, None)), "control_code_by_tile": blob(90), "code_bytes_by_tile": blob(90),
         "estimated_cycles_by_tile": blob(900)}
        for one, name in sorted(zip(ids, names, strict=True))
    ]  # fmt: skip
    order = [*rng.sample(ids, len(ids)), *rng.choices(ids, k=steps)]
    lowered = rng.sample(range(500), rng.randint(20, 80))
    declared = rng.sample(range(60), 7)
    rows: dict[str, list[dict[str, Any]]] = {
        "target": [{"type": "IpuModel", "architecture": "Ipu2", "num_ipus": replicas, "num_replicas": replicas,
                    "tiles_per_ipu": tiles, "num_tiles": width, "bytes_per_tile": rng.randint(400, 4000),
                    "clock_frequency": 1e9}],
        "programs": programs,
        "program_children": [{"program_id": one, "position": 0, "child_id": ids[0]} for one in rng.sample(ids, 3)],
        "vertex_types": [{"vertex_type_id": one, "name": f"v{one}", "instance_bytes": rng.randint(0, 9)} for one in types],
        "tile_vertices": [{"tile": tile, "vertex_type_id": one, "code_bytes": rng.randint(0, 90)}
                          for tile in range(width) for one in (*types, 88) if rng.random() < 0.8],
        "compute_sets": [{"compute_set_id": one, "name": f"set {one}", "estimated_cycles_by_tile": blob(900)} for one in sets],
        "compute_set_vertices": [
            {"compute_set_id": one, "vertex_type_id": kind, "count_by_tile": blob(3) or bytes(4 * width)}
            for one in sets for kind in (*types, 99) if rng.random() < 0.4
        ] or [{"compute_set_id": sets[0], "vertex_type_id": types[0], "count_by_tile": bytes(4 * width)}],
        "liveness_steps": [{"step": step, "program_id": one, "not_always_live_bytes": 0} for step, one in enumerate(order)],
        "variables": [{"variable_id": one, "name": f"tensor {one}"} for one in declared],
        "equivalence_class_intervals": [
            {"equivalence_class_id": one, "step_begin": begin, "step_end": rng.randint(begin + 1, begin + 12)}
            for one in classes for begin in rng.choice(((3,), (0, 20), (15,), (8, 30)))
        ],
        "lowered_variables": [
            {"lowered_variable_id": one, "variable_id": rng.choice((*declared, None)), "name": "v", "tile": rng.randrange(width),
             "bytes": rng.randint(0, 300), "alignment": 8, "category": "variable", "region": "nonInterleaved",
             "always_live": always, "is_constant": 0, "is_executable": 0,
             "equivalence_class_id": None if always else rng.choice((*classes, 77))}
            for one in lowered for always in [int(rng.random() < 0.3)]
        ],
    }  # fmt: skip
    uses = {(rng.choice(ids), rng.choice(lowered)) for _ in range(rng.randint(40, 200))}
    rows["program_lowered_variables"] = [
        {"program_id": program, "lowered_variable_id": variable} for program, variable in sorted(uses)
    ]
    directory.mkdir(parents=True, exist_ok=True)
    return write_profile(directory / "profile.pop", rows)
