"""How many bytes are live at each compile-time step."""

from __future__ import annotations

import numpy as np

from .graph import TileVector, Variable


def live_bytes(variables: list[Variable], steps: int, tiles: int) -> tuple[TileVector, TileVector, TileVector]:
    """Add up the variables of one IPU.

    Returns
    -------
    always
        Always-live bytes by tile.
    peak
        The most bytes of not-always-live variables that a tile holds at any step, by tile.
    by_step
        Not-always-live bytes of all tiles together, by step.
    """
    always = np.zeros(tiles, np.int64)
    change = np.zeros((steps + 1, tiles), np.int64)
    for variable in variables:
        if not variable.intervals:
            always += variable.bytes
        for begin, end in variable.intervals:
            change[begin] += variable.bytes
            change[end] -= variable.bytes
    live = np.cumsum(change, axis=0, out=change)[:steps]
    return always, live.max(axis=0), live.sum(axis=1)
