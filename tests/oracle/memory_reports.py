"""Small random reports of memory and liveness: on purpose either consistent in every number, or in none.

A consistent report has its totals added up from its allocations, address by address and step by step.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cbor2

from tests.oracle.reports import CATEGORIES, ODD_NAMES, Rows, write_profile

OPTIONAL = (
    *("target", "tile_memory", "tile_memory_category", "vertex_types", "tile_vertices", "compute_sets"),
    *("compute_set_vertices", "programs", "variables", "lowered_variables", "liveness_steps"),
    *("equivalence_class_intervals", "always_live_variables", "variable_liveness"),
)
REGIONS = {"nonInterleaved": "non_interleaved", "interleaved": "interleaved", "overflowed": "overflowed"}
NAMES = (*ODD_NAMES, "weights", "weights", "activations:0", "out.*", "(", "variable 3")
TYPES = ("float", "float", "half", "int", "FLOAT", None)


@dataclass(frozen=True)
class World:
    """What the rows of a report are drawn from."""

    rng: random.Random
    consistent: bool
    replicas: int
    ipus_per_replica: int
    tiles_per_ipu: int
    steps: int
    border: int | None

    @property
    def replica(self) -> int:
        return self.ipus_per_replica * self.tiles_per_ipu

    @property
    def tiles(self) -> int:
        return self.replicas * self.replica

    def number(self, most: int = 60) -> int:
        return self.rng.choice((0, self.rng.randint(0, most)))


def make_memory_report(directory: Path, seed: int, consistent: bool = False, whole: bool = False) -> Path:
    """Write a random report and return the path of its profile.pop; only a ``whole`` one has every table."""
    rng = random.Random(seed)
    world = World(rng, consistent, rng.choice((1, 1, 2)), rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 12),
                  rng.choice((None, 0, 40)))  # fmt: skip
    rows = _rows(world)
    dropped: set[str] = set()
    if not whole and rng.random() < 0.5:
        dropped = set(rng.sample(OPTIONAL, rng.randint(1, 3)))
    emptied = {name for name in dropped if rng.random() < 0.3}
    directory.mkdir(parents=True)
    kept = {name: records for name, records in rows.items() if name not in dropped}
    if whole or rng.random() < 0.8:
        _write_debug_info(directory / "debug.cbor", world)
    return write_profile(directory / "profile.pop", kept, sorted(dropped - emptied))


def _rows(world: World) -> dict[str, Rows]:
    variables = [
        {"variable_id": at * world.rng.choice((1, 1, 7)) + 100 * at, "name": world.rng.choice((*NAMES, f"v/{at}")),
         "element_type": world.rng.choice(TYPES), "shape": world.rng.choice((None, "[4,4]"))}
        for at in range(world.rng.randint(1, 7))
    ]  # fmt: skip
    intervals = _intervals(world)
    lowered = _lowered(world, variables, sorted({row["equivalence_class_id"] for row in intervals}))
    rows = {
        "target": [_target(world)],
        "variables": variables,
        "equivalence_class_intervals": intervals,
        "lowered_variables": lowered,
        **_code(world),
    }
    add = _consistent if world.consistent else _drawn
    return {**rows, **add(world, rows)}


def _target(world: World) -> dict[str, Any]:
    return {
        "type": "Ipu",
        "architecture": "Ipu2",
        "num_ipus": world.replicas * world.ipus_per_replica,
        "num_replicas": world.replicas,
        "tiles_per_ipu": world.tiles_per_ipu,
        "num_tiles": world.tiles,
        "bytes_per_tile": world.rng.choice((40, 90, 638_976)),
        "clock_frequency": 1e9,
        "interleaved_begin": world.border,
    }


# ---------------------------------------------------------------------------------------------------- the allocations
def _intervals(world: World) -> Rows:
    """Classes with up to three intervals that may touch; inconsistent ones are at times empty or reach too far."""
    rows = []
    for identity in world.rng.sample(range(50), world.rng.randint(1, 6)):
        cuts = sorted(world.rng.choices(range(world.steps + 1), k=2 * world.rng.randint(1, 3)))
        spans = dict(zip(cuts[::2], cuts[1::2], strict=True))
        if not world.consistent and world.rng.random() < 0.2:
            spans = {max(spans): world.steps + 5}
        rows += [{"equivalence_class_id": identity, "step_begin": begin, "step_end": end}
                 for begin, end in spans.items() if begin < end or not world.consistent]  # fmt: skip
    return rows or [{"equivalence_class_id": 3, "step_begin": 0, "step_end": 1}]


def _lowered(world: World, variables: Rows, classes: list[int]) -> Rows:
    """Draw the allocations of one replica, and repeat them on the others; inconsistent replicas differ."""
    drawn = [
        _allocation(world, variables, classes, tile)
        for tile in range(world.tiles if not world.consistent else world.replica)
        for _ in range(world.rng.randint(0, 9))
    ] or [_allocation(world, variables, classes, 0)]
    world.rng.shuffle(drawn)
    if world.consistent:
        drawn = [{**row, "tile": row["tile"] + replica * world.replica}
                 for replica in range(world.replicas) for row in drawn]  # fmt: skip
    return [{"lowered_variable_id": at, **row} for at, row in enumerate(drawn)]


def _allocation(world: World, variables: Rows, classes: list[int], tile: int) -> dict[str, Any]:
    rng = world.rng
    always = rng.random() < 0.3
    size, offset, region = world.number(20), rng.choice((None, rng.randint(0, 70), rng.randint(0, 70))), "overflowed"
    if offset is not None:
        above = world.border is not None and offset >= world.border
        region = "interleaved" if above else "nonInterleaved"
        if world.consistent and not above and world.border is not None:
            size = min(size, world.border - offset)  # on one side of the border
    identity = rng.choice((None, *(row["variable_id"] for row in variables)))
    stray = () if world.consistent else (None, 77)
    if not world.consistent and rng.random() < 0.1:
        identity, region = 999, rng.choice((*REGIONS, "elsewhere"))  # of a variable that nothing declares
    return {
        "variable_id": identity,
        "name": rng.choice(NAMES) if identity is None else f"v{identity}#{rng.randint(0, 2)}",
        "tile": tile,
        "offset": offset,
        "bytes": size,
        "alignment": 4,
        "category": rng.choice(CATEGORIES[:4] + ODD_NAMES[:3]),
        "region": region,
        "always_live": int(always),
        "is_constant": 0,
        "is_executable": 0,
        "equivalence_class_id": None if always and (world.consistent or rng.random() < 0.8)
        else rng.choice((*classes, *stray)),
    }  # fmt: skip


# --------------------------------------------------------------------------------------------------------- the totals
def _drawn(world: World, rows: dict[str, Rows]) -> dict[str, Rows]:
    sizes = [world.number(200) for _ in range(3)]
    spans = [sorted(world.rng.choices(range(world.steps + 3), k=2)) for _ in range(12)]
    identities = [None, *(row["variable_id"] for row in rows["variables"]), 999]
    return {
        "tile_memory": [{"tile": tile, **{name: world.number(120) for name in _MEMORY}} for tile in range(world.tiles)],
        "tile_memory_category": [
            {"tile": tile, "category": category, "region": region, "non_overlapped": world.number(), "overlapped": world.number()}
            for category in world.rng.sample(CATEGORIES + ODD_NAMES, world.rng.randint(1, 6))
            for tile in range(world.tiles) if world.rng.random() < 0.6
            for region in (*REGIONS, "elsewhere") if world.rng.random() < 0.6
        ] or [{"tile": 0, "category": "variable", "region": "overflowed", "non_overlapped": 0, "overlapped": 0}],
        "liveness_steps": [
            {"step": step, "program_id": world.rng.randrange(6), "not_always_live_bytes": world.rng.choice(sizes)}
            for step in range(world.steps)
        ],
        "variable_liveness": [
            {"variable_id": world.rng.choice(identities), "name": world.rng.choice(NAMES), "step_begin": begin,
             "step_end": end, "bytes": world.number()} for begin, end in spans
        ],
        "always_live_variables": [
            {"variable_id": world.rng.choice(identities), "name": world.rng.choice(NAMES), "bytes": world.number()}
            for _ in range(world.rng.randint(1, 6))
        ],
    }  # fmt: skip


def _consistent(world: World, rows: dict[str, Rows]) -> dict[str, Rows]:
    lowered, intervals = rows["lowered_variables"], defaultdict(list)
    for row in rows["equivalence_class_intervals"]:
        intervals[row["equivalence_class_id"]].append((row["step_begin"], row["step_end"]))
    live: dict[tuple[int, int], int] = Counter()
    for row in lowered:
        for begin, end in intervals[row["equivalence_class_id"]]:
            for step in range(begin, end):
                live[row["tile"], step] += row["bytes"]
    steps = [sum(live[tile, step] for tile in range(world.replica)) for step in range(world.steps)]
    memory = [
        _memory(world, [row for row in lowered if row["tile"] == tile], tile, live) for tile in range(world.tiles)
    ]
    return {
        "tile_memory": memory,
        "tile_memory_category": _categories(world, lowered),
        "liveness_steps": [{"step": step, "program_id": world.rng.randrange(6), "not_always_live_bytes": size}
                           for step, size in enumerate(steps)],
        **_variables(world, rows, intervals),
    }  # fmt: skip


_MEMORY = [f"{region}_{gaps}_gaps" for region in ("total", *REGIONS.values()) for gaps in ("including", "excluding")]
_MEMORY += ["always_live_bytes", "not_always_live_bytes"]


def _addresses(row: dict[str, Any]) -> range:
    return range(row["offset"], row["offset"] + row["bytes"])


def _memory(world: World, rows: Rows, tile: int, live: dict[tuple[int, int], int]) -> dict[str, int]:
    found = {"tile": tile}
    for region, begin in (("nonInterleaved", 0), ("interleaved", world.border or 0)):
        used = {address for row in rows if row["region"] == region for address in _addresses(row)}
        found[f"{REGIONS[region]}_including_gaps"] = max(used) + 1 - begin if used else 0
        found[f"{REGIONS[region]}_excluding_gaps"] = len(used)
    lost = sum(row["bytes"] for row in rows if row["offset"] is None)
    found |= {"overflowed_including_gaps": lost, "overflowed_excluding_gaps": lost}
    for gaps in ("including", "excluding"):
        found[f"total_{gaps}_gaps"] = sum(found[f"{region}_{gaps}_gaps"] for region in REGIONS.values())
    found["always_live_bytes"] = sum(row["bytes"] for row in rows if row["always_live"])
    found["not_always_live_bytes"] = max(live[tile, step] for step in range(world.steps))
    return found


def _categories(world: World, lowered: Rows) -> Rows:
    users: dict[tuple[int, int], int] = Counter(
        (row["tile"], address) for row in lowered if row["offset"] is not None for address in _addresses(row)
    )
    sums: dict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in lowered:
        alone = row["bytes"]
        if row["offset"] is not None:
            alone = sum(users[row["tile"], address] == 1 for address in _addresses(row))
        cell = sums[row["tile"], row["category"], row["region"]]
        cell[0] += alone
        cell[1] += row["bytes"] - alone
    return [{"tile": tile, "category": category, "region": region, "non_overlapped": alone, "overlapped": shared}
            for (tile, category, region), (alone, shared) in sums.items()]  # fmt: skip


def _variables(world: World, rows: dict[str, Rows], intervals: dict[int, list[tuple[int, int]]]) -> dict[str, Rows]:
    """Add up the allocations of one replica by variable and class."""
    declared = {row["variable_id"]: row["name"] for row in rows["variables"]}
    live: dict[tuple[Any, ...], int] = Counter()
    always: dict[tuple[Any, ...], int] = Counter()
    for row in rows["lowered_variables"]:
        if row["tile"] < world.replica:
            key = (row["variable_id"], declared.get(row["variable_id"]) or row["name"])
            if row["always_live"]:
                always[key] += row["bytes"]
            for span in () if row["always_live"] else intervals[row["equivalence_class_id"]]:
                live[*key, *span] += row["bytes"]
    columns = ("variable_id", "name", "step_begin", "step_end", "bytes")
    return {
        "variable_liveness": [dict(zip(columns, (*key, size), strict=True)) for key, size in live.items()],
        "always_live_variables": [{"variable_id": identity, "name": name, "bytes": size}
                                  for (identity, name), size in always.items()],
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------- code and programs
def _code(world: World) -> dict[str, Rows]:
    rng = world.rng
    types = rng.sample(range(40), rng.randint(1, 5))
    sets = rng.sample(range(40), rng.randint(1, 5))
    return {
        "vertex_types": [{"vertex_type_id": one, "name": rng.choice(NAMES), "instance_bytes": world.number()} for one in types],
        "tile_vertices": [
            {"tile": tile, "vertex_type_id": one, "code_bytes": world.number()}
            for tile in range(world.tiles) for one in (*types, 88) if rng.random() < 0.5
        ] or [{"tile": 0, "vertex_type_id": types[0], "code_bytes": 1}],
        "compute_sets": [
            {"compute_set_id": one, "name": rng.choice(NAMES), "estimated_cycles_by_tile": _blob(world),
             "flops": rng.choice((None, 0, 2**60))} for one in sets
        ],
        "compute_set_vertices": [
            {"compute_set_id": one, "vertex_type_id": kind, "count_by_tile": _blob(world) or bytes(4 * world.tiles)}
            for one in (*sets, 99) for kind in (*types, 99) if rng.random() < 0.5
        ] or [{"compute_set_id": sets[0], "vertex_type_id": types[0], "count_by_tile": bytes(4 * world.tiles)}],
        "programs": [
            {"program_id": at, "type": rng.choice(("DoExchange", "OnTileExecute", "")), "name": rng.choice(NAMES),
             "code_bytes_by_tile": _blob(world), "estimated_cycles_by_tile": _blob(world),
             "debug_context_id": rng.choice((None, *range(1, 12)))} for at in rng.sample(range(6), 5)
        ],
    }  # fmt: skip


def _blob(world: World) -> bytes | None:
    values = [world.number(world.rng.choice((3, 2**32 - 1))) for _ in range(world.tiles)]
    return world.rng.choice((None, b"".join(value.to_bytes(4, "little") for value in values)))


def _write_debug_info(path: Path, world: World) -> None:
    """Contexts whose parents are absent, unknown, themselves, or in a circle."""
    texts = ["", "model.py", "attention.py", *(name for name in NAMES if name)]
    contexts: list[dict[str, Any]] = []
    for identity in world.rng.sample(range(1, 10), 8):
        context = {
            "id": identity,
            "name": world.rng.randrange(len(texts)),
            "layer": world.rng.choice(("poplar", "onnx")),
        }
        if world.rng.random() < 0.8:
            context["parentId"] = world.rng.randint(0, 11)
        if world.rng.random() < 0.5:
            context["location"] = {"fileName": world.rng.choice((1, 2)), "lineNumber": world.rng.randint(1, 99),
                                   "functionName": 3}  # fmt: skip
        contexts.append(context)
    path.write_bytes(cbor2.dumps({"contexts": contexts, "stringTable": texts}))
