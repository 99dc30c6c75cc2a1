"""Where the bytes are: totals over tiles, categories and regions, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pvanalyse.analysis.columns import Integers, Sums, codes, exact_sum, integers, only_row
from pvanalyse.tables import TableSource

REGIONS = ("non_interleaved", "interleaved", "overflowed")


@dataclass(frozen=True)
class TileMemory:
    """The columns of ``tile_memory`` with what the target says of a tile.

    Attributes
    ----------
    columns
        Each column as an int64 array of shape (tiles,), in bytes; ``tile`` among them.
    bytes_per_tile, tiles_per_ipu
        Of the target; None when it was not captured.
    """

    columns: Mapping[str, Integers]
    bytes_per_tile: int | None = None
    tiles_per_ipu: int | None = None

    def __getitem__(self, column: str) -> Integers:
        return self.columns[column]

    def total(self, column: str) -> int:
        """Return the sum of a column over the tiles, in bytes."""
        return exact_sum(self.columns[column])

    @cached_property
    def out_of_memory(self) -> Integers:
        """Positions of the tiles that do not fit: something overflowed, or more is used than a tile has."""
        over = self["overflowed_including_gaps"] > 0
        if self.bytes_per_tile is not None:
            over |= self["total_including_gaps"] > self.bytes_per_tile
        return np.flatnonzero(over)

    @cached_property
    def bytes_by_ipu(self) -> dict[int, int]:
        """Bytes including gaps of each IPU; empty when the target was not captured."""
        if not self.tiles_per_ipu:
            return {}
        ipus, position = np.unique(self["tile"] // self.tiles_per_ipu, return_inverse=True)
        sums = Sums(len(ipus))
        sums.add(position, self["total_including_gaps"])
        return {int(ipu): sums[at] for at, ipu in enumerate(ipus)}

    def fullest(self, count: int) -> Integers:
        """Return the positions of the fullest tiles including gaps, fullest first, then by tile number."""
        return np.lexsort((self["tile"], -self["total_including_gaps"]))[:count]


@dataclass(frozen=True, slots=True)
class CategoryBytes:
    """Bytes by storage category, over all regions.

    Attributes
    ----------
    non_overlapped, overlapped
        Bytes by category, over all tiles.
    tiles
        Bytes (``non_overlapped``) by category of each tile that was asked for.
    """

    non_overlapped: Mapping[str, int] = field(default_factory=dict)
    overlapped: Mapping[str, int] = field(default_factory=dict)
    tiles: Mapping[int, Mapping[str, int]] = field(default_factory=dict)


def tile_memory(source: TableSource) -> TileMemory | None:
    """Return the memory of each tile, None when it was not captured."""
    if not source.captured("tile_memory"):
        return None
    table = source.arrow("tile_memory")
    target: dict[str, Any] = only_row(source, "target")
    columns = {name: integers(table.column(name)) for name in table.column_names}
    return TileMemory(columns, target.get("bytes_per_tile"), target.get("tiles_per_ipu"))


def category_bytes(source: TableSource, tiles: Integers | None = None) -> CategoryBytes:
    """Return bytes by category, and of the given tiles each; empty when they were not captured."""
    if not source.captured("tile_memory_category"):
        return CategoryBytes()
    chosen = np.array([] if tiles is None else tiles, np.int64)
    known: dict[str, int] = {}
    sums = {"non_overlapped": Sums(), "overlapped": Sums()}
    of_tile: dict[int, dict[str, int]] = {int(tile): {} for tile in chosen}
    for batch in source.batches("tile_memory_category", ["tile", "category", "non_overlapped", "overlapped"]):
        category = codes(batch.column("category"), known)
        for name, total in sums.items():
            total.add(category, integers(batch.column(name)))
        tile, size = integers(batch.column("tile")), integers(batch.column("non_overlapped"))
        names = list(known)
        for row in np.flatnonzero(np.isin(tile, chosen)):
            mine = of_tile[int(tile[row])]
            name = names[category[row]]
            mine[name] = mine.get(name, 0) + int(size[row])
    by_category = {total: {name: sums[total][code] for name, code in known.items()} for total in sums}
    return CategoryBytes(by_category["non_overlapped"], by_category["overlapped"], of_tile)
