"""Programs, what they execute, and the visitor over them."""

# ruff: noqa: N802  (libpva's names)

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from pvanalyse.analysis.columns import Integers
from pvanalyse.libpva.enums import Enumeration
from pvanalyse.libpva.store import NONE, Groups, PerTile, Store, first_rows
from pvanalyse.libpva.tiles import VertexType, VertexTypes
from pvanalyse.libpva.variables import LoweredVariable, lowered_by_id
from pvanalyse.libpva.views import Items, View


class Program(View):
    """A program of the compiled tree; equal to any other object for the same program.

    What only some programs have is in subclasses, as it is in libpva.
    """

    __slots__ = ("_identity",)
    _not_known: ClassVar = {"debugContext": "columns 'debug_context_id' of tables 'programs' and 'compute_sets'"}

    class Type(Enumeration):
        """Kinds of programs; the values are ours, libpva's are not known."""

        Unknown = 0
        Sequence = 1
        Repeat = 2
        Call = 3
        OnTileExecute = 4
        OnEveryTileSwitch = 5
        DoExchange = 6
        GlobalExchange = 7
        StreamCopyBegin = 8
        StreamCopyMid = 9
        StreamCopyEnd = 10
        Sync = 11
        SyncAns = 12
        Sans = 13

    def __init__(self, store: Store, row: int, identity: int) -> None:
        super().__init__(store, row)
        self._identity = identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and other._identity == self._identity and other._store is self._store

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _id(self) -> int:
        """The program's number in the report."""
        return self._identity

    @property
    def name(self) -> str:
        """Its debug name, which may be empty."""
        return self._store.made(ProgramTable).names[self._row] if self._row >= 0 else ""

    @property
    def type(self) -> Program.Type:
        """Its kind; ``Unknown`` for one that libpva is not known to have."""
        return self._store.made(ProgramTable).types[self._row] if self._row >= 0 else Program.Type.Unknown

    @property
    def children(self) -> Sequence[Program]:
        """The programs that it consists of, in order."""
        table = self._store.made(ProgramTable)
        ids = table.children_of(self._identity)
        return Items(self._store, len(ids), lambda at: table.program(int(ids[at])))

    @property
    def vars(self) -> Sequence[LoweredVariable]:
        """The lowered variables that it uses."""
        return lowered_by_id(self._store, self._store.made(Uses).of_program(self._identity))

    @property
    def controlCodeByTile(self) -> list[int]:
        """Bytes of control code on each tile, with that of its children."""
        return self._by_tile("control_code_by_tile")

    def accept(self, visitor: ProgramVisitor) -> None:
        """Call the visitor's method for programs of this type with this program; its children are not visited."""
        getattr(visitor, f"visit{self.type.name}")(self)

    def _by_tile(self, column: str) -> list[int]:
        numbers = self._store.made(ProgramTable).by_tile(column).row(self._row) if self._row >= 0 else None
        return [0] * self._store.num_tiles if numbers is None else numbers


class OnTileExecuteProgram(Program):
    """A program that executes a compute set."""

    __slots__ = ()

    @property
    def computeset(self) -> ComputeSet:
        """The compute set."""
        return ComputeSet(self._store, self._store.made(ProgramTable).compute_sets[self._row])


class DoExchangeProgram(Program):
    """A program that moves data between the tiles of an IPU."""

    __slots__ = ()

    @property
    def codeBytesByTile(self) -> list[int]:
        """Bytes of exchange code on each tile; exchanges share code, so the sum over them can be more than there is."""
        return self._by_tile("code_bytes_by_tile")

    @property
    def estimatedCyclesByTile(self) -> list[int]:
        """Estimated cycles on each tile."""
        return self._by_tile("estimated_cycles_by_tile")


_CLASSES = {Program.Type.OnTileExecute: OnTileExecuteProgram, Program.Type.DoExchange: DoExchangeProgram}


class ProgramVisitor:
    """Base of visitors: override ``visitOnTileExecute(self, program)`` and so on, one for each ``Program.Type``.

    ``program.accept(visitor)`` calls the method of that program's type. Those that are not overridden do nothing.
    """


def _do_nothing(_self: ProgramVisitor, _program: Program) -> None:
    """Visit a program of this type; does nothing unless overridden."""


for _type in Program.Type:
    setattr(ProgramVisitor, f"visit{_type.name}", _do_nothing)


