"""The memory of one tile: addresses upwards, steps to the right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pvanalyse.analysis import memory_details
from pvanalyse.analysis.columns import only_row
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import caption, label, legend, new_axes, titles
from pvanalyse.plots.palette import INK, LIMIT, PARTS, Style, category_styles
from pvanalyse.plots.scales import byte_axis, count_axis
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted, format_bytes

_MOST_CATEGORIES = 18  # in the legend
_LARGE = 4  # pixels


def memory_map(
    source: TableSource,
    tile: int | None = None,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw what lies where, and when, in the memory of a tile.

    An allocation is a rectangle from its first to its last live step and over its addresses; one that is always live
    goes all the way. Grey are gaps, which nothing uses; white is free.

    Parameters
    ----------
    source
        A report.
    tile
        The tile; by default the fullest.
    units
        Of the ticks: ``binary``, ``si`` or ``bytes``.
    ax
        Axes to draw into; by default those of a new figure.

    Raises
    ------
    UsageError
        There is no such tile.
    NotCaptured
        The report has no lowered variables.
    """
    chosen = select_tiles(source, worst=1) if tile is None else select_tiles(source, tiles=[tile])
    assert chosen is not None
    tile = int(chosen[0])
    rows = memory_details.memory_map(source, tile)
    placed = rows[rows["kind"] == "allocation"]
    num_steps = max(1, source.count("liveness_steps"), int(placed["last_step"].fillna(0).max() if len(placed) else 0))
    ax = new_axes(ax, KINDS["memory-map"].size)
    _scale(ax, placed, source, num_steps, units)
    gaps = rows[rows["kind"] == "gap"]
    _rectangles(ax, gaps, num_steps, PARTS["gaps"], "gaps")
    by_category = placed.groupby("category")["bytes"].sum().sort_values(ascending=False, kind="stable")
    styles = category_styles(by_category.index)
    for name in by_category.index:
        _rectangles(ax, placed[placed["category"] == name], num_steps, styles[name], str(name))
    lines = _boundaries(ax, source, units)
    caption(ax, [_several_intervals(source, placed), _not_allocated(rows, units)])
    used = f"{counted(len(placed), 'allocation')} up to {format_bytes(int(placed['end'].max() or 0), units)}"
    free = f"{format_bytes(int(gaps['bytes'].sum()), units)} in {counted(len(gaps), 'gap')}"
    titles(ax, f"Memory of tile {tile:,}", f"{used}, {free}" if len(placed) else "no allocation has an address")
    shown = [Patch(label=label(str(name), 32), **styles[name].patch()) for name in by_category.index[:_MOST_CATEGORIES]]
    if len(by_category) > _MOST_CATEGORIES:
        shown.append(Patch(facecolor="none", label=f"and {len(by_category) - _MOST_CATEGORIES} more categories"))
    legend(ax, [*lines, *shown, Patch(label="gaps", **PARTS["gaps"].patch())])
    return ax


def _rectangles(ax: Axes, rows: pd.DataFrame, num_steps: int, style: Style, name: str) -> None:
    """Draw rows of a memory map in one style; the longest-lived first, so that they hide nothing."""
    if not len(rows):
        return
    corners = _corners(rows, num_steps)
    corners = corners[np.argsort(corners[:, 0, 0] - corners[:, 1, 0], kind="stable")]
    # White between neighbours tells them apart; what is lower or narrower than a few pixels it would hide.
    extent = ax.transData.transform(corners[:, 2]) - ax.transData.transform(corners[:, 0])
    large = (extent > _LARGE).all(axis=1)
    for part, edge in ((corners[large], "white"), (corners[~large], style.colour)):
        outline = {} if style.hatch else {"edgecolor": edge, "linewidth": 0.3}  # a hatch has the colour of the edge
        ax.add_collection(PolyCollection(part, label=name, **{**style.patch(), **outline}))


def _corners(rows: pd.DataFrame, num_steps: int) -> npt.NDArray[np.float64]:
    """Return the corners of each row's rectangle, shape (rows, 4, 2), from the bottom left anticlockwise."""
    left = rows["first_step"].fillna(0).to_numpy(np.float64)
    right = rows["last_step"].fillna(num_steps).to_numpy(np.float64)
    low, high = (rows[name].to_numpy(np.float64) for name in ("begin", "end"))
    return np.stack([np.stack(corner, axis=1) for corner in ((left, low), (right, low), (right, high), (left, high))],
                    axis=1)  # fmt: skip


def _boundaries(ax: Axes, source: TableSource, units: ByteUnits) -> list[Line2D]:
    target = only_row(source, "target")
    lines: list[Line2D] = []
    drawn: list[tuple[str, str, dict[str, Any]]] = [
        ("bytes_per_tile", "tile memory", {"color": LIMIT, "linestyle": "-.", "linewidth": 1.2}),
        ("interleaved_begin", "interleaved from", {"color": INK, "linestyle": "--", "linewidth": 0.8}),
    ]
    for column, text, style in drawn:
        if target.get(column):
            address = int(target[column])
            lines.append(ax.axhline(address, label=f"{text} {format_bytes(address, units)}", **style))
    return lines


def _scale(ax: Axes, placed: pd.DataFrame, source: TableSource, num_steps: int, units: ByteUnits) -> None:
    highest = int(placed["end"].max()) if len(placed) else 0
    ax.set_ylim(0, max(1, highest, int(only_row(source, "target").get("bytes_per_tile", 0))) * 1.03)
    ax.set_xlim(0, num_steps)
    byte_axis(ax.yaxis, units)
    count_axis(ax.xaxis)
    ax.set_ylabel("address")
    ax.set_xlabel("step")


def _several_intervals(source: TableSource, placed: pd.DataFrame) -> str:
    if placed["always_live"].all() or not source.captured("equivalence_class_intervals"):
        return ""
    classes = source.arrow("equivalence_class_intervals", ["equivalence_class_id"]).column(0)
    several = len(classes) > len(classes.unique())
    return "what is live more than once is drawn from its first to its last step" if several else ""


def _not_allocated(rows: pd.DataFrame, units: ByteUnits) -> str:
    missing = rows[rows["kind"] == "not allocated"]
    if not len(missing):
        return ""
    size = format_bytes(int(missing["bytes"].sum()), units)
    return f"not shown: {counted(len(missing), 'allocation')} of {size} found no place (out of memory)"
