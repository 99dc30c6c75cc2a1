"""What the compiler itself puts on the tiles: code, vertex state, descriptors, stacks, headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from .assembler import total
from .graph import Graph, PerIpu, Program, TileVector, Variable
from .settings import Settings
from .vertices import VertexType

EXCHANGE_CODE = {
    "DoExchange": "internalExchangeCode",
    "GlobalExchange": "globalExchangeCode",
    "StreamCopyBegin": "hostExchangeCode",
    "StreamCopyMid": "hostExchangeCode",
    "StreamCopyEnd": "hostExchangeCode",
}
STACK_BYTES = 2_304


def vertex_counts(graph: Graph, ipu: int, tiles: int) -> dict[VertexType, TileVector]:
    """Return the instances of each vertex type by tile of an IPU, in the order of first use."""
    counts: dict[VertexType, TileVector] = {}
    for compute_set in graph.compute_sets:
        for vertex, by_ipu in compute_set.vertices:
            if ipu in by_ipu:
                counts[vertex] = counts.get(vertex, np.zeros(tiles, np.int64)) + by_ipu[ipu]
    return counts


def vertex_code(counts: dict[VertexType, TileVector]) -> dict[VertexType, TileVector]:
    """Return the code bytes of each vertex type by tile; alignment makes them differ a little from tile to tile."""
    return {
        vertex: np.where(count > 0, vertex.code_bytes + np.arange(count.size) % 3 * 8, 0)
        for vertex, count in counts.items()
    }


def code_variables(graph: Graph, settings: Settings) -> Iterator[Variable]:
    """Yield the always-live variables of each IPU of a replica that are named after their category."""
    for ipu in range(settings.machine.stages):
        for category, size in _sizes(graph, settings, ipu).items():
            if size.any():
                executable = category.endswith("Code")
                yield Variable(
                    category, ipu, size, category, executable=executable, alignment=8 if not executable else 4
                )


def _sizes(graph: Graph, settings: Settings, ipu: int) -> dict[str, TileVector]:
    tiles = settings.machine.tiles_per_ipu
    tile = np.arange(tiles)
    counts = vertex_counts(graph, ipu, tiles)
    nothing = np.zeros(tiles, np.int64)
    instances = sum(counts.values(), nothing)
    kinds = set(EXCHANGE_CODE.values())
    exchanges = {kind: total(_exchange_code(graph.programs, kind), ipu, tiles) for kind in sorted(kinds, reverse=True)}
    instrumented = settings.execution != "nothing"
    sets = sum(1 for one in graph.compute_sets if ipu in one.estimated)
    return {
        "vertexCode": sum(vertex_code(counts).values(), nothing),
        "controlCode": total([program.control_code for program in graph.programs], ipu, tiles),
        **exchanges,
        "stack": np.full(tiles, STACK_BYTES, np.int64),
        "vertexInstanceState": sum((count * vertex.instance_bytes for vertex, count in counts.items()), nothing),
        "vertexFieldData": instances // 4 * 4,
        "vectorListDescriptor": np.where(tile % 4 == 0, instances // 8 * 4, 0),
        "copyDescriptor": np.where(tile % 8 == 0, instances // 24 * 4, 0),
        "controlId": np.where(tile == 0, 12, 0),
        "hostExchangePacketHeader": np.where(exchanges["hostExchangeCode"] > 0, 64, 0),
        "globalExchangePacketHeader": np.where(exchanges["globalExchangeCode"] > 0, 24, 0),
        "instrumentationResults": np.where(instances > 0, 8 * sets, 0) if instrumented else nothing,
    }


def _exchange_code(programs: Iterable[Program], category: str) -> list[PerIpu]:
    return [program.exchange_code for program in programs if EXCHANGE_CODE.get(program.type) == category]
