"""Where the bytes are, by brute force: plain Python over the rows of a profile.pop, slow and short.

``tiles`` is a list of tile numbers, or None for all. Ties are broken as the documentation says, else by tile or in the
order of the rows. What an allocation is called: the declared variable's name where it has one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

from tests.oracle.frames import Answer, Captured, Row, answer, numbers

Tiles = list[int] | None
REGIONS = {"non_interleaved": "nonInterleaved", "interleaved": "interleaved", "overflowed": "overflowed"}


def chosen(rows: list[Row], tiles: Tiles) -> list[Row]:
    """Return the rows of the tiles."""
    wanted = None if tiles is None else set(tiles)
    return [row for row in rows if wanted is None or row["tile"] in wanted]


# ---------------------------------------------------------------------------------------------------- tiles and IPUs
def tile_rows(captured: Captured, tiles: Tiles) -> list[Row]:
    by_tile = {row["tile"]: row for row in captured["tile_memory"]}
    target = captured.get("target", [{}])[0]
    rows = []
    for tile in sorted(by_tile) if tiles is None else tiles:
        row = dict(by_tile[tile])
        over = row["overflowed_including_gaps"]
        row["ipu"] = None
        if target:
            row["ipu"] = tile // target["tiles_per_ipu"]
            row["free_bytes"] = target["bytes_per_tile"] - row["total_including_gaps"]
            over = max(over, -row["free_bytes"])
        row["over_bytes"] = over
        rows.append(row)
    return rows


def tiles_frame(captured: Captured, tiles: Tiles = None) -> Answer:
    stored = [name for name in captured["tile_memory"][0] if name != "tile"]
    free = ["free_bytes"] if "target" in captured else []
    columns = ["tile", "ipu", *stored, *free, "over_bytes"]
    return columns, [tuple(row[name] for name in columns) for row in tile_rows(captured, tiles)]


def ipus_frame(captured: Captured) -> Answer:
    target, by_ipu = captured.target, defaultdict(list)
    for row in tile_rows(captured, None):
        by_ipu[row["ipu"]].append(row)
    capacity = target["tiles_per_ipu"] * target["bytes_per_tile"]
    sums = "total_including_gaps", "total_excluding_gaps", "always_live_bytes", "not_always_live_bytes"
    found = []
    for ipu, rows in sorted(by_ipu.items()):
        total = [sum(row[name] for row in rows) for name in sums]
        most = max(row["total_including_gaps"] for row in rows)
        fullest = min(row["tile"] for row in rows if row["total_including_gaps"] == most)
        over = sum(row["over_bytes"] > 0 for row in rows)
        found.append((ipu, len(rows), *total, fullest, most, over, capacity, float(Fraction(total[0], capacity))))
    return answer(
        f"ipu tiles {' '.join(sums)} fullest_tile fullest_tile_bytes tiles_out_of_memory capacity_bytes used_fraction",
        found,
    )


def tile_regions(captured: Captured, tiles: Tiles = None) -> Answer:
    rows = tile_rows(captured, tiles)
    return answer(
        f"tile {' '.join(REGIONS)}",
        [(row["tile"], *(row[f"{region}_including_gaps"] for region in REGIONS)) for row in rows],
    )


def tile_liveness(captured: Captured, tiles: Tiles = None) -> Answer:
    rows = tile_rows(captured, tiles)
    return answer(
        "tile always_live not_always_live",
        [(row["tile"], row["always_live_bytes"], row["not_always_live_bytes"]) for row in rows],
    )


def quantiles(captured: Captured, tiles: Tiles, column: str) -> Answer:
    values = sorted(row[column] for row in tile_rows(captured, tiles))
    found = []
    for share in ("0", "0.01", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99", "1"):
        rank = Fraction(share) * (len(values) - 1)
        low, high = values[int(rank)], values[min(int(rank) + 1, len(values) - 1)]
        found.append((float(share), float(low + (rank - int(rank)) * (high - low))))
    return answer("quantile bytes", found)


# -------------------------------------------------------------------------------------------------------- categories
def category_rows(captured: Captured, tiles: Tiles) -> list[Row]:
    return chosen(captured["tile_memory_category"], tiles)


def categories_frame(captured: Captured, tiles: Tiles = None) -> Answer:
    rows = category_rows(captured, tiles)
    total = sum(row["non_overlapped"] for row in rows)
    found = []
    for category in sorted({row["category"] for row in rows}):
        mine = [row for row in rows if row["category"] == category]
        alone, shared = Counter[int](), Counter[int]()
        for row in mine:
            alone[row["tile"]] += row["non_overlapped"]
            shared[row["tile"]] += row["overlapped"]
        size = sum(alone.values())
        regions = [sum(row["non_overlapped"] for row in mine if row["region"] == region) for region in REGIONS.values()]
        largest = max(sorted(alone), key=lambda tile, of=alone: of[tile])
        num_tiles = sum(alone[tile] > 0 or shared[tile] > 0 for tile in alone)
        share = float(Fraction(size, max(1, total)))
        found.append((category, size, sum(shared.values()), share, *regions, num_tiles, largest, alone[largest]))
    return answer(
        "category bytes overlapped_bytes fraction non_interleaved_bytes interleaved_bytes overflowed_bytes "
        "num_tiles largest_tile largest_tile_bytes",
        sorted(found, key=lambda row: -row[1]),
    )


def tile_categories(captured: Captured, tiles: Tiles = None) -> Answer:
    rows, of_tile = category_rows(captured, tiles), defaultdict(Counter)
    for row in rows:
        of_tile[row["tile"]][row["category"]] += row["non_overlapped"]
    names = sorted({row["category"] for row in rows})
    names.sort(key=lambda name: -sum(row["non_overlapped"] for row in rows if row["category"] == name))
    listed = [row["tile"] for row in tile_rows(captured, tiles)]
    return ["tile", *names], [(tile, *(of_tile[tile][name] for name in names)) for tile in listed]


def out_of_memory(captured: Captured) -> Answer:
    found = []
    for row in tile_rows(captured, None):
        if row["over_bytes"] > 0:
            of_category = Counter[str]()
            for part in captured.get("tile_memory_category", []):
                if part["tile"] == row["tile"]:
                    of_category[part["category"]] += part["non_overlapped"]
            most = max(of_category.values(), default=0)
            found.append((row, sorted(name for name in of_category if of_category[name] == most), most))
    rows = [
        (row["tile"], row["ipu"], row["total_including_gaps"], row["over_bytes"], row["overflowed_including_gaps"],
         names if most else [""], most)
        for row, names, most in sorted(found, key=lambda one: -one[0]["over_bytes"])
    ]  # fmt: skip
    return answer(
        "tile ipu total_including_gaps over_bytes overflowed_bytes largest_category largest_category_bytes", rows
    )


# ------------------------------------------------------------------------------------- vertices, exchanges, variables
def _largest_first(rows: list[tuple[Any, ...]], size: list[int], name: int) -> list[tuple[Any, ...]]:
    order = sorted(range(len(rows)), key=lambda at: (-size[at], rows[at][name]))
    return [rows[at] for at in order]


def _named(name: str, pattern: str | None) -> bool:
    return pattern is None or re.search(pattern, name) is not None


def _counts(captured: Captured, tiles: Tiles) -> list[tuple[int, int, dict[int, int]]]:
    """Compute set, vertex type, and the number of vertices by chosen tile."""
    found = []
    for row in captured["compute_set_vertices"]:
        counts = numbers(row["count_by_tile"], captured.target["num_tiles"])
        by_tile = {tile: counts[tile] for tile in (range(len(counts)) if tiles is None else tiles)}
        found.append((row["compute_set_id"], row["vertex_type_id"], by_tile))
    return found


def vertices_frame(captured: Captured, tiles: Tiles = None, pattern: str | None = None) -> Answer:
    on_tiles, counts = chosen(captured["tile_vertices"], tiles), _counts(captured, tiles)
    found, size = [], []
    for kind in sorted(captured["vertex_types"], key=lambda row: row["vertex_type_id"]):
        identity = kind["vertex_type_id"]
        code = [row for row in on_tiles if row["vertex_type_id"] == identity]
        instances = sum(sum(by_tile.values()) for _, one, by_tile in counts if one == identity)
        if (code or instances) and _named(kind["name"], pattern):
            code_bytes, state = sum(row["code_bytes"] for row in code), instances * kind["instance_bytes"]
            found.append((identity, kind["name"], code_bytes, instances, state, len(code)))
            size.append(code_bytes + state)
    return answer("vertex_type_id name code_bytes num_instances state_bytes num_tiles", _largest_first(found, size, 1))


def compute_sets_frame(captured: Captured, tiles: Tiles = None, pattern: str | None = None) -> Answer:
    state_of = {row["vertex_type_id"]: row["instance_bytes"] for row in captured["vertex_types"]}
    every = _counts(captured, tiles)
    found, size = [], []
    for row in sorted(captured["compute_sets"], key=lambda row: row["compute_set_id"]):
        mine = [(kind, by_tile) for one, kind, by_tile in every if one == row["compute_set_id"]]
        vertices = sum(sum(by_tile.values()) for _, by_tile in mine)
        state = sum(sum(by_tile.values()) * state_of.get(kind, 0) for kind, by_tile in mine)
        kinds = sum(any(by_tile.values()) for _, by_tile in mine)
        on_tiles = {tile for _, by_tile in mine for tile, count in by_tile.items() if count}
        cycles = _of_tiles(captured, row["estimated_cycles_by_tile"], tiles)
        if vertices and _named(row["name"], pattern):
            found.append((row["compute_set_id"], row["name"], vertices, state, kinds, len(on_tiles),
                          max(cycles.values()), row["flops"]))  # fmt: skip
            size.append(state)
    return answer(
        "compute_set_id name num_vertices state_bytes num_vertex_types num_tiles max_estimated_cycles flops",
        _largest_first(found, size, 1),
    )


def _of_tiles(captured: Captured, blob: bytes | None, tiles: Tiles) -> dict[int, int]:
    values = numbers(blob, captured.target["num_tiles"])
    return {tile: values[tile] for tile in (range(len(values)) if tiles is None else tiles)}


def exchanges_frame(captured: Captured, tiles: Tiles = None, pattern: str | None = None) -> Answer:
    found, size = [], []
    for row in sorted(captured["programs"], key=lambda row: row["program_id"]):
        code = _of_tiles(captured, row["code_bytes_by_tile"], tiles)
        cycles = _of_tiles(captured, row["estimated_cycles_by_tile"], tiles)
        if any(code.values()) and _named(row["name"], pattern):
            largest = max(code, key=lambda tile, of=code: of[tile])
            found.append((row["program_id"], row["type"], row["name"], sum(code.values()), largest, code[largest],
                          max(cycles.values())))  # fmt: skip
            size.append(sum(code.values()))
    return answer(
        "program_id type name code_bytes largest_tile largest_tile_bytes max_estimated_cycles",
        _largest_first(found, size, 2),
    )


def declared(captured: Captured) -> dict[int, Row]:
    return {row["variable_id"]: row for row in captured.get("variables", [])}


def allocations(captured: Captured, tiles: Tiles) -> list[tuple[Any, str, Row]]:
    """What an allocation belongs to (a declared variable, or a name that the compiler made), its name, and the row."""
    known, found = declared(captured), []
    for row in sorted(chosen(captured["lowered_variables"], tiles), key=lambda row: row["lowered_variable_id"]):
        identity = row["variable_id"]
        name = row["name"] if identity is None else known.get(identity, {}).get("name") or f"variable {identity}"
        found.append(((identity, None if identity is not None else name), name, row))
    return found


def variables_frame(captured: Captured, tiles: Tiles = None, pattern: str | None = None) -> Answer:
    together: dict[Any, list[Row]] = defaultdict(list)
    names = {}
    for key, name, row in allocations(captured, tiles):
        if _named(name, pattern):
            names[key] = name
            together[key].append(row)
    found = []
    for key, rows in together.items():
        on_tile = Counter[int]()
        for row in rows:
            on_tile[row["tile"]] += row["bytes"]
        largest = max(sorted(on_tile), key=lambda tile, of=on_tile: of[tile])
        always = sum(row["bytes"] for row in rows if row["always_live"])
        found.append((names[key], key[0], sum(on_tile.values()), len(rows), len(on_tile), largest, on_tile[largest],
                      always))  # fmt: skip
    return answer(
        "name variable_id bytes num_allocations num_tiles largest_tile largest_tile_bytes always_live_bytes",
        _largest_first(found, [row[2] for row in found], 0),
    )


def variable_tiles(captured: Captured, pattern: str, tiles: Tiles = None) -> Answer:
    size: dict[tuple[str, int], int] = Counter()
    for _, name, row in allocations(captured, tiles):
        if _named(name, pattern):
            size[name, row["tile"]] += row["bytes"]
    return answer("name tile bytes", [(*key, size[key]) for key in sorted(size)])


# ----------------------------------------------------------------------------------------------------- the memory map
def memory_map(captured: Captured, tile: int) -> Answer:
    known, spans = declared(captured), defaultdict(list)
    for row in captured.get("equivalence_class_intervals", []):
        spans[row["equivalence_class_id"]].append((row["step_begin"], row["step_end"]))
    placed, rest = [], []
    for row in sorted(captured["lowered_variables"], key=lambda row: row["lowered_variable_id"]):
        if row["tile"] == tile:
            name = known.get(row["variable_id"], {}).get("name") or row["name"]
            steps = [] if row["always_live"] else spans.get(row["equivalence_class_id"], [])
            first, last = min((s[0] for s in steps), default=None), max((s[1] for s in steps), default=None)
            tail = (name, row["category"], row["region"], bool(row["always_live"]), first, last)
            if row["offset"] is None:
                rest.append((None, None, row["bytes"], "not allocated", *tail, 0))
            else:
                end = row["offset"] + row["bytes"]
                placed.append((row["offset"], end, row["bytes"], "allocation", *tail))
    lines = [(*one, sum(_share(one, other) for other in placed if other is not one)) for one in placed]
    lines += [(low, high, high - low, "gap", "", "", "", False, None, None, 0) for low, high in _gaps(captured, placed)]
    lines.sort(key=lambda line: (line[0], line[1], line[4]))
    rest.sort(key=lambda line: (-line[2], line[4]))
    return answer(
        "begin end bytes kind name category region always_live first_step last_step overlaps", [*lines, *rest]
    )


def _share(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _gaps(captured: Captured, placed: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Runs of unused addresses of each region, from its begin to its last used address; address by address."""
    used = {address for begin, end, *_ in placed for address in range(begin, end)}
    border = captured.get("target", [{}])[0].get("interleaved_begin")
    regions = [(0, border), (border, None)] if border is not None else [(0, None)]
    found: list[tuple[int, int]] = []
    for low, high in regions:
        mine = {address for address in used if address >= low and (high is None or address < high)}
        free = [address for address in range(low, max(mine, default=low)) if address not in mine]
        starts = [address for address in free if address == low or address - 1 in mine]
        ends = [address + 1 for address in free if address + 1 in mine]
        found += zip(starts, ends, strict=True)
    return found
