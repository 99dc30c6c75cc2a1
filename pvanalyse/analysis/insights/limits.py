"""From where on something is worth saying."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of the rules; all but the sizes and counts are shares of one.

    Attributes
    ----------
    little_headroom
        A program that fits with less than this share of a tile's memory free on its fullest tile is warned of.
    nearly_full
        From this share of a tile's memory on the fullest tile on, memory is short: savings become advice, not remarks.
    outlier
        How far the fullest tile stands above the 99th percentile of all, as a share of a tile's memory.
    tile_balance
        Mean over fullest tile; below it, tiles are filled unevenly.
    spread
        An IPU filled less than this, with tiles out of memory, has room for what does not fit.
    gaps, instrumentation, exchange_code, vertex_state
        Share of the memory in use.
    always_live
        Share of always-live bytes in the sum of always-live bytes and of each tile's peak of the others.
    peak_concentration, peak_variables
        Share of the liveness peak that so many variables hold.
    long_lifetime, recomputation
        Activations live for this share of all steps are candidates for recomputation; their share of the peak.
    batch
        Share of the peak that grows with the batch.
    fp16
        What halving variables of type float saves on the tiles looked at, as a share of a tile's memory.
    fp16_tiles
        How many of the fullest tiles are looked at for that.
    profile_bytes
        Size of profile.pop from which on it is large.
    shown
        How many tiles and variables an insight names at most.
    """

    little_headroom: float = 0.05
    nearly_full: float = 0.8
    outlier: float = 0.05
    tile_balance: float = 0.6
    spread: float = 0.9
    gaps: float = 0.05
    instrumentation: float = 0.02
    exchange_code: float = 0.15
    vertex_state: float = 0.15
    always_live: float = 0.6
    peak_concentration: float = 0.4
    peak_variables: int = 3
    long_lifetime: float = 0.25
    recomputation: float = 0.2
    batch: float = 0.5
    fp16: float = 0.05
    fp16_tiles: int = 5
    profile_bytes: int = 500_000_000
    shown: int = 5
