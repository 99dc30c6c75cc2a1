"""Reproducible irregularity: numbers that depend on a seed and a name, and on nothing else.

NumPy promises no stable stream for its generators, and one stream for everything would make each number depend on
all that were drawn before it. Here every number has a key, so that adding a variable leaves all others as they were.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Noise:
    """Keyed pseudo-random numbers: SplitMix64 (Steele, Lea and Flood, 2014) started from a hash of seed and key."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def words(self, key: str, count: int) -> NDArray[np.uint64]:
        """Return `count` uniformly distributed 64-bit words, shape (count,)."""
        digest = hashlib.blake2b(f"{self.seed}:{key}".encode(), digest_size=8).digest()
        start = np.uint64(int.from_bytes(digest, "little"))
        words: NDArray[np.uint64] = start + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))

    def fractions(self, key: str, count: int) -> NDArray[np.float64]:
        """Return `count` numbers in [0, 1), shape (count,)."""
        return (self.words(key, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, key: str, low: int, high: int, count: int) -> NDArray[np.int64]:
        """Return `count` whole numbers in [low, high), shape (count,)."""
        return low + (self.words(key, count) % np.uint64(high - low)).astype(np.int64)

    def integer(self, key: str, low: int, high: int) -> int:
        """Return one whole number in [low, high)."""
        return int(self.integers(key, low, high, 1)[0])
