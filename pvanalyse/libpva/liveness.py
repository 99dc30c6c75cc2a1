"""When memory is live: the steps of the compiled program in order, and what is live at each."""

# ruff: noqa: N802  (libpva's names)

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.lifetimes import Lifetimes
from pvanalyse.libpva.programs import Program, ProgramTable
from pvanalyse.libpva.store import NONE, Store
from pvanalyse.libpva.variables import Allocations, Intervals, SizedVariable, TilesAllocations, Variable
from pvanalyse.libpva.views import Items, View, listed

_BLOCK = 256  # steps whose candidates are looked for at once


class LiveMemory:
    """What is live at a step and not always live.

    Attributes
    ----------
    bytes
        Its bytes.
    variables
        Its variables, each once; looked for when they are asked for.
    """

    __slots__ = ("_bytes", "_find", "_store")

    def __init__(self, store: Store, size: int, find: Callable[[], list[SizedVariable]]) -> None:
        self._store = store
        self._bytes = size
        self._find = find

    @property
    def bytes(self) -> int:
        """Its bytes."""
        return self._bytes

    @property
    def variables(self) -> Items[SizedVariable]:
        """Its variables with their bytes, each variable once."""
        return listed(self._store, self._find())

    def __repr__(self) -> str:
        return f"LiveMemory(bytes={self._bytes})"


class LivenessProgramStep(View):
    """A step of the compiled program, in the order in which the compiler laid it out."""

    __slots__ = ()

    @property
    def program(self) -> Program:
        """The program that is executed."""
        program = self._store.columns("liveness_steps").ids("program_id").item(self._row)
        return self._store.made(ProgramTable).program(program)

    @property
    def notAlwaysLiveMemory(self) -> LiveMemory:
        """What is live, over the tiles of one replica."""
        size = self._store.columns("liveness_steps").integers("not_always_live_bytes").item(self._row)
        return LiveMemory(self._store, size, partial(self._variables_of_replica, self._row))

    def _variables_of_replica(self, step: int) -> list[SizedVariable]:
        return self._store.made(VariablesOfReplica).live_at(step)

    def notAlwaysLiveMemoryForTile(self, tile: int) -> LiveMemory:
        """Return what is live on a tile.

        Raises
        ------
        IndexError
            There is no such tile.
        NotCaptured
            The report has no lowered variables.
        """
        self._store.require("lowered_variables")
        return self._live_of(self._store.made(Curves).of_tile(tile))

    def notAlwaysLiveMemoryForIpu(self, ipu: int) -> LiveMemory:
        """Return what is live on the tiles of an IPU; raises as :meth:`notAlwaysLiveMemoryForTile` does.

        Where there is but one IPU, it is answered without lowered variables too.
        """
        if not self._store.source.captured("lowered_variables") and ipu == 0 and self._store.of_target("num_ipus") == 1:
            return self.notAlwaysLiveMemory
        self._store.require("lowered_variables")
        return self._live_of(self._store.made(Curves).of_ipu(ipu))

    def _live_of(self, curve: Curve) -> LiveMemory:
        return LiveMemory(self._store, curve.bytes.item(self._row), partial(curve.live_at, self._row))


class VariablesOfReplica:
    """``variable_liveness``: what is live at a step, whichever the step, without looking through all of it."""

    def __init__(self, store: Store) -> None:
        store.require("variable_liveness")
        columns, steps = store.columns("variable_liveness"), store.columns("liveness_steps").integers("step")
        self._begin, self._end = (np.searchsorted(steps, columns.integers(at)) for at in ("step_begin", "step_end"))
        self._bytes = columns.integers("bytes")
        self._variables = [
            Variable(name, name if one == NONE else one)
            for name, one in zip(columns.texts("name"), columns.ids("variable_id").tolist(), strict=True)
        ]
        self._block, self._candidates = -1, np.array([], np.int64)

    @cached_property
    def _overlapping(self) -> bool:
        """Whether a variable has two rows that are live at the same time."""
        places: dict[Variable, int] = {}
        code = np.array([places.setdefault(one, len(places)) for one in self._variables], np.int64)
        order = np.lexsort((self._begin, code))
        reach = np.maximum.accumulate(code[order] * (int(self._end.max(initial=0)) + 1) + self._end[order])
        start = code[order] * (int(self._end.max(initial=0)) + 1) + self._begin[order]
        return bool((start[1:] < reach[:-1]).any())

    def live_at(self, step: int) -> list[SizedVariable]:
        """Return the variables that are live at a step, in the order of the table."""
        if step // _BLOCK != self._block:
            self._block = step // _BLOCK
            first = self._block * _BLOCK
            self._candidates = np.flatnonzero((self._begin < first + _BLOCK) & (self._end > first))
        rows = self._candidates
        rows = rows[(self._begin[rows] <= step) & (step < self._end[rows])]
        variables, sizes = (self._variables[row] for row in rows.tolist()), self._bytes[rows].tolist()
        if not self._overlapping:
            return [SizedVariable(one.name, one._identity, size) for one, size in zip(variables, sizes, strict=True)]
        together: dict[Variable, int] = {}
        for one, size in zip(variables, sizes, strict=True):
            together[one] = together.get(one, 0) + size
        return [SizedVariable(one.name, one._identity, size) for one, size in together.items()]


