"""When the bytes are live, by brute force: every allocation at every step, in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.oracle.frames import Answer, Captured, Row, answer
from tests.oracle.memory import Tiles, chosen, declared, tile_rows


# ----------------------------------------------------------------------------------------------------- what is live
def num_steps(captured: Captured) -> int:
    return max(row["step"] for row in captured["liveness_steps"]) + 1


def lifetimes(captured: Captured, tiles: Tiles) -> list[tuple[Row, list[tuple[int, int]]]]:
    """Every allocation that is not always live, with its intervals."""
    intervals = defaultdict(list)
    for row in captured["equivalence_class_intervals"]:
        intervals[row["equivalence_class_id"]].append((row["step_begin"], row["step_end"]))
    rows = sorted(chosen(captured["lowered_variables"], tiles), key=lambda row: row["lowered_variable_id"])
    return [(row, intervals.get(row["equivalence_class_id"], [])) for row in rows if not row["always_live"]]


def live_bytes(captured: Captured, tiles: Tiles) -> dict[tuple[int, int], int]:
    """Live bytes by tile and step."""
    live: dict[tuple[int, int], int] = Counter()
    last = num_steps(captured)
    for row, intervals in lifetimes(captured, tiles):
        for begin, end in intervals:
            for step in range(max(begin, 0), min(end, last)):
                live[row["tile"], step] += row["bytes"]
    return live


def curve(captured: Captured, ipu: int | None = None, tiles: Tiles = None, always_live: bool = False) -> Answer:
    steps = sorted(captured["liveness_steps"], key=lambda row: row["step"])
    if ipu is not None:
        width = captured.target["tiles_per_ipu"]
        tiles = [tile for tile in range(ipu * width, (ipu + 1) * width) if tiles is None or tile in tiles]
    live: dict[int, int] = Counter()
    if tiles is None:
        live = {row["step"]: row["not_always_live_bytes"] for row in steps}
    else:
        for (_, step), size in live_bytes(captured, tiles).items():
            live[step] += size
    always = 0
    if always_live:
        rows = tile_rows(captured, tiles)
        if tiles is None:
            rows = rows[: len(rows) // captured.target["num_replicas"]]
        always = sum(row["always_live_bytes"] for row in rows)
    programs = {row["program_id"]: row for row in captured.get("programs", [])}
    found = []
    for row in steps:
        program = programs.get(row["program_id"], {"type": "", "name": ""})
        size = live.get(row["step"], 0) + always
        found.append((row["step"], row["program_id"], program["type"], program["name"], size))
    return answer("step program_id program_type program_name bytes", found)


def peaks(captured: Captured, count: int = 1) -> Answer:
    steps = curve(captured)[1]
    size = [row[4] for row in steps]
    tops = []
    for at in range(len(size)):
        after = next((other for other in size[at:] if other != size[at]), -1)
        before = size[at - 1] if at else -1
        if before < size[at] > after:
            tops.append(at)
    tops.sort(key=lambda at: -size[at])
    contexts = {row["program_id"]: row["debug_context_id"] for row in captured.get("programs", [])}
    found = []
    for at in tops[:count]:
        step, program, kind, name, peak = steps[at]
        chain = debug_chain(captured, contexts.get(program))
        names = [context["name"] for context in chain if context["name"]]
        places = [context["place"] for context in chain if context["place"]]
        found.append((step, peak, program, kind, name, names[-1] if names else "", places[-1] if places else ""))
    return answer("step bytes program_id program_type program_name operation location", found)


def debug_chain(captured: Captured, identity: int | None) -> list[Row]:
    """A debug context and its ancestors, each once, innermost first, straight from the CBOR."""
    if captured.contexts is None:
        return []
    texts, by_id = captured.contexts["stringTable"], {}
    for context in captured.contexts["contexts"]:
        by_id.setdefault(context["id"], context)
    chain: list[Row] = []
    while identity in by_id and identity not in [context["id"] for context in chain]:
        context = by_id[identity]
        place = context.get("location")
        located = f"{texts[place['fileName']]}:{place['lineNumber']}" if place else ""
        chain.append({"id": identity, "name": texts[context["name"]], "layer": context["layer"], "place": located})
        identity = context.get("parentId")
    return chain


# ----------------------------------------------------------------------------------------------------------- by tile
def tile_peaks(captured: Captured) -> Answer:
    live, last = live_bytes(captured, None), num_steps(captured)
    found = []
    for row in tile_rows(captured, None):
        sizes = [live.get((row["tile"], step), 0) for step in range(last)]
        peak, always = max(sizes), row["always_live_bytes"]
        found.append((row["tile"], row["ipu"], sizes.index(peak), peak, always, peak + always,
                      row["not_always_live_bytes"]))  # fmt: skip
    return answer("tile ipu peak_step peak_bytes always_live_bytes peak_total_bytes stored_bytes", found)


def headroom(captured: Captured, tiles: list[int]) -> Answer:
    live, always = (
        live_bytes(captured, tiles),
        {row["tile"]: row["always_live_bytes"] for row in captured["tile_memory"]},
    )
    available = captured.target["bytes_per_tile"]
    rows = [(step, *(available - always[tile] - live.get((tile, step), 0) for tile in tiles))
            for step in range(num_steps(captured))]  # fmt: skip
    return ["step", *tiles], rows


# --------------------------------------------------------------------------------------------------------- variables
def live_at(captured: Captured, step: int, tiles: Tiles = None) -> Answer:
    known = declared(captured)
    captured["liveness_steps"]
    if tiles is None:
        rows = [(row["name"], row["variable_id"], row["bytes"], row["step_begin"], row["step_end"])
                for row in captured["variable_liveness"]]  # fmt: skip
    else:
        rows = [(known.get(row["variable_id"], {}).get("name") or row["name"], row["variable_id"], row["bytes"], *span)
                for row, spans in lifetimes(captured, tiles) for span in spans]  # fmt: skip
    together: dict[tuple[str, Any], list[tuple[int, int, int]]] = defaultdict(list)
    for name, identity, *rest in rows:
        if rest[1] <= step < rest[2]:
            together[name, identity].append(tuple(rest))
    found = []
    for (name, identity), spans in together.items():
        kind = known.get(identity, {"element_type": None, "shape": None})
        size, begins, ends = zip(*spans, strict=True)
        found.append((name, identity, sum(size), kind["element_type"], kind["shape"], min(begins), max(ends)))
    return answer(
        "name variable_id bytes element_type shape step_begin step_end",
        sorted(found, key=lambda row: (-row[2], row[0])),
    )


def lifetimes_frame(captured: Captured, names: set[str] | None = None, count: int | None = None) -> Answer:
    """As documented; ``names`` are those that the pattern is found in. Equally large variables: by name, then id."""
    rows = [row for row in captured["variable_liveness"] if names is None or row["name"] in names]
    largest: dict[tuple[str, Any], int] = {}
    for row in rows:
        key = (row["name"], row["variable_id"])
        largest[key] = max(row["bytes"], largest.get(key, -1))
    order = sorted(largest, key=lambda key: (-largest[key], key[0], key[1] is None, key[1]))[:count]
    rows.sort(key=lambda row: row["step_begin"])
    found = [(row["name"], row["variable_id"], row["bytes"], row["step_begin"], row["step_end"])
             for key in order for row in rows if (row["name"], row["variable_id"]) == key]  # fmt: skip
    return answer("name variable_id bytes step_begin step_end", found)


def difference(captured: Captured, first: int, second: int) -> Answer:
    sizes: list[dict[str, int]] = [Counter(), Counter()]
    for at, step in enumerate((first, second)):
        for name, _, size, *_ in live_at(captured, step)[1]:
            sizes[at][name] += size
    rows = [
        (name, sizes[0][name], sizes[1][name], sizes[1][name] - sizes[0][name]) for name in {**sizes[0], **sizes[1]}
    ]
    rows = sorted((row for row in rows if row[3]), key=lambda row: (-abs(row[3]), row[0]))
    return answer("name first_bytes second_bytes change_bytes", rows)


def always_live(captured: Captured) -> Answer:
    rows = [(row["name"], row["variable_id"], row["bytes"]) for row in captured["always_live_variables"]]
    return answer("name variable_id bytes", sorted(rows, key=lambda row: (-row[2], row[0])))


def explain_peak(captured: Captured, reduce_by: int) -> Answer:
    """Greedy as documented; each round adds everything up afresh. Of equally large variables the first of the table goes."""
    rows = captured["variable_liveness"]
    steps = {row["step"]: row["not_always_live_bytes"] for row in captured["liveness_steps"]}
    start = [steps.get(step, 0) for step in range(num_steps(captured))]
    goal = max(start) - reduce_by
    freed: list[Any] = []
    found: list[tuple[str, int, int, int, int]] = []
    while True:
        size = list(start)
        for row in rows:
            if _variable(row) in freed:
                for step in range(max(row["step_begin"], 0), min(row["step_end"], len(size))):
                    size[step] -= row["bytes"]
        at = size.index(max(size))
        if found:
            found[-1] = (*found[-1][:3], size[at], at)
        live: dict[Any, int] = Counter()
        names = {}
        for row in rows:
            if _variable(row) not in freed and row["step_begin"] <= at < row["step_end"]:
                live[_variable(row)] += row["bytes"]
                names.setdefault(_variable(row), row["name"])
        if size[at] <= max(goal, 0) or not live:
            return answer("name bytes at_step peak_after_bytes peak_after_step", found)
        largest = max(live, key=lambda one, of=live: of[one])
        freed.append(largest)
        found.append((names[largest], live[largest], at, 0, 0))


def _variable(row: Row) -> Any:
    return row["name"] if row["variable_id"] is None else row["variable_id"]


def fp16_candidates(captured: Captured, worst: int) -> Answer:
    captured["variables"]
    columns = "name bytes saving_bytes num_tiles largest_tile largest_tile_saving_bytes"
    size: dict[str, dict[int | None, int]] = defaultdict(Counter)
    if "lowered_variables" in captured and "equivalence_class_intervals" in captured:
        tiles = sorted(tile_peaks(captured)[1], key=lambda row: (-row[5], row[0]))[:worst]
        for tile, _, step, *_ in tiles:
            for name, _, part, kind, *_ in live_at(captured, step, [tile])[1]:
                if kind == "float":
                    size[name][tile] += part
    else:
        top = peaks(captured)[1][0][0]
        for name, _, part, kind, *_ in live_at(captured, top)[1]:
            if kind == "float":
                size[name][None] += part
    found = []
    for name, of in size.items():
        total = sum(of.values())
        at = max(sorted(of), key=lambda tile, of=of: of[tile]) if None not in of else None
        tail = (None, None, None) if at is None else (len(of), at, of[at] // 2)
        found.append((name, total, total // 2, *tail))
    return answer(columns, sorted(found, key=lambda row: (-row[2], row[0])))


# ------------------------------------------------------------------------------------------------------- consistency
def findings(captured: Captured) -> set[tuple[Any, ...]]:
    """Where the stored numbers and those of the allocations differ: quantity, tile, step, stored, computed."""
    found: list[tuple[Any, ...]] = []
    memory = captured.get("tile_memory", [])
    for row in memory:
        regions = ("non_interleaved", "interleaved", "overflowed")
        parts = sum(row[f"{region}_including_gaps"] for region in regions)
        found.append(("total_including_gaps of the regions", row["tile"], None, row["total_including_gaps"], parts))
    if memory and "lowered_variables" in captured:
        always: dict[int, int] = Counter()
        for row in captured["lowered_variables"]:
            always[row["tile"]] += row["bytes"] if row["always_live"] else 0
        found += [("always_live_bytes", row["tile"], None, row["always_live_bytes"], always[row["tile"]])
                  for row in memory]  # fmt: skip
    if memory and "tile_memory_category" in captured:
        stored = sum(row["total_excluding_gaps"] for row in memory)
        alone = sum(row["non_overlapped"] for row in captured["tile_memory_category"])
        most = alone + sum(row["overlapped"] for row in captured["tile_memory_category"])
        found.append(("total_excluding_gaps of the categories", None, None, stored, min(max(stored, alone), most)))
    needed = {"lowered_variables", "equivalence_class_intervals", "liveness_steps"}
    if memory and needed <= set(captured):
        found += [("not_always_live_bytes", row[0], None, row[6], row[3]) for row in tile_peaks(captured)[1]]
        replicas = captured["target"][0]["num_replicas"] if "target" in captured else 1
        live = curve(captured, tiles=list(range(len(memory) // replicas)))[1]
        stored_steps = {row["step"]: row["not_always_live_bytes"] for row in captured["liveness_steps"]}
        found += [("liveness of one replica", None, row[0], stored_steps[row[0]], row[4]) for row in live]
    return {row for row in found if row[3] != row[4]}
