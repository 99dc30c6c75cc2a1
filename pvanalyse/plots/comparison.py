"""Plots of reports compared: what each tile holds more or less, liveness, and what changed a metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pvanalyse.analysis.columns import only_row
from pvanalyse.analysis.comparison import Comparison
from pvanalyse.analysis.contributions import explaining
from pvanalyse.analysis.side_by_side import LETTERS, change_of
from pvanalyse.errors import UsageError
from pvanalyse.plots import COMPARISON_KINDS
from pvanalyse.plots.figures import (
    caption,
    label,
    legend,
    name_width,
    new_axes,
    pixel_columns,
    row_labels,
    titles,
)
from pvanalyse.plots.palette import ACCENT, INK, REST
from pvanalyse.plots.scales import byte_axis, count_axis
from pvanalyse.plots.tiles_axis import label_tiles, tile_columns
from pvanalyse.render.metrics import unit_of
from pvanalyse.units import ByteUnits, counted, format_bytes, format_count

MORE, LESS = "#D55E00", ACCENT
"""What is larger than in the first report, and what is smaller; told apart without seeing red and green."""
_SERIES = (INK, "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("-", "--", ":", "-.")
DEFAULT_METRIC = "memory.tile_max_including_gaps"


class ComparisonPlots:
    """``comparison.plot``: every plot of a comparison as a method that returns Axes."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def __getattr__(self, name: str) -> Callable[..., Axes]:
        if name not in COMPARISON_KINDS:
            raise AttributeError(f"there is no plot {name!r}; there are: {', '.join(COMPARISON_KINDS)}")
        return partial(COMPARISON_KINDS[name].load(), self._comparison)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *COMPARISON_KINDS]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {kind.doc}" for name, kind in COMPARISON_KINDS.items())


def tiles(comparison: Comparison, units: ByteUnits = "binary", ax: Axes | None = None) -> Axes:
    """Draw how much more or less each tile holds than in the first report, including gaps.

    With more tiles than there are pixels, each column shows the largest change of its tiles, which the caption says.

    Parameters
    ----------
    comparison
        Reports of the same tiles.
    units
        Of the ticks: ``binary``, ``si`` or ``bytes``.
    ax
        Axes to draw into; by default those of a new figure.

    Raises
    ------
    UsageError
        The reports have different tiles.
    NotCaptured
        A report has no memory of tiles.
    """
    frame = comparison.tiles.sort_values("tile", ignore_index=True)
    ax = new_axes(ax, COMPARISON_KINDS["tiles"].size)
    tiles_per_ipu = int(only_row(comparison.sources[0], "target").get("tiles_per_ipu", 0))
    several = len(comparison.sources) > 2
    said = []
    for at in range(1, len(comparison.sources)):
        change = frame[change_of(at)].to_numpy(np.int64)
        columns = tile_columns(frame["tile"].to_numpy(np.int64), np.abs(change), tiles_per_ipu, pixel_columns(ax))
        shown = change[columns.shown]
        if several:
            ax.stairs(shown, columns.edges, baseline=None, **_line(at))
        else:
            for sign, colour in ((1, MORE), (-1, LESS)):
                ax.stairs(np.where(shown * sign > 0, shown, 0), columns.edges, fill=True, color=colour)
        said.append(f"{LETTERS[at].upper()}: {_moved(change, units)}")
    ax.axhline(0, color=INK, linewidth=0.6)
    byte_axis(ax.yaxis, units)
    label_tiles(ax, columns, tiles_per_ipu, "others left out")
    caption(ax, [columns.remark().replace("fullest", "most changed")])
    titles(ax, "Change of each tile's memory from A, including gaps", "\n".join(said))
    if several:
        legend(ax, [_handle(comparison, at) for at in range(1, len(comparison.sources))])
    return ax


