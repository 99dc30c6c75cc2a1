"""Variables: as the program declared them, and as they were lowered to the tiles."""

# ruff: noqa: N802, N815  (libpva's names)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, Keys, integers
from pvanalyse.libpva.store import NONE, Columns, Store, first_rows
from pvanalyse.libpva.views import Items, StepInterval, View

_AT_ONCE = 1 << 16  # rows that are gone through at once
_MADE_AT_ONCE = 1 << 13  # brief variables made at once
_DATA = ("variable", "constant", "message")  # categories of what has a name of its own
_BRIEF = ("lowered_variable_id", "bytes", "tile", "equivalence_class_id", "always_live")


class Variable:
    """A variable as the program declared it, or something of the compiler's; the same in one report are equal."""

    __slots__ = ("_identity", "_name")

    def __init__(self, name: str, identity: int | str) -> None:
        self._name = name
        self._identity = identity

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variable) and other._identity == self._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self._name!r})"


class SizedVariable(Variable):
    """The same with its bytes, all of those that the list it is from is about."""

    __slots__ = ("_size",)

    def __init__(self, name: str, identity: int | str, size: int) -> None:
        super().__init__(name, identity)
        self._size = size

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self._name!r}, size={self._size})"


class Declared:
    """``variables``: names by id."""

    def __init__(self, store: Store) -> None:
        columns = store.columns("variables")
        self._names, self._rows = columns.texts("name"), first_rows(columns.ids("variable_id"))

    def name(self, identity: int, lowered_name: str) -> str:
        """Return the name of a variable; that of its lowered one when it was not declared."""
        row = self._rows.get(identity, -1)
        return (self._names[row] if row >= 0 else "") or lowered_name


