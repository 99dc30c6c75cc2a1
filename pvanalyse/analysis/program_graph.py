"""The program tree as a graph: who contains or calls whom, walked in order, with sums over everything below.

A function's body has several parents, so the tree is a graph without cycles; a damaged report may even have cycles.
Programs are known by their position in :attr:`ProgramGraph.ids`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pvanalyse.analysis.columns import Integers
from pvanalyse.tables import TableSource

KINDS = ("control", "function")
OTHER = "other"
"""The kind of a tree that starts at a program which no root leads to."""

SHARED = "shared"
"""The program is shown above already, with everything below it."""
CYCLE = "cycle"
"""The program is being shown: it is above itself in the tree, which is not followed round."""
MISSING = "missing"
"""A parent names the program, but the report does not describe it."""

_EXIT = -2  # in place of a row on the stack of a walk: everything below the program has been seen
_SHARED_AT_ONCE = 4096  # bits of the sets of shared programs below each program


@dataclass(frozen=True, slots=True)
class ProgramGraph:
    """Programs and their children.

    Attributes
    ----------
    ids
        The programs that the report describes, then those that it only names.
    described
        How many of them it describes.
    children
        Positions of each program's children, in order.
    roots
        Kind and position of each root: control programs, functions, then other kinds, each in their order.
    """

    ids: list[int]
    described: int
    children: list[list[int]]
    roots: list[tuple[str, int]]


class Walk:
    """A walk in order through the trees below some roots, without recursion, in time proportional to the edges.

    It makes rows, a parent's before those of its children; a program is expanded only where it comes first.

    Attributes
    ----------
    program
        Position of each row's program.
    parent
        The parent's row, −1 for roots.
    depth
        0 for roots.
    note
        Empty, or why the row is not expanded: :data:`SHARED`, :data:`CYCLE` or :data:`MISSING`.
    finished
        The programs met, children before their parents.
    """

    def __init__(self, graph: ProgramGraph) -> None:
        self._graph = graph
        self._opened, self._closed = bytearray(len(graph.ids)), bytearray(len(graph.ids))
        self.program: list[int] = []
        self.parent: list[int] = []
        self.depth: list[int] = []
        self.note: list[str] = []
        self.finished: list[int] = []

    def met(self, at: int) -> bool:
        """Tell whether a program has been walked through."""
        return bool(self._opened[at])

    def add(self, root: int) -> None:
        """Walk through the tree below another root."""
        stack = [(root, -1, 0)]
        while stack:
            at, parent, depth = stack.pop()
            if parent == _EXIT:
                self._closed[at] = 1
                self.finished.append(at)
                continue
            row = len(self.program)
            self.program.append(at)
            self.parent.append(parent)
            self.depth.append(depth)
            self.note.append(self._note(at))
            if not self._opened[at]:
                self._opened[at] = 1
                stack.append((at, _EXIT, 0))
                stack += [(child, row, depth + 1) for child in reversed(self._graph.children[at])]

    def _note(self, at: int) -> str:
        if self._opened[at] and not self._closed[at]:
            return CYCLE
        if at >= self._graph.described:
            return MISSING
        return SHARED if self._closed[at] else ""


def program_graph(source: TableSource) -> ProgramGraph:
    """Return the graph of a report's programs.

    Raises
    ------
    NotCaptured
        The report has no programs.
    """
    column = source.arrow("programs", ["program_id"]).column(0)
    position: dict[int, int] = {}
    for program in column.drop_null().to_pylist():
        position.setdefault(program, len(position))
    described = len(position)
    edges = [(position.setdefault(parent, len(position)), position.setdefault(child, len(position)))
             for parent, child in _edges(source)]  # fmt: skip
    roots = [(kind, position.setdefault(program, len(position))) for kind, program in _roots(source)]
    children: list[list[int]] = [[] for _ in position]
    for parent, child in edges:
        children[parent].append(child)
    return ProgramGraph(list(position), described, children, roots)


def _roots(source: TableSource) -> Iterable[tuple[str, int]]:
    if not source.captured("program_roots"):
        return []
    found = [row for row in source.arrow("program_roots").to_pylist() if row["program_id"] is not None]
    order = {kind: at for at, kind in enumerate(dict.fromkeys([*KINDS, *(row["kind"] for row in found)]))}
    found.sort(key=lambda row: (order[row["kind"]], row["position"] or 0))
    return [(row["kind"] or OTHER, row["program_id"]) for row in found]


def _edges(source: TableSource) -> Iterable[tuple[int, int]]:
    """Return parent and child of each edge, a parent's in the order of their positions."""
    if not source.captured("program_children"):
        return []
    table = source.arrow("program_children", ["program_id", "position", "child_id"]).drop_null()
    parent, position, child = (column.to_numpy() for column in table.columns)
    order = np.lexsort((position, parent))
    return zip(parent[order].tolist(), child[order].tolist(), strict=True)


