"""Where a name is, in plain Python: which things of each kind have it, and what they add up to."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tests.oracle.frames import Captured, numbers
from tests.oracle.operations import Contexts

TABLES = {"programs": "program_id", "compute_sets": "compute_set_id", "vertex_types": "vertex_type_id"}


def pattern_of(captured: Captured, name: str) -> str:
    """The name is meant as it is where any name has it, else as a regular expression."""
    tables = (*TABLES, "variables", "always_live_variables", "variable_liveness")
    names = [row["name"] for table in tables for row in captured.get(table, [])]
    if captured.contexts:
        contexts = Contexts(captured)
        names += [contexts.name(place) for place in range(len(contexts.rows)) if "name" in contexts.rows[place]]
    return re.escape(name) if any(name in one for one in names) else name


def ids(captured: Captured, table: str, pattern: str) -> set[int]:
    """Ids of the rows whose name has it; compute sets and vertex types only where there are any vertices."""
    found = {row[TABLES[table]] for row in captured[table] if re.search(pattern, row["name"])}
    if table == "programs":
        return found
    tiles = captured.target["num_tiles"]
    used = {
        row[TABLES[table]]
        for row in captured.get("compute_set_vertices", [])
        if any(numbers(row["count_by_tile"], tiles))
    }
    if table == "vertex_types":
        used |= {row["vertex_type_id"] for row in captured.get("tile_vertices", [])}
    return found & used


def layers(captured: Captured, pattern: str) -> dict[str, int]:
    contexts = Contexts(captured)
    return Counter(row["layer"] for place, row in enumerate(contexts.rows) if re.search(pattern, contexts.name(place)))


def allocations(captured: Captured, pattern: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The allocations of each variable that has the name: of declared variables by id, of others by name."""
    declared = {row["variable_id"]: row["name"] for row in captured.get("variables", [])}
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in captured["lowered_variables"]:
        name = row["name"] if row["variable_id"] is None else declared.get(row["variable_id"])
        if name is not None and re.search(pattern, name):
            found.setdefault((row["variable_id"], name), []).append(row)
    return found


def variables(captured: Captured, pattern: str) -> list[tuple[Any, ...]]:
    rows = []
    for (identity, name), held in allocations(captured, pattern).items():
        on_tile = Counter[int]()
        for row in held:
            on_tile[row["tile"]] += row["bytes"]
        most = min(on_tile, key=lambda tile, of=on_tile: (-of[tile], tile))
        always = sum(row["bytes"] for row in held if row["always_live"])
        rows.append((name, identity, sum(on_tile.values()), always, len(on_tile), most, on_tile[most]))
    return rows


def tiles(captured: Captured, pattern: str) -> list[tuple[Any, ...]]:
    number = captured.target["num_tiles"]
    sizes: list[Counter[int] | None] = [None, None, None]
    if "lowered_variables" in captured:
        sizes[0] = Counter()
        for row in (row for held in allocations(captured, pattern).values() for row in held):
            sizes[0][row["tile"]] += row["bytes"]
    if "vertex_types" in captured and "tile_vertices" in captured:
        types = {row["vertex_type_id"] for row in captured["vertex_types"] if re.search(pattern, row["name"])}
        sizes[1] = Counter()
        for row in captured["tile_vertices"]:
            sizes[1][row["tile"]] += row["code_bytes"] if row["vertex_type_id"] in types else 0
    if "programs" in captured:
        sizes[2] = Counter()
        for row in captured["programs"]:
            if re.search(pattern, row["name"]):
                sizes[2].update(dict(enumerate(numbers(row["code_bytes_by_tile"], number))))
    rows = []
    for tile in range(number):
        held = [None if one is None else one[tile] for one in sizes]
        total = sum(filter(None, held))
        if total:
            rows.append((tile, total, *held))
    return sorted(rows, key=lambda row: (-row[1], row[0]))
