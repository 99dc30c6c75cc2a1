"""What operations cost: one by one, by module, by line of source; where things came from, and which tensors there are.

An operation is what :func:`pvanalyse.analysis.operation_groups.operation_groups` says it is, and costs are those of
:data:`pvanalyse.analysis.operation_costs.COSTS`, which their names mean everywhere here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.context_tree import ContextTree
from pvanalyse.analysis.memory_details import compiled, matching
from pvanalyse.analysis.operation_costs import COSTS, OperationCosts
from pvanalyse.analysis.operation_groups import (
    CONTEXT_COLUMNS,
    OperationGroups,
    contexts_of_programs,
    kind_of,
    layers_present,
    parsed_fields,
)
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

Per = Literal["line", "file"]
"""What source is told apart by."""


def by_operation(costs: OperationCosts, groups: OperationGroups, pattern: str | None = None) -> pd.DataFrame:
    """Return the operations in execution order.

    Parameters
    ----------
    costs
        What programs and variables of a report cost.
    groups
        Its operations.
    pattern
        Only operations in whose name this regular expression is found.

    Returns
    -------
    pandas.DataFrame
        The columns of :attr:`~pvanalyse.analysis.operation_groups.OperationGroups.frame`, then the costs.
    """
    found = costs.of_groups(groups.of_program, groups.of_variable, len(groups.frame))
    frame = pd.concat([groups.frame, found.iloc[:-1]], axis=1)
    return frame[matching(frame["name"], pattern)].reset_index(drop=True)


def by_module(
    costs: OperationCosts, groups: OperationGroups, depth: int = 1, pattern: str | None = None
) -> pd.DataFrame:
    r"""Return operations put together by module, in execution order.

    Parameters
    ----------
    costs, groups
        Of a report.
    depth
        How many parts of an operation's name, between slashes, are its module.
    pattern
        Instead, what this regular expression finds in a name is its module: its first group when it has one, such as
        ``/(layer_\d+)/``. Operations in whose name it finds nothing are left out.

    Returns
    -------
    pandas.DataFrame
        ``module``, ``num_operations``, ``num_programs``, ``num_variables``, and the costs; code that operations of a
        module share counts once in it.

    Raises
    ------
    UsageError
        The depth is less than 1, or the pattern no regular expression.
    """
    if depth < 1:
        raise UsageError(f"the depth of a module must be at least 1, not {depth}")
    names = groups.frame["name"]
    if pattern is None:
        modules: list[str | None] = ["/".join(name.split("/")[:depth]) for name in names.tolist()]
    else:
        expression = compiled(pattern)
        modules = [_module(expression, name) for name in names.tolist()]
    return _together(costs, groups, pd.DataFrame({"module": pd.array(modules, "str")}))


def by_source(
    costs: OperationCosts, groups: OperationGroups, per: Per = "line", pattern: str | None = None
) -> pd.DataFrame:
    """Return operations put together by where they were written, in execution order.

    Parameters
    ----------
    costs, groups
        Of a report.
    per
        Each ``line`` of a file by itself, or all of a ``file``.
    pattern
        Only operations in whose name this regular expression is found.

    Returns
    -------
    pandas.DataFrame
        ``file`` and, of lines, ``line`` (null unknown); then as of :func:`by_module`. Operations whose source is not
        known are left out.

    Raises
    ------
    UsageError
        Source is told apart by something else.
    """
    if per not in ("line", "file"):
        raise UsageError(f"source is told apart by line or by file, not by '{per}'")
    keys = groups.frame["location"].str.extract(r"^(?s:(.+?))(?::(\d{1,18}))?\Z")
    keys.columns = pd.Index(["file", "line"])
    keys["line"] = pd.array([None if pd.isna(line) else int(line) for line in keys["line"]], "Int64")
    keys["file"] = keys["file"].where(matching(groups.frame["name"], pattern))
    return _together(costs, groups, keys if per == "line" else keys[["file"]])


def outside(costs: OperationCosts, groups: OperationGroups) -> dict[str, int | None]:
    """Return what costs that which is in no operation has, by column; with ``num_programs`` and ``num_variables``."""
    last = costs.of_groups(groups.of_program, groups.of_variable, len(groups.frame)).iloc[-1]
    counts = {
        "num_programs": int((groups.of_program < 0).sum()),
        "num_variables": int((groups.of_variable < 0).sum()),
    }
    return counts | {name: None if last[name] is pd.NA else int(last[name]) for name in COSTS}


def layers_frame(source: TableSource) -> pd.DataFrame:
    """Return the layers of the debug contexts, in the order in which the file has them.

    Returns
    -------
    pandas.DataFrame
        ``layer``, ``num_contexts``, and how many programs and variables have a context of the layer, or below one:
        ``num_programs``, ``num_variables``.

    Raises
    ------
    NotCaptured
        The report has no debug information.
    """
    contexts = _contexts(source)
    tree, layers = ContextTree(contexts), contexts.column("layer").cast(pa.string())
    at_program, at_variable = tree.rows(contexts_of_programs(source)), _contexts_of_variables(source, tree)
    rows = []
    for layer in layers_present(contexts):
        of_layer = pc.equal(layers, layer).fill_null(False).to_numpy()
        inside = np.append(tree.nearest(of_layer) >= 0, False)
        rows.append((layer, int(of_layer.sum()), int(inside[at_program].sum()), int(inside[at_variable].sum())))
    counts = dict.fromkeys(["num_contexts", "num_programs", "num_variables"], np.int64)
    return pd.DataFrame(rows, columns=["layer", *counts]).astype({"layer": "str", **counts})


# ---------------------------------------------------------------------------------------------------- where it is from
def chain_frame(
    source: TableSource, program: int | str | None = None, variable: int | str | None = None
) -> pd.DataFrame:
    """Return the debug contexts of a program or a variable, from its own up to the user's.

    Parameters
    ----------
    source
        A report.
    program, variable
        One of them, by its id or its whole name; of several that have the name, the first.

    Returns
    -------
    pandas.DataFrame
        ``debug_context_id``, ``layer``, ``name``, ``kind``, ``file``, ``line``, ``function`` and ``fields`` (what the
        layer itself recorded, as JSON); the innermost first. No rows where it has no debug context.

    Raises
    ------
    UsageError
        Neither or both were given, or there is no such program or variable.
    NotCaptured
        The report has no debug information, or no programs or variables.
    """
    if (program is None) == (variable is None):
        raise UsageError("a chain is that of a program or of a variable: name one of them")
    contexts = _contexts(source)
    tree = ContextTree(contexts)
    if program is not None:
        row = _row_of(source, "programs", program)
        at = tree.rows(contexts_of_programs(source).slice(row, 1))
    else:
        row = _row_of(source, "variables", variable)
        at = tree.rows(source.arrow("variables", ["debug_context_id"]).column(0).slice(row, 1))
    rows = contexts.take(pa.array(tree.chain(int(at[0])), pa.int64()))
    fields = [parsed_fields(text) for text in rows.column("fields").to_pylist()]
    texts = {name: [text or "" for text in rows.column(name).to_pylist()] for name in _TEXTS}
    columns = {name: pd.array(values, "str") for name, values in (texts | {"kind": [*map(kind_of, fields)]}).items()}
    numbers = {name: pd.array(rows.column(name).to_pylist(), "Int64") for name in ("debug_context_id", "line")}
    return pd.DataFrame({**columns, **numbers})[_CHAIN]


_TEXTS = ("layer", "name", "file", "function", "fields")
_CHAIN = ["debug_context_id", "layer", "name", "kind", "file", "line", "function", "fields"]


def _row_of(source: TableSource, name: str, wanted: int | str | None) -> int:
    what = name.removesuffix("s")
    column = source.arrow(name, ["name" if isinstance(wanted, str) else f"{what}_id"]).column(0)
    row = int(pc.index(column, pa.scalar(wanted, column.type)).as_py())
    if row < 0:
        shown = f"'{wanted}'" if isinstance(wanted, str) else wanted
        raise UsageError(f"there is no {what} {shown}")
    return row


# --------------------------------------------------------------------------------------------------------- the tensors
def tensors_frame(source: TableSource, groups: OperationGroups, pattern: str | None = None) -> pd.DataFrame:
    """Return the tensors of operations, and their shapes where those were recorded.

    Tensors are the inputs and outputs that PopART recorded for an operation, the tensors that it describes by
    themselves, the result of an XLA instruction, and the variables that were declared.

    Parameters
    ----------
    source
        A report.
    groups
        Its operations.
    pattern
        Only operations in whose name this regular expression is found.

    Returns
    -------
    pandas.DataFrame
        In the order of the operations: ``operation`` and its ``debug_context_id``, ``role`` (``input``, ``output``,
        ``tensor`` or ``variable``), ``name``, ``element_type`` (``float``, ``f16`` …, empty unknown) and ``shape``
        (JSON, empty unknown); each combination once.
    """
    found = [*_recorded(source, groups), *_declared(source, groups)]
    rows = pd.DataFrame(found, columns=["row", *_TENSOR]).drop_duplicates().sort_values("row", kind="stable")
    texts = {name: pd.array(rows[name].tolist(), "str") for name in _TENSOR}
    of_row = groups.frame.iloc[rows["row"].to_numpy(np.int64)]
    owners = {"operation": of_row["name"].array, "debug_context_id": of_row["debug_context_id"].array}
    frame = pd.DataFrame({**owners, **texts})
    return frame[matching(frame["operation"], pattern)].reset_index(drop=True)


_TENSOR = ("role", "name", "element_type", "shape")
_Tensor = tuple[int, str, str, str, str]
_SIGNATURE = re.compile(r"(\w+)\[([\d,]*)\]")  # f16[4,64,32,32], with a layout behind it or without


def _recorded(source: TableSource, groups: OperationGroups) -> Iterator[_Tensor]:
    if not len(groups.of_context):
        return
    fields = source.arrow("debug_contexts", ["fields"]).column(0)
    telling = pc.match_substring_regex(fields, '"(tensorId|signature|inputs|outputs)":').fill_null(False).to_numpy()
    rows = np.flatnonzero(telling & (groups.of_context >= 0))
    for row, text in zip(groups.of_context[rows].tolist(), fields.take(pa.array(rows)).to_pylist(), strict=True):
        yield from ((row, *tensor) for tensor in _tensors(parsed_fields(text)))


def _tensors(fields: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield role, name, element type and shape of the tensors that a context recorded."""
    for role in ("input", "output"):
        listed = fields.get(f"{role}s")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, str):  # as PopART writes them
                yield role, one, "", ""
            elif isinstance(one, dict) and "tensorId" in one:
                yield (role, *_tensor(one))
    if "tensorId" in fields:
        yield ("tensor", *_tensor(fields))
    signature = _SIGNATURE.match(str(fields.get("signature", "")))
    if signature:
        yield "output", str(fields.get("hlo_name", "")), signature[1], f"[{signature[2]}]"