def liveness(comparison: Comparison, units: ByteUnits = "binary", ax: Axes | None = None) -> Axes:
    """Draw the live memory of one replica of each report at each step, one curve over the other.

    Steps are those of each report's own program; a column of pixels shows the most of its steps.

    Parameters
    ----------
    comparison, units, ax
        See :func:`tiles`.

    Raises
    ------
    NotCaptured
        A report has no liveness.
    """
    ax = new_axes(ax, COMPARISON_KINDS["liveness"].size)
    peaks = []
    highest = most = 1
    for at in range(len(comparison.sources)):
        curve = comparison.curve(at)
        live, step = curve["bytes"].to_numpy(np.int64), curve["step"].to_numpy(np.int64)
        every = -(-len(live) // pixel_columns(ax))
        starts = np.arange(0, len(live), every)
        top = int(live.argmax())
        heights, edges = np.maximum.reduceat(live, starts), np.append(step[starts], step[-1] + 1)
        if at:
            ax.stairs(heights, edges, baseline=None, **_line(at))
        else:  # an area, which is seen where the curve of another report runs along its edge
            ax.stairs(heights, edges, fill=True, color=REST)
        colour = _line(at)["color"]
        ax.plot([step[top] + 0.5], [live[top]], marker="v", color=colour, linestyle="none", clip_on=False)
        peaks.append(f"{LETTERS[at].upper()}: {format_bytes(int(live[top]), units)} at step {step[top]:,}")
        highest, most = max(highest, int(live[top])), max(most, every)
    ax.set_ylim(0, highest * 1.06)
    ax.margins(x=0)
    byte_axis(ax.yaxis, units)
    count_axis(ax.xaxis)
    ax.set_xlabel("step")
    caption(ax, [f"each column shows the most of {most} steps" if most > 1 else ""])
    titles(ax, "Live memory of one replica, not always live", f"peaks: {', '.join(peaks)}")
    first = Patch(color=REST, label=_name(comparison, 0))
    legend(ax, [first, *(_handle(comparison, at) for at in range(1, len(comparison.sources)))])
    return ax


def contributions(
    comparison: Comparison,
    metric: str = DEFAULT_METRIC,
    report: int = 1,
    count: int = 12,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw what changed a metric as a waterfall: from its value in A, contributor by contributor, to the other value.

    Parameters
    ----------
    comparison
        Reports.
    metric
        One that is made of parts, see :mod:`pvanalyse.analysis.breakdowns`.
    report
        1 for B, 2 for C.
    count
        How many contributors have a bar of their own; one more bar stands for the others.
    units, ax
        See :func:`tiles`.

    Raises
    ------
    UsageError
        There is no such metric or report, it is not made of parts, or nothing to count.
    NotCaptured
        A report lacks what the metric is made of.
    """
    if count < 1:
        raise UsageError(f"the number of contributors must be at least 1, not {count:,}")
    whole = comparison.contributions(metric, report)
    before, after = (comparison.breakdown(metric, at).value for at in (0, report))
    listed = explaining(whole).head(count)
    ax = new_axes(ax, COMPARISON_KINDS["contributions"].size)
    steps = listed["change"].tolist()
    names = listed["variable"].where(listed["variable"] != "", listed["category"]).tolist()
    rest = after - before - sum(steps)
    if rest:
        names, steps = [*names, f"{int((whole['change'] != 0).sum()) - len(listed):,} others"], [*steps, rest]
    ends = np.cumsum([before, *steps]).tolist()
    low, high = min(ends), max(ends)
    margin = max(1, high - low) * 0.08
    left = max(0.0, low - margin) if low >= 0 else low - margin
    ax.barh([0, len(steps) + 1], [before - left, after - left], left=left, height=0.75, color=REST)
    ax.barh(range(1, len(steps) + 1), steps, left=ends[:-1], height=0.75,
            color=[MORE if one > 0 else LESS for one in steps])  # fmt: skip
    for at, end in enumerate(ends):  # where a bar ends, the next begins
        ax.plot([end, end], [at - 0.375, at + 1.375], color=INK, linewidth=0.5)
    is_bytes = unit_of(metric).value == "bytes"
    shown = partial(format_bytes, units=units) if is_bytes else format_count
    numbers = [shown(before), *(("+" if one > 0 else "") + shown(one) for one in steps), shown(after)]
    other = LETTERS[report].upper()
    row_labels(ax, ["A", *(label(name, name_width(ax)) for name in names), other], numbers=numbers)
    ax.set_xlim(left, high + margin)
    (byte_axis(ax.xaxis, units) if is_bytes else count_axis(ax.xaxis))
    caption(ax, ["" if left == 0 else "the axis does not begin at 0"])
    change = shown(abs(after - before))
    said = f"{change} {'more' if after >= before else 'less'} in {other}" if after != before else "no change"
    titles(ax, f"What changed {metric} from A to {other}", said)
    return ax


def _line(report: int) -> dict[str, Any]:
    return {"color": _SERIES[report % len(_SERIES)], "linestyle": _DASHES[report // len(_SERIES)], "linewidth": 1.4}


def _handle(comparison: Comparison, report: int) -> Line2D:
    return Line2D([], [], label=_name(comparison, report), **_line(report))


def _name(comparison: Comparison, report: int) -> str:
    return label(f"{LETTERS[report].upper()} {comparison.names[report]}", 32)


def _moved(change: np.ndarray[tuple[int], np.dtype[np.int64]], units: ByteUnits) -> str:
    more, less = change[change > 0], change[change < 0]
    parts = [
        f"{counted(len(some), 'tile')} {what}, at most {format_bytes(int(np.abs(some).max()), units)}"
        for some, what in ((more, "more"), (less, "less"))
        if len(some)
    ]
    return "; ".join(parts) or "no tile changed"
