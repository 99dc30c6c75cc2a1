"""Plots of where the bytes are: by tile, by category, and how they are distributed over the tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from pvanalyse.analysis import memory
from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.errors import UsageError
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import caption, label, legend, new_axes, pixel_columns, row_labels, titles
from pvanalyse.plots.palette import ACCENT, INK, LIMIT, PARTS, Style, category_styles
from pvanalyse.plots.scales import byte_axis, count_axis
from pvanalyse.plots.tiles_axis import label_tiles, tile_columns
from pvanalyse.tables import TableSource, table
from pvanalyse.units import ByteUnits, counted, format_bytes, format_count, format_fraction

BY = ("category", "region", "liveness")
TILE_COLUMNS = tuple(column.name for column in table("tile_memory").columns if column.unit == "bytes")

_MOST_LAYERS = 14
_FAR_BELOW = 0.1  # of a tile's memory: showing the limit would leave nothing to see
_PART_NAMES = {
    "non_interleaved": "non-interleaved",
    "interleaved": "interleaved",
    "overflowed": "overflowed",
    "always_live": "always live",
    "not_always_live": "not always live (peak)",
    "shared": "shared over time",
    "gaps": "gaps",
}


def memory_by_tile(
    source: TableSource,
    by: str = "category",
    tiles: str | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    worst: int | None = None,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw what fills each tile, stacked, with the line that decides whether the tile fits.

    With more tiles than there are pixels, each column shows the fullest of its tiles, which the caption says.

    Parameters
    ----------
    source
        A report.
    by
        ``category``: bytes at addresses that nothing else uses, by storage category; then addresses shared by what is
        live at different times, and gaps, so that the top is the tile's total including gaps. ``region``: including
        gaps, by region. ``liveness``: always live, and the tile's own peak of what is not; a line shows the total.
    tiles, ipu, worst
        Which tiles, see :func:`pvanalyse.analysis.selection.select_tiles`; with ``worst`` the fullest comes first.
    units
        Of the ticks: ``binary``, ``si`` or ``bytes``.
    ax
        Axes to draw into; by default those of a new figure.

    Raises
    ------
    UsageError
        There is no such ``by`` or no such tile.
    NotCaptured
        The report has no memory of tiles, or no categories.
    """
    if by not in BY:
        raise UsageError(f"memory by tile is drawn by {', '.join(BY)}, not by '{by}'")
    chosen = select_tiles(source, tiles, ipu, worst)
    totals = memory.tiles_frame(source, chosen)
    layers, styles = _layers(source, by, chosen, totals)
    ax = new_axes(ax, KINDS["memory-by-tile"].size)
    tiles_per_ipu = int(only_row(source, "target").get("tiles_per_ipu", 0))
    total = totals["total_including_gaps"].to_numpy()
    columns = tile_columns(totals["tile"].to_numpy(), total, tiles_per_ipu, pixel_columns(ax))
    heights = layers.to_numpy(np.int64)[columns.shown].cumsum(axis=1)
    # From the back to the front, each from zero, so that no background shines through between two areas.
    for at in reversed(range(heights.shape[1])):
        ax.stairs(heights[:, at], columns.edges, fill=True, baseline=0, **styles[layers.columns[at]].patch())
    if by == "liveness":
        ax.stairs(total[columns.shown], columns.edges, baseline=None, color=INK, linewidth=0.8, label="total with gaps")
    highest = int(max(heights.max(initial=0), total.max(initial=0)))
    _limit_line(ax, source, highest)
    byte_axis(ax.yaxis, units)
    label_tiles(ax, columns, tiles_per_ipu, "fullest first" if worst is not None else "others left out")
    caption(ax, [columns.remark()])
    titles(ax, f"Memory of each tile by {by}", _fit(source, totals, units))
    handles = [
        Patch(label=label(_PART_NAMES.get(name, name), 32), **styles[name].patch()) for name in reversed(layers.columns)
    ]
    legend(ax, [*_lines(ax), *handles])
    return ax


def _layers(
    source: TableSource, by: str, chosen: Integers | None, totals: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Style]]:
    """Return bytes by tile (rows) and layer (columns, from the bottom up), and each layer's style."""
    if by != "category":
        frame = (memory.tile_regions if by == "region" else memory.tile_liveness)(source, chosen)
        return frame, {name: PARTS[name] for name in frame.columns}
    frame = memory.tile_categories(source, chosen)
    frame = frame.loc[:, (frame != 0).any()]
    styles = category_styles(frame.columns)
    rest = frame.columns[_MOST_LAYERS - 1 :]
    if len(rest) > 1:
        together = frame[rest].sum(axis=1)
        frame, name = frame.drop(columns=rest), f"{len(rest)} smaller categories"
        frame[name], styles[name] = together, PARTS["rest"]
    known = frame.sum(axis=1).to_numpy()
    excluding, including = (totals[f"total_{kind}_gaps"].to_numpy() for kind in ("excluding", "including"))
    frame["shared"] = np.maximum(0, excluding - known)
    frame["gaps"] = np.maximum(0, including - np.maximum(excluding, known))
    return frame, {**styles, "shared": PARTS["shared"], "gaps": PARTS["gaps"]}


