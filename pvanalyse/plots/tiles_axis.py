"""The axis of tiles: which tile is where, what is left when there are more tiles than pixels, and the IPUs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes

from pvanalyse.analysis.columns import Integers, Reals
from pvanalyse.plots.palette import INK
from pvanalyse.plots.scales import count_axis

_MOST_IPU_LABELS = 16
_MOST_TILE_LABELS, _MOST_LEVEL_LABELS = 40, 16


@dataclass(frozen=True)
class TileColumns:
    """Columns of a picture, each one tile or the fullest of a few neighbours.

    Attributes
    ----------
    tiles
        Number of each tile in the order shown, shape (tiles,).
    shown
        Position in ``tiles`` of the tile that each column shows, shape (columns,).
    edges
        Where columns begin and end on the axis, shape (columns + 1,).
    most
        The largest number of tiles that one column stands for.
    """

    tiles: Integers
    shown: Integers
    edges: Reals
    most: int

    @property
    def are_numbers(self) -> bool:
        """Whether the axis counts in tile numbers; otherwise in positions, because tiles are left out."""
        return _consecutive(self.tiles)

    def remark(self) -> str:
        """Say what a column is when it is not one tile."""
        return f"each column shows the fullest of up to {self.most} neighbouring tiles" if self.most > 1 else ""


def tile_columns(tiles: Integers, fullness: Integers, tiles_per_ipu: int, columns: int) -> TileColumns:
    """Put tiles into at most so many columns (and one per IPU), none of them across two IPUs.

    Parameters
    ----------
    tiles, fullness
        Number of each tile in the order to show, and the bytes by which the fullest of a column is chosen.
    tiles_per_ipu
        Tiles of an IPU, 0 when it is not known.
    columns
        How many columns can be told apart.
    """
    most = -(-len(tiles) // columns)
    ipu = tiles // tiles_per_ipu if tiles_per_ipu and _consecutive(tiles) else np.zeros(len(tiles), np.int64)
    firsts = np.flatnonzero(np.diff(ipu, prepend=-1))
    starts = [at for low, high in pairwise([*firsts, len(tiles)]) for at in range(low, high, most)]
    shown = [low + int(np.argmax(fullness[low:high])) for low, high in pairwise([*starts, len(tiles)])]
    origin = int(tiles[0]) if _consecutive(tiles) else 0
    edges = np.array([*starts, len(tiles)], np.float64) + origin - 0.5
    return TileColumns(tiles, np.array(shown, np.int64), edges, most)


def label_tiles(ax: Axes, columns: TileColumns, tiles_per_ipu: int, order: str) -> None:
    """Label the axis with tile numbers, and mark where one IPU ends and the next begins."""
    ax.set_xlim(columns.edges[0], columns.edges[-1])
    ax.set_xlabel("tile" if columns.are_numbers else f"tile, {order}")
    tiles = columns.tiles.tolist()
    if columns.are_numbers:
        _mark_ipus(ax, columns, tiles_per_ipu)
    if len(tiles) <= _MOST_TILE_LABELS:
        places = tiles if columns.are_numbers else range(len(tiles))
        ax.set_xticks(places, [f"{tile:,}" for tile in tiles], rotation=90 if len(tiles) > _MOST_LEVEL_LABELS else 0)
        return
    count_axis(ax.xaxis)
    if not columns.are_numbers:
        ax.xaxis.set_major_formatter(lambda at, _: f"{tiles[int(at)]:,}" if 0 <= at < len(tiles) else "")


def _mark_ipus(ax: Axes, columns: TileColumns, tiles_per_ipu: int) -> None:
    first, last = int(columns.tiles[0]), int(columns.tiles[-1])
    if not tiles_per_ipu or first // tiles_per_ipu == last // tiles_per_ipu:
        return
    ipus = range(first // tiles_per_ipu, last // tiles_per_ipu + 1)
    every = -(-len(ipus) // _MOST_IPU_LABELS)
    for ipu in ipus:
        begin, end = max(first, ipu * tiles_per_ipu), min(last + 1, (ipu + 1) * tiles_per_ipu)
        if ipu > ipus[0]:
            ax.axvline(begin - 0.5, color=INK, linewidth=0.8)
        if ipu % every == 0:
            ax.annotate(f"IPU {ipu}", ((begin + end) / 2 - 0.5, 1), (0, -4), xycoords=("data", "axes fraction"),
                        textcoords="offset points", ha="center", va="top", fontsize="small", color=INK)  # fmt: skip


def _consecutive(tiles: Integers) -> bool:
    return bool((np.diff(tiles) == 1).all())
