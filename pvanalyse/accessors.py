"""What a report can be asked: ``report.memory``, ``.liveness``, ``.execution``, ``.programs``, ``.operations``.

Each method returns a DataFrame of its own; sizes are bytes. ``tiles`` is a text such as ``"0,5,100-200"`` or tile
numbers, ``ipu`` an IPU or several, ``worst`` how many of the fullest tiles; together they narrow the choice down.
``pattern`` is a regular expression that is searched for in names. Everything raises
:class:`~pvanalyse.errors.NotCaptured` when the report does not hold what it needs, and
:class:`~pvanalyse.errors.UsageError` for a tile, step or pattern that makes no sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from pvanalyse.analysis import (
    execution_details,
    execution_efficiency,
    execution_trace,
    execution_waits,
    liveness,
    memory,
    memory_details,
    operations,
    peak_reduction,
    programs,
)
from pvanalyse.analysis.operation_costs import OperationCosts
from pvanalyse.analysis.operation_groups import OperationGroups, operation_groups
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.errors import NotCaptured, UsageError

if TYPE_CHECKING:
    from pvanalyse.analysis.execution_trace import Trace
    from pvanalyse.tables import TableSource

Tiles = str | Sequence[int] | None
Ipus = int | Sequence[int] | None
Runs = int | Sequence[int] | None


class MemoryAccessor:
    """Where the bytes are."""

    def __init__(self, source: TableSource) -> None:
        self._source = source

    def by_tile(self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return the memory of each tile; see :func:`pvanalyse.analysis.memory.tiles_frame`."""
        return memory.tiles_frame(self._source, select_tiles(self._source, tiles, ipu, worst))

    def by_ipu(self) -> pd.DataFrame:
        """Return the memory of each IPU; see :func:`pvanalyse.analysis.memory.ipus_frame`."""
        return memory.ipus_frame(self._source)

    def by_category(self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return bytes by storage category; see :func:`pvanalyse.analysis.memory.categories_frame`."""
        return memory.categories_frame(self._source, select_tiles(self._source, tiles, ipu, worst))

    def by_tile_and_category(self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return bytes by tile and category; see :func:`pvanalyse.analysis.memory.tile_categories`."""
        return memory.tile_categories(self._source, select_tiles(self._source, tiles, ipu, worst))

    def by_region(self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return bytes by tile and region; see :func:`pvanalyse.analysis.memory.tile_regions`."""
        return memory.tile_regions(self._source, select_tiles(self._source, tiles, ipu, worst))

    def by_liveness(self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return bytes by tile, always live or not; see :func:`pvanalyse.analysis.memory.tile_liveness`."""
        return memory.tile_liveness(self._source, select_tiles(self._source, tiles, ipu, worst))

    def largest_tiles(self, count: int = 10) -> pd.DataFrame:
        """Return the fullest tiles, fullest first."""
        return self.by_tile(worst=count)

    def quantiles(self, tiles: Tiles = None, ipu: Ipus = None, column: str = "total_including_gaps") -> pd.DataFrame:
        """Return quantiles over the tiles; see :func:`pvanalyse.analysis.memory.distribution`."""
        return memory.distribution(self._source, select_tiles(self._source, tiles, ipu), column)[0]

    def histogram(
        self, tiles: Tiles = None, ipu: Ipus = None, column: str = "total_including_gaps", bins: int = 20
    ) -> pd.DataFrame:
        """Return a histogram over the tiles; see :func:`pvanalyse.analysis.memory.distribution`."""
        return memory.distribution(self._source, select_tiles(self._source, tiles, ipu), column, bins)[1]

    def out_of_memory(self) -> pd.DataFrame:
        """Return the tiles that do not fit; see :func:`pvanalyse.analysis.memory.out_of_memory`."""
        return memory.out_of_memory(self._source)

    def vertices(
        self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None, pattern: str | None = None
    ) -> pd.DataFrame:
        """Return vertex types by code and state; see :func:`pvanalyse.analysis.memory_details.vertices_frame`."""
        return memory_details.vertices_frame(self._source, select_tiles(self._source, tiles, ipu, worst), pattern)

    def compute_sets(
        self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None, pattern: str | None = None
    ) -> pd.DataFrame:
        """Return compute sets by vertex state; see :func:`pvanalyse.analysis.memory_details.compute_sets_frame`."""
        return memory_details.compute_sets_frame(self._source, select_tiles(self._source, tiles, ipu, worst), pattern)

    def exchanges(
        self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None, pattern: str | None = None
    ) -> pd.DataFrame:
        """Return programs by exchange code; see :func:`pvanalyse.analysis.memory_details.exchanges_frame`."""
        return memory_details.exchanges_frame(self._source, select_tiles(self._source, tiles, ipu, worst), pattern)

    def variables(
        self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None, pattern: str | None = None
    ) -> pd.DataFrame:
        """Return variables by bytes; see :func:`pvanalyse.analysis.memory_details.variables_frame`."""
        return memory_details.variables_frame(self._source, select_tiles(self._source, tiles, ipu, worst), pattern)

    def variable_tiles(self, pattern: str, tiles: Tiles = None, ipu: Ipus = None) -> pd.DataFrame:
        """Return the bytes of variables on each tile; see :func:`pvanalyse.analysis.memory_details.variable_tiles`."""
        return memory_details.variable_tiles(self._source, pattern, select_tiles(self._source, tiles, ipu))

    def map(self, tile: int) -> pd.DataFrame:
        """Return what lies where on a tile; see :func:`pvanalyse.analysis.memory_details.memory_map`."""
        select_tiles(self._source, [tile])
        return memory_details.memory_map(self._source, tile)


class LivenessAccessor:
    """When the bytes are live."""

    def __init__(self, source: TableSource) -> None:
        self._source = source

    def curve(self, ipu: int | None = None, tiles: Tiles = None, always_live: bool = False) -> pd.DataFrame:
        """Return live bytes at each step; see :func:`pvanalyse.analysis.liveness.curve`."""
        chosen = select_tiles(self._source, tiles, ipu)
        return liveness.curve(self._source, tiles=chosen, always_live=always_live)

    def peaks(self, count: int = 1) -> pd.DataFrame:
        """Return the highest peaks and what causes them; see :func:`pvanalyse.analysis.liveness.peaks`."""
        return liveness.peaks(self._source, count)

    def live_at(self, step: int, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return what is live at a step; see :func:`pvanalyse.analysis.liveness.live_at_frame`."""
        return liveness.live_at_frame(self._source, step, select_tiles(self._source, tiles, ipu, worst))

    def lifetimes(self, pattern: str | None = None, count: int | None = None) -> pd.DataFrame:
        """Return when variables are live; see :func:`pvanalyse.analysis.liveness.lifetimes_frame`."""
        return liveness.lifetimes_frame(self._source, pattern, count)

    def difference(self, first: int, second: int) -> pd.DataFrame:
        """Return what differs between two steps; see :func:`pvanalyse.analysis.liveness.difference`."""
        return liveness.difference(self._source, first, second)

    def always_live(self) -> pd.DataFrame:
        """Return what is live all the time; see :func:`pvanalyse.analysis.liveness.always_live_frame`."""
        return liveness.always_live_frame(self._source)

    def tile_peaks(self) -> pd.DataFrame:
        """Return every tile's own peak; see :func:`pvanalyse.analysis.liveness.tile_peaks`."""
        return liveness.tile_peaks(self._source)

    def headroom(self, tiles: Tiles = None, ipu: Ipus = None, worst: int | None = None) -> pd.DataFrame:
        """Return what is free on chosen tiles at each step; see :func:`pvanalyse.analysis.liveness.headroom`."""
        chosen = select_tiles(self._source, tiles, ipu, worst)
        if chosen is None:
            raise UsageError("headroom is a column per tile: choose some with tiles, ipu or worst")
        return liveness.headroom(self._source, chosen)

    def explain_peak(self, reduce_by: int) -> pd.DataFrame:
        """Return what to free to lower the peak; see :func:`pvanalyse.analysis.peak_reduction.explain_peak`."""
        return peak_reduction.explain_peak(self._source, reduce_by)

    def fp16_candidates(self, worst: int = 5) -> pd.DataFrame:
        """Return what half precision would save; see :func:`pvanalyse.analysis.peak_reduction.fp16_candidates`."""
        return peak_reduction.fp16_candidates(self._source, worst)


class ProgramsAccessor:
    """What runs: the program tree, and what each program costs with everything below it."""

    def __init__(self, source: TableSource) -> None:
        self._source = source

    def tree(
        self,
        kind: str | None = None,
        root: int | None = None,
        operation: str | None = None,
        pattern: str | None = None,
        depth: int | None = None,
    ) -> pd.DataFrame:
        """Return the program tree in order; see :func:`pvanalyse.analysis.programs.program_tree`."""
        return programs.program_tree(
            self._source, kind=kind, root=root, operation=operation, pattern=pattern, depth=depth
        )

    def find(self, pattern: str) -> pd.DataFrame:
        """Return the programs whose name matches; see :func:`pvanalyse.analysis.programs.find_programs`."""
        return programs.find_programs(self._source, pattern)

    def text(self, frame: pd.DataFrame | None = None) -> str:
        """Return a tree that :meth:`tree` returned, or all of it, as indented lines."""
        from pvanalyse.render.programs import tree_text

        return tree_text(self.tree() if frame is None else frame)

    def nested(self, frame: pd.DataFrame | None = None) -> list[dict[str, Any]]:
        """Return a tree as nested dicts, ready for JSON; see :func:`pvanalyse.render.programs.nested_programs`."""
        from pvanalyse.render.programs import nested_programs

        return nested_programs(self.tree() if frame is None else frame)

    def dot(self, frame: pd.DataFrame | None = None) -> str:
        """Return a tree as a graph for Graphviz; see :func:`pvanalyse.render.programs.dot`."""
        from pvanalyse.render.programs import dot

        return dot(self.tree() if frame is None else frame)


class OperationsAccessor:
    """What the operations that a user wrote cost; what belongs to none is :meth:`outside`.

    Without debug information, operations are what the names of programs and variables begin with; :attr:`grouped_by`
    says which of the two it is. Costs are those of :data:`pvanalyse.analysis.operation_costs.COSTS`. ``layer`` chooses
    operations of that layer of the debug information instead of the framework's.
    """

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._costs = OperationCosts(source)
        self._groups: dict[tuple[str | None, bool], OperationGroups] = {}

    def groups(self, layer: str | None = None, discarded: bool = False) -> OperationGroups:
        """Return which operation each program and variable belongs to; read once for each choice."""
        if (layer, discarded) not in self._groups:
            self._groups[layer, discarded] = operation_groups(self._source, layer, discarded)
        return self._groups[layer, discarded]

    @property
    def frame(self) -> pd.DataFrame:
        """The operations in execution order; see :func:`pvanalyse.analysis.operations.by_operation`."""
        return self.by_operation()

    @property
    def grouped_by(self) -> str:
        """What operations are told by: ``debug contexts`` or ``name paths``."""
        return self.groups().grouped_by

    def by_operation(self, layer: str | None = None, discarded: bool = False) -> pd.DataFrame:
        """Return the operations in execution order; see :func:`pvanalyse.analysis.operations.by_operation`."""
        return operations.by_operation(self._costs, self.groups(layer, discarded))

    def by_layer(self, layer: str) -> pd.DataFrame:
        """Return the operations of a layer of the debug information, such as ``poplibs``."""
        return self.by_operation(layer)

    def by_module(self, depth: int = 1, pattern: str | None = None, layer: str | None = None) -> pd.DataFrame:
        """Return operations put together by module; see :func:`pvanalyse.analysis.operations.by_module`."""
        return operations.by_module(self._costs, self.groups(layer), depth, pattern)

    def by_source(
        self, per: operations.Per = "line", pattern: str | None = None, layer: str | None = None
    ) -> pd.DataFrame:
        """Return operations by where they were written; see :func:`pvanalyse.analysis.operations.by_source`."""
        return operations.by_source(self._costs, self.groups(layer), per, pattern)

    def outside(self, layer: str | None = None) -> dict[str, int | None]:
        """Return what costs that which is in no operation; see :func:`pvanalyse.analysis.operations.outside`."""
        return operations.outside(self._costs, self.groups(layer))

    def find(self, pattern: str, layer: str | None = None) -> pd.DataFrame:
        """Return the operations in whose name a regular expression is found."""
        return operations.by_operation(self._costs, self.groups(layer), pattern)

    def layers(self) -> pd.DataFrame:
        """Return the layers of the debug information; see :func:`pvanalyse.analysis.operations.layers_frame`."""
        return operations.layers_frame(self._source)

    def chain(self, program: int | str | None = None, variable: int | str | None = None) -> pd.DataFrame:
        """Return where a program or variable came from; see :func:`pvanalyse.analysis.operations.chain_frame`."""
        return operations.chain_frame(self._source, program, variable)

    def tensors(self, pattern: str | None = None, layer: str | None = None) -> pd.DataFrame:
        """Return the tensors of operations; see :func:`pvanalyse.analysis.operations.tensors_frame`."""
        return operations.tensors_frame(self._source, self.groups(layer), pattern)


class ExecutionAccessor:
    """Where the cycles go; ``run`` and ``ipu`` are numbers, one or several, and choose what the answer is about.

    The intervals are gone through once for each choice of runs and IPUs, and what that leaves is kept.
    """

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._traces: dict[tuple[tuple[int, ...] | None, tuple[int, ...] | None], Trace] = {}

    def trace(self, run: Runs = None, ipu: Ipus = None) -> Trace:
        """Return what one pass leaves; see :class:`pvanalyse.analysis.execution_trace.Trace`."""
        chosen = _several(run), _several(ipu)
        if chosen not in self._traces:
            self._traces[chosen] = execution_trace.read_trace(self._source, *chosen)
        return self._traces[chosen]

    def runs(self, run: Runs = None, ipu: Ipus = None) -> pd.DataFrame:
        """Return the runs; see :func:`pvanalyse.analysis.execution_details.runs_frame`."""
        try:
            trace = self.trace(run, ipu)
        except NotCaptured:
            trace = None
        return execution_details.runs_frame(self._source, trace)

    def steps(
        self, run: Runs = None, ipu: Ipus = None, types: Sequence[str] | None = None, pattern: str | None = None
    ) -> pd.DataFrame:
        """Return steps as intervals on each IPU; see :func:`pvanalyse.analysis.execution_details.steps_frame`."""
        return execution_details.steps_frame(self._source, _several(run), _several(ipu), types, pattern)

    def by_type(self, run: Runs = None, ipu: Ipus = None, per: Sequence[str] = ()) -> pd.DataFrame:
        """Return cycles by program type; see :func:`pvanalyse.analysis.execution_details.by_type`."""
        return execution_details.by_type(self.trace(run, ipu), per)

    def by_program(self, run: Runs = None, ipu: Ipus = None, pattern: str | None = None) -> pd.DataFrame:
        """Return cycles by program; see :func:`pvanalyse.analysis.execution_details.by_program`."""
        return execution_details.by_program(self.trace(run, ipu), pattern)

    def by_compute_set(self, run: Runs = None, ipu: Ipus = None, pattern: str | None = None) -> pd.DataFrame:
        """Return cycles by compute set; see :func:`pvanalyse.analysis.execution_details.by_compute_set`."""
        return execution_details.by_compute_set(self.trace(run, ipu), pattern)

    def by_operation(self, run: Runs = None, ipu: Ipus = None, pattern: str | None = None) -> pd.DataFrame:
        """Return cycles by operation and source line; see :func:`pvanalyse.analysis.execution_details.by_operation`."""
        return execution_details.by_operation(self.trace(run, ipu), pattern)

    def by_prefix(self, depth: int = 1, prefix: str = "", run: Runs = None, ipu: Ipus = None) -> pd.DataFrame:
        """Return cycles by what names begin with; see :func:`pvanalyse.analysis.execution_details.by_prefix`."""
        return execution_details.by_prefix(self.trace(run, ipu), depth, prefix)

    def shares(self, run: Runs = None, ipu: Ipus = None) -> pd.DataFrame:
        """Return what time went into, by run and IPU; see :func:`pvanalyse.analysis.execution_details.shares`."""
        return execution_details.shares(self.trace(run, ipu))

    def imbalance(self, run: Runs = None, ipu: Ipus = None, pattern: str | None = None) -> pd.DataFrame:
        """Return cycles lost waiting for tiles; see :func:`pvanalyse.analysis.execution_efficiency.imbalance`."""
        return execution_efficiency.imbalance(self.trace(run, ipu), pattern)

    def overlap(self, run: Runs = None, ipu: Ipus = None) -> pd.DataFrame:
        """Return compute beside I/O; see :func:`pvanalyse.analysis.execution_details.compute_io_overlap`."""
        return execution_details.compute_io_overlap(self.trace(run, ipu))

    def bandwidth(self, run: Runs = None, ipu: Ipus = None) -> pd.DataFrame:
        """Return how fast bytes moved; see :func:`pvanalyse.analysis.execution_details.bandwidth`."""
        return execution_details.bandwidth(self.trace(run, ipu))

    def idle_gaps(self, run: Runs = None, ipu: Ipus = None, shortest: int = 1) -> pd.DataFrame:
        """Return when nothing went on; see :func:`pvanalyse.analysis.execution_waits.idle_gaps`."""
        return execution_waits.idle_gaps(self.trace(run, ipu), shortest)

    def bubbles(self, run: Runs = None) -> pd.DataFrame:
        """Return what a pipeline leaves without work; see :func:`pvanalyse.analysis.execution_waits.bubbles`."""
        return execution_waits.bubbles(self.trace(run))

    def waiting(self, run: Runs = None) -> pd.DataFrame:
        """Return which IPU waited for which, and when; see :func:`pvanalyse.analysis.execution_waits.waiting`."""
        return execution_waits.waiting(self.trace(run))

    def critical_path(self, run: Runs = None) -> pd.DataFrame:
        """Return which IPU decided, and when; see :func:`pvanalyse.analysis.execution_waits.critical_path`."""
        return execution_waits.critical_path(self.trace(run))

    def flops(self, run: Runs = None, ipu: Ipus = None, pattern: str | None = None) -> pd.DataFrame:
        """Return how fast compute sets compute; see :func:`pvanalyse.analysis.execution_efficiency.flops`."""
        return execution_efficiency.flops(self.trace(run, ipu), pattern)

    def against_estimates(self, run: Runs = None, ipu: Ipus = None, pattern: str | None = None) -> pd.DataFrame:
        """Compare with estimates; see :func:`pvanalyse.analysis.execution_efficiency.against_estimates`."""
        return execution_efficiency.against_estimates(self.trace(run, ipu), pattern)


def _several(chosen: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if chosen is None:
        return None
    return (int(chosen),) if isinstance(chosen, int) else tuple(int(one) for one in chosen)
