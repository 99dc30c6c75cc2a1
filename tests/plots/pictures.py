"""Reference pictures: how they are drawn, and how one is compared with another.

``python -m tests.plots.pictures`` draws them anew, when a plot was changed on purpose; look at them then.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.image import imread

from pvanalyse import Report, open_report
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import figure_axes, picture
from tests.conftest import SAMPLES

BASELINE = Path(__file__).parent / "baseline"
DRAWN_WITH = "3.11"  # the version of matplotlib, as layout moves between versions
SIZE, DPI = (8.0, 4.5), 60
BLOCK = 8  # pixels: less than a bar, more than what differs between two ways to smooth an edge
TOLERANCE = 0.12  # of full brightness, of the worst block

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in KINDS},
    "memory-by-tile-region": ("memory-by-tile", {"by": "region", "ipu": 0}),
    "memory-by-tile-liveness": ("memory-by-tile", {"by": "liveness", "worst": 20}),
    "liveness-always-live": ("liveness", {"always_live": True}),
    "timeline-flame": ("timeline", {"view": "flame", "run": 1, "begin": 0, "end": 40_000}),
    "overlap": ("overlap", {"run": 1}),
    "bsp": ("bsp", {"run": 1, "begin": 0, "end": 200_000}),
}
"""Name of each reference picture, with its kind and options."""
OF_OTHERS = {"bsp": "replicated"}
"""Samples of cases that the usual one has no data for."""


def draw(report: Report, case: str) -> Axes:
    kind, options = CASES[case]
    with style.context("default"):
        return KINDS[kind].load()(report, **options, ax=figure_axes(SIZE, DPI))


def png(axes: Axes) -> bytes:
    with style.context("default"):
        return picture(axes, "png", DPI)


def worst_block(first: bytes, second: bytes) -> float:
    """Return the largest difference of mean brightness of a block of pixels, of any colour: 0 to 1."""
    blocks = [_blocks(imread(BytesIO(data), format="png")) for data in (first, second)]
    return 1.0 if blocks[0].shape != blocks[1].shape else float(np.abs(blocks[0] - blocks[1]).max())


def _blocks(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    height, width = (length // BLOCK * BLOCK for length in pixels.shape[:2])
    colours = pixels[:height, :width, :3]
    return colours.reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK, 3).mean(axis=(1, 3))


def sample(case: str = "") -> Report:
    return open_report(SAMPLES / OF_OTHERS.get(case, "pipelined/training"))


if __name__ == "__main__":
    BASELINE.mkdir(exist_ok=True)
    for name in CASES:
        with sample(name) as opened:
            (BASELINE / f"{name}.png").write_bytes(png(draw(opened, name)))