def _tensor(one: dict[str, Any]) -> tuple[str, str, str]:
    shape = one.get("shape", "")
    text = shape if isinstance(shape, str) else json.dumps(shape, separators=(",", ":"))
    return str(one["tensorId"]), str(one.get("elementType", "")), text.replace(" ", "")


def _declared(source: TableSource, groups: OperationGroups) -> Iterator[_Tensor]:
    rows = np.flatnonzero(groups.of_variable >= 0)
    if not len(rows):
        return
    table = source.arrow("variables", ["name", "element_type", "shape"]).take(pa.array(rows))
    texts = ([text or "" for text in column.to_pylist()] for column in table.columns)
    for row, name, element_type, shape in zip(groups.of_variable[rows].tolist(), *texts, strict=True):
        yield row, "variable", name, element_type, shape


# ----------------------------------------------------------------------------------------------------------- the parts
def _module(expression: re.Pattern[str], name: str) -> str | None:
    found = expression.search(name)
    return None if found is None else found[1 if expression.groups else 0]


def _together(costs: OperationCosts, groups: OperationGroups, keys: pd.DataFrame) -> pd.DataFrame:
    """Return the operations of each key together; ``keys`` has a row per operation, empty in its first column: none."""
    known = keys.iloc[:, 0].notna().to_numpy()
    number_of = keys[known].groupby([*keys.columns], sort=False, dropna=False).ngroup().to_numpy(np.int64)
    number = int(number_of.max(initial=-1)) + 1
    of_operation = np.full(len(keys) + 1, -1)
    of_operation[:-1][known] = number_of
    of_program, of_variable = of_operation[groups.of_program], of_operation[groups.of_variable]
    frame = keys[known].drop_duplicates().reset_index(drop=True)
    for name, of_row in (("operations", of_operation), ("programs", of_program), ("variables", of_variable)):
        frame[f"num_{name}"] = np.bincount(of_row[of_row >= 0], minlength=number)
    return pd.concat([frame, costs.of_groups(of_program, of_variable, number).iloc[:-1]], axis=1)


def _contexts(source: TableSource) -> pa.Table:
    if not source.captured("debug_contexts"):
        raise NotCaptured("debug_contexts", table("debug_contexts").capture)
    return source.arrow("debug_contexts", CONTEXT_COLUMNS)


def _contexts_of_variables(source: TableSource, tree: ContextTree) -> Integers:
    if not source.captured("variables"):
        return np.zeros(0, np.int64)
    return tree.rows(source.arrow("variables", ["debug_context_id"]).column(0))
