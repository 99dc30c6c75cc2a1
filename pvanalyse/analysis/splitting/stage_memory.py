"""What neighbouring layers need on each tile when they are one stage of a pipeline.

Counted as the published pipeline splitter counts it (``stage.py`` and ``operation.py`` of
github.com/graphcore/popliner), for each tile and over the programs of the stage's layers:

* vertex code: of each vertex type of which the stage has a vertex on the tile, once;
* vertex state: of every vertex, the state of one of its type;
* exchange code: of every DoExchange program;
* control code: of every program without children, since that of a parent includes its children's;
* variables: the most that is live at one step, of the variables that a program of the stage reads or writes, over the
  steps from the stage's first to its last. What is always live counts at every step; without a step, nothing does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pvanalyse.analysis.columns import Integers, integers, only_row
from pvanalyse.analysis.memory_details import per_tile
from pvanalyse.analysis.splitting.layers import Layers
from pvanalyse.analysis.splitting.uses import Uses
from pvanalyse.tables import TableSource

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StageBytes:
    """Bytes of a stage on each tile, each of shape (tiles,)."""

    variables: Integers
    vertex_code: Integers
    vertex_state: Integers
    exchange_code: Integers
    control_code: Integers

    @cached_property
    def total(self) -> Integers:
        """Sum of all kinds."""
        return self.variables + self.vertex_code + self.vertex_state + self.exchange_code + self.control_code


KINDS = tuple(one.name for one in fields(StageBytes))
"""What the bytes of a stage are."""


@dataclass(frozen=True)
class Code:
    """Code and vertex state by layer and tile.

    Attributes
    ----------
    vertex_state, exchange_code, control_code
        int64 of shape (layers, tiles).
    layer, vertex_type
        Of each pair of a layer and a vertex type that it has, ordered by layer.
    on_tile
        Where the layer has a vertex of the type, shape (pairs, tiles).
    code_bytes
        Of each vertex type, shape (types, tiles).
    """

    vertex_state: Integers
    exchange_code: Integers
    control_code: Integers
    layer: Integers
    vertex_type: Integers
    on_tile: Flags
    code_bytes: Integers


class StageMemory:
    """The memory of stages: any layers that are neighbours.

    Parameters
    ----------
    code
        Code and vertex state of the layers.
    uses
        Which layer uses which allocation.
    first_step, stop_step
        The steps from the first program of each layer to the one after its last; 0 and 0 for a layer without steps.
    """

    def __init__(self, code: Code, uses: Uses, first_step: Integers, stop_step: Integers) -> None:
        self._code, self._uses = code, uses
        self._first_step, self._stop_step = first_step, stop_step
        self.num_layers, self.num_tiles = code.control_code.shape
        # Sums over neighbouring layers are then differences of two rows.
        self._summed = {
            name: np.concatenate([np.zeros((1, self.num_tiles), np.int64), np.cumsum(getattr(code, name), axis=0)])
            for name in ("vertex_state", "exchange_code", "control_code")
        }
        self._found: dict[tuple[int, int], int] = {}

    def stage(self, first: int, stop: int) -> StageBytes:
        """Return the bytes of a stage on each tile."""
        sums = {name: column[stop] - column[first] for name, column in self._summed.items()}
        return StageBytes(self._variables(first, stop), self._vertex_code(first, stop), **sums)

    def fullest(self, first: int, stop: int) -> int:
        """Return the bytes of a stage on its fullest tile; what was found once is remembered."""
        if (first, stop) not in self._found:
            self._found[first, stop] = int(self.stage(first, stop).total.max())
        return self._found[first, stop]

    def steps(self, first: int, stop: int) -> tuple[int, int]:
        """Return the first step of a stage and the one after its last; 0 and 0 when no step runs any of it."""
        begin, end = self._first_step[first:stop], self._stop_step[first:stop]
        runs = end > begin
        return (int(begin[runs].min()), int(end[runs].max())) if runs.any() else (0, 0)

    def _vertex_code(self, first: int, stop: int) -> Integers:
        rows = slice(*np.searchsorted(self._code.layer, [first, stop]))
        kinds = self._code.vertex_type[rows]
        if not len(kinds):
            return np.zeros(self.num_tiles, np.int64)
        order = np.argsort(kinds, kind="stable")
        starts = np.flatnonzero(np.diff(kinds[order], prepend=-1))
        on_tile = np.logical_or.reduceat(self._code.on_tile[rows][order], starts)
        return np.asarray((self._code.code_bytes[kinds[order][starts]] * on_tile).sum(axis=0))

    def _variables(self, first: int, stop: int) -> Integers:
        live = self._uses.of_stage(first, stop)
        begin, end = (np.clip(steps, *self.steps(first, stop)) for steps in (live.begin, live.end))
        # Sums change only where an interval of the stage begins or ends, so other steps are left out.
        held = np.bincount(live.class_index, minlength=len(begin)) > 0
        changes = np.unique(np.concatenate([begin[held], end[held]]))
        begin, end = (np.searchsorted(changes, steps) for steps in (begin, end))
        short = replace(live, begin=begin, end=end, num_steps=len(changes))
        return short.peaks(live.tile, self.num_tiles)[0]


# ----------------------------------------------------------------------------------------------------------- reading
def read_code(source: TableSource, layers: Layers, num_tiles: int) -> Code:
    """Read the code and vertex state of the layers on the first so many tiles.

    Raises
    ------
    NotCaptured
        The report does not hold one of the tables.
    """
    of_set: dict[int, list[int]] = {}
    exchange_code, control_code = (np.zeros((len(layers), num_tiles), np.int64) for _ in range(2))
    for layer, program in _programs(source, layers, num_tiles):
        if program.kind == "OnTileExecute" and program.compute_set is not None:
            of_set.setdefault(program.compute_set, []).append(layer)
        if program.kind == "DoExchange":
            exchange_code[layer] += program.exchange_code
        if not program.is_parent:
            control_code[layer] += program.control_code
    state, on_tile = _vertices(source, of_set, (len(layers), num_tiles))
    pairs = sorted(on_tile)
    kinds = {kind: at for at, kind in enumerate(dict.fromkeys(kind for _, kind in pairs))}
    return Code(
        vertex_state=state,
        exchange_code=exchange_code,
        control_code=control_code,
        layer=np.array([layer for layer, _ in pairs], np.int64),
        vertex_type=np.array([kinds[kind] for _, kind in pairs], np.int64),
        on_tile=np.array([on_tile[pair] for pair in pairs], bool).reshape(len(pairs), num_tiles),
        code_bytes=_code_of_types(source, kinds, num_tiles),
    )


@dataclass(frozen=True, slots=True)
class _Program:
    kind: str
    compute_set: int | None
    is_parent: bool
    exchange_code: npt.NDArray[np.uint32]
    control_code: npt.NDArray[np.uint32]


def _programs(source: TableSource, layers: Layers, num_tiles: int) -> Iterator[tuple[int, _Program]]:
    """Yield layer and program of those that are in a layer."""
    parents = _parents(source)
    width = int(only_row(source, "target")["num_tiles"])
    columns = ["program_id", "type", "compute_set_id", "code_bytes_by_tile", "control_code_by_tile"]
    start = 0
    for batch in source.batches("programs", columns):
        ids, kinds, sets = (batch.column(at).to_pylist() for at in range(3))
        exchange, control = (per_tile(batch.column(at), width)[:, :num_tiles] for at in (3, 4))
        of_row = layers.of_program[start : start + batch.num_rows]
        start += batch.num_rows
        for row in np.flatnonzero(of_row >= 0).tolist():
            one = _Program(kinds[row] or "", sets[row], ids[row] in parents, exchange[row], control[row])
            yield int(of_row[row]), one


def _parents(source: TableSource) -> set[int]:
    if not source.captured("program_children"):
        return set()
    return set(source.arrow("program_children", ["program_id"]).column(0).to_pylist())


def _vertices(
    source: TableSource, of_set: dict[int, list[int]], shape: tuple[int, int]
) -> tuple[Integers, dict[tuple[int, int], Flags]]:
    """Return vertex state by layer and tile; and by layer and vertex type, on which tiles it has a vertex."""
    state = np.zeros(shape, np.int64)
    on_tile: dict[tuple[int, int], Flags] = {}
    types = source.arrow("vertex_types", ["vertex_type_id", "instance_bytes"]).to_pydict()
    size_of = dict(zip(*types.values(), strict=True))
    width = int(only_row(source, "target")["num_tiles"])
    for batch in source.batches("compute_set_vertices", ["compute_set_id", "vertex_type_id", "count_by_tile"]):
        counts = per_tile(batch.column(2), width)[:, : shape[1]]
        pairs = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
        for row, (compute_set, kind) in enumerate(pairs):
            for layer in of_set.get(compute_set, ()):
                state[layer] += counts[row].astype(np.int64) * (size_of.get(kind) or 0)
                here = on_tile.setdefault((layer, kind), np.zeros(shape[1], bool))
                here |= counts[row] > 0
    return state, on_tile


def _code_of_types(source: TableSource, kinds: dict[int, int], num_tiles: int) -> Integers:
    """Return the code of vertex types, by their numbers, on each tile."""
    code = np.zeros((len(kinds), num_tiles), np.int64)
    for batch in source.batches("tile_vertices", ["tile", "vertex_type_id", "code_bytes"]):
        tile, size = integers(batch.column(0)), integers(batch.column(2))
        number = np.array([kinds.get(kind, -1) for kind in batch.column(1).to_pylist()], np.int64)
        held = (number >= 0) & (tile >= 0) & (tile < num_tiles)
        code[number[held], tile[held]] = size[held]
    return code