class Intervals:
    """``equivalence_class_intervals`` as places in ``livenessProgramSteps``, and the two classes that have no row.

    What is always live is in a class of its own that is live at every step, and what is in no class that the report
    describes is in one that is never live; their numbers follow the report's own.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        columns = store.columns("equivalence_class_intervals")
        steps = store.columns("liveness_steps").integers("step")
        self.num_steps = len(steps)
        order = np.argsort(columns.ids("equivalence_class_id"), kind="stable")
        identity = columns.ids("equivalence_class_id")[order]
        begin, end = (np.searchsorted(steps, columns.integers(name)[order]) for name in ("step_begin", "step_end"))
        real = (begin < end) & (identity != NONE)
        self.begin, self.end = begin[real], end[real]
        self.ids, counts = np.unique(identity[real], return_counts=True)
        self.first = np.concatenate(([0], np.cumsum(counts)))
        self._keys = Keys(self.ids)

    @cached_property
    def classes(self) -> npt.NDArray[Any]:
        """The objects of all classes: those with intervals, what is always live, what never is."""
        ids: list[int] = self.ids.tolist()
        last = ids[-1] if ids else 0
        made = np.empty(len(ids) + 2, object)
        made[:] = [EquivalenceClass(self._store, at, one) for at, one in enumerate([*ids, last + 1, last + 2])]
        return made

    def places(self, class_ids: Integers, always_live: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return where in :attr:`classes` allocations of these classes are."""
        places = np.empty(len(class_ids), np.int32)
        for start in range(0, len(class_ids), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            at = self._keys.positions(class_ids[part])
            places[part] = np.where(always_live[part], len(self.ids), np.where(at < 0, len(self.ids) + 1, at))
        return places


class EquivalenceClass(View):
    """Lowered variables that are live at the same time."""

    __slots__ = ("_identity",)

    def __init__(self, store: Store, row: int, identity: int) -> None:
        super().__init__(store, row)
        self._identity = identity

    @property
    def id(self) -> int:
        """The class's number in the report; those of what is always and of what is never live are ours."""
        return self._identity

    @property
    def steps(self) -> list[StepInterval]:
        """When it is live."""
        spans = self._store.made(Intervals)
        if self._row >= len(spans.ids):
            return [StepInterval(0, spans.num_steps)] if self._row == len(spans.ids) else []
        rows = slice(spans.first[self._row], spans.first[self._row + 1])
        return list(map(StepInterval, spans.begin[rows].tolist(), spans.end[rows].tolist()))


class BriefVariable(NamedTuple):
    """A lowered variable in brief.

    Attributes
    ----------
    id, bytes, tileId
        Its number in the report, its bytes, its tile.
    equivalenceClass
        When it is live.
    """

    id: int
    bytes: int
    tileId: int
    equivalenceClass: EquivalenceClass


class BriefVariables(Sequence[BriefVariable]):
    """All lowered variables in brief: one pass over the file, then 24 bytes for each."""

    __slots__ = ("_bytes", "_classes", "_ids", "_place", "_store", "_tile")

    def __init__(self, store: Store) -> None:
        self._store = store
        spans = store.made(Intervals)
        there = store.source.captured("lowered_variables")
        number = store.source.count("lowered_variables")
        self._ids, self._bytes = np.empty(number, np.int64), np.empty(number, np.int64)
        self._tile, self._place = np.empty(number, np.int32), np.empty(number, np.int32)
        at = 0
        for batch in store.source.batches("lowered_variables", _BRIEF) if there else ():
            part = slice(at, at := at + batch.num_rows)
            self._ids[part], self._bytes[part] = (integers(batch.column(place)) for place in (0, 1))
            self._tile[part] = np.clip(integers(batch.column(2)), -1, np.iinfo(np.int32).max)
            always = batch.column(4).fill_null(False).to_numpy(zero_copy_only=False)
            self._place[part] = spans.places(integers(batch.column(3).fill_null(NONE)), always)
        self._classes = spans.classes

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[BriefVariable]:
        starts = range(0, len(self._ids), _MADE_AT_ONCE)
        return chain.from_iterable(self._part(slice(start, start + _MADE_AT_ONCE)) for start in starts)

    @overload
    def __getitem__(self, index: int) -> BriefVariable: ...
    @overload
    def __getitem__(self, index: slice) -> list[BriefVariable]: ...

    def __getitem__(self, index: int | slice) -> BriefVariable | list[BriefVariable]:
        if isinstance(index, slice):
            return list(self._part(index))
        at = range(len(self._ids))[index]
        return next(self._part(slice(at, at + 1)))

    def _part(self, part: slice) -> Iterator[BriefVariable]:
        columns = (self._ids[part], self._bytes[part], self._tile[part], self._classes[self._place[part]])
        return map(BriefVariable, *(column.tolist() for column in columns))

    def __repr__(self) -> str:
        return repr(Items(self._store, len(self), self.__getitem__))


class _Variables:
    """The different variables among allocations, in the order in which they are met."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._places: dict[int | str, int] = {}
        self.variables: list[Variable] = []

    def places(self, ids: pa.Array, name: pa.Array, category: pa.Array, always_live: pa.Array) -> Integers:
        """Return the places of the variables of some allocations, whose columns are given."""
        identity = integers(ids.fill_null(NONE))
        name = name.fill_null("")
        places = np.empty(len(identity), np.int64)
        known = np.flatnonzero(identity != NONE)
        unique, first, inverse = np.unique(identity[known], return_index=True, return_inverse=True)
        names = name.take(pa.array(known[first])).to_pylist()
        met = [
            self._place(one, self._declared.name(one, text)) for one, text in zip(unique.tolist(), names, strict=True)
        ]
        places[known] = np.array(met, np.int64)[inverse]
        category = category.cast(pa.string()).fill_null("")
        always = always_live.fill_null(False).to_numpy(zero_copy_only=False)
        is_data = pc.is_in(category, pa.array(_DATA)).to_numpy(zero_copy_only=False)
        own = identity == NONE
        for texts, mine in ((name, own & (~always | is_data)), (category, own & always & ~is_data)):
            encoded = texts.filter(pa.array(mine)).dictionary_encode()
            met = [self._place(text, text) for text in encoded.dictionary.to_pylist()]
            places[mine] = np.array(met, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
        return places

    def _place(self, identity: int | str, name: str) -> int:
        place = self._places.setdefault(identity, len(self.variables))
        if place == len(self.variables):
            self.variables.append(Variable(name, identity))
        return place


class Allocations:
    """Lowered variables in full, all of them or those of a tile, each column read when it is first asked for."""

    def __init__(self, store: Store, columns: Columns | None = None) -> None:
        self._store = store
        self._columns = store.columns("lowered_variables") if columns is None else columns
        self.count = self._columns.count

    def load(self) -> None:
        """Read in one pass what tells when they are live."""
        self._columns.load("tile", "bytes", "always_live", "equivalence_class_id")

    @property
    def ids(self) -> Integers:
        """Number of each in the report."""
        return self._columns.ids("lowered_variable_id")

    @property
    def tile(self) -> Integers:
        """Tile of each."""
        return self._columns.ids("tile")

    @property
    def bytes(self) -> Integers:
        """Bytes of each."""
        return self._columns.integers("bytes")

    @property
    def always_live(self) -> npt.NDArray[Any]:
        """Whether each is always live."""
        return self._columns.flags("always_live")

    @property
    def variable_ids(self) -> Integers:
        """The variable that each is of, NONE for the compiler's own."""
        return self._columns.ids("variable_id")

    def name(self, row: int) -> str:
        """Return the lowered name of one."""
        return self._columns.arrow("name")[row].as_py() or ""

    @cached_property
    def class_places(self) -> npt.NDArray[np.int32]:
        """Where each one's class is in :attr:`Intervals.classes`."""
        spans = self._store.made(Intervals)
        return spans.places(self._columns.ids("equivalence_class_id"), self.always_live)

    @cached_property
    def _keys(self) -> Keys:
        return Keys(self.ids)

    def rows_of(self, ids: Integers) -> Integers:
        """Return the rows of those of some ids that there are."""
        rows = self._keys.positions(ids)
        return rows[rows >= 0]

    @cached_property
    def variables(self) -> tuple[npt.NDArray[np.int32], list[Variable]]:
        """Of each, the place of its variable in the list of variables that follows.

        What is always live and the compiler's own is called by its category, except data, which has a name. The names
        are not kept: those of millions take more memory than everything else.
        """
        codes, found = np.empty(self.count, np.int32), _Variables(self._store.made(Declared))
        at = 0
        for batch in self._columns.read("variable_id", "name", "category", "always_live"):
            codes[at : at + batch.num_rows] = found.places(*batch.columns)
            at += batch.num_rows
        return codes, found.variables

    def together(self, rows: npt.NDArray[Any]) -> list[SizedVariable]:
        """Return the variables of some allocations, given by place, with the bytes of these."""
        codes, variables = self.variables
        places, of_row = np.unique(codes[rows], return_inverse=True)
        sizes = np.zeros(len(places), np.int64)
        np.add.at(sizes, of_row, self.bytes[rows])
        chosen = [variables[place] for place in places.tolist()]
        return [SizedVariable(one.name, one._identity, size) for one, size in zip(chosen, sizes.tolist(), strict=True)]


class LoweredVariable(View):
    """A variable's allocation on one tile; equal to any other object for the same allocation."""

    __slots__ = ("_allocations",)
    _not_known = dict.fromkeys(
        ("offset", "alignment", "category", "isConstant", "executable", "vertexCode", "lowest256KB",
         "inInterleavedMem", "tileId", "equivalenceClass"), "table 'lowered_variables'"
    )  # fmt: skip

    def __init__(self, store: Store, allocations: Allocations, row: int) -> None:
        super().__init__(store, row)
        self._allocations = allocations

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoweredVariable) and other._id == self._id and other._store is self._store

    def __hash__(self) -> int:
        return hash(self._id)

    @property
    def _id(self) -> int:
        """Its number in the report."""
        return int(self._allocations.ids[self._row])

    @property
    def name(self) -> str:
        """Its own name, which may differ from that of the variable it is of."""
        return self._allocations.name(self._row)

    @property
    def bytes(self) -> int:
        """Bytes on its tile."""
        return int(self._allocations.bytes[self._row])

    @property
    def alwaysLive(self) -> bool:
        """Whether it is live at every step."""
        return bool(self._allocations.always_live[self._row])

    @property
    def hasUnloweredVar(self) -> bool:
        """Whether it is of a variable that the program declared, and not the compiler's own."""
        return bool(self._allocations.variable_ids[self._row] != NONE)

    @property
    def unloweredVar(self) -> Variable | None:
        """The variable that it is of; None for the compiler's own."""
        identity = int(self._allocations.variable_ids[self._row])
        if identity == NONE:
            return None
        return Variable(self._store.made(Declared).name(identity, self.name), identity)


