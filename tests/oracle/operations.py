"""Operations and what they cost in plain Python, thing by thing, from the rows and the CBOR themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import cache
from typing import Any

from tests.oracle.frames import Answer, Captured, Row, numbers

FRAMEWORKS = {"xla_op", "hloinstruction", "poplar_driver", "poptorch", "popxl", "popartbuilder", "onnx", "popart"}
KINDS = ("op_type", "opType", "opcode", "class", "api")
COSTS = (
    *("code_bytes", "vertex_code_bytes", "exchange_code_bytes", "control_code_bytes", "vertex_state_bytes"),
    *("variable_bytes", "always_live_bytes", "peak_bytes", "cycles", "flops", "executions"),
)
FRAME = [
    "debug_context_id",
    "name",
    "layer",
    "kind",
    "location",
    "first_step",
    "last_step",
    "num_programs",
    "num_variables",
]
Group = Hashable | None


# ---------------------------------------------------------------------------------------------------- debug contexts
class Contexts:
    """The contexts of a debug.cbor by their place in the file, and who is above whom."""

    def __init__(self, captured: Captured) -> None:
        self.rows: list[Row] = captured.contexts["contexts"]
        self.texts = captured.contexts["stringTable"]
        self.at: dict[int, int] = {}
        for place, one in enumerate(self.rows):
            self.at.setdefault(one["id"], place)
        self.above = [self.at.get(one.get("parentId") or -1) for one in self.rows]
        for place in range(len(self.rows)):
            circle = [place]
            while (upper := self.above[circle[-1]]) is not None and upper not in circle:
                circle.append(upper)
            if upper == place and place == min(circle):  # cut open above its first
                self.above[place] = None

    def name(self, place: int) -> str:
        return self.texts[self.rows[place]["name"]] if "name" in self.rows[place] else ""

    def file(self, place: int) -> str:
        return self.texts[self.rows[place]["location"]["fileName"]] if "location" in self.rows[place] else ""

    def chain(self, place: int | None) -> list[int]:
        found = []
        while place is not None:
            found.append(place)
            place = self.above[place]
        return found

    def operation(self, start: int | None, layer: str | None, discarded: bool) -> int | None:
        """The operation that a context, by its place, belongs to, as the place of another."""
        chain = [place for place in self.chain(start) if discarded or not self.discarded(place)]
        if layer is not None:
            return next((place for place in chain if self.rows[place]["layer"] == layer), None)
        frameworks = [place for place in chain if self.rows[place]["layer"] in FRAMEWORKS
                      and self.rows[place].get("category") not in ("tensor", "variable")]  # fmt: skip
        named = [place for place in chain if self.name(place)]
        return [*named, *frameworks][-1] if frameworks or named else None

    def discarded(self, place: int) -> bool:
        return self.rows[place]["layer"] == "popart" and bool(self.rows[place].get("discard"))

    def describe(self, place: int) -> tuple[Any, ...]:
        row = self.rows[place]
        names = [value for key in ("op_name", "opName") if isinstance(value := row.get(key), str) and value]
        kinds = [row[key] for key in KINDS if row.get(key)]
        if not kinds and "opid" in row:
            kinds = [row["opid"].split(":")[0].split(".")[-1]]
        return row["id"], [*names, self.name(place)][0], row["layer"], [*kinds, ""][0], self.location(place)

    def location(self, place: int) -> str:
        row = self.rows[place]
        if row.get("sourcefile"):
            return f"{row['sourcefile']}:{row['sourceline']}" if type(row["sourceline"]) is int else row["sourcefile"]
        located = [one for one in self.chain(place) if self.file(one)]
        return f"{self.file(located[-1])}:{self.rows[located[-1]]['location']['lineNumber']}" if located else ""


# ------------------------------------------------------------------------------------------------------------- groups
class Groups:
    """The operation of each program and variable, in the order of execution."""

    def __init__(self, captured: Captured, layer: str | None = None, discarded: bool = False) -> None:
        programs, variables = captured.get("programs", []), captured.get("variables", [])
        of_set = contexts_of_sets(captured)
        ids = [row["debug_context_id"] if row["debug_context_id"] is not None else of_set.get(row["compute_set_id"])
               for row in programs]  # fmt: skip
        of_variables = [row["debug_context_id"] for row in variables]
        contexts = Contexts(captured) if captured.contexts else None
        self.grouped_by = "name paths"
        extra: list[Group] = []
        if contexts and (layer is not None or any(one in contexts.at for one in [*ids, *of_variables])):
            self.grouped_by = "debug contexts"
            program_groups: list[Group] = [contexts.operation(contexts.at.get(one), layer, discarded) for one in ids]
            variable_groups: list[Group] = [
                contexts.operation(contexts.at.get(one), layer, discarded) for one in of_variables
            ]
            if discarded:
                gone = [place for place in range(len(contexts.rows)) if contexts.discarded(place)]
                extra = sorted({contexts.operation(place, layer, discarded) for place in gone} - {None})
        else:
            program_groups, variable_groups = (
                [path(row["name"]) for row in programs],
                [path(row["name"]) for row in variables],
            )
        steps: dict[Group, list[int]] = {}
        group_of = dict(zip([row["program_id"] for row in programs], program_groups, strict=True))
        for row in captured.get("liveness_steps", []):
            steps.setdefault(group_of.get(row["program_id"]), []).append(row["step"])
        everything = [one for one in dict.fromkeys([*program_groups, *variable_groups, *extra]) if one is not None]
        self.keys = sorted((one for one in everything if one in steps), key=lambda one: min(steps[one]))
        self.keys += [one for one in everything if one not in steps]
        self.of_program = [None if one is None else self.keys.index(one) for one in program_groups]
        self.of_variable = [None if one is None else self.keys.index(one) for one in variable_groups]
        self.contexts, self.layer, self.discarded = contexts, layer, discarded
        self.rows: list[tuple[Any, ...]] = []
        for at, key in enumerate(self.keys):
            own = (
                contexts.describe(key) if contexts and self.grouped_by == "debug contexts" else (None, key, "", "", "")
            )
            mine = steps.get(key)
            counts = self.of_program.count(at), self.of_variable.count(at)
            self.rows.append((*own, min(mine) if mine else None, max(mine) if mine else None, *counts))


def contexts_of_sets(captured: Captured) -> dict[int, int | None]:
    return {row["compute_set_id"]: row["debug_context_id"] for row in captured.get("compute_sets", [])}


def path(name: str) -> str | None:
    return name.rpartition("/")[0] or name or None


# -------------------------------------------------------------------------------------------------------------- costs
def costs(
    captured: Captured, of_program: Sequence[Group], of_variable: Sequence[Group], group: Group
) -> tuple[Any, ...]:
    """Return what a group costs; None is what is in no group."""
    tiles = captured.target["num_tiles"]
    found: dict[str, int | None] = dict.fromkeys(COSTS)
    programs = [row for row, one in zip(captured.get("programs", []), of_program, strict=True) if one == group]
    if "programs" in captured:
        control = {row["program_id"]: _total(row["control_code_by_tile"], tiles) for row in captured["programs"]}
        below = Counter[int]()
        for edge in captured.get("program_children", []):
            below[edge["program_id"]] += control.get(edge["child_id"], 0)
        own = [max(0, control[row["program_id"]] - below[row["program_id"]]) for row in programs]
        found["control_code_bytes"] = sum(own)
        found["exchange_code_bytes"] = sum(_total(row["code_bytes_by_tile"], tiles) for row in programs)
        found |= _executed(captured, {row["program_id"] for row in programs}, group)
    found |= _of_sets(captured, {row["compute_set_id"] for row in programs}, group, tiles)
    parts = [found[name] for name in ("vertex_code_bytes", "exchange_code_bytes", "control_code_bytes")]
    found["code_bytes"] = None if None in parts else sum(filter(None, parts))
    owned = {row["variable_id"]: one for row, one in zip(captured.get("variables", []), of_variable, strict=True)}
    if "lowered_variables" in captured:
        mine = [row for row in captured["lowered_variables"] if owned.get(row["variable_id"]) == group]
        found["variable_bytes"] = sum(row["bytes"] for row in mine)
        found["always_live_bytes"] = sum(row["bytes"] for row in mine if row["always_live"])
    if "variable_liveness" in captured and "liveness_steps" in captured:
        peak = max(captured["liveness_steps"], key=lambda row: (row["not_always_live_bytes"], -row["step"]))["step"]
        found["peak_bytes"] = sum(row["bytes"] for row in captured["variable_liveness"]
                                  if row["step_begin"] <= peak < row["step_end"] and owned.get(row["variable_id"]) == group)  # fmt: skip
    return tuple(found.values())


@cache
def _total(blob: bytes | None, tiles: int) -> int:
    return sum(numbers(blob, tiles))


def _executed(captured: Captured, programs: set[int], group: Group) -> dict[str, int]:
    if not ("execution_steps" in captured and "execution_step_ipus" in captured):
        return {}
    described = {row["program_id"] for row in captured["programs"]}
    steps = {row["step_id"] for row in captured["execution_steps"]
             if row["program_id"] in programs or (group is None and row["program_id"] not in described)}  # fmt: skip
    cycles = sum(row["cycles"] for row in captured["execution_step_ipus"] if row["step_id"] in steps)
    return {"executions": len(steps), "cycles": cycles}


def _of_sets(captured: Captured, wanted: set[int | None], group: Group, tiles: int) -> dict[str, int | None]:
    if not ("programs" in captured and "compute_sets" in captured):
        return {}
    run = {row["compute_set_id"] for row in captured["programs"]}
    sets = {row["compute_set_id"] for row in captured["compute_sets"]
            if row["compute_set_id"] in wanted or (group is None and row["compute_set_id"] not in run)}  # fmt: skip
    flops = [
        row["flops"] for row in captured["compute_sets"] if row["compute_set_id"] in sets and row["flops"] is not None
    ]
    found: dict[str, int | None] = {"flops": sum(flops) if flops else None}
    if all(name in captured for name in ("vertex_types", "tile_vertices", "compute_set_vertices")):
        state = {row["vertex_type_id"]: row["instance_bytes"] for row in captured["vertex_types"]}
        used: set[tuple[int, int]] = set()
        found["vertex_state_bytes"] = 0
        for row in captured["compute_set_vertices"]:
            if row["compute_set_id"] in sets:
                counts = numbers(row["count_by_tile"], tiles)
                found["vertex_state_bytes"] += sum(counts) * state.get(row["vertex_type_id"], 0)
                used |= {(tile, row["vertex_type_id"]) for tile, count in enumerate(counts) if count}
        found["vertex_code_bytes"] = sum(row["code_bytes"] for row in captured["tile_vertices"]
                                         if (row["tile"], row["vertex_type_id"]) in used and row["vertex_type_id"] in state)  # fmt: skip
    return found


# ------------------------------------------------------------------------------------------------------------- frames
def by_operation(captured: Captured, layer: str | None = None, discarded: bool = False) -> Answer:
    found = Groups(captured, layer, discarded)
    rows = [(*row, *costs(captured, found.of_program, found.of_variable, at)) for at, row in enumerate(found.rows)]
    return [*FRAME, *COSTS], rows


def outside(captured: Captured, layer: str | None = None) -> Row:
    found = Groups(captured, layer)
    counts = {"num_programs": found.of_program.count(None), "num_variables": found.of_variable.count(None)}
    return counts | dict(zip(COSTS, costs(captured, found.of_program, found.of_variable, None), strict=True))


def by_module(captured: Captured, depth: int, pattern: str | None = None) -> Answer:
    found = Groups(captured)
    modules: list[Group] = []
    for row in found.rows:
        match = re.search(pattern, row[1]) if pattern else None
        modules.append((match[1] if match else None,) if pattern else ("/".join(row[1].split("/")[:depth]),))
    return _together(captured, found, [None if one == (None,) else one for one in modules], ["module"])


def by_source(captured: Captured, per: str) -> Answer:
    found = Groups(captured)
    places: list[Group] = []
    for row in found.rows:
        file, colon, line = row[4].rpartition(":")
        with_line = bool(colon) and line.isdecimal() and len(line) <= 18 and bool(file)
        place = (file, int(line)) if with_line else (row[4], None)
        places.append(None if not row[4] else place if per == "line" else place[:1])
    return _together(captured, found, places, ["file", "line"] if per == "line" else ["file"])


def _together(captured: Captured, found: Groups, keys: Sequence[Any], columns: Iterable[str]) -> Answer:
    def group(at: int | None) -> Group:
        return None if at is None else keys[at]

    of_program, of_variable = [group(at) for at in found.of_program], [group(at) for at in found.of_variable]
    rows = [
        (*key, keys.count(key), of_program.count(key), of_variable.count(key),
         *costs(captured, of_program, of_variable, key))
        for key in dict.fromkeys(keys) if key is not None
    ]  # fmt: skip
    return [*columns, "num_operations", "num_programs", "num_variables", *COSTS], rows


def tensors(captured: Captured) -> Answer:
    found = Groups(captured)
    rows: list[tuple[Any, ...]] = []
    if found.contexts and found.grouped_by == "debug contexts":
        for place, context in enumerate(found.contexts.rows):
            key = found.contexts.operation(place, None, False)
            if key in found.keys:
                rows += [(found.keys.index(key), *tensor) for tensor in _tensors(context)]
    for row, at in zip(captured.get("variables", []), found.of_variable, strict=True):
        if at is not None:
            rows.append((at, "variable", row["name"], row["element_type"] or "", row["shape"] or ""))
    ordered = sorted(dict.fromkeys(rows), key=lambda row: row[0])
    owned = [(found.rows[at][1], found.rows[at][0], *tensor) for at, *tensor in ordered]
    return ["operation", "debug_context_id", "role", "name", "element_type", "shape"], owned


def _tensors(context: Row) -> list[tuple[str, str, str, str]]:
    found = [
        (key[:-1], one, "", "") if isinstance(one, str)
        else (key[:-1], one["tensorId"], "", str(one["shape"]).replace(" ", ""))
        for key in ("inputs", "outputs") if isinstance(context.get(key), list)
        for one in context[key] if isinstance(one, dict | str)
    ]  # fmt: skip
    if "tensorId" in context:
        found.append(("tensor", context["tensorId"], context["elementType"], str(context["shape"]).replace(" ", "")))
    signature = context.get("signature")
    if isinstance(signature, str) and not signature.startswith("("):
        element, _, shape = signature.partition("[")
        found.append(("output", context["hlo_name"], element, f"[{shape.partition(']')[0]}]"))
    return found


def chain(contexts: Contexts, identity: int | None) -> list[tuple[Any, ...]]:
    places = contexts.chain(contexts.at.get(identity))
    return [
        (contexts.rows[one]["id"], contexts.rows[one]["layer"], contexts.name(one), contexts.file(one))
        for one in places
    ]
