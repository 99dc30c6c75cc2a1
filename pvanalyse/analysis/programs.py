"""The program tree: control programs and functions, what is in them, and what each costs with everything below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Keys, Sums, integers
from pvanalyse.analysis.memory_details import matching
from pvanalyse.analysis.origins import Origins
from pvanalyse.analysis.program_graph import (
    KINDS,
    OTHER,
    ProgramGraph,
    Walk,
    largest_below,
    program_graph,
    sums_below,
    without_cycles,
)
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

CHOSEN = "chosen"
"""The kind of a tree that starts where it was asked to."""

_SUMMED = ("control_code_bytes", "exchange_code_bytes", "executions", "cycles")
_EXECUTED = ("executions", "cycles")


def program_tree(
    source: TableSource,
    *,
    kind: str | None = None,
    root: int | None = None,
    operation: str | None = None,
    pattern: str | None = None,
    depth: int | None = None,
) -> pd.DataFrame:
    """Return the program tree in order, a row each time that a program occurs in it.

    A program that occurs several times, as the body of a function does, is expanded where it comes first. A program
    above itself is not followed round; without that edge, everything below is about a graph without cycles.

    Parameters
    ----------
    source
        A report.
    kind
        Only trees of this kind: ``control``, ``function``, or ``other`` for programs that no root leads to.
    root
        Only the tree that starts at this program.
    operation
        Of these trees, only what starts at the outermost programs of operations in whose name this regular expression
        is found: in that of a debug context of the program, or of its compute set, or of one above these.
    pattern
        Only programs in whose name this regular expression is found, and those above them.
    depth
        Only programs at most so far below a root, which has depth 0.

    Returns
    -------
    pandas.DataFrame
        ``depth``; ``kind`` of the tree (``chosen`` where its start was); ``program_id``; ``parent_id`` (null for
        roots); ``type``; ``name``; ``repeat_count`` (null but for repeats). What is the program's alone:
        ``own_control_code_bytes``, ``own_exchange_code_bytes``, ``own_executions`` (executed steps) and ``own_cycles``
        (over these and IPUs). The same without ``own_``: sums over the program and everything below it, each program
        once however many ways lead to it, so that those of the callers of a function each include all of it.
        ``live_bytes`` (the most that is not always live at a step of the program or of one below; null without any).
        ``note`` (why it is not expanded: ``shared`` with an earlier row, ``cycle``, ``missing`` in the report);
        ``found`` (whether the pattern is); ``left_out`` (rows below that the depth left out). What was not captured is
        null. Code is a sum over tiles; the report's control code of a program includes that of its children, which is
        taken off.

    Raises
    ------
    NotCaptured
        The report has no programs; or, to choose a kind, no roots; or, to look for an operation, no debug information.
    UsageError
        There is no such program or kind, both were given, or a pattern is no regular expression.
    """
    if root is not None and kind is not None:
        raise UsageError("a root is the start of one tree, and a kind means whole trees: leave one of them out")
    graph = program_graph(source)
    everything, kinds = _walk_all(graph)
    children = without_cycles(graph, everything)
    rows = everything
    if root is not None:
        rows, kinds = _walk_from(graph, [_position(graph, root)]), [CHOSEN]
    elif kind is not None:
        roots = _roots_of_kind(source, everything, kinds, kind)
        rows, kinds = _walk_from(graph, roots), [kind] * len(roots)
    if operation is not None:
        roots = _outermost(children, rows, _of_operation(source, graph, operation))
        rows, kinds = _walk_from(graph, roots), [CHOSEN] * len(roots)
    frame = _frame(graph, rows, kinds, _describe(source, graph, children, everything.finished))
    return cut(_with_matches(frame, np.array(rows.parent, np.int64), pattern), depth)


def find_programs(source: TableSource, pattern: str) -> pd.DataFrame:
    """Return the programs in whose name a regular expression is found, each once, in the order of the tree.

    Returns
    -------
    pandas.DataFrame
        Of the first row of each in :func:`program_tree`: ``program_id`` to ``live_bytes``.
    """
    frame = program_tree(source, pattern=pattern)
    found = frame[frame["found"]].drop_duplicates("program_id", ignore_index=True)
    return found.loc[:, "program_id":"live_bytes"]


def cut(frame: pd.DataFrame, depth: int | None) -> pd.DataFrame:
    """Return the rows of a tree down to a depth, and in ``left_out`` how many below each were left out."""
    if depth is None or not len(frame):
        return frame
    rows = np.flatnonzero(frame["depth"].to_numpy() <= depth)
    # Rows left out follow the one that they are below.
    counted = np.concatenate(([0], np.cumsum(1 + frame["left_out"].to_numpy(np.int64))))
    kept = frame.iloc[rows].reset_index(drop=True)
    kept["left_out"] = np.diff(counted[np.append(rows, len(frame))]) - 1
    return kept


# ------------------------------------------------------------------------------------------------- where trees start


def _walk_all(graph: ProgramGraph) -> tuple[Walk, list[str]]:
    """Walk all trees, so that every program is met; return the kind of each too."""
    rows, kinds = Walk(graph), []
    for kind, root in graph.roots:
        rows.add(root)
        kinds.append(kind)
    is_child = bytearray(len(graph.ids))
    for below in graph.children:
        for child in below:
            is_child[child] = 1
    # Where no root leads: from the top where there is one, then whatever is left, which is above itself.
    for at in [*(at for at, child in enumerate(is_child) if not child), *range(len(graph.ids))]:
        if not rows.met(at):
            rows.add(at)
            kinds.append(OTHER)
    return rows, kinds


def _walk_from(graph: ProgramGraph, roots: Sequence[int]) -> Walk:
    rows = Walk(graph)
    for at in roots:
        rows.add(at)
    return rows


def _roots_of_kind(source: TableSource, everything: Walk, kinds: Sequence[str], kind: str) -> list[int]:
    if kind in KINDS and not source.captured("program_roots"):
        raise NotCaptured("program_roots", table("program_roots").capture)
    known = list(dict.fromkeys([*KINDS, OTHER, *kinds]))
    if kind not in known:
        raise UsageError(f"there is no kind '{kind}' of program tree; there are: {', '.join(known)}")
    starts = [at for at, parent in zip(everything.program, everything.parent, strict=True) if parent < 0]
    return [at for at, one in zip(starts, kinds, strict=True) if one == kind]


def _position(graph: ProgramGraph, program: int) -> int:
    try:
        return graph.ids.index(program)
    except ValueError:
        raise UsageError(f"there is no program {program}") from None


def _of_operation(source: TableSource, graph: ProgramGraph, pattern: str) -> Sequence[bool]:
    """Tell which programs belong to an operation in whose name the pattern is found."""
    if not source.captured("debug_contexts"):
        raise NotCaptured("debug_contexts", table("debug_contexts").capture)
    columns = source.arrow("programs", ["program_id", "compute_set_id", "debug_context_id"]).to_pydict()
    of_set = _contexts_of_compute_sets(source)
    contexts = {
        program: own if own is not None else of_set.get(compute_set)
        for program, compute_set, own in zip(*columns.values(), strict=True)
    }
    origins = Origins(source)
    names_of = {one: {part.name or "" for part in origins.chain(one)} for one in set(contexts.values())}
    names = pd.Series(sorted(set().union(*names_of.values())), dtype=object)
    found = set(names[matching(names, pattern)])
    return [not found.isdisjoint(names_of.get(contexts.get(program), ())) for program in graph.ids]


def _contexts_of_compute_sets(source: TableSource) -> dict[int, int | None]:
    if not source.captured("compute_sets"):
        return {}
    columns = source.arrow("compute_sets", ["compute_set_id", "debug_context_id"]).to_pydict()
    return dict(zip(*columns.values(), strict=True))


def _outermost(children: Sequence[Sequence[int]], rows: Walk, wanted: Sequence[bool]) -> list[int]:
    """Return the wanted programs of a tree that are not below another one, each once, in the order of the tree."""
    inside = bytearray(len(children))
    found = [at for at in dict.fromkeys(rows.program) if wanted[at]]
    left = [child for at in found for child in children[at]]
    while left:
        at = left.pop()
        if not inside[at]:
            inside[at] = 1
            left += children[at]
    return [at for at in found if not inside[at]]


# ------------------------------------------------------------------------------------------------ what programs cost


def _describe(
    source: TableSource, graph: ProgramGraph, children: Sequence[Sequence[int]], finished: Sequence[int]
) -> dict[str, Any]:
    """Return the columns of :func:`program_tree` that are about programs, each a value per program."""
    columns = _programs(source, graph)
    including = columns["control_code_bytes"]
    columns["control_code_bytes"] = [
        max(0, including[at] - sum(including[child] for child in children[at])) for at in range(len(graph.ids))
    ]
    held = [name for name in _SUMMED if name not in _EXECUTED]
    if source.captured("execution_steps") and source.captured("execution_step_ipus"):
        columns |= dict(zip(_EXECUTED, _executed(source, graph), strict=True))
        held = list(_SUMMED)
    totals = dict(zip(held, sums_below(children, finished, [columns[name] for name in held]), strict=True))
    missing = [None] * len(graph.ids)
    described = {name: columns[name] for name in ("type", "name", "repeat_count")}
    for name in _SUMMED:
        described["own_" + name] = columns.get(name, missing)
        described[name] = totals.get(name, missing)
    live = largest_below(children, finished, _live(source, graph))
    described["live_bytes"] = [None if size < 0 else size for size in live]
    return described


def _programs(source: TableSource, graph: ProgramGraph) -> dict[str, Any]:
    """Return what the report says of each program; code as a sum over tiles, control code with the children's."""
    columns: dict[str, list[Any]] = {"type": [], "name": [], "repeat_count": []}
    code: dict[str, list[int]] = {"control_code_by_tile": [], "code_bytes_by_tile": []}
    ids: list[int | None] = []
    for batch in source.batches("programs", ["program_id", *columns, *code]):
        ids += batch.column("program_id").to_pylist()
        for name, values in columns.items():
            values += batch.column(name).to_pylist()
        for name, sums in code.items():
            sums += _sums_over_tiles(batch.column(name)).tolist()
    columns["control_code_bytes"], columns["exchange_code_bytes"] = code.values()
    rows: dict[int | None, int] = {}
    for row, program in enumerate(ids):
        rows.setdefault(program, row)
    where = [rows.get(program, -1) for program in graph.ids]
    nothing = {"type": "", "name": "", "repeat_count": None}
    result = {name: [values[row] if row >= 0 else nothing.get(name, 0) for row in where]
              for name, values in columns.items()}  # fmt: skip
    return result | {name: [text or "" for text in result[name]] for name in ("type", "name")}


