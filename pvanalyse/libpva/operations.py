"""Operations and debug contexts: what of the user's own program the compiled one came from."""

# ruff: noqa: N802  (libpva's names)

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from pvanalyse.analysis.context_tree import ContextTree
from pvanalyse.analysis.operation_groups import operation_groups
from pvanalyse.libpva.programs import Program, ProgramTable, Uses
from pvanalyse.libpva.report import Report
from pvanalyse.libpva.store import NONE, Groups, Store, first_rows
from pvanalyse.libpva.variables import LoweredVariable, lowered_by_id
from pvanalyse.libpva.views import Items, SourceLocation, View

_POPART = "popart"


class OperationAnalysis(View):
    """The operations of a report that has debug information.

    Those of a report of PopART are the contexts of layer ``popart``, whose fields users of libpva read; those of any
    other are the ones of :func:`pvanalyse.analysis.operation_groups.operation_groups`. A program that came from none
    belongs to none.

    Raises
    ------
    NotCaptured
        There is no ``debug.cbor``, or there are neither programs nor variables.
    """

    __slots__ = ()

    def __init__(self, report: Report) -> None:
        super().__init__(report._store)
        self._store.made(OperationTable)

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations in the order in which they are executed."""
        return Items(self._store, self._store.made(OperationTable).number, partial(Operation, self._store))


class OperationTable:
    """The operations, and the programs of each."""

    def __init__(self, store: Store) -> None:
        contexts = store.made(ContextTable)
        groups = operation_groups(store.source, _POPART if _POPART in contexts.layers else None)
        frame = groups.frame
        self.number = len(frame)
        self.names: list[str] = frame["name"].tolist()
        self.first, self.last = (frame[name].fillna(-1).astype(int).tolist() for name in ("first_step", "last_step"))
        ids = frame["debug_context_id"].fillna(NONE).astype(int).tolist()
        self.contexts = [contexts.rows.get(one, -1) for one in ids]
        self._groups = Groups(np.where(groups.of_program < 0, NONE, groups.of_program))
        self._program_ids = store.columns("programs").ids("program_id")

    def programs(self, operation: int) -> list[int]:
        """Return the ids of an operation's programs."""
        ids: list[int] = self._program_ids[self._groups.rows(operation)].tolist()
        return ids


class Operation(View):
    """An operation of the user's program."""

    __slots__ = ()
    _not_known = dict.fromkeys(("flops", "cycles", "codeSize"), "report.operations")

    @property
    def name(self) -> str:
        """What it is called."""
        return self._store.made(OperationTable).names[self._row]

    def programs(self) -> Sequence[Program]:
        """Return the programs that came from it."""
        table, ids = self._store.made(ProgramTable), self._store.made(OperationTable).programs(self._row)
        return Items(self._store, len(ids), lambda at: table.program(ids[at]))

    @property
    def vars(self) -> Sequence[LoweredVariable]:
        """The lowered variables that its programs use, each once."""
        uses, ids = self._store.made(Uses), self._store.made(OperationTable).programs(self._row)
        used = [uses.of_program(one) for one in ids]
        return lowered_by_id(self._store, np.unique(np.concatenate(used)) if used else np.array([], np.int64))

    @property
    def firstStepIndex(self) -> int:
        """The first step of ``livenessProgramSteps`` that executes one of its programs; −1 when none does."""
        return self._store.made(OperationTable).first[self._row]

    @property
    def lastStepIndex(self) -> int:
        """The last step of ``livenessProgramSteps`` that executes one of its programs; −1 when none does."""
        return self._store.made(OperationTable).last[self._row]

    @property
    def debugContext(self) -> DebugContext:
        """Where it came from."""
        return DebugContext(self._store, self._store.made(OperationTable).contexts[self._row])

    @property
    def replacedDebugContext(self) -> list[DebugContext]:
        """The contexts of operations that this one replaced; always empty, because reports do not tell them."""
        return []


class ContextTable:
    """``debug_contexts``."""

    def __init__(self, store: Store) -> None:
        store.require("debug_contexts")
        self._store = store
        self._columns = store.columns("debug_contexts")
        self.ids = self._columns.ids("debug_context_id")
        self.rows = first_rows(self.ids)

    @cached_property
    def parents(self) -> list[int]:
        """Row of each context's parent, −1 for none; a circle of parents is cut open."""
        tree = ContextTree(self._store.source.arrow("debug_contexts", ["debug_context_id", "parent_id"]))
        parents: list[int] = tree.parent.tolist()
        return parents

    @cached_property
    def layers(self) -> list[str]:
        """Layer of each."""
        return self._columns.texts("layer")

    @cached_property
    def lines(self) -> list[int]:
        """Line of each, 0 unknown."""
        lines: list[int] = self._columns.integers("line").tolist()
        return lines

    def text(self, column: str, row: int) -> str:
        """Return a text of one context."""
        return self._columns.texts(column)[row]


class DebugContext(View):
    """Where something came from: one layer of what led to it."""

    __slots__ = ()

    @property
    def id(self) -> int:
        """Its number, of which there is no other in the report."""
        return self._store.made(ContextTable).ids.item(self._row)

    @property
    def json(self) -> str:
        """What the layer recorded, as a JSON object."""
        return self._store.made(ContextTable).text("fields", self._row) or "{}"

    @property
    def layer(self) -> str:
        """A JSON object that says under ``layer`` which layer it is."""
        return json.dumps({"layer": self._store.made(ContextTable).layers[self._row]})

    @property
    def parents(self) -> list[DebugContext]:
        """The context that led to it; none for the outermost."""
        parent = self._store.made(ContextTable).parents[self._row]
        return [DebugContext(self._store, parent)] if parent >= 0 else []

    @property
    def location(self) -> SourceLocation:
        """Where in a source file it was made; an empty name and 0 where that is not known."""
        table = self._store.made(ContextTable)
        return SourceLocation(table.text("file", self._row), table.lines[self._row])
