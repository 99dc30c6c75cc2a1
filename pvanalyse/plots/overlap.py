"""Compute and I/O as two strips for each IPU, with what they overlap between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from pvanalyse.analysis.columns import Reals
from pvanalyse.analysis.execution_trace import COPIES
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.analysis.stretches import Stretches, coverage, length, merged, union
from pvanalyse.plots import KINDS as PLOTS
from pvanalyse.plots.figures import legend, new_axes, row_labels, titles
from pvanalyse.plots.palette import INK
from pvanalyse.plots.time_axis import Window, several
from pvanalyse.plots.timeline import COLOURS
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted, format_fraction

_BOTH = "#D55E00"
_COMPUTE = ("OnTileExecute",)


def overlap(
    source: TableSource,
    run: int | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    begin: int | None = None,
    end: int | None = None,
    units: ByteUnits = "binary",  # noqa: ARG001  (every plot takes it)
    ax: Axes | None = None,
) -> Axes:
    """Draw when each IPU computes, when it moves bytes to or from the host, and when both go on.

    Compute is the union of OnTileExecute, I/O that of StreamCopyMid (the part of a stream copy in which bytes move),
    each from ``active_from_max`` to ``active_to_max``; a strip is filled as high as the share of a column's cycles.
    Beside an IPU is which share of the smaller of the two both go on: that of
    :func:`pvanalyse.analysis.execution_details.compute_io_overlap`, but over all that is in the window.

    Parameters
    ----------
    source
        A report.
    run, ipu, begin, end, units, ax
        See :func:`pvanalyse.plots.timeline.timeline`.

    Raises
    ------
    UsageError
        There is no such run or IPU, or the window is empty.
    NotCaptured
        The report has no execution.
    """
    frame = pd.concat(interval_batches(source, None, several(run), several(ipu), ["ipu", "type", "begin", "end"]))
    window = Window(frame[frame["type"] != "SyncAns"], begin, end)
    ax = new_axes(ax, PLOTS["overlap"].size)
    edges = window.edges(ax)
    rows: list[str] = []
    shares: list[str] = []
    for number, part in window.frame.groupby("ipu"):
        if rows:
            ax.axhline(len(rows) - 0.5, color=INK, linewidth=0.8)
        compute, moves = (_within(part[part["type"].isin(types)], window) for types in (_COMPUTE, COPIES))
        _draw(ax, len(rows), compute, moves, edges)
        rows += [f"IPU {number}  compute", "both", "I/O"]
        shares += ["", _share(compute, moves), ""]
    row_labels(ax, rows, numbers=shares)
    window.label(ax, edges, "a strip is filled as high as the share of its cycles")
    titles(ax, "Overlap of compute and I/O", f"{window.duration(source)}; on the right, the share of the smaller")
    colours = {"compute": COLOURS["compute"], "both": _BOTH, "I/O": COLOURS["host"]}
    legend(ax, [Patch(color=colour, label=name) for name, colour in colours.items()], bbox_to_anchor=(1.09, 1.0))
    return ax


def _within(frame: pd.DataFrame, window: Window) -> Stretches:
    """Return the union of the intervals, as far as they are in the window."""
    begin, end = (frame[name].to_numpy(np.int64) for name in ("begin", "end"))
    return merged(np.maximum(begin, window.low), np.minimum(end, window.high))


def _draw(ax: Axes, row: int, compute: Stretches, moves: Stretches, edges: Reals) -> None:
    first, second, either = (coverage(*one, edges) for one in (compute, moves, union([compute, moves])))
    strips = ((first, COLOURS["compute"]), (np.maximum(0, first + second - either), _BOTH), (second, COLOURS["host"]))
    for at, (share, colour) in enumerate(strips):
        bottom = row + at + 0.42  # rows go down
        ax.stairs(bottom - 0.84 * share, edges, baseline=bottom, fill=True, color=colour, linewidth=0)


def _share(compute: Stretches, moves: Stretches) -> str:
    sizes = length(compute), length(moves)
    both = sum(sizes) - length(union([compute, moves]))
    return f"{format_fraction(both / min(sizes))}, {counted(both, 'cycle')}" if both else "never"
