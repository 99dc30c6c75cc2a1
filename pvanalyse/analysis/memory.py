"""Where the bytes are: totals over tiles, categories and regions, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Sums, codes, exact_sum, integers, only_row
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

REGIONS = ("non_interleaved", "interleaved", "overflowed")
_REGION_COLUMNS = {
    "non_interleaved_bytes": "nonInterleaved",
    "interleaved_bytes": "interleaved",
    "overflowed_bytes": "overflowed",
}
_SIZE_COLUMNS = {"bytes": "non_overlapped", "overlapped_bytes": "overlapped"}


@dataclass(frozen=True)
class TileMemory:
    """The columns of ``tile_memory`` with what the target says of a tile.

    Attributes
    ----------
    columns
        Each column as an int64 array of shape (tiles,), in bytes; ``tile`` among them. Columns that may be null are
        left out where they are.
    bytes_per_tile, tiles_per_ipu
        Of the target; None when it was not captured.
    """

    columns: Mapping[str, Integers]
    bytes_per_tile: int | None = None
    tiles_per_ipu: int | None = None

    def __getitem__(self, column: str) -> Integers:
        if column not in self.columns:
            how = f"{table('tile_memory').capture}; a profile that 'pvanalyse capture' wrote does not have it"
            raise NotCaptured(f"tile_memory.{column}", how)
        return self.columns[column]

    def total(self, column: str) -> int:
        """Return the sum of a column over the tiles, in bytes."""
        return exact_sum(self[column])

    @cached_property
    def out_of_memory(self) -> Integers:
        """Positions of the tiles that do not fit: something overflowed, or more is used than a tile has."""
        over = self["overflowed_including_gaps"] > 0
        if self.bytes_per_tile is not None:
            over |= self["total_including_gaps"] > self.bytes_per_tile
        return np.flatnonzero(over)

    @cached_property
    def over(self) -> Integers:
        """Bytes of each tile that do not fit: the larger of what overflowed and what is beyond the tile's memory."""
        over = self["overflowed_including_gaps"]
        if self.bytes_per_tile is not None:
            over = np.maximum(over, self["total_including_gaps"] - self.bytes_per_tile)
        return np.maximum(over, 0)

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
    rows = source.arrow("tile_memory")
    target: dict[str, Any] = only_row(source, "target")
    # What was not captured of any tile, as where a profile was written down through libpva, is no column of zeros.
    known = [
        column.name for column in table("tile_memory").columns
        if not column.nullable or rows.column(column.name).null_count < rows.num_rows
    ]  # fmt: skip
    columns = {name: integers(rows.column(name)) for name in known}
    return TileMemory(columns, target.get("bytes_per_tile"), target.get("tiles_per_ipu"))


def regions_known(memory: TileMemory) -> list[str]:
    """Return the regions whose bytes were captured."""
    return [region for region in REGIONS if f"{region}_including_gaps" in memory.columns]


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


# ------------------------------------------------------------------------------------------------------- frames


def tiles_frame(source: TableSource, tiles: Integers | None = None) -> pd.DataFrame:
    """Return the memory of each tile.

    Returns
    -------
    pandas.DataFrame
        ``tile``, ``ipu``, the columns of ``tile_memory``, ``free_bytes`` (negative where more is used than there is)
        and ``over_bytes`` (what does not fit); in the order asked for, or by tile. Without a target ``ipu`` is null
        and there is no ``free_bytes``.
    """
    memory = required_tile_memory(source)
    rows = _rows(memory, tiles)
    frame = pd.DataFrame({name: column[rows] for name, column in memory.columns.items()})
    frame.insert(1, "ipu", _ipu(memory, rows))
    if memory.bytes_per_tile is not None:
        frame["free_bytes"] = memory.bytes_per_tile - frame["total_including_gaps"]
    frame["over_bytes"] = memory.over[rows]
    return frame


