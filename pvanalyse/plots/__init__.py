"""Pictures of a report: each kind is a function of a report that draws into Axes and returns them.

This module only says what there is, so that listing the kinds imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plot.

    Attributes
    ----------
    module, function
        Where its function is, below ``pvanalyse.plots``.
    doc
        What it shows, in a sentence.
    options
        Names of the function's arguments that a command line can give.
    size
        Width and height of the figure in inches, when none is given.
    """

    module: str
    function: str
    doc: str
    options: tuple[str, ...]
    size: tuple[float, float] = (11.0, 5.0)

    def load(self) -> Callable[..., Axes]:
        """Import the function."""
        from importlib import import_module

        function: Callable[..., Axes] = getattr(import_module(f"pvanalyse.plots.{self.module}"), self.function)
        return function


FORMATS = ("png", "svg", "pdf")
"""What a picture can be."""

_TILES = ("tiles", "ipu", "worst")
_WHEN = ("run", "ipu", "begin", "end")

KINDS: dict[str, Kind] = {
    "memory-by-tile": Kind(
        "memory", "memory_by_tile", "What fills each tile, and whether it fits.", ("by", *_TILES, "units"), (12.0, 5.0)
    ),
    "categories": Kind(
        "memory", "categories", "Bytes of each storage category.", (*_TILES, "units"), (10.0, 5.5)
    ),
    "tile-histogram": Kind(
        "memory", "tile_histogram", "How full the tiles are: how many hold how much.", ("column", *_TILES, "units"),
        (9.0, 5.0),
    ),
    "tile-map": Kind(
        "floor_plan", "tile_map", "How full each tile is, on a grid by tile number.", ("column", "units"), (8.5, 6.0)
    ),
    "memory-map": Kind(
        "memory_map", "memory_map", "What lies where, and when, in the memory of one tile.", ("tile", "units"),
        (12.0, 7.0),
    ),
    "liveness": Kind(
        "liveness", "liveness", "Live memory at each step of the program, and its peak.",
        ("always_live", *_TILES, "units"),
    ),
    "peak-variables": Kind(
        "liveness", "peak_variables", "The largest variables that are live at the peak, or at another step.",
        ("step", "count", *_TILES, "units"), (11.0, 6.0),
    ),
    "lifetimes": Kind(
        "liveness", "lifetimes", "When the largest variables are live.", ("pattern", "count", "units"), (12.0, 7.0)
    ),
    "timeline": Kind(
        "timeline", "timeline", "What each IPU did when, by kind of program or as nested groups.",
        ("view", *_WHEN), (14.0, 6.0),
    ),
    "bsp": Kind(
        "bsp", "bsp", "What each tile did when: compute, exchange, or synchronise and wait.",
        ("tiles", "worst", *_WHEN), (14.0, 7.0),
    ),
    "overlap": Kind(
        "overlap", "overlap", "When each IPU computes, moves bytes to and from the host, and both at once.", _WHEN,
        (12.0, 5.0),
    ),
    "cycles-by-type": Kind(
        "execution", "cycles_by_type", "Cycles of each IPU by type of program.", ("run", "ipu"), (12.0, 4.5)
    ),
    "imbalance": Kind(
        "execution", "imbalance", "Programs whose tiles wait the most for each other.", ("count", "run", "ipu"),
        (11.0, 6.0),
    ),
    "bandwidth": Kind(
        "execution", "bandwidth", "Bytes to and from host, remote buffers and other IPUs, over time.",
        (*_WHEN, "units"), (12.0, 5.0),
    ),
}  # fmt: skip
"""Every kind by the name that the command line gives it."""

COMPARISON_KINDS: dict[str, Kind] = {
    "tiles": Kind("comparison", "tiles", "How much more or less each tile holds.", ("units",), (12.0, 5.0)),
    "liveness": Kind(
        "comparison", "liveness", "The live memory of the reports at each step, one over the other.", ("units",)
    ),
    "contributions": Kind(
        "comparison", "contributions", "What changed a metric, from the one value to the other.",
        ("metric", "report", "count", "units"), (12.0, 6.0),
    ),
}  # fmt: skip
"""The plots of a comparison of reports; their functions take one instead of a report."""
