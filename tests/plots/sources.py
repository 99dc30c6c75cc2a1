"""Reports made of rows, without files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pvanalyse.errors import NotCaptured
from pvanalyse.tables import Where, table

BYTES_PER_TILE = 638_976


class Rows:
    """A source of tables whose rows are given; columns that are left out are null."""

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._tables = {
            name: pa.Table.from_pylist(list(rows), table(name).arrow_schema()) for name, rows in tables.items()
        }

    def captured(self, name: str) -> bool:
        return table(name).name in self._tables

    def count(self, name: str) -> int:
        return self._tables[name].num_rows if self.captured(name) else 0

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        if not self.captured(name):
            raise NotCaptured(name, table(name).capture)
        rows = self._tables[name]
        for column, values in (where or {}).items():
            rows = rows.filter(pa.array([value in values for value in rows.column(column).to_pylist()], pa.bool_()))
        return rows if columns is None else rows.select(list(columns))

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        yield from self.arrow(name, columns, where).to_batches(max_chunksize=10_000)


def target(num_tiles: int, tiles_per_ipu: int) -> dict[str, Any]:
    return {"type": "Ipu", "architecture": "Ipu2", "num_ipus": num_tiles // tiles_per_ipu, "num_replicas": 1,
            "tiles_per_ipu": tiles_per_ipu, "num_tiles": num_tiles, "bytes_per_tile": BYTES_PER_TILE,
            "clock_frequency": 1.33e9, "interleaved_begin": 212_992}  # fmt: skip


def tile(number: int, size: int, over: int = 0) -> dict[str, Any]:
    """A row of tile_memory: all of it always live and not interleaved, but for what overflows."""
    sizes = {"total": size, "non_interleaved": size - over, "interleaved": 0, "overflowed": over}
    gaps = {f"{name}_{kind}_gaps": value for name, value in sizes.items() for kind in ("including", "excluding")}
    return {"tile": number, **gaps, "always_live_bytes": size, "not_always_live_bytes": 0}


def category(number: int, name: str, size: int, overlapped: int = 0) -> dict[str, Any]:
    return {"tile": number, "category": name, "region": "nonInterleaved", "non_overlapped": size,
            "overlapped": overlapped}  # fmt: skip


def tiles_of(sizes: Sequence[int], tiles_per_ipu: int, names: Sequence[str] = ("variable",)) -> Rows:
    """A report of nothing but the memory of tiles, in which each category has an equal part of every tile."""
    rows = [(number, name, size // len(names)) for number, size in enumerate(sizes) for name in names]
    return Rows({
        "target": [target(len(sizes), tiles_per_ipu)],
        "tile_memory": [tile(number, size, max(0, size - BYTES_PER_TILE)) for number, size in enumerate(sizes)],
        "tile_memory_category": [category(*row) for row in rows],
    })  # fmt: skip


def small(name: str = "weights", program: str = "matmul", category_name: str = "variable") -> Rows:
    """A report of one tile and one step, with everything that plots read and one name for each thing."""
    live = {"variable_id": 1, "name": name, "bytes": 4096}
    allocation = {"lowered_variable_id": 1, "variable_id": 1, "name": name, "tile": 0, "offset": 64, "bytes": 4096,
                  "alignment": 8, "category": category_name, "region": "nonInterleaved", "always_live": False,
                  "is_constant": False, "is_executable": False, "equivalence_class_id": 1}  # fmt: skip
    when = {f"{tiles}_{edge}": cycle for tiles in ("active", "all") for edge, cycle in
            (("from_min", 0), ("from_max", 10), ("to_min", 90), ("to_max", 100))}  # fmt: skip
    return Rows({
        "target": [target(1, 1)],
        "runs": [{"run_id": 0, "name": program, "start_us": 0, "end_us": 9}],
        "execution_steps": [{"step_id": 0, "run_id": 0, "program_id": 1, "cycles_by_tile": [60]}],
        "execution_step_ipus": [{"step_id": 0, "ipu": 0, "cycles": 90, "tile_balance": 0.5, **when}],
        "tile_memory": [tile(0, 4160)],
        "tile_memory_category": [category(0, category_name, 4096)],
        "programs": [{"program_id": 1, "type": "OnTileExecute", "name": program}],
        "variables": [{"variable_id": 1, "name": name, "element_type": "float", "shape": "[1024]"}],
        "lowered_variables": [allocation],
        "equivalence_class_intervals": [{"equivalence_class_id": 1, "step_begin": 0, "step_end": 1}],
        "liveness_steps": [{"step": 0, "program_id": 1, "not_always_live_bytes": 4096}],
        "always_live_variables": [{"name": "stack", "bytes": 64}],
        "variable_liveness": [{**live, "step_begin": 0, "step_end": 1}],
    })  # fmt: skip