def _sums_over_tiles(column: pa.ListArray) -> Integers:
    """Return the sum of each row of a per-tile column; a null is all zeros."""
    sums = np.zeros(len(column), np.int64)
    values = column.flatten().to_numpy(zero_copy_only=False)
    if len(values):
        known = column.is_valid().to_numpy(zero_copy_only=False)
        sums[known] = values.reshape(int(known.sum()), -1).sum(axis=1, dtype=np.int64)
    return sums


def _executed(source: TableSource, graph: ProgramGraph) -> tuple[list[int], list[int]]:
    """Return how often each program was executed, and its cycles over these executions and IPUs."""
    steps = source.arrow("execution_steps", ["step_id", "program_id"]).drop_null()
    step_id, program_id = (column.to_numpy() for column in steps.columns)
    at = Keys(np.array(graph.ids, np.int64)).positions(program_id)
    executions = np.bincount(at[at >= 0], minlength=len(graph.ids))
    cycles = Sums(len(graph.ids))
    steps_of = Keys(step_id)
    for batch in source.batches("execution_step_ipus", ["step_id", "cycles"]):
        step = steps_of.positions(integers(batch.column("step_id")))
        program = np.where(step >= 0, at[step], -1) if len(at) else step
        cycles.add(program[program >= 0], integers(batch.column("cycles"))[program >= 0])
    return executions.tolist(), [cycles[one] for one in range(len(graph.ids))]


