"""The headline numbers a second way: what a report stores, against what its lowered variables add up to.

A report gives totals, and it gives the allocations that they are totals of. Where both were captured they must agree;
where they do not, one of them is wrong, and that is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, Sums, integers, only_row
from pvanalyse.analysis.lifetimes import read_lifetimes
from pvanalyse.analysis.memory import REGIONS, category_bytes, regions_known, tile_memory
from pvanalyse.tables import TableSource

COLUMNS = ("quantity", "tile", "step", "stored", "computed", "difference")


def findings(source: TableSource) -> pd.DataFrame:
    """Return where stored and computed numbers disagree; empty when all is well, or when there is nothing to compare.

    Compared are, for each tile, its always-live bytes, its not-always-live peak and what its allocations leave of it
    without a place; for each step, the live bytes of one replica; and the sum of the categories against the totals.

    Returns
    -------
    pandas.DataFrame
        ``quantity``, ``tile`` and ``step`` (null where the quantity is of all), ``stored``, ``computed`` and
        ``difference`` (computed less stored), in bytes.
    """
    parts = list(_parts(source))
    frame = (
        pd.concat(parts, ignore_index=True)
        if parts
        else _disagreements("", np.empty(0, np.int64), np.empty(0, np.int64))
    )
    return frame[list(COLUMNS)]


def _parts(source: TableSource) -> Iterator[pd.DataFrame]:
    memory = tile_memory(source)
    if memory is not None:
        if regions_known(memory) == list(REGIONS):
            regions = np.sum([memory[f"{region}_including_gaps"] for region in REGIONS], axis=0)
            total = memory["total_including_gaps"]
            yield _disagreements("total_including_gaps of the regions", total, regions, tile=memory["tile"])
        if source.captured("lowered_variables"):
            always = _always_live(source, memory["tile"])
            yield _disagreements("always_live_bytes", memory["always_live_bytes"], always, tile=memory["tile"])
        if source.captured("tile_memory_category"):
            stored = memory.total("total_excluding_gaps")
            # What is overlapped is counted once for each that shares it, so the total lies between these two.
            categories = category_bytes(source)
            alone = sum(categories.non_overlapped.values())
            most = alone + sum(categories.overlapped.values())
            if not alone <= stored <= most:
                computed = alone if stored < alone else most
                yield _disagreements("total_excluding_gaps of the categories", np.array([stored]), np.array([computed]))
    captured = all(map(source.captured, ("lowered_variables", "equivalence_class_intervals", "liveness_steps")))
    if memory is not None and captured:
        live = read_lifetimes(source)
        size, _ = live.peaks(live.group_of(memory["tile"]), len(memory["tile"]))
        yield _disagreements("not_always_live_bytes", memory["not_always_live_bytes"], size, tile=memory["tile"])
        replica = len(memory["tile"]) // max(1, int(only_row(source, "target").get("num_replicas", 1)))
        steps = source.arrow("liveness_steps", ["step", "not_always_live_bytes"])
        step = integers(steps.column(0))
        curve = live.curves(np.where(live.tile < replica, 0, -1), 1)[0]
        yield _disagreements("liveness of one replica", integers(steps.column(1)), curve[step], step=step)


def _always_live(source: TableSource, tiles: Integers) -> Integers:
    sums = Sums(len(tiles))
    for batch in source.batches("lowered_variables", ["tile", "bytes", "always_live"]):
        live = batch.filter(pc.fill_null(batch.column("always_live"), pa.scalar(False)))
        tile = integers(live.column("tile"))
        at = np.minimum(np.searchsorted(tiles, tile), len(tiles) - 1)
        known = tiles[at] == tile
        sums.add(at[known], integers(live.column("bytes"))[known])
    return np.array([sums[at] for at in range(len(tiles))], np.int64)


def _disagreements(
    quantity: str, stored: Integers, computed: Integers, tile: Integers | None = None, step: Integers | None = None
) -> pd.DataFrame:
    differs = stored != computed
    nothing = pd.array([pd.NA] * int(differs.sum()), "Int64")
    return pd.DataFrame(
        {
            "quantity": quantity,
            "tile": nothing if tile is None else pd.array(tile[differs], "Int64"),
            "step": nothing if step is None else pd.array(step[differs], "Int64"),
            "stored": stored[differs],
            "computed": computed[differs],
            "difference": (computed - stored)[differs],
        }
    )
