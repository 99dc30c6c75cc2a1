"""Which tiles are meant: by number, by IPU, or the fullest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.memory import tile_memory
from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from pvanalyse.tables import TableSource, table

_MOST_TILES = 1 << 24  # more than ten thousand IPUs
_PART = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?")


class NoTileLeft(UsageError):
    """Choices of tiles that have no tile in common."""


def parse_tiles(text: str) -> list[range]:
    """Read tile numbers such as ``0,5,100-200``; the end of a range is part of it.

    Raises
    ------
    UsageError
        Not of this form; the mistake is marked.
    """
    ranges = []
    at = 0
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            problem = "counts down" if match else "is neither a number nor a range such as 100-200"
            raise UsageError(f"tiles: '{part.strip()}' {problem}\n  {text}\n  {' ' * at}{'^' * max(1, len(part))}")
        ranges.append(range(int(match[1]), int(match[2] or match[1]) + 1))
        at += len(part) + 1
    return ranges


def select_tiles(
    source: TableSource,
    tiles: str | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    worst: int | None = None,
) -> Integers | None:
    """Return the numbers of the tiles that are meant, ascending; the fullest first when ``worst`` is given.

    Parameters
    ----------
    source
        A report.
    tiles
        Tile numbers, or a text such as ``0,5,100-200``.
    ipu
        Tiles of this IPU, or of these.
    worst
        Of the tiles that are left, only so many of the fullest (including gaps).

    Returns
    -------
    numpy.ndarray or None
        int64 tile numbers; None when nothing was asked for, which means all tiles.

    Raises
    ------
    UsageError
        The text is no selection, or a tile or IPU does not exist.
    NoTileLeft
        The choices have no tile in common.
    NotCaptured
        The report does not say how many tiles there are, or how full they are.
    """
    if tiles is None and ipu is None and worst is None:
        return None
    chosen = np.arange(number_of_tiles(source))
    if tiles is not None:
        chosen = _chosen(tiles, len(chosen))
    if ipu is not None:
        chosen = chosen[np.isin(chosen // _tiles_per_ipu(source), _ipus(source, ipu))]
    if worst is not None:
        chosen = _fullest(source, chosen, worst)
    if not len(chosen):
        raise NoTileLeft("no tile is left: none is in all of what was chosen")
    return chosen


def batches_on_tiles(
    source: TableSource, name: str, columns: Sequence[str], tiles: Integers | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that are about chosen tiles, or about all; at least one batch, maybe without rows."""
    where = None if tiles is None else {"tile": tiles.tolist()}
    yield pa.RecordBatch.from_pylist([], table(name).arrow_schema(list(columns)))
    yield from source.batches(name, columns, where)


def _chosen(tiles: str | Sequence[int], num_tiles: int) -> Integers:
    if isinstance(tiles, str):
        ranges = parse_tiles(tiles)
        highest = max((part[-1] for part in ranges), default=0)
        if highest < num_tiles:
            return np.unique(np.concatenate([np.arange(part.start, part.stop) for part in ranges]))
    else:
        wanted = sorted({int(tile) for tile in tiles})
        highest = max(wanted, default=0) if min(wanted, default=0) >= 0 else wanted[0]
        if 0 <= highest < num_tiles:
            return np.array(wanted, np.int64)
    raise UsageError(f"there is no tile {highest:,}; the report has tiles 0 to {num_tiles - 1:,}")


def _ipus(source: TableSource, ipu: int | Sequence[int]) -> list[int]:
    wanted = [int(one) for one in np.atleast_1d(np.asarray(ipu, object))]
    num_ipus = number_of_tiles(source) // _tiles_per_ipu(source)
    for one in wanted:
        if not 0 <= one < num_ipus:
            raise UsageError(f"there is no IPU {one:,}; the report has IPUs 0 to {num_ipus - 1:,}")
    return wanted


def _fullest(source: TableSource, chosen: Integers, count: int) -> Integers:
    if count < 1:
        raise UsageError(f"the number of worst tiles must be at least 1, not {count}")
    memory = tile_memory(source)
    if memory is None:
        raise NotCaptured("tile_memory", table("tile_memory").capture)
    order = memory["tile"][memory.fullest(len(memory["tile"]))]
    return order[np.isin(order, chosen)][:count]


def number_of_tiles(source: TableSource) -> int:
    """Return the number of tiles of the target, or of those whose memory was captured.

    Raises
    ------
    NotCaptured
        Neither is known.
    PvanalyseError
        The number is one that no machine has: arrays of that length are not made.
    """
    stated = int(only_row(source, "target").get("num_tiles", 0))
    if not 0 <= stated <= _MOST_TILES:
        raise PvanalyseError(f"table 'target' cannot be: it says that there are {stated:,} tiles")
    number = stated or source.count("tile_memory")
    if not number:
        raise NotCaptured("target", table("target").capture)
    return number


def _tiles_per_ipu(source: TableSource) -> int:
    target = only_row(source, "target")
    if not target.get("tiles_per_ipu"):
        raise NotCaptured("target", table("target").capture)
    return int(target["tiles_per_ipu"])
