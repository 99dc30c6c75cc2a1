"""What was compiled: the report's facts, tiles, compute sets, programs."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from pvanalyse.capture.parts import ABSENT, NOT_THERE, Part, id_of
from pvanalyse.libpva.tiles import KNOWN_CATEGORIES

_REGIONS = ("nonInterleaved", "interleaved", "overflowed")


class Facts(Part):
    """Versions and settings."""

    name = "report"
    tables = ()
    _FACTS = (
        *(("poplarVersion", name, f"poplar_{name}") for name in ("major", "minor", "point")),
        ("poplarVersion", "packageHash", "poplar_package_hash"),
        ("poplarVersion", "string", "poplar_version"),
        *(("version", name, f"format_{name}") for name in ("major", "minor", "point")),
        ("version", "isUnstableFormat", "format_unstable"),
        ("instrumentationSettings", "compute", "instrument_compute"),
        ("instrumentationSettings", "externalExchange", "instrument_external_exchange"),
    )

    def items(self) -> Sequence[Any]:
        """Return what is asked for, and the key it is written as."""
        return self._FACTS

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write a fact."""
        owner, name, key = item
        try:
            value = getattr(getattr(self.session.report, owner), name)
        except NOT_THERE:
            self.file.remark(f"{ABSENT}report_info.{key}")
            return
        if key.startswith("instrument_"):
            value = value.name
        self.file.add("report_info", [(key, str(int(value)) if isinstance(value, bool) else str(value))])


class Target(Part):
    """The hardware compiled for."""

    name = "target"
    tables = ("target",)

    def items(self) -> Sequence[Any]:
        """Return it alone."""
        return [self.session.report.compilation.target]

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write it."""
        counts = (item.numIPUs, item.numReplicas, item.tilesPerIpu, item.numTiles, item.bytesPerTile)
        row = (item.type.name, item.architecture.name, *counts, float(item.clockFrequency), None, None, None)
        self.file.add("target", [row])


class Graph(Part):
    """The size of the graph."""

    name = "graph"
    tables = ("graph",)

    def items(self) -> Sequence[Any]:
        """Return it alone."""
        return [self.session.report.compilation.graph]

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write it."""
        vertices, sets = (self.session.optional(item, "Graph", name) for name in ("numVertices", "numComputeSets"))
        self.file.add("graph", [(vertices, None, None, sets)])


class Tiles(Part):
    """What is on each tile."""

    name = "tiles"
    tables = ("tile_memory", "tile_memory_category", "tile_vertices")

    def items(self) -> Sequence[Any]:
        """Return the tiles."""
        tiles: Sequence[Any] = self.session.report.compilation.tiles
        return tiles

    def write(self, at: int, item: Any) -> None:
        """Write a tile."""
        memory = item.memory
        total, beyond = memory.total, memory.overflowed
        row = (total.includingGaps, total.excludingGaps, None, None, None, None, beyond.includingGaps)
        live = (memory.alwaysLiveBytes, memory.notAlwaysLiveBytes)
        self.file.add("tile_memory", [(at, *row, beyond.excludingGaps, *live)])
        self.file.add("tile_memory_category", self._categories(at, memory.category))
        vertex_type = self.session.vertex_type
        self.file.add("tile_vertices", [(at, vertex_type(one.type), one.codeBytes) for one in memory.vertices])

    @cached_property
    def _names(self) -> dict[str, None]:
        """Names of storage categories: an open set, so what the object has is looked at."""
        return {}

    def _categories(self, tile: int, categories: Any) -> Iterator[tuple[Any, ...]]:
        if not self._names:
            self._names.update(dict.fromkeys((*KNOWN_CATEGORIES, *dir(categories))))
        for name in self._names:
            held = None if name.startswith("_") else getattr(categories, name, None)
            if held is not None and hasattr(held, "total"):
                for region, *sizes in self._regions(held):
                    if any(sizes):
                        yield (tile, name, region, *sizes)

    def _regions(self, held: Any) -> Iterator[tuple[str, int, int | None]]:
        """Yield the bytes of a category in each region; in one of unknown name where regions are not told."""
        for region in _REGIONS:
            try:
                alone = getattr(held, region).nonOverlapped
            except AttributeError:
                self.file.remark(f"{ABSENT}CategoryMemory.regions")
                yield "unknown", held.total, None
                return
            yield region, alone, self.session.optional(getattr(held, region), "RegionMemory", "overlapped")


