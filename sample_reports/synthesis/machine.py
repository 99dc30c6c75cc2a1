"""The machine that is modelled: a Mk2 IPU, or an IPU Model with fewer tiles."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_PER_TILE = 638_976
TILES_PER_MK2_IPU = 1_472
CLOCK_HZ = 1_330_000_000
INTERLEAVED_BEGIN = 212_992
"""Tile byte offset of the interleaved memory: 13 banks of 16 KiB lie below it."""
BANK_BYTES = 16_384
MEMORY_BASE = 0x4C000
"""Address of tile byte offset 0 in the executables of a Mk2 IPU."""
HOST_BYTES_PER_CYCLE = 6
LINK_BYTES_PER_CYCLE = 24


@dataclass(frozen=True)
class Machine:
    """What a program is compiled for.

    Attributes
    ----------
    ipus, replicas
        All IPUs together, and how many copies of the program share them.
    tiles_per_ipu
        1,472 on the hardware; the IPU Model takes any number.
    io_tiles
        Tiles at the end of each IPU that only talk to the host, so that computing can go on meanwhile.
    """

    ipus: int
    replicas: int = 1
    tiles_per_ipu: int = TILES_PER_MK2_IPU
    io_tiles: int = 0

    @property
    def stages(self) -> int:
        """IPUs of one replica."""
        return self.ipus // self.replicas

    @property
    def tiles(self) -> int:
        """Tiles of all IPUs."""
        return self.ipus * self.tiles_per_ipu

    @property
    def compute_tiles(self) -> int:
        """Tiles of an IPU that compute."""
        return self.tiles_per_ipu - self.io_tiles

    @property
    def kind(self) -> str:
        """Target type: hardware, or the model where the number of tiles is not the hardware's."""
        return "Ipu" if self.tiles_per_ipu == TILES_PER_MK2_IPU else "IpuModel"
