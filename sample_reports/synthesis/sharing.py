"""How elements are dealt out to tiles."""

from __future__ import annotations

import numpy as np

from .graph import TileVector
from .machine import Machine
from .noise import Noise


def deal_out(elements: int, machine: Machine, noise: Noise, key: str, spread: float, grain: int = 8) -> TileVector:
    """Deal elements out to a contiguous range of an IPU's compute tiles, unevenly by up to a quarter.

    Parameters
    ----------
    elements
        How many; the result adds up to it exactly.
    key
        What the irregularity depends on.
    spread
        The part of the compute tiles that get some, 0..1.
    grain
        Elements that stay together on a tile.

    Returns
    -------
    TileVector
        Elements by tile, shape (tiles_per_ipu,).
    """
    grains = -(-elements // grain)
    tiles = max(1, min(grains, int(spread * machine.compute_tiles)))
    first = noise.integer(f"{key}:first", 0, machine.compute_tiles - tiles + 1)
    weights = np.cumsum(1024 + noise.integers(f"{key}:share", 0, 256, tiles))  # whole numbers add up alike everywhere
    ends = np.minimum(weights * grains // weights[-1] * grain, elements)
    dealt = np.zeros(machine.tiles_per_ipu, np.int64)
    dealt[first : first + tiles] = np.diff(ends, prepend=0)
    return dealt
