"""Nested groups of intervals, as the vendor's viewer shows an execution trace.

The rules were worked out from the groups that the viewer stored in a real ``profile.pop_cache`` of 2022; a test holds
them against it. Names are paths with ``/`` between the parts, and in the order in which the steps of an IPU ran:

* Steps that follow each other under one name are one block.
* Neighbours whose names start with the same parts are a group, named by all the parts that they share; inside it their
  names are what is left, and the rule applies again.
* What keeps no two neighbours apart, and lies in the group that both are in: synchronisation, and copies that the
  compiler made (``copy12_…``). Either keeps its whole name.
* ``SyncAns``, tiles that answer a synchronisation on their own, runs beside everything else: never in a group, and not
  between neighbours. It does separate two blocks of one name.
* Begin, Mid and End of a stream copy are a group ``StreamCopy``.
* A step that took no time on an IPU is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pandas as pd

from pvanalyse.analysis.intervals import COMPILER_COPY, GROUP
from pvanalyse.collector import collector_paused
from pvanalyse.errors import UsageError

STREAM_COPY = "StreamCopy"
"""The name of the group of a stream copy."""

GROUPED_COLUMNS = ("step_id", "type", "name", "begin", "end")
"""The columns of intervals that groups are made of."""
FLAME_COLUMNS = ("block_id", "parent_id", "depth", "type", "name", "begin", "end", "step_ids")
"""The columns of :func:`flame_blocks`."""

NO_PARENT = -1
_BESIDE = "SyncAns"
_COMPUTE = "OnTileExecute"
_MOST_KEPT = 1 << 17
_COPY_BEGINS = "StreamCopyBegin"
_PARTS = {_COPY_BEGINS: "Begin", "StreamCopyMid": "Mid", "StreamCopyEnd": "End"}


@dataclass(slots=True)
class _Block:
    """A block or group while the tree grows; ``shared`` is how many parts of a name the members of a group share."""

    type: str
    name: str
    begin: int
    end: int
    step_ids: list[int] = field(default_factory=list)
    parent: _Block | None = None
    shared: int = 0


def flame_blocks(intervals: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks and groups of one IPU.

    Parameters
    ----------
    intervals
        Rows of :func:`pvanalyse.analysis.intervals.interval_batches` of one IPU, in their order, with
        :data:`GROUPED_COLUMNS`.

    Returns
    -------
    pandas.DataFrame
        A row per block and group, by ``begin``, a group before what is in it: ``block_id`` from 0, ``parent_id`` (−1
        for a root), ``depth`` (0 for a root), ``type`` (:data:`GROUP` for a group), ``name`` (what is left of it
        inside the group), ``begin`` and ``end`` in cycles (of a group, from the first cycle of what is in it to the
        last), and ``step_ids``, a list, empty for a group.

    Raises
    ------
    UsageError
        The intervals are of several IPUs.
    """
    if "ipu" in intervals and intervals["ipu"].nunique() > 1:
        raise UsageError("blocks are grouped within one IPU: choose one")
    with collector_paused():
        blocks = _grouped(_merged(intervals))
        _fit_groups(blocks)
        return _table(blocks)


class GroupStream:
    """The groups of one IPU, from intervals that come in batches.

    They are those of :func:`flame_blocks`, since nothing is grouped across the beginning of a stream copy, up to which
    intervals are kept. Where none comes for long, groups are cut in two, so that the memory stays small.
    """

    def __init__(self) -> None:
        self._kept: list[pd.DataFrame] = []
        self._size = 0

    def add(self, intervals: pd.DataFrame) -> pd.DataFrame:
        """Take the next intervals and return the groups that are complete.

        Returns
        -------
        pandas.DataFrame
            ``name`` (what is left of it inside the group that it is in), ``begin`` and ``end``; a group before those
            in it.
        """
        intervals = intervals[intervals["end"].to_numpy() > intervals["begin"].to_numpy()]
        self._kept.append(intervals)
        self._size += len(intervals)
        if self._size >= _MOST_KEPT:
            return self.finish()
        starts = np.flatnonzero((intervals["type"] == _COPY_BEGINS).to_numpy())
        if not len(starts):
            return _groups_of([])
        whole = [*self._kept[:-1], intervals.iloc[: starts[-1]]]
        self._kept = [intervals.iloc[starts[-1] :]]
        self._size = len(self._kept[0])
        return _groups_of(whole)

    def finish(self) -> pd.DataFrame:
        """Return the groups that are left."""
        kept, self._kept, self._size = self._kept, [], 0
        return _groups_of(kept)


def _merged(intervals: pd.DataFrame) -> list[_Block]:
    """Return the steps that took time, neighbours of one name as one."""
    merged: list[_Block] = []
    took_time = intervals[intervals["end"].to_numpy() > intervals["begin"].to_numpy()]
    columns = (took_time[name].tolist() for name in GROUPED_COLUMNS)
    for step_id, kind, name, begin, end in zip(*columns, strict=True):
        last = merged[-1] if merged else None
        alone = kind == _BESIDE or kind in _PARTS or not name
        if last is None or alone or last.name != name or last.type == _BESIDE or last.type in _PARTS:
            merged.append(_Block(kind, name, begin, end, [step_id]))
            continue
        last.begin, last.end = min(last.begin, begin), max(last.end, end)
        last.step_ids.append(step_id)
        if kind == _COMPUTE:  # an exchange and the computation that it is for
            last.type = kind
    return merged


