"""What metrics are made of, by plain loops over the rows of profile.pop; and what explains a change, by trying."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from pvanalyse.analysis.stable_names import stable_name
from tests.oracle.frames import Captured, Row, numbers


def tile_of(captured: Captured, kind: str) -> int:
    """The lowest of the fullest tiles."""
    return int(max(captured["tile_memory"], key=lambda row: (row[f"total_{kind}_gaps"], -row["tile"]))["tile"])


def row_of(captured: Captured, tile: int) -> Row:
    """The memory of a tile."""
    return next(row for row in captured["tile_memory"] if row["tile"] == tile)


def allocations_on(captured: Captured, tile: int) -> dict[str, int]:
    """Bytes by category of everything that lies on a tile."""
    sums: dict[str, int] = defaultdict(int)
    for row in captured["lowered_variables"]:
        if row["tile"] == tile:
            sums[row["category"]] += row["bytes"]
    return dict(sums)


def live_at_the_peak(captured: Captured) -> int:
    """Bytes of the variables that are live at the first of the highest steps."""
    steps = sorted(captured["liveness_steps"], key=lambda row: (-row["not_always_live_bytes"], row["step"]))
    peak = steps[0]["step"]
    return sum(row["bytes"] for row in captured["variable_liveness"] if row["step_begin"] <= peak < row["step_end"])


def cycles_of_programs(captured: Captured) -> dict[str, int]:
    """Cycles by type of program, of the steps that are in both tables."""
    types = {row["program_id"]: row["type"] or "(no type)" for row in captured.get("programs", [])}
    programs: dict[int, int] = {row["step_id"]: row["program_id"] for row in captured["execution_steps"]}
    sums: dict[str, int] = defaultdict(int)
    for row in captured["execution_step_ipus"]:
        if row["step_id"] in programs:
            sums[types.get(programs[row["step_id"]], "Unknown")] += row["cycles"]
    return dict(sums)


def fewest_that_explain(changes: Sequence[int], share: float) -> int:
    """How many contributors with the change have to be listed, beside those against it that matter; by trying all."""
    total = sum(changes)
    sign = 1 if total > 0 else -1
    size = abs(total)
    against = sum(sign * one for one in changes if -sign * one > (1 - share) * size)
    with_it = [sign * one for one in changes if sign * one > 0]
    for number in range(len(with_it) + 1):
        if max((sum(some) for some in combinations(with_it, number)), default=0) + against >= share * size:
            return number
    raise AssertionError("all of them explain everything")


def sizes_of_variables(captured: Captured) -> dict[str, int]:
    """Bytes by stable name of every variable of all replicas, each once, without what stands for a category."""
    declared = {row["variable_id"]: row["name"] for row in captured.get("variables", [])}
    categories = {row["category"] for row in captured.get("tile_memory_category", [])}
    replicas = captured.target["num_replicas"] if "target" in captured else 1
    sizes: dict[tuple[str, int | None, str], int] = {}
    for table in ("always_live_variables", "variable_liveness"):
        for row in captured[table]:
            key = (table, row["variable_id"], row["name"])
            sizes[key] = max(sizes.get(key, 0), row["bytes"])
    sums: dict[str, int] = defaultdict(int)
    for (_, identity, own), size in sizes.items():
        stands_for_a_category = own in categories if categories else own.isalpha()
        if identity is not None or not stands_for_a_category:
            name = declared.get(identity) or own or ("(no name)" if identity is None else f"variable {identity}")
            sums[stable_name(name)] += size * replicas
    return dict(sums)


def code_and_state_of_vertices(captured: Captured) -> dict[str, int]:
    """Bytes by stable name of the vertex types that a tile holds."""
    code: dict[int, int] = defaultdict(int)
    instances: dict[int, int] = defaultdict(int)
    for row in captured["tile_vertices"]:
        code[row["vertex_type_id"]] += row["code_bytes"]
    for row in captured["compute_set_vertices"]:
        instances[row["vertex_type_id"]] += sum(numbers(row["count_by_tile"], captured.target["num_tiles"]))
    sums: dict[str, int] = defaultdict(int)
    for row in captured["vertex_types"]:
        kind = row["vertex_type_id"]
        if kind in code or instances[kind]:
            sums[stable_name(row["name"])] += code[kind] + instances[kind] * row["instance_bytes"]
    return dict(sums)
