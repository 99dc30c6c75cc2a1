"""Makes single programs: compute sets, exchanges, syncs and stream copies, with their code and cycles by tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .debug_contexts import DebugContexts
from .graph import EXTERNAL_SYNC, ComputeSet, PerIpu, Program, StreamCopy, TileVector
from .machine import HOST_BYTES_PER_CYCLE, LINK_BYTES_PER_CYCLE, Machine
from .noise import Noise
from .vertices import VertexType, vertex_type

_MATMUL_FLOPS_PER_CYCLE = {"half": 128, "float": 32}
_MOST_VERTICES = 24
"""Four for each of the six worker threads of a tile."""


class Assembler:
    """Makes leaf programs and remembers the compute sets in order."""

    def __init__(self, machine: Machine, noise: Noise, contexts: DebugContexts) -> None:
        self.machine = machine
        self.noise = noise
        self.contexts = contexts
        self.compute_sets: list[ComputeSet] = []

    @property
    def all_ipus(self) -> tuple[int, ...]:
        """The IPUs of a replica."""
        return tuple(range(self.machine.stages))

    def compute(
        self, name: str, ipu: int, roles: Sequence[str], element_type: str, work: TileVector, flops: int, parent: int
    ) -> Program:
        """Make an OnTileExecute program.

        Parameters
        ----------
        roles
            Roles of its vertex types, see `vertices.vertex_type`.
        work
            Elements to compute by tile of the IPU.
        flops
            Over all tiles.
        parent
            Debug context of the call that asks for it.
        """
        vertices = [vertex_type(role, element_type) for role in roles]
        counts = np.minimum(-(-work // 32), _MOST_VERTICES)
        estimated = np.where(work > 0, 60, 0)
        for vertex in vertices:
            estimated = estimated + _cycles(vertex, element_type, work, flops)
        slower = self.noise.integers(f"{name}:measured", 0, 60, work.size)
        compute_set = ComputeSet(
            name,
            {ipu: estimated},
            {ipu: estimated + estimated * slower // 1000},
            [(vertex, {ipu: counts}) for vertex in vertices],
            flops,
            self.contexts.add_leaf(name, parent, "OnTileExecute"),
        )
        self.compute_sets.append(compute_set)
        return Program(
            "OnTileExecute",
            name,
            ipus=(ipu,),
            compute_set=compute_set,
            control_code={ipu: np.where(work > 0, 24 + 8 * len(vertices), 0)},
            context=compute_set.context,
        )

    def exchange(self, name: str, ipu: int, moved: TileVector, parent: int) -> list[Program]:
        """Make an exchange within an IPU, `moved` bytes by tile, and the sync that goes before it."""
        used = moved > 0
        exchange = Program(
            "DoExchange",
            name,
            ipus=(ipu,),
            control_code={ipu: np.where(used, 12, 0)},
            exchange_code={ipu: np.where(used, 40 + np.minimum(moved // 64, 400) * 4, 0)},
            exchange_cycles={ipu: np.where(used, 22 + moved // 4, 0)},
            data_in={ipu: int(moved.sum())},
            data_out={ipu: int(moved.sum())},
            context=self.contexts.add_leaf(name, parent, "DoExchange"),
        )
        return [self.internal_sync(ipu), exchange]

    def internal_sync(self, ipu: int) -> Program:
        """Make a sync of the tiles of one IPU."""
        return Program("Sync", "Internal Sync", ipus=(ipu,))

    def external_sync(self) -> Program:
        """Make a sync of all IPUs."""
        return Program("Sync", EXTERNAL_SYNC, ipus=self.all_ipus)

    def sync_answer(self) -> Program:
        """Make the program by which tiles that take no part answer the next external sync."""
        return Program("SyncAns", "SyncAns", ipus=self.all_ipus)

    def global_exchange(self, name: str, data_in: dict[int, int], data_out: dict[int, int]) -> list[Program]:
        """Make an exchange between IPUs, bytes by IPU, and the sync that goes before it."""
        tiles = self.machine.compute_tiles
        code, cycles, control = {}, {}, {}
        for ipu in self.all_ipus:
            moved = max(data_in.get(ipu, 0), data_out.get(ipu, 0))
            if moved:
                takes_part = np.arange(self.machine.tiles_per_ipu) < tiles
                code[ipu] = np.where(takes_part, 64 + min(moved // tiles // 32, 400) * 4, 0)
                cycles[ipu] = np.where(
                    takes_part, 160 + moved // tiles // 4 + moved // LINK_BYTES_PER_CYCLE // tiles, 0
                )
                control[ipu] = np.where(takes_part, 16, 0)
        exchange = Program(
            "GlobalExchange",
            name,
            ipus=tuple(sorted(code)),
            control_code=control,
            exchange_code=code,
            exchange_cycles=cycles,
            data_in=data_in,
            data_out=data_out,
            context=self.contexts.add_leaf(name, 0, "GlobalExchange"),
        )
        return [self.external_sync(), exchange]

    def stream_copy(
        self, name: str, direction: str, moved: dict[int, int], *, overlapped: bool = False
    ) -> tuple[Program, Program, Program]:
        """Make the three programs of a stream copy: Begin, Mid, End; `moved` bytes by IPU."""
        text = {"HostToDevice": "Host -> Device", "DeviceToHost": "Device -> Host"}
        text |= {"RemoteToDevice": "Remote -> Device", "DeviceToRemote": "Device -> Remote"}
        inward = direction.endswith("ToDevice")
        context = self.contexts.add_leaf(name, 0, "StreamCopy")
        code, cycles, control = {}, {}, {}
        for ipu, count in moved.items():
            tiles = self._host_tiles()
            code[ipu] = np.where(tiles, 96 + min(count // 4096, 64) * 4, 0)
            cycles[ipu] = np.where(tiles, 900 + count // HOST_BYTES_PER_CYCLE, 0)
            control[ipu] = np.where(tiles, 28, 0)
        begin = Program("StreamCopyBegin", f"{name}/Begin", ipus=self.all_ipus, control_code=control, context=context)
        middle = Program(
            "StreamCopyMid",
            f"{name}/ {text[direction]}",
            ipus=tuple(sorted(moved)),
            control_code=control,
            exchange_code=code,
            exchange_cycles=cycles,
            data_in=moved if inward else {},
            data_out={} if inward else moved,
            streams=[StreamCopy(name, direction, sum(moved.values()))],
            overlapped=overlapped,
            context=context,
        )
        return begin, middle, Program("StreamCopyEnd", f"{name}/End", ipus=self.all_ipus, context=context)

    def _host_tiles(self) -> NDArray[np.bool_]:
        tile = np.arange(self.machine.tiles_per_ipu)
        return tile >= self.machine.compute_tiles if self.machine.io_tiles else tile < max(tile.size // 8, 1)


def _cycles(vertex: VertexType, element_type: str, work: TileVector, flops: int) -> TileVector:
    if vertex.elements_per_cycle:
        return (work / vertex.elements_per_cycle).astype(np.int64)
    return flops // int(work.sum()) * work // _MATMUL_FLOPS_PER_CYCLE[element_type]


def total(vectors: Sequence[PerIpu], ipu: int, tiles: int) -> TileVector:
    """Add up what some vectors say of one IPU."""
    result = np.zeros(tiles, np.int64)
    for vector in vectors:
        if ipu in vector:
            result += vector[ipu]
    return result