def without_cycles(graph: ProgramGraph, rows: Walk) -> list[list[int]]:
    """Return each program's children, each once, without the edges that close a cycle in the walk."""
    closing = {
        (rows.program[rows.parent[row]], rows.program[row]) for row, note in enumerate(rows.note) if note == CYCLE
    }
    children = [list(dict.fromkeys(below)) for below in graph.children]
    for at in {above for above, _ in closing}:
        children[at] = [child for child in children[at] if (at, child) not in closing]
    return children


def largest_below(children: Sequence[Sequence[int]], finished: Sequence[int], own: Sequence[int]) -> list[int]:
    """Return the largest value of each program and everything below it."""
    largest = list(own)
    for at in finished:
        for child in children[at]:
            largest[at] = max(largest[at], largest[child])
    return largest


def sums_below(
    children: Sequence[Sequence[int]], finished: Sequence[int], own: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return sums over each program and everything below it, each program once however many ways lead to it.

    What one parent alone leads to is added up along the tree. Programs with several parents are kept apart, as sets
    of bits: which of them lie below each program.

    Parameters
    ----------
    children
        Of each program, each child once, without cycles.
    finished
        Every program, children before their parents.
    own
        For each quantity, the value of each program.
    """
    parents = [0] * len(children)
    for below in children:
        for child in below:
            parents[child] += 1
    trees = [list(values) for values in own]
    for at in finished:
        for child in children[at]:
            if parents[child] == 1:
                for tree in trees:
                    tree[at] += tree[child]
    shared = [at for at in finished if parents[at] > 1]
    totals = [list(tree) for tree in trees]
    for start in range(0, len(shared), _SHARED_AT_ONCE):
        _add_shared(children, finished, shared[start : start + _SHARED_AT_ONCE], parents, trees, totals)
    return totals


def _add_shared(
    children: Sequence[Sequence[int]],
    finished: Sequence[int],
    shared: Sequence[int],
    parents: Sequence[int],
    trees: Sequence[Sequence[int]],
    totals: Sequence[list[int]],
) -> None:
    """Add to each program's totals the trees of those of the shared programs that lie below it."""
    bit = {at: 1 << number for number, at in enumerate(shared)}
    weights = np.concatenate([_halves([tree[at] for at in shared]) for tree in trees], axis=1)
    below: dict[int, int] = {}
    known: tuple[int, list[int]] = (0, [0] * len(trees))  # chains of parents mostly have the same below them
    for at in finished:
        found = 0
        for child in children[at]:
            held = below.get(child, 0) if parents[child] > 1 else below.pop(child, 0)
            found |= held | bit.get(child, 0)
        if not found:
            continue
        below[at] = found
        if found != known[0]:
            known = found, _weigh(found, weights)
        for total, value in zip(totals, known[1], strict=True):
            total[at] += value


def _halves(values: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the upper and lower halves of integers that may need more than 64 bits, of shape (values, 2)."""
    return np.array([(value >> 32, value & 0xFFFFFFFF) for value in values], np.int64)


def _weigh(found: int, weights: Integers) -> list[int]:
    """Return the sum of the weights of a set of bits, from their halves."""
    octets = np.frombuffer(found.to_bytes((len(weights) + 7) // 8, "little"), np.uint8)
    chosen = np.unpackbits(octets, count=len(weights), bitorder="little").view(bool)
    sums: list[int] = weights[chosen].sum(axis=0).tolist()
    return [(high << 32) + low for high, low in zip(sums[::2], sums[1::2], strict=True)]