class TilesAllocations:
    """The allocations of single tiles, of which those asked for last are kept."""

    _KEPT = 64

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[int, Allocations] = {}

    def of(self, tile: int) -> Allocations:
        """Return the allocations on a tile.

        Raises
        ------
        IndexError
            There is no such tile.
        """
        if tile not in self._held:
            if not 0 <= tile < self._store.num_tiles:
                raise IndexError(f"there is no tile {tile}; the report has tiles 0 to {self._store.num_tiles - 1}")
            if len(self._held) >= self._KEPT:
                del self._held[next(iter(self._held))]
            columns = Columns(self._store.source, "lowered_variables", {"tile": [tile]})
            self._held[tile] = Allocations(self._store, columns)
        return self._held[tile]


class LoweredVariables(View):
    """The variables as they lie on the tiles; empty when they were not captured."""

    __slots__ = ()

    @property
    def allBriefVars(self) -> BriefVariables:
        """All of them in brief."""
        return self._store.made(BriefVariables)

    def forTile(self, tile: int) -> Items[LoweredVariable]:
        """Return those of a tile; raises IndexError when there is none of that number."""
        allocations = self._store.made(TilesAllocations).of(tile)
        return Items(self._store, allocations.count, lambda at: LoweredVariable(self._store, allocations, at))


def lowered_by_id(store: Store, ids: Integers) -> Items[LoweredVariable]:
    """Return the lowered variables of some ids; those that the report does not describe are left out."""
    allocations = store.made(Allocations)
    rows = allocations.rows_of(ids)
    return Items(store, len(rows), lambda at: LoweredVariable(store, allocations, int(rows[at])))
