"""What ran: runs, executed steps, blocks of lightweight profiling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from pvanalyse.capture.parts import ABSENT, Part, id_of

_KINDS = {"common": "isCommon", "streamCopy": "isStreamCopy", "overflow": "isOverflow", "blockFlush": "isBlockFlush"}


class Runs(Part):
    """Calls of ``Engine::run``."""

    name = "runs"
    tables = ("runs",)

    def items(self) -> Sequence[Any]:
        """Return the runs; their numbers here are their places there."""
        runs: Sequence[Any] = self.session.report.execution.runs
        return runs

    def write(self, at: int, item: Any) -> None:
        """Write a run."""
        time = item.microseconds
        self.file.add("runs", [(at, item.name, int(time.start), int(time.end))])


class StepsOfRuns(Sequence[tuple[int | None, Any]]):
    """The steps of all runs, each with the number of its run."""

    def __init__(self, steps: Sequence[tuple[int | None, Sequence[Any]]]) -> None:
        self._steps = steps

    def __len__(self) -> int:
        return sum(len(steps) for _, steps in self._steps)

    def __iter__(self) -> Iterator[tuple[int | None, Any]]:
        return ((run, step) for run, steps in self._steps for step in steps)

    @overload
    def __getitem__(self, index: int) -> tuple[int | None, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int | None, Any]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int | None, Any] | list[tuple[int | None, Any]]:
        return list(self)[index]


class Steps(Part):
    """Executed programs."""

    name = "executed steps"
    tables = ("execution_steps", "execution_step_ipus")

    def items(self) -> Sequence[Any]:
        """Return the steps run by run; their numbers here are their places in that order."""
        execution = self.session.report.execution
        steps = StepsOfRuns([(at, run.steps) for at, run in enumerate(execution.runs)])
        if not len(steps):  # whatever ran, it is not told in what run
            steps = StepsOfRuns([(None, execution.steps)])
        self._others = len(execution.steps) - len(steps)
        return steps

    def write(self, at: int, item: Any) -> None:
        """Write a step, and what it took on each IPU."""
        run, step = item
        cycles = self.session.optional(step, "ExecutionStep", "cyclesByTile")
        packed = self.session.packed(cycles, "execution_steps.cycles_by_tile")
        self.file.add("execution_steps", [(at, run, id_of(step.program), packed)])
        rows = ((ipu, self._on_ipu(one)) for ipu, one in enumerate(step.ipus))
        # An IPU of which nothing but zeros is told had no part in the step.
        self.file.add("execution_step_ipus", [(at, ipu, *row) for ipu, row in rows if any(row)])

    def _on_ipu(self, one: Any) -> tuple[Any, ...]:
        optional = self.session.optional
        everywhere = optional(one, "IPUExecutionStep", "allCycles")
        names = ("tileBalance", "activeTileBalance", "dataIn", "dataOut")
        return (
            one.cycles,
            *_span(one.activeCycles),
            *((None,) * 4 if everywhere is None else _span(everywhere)),
            *(optional(one, "IPUExecutionStep", name) for name in names),
        )

    def end(self) -> None:
        """Say which steps could not be written."""
        if self._others > 0:
            self.file.remark(f"{self._others:,} executed steps belong to no run, and are left out")


def _span(cycles: Any) -> tuple[int, int, int, int]:
    begin, end = cycles.cyclesFrom, cycles.cyclesTo
    return begin.min, begin.max, end.min, end.max


class Blocks(Part):
    """What lightweight profiling recorded, tile by tile."""

    name = "blocks"
    tables = ("execution_blocks",)

    def items(self) -> Sequence[Any]:
        """Return the numbers of the tiles."""
        self._blocks = self.session.optional(self.session.report.execution, "ExecutionReport", "blocks")
        return range(self.session.num_tiles if self._blocks is not None else 0)

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write the blocks of a tile; they are numbered as they are written."""
        rows = []
        for block in self._blocks(at):
            program = self.session.optional(block, "Block", "program")
            name = "" if program is None else program.name
            rows.append((None, at, id_of(program), name, self._kind(block), block.cyclesFrom, block.cyclesTo))
        self.file.add("execution_blocks", rows)

    def _kind(self, block: Any) -> str | None:
        told = False
        for kind, name in _KINDS.items():
            answer = getattr(block, name, None)
            if answer:
                return kind
            told = told or answer is not None
        if not told:
            self.file.remark(f"{ABSENT}Block.kind")
        return None