class ComputeSets(Part):
    """Sets of vertices that run together."""

    name = "compute sets"
    tables = ("compute_sets", "compute_set_vertices", "capture_compute_sets")

    def items(self) -> Sequence[Any]:
        """Return the compute sets; their numbers here are their places there."""
        sets: Sequence[Any] = self.session.report.compilation.computeSets
        return sets

    def write(self, at: int, item: Any) -> None:
        """Write a compute set."""
        name, cycles, counts = self._contents(item)
        self.file.add("compute_sets", [(at, name, cycles, None, None)])
        self.file.add("compute_set_vertices", [(at, *one) for one in counts])
        self.file.add("capture_compute_sets", [(at, name, _digest(name, cycles, counts))])

    def digest(self, item: Any) -> bytes:
        """Return what two compute sets have in common that are alike in all that is told of them."""
        return _digest(*self._contents(item))

    def _contents(self, item: Any) -> tuple[str, bytes | None, list[tuple[int, bytes | None]]]:
        session = self.session
        estimate = session.optional(item, "ComputeSet", "estimatedCyclesByTile")
        cycles = session.packed(estimate, "compute_sets.estimated_cycles_by_tile")
        counts: dict[int, list[Any]] = defaultdict(list)
        for one in item.vertices:
            counts[session.vertex_type(one.type)].append(one.countByTile)
        column = "compute_set_vertices.count_by_tile"
        # zip ends with the shortest, and what is not one number for each tile is not taken
        return (
            item.name,
            cycles,
            [
                (number, session.packed(map(sum, zip(*lists, strict=False)) if len(lists) > 1 else lists[0], column))
                for number, lists in counts.items()
            ],
        )


def _digest(name: str, cycles: bytes | None, counts: list[tuple[int, bytes | None]]) -> bytes:
    return hashlib.blake2b(repr((name, cycles, counts)).encode("utf-8", "replace"), digest_size=16).digest()


class Programs(Part):
    """The programs of the compiled tree."""

    name = "programs"
    tables = ("programs", "program_children", "program_lowered_variables")

    def items(self) -> Sequence[Any]:
        """Return every program."""
        programs: Sequence[Any] = self.session.report.compilation.programs
        return programs

    def begin(self, done: int) -> None:  # noqa: ARG002
        """Find out which compute sets there are, and which are taken."""
        self._alike: dict[bytes, list[int]] = defaultdict(list)
        self._named: dict[str, list[int]] = defaultdict(list)
        for number, name, digest in self.file.select("SELECT * FROM capture_compute_sets ORDER BY 1"):
            self._named[name].append(number)
            self._alike[digest].append(number)
        taken = "SELECT compute_set_id FROM programs WHERE compute_set_id IS NOT NULL"
        self._taken = Counter(number for (number,) in self.file.select(taken))
        self._sets = ComputeSets(self.session)

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write a program."""
        session, number, kind = self.session, id_of(item), item.type.name
        control = session.optional(item, "Program", "controlCodeByTile")
        code = estimate = compute_set = None
        if kind == "DoExchange":
            code = session.optional(item, "Program", "codeBytesByTile")
            estimate = session.optional(item, "Program", "estimatedCyclesByTile")
        elif kind == "OnTileExecute":
            compute_set = self._compute_set(session.optional(item, "Program", "computeset"))
        by_tile = (
            session.packed(control, "programs.control_code_by_tile"),
            session.packed(code, "programs.code_bytes_by_tile"),
            session.packed(estimate, "programs.estimated_cycles_by_tile"),
        )
        self.file.add("programs", [(number, kind, item.name, None, compute_set, *by_tile, None)])
        children = getattr(item, "children", ())  # a program that cannot have any may not have the attribute
        self.file.add("program_children", [(number, place, id_of(child)) for place, child in enumerate(children)])
        used = session.optional(item, "Program", "vars", ())
        self.file.add("program_lowered_variables", [(number, one._id) for one in used])

    def _compute_set(self, item: Any) -> int | None:
        """Return the number of a compute set, which is not told: of those of its name, the one that is like it.

        Of several that are alike in everything, the one that the fewest programs have executed so far.
        """
        if item is None:
            return None
        name = item.name
        candidates = self._named.get(name, []) if name else []
        if len(candidates) != 1:
            candidates = self._alike.get(self._sets.digest(item), [])
        if not candidates:
            return None
        number = min(candidates, key=self._taken.__getitem__)
        self._taken[number] += 1
        return number
