"""Memory by tile: ``IPU``, ``Tile`` and what hangs on ``Tile.memory``."""

# ruff: noqa: N802  (libpva's names)

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NoReturn

import numpy as np

from pvanalyse.analysis.columns import Integers, Keys
from pvanalyse.libpva.enums import Enumeration
from pvanalyse.libpva.store import NONE, Groups, Store
from pvanalyse.libpva.views import GapBytes, Items, View

KNOWN_CATEGORIES = (
    *("constant", "controlCode", "controlId", "controlTable", "copyDescriptor", "globalExchangeCode"),
    *("globalExchangePacketHeader", "hostExchangeCode", "hostExchangePacketHeader", "instrumentationResults"),
    *("internalExchangeCode", "stack", "variable", "vectorListDescriptor", "vertexCode", "vertexFieldData"),
    "vertexInstanceState",
)
"""Storage categories that libpva is known to have; a report may hold others, which are answered under their name."""

_REGIONS = ("nonInterleaved", "interleaved", "overflowed")


class TileColumns:
    """``tile_memory`` by tile number, as lists: Python reads one number of a list faster than of an array."""

    def __init__(self, store: Store) -> None:
        self._columns = store.columns("tile_memory")
        self._tile = self._columns.ids("tile")
        self.number = store.num_tiles if len(self._tile) else 0
        self._held: dict[str, list[int]] = {}

    def __getitem__(self, column: str) -> list[int]:
        held = self._held.get(column)
        if held is None:
            values = np.zeros(self.number, np.int64)
            known = (self._tile >= 0) & (self._tile < self.number)
            values[self._tile[known]] = self._columns.integers(column)[known]
            held = self._held[column] = values.tolist()
        return held


class RegionColumns:
    """Bytes of one category and region by tile number."""

    def __init__(self, number: int) -> None:
        self.non_overlapped = np.zeros(number, np.int64)
        self.overlapped = np.zeros(number, np.int64)


class CategoryColumns:
    """Bytes of one category by tile number: by region, and in all."""

    def __init__(self, number: int) -> None:
        self.regions = {region: RegionColumns(number) for region in _REGIONS}

    @cached_property
    def total(self) -> list[int]:
        """Bytes that do not overlap, over the regions."""
        totals: list[int] = np.sum([region.non_overlapped for region in self.regions.values()], axis=0).tolist()
        return totals


class Categories:
    """``tile_memory_category`` by category; a category is spread over the tiles when it is first asked for."""

    def __init__(self, store: Store) -> None:
        self._number = store.made(TileColumns).number
        self._columns = store.columns("tile_memory_category")
        self._columns.load("tile", "non_overlapped", "overlapped")
        category, self._names = self._columns.coded("category")
        self._region, self._region_names = self._columns.coded("region")
        self._rows = Groups(category)
        self._made: dict[str, CategoryColumns] = {}

    @property
    def names(self) -> list[str]:
        """The categories that are answered."""
        return sorted({*KNOWN_CATEGORIES, *self._names})

    def __getitem__(self, name: str) -> CategoryColumns | None:
        """Return a category's columns, zeros for one that the report has none of, None for one that is not known."""
        if name not in self._made and (name in self._names or name in KNOWN_CATEGORIES):
            self._made[name] = self._spread(name)
        return self._made.get(name)

    def _spread(self, name: str) -> CategoryColumns:
        made = CategoryColumns(self._number)
        rows = self._rows.rows(self._names.get(name, NONE))
        tile = self._columns.ids("tile")[rows]
        there = (tile >= 0) & (tile < self._number)
        for region, into in made.regions.items():
            mine = there & (self._region[rows] == self._region_names.get(region, NONE))
            for sums, column in ((into.non_overlapped, "non_overlapped"), (into.overlapped, "overlapped")):
                np.add.at(sums, tile[mine], self._columns.integers(column)[rows][mine])
        return made


class IPU(View):
    """An IPU."""

    __slots__ = ()

    class Architecture(Enumeration):
        """Generations of IPUs; the values are ours, libpva's are not known."""

        Unknown = 0
        Ipu1 = 1
        Ipu2 = 2
        Ipu21 = 3

    @property
    def tiles(self) -> Sequence[Tile]:
        """Its tiles."""
        number = max(0, int(self._store.of_target("tiles_per_ipu")))
        first = self._row * number
        there = min(number, max(0, self._store.made(TileColumns).number - first))
        return Items(self._store, there, lambda at: Tile(self._store, first + at))


class Tile(View):
    """A tile."""

    __slots__ = ()

    @property
    def memory(self) -> TileMemory:
        """What its memory holds."""
        return TileMemory(self._store, self._row)


