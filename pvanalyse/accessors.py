"""What a report can be asked: ``report.memory`` and ``report.liveness``.

Each method returns a DataFrame of its own; sizes are bytes. ``tiles`` is a text such as ``"0,5,100-200"`` or tile
numbers, ``ipu`` an IPU or several, ``worst`` how many of the fullest tiles; together they narrow the choice down.
``pattern`` is a regular expression that is searched for in names. Everything raises
:class:`~pvanalyse.errors.NotCaptured` when the report does not hold what it needs, and
:class:`~pvanalyse.errors.UsageError` for a tile, step or pattern that makes no sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from pvanalyse.analysis import liveness, memory, memory_details
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.tables import TableSource

Tiles = str | Sequence[int] | None
Ipus = int | Sequence[int] | None


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
        """Return what to free to lower the peak; see :func:`pvanalyse.analysis.liveness.explain_peak`."""
        return liveness.explain_peak(self._source, reduce_by)

    def fp16_candidates(self, worst: int = 5) -> pd.DataFrame:
        """Return what half precision would save; see :func:`pvanalyse.analysis.liveness.fp16_candidates`."""
        return liveness.fp16_candidates(self._source, worst)
