"""The memory of all IPUs: variables with their addresses, replica after replica."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .code import code_variables, vertex_code, vertex_counts
from .graph import Graph, TileVector, Variable
from .layout import REGIONS, UNALLOCATED, Layout, lay_out
from .liveness import live_bytes
from .machine import Machine
from .settings import Settings
from .vertices import VertexType


@dataclass
class IpuMemory:
    """One IPU of a replica; the other replicas' are the same.

    Attributes
    ----------
    always_live, not_always_live
        Bytes by tile; the second is each tile's peak.
    step_bytes
        Not-always-live bytes by step.
    vertex_code
        Code bytes of each vertex type by tile.
    """

    variables: list[Variable]
    layout: Layout
    always_live: TileVector
    not_always_live: TileVector
    step_bytes: TileVector
    vertex_code: dict[VertexType, TileVector]


@dataclass
class Fragment:
    """A contiguous part of a variable on the tiles of one IPU where it is; arrays of shape (tiles with it,)."""

    variable: Variable
    first_number: int
    tile: TileVector
    offset: TileVector
    bytes: TileVector
    region: list[str]


class Memory:
    """Lays out all IPUs of a replica and repeats them for every replica."""

    def __init__(self, graph: Graph, settings: Settings) -> None:
        self.machine: Machine = settings.machine
        tiles = self.machine.tiles_per_ipu
        variables = [*code_variables(graph, settings), *graph.variables]
        self.ipus: list[IpuMemory] = []
        for ipu in range(self.machine.stages):
            here = [variable for variable in variables if variable.ipu == ipu]
            live = live_bytes(here, len(graph.steps), tiles)
            code = vertex_code(vertex_counts(graph, ipu, tiles))
            self.ipus.append(IpuMemory(here, lay_out(here, tiles), *live, code))
        self.pieces = self._pieces(settings.lowered_variables)

    def _pieces(self, target: int) -> int:
        """Return into how many fragments to split a variable so that there are at least `target` in all."""
        pieces = 1
        while target and self._count(pieces) < target and pieces < 4096:
            pieces += 1
        return pieces

    def _count(self, pieces: int) -> int:
        return self.machine.replicas * sum(
            int((-(-variable.bytes // _piece_bytes(variable, pieces))).sum())
            for memory in self.ipus
            for variable in memory.variables
        )

    def fragments(self) -> Iterator[Fragment]:
        """Yield every allocation: by replica, IPU, variable, fragment and tile."""
        number = 0
        for replica in range(self.machine.replicas):
            for stage, memory in enumerate(self.ipus):
                first_tile = (replica * self.machine.stages + stage) * self.machine.tiles_per_ipu
                for variable in memory.variables:
                    for fragment in _split(variable, memory.layout, self.pieces):
                        fragment.first_number = number
                        fragment.tile += first_tile
                        number += fragment.tile.size
                        yield fragment


def _piece_bytes(variable: Variable, pieces: int) -> TileVector:
    if pieces == 1 or not variable.shape:
        return np.maximum(variable.bytes, 1)
    return np.maximum(-(-variable.bytes // pieces // 8) * 8, 8)


def _split(variable: Variable, layout: Layout, pieces: int) -> Iterator[Fragment]:
    step = _piece_bytes(variable, pieces)
    offsets = layout.offsets[variable]
    names = np.array(REGIONS)[layout.region(variable)]
    for number in range(pieces if variable.shape else 1):
        size = np.clip(variable.bytes - number * step, 0, step)
        tile = np.flatnonzero(size)
        offset = np.where(offsets == UNALLOCATED, UNALLOCATED, offsets + number * step)
        if tile.size:
            yield Fragment(variable, 0, tile, offset[tile], size[tile], names[tile].tolist())
