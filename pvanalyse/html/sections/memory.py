"""Where the bytes are: every tile's sizes, and what lies where on some of the tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from pvanalyse.analysis import memory, memory_details
from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.errors import NotCaptured
from pvanalyse.html.pack import exact
from pvanalyse.html.sections.source import Making
from pvanalyse.plots.floor_plan import floor_plan
from pvanalyse.plots.palette import PARTS, Style, category_styles

_MOST_CATEGORIES = 24
_LABELS = {
    "non_interleaved": "non-interleaved",
    "always_live": "always live",
    "not_always_live": "not always live (peak)",
    "shared": "shared over time",
}
_MAP = ("begin", "end", "bytes", "kind", "name", "category", "region", "always_live", "first_step", "last_step")


def by_tile(making: Making) -> dict[str, Any]:
    """Return the sizes of every tile: totals, and layers by category, region and liveness, from the bottom up."""
    source, pack = making.report, making.pack
    frame = memory.tiles_frame(source)
    target = only_row(source, "target")
    per_ipu = int(target.get("tiles_per_ipu", 0))
    possible: dict[str, Callable[[], tuple[pd.DataFrame, Any]]] = {
        "category": lambda: _categories(making, frame),
        "region": lambda: (memory.tile_regions(source), PARTS),
        "liveness": lambda: (memory.tile_liveness(source), PARTS),
    }
    layers = {}
    for by, made in possible.items():
        try:
            layers[by] = made()
        except NotCaptured as error:
            making.left_out.append(str(error))
    return {
        "tile": pack.whole(frame["tile"]),
        "total": pack.whole(frame["total_including_gaps"]),
        "excluding": pack.whole(frame["total_excluding_gaps"]),
        "over": pack.whole(frame["over_bytes"]),
        "bytesPerTile": exact(target.get("bytes_per_tile")),
        "tilesPerIpu": per_ipu,
        "layers": {by: _layers(making, one, styles) for by, (one, styles) in layers.items()},
        "plan": _plan(making, frame, per_ipu),
    }


def _layers(making: Making, frame: pd.DataFrame, styles: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": exact(_LABELS.get(name, name)),
            "colour": styles[name].colour,
            "hatch": styles[name].hatch[:1],
            "bytes": making.pack.whole(frame[name]),
        }
        for name in frame.columns
    ]


def _categories(making: Making, totals: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Style]]:
    """Return bytes by tile and category, then what is shared over time and gaps, so that the top is the total."""
    frame = memory.tile_categories(making.report)
    frame = frame.loc[:, (frame != 0).any()]
    styles = category_styles(frame.columns)
    most = max(4, min(_MOST_CATEGORIES, making.limits.memory_cells // max(1, len(frame))))
    rest = frame.columns[most:]
    if len(rest) > 1:
        making.left_out.append(f"Categories: {len(rest)} smaller ones are shown together.")
        name = f"{len(rest)} smaller categories"
        frame, styles[name] = frame.drop(columns=rest).assign(**{name: frame[rest].sum(axis=1)}), PARTS["rest"]
    known = frame.sum(axis=1).to_numpy()
    excluding, including = (totals[f"total_{kind}_gaps"].to_numpy() for kind in ("excluding", "including"))
    frame["shared"] = np.maximum(0, excluding - known)
    frame["gaps"] = np.maximum(0, including - np.maximum(excluding, known))
    return frame, {**styles, "shared": PARTS["shared"], "gaps": PARTS["gaps"]}


def _plan(making: Making, frame: pd.DataFrame, per_ipu: int) -> dict[str, Any] | None:
    """Return where each tile is drawn on a map: row and column of a grid, and the panel of each IPU."""
    tiles = frame["tile"].to_numpy()
    if per_ipu <= 0 or not len(tiles) or tiles.min() < 0 or tiles.max() >= 2 * len(tiles) + per_ipu:
        return None
    plan = floor_plan(int(tiles.max()) + 1, per_ipu)
    return {
        "row": making.pack.whole(plan.row[tiles]),
        "column": making.pack.whole(plan.column[tiles]),
        "panelRow": plan.panel_row.tolist(),
        "panelColumn": plan.panel_column.tolist(),
        "panelRows": plan.panel_rows,
        "panelColumns": plan.panel_columns,
    }


# ---------------------------------------------------------------------------------------------------- maps of tiles


def tiles(making: Making) -> dict[str, Any]:
    """Return the memory maps of the tiles that are most telling, see :func:`_telling`."""
    source = making.report
    frame = memory.tiles_frame(source)
    chosen = sorted({*_telling(frame, making.limits.tiles), *making.tiles})
    maps = {}
    for tile in chosen:
        rows = memory_details.memory_map(source, tile)
        maps[str(tile)] = _map(making, tile, rows)
    if len(chosen) < len(frame):
        making.left_out.append(
            f"Memory maps are in this page for {len(chosen)} of {len(frame):,} tiles: the fullest, and the fullest and "
            "emptiest of each IPU. 'pvanalyse html --tiles' adds others, 'pvanalyse memory --map' shows any."
        )
    interleaved = only_row(source, "target").get("interleaved_begin")
    return {"maps": maps, "interleavedBegin": exact(interleaved)}


def _telling(frame: pd.DataFrame, most: int) -> list[int]:
    """Return the fullest tiles and, of each IPU as far as there is room, the fullest and the emptiest one."""
    order = frame.sort_values(["total_including_gaps", "tile"], ascending=[False, True])
    found = order["tile"].head(most // 3).tolist()
    extremes = pd.concat([order.groupby("ipu", dropna=False).head(1), order.groupby("ipu", dropna=False).tail(1)])
    found += extremes.sort_values("ipu", kind="stable")["tile"].tolist()
    found += order["tile"].tolist()[: 2 * most]
    return list(dict.fromkeys(found))[:most]


def _map(making: Making, tile: int, rows: pd.DataFrame) -> dict[str, Any]:
    most = making.limits.allocations
    if len(rows) > most:
        making.left_out.append(f"Tile {tile}: the {most:,} largest of {len(rows):,} allocations and gaps are shown.")
        largest: Integers = np.sort(np.argsort(-rows["bytes"].to_numpy(), kind="stable")[:most])
        rows = rows.iloc[largest]
    return {name: making.column(rows[name]) for name in _MAP} | {"length": len(rows)}