def ipus_frame(source: TableSource) -> pd.DataFrame:
    """Return the memory of each IPU: sums over its tiles, its fullest tile, and how much of its memory is used.

    Raises
    ------
    NotCaptured
        The report has no memory of tiles, or no target.
    """
    memory = required_tile_memory(source)
    if not memory.tiles_per_ipu or memory.bytes_per_tile is None:
        raise NotCaptured("target", table("target").capture)
    frame = tiles_frame(source)
    by_ipu = frame.groupby("ipu")
    sums = ["total_including_gaps", "total_excluding_gaps", "always_live_bytes", "not_always_live_bytes"]
    result = by_ipu[sums].sum()
    result.insert(0, "tiles", by_ipu.size())
    fullest = frame.loc[by_ipu["total_including_gaps"].idxmax()].set_index("ipu")
    result["fullest_tile"] = fullest["tile"]
    result["fullest_tile_bytes"] = fullest["total_including_gaps"]
    result["tiles_out_of_memory"] = (frame["over_bytes"] > 0).groupby(frame["ipu"]).sum().astype(np.int64)
    result["capacity_bytes"] = memory.tiles_per_ipu * memory.bytes_per_tile
    result["used_fraction"] = result["total_including_gaps"] / result["capacity_bytes"]
    return result.reset_index()


def categories_frame(source: TableSource, tiles: Integers | None = None) -> pd.DataFrame:
    """Return bytes by storage category over the tiles, largest first.

    Returns
    -------
    pandas.DataFrame
        ``category``, ``bytes`` (not overlapped), ``overlapped_bytes``, ``fraction`` of all, the bytes of each region
        (not overlapped), ``num_tiles`` that hold any, and the tile that holds most.
    """
    rows = _category_rows(source, tiles)
    total = rows.groupby("category")[["bytes", "overlapped_bytes"]].sum()
    total["fraction"] = total["bytes"] / max(1, total["bytes"].sum())
    regions = rows.pivot_table(index="category", columns="region", values="bytes", aggfunc="sum", fill_value=0)
    for column, region in _REGION_COLUMNS.items():
        total[column] = regions.get(region, 0)
    of_tile = rows.groupby(["category", "tile"], as_index=False)[["bytes", "overlapped_bytes"]].sum()
    held = of_tile[(of_tile["bytes"] > 0) | (of_tile["overlapped_bytes"] > 0)].groupby("category")
    total["num_tiles"] = held.size().reindex(total.index, fill_value=0)
    largest = of_tile.sort_values(["bytes", "tile"], ascending=[False, True]).groupby("category").first()
    total["largest_tile"], total["largest_tile_bytes"] = largest["tile"], largest["bytes"]
    return total.reset_index().sort_values(["bytes", "category"], ascending=[False, True], ignore_index=True)


def tile_categories(source: TableSource, tiles: Integers | None = None) -> pd.DataFrame:
    """Return not-overlapped bytes by tile (index) and category (columns, the largest in all first)."""
    memory = required_tile_memory(source)
    rows = _category_rows(source, tiles)
    frame = rows.pivot_table(index="tile", columns="category", values="bytes", aggfunc="sum", fill_value=0)
    frame = frame.reindex(memory["tile"][_rows(memory, tiles)], fill_value=0).astype(np.int64)
    order = frame.sum().sort_values(ascending=False, kind="stable").index
    return frame[order].rename_axis(columns=None)


def tile_regions(source: TableSource, tiles: Integers | None = None) -> pd.DataFrame:
    """Return bytes including gaps by tile (index) and region (columns); raises NotCaptured."""
    memory = required_tile_memory(source)
    rows = _rows(memory, tiles)
    index = pd.Index(memory["tile"][rows], name="tile")
    return pd.DataFrame({region: memory[f"{region}_including_gaps"][rows] for region in REGIONS}, index=index)


def tile_liveness(source: TableSource, tiles: Integers | None = None) -> pd.DataFrame:
    """Return bytes by tile (index), always live and not always live (the tile's own peak)."""
    frame = tiles_frame(source, tiles).set_index("tile")
    return pd.DataFrame({kind: frame[f"{kind}_bytes"] for kind in ("always_live", "not_always_live")})