def _live(source: TableSource, graph: ProgramGraph) -> list[int]:
    """Return the most memory that is not always live at the steps of each program, −1 without one."""
    most = np.full(len(graph.ids), -1, np.int64)
    if source.captured("liveness_steps"):
        steps = source.arrow("liveness_steps", ["program_id", "not_always_live_bytes"]).drop_null()
        program_id, size = (column.to_numpy() for column in steps.columns)
        at = Keys(np.array(graph.ids, np.int64)).positions(program_id)
        np.maximum.at(most, at[at >= 0], size[at >= 0])
    result: list[int] = most.tolist()
    return result


# ---------------------------------------------------------------------------------------------------------- the rows


def _frame(graph: ProgramGraph, rows: Walk, kinds: Sequence[str], described: dict[str, Any]) -> pd.DataFrame:
    program = np.array(rows.program, np.int64)
    parent = np.array(rows.parent, np.int64)
    starts = np.flatnonzero(parent < 0)
    ids = np.array(graph.ids, np.int64)
    of_parent = ids[program[parent]] if len(program) else program
    columns: dict[str, Any] = {
        "depth": np.array(rows.depth, np.int64),
        "kind": _texts(kinds).take(np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(program))))),
        "program_id": ids[program],
        "parent_id": pd.arrays.IntegerArray(of_parent, parent < 0),
    }
    for name, values in described.items():
        columns[name] = (_texts if name in ("type", "name") else _whole)(values).take(program)
    frame = pd.DataFrame({**columns, "note": _texts(rows.note)})
    return frame.assign(found=True, left_out=np.int64(0))


def _texts(values: Sequence[str]) -> Any:
    return pd.array(values, "str")


def _whole(values: Sequence[int | None]) -> Any:
    """Return whole numbers as an array that has nulls; of Python's integers where 64 bits do not do."""
    unknown = np.array([value is None for value in values], bool)
    try:
        numbers = np.array([value or 0 for value in values], np.int64)
    except OverflowError:
        return np.array([pd.NA if value is None else value for value in values], object)
    return pd.arrays.IntegerArray(numbers, unknown)


def _with_matches(frame: pd.DataFrame, parent: Integers, pattern: str | None) -> pd.DataFrame:
    """Return the rows whose names match, marked as found, and those above them."""
    if pattern is None:
        return frame
    found: npt.NDArray[np.bool_] = matching(frame["name"], pattern)
    kept = found.tolist()
    for row, above in zip(range(len(kept) - 1, -1, -1), parent[::-1].tolist(), strict=True):
        if kept[row] and above >= 0:
            kept[above] = True
    return frame.assign(found=found)[np.array(kept, bool)].reset_index(drop=True)
