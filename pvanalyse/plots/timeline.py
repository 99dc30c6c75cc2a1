"""Timelines: what each IPU did when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from pvanalyse.analysis.columns import Reals
from pvanalyse.analysis.execution_trace import KIND_OF_TYPE, KINDS
from pvanalyse.analysis.flame import flame_blocks
from pvanalyse.analysis.intervals import GROUP, interval_batches
from pvanalyse.analysis.stretches import coverage
from pvanalyse.errors import UsageError
from pvanalyse.plots import KINDS as PLOTS
from pvanalyse.plots.figures import label, legend, new_axes, row_labels, titles
from pvanalyse.plots.palette import INK, REST
from pvanalyse.plots.time_axis import Window, several
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted

VIEWS = ("flat", "flame")
"""The views of a timeline."""

COLOURS = {"compute": "#0072B2", "exchange": "#E69F00", "inter-IPU": "#D55E00", "host": "#009E73", "sync": "#999999",
           "other": "#CC79A7"}  # fmt: skip
"""The colour of each kind of program."""
_WAITING = "#A6DCCB"  # a stream copy while no bytes move
_WAITS = ("StreamCopyBegin", "StreamCopyEnd")
_GROUP = "#DDE3E8"
_BESIDE = "SyncAns"
_HALF = 0.42  # of the height of a row, which is 1
_LETTERS_PER_INCH = 15.0
_FEWEST_LETTERS = 5  # fewer are not worth a name


def timeline(
    source: TableSource,
    view: str = "flat",
    run: int | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    begin: int | None = None,
    end: int | None = None,
    units: ByteUnits = "binary",  # noqa: ARG001  (every plot takes it)
    ax: Axes | None = None,
) -> Axes:
    """Draw what each IPU did when.

    Parameters
    ----------
    source
        A report.
    view
        ``flat``: a row for each kind of program, filled as high as the share of the cycles in which it ran.
        ``flame``: nested groups by name of what is in the window, see
        :func:`pvanalyse.analysis.flame.flame_blocks`.
    run, ipu
        Only this run or IPU, or these.
    begin, end
        Only from this cycle to that one, counted from the first cycle of what was chosen.
    units
        Has no effect here.
    ax
        Axes to draw into; by default those of a new figure.

    Raises
    ------
    UsageError
        There is no such view, run or IPU, or the window is empty.
    NotCaptured
        The report has no execution.
    """
    if view not in VIEWS:
        raise UsageError(f"a timeline is {' or '.join(VIEWS)}, not '{view}'")
    columns = ["ipu", "type", "begin", "end", *(["step_id", "name"] if view == "flame" else [])]
    batches = interval_batches(source, None, several(run), several(ipu), columns)
    window = Window(pd.concat([batch[batch["type"] != _BESIDE] for batch in batches]), begin, end)
    ax = new_axes(ax, PLOTS["timeline"].size)
    edges = window.edges(ax)
    draw, remark = (
        (_draw_flat, "it is filled as high as the share of its cycles")
        if view == "flat"
        else (_draw_flame, "grey is what is shorter")
    )
    kinds = [KIND_OF_TYPE.get(kind, "other") for kind in window.frame["type"]]
    draw(ax, window.frame.assign(kind=kinds), edges)
    window.label(ax, edges, f"{remark}; answers to syncs (SyncAns) are left out")
    titles(ax, f"What {counted(window.frame['ipu'].nunique(), 'IPU')} did when", window.duration(source))
    return ax


def _draw_flat(ax: Axes, frame: pd.DataFrame, edges: Reals) -> None:
    present = [kind for kind in KINDS if kind in set(frame["kind"])]
    rows: list[str] = []
    for ipu, part in frame.groupby("ipu"):
        if rows:
            ax.axhline(len(rows) - 0.5, color=INK, linewidth=0.8)
        for kind in present:
            mine = part[part["kind"] == kind]
            if kind == "host":
                _draw_row(ax, len(rows), mine, edges, _WAITING)
                mine = mine[~mine["type"].isin(_WAITS)]
            _draw_row(ax, len(rows), mine, edges, COLOURS[kind])
            rows.append(kind if rows and kind != present[0] else f"IPU {ipu}  {kind}")
    row_labels(ax, rows)
    if "host" in present:
        moves, waits = Patch(color=COLOURS["host"], label="bytes move"), Patch(color=_WAITING, label="begins or ends")
        legend(ax, [moves, waits], title="host copy", title_fontsize="small", alignment="left")


def _draw_row(ax: Axes, row: int, frame: pd.DataFrame, edges: Reals, colour: str) -> None:
    share = coverage(frame["begin"].to_numpy(np.int64), frame["end"].to_numpy(np.int64), edges)
    bottom = row + _HALF  # rows go down
    ax.stairs(bottom - 2 * _HALF * share, edges, baseline=bottom, fill=True, color=colour, linewidth=0)


def _draw_flame(ax: Axes, frame: pd.DataFrame, edges: Reals) -> None:
    rows: list[str] = []
    for ipu, part in frame.groupby("ipu"):
        blocks = flame_blocks(part)
        blocks["kind"] = [GROUP if kind == GROUP else KIND_OF_TYPE.get(kind, "other") for kind in blocks["type"]]
        if rows:
            ax.axhline(len(rows) - 0.5, color=INK, linewidth=0.8)
        for depth, row in blocks.groupby("depth"):
            _draw_depth(ax, len(rows), row, edges)
            rows.append(f"IPU {ipu}" if depth == 0 else "")
    row_labels(ax, rows)
    present = set(frame["kind"])
    kinds = [Patch(color=COLOURS[kind], label=kind) for kind in KINDS if kind in present]
    legend(ax, [Patch(color=_GROUP, label="group"), *kinds])


def _draw_depth(ax: Axes, row: int, blocks: pd.DataFrame, edges: Reals) -> None:
    """Draw the blocks of at least a column as they are, with a name where there is room, and the others together."""
    begin, end = (blocks[name].to_numpy(np.int64) for name in ("begin", "end"))
    left = np.maximum(begin, edges[0])
    width = np.minimum(end, edges[-1]) - left
    seen = width >= edges[1] - edges[0]
    small = coverage(begin[~seen], end[~seen], edges) > 0
    low, high = row + _HALF, row - _HALF
    ax.stairs(np.where(small, high, low), edges, baseline=low, fill=True, color=REST, linewidth=0)
    kinds = blocks["kind"].to_numpy()
    for kind in (GROUP, *KINDS):
        bars = [(left[at], width[at]) for at in np.flatnonzero(seen & (kinds == kind))]
        colour = COLOURS.get(kind, _GROUP)
        ax.broken_barh(bars, (high, low - high), facecolor=colour, edgecolor="white", linewidth=0.4)
    names = blocks["name"].to_numpy()
    letters = _LETTERS_PER_INCH * _inches(ax) / (edges[-1] - edges[0])  # per cycle
    free = edges[0]  # blocks may overlap, names may not
    for at in np.flatnonzero(seen):
        start, stop = max(free, left[at]), left[at] + width[at]
        room = int((stop - start) * letters)
        if room >= _FEWEST_LETTERS:
            ink = INK if kinds[at] == GROUP else "white"
            ax.text((start + stop) / 2, row, label(names[at] or "(no name)", room), ha="center", va="center",
                    fontsize=6, color=ink, clip_on=True, parse_math=False)  # fmt: skip
            free = stop


def _inches(ax: Axes) -> float:
    figure = ax.get_figure(root=True)
    return ax.get_window_extent().width * 0.8 / (figure.dpi if figure is not None else 100)
