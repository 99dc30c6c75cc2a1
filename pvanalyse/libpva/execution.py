"""What ran: runs, steps, steps on each IPU, and the blocks of lightweight profiling."""

# ruff: noqa: N802  (libpva's names)

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from pvanalyse.analysis.columns import Integers, Keys
from pvanalyse.analysis.execution import execution_totals
from pvanalyse.errors import PvanalyseError
from pvanalyse.libpva.programs import ComputeSet, OnTileExecuteProgram, Program, ProgramTable
from pvanalyse.libpva.store import NONE, Columns, Groups, PerTile, Store
from pvanalyse.libpva.views import CycleRange, CycleSpan, Items, Microseconds, TotalCycles, View

_CELLS = 1 << 20  # of steps × IPUs, so many may be without a row …
_CELLS_PER_ROW = 64  # … or so many for each row


class ExecutionReport(View):
    """What ran; lists are empty where nothing was recorded."""

    __slots__ = ()
    _not_known: ClassVar = {"profilerMode": "key 'instrument_compute' of table 'report_info'"}

    @property
    def runs(self) -> Sequence[Run]:
        """Calls of ``Engine::run``."""
        return Items(self._store, self._store.columns("runs").count, partial(Run, self._store))

    @property
    def steps(self) -> Sequence[ExecutionStep]:
        """The steps of all runs."""
        return Items(self._store, self._store.columns("execution_steps").count, partial(ExecutionStep, self._store))

    @property
    def totalCycles(self) -> TotalCycles:
        """Cycles of all runs, each from its first cycle to its last; 0 when nothing was recorded."""
        return self._store.made(Totals).cycles

    def blocks(self, tile: int) -> Sequence[Block]:
        """Return the blocks that lightweight profiling recorded on a tile."""
        blocks = Blocks(self._store, tile)
        return Items(self._store, blocks.count, partial(Block, self._store, blocks))


class Totals:
    """Sums over the whole execution."""

    def __init__(self, store: Store) -> None:
        self.cycles = TotalCycles(execution_totals(store.source).cycles or 0)


class Run(View):
    """One call of ``Engine::run``."""

    __slots__ = ()
    _not_known: ClassVar = {"cyclesByIpu": "the columns of table 'execution_step_ipus'"}

    @property
    def name(self) -> str:
        """The name that the program gave it."""
        return self._store.columns("runs").texts("name")[self._row]

    @property
    def steps(self) -> Sequence[ExecutionStep]:
        """Its steps."""
        steps = self._store.made(StepTable)
        rows = steps.of_run.rows(self._store.columns("runs").ids("run_id").item(self._row))
        return Items(self._store, len(rows), lambda at: ExecutionStep(self._store, rows.item(at)))

    @property
    def microseconds(self) -> Microseconds:
        """When it began and ended by the host's clock; both 0 where that was not recorded."""
        columns = self._store.columns("runs")
        return Microseconds(columns.integers("start_us").item(self._row), columns.integers("end_us").item(self._row))


class ExecutionStep(View):
    """An executed program."""

    __slots__ = ()

    @property
    def program(self) -> Program:
        """The program."""
        program = self._store.columns("execution_steps").ids("program_id").item(self._row)
        return self._store.made(ProgramTable).program(program)

    @property
    def ipus(self) -> Sequence[IPUExecutionStep]:
        """The step on each IPU that was profiled, by the IPU's number."""
        steps = self._store.made(StepTable)
        first = self._row * steps.num_ipus
        return Items(
            self._store, steps.num_ipus, lambda at: IPUExecutionStep(self._store, steps.row_on_ipu.item(first + at))
        )

    @property
    def cyclesByTile(self) -> list[int]:
        """Cycles on each tile; empty where they were not recorded."""
        return self._store.made(StepTable).cycles.row(self._row) or []

    @property
    def computeSets(self) -> list[ExecutedComputeSet]:
        """The compute sets that were executed: one, or none."""
        program = self.program
        return [ExecutedComputeSet(self, program.computeset)] if isinstance(program, OnTileExecuteProgram) else []


class ExecutedComputeSet:
    """A compute set in a step that executed it."""

    __slots__ = ("_compute_set", "_step")

    def __init__(self, step: ExecutionStep, compute_set: ComputeSet) -> None:
        self._step = step
        self._compute_set = compute_set

    @property
    def name(self) -> str:
        """Its name."""
        return self._compute_set.name

    @property
    def cyclesByTile(self) -> list[int]:
        """Cycles on each tile; empty where they were not recorded."""
        return self._step.cyclesByTile

    @property
    def estimatedCyclesByTile(self) -> list[int]:
        """Estimated cycles on each tile; empty where there is no estimate."""
        return self._compute_set.estimatedCyclesByTile

    def __repr__(self) -> str:
        return f"ExecutedComputeSet(name={self.name!r})"


