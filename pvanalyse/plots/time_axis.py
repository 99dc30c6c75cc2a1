"""The axis of a picture over time: its window, its columns, and what a column shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from pvanalyse.analysis.columns import Integers, Reals, only_row
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.plots.figures import caption, pixel_columns
from pvanalyse.plots.scales import count_axis
from pvanalyse.tables import TableSource, table
from pvanalyse.units import counted, format_count, format_seconds


class Window:
    """The cycles that a picture shows, counted from the first of what was chosen.

    Attributes
    ----------
    first
        The cycle that they are counted from.
    low, high
        From where to where.
    frame
        The intervals that reach into the window, their ``begin`` and ``end`` counted likewise.

    Raises
    ------
    NotCaptured
        There are no intervals.
    UsageError
        The window is empty.
    """

    def __init__(self, frame: pd.DataFrame, begin: int | None, end: int | None) -> None:
        if not len(frame):
            raise NotCaptured("execution_step_ipus", table("execution_step_ipus").capture)
        self.first = int(frame["begin"].min())
        frame = frame.assign(begin=frame["begin"] - self.first, end=frame["end"] - self.first)
        last = max(1, int(frame["end"].max()))
        self.low, self.high = begin or 0, last if end is None else end
        if not 0 <= self.low < self.high or self.low >= last:
            raise UsageError(
                f"the window from cycle {self.low:,} to {self.high:,} is empty; there are cycles 0 to {last:,}"
            )
        self.frame = frame[(frame["end"] >= self.low) & (frame["begin"] < self.high)].reset_index(drop=True)

    def edges(self, ax: Axes, pixels: int = 1) -> Reals:
        """Return the edges of the columns, of so many pixels each, but of no less than a cycle."""
        columns = max(1, min(self.high - self.low, pixel_columns(ax) // pixels))
        return np.linspace(self.low, self.high, columns + 1)

    def label(self, ax: Axes, edges: Reals, remark: str) -> None:
        """Label the axis, and say what a column is."""
        ax.set_xlim(self.low, self.high)
        count_axis(ax.xaxis)
        ax.set_xlabel(f"cycles since cycle {format_count(self.first)} of each IPU")
        caption(ax, [f"a column is {counted(round(edges[1] - edges[0]), 'cycle')}: {remark}"])

    def duration(self, source: TableSource) -> str:
        """Return how long it is, for a person."""
        clock = only_row(source, "target").get("clock_frequency")
        cycles = self.high - self.low
        return f"{counted(cycles, 'cycle')}{f', {format_seconds(cycles / clock)}' if clock else ''}"


def spread(begin: Integers, end: Integers, size: Integers, edges: Reals) -> Reals:
    """Return the mean of each column, per cycle, of sizes that are spread evenly over their intervals.

    An interval of no length counts as one cycle.
    """
    first = begin.astype(np.float64)
    last = np.maximum(end.astype(np.float64), first + 1)
    rate = size / (last - first)
    return np.asarray(np.diff(_ramps(first, rate, edges) - _ramps(last, rate, edges)) / np.diff(edges))


def _ramps(starts: Reals, rate: Reals, edges: Reals) -> Reals:
    """Return at each edge the sum of ramps that rise at a rate from where they start."""
    order = np.argsort(starts, kind="stable")
    starts, rate = starts[order], rate[order]
    rates, offsets = (np.concatenate(([0.0], np.cumsum(one))) for one in (rate, rate * starts))
    at = np.searchsorted(starts, edges, "right")
    return np.asarray(rates[at] * edges - offsets[at])


def several(numbers: int | Sequence[int] | None) -> list[int] | None:
    """Return one number or several as a list."""
    return None if numbers is None else [int(one) for one in np.atleast_1d(np.asarray(numbers, np.int64))]
