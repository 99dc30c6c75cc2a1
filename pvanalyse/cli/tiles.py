"""The options that choose tiles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.analysis.columns import Integers
    from pvanalyse.tables import TableSource


@dataclass(frozen=True, slots=True)
class TileSelection:
    """Which tiles a command is about, as it was asked.

    Attributes
    ----------
    tiles
        Numbers and ranges such as ``0,5,100-200``, None for all.
    ipus
        Only tiles of these, empty for all.
    worst
        Only so many of the fullest of them, None for all.
    """

    tiles: str | None = None
    ipus: tuple[int, ...] = ()
    worst: int | None = None

    def __bool__(self) -> bool:
        return self.tiles is not None or bool(self.ipus) or self.worst is not None

    def __str__(self) -> str:
        words = [
            *([f"--tiles {self.tiles}"] if self.tiles is not None else []),
            *(f"--ipu {ipu}" for ipu in self.ipus),
            *([f"--worst {self.worst}"] if self.worst is not None else []),
        ]
        return " ".join(words)

    def of(self, source: TableSource) -> Integers | None:
        """Return the numbers of the tiles in a report, None for all.

        Raises
        ------
        UsageError
            A tile or IPU does not exist, or the options have no tile in common.
        NotCaptured
            The report does not say which tiles there are, or how full they are.
        """
        from pvanalyse.analysis.selection import NoTileLeft, select_tiles

        try:
            return select_tiles(source, self.tiles, list(self.ipus) or None, self.worst)
        except NoTileLeft:
            raise UsageError(f"no tile is chosen by {self}") from None


def tile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that choose tiles, as its keyword ``selection``, a :class:`TileSelection`."""

    @click.option("--tiles", metavar="TILES", help="Only these tiles, such as 0,5,100-200.")
    @click.option("--ipu", "ipus", type=click.IntRange(0), multiple=True, metavar="IPU",
                  help="Only tiles of this IPU. Repeatable.")  # fmt: skip
    @click.option("--worst", type=click.IntRange(1), metavar="N",
                  help="Only the N fullest of the tiles that are left.")  # fmt: skip
    @functools.wraps(command)
    def wrapped(*args: Any, tiles: str | None, ipus: tuple[int, ...], worst: int | None, **kwargs: Any) -> Any:
        return command(*args, selection=TileSelection(tiles, ipus, worst), **kwargs)

    return wrapped