class StepTable:
    """``execution_steps``, and where in ``execution_step_ipus`` each step is on each IPU."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids = store.columns("execution_steps").ids("step_id")

    @cached_property
    def of_run(self) -> Groups:
        """Rows of the steps by run."""
        return Groups(self._store.columns("execution_steps").ids("run_id"))

    @cached_property
    def cycles(self) -> PerTile:
        """Cycles of each step on each tile."""
        return PerTile(self._store.source, "execution_steps", "cycles_by_tile", ["step_id"], self._ids)

    @cached_property
    def num_ipus(self) -> int:
        """Number of IPUs that were profiled: up to the last that a step ran on."""
        ipu = self._store.columns("execution_step_ipus").ids("ipu")
        number = int(ipu.max(initial=-1)) + 1
        if number * len(self._ids) > _CELLS_PER_ROW * len(ipu) + _CELLS:
            raise PvanalyseError(f"table 'execution_step_ipus' cannot be: it has an IPU {number - 1:,}")
        return max(0, number)

    @cached_property
    def row_on_ipu(self) -> Integers:
        """Row of each step on each IPU, −1 for none; of shape (steps × IPUs,)."""
        columns = self._store.columns("execution_step_ipus")
        step, ipu = Keys(self._ids).positions(columns.ids("step_id")), columns.ids("ipu")
        rows = np.full(len(self._ids) * self.num_ipus, -1)
        known = np.flatnonzero((step >= 0) & (ipu >= 0) & (ipu < self.num_ipus))
        rows[step[known] * self.num_ipus + ipu[known]] = known
        return rows


class IPUExecutionStep(View):
    """A step on one IPU; all zeros for an IPU that the report says nothing of."""

    __slots__ = ()

    @property
    def cycles(self) -> int:
        """Its cycles."""
        return self._number("cycles")

    @property
    def activeCycles(self) -> CycleSpan:
        """When it begins and ends on the tiles that do work."""
        return self._span("active")

    @property
    def allCycles(self) -> CycleSpan:
        """When it begins and ends on all tiles of the IPU."""
        return self._span("all")

    @property
    def tileBalance(self) -> float:
        """How evenly the tiles work, from 0 to 1."""
        return self._share("tile_balance")

    @property
    def activeTileBalance(self) -> float:
        """The same of the tiles that do work."""
        return self._share("active_tile_balance")

    @property
    def dataIn(self) -> int:
        """Bytes that the IPU received."""
        return self._number("data_in")

    @property
    def dataOut(self) -> int:
        """Bytes that the IPU sent."""
        return self._number("data_out")

    def _number(self, column: str) -> int:
        return self._store.columns("execution_step_ipus").integers(column).item(self._row) if self._row >= 0 else 0

    def _share(self, column: str) -> float:
        return self._store.columns("execution_step_ipus").reals(column).item(self._row) if self._row >= 0 else 0.0

    def _span(self, tiles: str) -> CycleSpan:
        number = self._number
        return CycleSpan(
            CycleRange(number(f"{tiles}_from_min"), number(f"{tiles}_from_max")),
            CycleRange(number(f"{tiles}_to_min"), number(f"{tiles}_to_max")),
        )


class Blocks:
    """``execution_blocks`` of one tile."""

    def __init__(self, store: Store, tile: int) -> None:
        self.tile = tile
        columns = Columns(store.source, "execution_blocks", {"tile": [tile]})
        self.count = columns.count
        columns.load("program_id", "cycles_from", "cycles_to")
        self.program_ids, self.kinds = columns.ids("program_id"), columns.texts("kind")
        self.begin, self.end = columns.integers("cycles_from"), columns.integers("cycles_to")


class Block(View):
    """An interval that lightweight profiling recorded."""

    __slots__ = ("_blocks",)

    def __init__(self, store: Store, blocks: Blocks, row: int) -> None:
        super().__init__(store, row)
        self._blocks = blocks

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, Block) and other.tile == self.tile

    __hash__ = View.__hash__

    @property
    def cyclesFrom(self) -> int:
        """Its first cycle, counted from when the executable was loaded."""
        return self._blocks.begin.item(self._row)

    @property
    def cyclesTo(self) -> int:
        """The cycle after its last."""
        return self._blocks.end.item(self._row)

    @property
    def program(self) -> Program | None:
        """The program; None for blocks that belong to none."""
        program = self._blocks.program_ids.item(self._row)
        return None if program == NONE else self._store.made(ProgramTable).program(program)

    @property
    def tile(self) -> int:
        """The tile."""
        return self._blocks.tile

    @property
    def isCommon(self) -> bool:
        """Whether it is a program that ran."""
        return self._blocks.kinds[self._row] == "common"

    @property
    def isStreamCopy(self) -> bool:
        """Whether it is a copy from or to a stream."""
        return self._blocks.kinds[self._row] == "streamCopy"

    @property
    def isOverflow(self) -> bool:
        """Whether it says that blocks were lost because there was no room left for them."""
        return self._blocks.kinds[self._row] == "overflow"

    @property
    def isBlockFlush(self) -> bool:
        """Whether it is the time that it took to hand blocks to the host."""
        return self._blocks.kinds[self._row] == "blockFlush"