class ProgramTable:
    """``programs`` and ``program_children``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._columns = store.columns("programs")
        self.ids = self._columns.ids("program_id")
        self._rows = first_rows(self.ids)
        self._programs: dict[int, Program] = {}
        self._by_tile: dict[str, PerTile] = {}

    @cached_property
    def names(self) -> list[str]:
        """Name of each."""
        return self._columns.texts("name")

    @cached_property
    def types(self) -> list[Program.Type]:
        """Type of each."""
        return [Program.Type.of(text) for text in self._columns.texts("type")]

    @cached_property
    def compute_sets(self) -> list[int]:
        """Row in ``compute_sets`` of what each executes, −1 for nothing."""
        rows = first_rows(self._store.columns("compute_sets").ids("compute_set_id"))
        return [rows.get(one, -1) if one != NONE else -1 for one in self._columns.ids("compute_set_id").tolist()]

    @cached_property
    def _children(self) -> tuple[Groups, Integers]:
        columns = self._store.columns("program_children")
        order = np.lexsort((columns.ids("position"), columns.ids("program_id")))
        child, parent = columns.ids("child_id")[order], columns.ids("program_id")[order]
        return Groups(parent[child != NONE]), child[child != NONE]

    def children_of(self, identity: int) -> Integers:
        """Return the ids of a program's children, in order."""
        groups, child = self._children
        return child[groups.rows(identity)]

    def program(self, identity: int) -> Program:
        """Return the program of an id; one that the report does not describe has no name and an unknown type."""
        made = self._programs.get(identity)
        if made is None:
            row = self._rows.get(identity, -1)
            kind = _CLASSES.get(self.types[row], Program) if row >= 0 else Program
            made = self._programs[identity] = kind(self._store, row, identity)
        return made

    def by_tile(self, column: str) -> PerTile:
        """Return a column with a number per tile."""
        if column not in self._by_tile:
            self._by_tile[column] = PerTile(self._store.source, "programs", column, ["program_id"], self.ids)
        return self._by_tile[column]


class Uses:
    """``program_lowered_variables``: which lowered variables each program uses."""

    def __init__(self, store: Store) -> None:
        columns = store.columns("program_lowered_variables")
        self._groups, self._lowered = Groups(columns.ids("program_id")), columns.ids("lowered_variable_id")

    def of_program(self, identity: int) -> Integers:
        """Return the ids of the lowered variables that a program uses."""
        return self._lowered[self._groups.rows(identity)]


class ComputeSet(View):
    """A set of vertices that are executed together."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name; empty for one that the report does not describe."""
        return self._store.columns("compute_sets").texts("name")[self._row] if self._row >= 0 else ""

    @property
    def vertices(self) -> Sequence[VertexInstances]:
        """Its vertices, an item for each type of vertex."""
        table = self._store.made(ComputeSetTable)
        rows = table.vertices.rows(table.ids[self._row] if self._row >= 0 else NONE)
        return Items(self._store, len(rows), lambda at: VertexInstances(self._store, int(rows[at])))

    @property
    def estimatedCyclesByTile(self) -> list[int]:
        """Estimated cycles on each tile; empty where there is no estimate."""
        return self._store.made(ComputeSetTable).cycles.row(self._row) or [] if self._row >= 0 else []


class VertexInstances(View):
    """The vertices of one type in a compute set."""

    __slots__ = ()

    @property
    def type(self) -> VertexType:
        """Their type."""
        return VertexType(self._store, self._store.made(ComputeSetTable).types[self._row])

    @property
    def countByTile(self) -> list[int]:
        """How many there are on each tile."""
        numbers = self._store.made(ComputeSetTable).counts(self._row)
        return [0] * self._store.num_tiles if numbers is None else numbers


class ComputeSetTable:
    """``compute_sets`` and ``compute_set_vertices``."""

    def __init__(self, store: Store) -> None:
        ids = store.columns("compute_sets").ids("compute_set_id")
        columns = store.columns("compute_set_vertices")
        self.ids: list[int] = ids.tolist()
        self._place = first_rows(ids)
        self._set_ids, self._type_ids = columns.ids("compute_set_id"), columns.ids("vertex_type_id")
        self.vertices = Groups(self._set_ids)
        self.types = store.made(VertexTypes).rows(self._type_ids)
        self.cycles = PerTile(store.source, "compute_sets", "estimated_cycles_by_tile", ["compute_set_id"], ids)
        keys = ["compute_set_id", "vertex_type_id"]
        self._counts = PerTile(store.source, "compute_set_vertices", "count_by_tile", keys, ids)

    def counts(self, row: int) -> list[int] | None:
        """Return the vertices on each tile of a row of ``compute_set_vertices``; None for none at all."""
        return self._counts.row(self._place[int(self._set_ids[row])], int(self._type_ids[row]))


def all_programs(store: Store) -> Items[Program]:
    """Return every program, in the order of the report."""
    table = store.made(ProgramTable)
    ids: list[Any] = table.ids.tolist()
    return Items(store, len(ids), lambda at: table.program(ids[at]))


def all_compute_sets(store: Store) -> Items[ComputeSet]:
    """Return every compute set, in the order of the report."""
    return Items(store, store.columns("compute_sets").count, partial(ComputeSet, store))
