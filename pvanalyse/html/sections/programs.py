"""The program tree, and what operations and variables cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from pvanalyse.analysis import memory_details
from pvanalyse.analysis.operation_costs import OperationCosts
from pvanalyse.analysis.operation_groups import NAMES, OperationGroups, operation_groups
from pvanalyse.analysis.operations import by_module, by_operation, by_source
from pvanalyse.analysis.programs import cut, program_tree
from pvanalyse.errors import NotCaptured
from pvanalyse.html.sections.source import Making
from pvanalyse.render.document import Unit

_SIZES = ("control_code_bytes", "exchange_code_bytes", "executions", "cycles", "live_bytes")
_MODULE_PARTS = 2  # of an operation's name
_COSTS = [
    ("cycles", "Cycles", Unit.CYCLES),
    ("executions", "Executions", Unit.COUNT),
    ("peak_bytes", "Live at the peak", Unit.BYTES),
    ("variable_bytes", "Variables", Unit.BYTES),
    ("code_bytes", "Code", Unit.BYTES),
    ("vertex_state_bytes", "Vertex state", Unit.BYTES),
    ("flops", "FLOPs", Unit.COUNT),
    ("num_programs", "Programs", Unit.COUNT),
]
_OPERATIONS = [
    ("name", "Operation", Unit.TEXT),
    ("kind", "Kind", Unit.TEXT),
    ("location", "Source", Unit.TEXT),
    *_COSTS,
]
_MODULES = [("module", "Module", Unit.TEXT), ("num_operations", "Operations", Unit.COUNT), *_COSTS]
_LINES = [("location", "Line", Unit.TEXT), ("num_operations", "Operations", Unit.COUNT), *_COSTS]
_VARIABLES = [
    ("name", "Variable", Unit.TEXT),
    ("bytes", "Bytes", Unit.BYTES),
    ("always_live_bytes", "Always live", Unit.BYTES),
    ("num_allocations", "Allocations", Unit.COUNT),
    ("num_tiles", "Tiles", Unit.COUNT),
    ("largest_tile", "Largest on tile", Unit.COUNT),
    ("largest_tile_bytes", "There", Unit.BYTES),
]
_VERTICES = [
    ("name", "Vertex", Unit.TEXT),
    ("code_bytes", "Code", Unit.BYTES),
    ("num_instances", "Instances", Unit.COUNT),
    ("state_bytes", "State", Unit.BYTES),
    ("num_tiles", "Tiles", Unit.COUNT),
]


def tree(making: Making) -> dict[str, Any]:
    """Return the rows of the program tree, parents before their children."""
    frame = program_tree(making.report)
    whole = len(frame)
    if whole > making.limits.programs:
        within = np.cumsum(np.bincount(frame["depth"].to_numpy(np.int64))) <= making.limits.programs
        deepest = max(0, int(within.sum()) - 1)
        frame = cut(frame, deepest).head(making.limits.programs)
        making.left_out.append(
            f"Only {len(frame):,} of {whole:,} rows of the tree are in this page, those down to depth {deepest}."
        )
    pack = making.pack
    return {
        "length": len(frame),
        "depth": pack.whole(frame["depth"]),
        "id": pack.whole(frame["program_id"]),
        "kind": pack.texts(frame["kind"]),
        "type": pack.texts(frame["type"]),
        "name": pack.texts(frame["name"]),
        "note": pack.texts(frame["note"]),
        "repeat": making.column(frame["repeat_count"]),
        **{name: making.column(frame[name]) for name in _SIZES},
    }


def operations(making: Making) -> dict[str, Any]:
    """Return tables: operations one by one, by module and by line of source; variables; vertices."""
    source = making.report

    @cache
    def asked() -> tuple[OperationCosts, OperationGroups]:
        return OperationCosts(source), operation_groups(source)

    wanted = (
        _Table("operations", "Operations", _OPERATIONS, lambda: by_operation(*asked())),
        _Table("modules", "Modules", _MODULES, lambda: by_module(*asked(), _MODULE_PARTS)),
        _Table("lines", "Lines of source", _LINES, lambda: _by_line(*asked())),
        _Table("variables", "Variables", _VARIABLES, lambda: memory_details.variables_frame(source)),
        _Table("vertices", "Vertices", _VERTICES, lambda: memory_details.vertices_frame(source)),
    )
    tables: list[dict[str, Any]] = []
    missing: list[NotCaptured] = []
    for one in wanted:
        try:
            frame = one.make()
        except NotCaptured as error:
            missing.append(error)
            making.left_out.append(f"{one.label}: {error}")
            continue
        if len(frame) or not tables:
            tables.append(one.packed(making, frame))
    if not tables:
        raise missing[0]
    if tables[0]["key"] == "operations" and asked()[1].grouped_by == NAMES:
        making.left_out.append("Without debug information, operations are what names begin with.")
    return {"tables": tables}


@dataclass(frozen=True)
class _Table:
    """A table of the page: its name, its heading, its columns, and what makes it."""

    key: str
    label: str
    columns: Sequence[tuple[str, str, Unit]]
    make: Callable[[], pd.DataFrame]

    def packed(self, making: Making, frame: pd.DataFrame) -> dict[str, Any]:
        """Return the rows, largest first by the first size that tells them apart, without columns of nothing."""
        sizes = [name for name, _, unit in self.columns if unit in (Unit.CYCLES, Unit.BYTES)]
        size = next((name for name in sizes if frame[name].fillna(0).any()), None)
        if size is not None:
            frame = frame.sort_values(size, ascending=False, kind="stable", na_position="last")
        frame = making.first(frame, making.limits.rows, self.label.lower())
        held = [one for one in self.columns if one[2] is Unit.TEXT or frame[one[0]].notna().any()]
        return {"key": self.key, "label": self.label, "sort": size, **making.table(frame, held)}


def _by_line(costs: OperationCosts, groups: OperationGroups) -> pd.DataFrame:
    frame = by_source(costs, groups)
    lines = ["" if pd.isna(line) else f":{line}" for line in frame["line"].tolist()]
    places = [f"{file}{line}" for file, line in zip(frame["file"].tolist(), lines, strict=True)]
    return frame.assign(location=pd.Series(places, index=frame.index, dtype="str"))
