"""Which operation each program and each variable belongs to.

An operation is a debug context of the layer in which somebody wrote it down: a framework's, when one is there. What
has no debug context belongs to none. Without debug information, operations are what names begin with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, integers
from pvanalyse.analysis.context_tree import ContextTree, Flags
from pvanalyse.analysis.ids import Ids
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

CONTEXTS = "debug contexts"
NAMES = "name paths"

FRAMEWORK_LAYERS = (
    *("xla_op", "hloinstruction", "poplar_driver"),
    *("poptorch", "popxl", "popartbuilder", "onnx", "popart"),
)
"""Layers whose contexts are operations, or tensors of which their category says so."""

_TENSORS = ("tensor", "variable")  # categories of PopART's and ONNX's contexts that are not operations
CONTEXT_COLUMNS = ("debug_context_id", "parent_id", "name", "layer", "file", "function", "line", "fields")
"""The columns of table ``debug_contexts`` that tell operations apart; read together, the file is decoded once."""


@dataclass(frozen=True)
class OperationGroups:
    """The operations, and what belongs to each.

    Attributes
    ----------
    frame
        A row per operation in execution order, those that no liveness step runs after those that one does:
        ``debug_context_id`` (null where grouped by name), ``name`` (what the user called it: the name that its
        framework recorded, else the context's), ``layer``, ``kind`` (such as ``MatMul``, empty unknown), ``location``
        (``file:line`` of the user's own code, as near as is known), ``first_step`` and ``last_step`` (liveness steps
        that run programs of it, inclusive; null without any), ``num_programs``, ``num_variables``.
    of_program, of_variable, of_context
        int64, for each row of table ``programs``, ``variables`` and ``debug_contexts``: row in ``frame``, −1 for no
        operation. Empty where the table was not captured, or operations are not told by it.
    grouped_by
        :data:`CONTEXTS`, or :data:`NAMES` where no program or variable has a debug context that is known.
    """

    frame: pd.DataFrame
    of_program: Integers
    of_variable: Integers
    of_context: Integers
    grouped_by: str


def operation_groups(source: TableSource, layer: str | None = None, discarded: bool = False) -> OperationGroups:
    """Group programs and variables by the operation they belong to.

    The debug context of a program is its own, else that of its compute set. Its operation is the outermost context of
    :data:`FRAMEWORK_LAYERS` that is no tensor, of that context and those above it; else the outermost with a name.

    Parameters
    ----------
    source
        A report.
    layer
        Operations of this layer instead: the innermost context of it, of each context and those above it.
    discarded
        Whether operations count that PopART discarded while it compiled, even when nothing belongs to them; those
        come last. When they do not count, what would belong to them belongs to what is above them.

    Raises
    ------
    UsageError
        There is no context of that layer.
    NotCaptured
        The report has neither programs nor variables; or a layer was given and it has no debug information.
    """
    if not (source.captured("programs") or source.captured("variables")):
        raise NotCaptured("programs", table("programs").capture)
    if source.captured("debug_contexts"):
        contexts = source.arrow("debug_contexts", CONTEXT_COLUMNS)
        tree = ContextTree(contexts)
        at_program, at_variable = (tree.rows(ids) for ids in (contexts_of_programs(source), _ids(source, "variables")))
        if layer is not None or (at_program >= 0).any() or (at_variable >= 0).any():
            return _by_contexts(source, contexts, tree, (at_program, at_variable), layer, discarded)
    elif layer is not None:
        raise NotCaptured("debug_contexts", table("debug_contexts").capture)
    return _by_names(source)


def layers_present(contexts: pa.Table) -> list[str]:
    """Return the layers of debug contexts, in the order in which the file names them first."""
    return [one for one in pc.unique(contexts.column("layer").cast(pa.string())).to_pylist() if one]


# ------------------------------------------------------------------------------------------------- by debug contexts
def _by_contexts(
    source: TableSource,
    contexts: pa.Table,
    tree: ContextTree,
    at: tuple[Integers, Integers],
    layer: str | None,
    discarded: bool,
) -> OperationGroups:
    thrown_away = _discarded(contexts)
    usable = ~(thrown_away & (not discarded))
    if layer is None:
        operation = tree.outermost(_of_layers(contexts, FRAMEWORK_LAYERS) & ~_is_tensor(contexts) & usable)
        named = tree.outermost(_not_empty(contexts.column("name")) & usable)
        operation = np.where(operation >= 0, operation, named)
    else:
        _require_layer(contexts, layer)
        operation = tree.nearest(_of_layers(contexts, (layer,)) & usable)
    of_program, of_variable = (np.append(operation, -1)[rows] for rows in at)
    of_discarded = operation[thrown_away & discarded]
    chosen = np.unique(np.concatenate([of_program, of_variable, of_discarded]))
    chosen = chosen[chosen >= 0]
    row_of = np.full(len(tree) + 1, -1)
    row_of[chosen] = np.arange(len(chosen))
    frame = _described(contexts, tree, chosen)
    found = OperationGroups(frame, row_of[of_program], row_of[of_variable], row_of[operation], CONTEXTS)
    return _in_order(source, found)


def _require_layer(contexts: pa.Table, layer: str) -> None:
    present = layers_present(contexts)
    if layer not in present:
        raise UsageError(f"there is no layer '{layer}' in the debug information; there are: {', '.join(present)}")


def contexts_of_programs(source: TableSource) -> pa.ChunkedArray:
    """Return the debug context of each program; that of its compute set where it has none."""
    if not (source.captured("programs") and source.captured("compute_sets")):
        return _ids(source, "programs")
    programs = source.arrow("programs", ["compute_set_id", "debug_context_id"])
    sets = source.arrow("compute_sets", ["compute_set_id", "debug_context_id"])
    at = Ids(sets.column("compute_set_id")).rows(programs.column("compute_set_id"))
    of_set = sets.column("debug_context_id").take(pa.array(at, mask=at < 0))
    return pc.coalesce(programs.column("debug_context_id"), of_set)


def _ids(source: TableSource, name: str) -> pa.ChunkedArray:
    if not source.captured(name):
        return pa.chunked_array([[]], pa.int64())
    return source.arrow(name, ["debug_context_id"]).column(0)


def _of_layers(contexts: pa.Table, layers: Sequence[str]) -> Flags:
    return _true(pc.is_in(contexts.column("layer").cast(pa.string()), pa.array(layers, pa.string())))


def _is_tensor(contexts: pa.Table) -> Flags:
    """Tell which contexts may be of a tensor; a nested category is taken for the context's own."""
    fields = contexts.column("fields")
    found = [_true(pc.match_substring(fields, f'"category":"{one}"')) for one in _TENSORS]
    return np.asarray(np.logical_or.reduce(found), bool)


def _discarded(contexts: pa.Table) -> Flags:
    """Tell which contexts are of PopART's operations that it discarded before they were lowered."""
    # What is false is passed over here, as it is of most; a nested key of that name, below.
    told = _true(pc.match_substring_regex(contexts.column("fields"), '"discard":[^0fn]'))
    flags = _of_layers(contexts, ("popart",)) & told
    rows = np.flatnonzero(flags)
    texts = contexts.column("fields").take(pa.array(rows)).to_pylist()
    flags[rows] = [bool(parsed_fields(text).get("discard")) for text in texts]
    return flags


def _not_empty(texts: pa.ChunkedArray) -> Flags:
    return _true(pc.greater(pc.binary_length(texts.cast(pa.string())), 0))


def _true(column: pa.ChunkedArray) -> Flags:
    return np.asarray(column.fill_null(False).to_numpy(), bool)


def _described(contexts: pa.Table, tree: ContextTree, rows: Integers) -> pd.DataFrame:
    """Return what a frame of operations says of the contexts in these rows."""
    places = tree.outermost(_not_empty(contexts.column("file")))[rows]
    located = contexts.select(["file", "line"]).take(pa.array(places, mask=places < 0))
    own = contexts.select(["name", "layer", "fields"]).take(pa.array(rows))
    fields = [parsed_fields(text) for text in own.column("fields").to_pylist()]
    place = zip(fields, located.column("file").to_pylist(), located.column("line").to_pylist(), strict=True)
    texts = {
        "name": [
            _first_text(one, _NAMES) or name or "" for one, name in zip(fields, own["name"].to_pylist(), strict=True)
        ],
        "layer": [layer or "" for layer in own["layer"].to_pylist()],
        "kind": [kind_of(one) for one in fields],
        "location": [_location(*one) for one in place],
    }
    ids = integers(contexts.column("debug_context_id"))[rows]
    columns = {name: pd.array(values, "str") for name, values in texts.items()}
    return pd.DataFrame({"debug_context_id": pd.array(ids, "Int64"), **columns})


_NAMES = ("op_name", "opName")  # xla_op and poptorch; onnx
_KINDS = ("op_type", "opType", "opcode", "class", "api")  # those; onnx; hloinstruction; poplar_driver; popxl, poplibs


def parsed_fields(text: str | None) -> dict[str, Any]:
    """Return what a layer recorded, from column ``fields`` of table ``debug_contexts``; empty for nothing."""
    try:
        found = orjson.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _first_text(fields: dict[str, Any], keys: Sequence[str]) -> str:
    return next((value for key in keys if isinstance(value := fields.get(key), str) and value), "")


def kind_of(fields: dict[str, Any]) -> str:
    """Return the type of an operation, such as ``MatMul``; of PopART's ``ai.onnx.MatMul:9`` too. Empty unknown."""
    return _first_text(fields, _KINDS) or _first_text(fields, ("opid",)).partition(":")[0].rpartition(".")[2]


def _location(fields: dict[str, Any], file: str | None, line: int | None) -> str:
    """Return ``file:line``; those that XLA recorded as an operation's source are the user's, its location is not."""
    if source := _first_text(fields, ("sourcefile",)):
        file, line = source, fields.get("sourceline")
    return f"{file}:{line}" if file and isinstance(line, int) else file or ""


# -------------------------------------------------------------------------------------------------- by paths of names
def _by_names(source: TableSource) -> OperationGroups:
    paths = [_paths(source, name) for name in ("programs", "variables")]
    both = pa.chunked_array([chunk for column in paths for chunk in column.chunks], pa.string()).dictionary_encode()
    codes = both.combine_chunks() if isinstance(both, pa.ChunkedArray) else both
    names = codes.dictionary.to_pylist()
    at = np.asarray(codes.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    empty = pd.array([""] * len(names), "str")
    ids = pd.array([pd.NA] * len(names), "Int64")
    frame = pd.DataFrame({"debug_context_id": ids, "name": pd.array(names, "str"), "layer": empty, "kind": empty,
                          "location": empty})  # fmt: skip
    number = len(paths[0])
    return _in_order(source, OperationGroups(frame, at[:number], at[number:], np.zeros(0, np.int64), NAMES))


def _paths(source: TableSource, name: str) -> pa.ChunkedArray:
    """Return what the names begin with, up to the last slash; a whole name without one, null for no name."""
    if not source.captured(name):
        return pa.chunked_array([[]], pa.string())
    names = source.arrow(name, ["name"]).column(0)
    paths = pc.replace_substring_regex(names, r"(?s)/[^/]*\z", "")
    own = pc.if_else(pc.equal(paths, ""), names, paths)
    return pc.if_else(pc.equal(own, ""), pa.scalar(None, pa.string()), own)


# ---------------------------------------------------------------------------------------------------- execution order
def _in_order(source: TableSource, groups: OperationGroups) -> OperationGroups:
    """Return the groups in execution order: by their first step, then by their first program, then by variable."""
    number = len(groups.frame)
    first, last = _steps(source, groups.of_program, number)
    without = np.iinfo(np.int64).max
    starts = [first, _first_row(groups.of_program, number), _first_row(groups.of_variable, number)]
    order = np.lexsort([np.where(one < 0, without, one) for one in reversed(starts)])
    frame = groups.frame.assign(
        first_step=pd.arrays.IntegerArray(first, first < 0),
        last_step=pd.arrays.IntegerArray(last, first < 0),
        num_programs=_counts(groups.of_program, number),
        num_variables=_counts(groups.of_variable, number),
    )
    place = np.append(np.argsort(order), -1)
    return replace(
        groups,
        frame=frame.iloc[order].reset_index(drop=True),
        of_program=place[groups.of_program],
        of_variable=place[groups.of_variable],
        of_context=place[groups.of_context],
    )


def _steps(source: TableSource, of_program: Integers, number: int) -> tuple[Integers, Integers]:
    """Return the first and the last liveness step of each operation, −1 for none."""
    first, last = np.full(number, np.iinfo(np.int64).max), np.full(number, -1)
    if source.captured("liveness_steps") and source.captured("programs"):
        steps = source.arrow("liveness_steps", ["step", "program_id"])
        programs = source.arrow("programs", ["program_id"]).column(0)
        at = np.append(of_program, -1)[Ids(programs).rows(steps.column("program_id"))]
        step = integers(steps.column("step"))
        np.minimum.at(first, at[at >= 0], step[at >= 0])
        np.maximum.at(last, at[at >= 0], step[at >= 0])
    return np.where(last < 0, -1, first), last


def _first_row(of_row: Integers, number: int) -> Integers:
    """Return the first row that belongs to each operation, −1 for none."""
    first = np.full(number, -1)
    rows = np.flatnonzero(of_row >= 0)[::-1]
    first[of_row[rows]] = rows
    return first


def _counts(of_row: Integers, number: int) -> Integers:
    return np.bincount(of_row[of_row >= 0], minlength=number)
