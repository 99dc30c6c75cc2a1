"""What each tile did when: the phases of bulk-synchronous parallel execution, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Keys, Reals, integers, only_row
from pvanalyse.analysis.execution_trace import KIND_OF_TYPE, KINDS, waits
from pvanalyse.analysis.memory_details import per_tile
from pvanalyse.analysis.selection import number_of_tiles
from pvanalyse.analysis.stretches import coverage
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import TableSource

BY_TILE = 'engine option "debug.computeInstrumentationLevel": "tile", with the execution profile'
"""How to have the cycles of each tile recorded."""

ACTIVITY_COLUMNS = ("step_id", "ipu", "type", "name", "begin", "end", "all_begin", "all_end")
"""The columns of intervals that :func:`tile_activity` needs."""

_SYNC = KINDS.index("sync")
_BESIDE = "SyncAns"
_AT_ONCE = 1 << 21  # (step, tile) pairs
_FEW = 500  # steps that are asked for by name


def tile_activity(source: TableSource, steps: pd.DataFrame, tiles: Integers, edges: Reals) -> npt.NDArray[np.float64]:
    """Return which share of each column of time each tile spends on what.

    A tile works on a step for the cycles that ``cycles_by_tile`` gives it, from the step's ``begin``
    (``active_from_max``: by then every tile that works on it has begun; the report does not say when each did), and
    at most until ``all_end``. A step without ``cycles_by_tile`` is taken to be on all tiles of its IPU from ``begin``
    to ``end``, unless it is one that only waits, see :func:`pvanalyse.analysis.execution_trace.waits`. In the rest of
    the time from ``all_begin`` to ``all_end`` of any step of its IPU a tile synchronises or waits: for slower tiles,
    or for the host. Where steps overlap, what is known of the tile itself counts first, and no cycle counts twice.
    SyncAns, answered by tiles beside everything else, is left out.

    Parameters
    ----------
    source
        A report.
    steps
        Intervals of executed steps, with :data:`ACTIVITY_COLUMNS`.
    tiles
        Numbers of tiles.
    edges
        Equally wide columns of time in cycles, each of at least one cycle.

    Returns
    -------
    numpy.ndarray
        Shape (:data:`~pvanalyse.analysis.execution_trace.KINDS`, tiles, columns), 0 to 1, where ``sync`` stands for
        both synchronising and waiting; the sum over kinds is less than 1 where the IPU was between steps.

    Raises
    ------
    NotCaptured
        The cycles of no step are known by tile.
    """
    steps = steps[steps["type"] != _BESIDE].reset_index(drop=True)
    kind = np.array([KINDS.index(KIND_OF_TYPE.get(one, "other")) for one in steps["type"]], np.int64)
    works = np.array([not waits(*one) for one in zip(steps["type"], steps["name"], strict=True)], bool)
    works &= kind != _SYNC
    ipu_of_tile = tiles // _tiles_per_ipu(source)
    shares = _Shares(len(tiles), edges)
    measured = np.zeros(len(steps), bool)
    for rows, places, cycles in _measured(source, steps, tiles, ipu_of_tile):
        measured[rows] = True
        begin, last = (steps[name].to_numpy()[rows][:, None] for name in ("begin", "all_end"))
        shares.add(np.where(works[rows], kind[rows], _SYNC), places, begin, np.minimum(begin + cycles, last))
    known = shares.totals()
    known[_SYNC] = 0
    known /= np.maximum(1, known.sum(axis=0))
    ipu = steps["ipu"].to_numpy()
    for one in np.unique(ipu_of_tile).tolist():
        on_ipu = steps[ipu == one]
        whole = np.stack([
            _coverage(on_ipu[(works & ~measured & (kind == at))[ipu == one]], "begin", "end", edges)
            for at in range(len(KINDS))
        ])  # fmt: skip
        mine = ipu_of_tile == one
        known[:, mine] = _with_ipu(known[:, mine], whole, _coverage(on_ipu, "all_begin", "all_end", edges))
    return known


def _with_ipu(known: npt.NDArray[np.float64], whole: npt.NDArray[np.float64], on: Reals) -> npt.NDArray[np.float64]:
    """Return what is known of tiles, with what all tiles of their IPU do in what that leaves, and waiting in the rest.

    Shapes are (kinds, tiles, columns), (kinds, columns) and (columns,).
    """
    total = whole.sum(axis=0)
    left = 1 - known.sum(axis=0)
    scale = np.minimum(1, np.divide(left, total, out=np.ones_like(left), where=total > 0))
    shares: npt.NDArray[np.float64] = known + whole[:, None, :] * scale
    shares[_SYNC] = np.maximum(0, on - shares.sum(axis=0))
    return shares


def _coverage(steps: pd.DataFrame, begin: str, end: str, edges: Reals) -> Reals:
    return coverage(steps[begin].to_numpy(np.int64), steps[end].to_numpy(np.int64), edges)


def _measured(
    source: TableSource, steps: pd.DataFrame, tiles: Integers, ipu_of_tile: Integers
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Yield rows of ``steps``, positions of tiles on their IPU, and the cycles of these tiles, shape (rows, tiles)."""
    number, found = number_of_tiles(source), False
    rows_of_ipu = {ipu: np.flatnonzero(steps["ipu"] == ipu) for ipu in np.unique(ipu_of_tile).tolist()}
    keys = {ipu: Keys(steps["step_id"].to_numpy()[rows]) for ipu, rows in rows_of_ipu.items()}
    for batch in _batches(source, steps["step_id"].unique().tolist()):
        batch = batch.filter(batch.column("cycles_by_tile").is_valid())
        found |= batch.num_rows > 0
        size = max(1, _AT_ONCE // max(1, len(tiles)))
        for part in (batch.slice(at, size) for at in range(0, batch.num_rows, size)):
            cycles = per_tile(part.column("cycles_by_tile"), number)
            step_id = integers(part.column("step_id"))
            for ipu, rows in rows_of_ipu.items():
                at = keys[ipu].positions(step_id)
                places = np.flatnonzero(ipu_of_tile == ipu)
                yield rows[at[at >= 0]], places, cycles[at >= 0][:, tiles[places]].astype(np.int64)
    if not found and not _any_measured(source):
        raise NotCaptured("execution_steps", BY_TILE)


def _batches(source: TableSource, step_ids: list[int]) -> Iterator[pa.RecordBatch]:
    where = {"step_id": step_ids} if len(step_ids) <= _FEW else None
    return source.batches("execution_steps", ["step_id", "cycles_by_tile"], where)


def _any_measured(source: TableSource) -> bool:
    batches = source.batches("execution_steps", ["cycles_by_tile"])
    return any(batch.column(0).null_count < batch.num_rows for batch in batches)


def _tiles_per_ipu(source: TableSource) -> int:
    return max(1, int(only_row(source, "target").get("tiles_per_ipu") or number_of_tiles(source)))


class _Shares:
    """Sums of shares of columns, by kind and tile."""

    def __init__(self, num_tiles: int, edges: Reals) -> None:
        self._first, self._width = edges[0], edges[1] - edges[0]
        self._columns, self._tiles = len(edges) - 1, num_tiles
        # What a kind of a tile grows by from one column to the next.
        self._growth = np.zeros(len(KINDS) * num_tiles * (self._columns + 2))

    def add(self, kind: Integers, places: Integers, begin: Integers, end: Integers) -> None:
        """Add intervals; ``kind`` by row, ``places`` by column, and ``begin`` and ``end`` by both or broadcast."""
        end = np.maximum(begin, end)
        row = kind[:, None] * self._tiles + places
        for cycle, sign in ((np.broadcast_to(begin, row.shape), 1.0), (end, -1.0)):
            at = np.clip((cycle - self._first) / self._width, 0, self._columns)
            column = at.astype(np.int64)
            part = at - column
            place = (row * (self._columns + 2) + column).ravel()
            for beyond, weight in ((0, 1 - part), (1, part)):
                np.add.at(self._growth, place + beyond, (sign * weight).ravel())

    def totals(self) -> npt.NDArray[np.float64]:
        """Return the sums, shape (kinds, tiles, columns)."""
        growth = self._growth.reshape(len(KINDS), self._tiles, self._columns + 2)
        shares: npt.NDArray[np.float64] = np.cumsum(growth, axis=2)[:, :, : self._columns]
        return np.maximum(0, shares)