class TileMemory(View):
    """What the memory of a tile holds, in bytes."""

    __slots__ = ()
    _not_known = dict.fromkeys(("interleaved", "nonInterleaved"), "table 'tile_memory'")

    @property
    def total(self) -> GapBytes:
        """All of it."""
        columns, tile = self._store.made(TileColumns), self._row
        return GapBytes(columns["total_including_gaps"][tile], columns["total_excluding_gaps"][tile])

    @property
    def overflowed(self) -> GapBytes:
        """What is beyond the tile's memory; not zero means out of memory."""
        columns, tile = self._store.made(TileColumns), self._row
        return GapBytes(columns["overflowed_including_gaps"][tile], columns["overflowed_excluding_gaps"][tile])

    @property
    def alwaysLiveBytes(self) -> int:
        """What is live all the time."""
        return self._store.made(TileColumns)["always_live_bytes"][self._row]

    @property
    def notAlwaysLiveBytes(self) -> int:
        """The most that is live at a time of what is not always live."""
        return self._store.made(TileColumns)["not_always_live_bytes"][self._row]

    @property
    def category(self) -> MemoryByCategory:
        """Bytes by storage category."""
        return MemoryByCategory(self._store, self._row)

    @property
    def vertices(self) -> Sequence[VertexMemory]:
        """The code of each type of vertex that is on the tile."""
        rows = self._store.made(TileVertices).groups.rows(self._row)
        return Items(self._store, len(rows), lambda at: VertexMemory(self._store, int(rows[at])))


class MemoryByCategory(View):
    """Bytes of a tile by storage category, an attribute for each category such as ``vertexCode``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> CategoryMemory:  # type: ignore[override]
        columns = self._store.made(Categories)[name]
        if columns is None:
            _no_category(name)
        return CategoryMemory(columns, self._row)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._store.made(Categories).names]

    def __repr__(self) -> str:
        totals = (f"{name}={getattr(self, name).total}" for name in self._store.made(Categories).names)
        return f"MemoryByCategory({', '.join(totals)})"


def _no_category(name: str) -> NoReturn:
    raise AttributeError(f"no storage category '{name}' is known, and the report holds none of that name")


class CategoryMemory:
    """Bytes of a tile in one storage category."""

    __slots__ = ("_columns", "_tile")

    def __init__(self, columns: CategoryColumns, tile: int) -> None:
        self._columns = columns
        self._tile = tile

    @property
    def total(self) -> int:
        """Bytes that do not overlap others, over the regions of the memory."""
        return self._columns.total[self._tile]

    @property
    def nonInterleaved(self) -> RegionMemory:
        """Those in memory that is not interleaved."""
        return RegionMemory(self._columns.regions["nonInterleaved"], self._tile)

    @property
    def interleaved(self) -> RegionMemory:
        """Those in interleaved memory."""
        return RegionMemory(self._columns.regions["interleaved"], self._tile)

    @property
    def overflowed(self) -> RegionMemory:
        """Those beyond the tile's memory."""
        return RegionMemory(self._columns.regions["overflowed"], self._tile)

    def __repr__(self) -> str:
        return f"CategoryMemory(total={self.total})"


class RegionMemory:
    """Bytes of a tile in one storage category and region."""

    __slots__ = ("_columns", "_tile")

    def __init__(self, columns: RegionColumns, tile: int) -> None:
        self._columns = columns
        self._tile = tile

    @property
    def nonOverlapped(self) -> int:
        """Those at addresses that nothing else uses."""
        return int(self._columns.non_overlapped[self._tile])

    @property
    def overlapped(self) -> int:
        """Those at addresses that they share with something that is live at another time."""
        return int(self._columns.overlapped[self._tile])

    def __repr__(self) -> str:
        return f"RegionMemory(nonOverlapped={self.nonOverlapped}, overlapped={self.overlapped})"


class TileVertices:
    """``tile_vertices`` by tile."""

    def __init__(self, store: Store) -> None:
        columns = store.columns("tile_vertices")
        self.groups = Groups(columns.ids("tile"))
        self.code_bytes = columns.integers("code_bytes")
        self.types = store.made(VertexTypes).rows(columns.ids("vertex_type_id"))


class VertexTypes:
    """``vertex_types`` by id."""

    def __init__(self, store: Store) -> None:
        columns = store.columns("vertex_types")
        self.names, self.sizes = columns.texts("name"), columns.integers("instance_bytes").tolist()
        self._keys = Keys(columns.ids("vertex_type_id"))

    def rows(self, ids: Integers) -> list[int]:
        """Return the row of each type, −1 for one that the report does not describe."""
        rows: list[int] = self._keys.positions(ids).tolist()
        return rows


class VertexType(View):
    """A type of vertices."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What it is called; empty for one that the report does not describe."""
        return self._store.made(VertexTypes).names[self._row] if self._row >= 0 else ""

    @property
    def size(self) -> int:
        """Bytes of state of one instance."""
        return self._store.made(VertexTypes).sizes[self._row] if self._row >= 0 else 0


class VertexMemory(View):
    """The code of one type of vertices on one tile."""

    __slots__ = ()

    @property
    def type(self) -> VertexType:
        """The type."""
        return VertexType(self._store, self._store.made(TileVertices).types[self._row])

    @property
    def codeBytes(self) -> int:
        """Bytes of its code on this tile."""
        return int(self._store.made(TileVertices).code_bytes[self._row])


def all_tiles(store: Store) -> Items[Tile]:
    """Return every tile, IPU by IPU."""
    return Items(store, store.made(TileColumns).number, partial(Tile, store))


def all_ipus(store: Store) -> Items[IPU]:
    """Return every IPU."""
    return Items(store, max(0, int(store.of_target("num_ipus"))), partial(IPU, store))
