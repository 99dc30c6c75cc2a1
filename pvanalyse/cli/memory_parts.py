"""What ``pvanalyse memory`` can show: each part analysed and made ready to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pvanalyse.analysis import memory, memory_details
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.render import memory as view
from pvanalyse.render.parts import Part, Rows, largest

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.analysis.columns import Integers
    from pvanalyse.tables import TableSource

_FULLEST = 5


@dataclass(frozen=True)
class MemoryQuestion:
    """What was asked.

    Attributes
    ----------
    source
        A report.
    tiles
        The tiles it is about, None for all.
    match
        A regular expression that names must match, None for all.
    top
        How many rows of each list, None for what is usual.
    tile
        The tile whose map is meant, None for the fullest.
    """

    source: TableSource
    tiles: Integers | None
    match: str | None
    top: int | None
    tile: int | None

    @cached_property
    def tile_memory(self) -> pd.DataFrame:
        """Memory of each of the tiles."""
        return memory.tiles_frame(self.source, self.tiles)

    def part(self, name: str) -> Callable[[], Part]:
        """Return what makes the part of that name."""
        return partial(_PARTS[name], self)


def _totals(asked: MemoryQuestion) -> Part:
    return view.totals(asked.tile_memory)


def _ipus(asked: MemoryQuestion) -> Part:
    frame = memory.ipus_frame(asked.source)
    return view.ipus(frame[frame["ipu"].isin(asked.tile_memory["ipu"])], Rows(asked.top, None))


def _tiles(asked: MemoryQuestion) -> Part:
    held = asked.source.captured("tile_memory_category")
    categories = memory.tile_categories(asked.source, asked.tiles) if held else None
    return view.tiles(asked.tile_memory, categories, Rows(asked.top, _FULLEST))


def _categories(asked: MemoryQuestion) -> Part:
    return view.categories(memory.categories_frame(asked.source, asked.tiles), Rows(asked.top, None))


def _distribution(asked: MemoryQuestion) -> Part:
    return view.distribution(*memory.distribution(asked.source, asked.tiles))


def _out_of_memory(asked: MemoryQuestion) -> Part:
    frame = memory.out_of_memory(asked.source)
    chosen = frame if asked.tiles is None else frame[frame["tile"].isin(asked.tiles)]
    return view.out_of_memory(chosen, Rows(asked.top))


def _vertices(asked: MemoryQuestion) -> Part:
    frame = memory_details.vertices_frame(asked.source, asked.tiles, asked.match)
    return view.vertices(frame, asked.match, Rows(asked.top))


def _compute_sets(asked: MemoryQuestion) -> Part:
    frame = memory_details.compute_sets_frame(asked.source, asked.tiles, asked.match)
    return view.compute_sets(frame, asked.match, Rows(asked.top))


def _exchanges(asked: MemoryQuestion) -> Part:
    frame = memory_details.exchanges_frame(asked.source, asked.tiles, asked.match)
    return view.exchanges(frame, asked.match, Rows(asked.top))


def _variables(asked: MemoryQuestion) -> Part:
    frame = memory_details.variables_frame(asked.source, asked.tiles, asked.match)
    return view.variables(frame, asked.match, Rows(asked.top))


def _map(asked: MemoryQuestion) -> Part:
    if asked.tile is None:
        tile = largest(asked.tile_memory, "total_including_gaps")["tile"]
    else:
        select_tiles(asked.source, [asked.tile])  # there must be such a tile
        tile = asked.tile
    return view.memory_map(tile, memory_details.memory_map(asked.source, tile), Rows(asked.top, None))


_PARTS: Mapping[str, Callable[[MemoryQuestion], Part]] = {
    "totals": _totals,
    "ipus": _ipus,
    "tiles": _tiles,
    "categories": _categories,
    "distribution": _distribution,
    "out-of-memory": _out_of_memory,
    "vertices": _vertices,
    "compute-sets": _compute_sets,
    "exchanges": _exchanges,
    "variables": _variables,
    "map": _map,
}
