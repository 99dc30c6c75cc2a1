"""What operations cost, and where a name is, for people and programs: a part for each way to look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pvanalyse.analysis.operation_groups import NAMES
from pvanalyse.render.document import Fact, Section, Unit
from pvanalyse.render.parts import Part, Rows, Shown, listing

if TYPE_CHECKING:
    import pandas as pd

SORTED_BY: Mapping[str, str | None] = {
    "order": None,
    "name": "name",
    "cycles": "cycles",
    "executions": "executions",
    "flops": "flops",
    "code": "code_bytes",
    "vertex-code": "vertex_code_bytes",
    "exchange-code": "exchange_code_bytes",
    "control-code": "control_code_bytes",
    "vertex-state": "vertex_state_bytes",
    "variables": "variable_bytes",
    "always-live": "always_live_bytes",
    "peak": "peak_bytes",
}
"""Columns to sort by, as people call them: execution order, the first column, or a cost, most first."""

_USUALLY_BY = ("cycles", "peak_bytes", "variable_bytes", "code_bytes")  # the first of these that tells rows apart

_KEYS: Mapping[str, tuple[str, Sequence[Shown]]] = {
    "operation": ("Operations", (Shown("Operation", "name"),)),
    "module": ("Modules", (Shown("Module", "module"), Shown("Operations", "num_operations", Unit.COUNT))),
    "source": ("Lines of source", (Shown("File", "file"), Shown("Line", "line", Unit.COUNT),
                                   Shown("Operations", "num_operations", Unit.COUNT))),
    "file": ("Source files", (Shown("File", "file"), Shown("Operations", "num_operations", Unit.COUNT))),
}  # fmt: skip
_SUMMARY = (
    Shown("Source", "location"),
    Shown("Code", "code_bytes", Unit.BYTES),
    Shown("Variables", "variable_bytes", Unit.BYTES),
    Shown("At the peak", "peak_bytes", Unit.BYTES),
    Shown("Cycles", "cycles", Unit.CYCLES),
)
_CODE = (
    Shown("Code", "code_bytes", Unit.BYTES),
    Shown("Of vertices", "vertex_code_bytes", Unit.BYTES),
    Shown("Of exchanges", "exchange_code_bytes", Unit.BYTES),
    Shown("Of control", "control_code_bytes", Unit.BYTES),
    Shown("Vertex state", "vertex_state_bytes", Unit.BYTES),
)
_MEMORY = (
    Shown("Variables", "num_variables", Unit.COUNT),
    Shown("Their size", "variable_bytes", Unit.BYTES),
    Shown("Always live", "always_live_bytes", Unit.BYTES),
    Shown("At the peak", "peak_bytes", Unit.BYTES),
)
_EXECUTION = (
    Shown("Source", "location"),
    Shown("Programs", "num_programs", Unit.COUNT),
    Shown("Executions", "executions", Unit.COUNT),
    Shown("Cycles", "cycles", Unit.CYCLES),
    Shown("FLOPs", "flops", Unit.COUNT),
)
VIEWS: Mapping[str, Sequence[Shown]] = {
    "summary": _SUMMARY, "code": _CODE, "memory": _MEMORY, "execution": _EXECUTION,
}  # fmt: skip
"""The costs that people see together; programs get all of them."""

_BY_NAME = "Without debug information, operations are what the names of programs and variables begin with."
_TENSORS = (
    Shown("Operation", "operation"),
    Shown("Is its", "role"),
    Shown("Tensor", "name"),
    Shown("Type", "element_type"),
    Shown("Shape", "shape"),
)
_LAYERS = (
    Shown("Layer", "layer"),
    Shown("Contexts", "num_contexts", Unit.COUNT),
    Shown("Programs", "num_programs", Unit.COUNT),
    Shown("Variables", "num_variables", Unit.COUNT),
)
_OUTSIDE = (
    ("num_programs", "Programs", Unit.COUNT),
    ("num_variables", "Variables", Unit.COUNT),
    *((one.column, one.label, one.unit) for one in _SUMMARY if one.unit is not Unit.TEXT),
)


def ordered(frame: pd.DataFrame, sort: str | None) -> pd.DataFrame:
    """Return rows, most of a cost first.

    Parameters
    ----------
    frame
        Of :mod:`pvanalyse.analysis.operations`, in execution order.
    sort
        Of :data:`SORTED_BY`; None for cycles where anything ran, else what memory tells apart.
    """
    if sort is None:
        column = next((one for one in _USUALLY_BY if frame[one].fillna(0).any()), None)
    else:
        column = frame.columns[0] if sort == "name" and "name" not in frame else SORTED_BY[sort]
    if column is None:
        return frame
    return frame.sort_values(column, ascending=sort == "name", kind="stable", na_position="last", ignore_index=True)


def costs(by: str, frame: pd.DataFrame, view: str, match: str | None, rows: Rows) -> Part:
    """Return what operations, modules, lines or files cost.

    Parameters
    ----------
    by
        ``operation``, ``module``, ``source`` or ``file``.
    frame
        Of :mod:`pvanalyse.analysis.operations`, ordered.
    view
        Of :data:`VIEWS`: which of the costs people see.
    match
        The regular expression that names were chosen by, None for all.
    rows
        How many rows.
    """
    title, keys = _KEYS[by]
    heading = title if match is None else f"{title}, matching '{match}'"
    nothing = "There are none." if match is None else f"There are none whose name matches '{match}'."
    return listing(by + "s", heading, frame, (*keys, *VIEWS[view]), rows, nothing)


def outside(values: Mapping[str, int | None]) -> Part:
    """Return what that costs which is in no operation."""
    import pandas as pd

    facts = [Fact(label, values[name], unit) for name, label, unit in _OUTSIDE if values[name]]
    return Part("outside", Section("In no operation", facts), dict(values), pd.DataFrame([values], dtype=object))


def tensors(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return the tensors of operations."""
    heading = "Tensors" if match is None else f"Tensors of operations matching '{match}'"
    return listing("tensors", heading, frame, _TENSORS, rows, "No tensors were recorded.")


def layers(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the layers of the debug information."""
    title = "Layers, with the programs and variables that came through them"
    return listing("layers", title, frame, _LAYERS, rows, "There are no debug contexts.")


def verdict(frame: pd.DataFrame, grouped_by: str) -> str:
    """Say how many operations there are, and of which layers.

    Parameters
    ----------
    frame, grouped_by
        Of :class:`pvanalyse.analysis.operation_groups.OperationGroups`.
    """
    number = f"{len(frame):,} operation{'' if len(frame) == 1 else 's'}"
    if grouped_by == NAMES:
        return f"{number}. {_BY_NAME}"
    counts = frame["layer"].value_counts().items()
    held = ", ".join(f"{of_layer:,} of {layer or 'no layer'}" for layer, of_layer in counts)
    return f"{number}{': ' if held else ''}{held}."