class Curve:
    """The live bytes of some allocations at each step.

    Parameters
    ----------
    spans
        When classes are live.
    allocations
        Lowered variables.
    rows
        Places of those that are meant and not always live.
    """

    def __init__(self, spans: Intervals, allocations: Allocations, rows: Integers) -> None:
        rows = rows[allocations.class_places[rows] < len(spans.ids)]
        self._allocations, self._rows = allocations, rows
        self._lifetimes = Lifetimes(
            tile=np.zeros(len(rows), np.int32),
            bytes=allocations.bytes[rows],
            class_index=allocations.class_places[rows],
            class_ids=spans.ids,
            first_interval=spans.first,
            begin=spans.begin,
            end=spans.end,
            num_steps=spans.num_steps,
        )

    @cached_property
    def bytes(self) -> npt.NDArray[Any]:
        """Bytes at each step, of shape (steps,)."""
        curve: npt.NDArray[Any] = self._lifetimes.curves(np.zeros(len(self._rows), np.int64), 1)[0]
        return curve

    def live_at(self, step: int) -> list[SizedVariable]:
        """Return the variables that are live at a step."""
        return self._allocations.together(self._rows[self._lifetimes.live_at(step)])


class Curves:
    """The curves of single tiles and IPUs, of which those asked for last are kept."""

    _KEPT = 64

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of_tile: dict[int, Curve] = {}
        self._of_ipu: dict[int, Curve] = {}

    def of_tile(self, tile: int) -> Curve:
        """Return the curve of a tile."""
        if tile not in self._of_tile:
            allocations = self._store.made(TilesAllocations).of(tile)
            allocations.load()
            if len(self._of_tile) >= self._KEPT:
                del self._of_tile[next(iter(self._of_tile))]
            rows = np.flatnonzero(~allocations.always_live)
            self._of_tile[tile] = Curve(self._store.made(Intervals), allocations, rows)
        return self._of_tile[tile]

    def of_ipu(self, ipu: int) -> Curve:
        """Return the curve of the tiles of an IPU."""
        if ipu not in self._of_ipu:
            number = int(self._store.of_target("num_ipus"))
            if not 0 <= ipu < number:
                raise IndexError(f"there is no IPU {ipu}; the report has IPUs 0 to {number - 1}")
            allocations = self._store.made(Allocations)
            allocations.load()
            mine = allocations.tile // max(1, int(self._store.of_target("tiles_per_ipu"))) == ipu
            rows = np.flatnonzero(mine & ~allocations.always_live)
            self._of_ipu[ipu] = Curve(self._store.made(Intervals), allocations, rows)
        return self._of_ipu[ipu]


def all_steps(store: Store) -> Items[LivenessProgramStep]:
    """Return the steps in order."""
    return Items(store, store.columns("liveness_steps").count, partial(LivenessProgramStep, store))


def always_live_variables(store: Store) -> Items[SizedVariable]:
    """Return what is live all the time; code and state appear as variables named after their category."""
    columns = store.columns("always_live_variables")
    rows = zip(columns.texts("name"), columns.ids("variable_id").tolist(), columns.integers("bytes").tolist(),
               strict=True)  # fmt: skip
    return listed(store, [SizedVariable(name, name if one == NONE else one, size) for name, one, size in rows])


def always_live_variables_of_tile(store: Store, tile: int) -> Items[SizedVariable]:
    """Return the same of one tile; raises as :meth:`LivenessProgramStep.notAlwaysLiveMemoryForTile` does."""
    store.require("lowered_variables")
    allocations = store.made(TilesAllocations).of(tile)
    return listed(store, allocations.together(np.flatnonzero(allocations.always_live)))
