"""Axes of bytes and of counts: ticks at values that a person would choose."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import Formatter, Locator, MaxNLocator

from pvanalyse.units import ByteUnits

_NAMES = {"binary": ("B", "KiB", "MiB", "GiB", "TiB"), "si": ("B", "kB", "MB", "GB", "TB")}
_MOST_TICKS = 9
_INCHES_ACROSS, _INCHES_UP = 0.95, 0.35  # of a tick with its label


class ByteLocator(Locator):
    """Ticks at multiples of a power of two, or of 1, 2 or 5 times a power of ten for other units."""

    def __init__(self, units: ByteUnits = "binary") -> None:
        self._units = units

    def __call__(self) -> Any:
        """Return the ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between two numbers of bytes."""
        low, high = sorted((float(vmin), float(vmax)))
        step = _step((high - low) / self._most(), self._units)
        return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step

    def _most(self) -> float:
        """Return how many ticks there is room for."""
        if not isinstance(self.axis, Axis):
            return _MOST_TICKS
        across = isinstance(self.axis, XAxis)
        extent = self.axis.axes.get_window_extent()
        figure = self.axis.axes.get_figure(root=True)
        inches = (extent.width if across else extent.height) / (figure.dpi if figure is not None else 100)
        return min(max(1.5, inches / (_INCHES_ACROSS if across else _INCHES_UP)), _MOST_TICKS)


def _step(at_least: float, units: ByteUnits) -> int:
    if at_least <= 1:
        return 1
    if units == "binary":
        return 1 << int(np.ceil(np.log2(at_least)))
    decade: int = 10 ** int(np.floor(np.log10(at_least)))
    return next(factor * decade for factor in (1, 2, 5, 10, 20) if factor * decade >= at_least)


class ByteFormatter(Formatter):
    """Ticks of one axis in one unit, the largest in which they are whole numbers."""

    def __init__(self, units: ByteUnits = "binary") -> None:
        self._units = units
        self._all: list[int] = []

    def set_locs(self, locs: Any) -> None:
        """Take the ticks that will be written, which decide the unit together."""
        self._all = [int(tick) for tick in locs]

    def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002  (Formatter's signature)
        """Return the text of one tick."""
        if self._units == "bytes":
            return f"{x:,.0f}"
        base = 1024 if self._units == "binary" else 1000
        names = _NAMES[self._units]
        powers = range(len(names) - 1, 0, -1)
        power = next((power for power in powers if all(tick % base**power == 0 for tick in [*self._all, int(x)])), 0)
        return f"{int(x) // base**power:,} {names[power]}" if x else "0"


def byte_axis(axis: Axis, units: ByteUnits) -> None:
    """Give an axis of bytes its ticks."""
    axis.set_major_locator(ByteLocator(units))
    axis.set_major_formatter(ByteFormatter(units))


def count_axis(axis: Axis) -> None:
    """Give an axis of whole numbers its ticks, with thousands separators."""
    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True, steps=[1, 2, 4, 5, 10]))
    axis.set_major_formatter(lambda value, _at: f"{value:,.0f}" if float(value).is_integer() else "")