def distribution(
    source: TableSource, tiles: Integers | None = None, column: str = "total_including_gaps", bins: int = 20
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how a column of ``tile_memory`` is distributed over the tiles.

    Returns
    -------
    quantiles
        ``quantile`` (0 to 1) and ``bytes``, by linear interpolation.
    histogram
        ``from_bytes``, ``to_bytes`` (the last one included) and ``num_tiles`` of equally wide bins.

    Raises
    ------
    UsageError
        There is no such column of sizes, no bin, or no tile.
    """
    memory = required_tile_memory(source)
    sizes = [name for name in memory.columns if name != "tile"]
    if column not in sizes:
        raise UsageError(f"'{column}' is no size of a tile; there are: {', '.join(sizes)}")
    values = memory[column][_rows(memory, tiles)]
    if bins < 1 or not len(values):
        raise UsageError(f"a distribution needs a tile and a bin, not {len(values)} tiles in {bins} bins")
    shares = np.array([0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1])
    quantiles = pd.DataFrame({"quantile": shares, "bytes": np.quantile(values, shares)})
    low = values.min()  # counted from there, bins are exact however large the sizes are
    counts, edges = np.histogram(values - low, bins)
    edges += low
    return quantiles, pd.DataFrame({"from_bytes": edges[:-1], "to_bytes": edges[1:], "num_tiles": counts})


def out_of_memory(source: TableSource) -> pd.DataFrame:
    """Return the tiles that do not fit, with what is over and the category that fills each most; worst first."""
    memory = required_tile_memory(source)
    tiles = memory["tile"][memory.out_of_memory]
    frame = tiles_frame(source, tiles)[
        ["tile", "ipu", "total_including_gaps", "over_bytes", "overflowed_including_gaps"]
    ]
    frame = frame.rename(columns={"overflowed_including_gaps": "overflowed_bytes"})
    largest = _largest_categories(source, tiles)
    frame["largest_category"] = pd.Series([name for name, _ in largest], dtype=str)
    frame["largest_category_bytes"] = np.array([size for _, size in largest], np.int64)
    return frame.sort_values(["over_bytes", "tile"], ascending=[False, True], ignore_index=True)


def _largest_categories(source: TableSource, tiles: Integers) -> list[tuple[str, int]]:
    """Return name and bytes of the category that fills each tile most; no name where none holds anything."""
    by_tile = category_bytes(source, tiles).tiles
    largest = [max(by_tile.get(int(tile), {}).items(), key=lambda one: one[1], default=("", 0)) for tile in tiles]
    return [(name, size) if size else ("", 0) for name, size in largest]


def required_tile_memory(source: TableSource) -> TileMemory:
    """Return the memory of each tile.

    Raises
    ------
    NotCaptured
        The report does not hold it.
    """
    memory = tile_memory(source)
    if memory is None:
        raise NotCaptured("tile_memory", table("tile_memory").capture)
    return memory


def _rows(memory: TileMemory, tiles: Integers | None) -> Integers:
    if tiles is None:
        return np.arange(len(memory["tile"]))
    order = np.argsort(memory["tile"], kind="stable")
    at = np.searchsorted(memory["tile"], tiles, sorter=order)
    known = at < len(order)
    known[known] = memory["tile"][order[at[known]]] == tiles[known]
    if not known.all():
        raise UsageError(f"the report has no memory of tile {int(tiles[~known][0]):,}")
    return order[at]


def _ipu(memory: TileMemory, rows: Integers) -> Any:
    if memory.tiles_per_ipu:
        return memory["tile"][rows] // memory.tiles_per_ipu
    return pd.array([pd.NA] * len(rows), "Int64")


def _category_rows(source: TableSource, tiles: Integers | None) -> pd.DataFrame:
    parts = []
    for batch in source.batches("tile_memory_category"):
        tile = integers(batch.column("tile"))
        chosen = np.ones(len(tile), bool) if tiles is None else np.isin(tile, tiles)
        texts = {name: _known(batch.column(name))[chosen] for name in ("category", "region")}
        sizes = {ours: integers(batch.column(name))[chosen] for ours, name in _SIZE_COLUMNS.items()}
        parts.append(pd.DataFrame({"tile": tile[chosen], **texts, **sizes}))
    return pd.concat(parts, ignore_index=True)


def _known(column: pa.DictionaryArray) -> pd.Series[str]:
    """Return a category column as text; what could not be read is 'Unknown', as in :func:`category_bytes`."""
    return column.cast(pa.string()).fill_null("Unknown").to_pandas().astype(str)  # type: ignore[no-any-return]
