"""Bulk-synchronous parallel execution as a picture: a row for each tile, coloured by what it does when."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.execution_trace import KINDS
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.analysis.selection import number_of_tiles, select_tiles
from pvanalyse.analysis.tile_activity import ACTIVITY_COLUMNS, tile_activity
from pvanalyse.errors import UsageError
from pvanalyse.plots import KINDS as PLOTS
from pvanalyse.plots.figures import legend, new_axes, pixel_rows, titles
from pvanalyse.plots.palette import INK
from pvanalyse.plots.time_axis import Window, several
from pvanalyse.plots.timeline import COLOURS
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted

_NAMES = {"sync": "sync or wait"}
_MOST_TICKS = 12


def bsp(
    source: TableSource,
    tiles: str | Sequence[int] | None = None,
    worst: int | None = None,
    run: int | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    begin: int | None = None,
    end: int | None = None,
    units: ByteUnits = "binary",  # noqa: ARG001  (every plot takes it)
    ax: Axes | None = None,
) -> Axes:
    """Draw what each tile did when: compute, exchange, or synchronise and wait.

    :func:`pvanalyse.analysis.tile_activity.tile_activity` says how that is told from ``cycles_by_tile`` of the steps
    and the bounds of their intervals. Colours are mixed by the shares of a column's cycles; white is between steps.
    Where there are more tiles than rows of pixels, tiles at equal distances are shown, which the caption says.

    Parameters
    ----------
    source
        A report.
    tiles, worst
        Which tiles, see :func:`pvanalyse.analysis.selection.select_tiles`; by default those of every IPU on which
        anything ran.
    run, ipu, begin, end, units, ax
        See :func:`pvanalyse.plots.timeline.timeline`; an IPU's tiles are chosen with it.

    Raises
    ------
    UsageError
        There is no such tile, run or IPU, or the window is empty.
    NotCaptured
        The report has no execution steps, or the cycles of no step are known by tile.
    """
    frame = pd.concat(interval_batches(source, "steps", several(run), several(ipu), ACTIVITY_COLUMNS))
    frame = frame.rename(columns={"begin": "active", "end": "done", "all_begin": "begin", "all_end": "end"})
    window = Window(frame[frame["type"] != "SyncAns"], begin, end)
    chosen = _tiles(source, select_tiles(source, tiles, ipu, worst), window.frame)
    ax = new_axes(ax, PLOTS["bsp"].size)
    every = -(-len(chosen) // pixel_rows(ax))
    shown, edges = chosen[::every], window.edges(ax)
    shares = tile_activity(source, _absolute(window), shown, edges + window.first)
    ax.imshow(_mixed(shares), extent=(window.low, window.high, len(shown), 0), aspect="auto", interpolation="nearest")
    window.label(ax, edges, f"its mean{f'; of every {every:,} tiles the first is shown' if every > 1 else ''}")
    _label_rows(ax, source, shown)
    titles(ax, "Tiles in compute, exchange and sync", f"{counted(len(shown), 'tile')}, {window.duration(source)}")
    legend(ax, [Patch(color=COLOURS[kind], label=_NAMES.get(kind, kind))
                for kind, mine in zip(KINDS, shares, strict=True) if mine.any()],
           bbox_to_anchor=(1.05, 1.0))  # fmt: skip
    return ax


def _tiles(source: TableSource, chosen: Integers | None, steps: pd.DataFrame) -> Integers:
    """Return the tiles that were chosen, in order, or those of the IPUs on which anything took time."""
    if chosen is not None:
        return np.sort(chosen)
    number = number_of_tiles(source)
    per_ipu = int(only_row(source, "target").get("tiles_per_ipu") or number)
    ran = steps.loc[steps["end"] > steps["begin"], "ipu"].unique()
    tiles = np.arange(number)
    tiles = tiles[np.isin(tiles // max(1, per_ipu), ran)]
    if not len(tiles):
        raise UsageError("nothing in the window took any time on any tile")
    return tiles


def _absolute(window: Window) -> pd.DataFrame:
    frame = window.frame
    moved = {"all_begin": frame["begin"] + window.first, "all_end": frame["end"] + window.first}
    return frame.assign(**moved, begin=frame["active"], end=frame["done"])


def _mixed(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the colour of each pixel, shape (tiles, columns, 3)."""
    colours = np.array([to_rgb(COLOURS[kind]) for kind in KINDS])
    rest = 1 - shares.sum(axis=0)
    mixed: npt.NDArray[np.float64] = np.einsum("ktc,kr->tcr", shares, colours) + rest[:, :, None]
    return np.clip(mixed, 0, 1)


def _label_rows(ax: Axes, source: TableSource, tiles: Integers) -> None:
    ax.set_ylabel("tile")
    ticks = MaxNLocator(_MOST_TICKS, integer=True, steps=[1, 2, 4, 5, 10]).tick_values(0, len(tiles) - 1)
    rows = [int(tick) for tick in ticks if 0 <= tick < len(tiles)]
    ax.set_yticks([row + 0.5 for row in rows], [f"{tiles[row]:,}" for row in rows])
    ipu = tiles // max(1, int(only_row(source, "target").get("tiles_per_ipu") or len(tiles)))
    firsts = [0, *(np.flatnonzero(np.diff(ipu)) + 1).tolist(), len(tiles)]
    for first, last in pairwise(firsts):
        if first:
            ax.axhline(first, color=INK, linewidth=0.8)
        if len(firsts) > 2:
            ax.annotate(f"IPU {ipu[first]}", (1, (first + last) / 2), (3, 0), xycoords=("axes fraction", "data"),
                        textcoords="offset points", va="center", ha="left", rotation=-90, fontsize="small",
                        color=INK)  # fmt: skip
