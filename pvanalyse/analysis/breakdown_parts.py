"""The parts that metrics are made of, as rows by category, layer, operation and variable.

Variables are known by the names they were declared with, and by where these came from. Tables of the liveness are of
one replica; all replicas are alike.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, Keys, Sums, codes, exact_sum, integers, only_row
from pvanalyse.analysis.contributions import Key, Share, Shares, add
from pvanalyse.analysis.execution import UNKNOWN
from pvanalyse.analysis.execution_details import descriptions
from pvanalyse.analysis.liveness import Peak, liveness_peak
from pvanalyse.analysis.memory import TileMemory, tile_memory
from pvanalyse.analysis.origins import Origins
from pvanalyse.analysis.selection import batches_on_tiles
from pvanalyse.analysis.stable_names import layer_of, stable_name
from pvanalyse.tables import TableSource

VARIABLE = "variable"
"""The category of a variable where nothing tells its own."""
NO_NAME = "(no name)"
_NO_TYPE = "(no type)"
_MOST_TILES = 512  # of more tiles the allocations are not read one by one: that takes seconds


class Parts:
    """What the metrics of one report are made of, each table read once, when it is first asked for."""

    def __init__(self, source: TableSource) -> None:
        self.source = source
        self._origins = Origins(source)

    @cached_property
    def tiles(self) -> TileMemory | None:
        """The memory of each tile."""
        return tile_memory(self.source)

    @cached_property
    def replicas(self) -> int:
        """How many replicas there are; tables of the liveness are of one."""
        return int(only_row(self.source, "target").get("num_replicas", 1))

    def fullest_tile(self, kind: str) -> int | None:
        """Return the number of the fullest tile, ``including`` or ``excluding`` gaps; None when it is not known."""
        if self.tiles is None:
            return None
        return int(self.tiles["tile"][np.argmax(self.tiles[f"total_{kind}_gaps"])])

    @property
    def has_tiles(self) -> bool:
        """Whether the target says how many tiles there are, and so what columns of a value per tile hold."""
        return bool(only_row(self.source, "target").get("num_tiles"))

    @cached_property
    def contexts(self) -> dict[int, tuple[str, int | None]]:
        """Name and debug context of each declared variable."""
        if not self.source.captured("variables"):
            return {}
        columns = self.source.arrow("variables", ["variable_id", "name", "debug_context_id"]).to_pydict()
        rows = zip(*columns.values(), strict=True)
        return {identity: (name or "", context) for identity, name, context in rows if identity is not None}

    @cached_property
    def categories(self) -> frozenset[str]:
        """Storage categories: variables that are named after one stand for all that the compiler made of it."""
        if not self.source.captured("tile_memory_category"):
            return frozenset()
        names: set[str | None] = set()
        for chunk in self.source.arrow("tile_memory_category", ["category"]).column(0).chunks:
            names.update(chunk.dictionary.to_pylist())
        return frozenset(name for name in names if name)

    @cached_property
    def peak(self) -> Peak | None:
        """The step at which most is live."""
        return liveness_peak(self.source)

    @cached_property
    def always_live(self) -> Shares | None:
        """Always-live variables of one replica."""
        return self._sizes("always_live_variables")

    @cached_property
    def live_at_peak(self) -> Shares | None:
        """Other variables of one replica that are live at the peak."""
        return self._sizes("variable_liveness", self.peak.step) if self.peak else None

    @cached_property
    def not_always_live(self) -> Shares | None:
        """Other variables of one replica, each once, however often it is live."""
        return self._sizes("variable_liveness")

    @cached_property
    def cycles(self) -> tuple[int, dict[int, int]] | None:
        """Cycles between the first and the last of each run, summed up, and those of each program's steps."""
        if not (self.source.captured("execution_steps") and self.source.captured("execution_step_ipus")):
            return None
        steps = self.source.arrow("execution_steps", ["step_id", "run_id", "program_id"])
        step, run, program = (integers(column) for column in steps.columns)
        keys = Keys(step)
        programs, place = np.unique(program, return_inverse=True)
        sums, spans = Sums(len(programs)), pd.DataFrame({"first": [], "last": []}, dtype="int64")
        for batch in self.source.batches("execution_step_ipus", ["step_id", "cycles", "all_from_min", "all_to_max"]):
            at = keys.positions(integers(batch.column("step_id")))
            known = at >= 0
            cycles, first, last = (integers(column)[known] for column in batch.columns[1:])
            sums.add(place[at[known]], cycles)
            rows = pd.DataFrame({"first": first, "last": last}).groupby(run[at[known]])
            spans = pd.concat([spans, rows.agg({"first": "min", "last": "max"})])
        whole = spans.groupby(level=0).agg({"first": "min", "last": "max"})
        elapsed = exact_sum((whole["last"] - whole["first"])[whole["first"] <= whole["last"]].to_numpy(np.int64))
        return elapsed, {one: sums[number] for number, one in enumerate(programs.tolist())}

    # ---------------------------------------------------------------------------------------------------- their rows

    def named(self, category: str | None, name: str, context: int | None, size: int) -> tuple[Key, Share]:
        """Return the row of something that has a name and a debug context, and its size."""
        stable = stable_name(name) or NO_NAME
        operation = stable_name(self._origins.operation(context))
        return Key(category or UNKNOWN, layer_of(stable), operation, stable), Share(
            size, self._origins.location(context)
        )

    def variable(self, category: str | None, name: str | None, identity: int | None, size: int) -> tuple[Key, Share]:
        """Return the row of a variable: under the name it was declared with, if any, and its size."""
        declared, context = self.contexts.get(-1 if identity is None else identity, ("", None))
        known = declared or name or ("" if identity is None else f"variable {identity}")
        return self.named(category, known, context, size)

    def _sizes(self, table: str, step: int | None = None) -> Shares | None:
        """Return the sizes of the variables in a table, or of those that are live at a step; None without it."""
        if not self.source.captured(table):
            return None
        columns = ["variable_id", "name", "bytes", *(["step_begin", "step_end"] if step is not None else [])]
        rows = self.source.arrow(table, columns).to_pydict()
        spans = zip(rows["step_begin"], rows["step_end"], strict=True) if step is not None else None
        sizes: dict[tuple[int | None, str | None], int] = {}
        for one, size in zip(zip(rows["variable_id"], rows["name"], strict=True), rows["bytes"], strict=True):
            begin, end = next(spans) if spans else (None, None)
            if step is None:
                # A variable that is live several times has the same size each time.
                sizes[one] = max(sizes.get(one, 0), size or 0)
            elif begin is not None and end is not None and begin <= step < end:
                sizes[one] = sizes.get(one, 0) + (size or 0)
        shares: Shares = {}
        for (identity, name), size in sizes.items():
            if identity is None and self._is_category(name):
                add(shares, Key(str(name), "", "", ""), Share(size))
            else:
                add(shares, *self.variable(VARIABLE, name, identity, size))
        return shares

    def _is_category(self, name: str | None) -> bool:
        return name in self.categories if self.categories else bool(name) and str(name).isalpha()

    def on_tiles(self, tiles: Integers, region: str | None = None) -> Shares | None:
        """Return the allocations on tiles, or in one region of them; by category where that is all that is known."""
        if not self.source.captured("lowered_variables") or len(tiles) > _MOST_TILES:
            return self.categories_of(tiles, region)
        columns = ["variable_id", "name", "category", "region", "bytes"]
        rows = pa.Table.from_batches(batches_on_tiles(self.source, "lowered_variables", columns, tiles))
        rows = rows.set_column(2, "category", rows.column("category").cast(pa.string()))
        if region is not None:
            rows = rows.filter(pc.equal(rows.column("region").cast(pa.string()), region))
        if self.contexts:  # the names of lowered pieces such as v12#3 say nothing then, and there are many
            own = pc.if_else(rows.column("variable_id").is_valid(), pa.scalar(None, pa.string()), rows.column("name"))
            rows = rows.set_column(1, "name", own)
        sums = rows.group_by(["variable_id", "name", "category"]).aggregate([("bytes", "sum")]).to_pydict()
        shares: Shares = {}
        for identity, name, category, size in zip(
            sums["variable_id"], sums["name"], sums["category"], sums["bytes_sum"], strict=True
        ):
            if identity is None and name == category:
                add(shares, Key(category or UNKNOWN, "", "", ""), Share(size or 0))
            else:
                add(shares, *self.variable(category, name, identity, size or 0))
        return shares

    def categories_of(self, tiles: Integers | None, region: str | None = None) -> Shares | None:
        """Return the sizes of the allocations of each category, on tiles or all, in one region or all."""
        if not self.source.captured("tile_memory_category"):
            return None
        shares: Shares = {}
        columns = ["category", "region", "non_overlapped", "overlapped"]
        for batch in batches_on_tiles(self.source, "tile_memory_category", columns, tiles):
            known: dict[str, int] = {}
            category = codes(batch.column("category"), known)
            if region is not None:
                inside = pc.equal(batch.column("region").cast(pa.string()), region).fill_null(False)
                category = np.where(inside.to_numpy(zero_copy_only=False), category, len(known))
            sums = Sums(len(known) + 1)
            for column in columns[2:]:
                sums.add(category, integers(batch.column(column)))
            for name, at in known.items():
                if sums[at]:
                    add(shares, Key(name or UNKNOWN, "", "", ""), Share(sums[at]))
        return shares

    @cached_property
    def sizes(self) -> Shares | None:
        """All variables of all replicas, each once."""
        if self.always_live is None or self.not_always_live is None:
            return None
        return times(self.replicas, self.always_live, self.not_always_live)

    @cached_property
    def programs(self) -> Shares | None:
        """The cycles of each program's steps; a row's category is the type of the program."""
        if self.cycles is None:
            return None
        described = descriptions(self.source)
        names: dict[int, tuple[str, str]] = {}
        if self.source.captured("programs"):
            columns = self.source.arrow("programs", ["program_id", "type", "name"]).to_pydict()
            for one, kind, name in zip(*columns.values(), strict=True):
                names[one] = (UNKNOWN if kind is None else kind or _NO_TYPE, name or "")
        shares: Shares = {}
        for program, cycles in self.cycles[1].items():
            kind, name = names.get(program, (UNKNOWN, ""))
            context = described.get(program, (None, None))[1]
            add(shares, *self.named(kind, name, context, cycles))
        return shares


def times(factor: int, *parts: Shares) -> Shares:
    """Return the rows of all parts, each so many times."""
    sums: Shares = {}
    for part in parts:
        for key, share in part.items():
            add(sums, key, Share(share.value * factor, share.location))
    return sums