def categories(
    source: TableSource,
    tiles: str | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    worst: int | None = None,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw the bytes of each storage category over the tiles, largest first.

    A bar is the bytes at addresses that nothing else uses; what is beyond it in outline are bytes at addresses shared
    with something live at another time.

    Parameters
    ----------
    source, tiles, ipu, worst, units, ax
        See :func:`memory_by_tile`.

    Raises
    ------
    UsageError
        There is no such tile.
    NotCaptured
        The report has no categories.
    """
    chosen = select_tiles(source, tiles, ipu, worst)
    frame = memory.categories_frame(source, chosen)
    frame = frame[(frame["bytes"] > 0) | (frame["overlapped_bytes"] > 0)]
    ax = new_axes(ax, KINDS["categories"].size)
    styles = category_styles(frame["category"])
    rows = enumerate(zip(frame["category"], frame["bytes"], frame["overlapped_bytes"], strict=True))
    for row, (name, size, shared) in rows:
        ax.barh(row, size, height=0.75, **styles[name].patch())
        ax.barh(row, shared, left=size, height=0.75, facecolor="none", edgecolor=INK, linewidth=0.6, linestyle=":")
    numbers = [
        f"{format_bytes(int(size), units)}  {format_fraction(float(share))}"
        + (f"  + {format_bytes(int(shared), units)} shared" if shared else "")
        for size, share, shared in zip(frame["bytes"], frame["fraction"], frame["overlapped_bytes"], strict=True)
    ]
    row_labels(ax, [label(name, 32) for name in frame["category"]], numbers=numbers)
    byte_axis(ax.xaxis, units)
    ax.set_xlim(left=0)
    ax.set_xlabel("bytes")
    if frame["overlapped_bytes"].any():
        caption(ax, ["dotted, shared: at addresses shared with something live at another time"])
    total = format_bytes(int(frame["bytes"].sum()), units)
    titles(ax, "Memory by category", f"{total} at addresses of their own, on {_number_of_tiles(source, chosen)}")
    return ax


def tile_histogram(
    source: TableSource,
    column: str = "total_including_gaps",
    tiles: str | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    worst: int | None = None,
    bins: int = 50,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw how many tiles hold how much, with the median, the 99th percentile and the memory of a tile.

    Parameters
    ----------
    source
        A report.
    column
        Of the table ``tile_memory``.
    tiles, ipu, worst, units, ax
        See :func:`memory_by_tile`.
    bins
        Number of bars, all equally wide.

    Raises
    ------
    UsageError
        There is no such column or tile.
    NotCaptured
        The report has no memory of tiles.
    """
    require_tile_column(column)
    chosen = select_tiles(source, tiles, ipu, worst)
    quantiles, histogram = memory.distribution(source, chosen, column, bins)
    ax = new_axes(ax, KINDS["tile-histogram"].size)
    edges = np.append(histogram["from_bytes"], histogram["to_bytes"].iloc[-1])
    ax.stairs(histogram["num_tiles"], edges, fill=True, facecolor=ACCENT, edgecolor="white", linewidth=0.5)
    at = dict(zip(quantiles["quantile"], quantiles["bytes"], strict=True))
    for quantile, name, line in ((0.5, "median", "-"), (0.99, "99 %", "--")):
        text = f"{name} {format_bytes(float(at[quantile]), units)}"
        ax.axvline(at[quantile], color=INK, linestyle=line, linewidth=1.2, label=text)
    _limit_line(ax, source, int(at[1]), vertical=True, units=units)
    byte_axis(ax.xaxis, units)
    count_axis(ax.yaxis)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("bytes of a tile")
    ax.set_ylabel("tiles")
    spread = f"{format_bytes(float(at[0]), units)} to {format_bytes(float(at[1]), units)}"
    titles(ax, f"Tiles by {column.replace('_', ' ')}", f"{_number_of_tiles(source, chosen)}, {spread}")
    legend(ax, _lines(ax))
    return ax


def require_tile_column(column: str) -> None:
    """Raise UsageError unless the column is one of bytes in ``tile_memory``."""
    if column not in TILE_COLUMNS:
        raise UsageError(f"'{column}' is not a column of a tile's memory; there are: {', '.join(TILE_COLUMNS)}")


def _limit_line(
    ax: Axes, source: TableSource, highest: int, *, vertical: bool = False, units: ByteUnits = "binary"
) -> None:
    """Draw the memory of a tile, unless everything is far below it."""
    limit = int(only_row(source, "target").get("bytes_per_tile", 0))
    shown = 0 < limit * _FAR_BELOW <= highest
    if shown:
        text = f"tile memory {format_bytes(limit, units)}"
        (ax.axvline if vertical else ax.axhline)(limit, color=LIMIT, linewidth=1.2, linestyle="-.", label=text)
    if not vertical:
        ax.set_ylim(0, max(1, highest, limit if shown else 0) * 1.1)


def _fit(source: TableSource, totals: pd.DataFrame, units: ByteUnits) -> str:
    """Say how full the fullest tile is, and how many do not fit."""
    row = totals.iloc[int(totals["total_including_gaps"].to_numpy().argmax())]
    limit = only_row(source, "target").get("bytes_per_tile")
    of = f" of {format_bytes(int(limit), units)}" if limit is not None else ""
    text = f"fullest: tile {int(row['tile']):,} with {format_bytes(int(row['total_including_gaps']), units)}{of}"
    over = int((totals["over_bytes"] > 0).sum())
    return f"{text}; {format_count(over)} of {format_count(len(totals))} tiles do not fit" if over else text


def _number_of_tiles(source: TableSource, chosen: Integers | None) -> str:
    count = source.count("tile_memory") if chosen is None else len(chosen)
    return counted(count, "tile")


def _lines(ax: Axes) -> list[Artist]:
    return list(ax.get_legend_handles_labels()[0])