def _grouped(blocks: Iterable[_Block]) -> list[_Block]:
    """Return all blocks and the groups they are in."""
    found: list[_Block] = []
    tree = _Tree(found)
    stream_copy: _Block | None = None
    for block in blocks:
        found.append(block)
        if block.type == _BESIDE:
            continue
        if block.type in _PARTS:
            tree.end()
            if stream_copy is None or block.type == _COPY_BEGINS:
                stream_copy = _Block(GROUP, STREAM_COPY, block.begin, block.end)
                found.append(stream_copy)
            block.parent, block.name = stream_copy, _PARTS[block.type]
            if block.type == "StreamCopyEnd":
                stream_copy = None
            continue
        stream_copy = None
        if _keeps_its_name(block.type, block.name):
            tree.add_between(block)
        else:
            tree.add(block)
    return found


class _Tree:
    """Groups of neighbours by what their names share, in one pass.

    The groups that the last block is in are open, outermost first. A block that shares fewer parts with the last one
    closes some of them; one that shares more than the innermost that stays open starts a new group, which begins with
    the last block, or with the outermost group that was just closed.
    """

    def __init__(self, found: list[_Block]) -> None:
        self._found = found
        self._open: list[_Block] = []
        self._between: list[_Block] = []
        self._last: _Block | None = None
        self._name = ""

    def end(self) -> None:
        """Let nothing that follows be a neighbour of what was."""
        self._open, self._between, self._last, self._name = [], [], None, ""

    def add_between(self, block: _Block) -> None:
        """Add a block that belongs where its neighbours belong."""
        self._between.append(block)

    def add(self, block: _Block) -> None:
        """Add a block that has neighbours."""
        shared = _shared(self._name, block.name) if self._last else 0
        inner = self._last
        while self._open and self._open[-1].shared > shared:
            inner = self._open.pop()
        if inner is not None and shared > (self._open[-1].shared if self._open else 0):
            name = "/".join(block.name.split("/")[:shared])
            group = _Block(GROUP, name, inner.begin, inner.end, parent=inner.parent, shared=shared)
            self._found.append(group)
            inner.parent = group
            self._open.append(group)
        parent = self._open[-1] if self._open else None
        for one in [*self._between, block]:
            one.parent = parent
        self._between, self._last, self._name = [], block, block.name


@lru_cache(_MOST_KEPT)
def _shared(first: str, second: str) -> int:
    """Return how many parts two names share; of equal names, the last part is each one's own."""
    parts, others = first.split("/"), second.split("/")
    if parts == others:
        return len(parts) - 1
    pairs = enumerate(zip(parts, others, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(parts), len(others)))


@lru_cache(_MOST_KEPT)
def _keeps_its_name(kind: str, name: str) -> bool:
    """Tell whether a block lies between others and has a whole name: synchronisation, and copies of the compiler."""
    return "Sync" in kind or COMPILER_COPY.match(name) is not None


def _table(blocks: Sequence[_Block]) -> pd.DataFrame:
    children: dict[int, list[_Block]] = {}
    for block in blocks:
        children.setdefault(id(block.parent), []).append(block)
    for within in children.values():
        within.sort(key=lambda block: (block.begin, -block.end))
    rows: list[tuple[int, int, int, str, str, int, int, list[int]]] = []
    waiting = [(block, NO_PARENT, 0) for block in reversed(children.get(id(None), []))]
    while waiting:
        block, parent, depth = waiting.pop()
        number = len(rows)
        rows.append((number, parent, depth, block.type, _own_name(block), block.begin, block.end, block.step_ids))
        waiting.extend((child, number, depth + 1) for child in reversed(children.get(id(block), [])))
    frame = pd.DataFrame(rows, columns=list(FLAME_COLUMNS))
    whole = dict.fromkeys(("block_id", "parent_id", "depth", "begin", "end"), "int64")
    return frame.astype({**whole, "type": "str", "name": "str"})


def _fit_groups(blocks: Sequence[_Block]) -> list[_Block]:
    """Let each group reach over all that is in it, and return the groups."""
    groups = [block for block in blocks if block.type == GROUP and not block.step_ids]
    # What is deeper shares more; a stream copy, which shares nothing, has no groups in it.
    groups.sort(key=lambda block: -block.shared)
    for block in (*(one for one in blocks if one.step_ids), *groups):
        group = block.parent
        if group is not None:
            group.begin, group.end = min(group.begin, block.begin), max(group.end, block.end)
    return groups


def _groups_of(intervals: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the groups in intervals that have to do with no others."""
    rows: list[tuple[str, int, int]] = []
    if intervals:
        with collector_paused():
            groups = _fit_groups(_grouped(_merged(pd.concat(intervals))))
            groups.sort(key=lambda group: (group.begin, -group.end, group.shared))
            rows = [(_own_name(group), group.begin, group.end) for group in groups]
            del groups
    return pd.DataFrame(rows, columns=["name", "begin", "end"]).astype(
        {"name": "str", "begin": "int64", "end": "int64"}
    )


def _own_name(block: _Block) -> str:
    """Return what is left of a name inside its group."""
    parent = block.parent
    if parent is None or not parent.shared or _keeps_its_name(block.type, block.name):
        return block.name
    return _without(block.name, parent.shared)


@lru_cache(_MOST_KEPT)
def _without(name: str, parts: int) -> str:
    return "/".join(name.split("/")[parts:])
