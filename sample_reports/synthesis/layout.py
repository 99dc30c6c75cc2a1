"""Gives every variable an address on every tile.

The rules, all applied to all tiles of an IPU at once:

* Variables come in a fixed order: code, state and stacks, then what lives always, then what does not, largest slots
  first. A slot (see `graph.Variable`) is placed as one piece.
* A piece goes to the memory that it prefers, after what lies there already and at its alignment, or at the start of an
  untouched bank if it needs one of its own; where that memory is full, to the other; code never to interleaved memory.
* What fits nowhere on a tile has no address there: it overflows.
* In a slot, the variables of one phase lie side by side; the slot is as long as its longest phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .graph import TileVector, Variable
from .machine import BANK_BYTES, BYTES_PER_TILE, INTERLEAVED_BEGIN

REGIONS = ("nonInterleaved", "interleaved", "overflowed")
UNALLOCATED = -1
_BEGINS = (0, INTERLEAVED_BEGIN)
_ENDS = (INTERLEAVED_BEGIN, BYTES_PER_TILE)
_CODE_ORDER = 0
_STATE_ORDER = 1


@dataclass
class Layout:
    """The memory of one IPU.

    Attributes
    ----------
    offsets
        Tile byte offset of each variable by tile; UNALLOCATED where it overflows or is not there.
    including, excluding
        Bytes by region and tile, shape (3, tiles).
    categories
        By category and region, the bytes by tile that are alone at their address and those that are not, shape
        (2, tiles).
    code_end
        End of the last executable variable by tile.
    """

    tiles: int
    offsets: dict[Variable, TileVector] = field(default_factory=dict)
    including: NDArray[np.int64] = field(init=False)
    excluding: NDArray[np.int64] = field(init=False)
    categories: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)
    code_end: TileVector = field(init=False)

    def __post_init__(self) -> None:
        self.including = np.zeros((3, self.tiles), np.int64)
        self.excluding = np.zeros((3, self.tiles), np.int64)
        self.code_end = np.zeros(self.tiles, np.int64)

    def region(self, variable: Variable) -> TileVector:
        """Return the region of a variable by tile, an index into REGIONS."""
        offset = self.offsets[variable]
        return np.where(offset == UNALLOCATED, 2, np.where(offset >= INTERLEAVED_BEGIN, 1, 0))

    def count(self, category: str, region: int, alone: TileVector, shared: TileVector) -> None:
        """Add to a category's bytes in a region."""
        if alone.any() or shared.any():
            total = self.categories.setdefault((category, region), np.zeros((2, self.tiles), np.int64))
            total += np.stack([alone, shared])


def lay_out(variables: list[Variable], tiles: int) -> Layout:
    """Place the variables of one IPU."""
    layout = Layout(tiles)
    cursors = np.zeros((2, tiles), np.int64) + np.array(_BEGINS)[:, None]
    for slot in _slots(variables):
        _place(slot, layout, cursors)
    layout.including[:2] = cursors - np.array(_BEGINS)[:, None]
    return layout


def _slots(variables: list[Variable]) -> list[list[Variable]]:
    slots: dict[str, list[Variable]] = {}
    for number, variable in enumerate(variables):
        slots.setdefault(variable.slot or f" {number}", []).append(variable)
    for members in slots.values():
        _check_phases(members)
    return sorted(slots.values(), key=_order)


def _order(members: list[Variable]) -> tuple[int, int]:
    first = members[0]
    if first.executable:
        return _CODE_ORDER, 0
    if first.name == first.category:
        return _STATE_ORDER, 0
    return (2 if not first.lifetime else 3), -max(int(member.bytes.sum()) for member in members)


def _check_phases(members: list[Variable]) -> None:
    """Make sure that no two phases of a slot are live at once."""
    spans = sorted((begin, end, member.phase) for member in members for begin, end in member.intervals)
    latest: dict[int, int] = {}
    for begin, end, phase in spans:
        for other, other_end in latest.items():
            if other != phase and begin < other_end:
                raise AssertionError(f"phases {other} and {phase} of slot {members[0].slot} are live at once")
        latest[phase] = max(end, latest.get(phase, 0))


def _aligned(position: TileVector, alignment: int) -> TileVector:
    return -(-position // alignment) * alignment


def _place(members: list[Variable], layout: Layout, cursors: NDArray[np.int64]) -> None:
    relative, length = _stack(members)
    first = members[0]
    alignment = BANK_BYTES if any(member.own_bank for member in members) else 8
    preferred = int(first.interleaved)
    base = np.full(layout.tiles, UNALLOCATED, np.int64)
    wanted = length > 0
    for region in (preferred,) if first.executable else (preferred, 1 - preferred):
        start = _aligned(cursors[region], alignment)
        fits = wanted & (base == UNALLOCATED) & (start + length <= _ENDS[region])
        base[fits] = start[fits]
        cursors[region][fits] = (start + length)[fits]
    for member, position in zip(members, relative, strict=True):
        there = (member.bytes > 0) & (base != UNALLOCATED)
        layout.offsets[member] = np.where(there, base + position, UNALLOCATED)
    if first.executable:
        layout.code_end = np.maximum(layout.code_end, np.where(base == UNALLOCATED, 0, base + length))
    _account(members, relative, base, layout)


def _stack(members: list[Variable]) -> tuple[list[TileVector], TileVector]:
    """Return each variable's position in its slot and the slot's length, by tile."""
    ends: dict[int, TileVector] = {}
    relative = []
    for member in members:
        end = ends.get(member.phase, np.zeros(member.bytes.size, np.int64))
        position = _aligned(end, member.alignment)
        relative.append(position)
        ends[member.phase] = np.where(member.bytes > 0, position + member.bytes, end)
    return relative, np.maximum.reduce(list(ends.values()))


def _account(members: list[Variable], relative: list[TileVector], base: TileVector, layout: Layout) -> None:
    """Count a slot's bytes: alone at their address, shared, or overflowed."""
    sizes = np.stack([member.bytes for member in members])
    starts = np.stack(relative)
    union, alone = covered(starts, sizes) if len(members) > 1 else (sizes[0], sizes)
    where = np.where(base == UNALLOCATED, 2, np.where(base >= INTERLEAVED_BEGIN, 1, 0))
    for region in (0, 1):
        here = where == region
        layout.excluding[region] += np.where(here, union, 0)
        for member, own in zip(members, alone, strict=True):
            layout.count(member.category, region, np.where(here, own, 0), np.where(here, member.bytes - own, 0))
    lost = where == 2
    nothing = np.zeros(layout.tiles, np.int64)
    for member in members:
        overflow = np.where(lost, member.bytes, 0)
        layout.excluding[2] += overflow
        layout.including[2] += _aligned(overflow, member.alignment)
        layout.count(member.category, 2, overflow, nothing)


def covered(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[TileVector, NDArray[np.int64]]:
    """Sweep over intervals on many tiles at once.

    Parameters
    ----------
    starts, sizes
        Intervals by variable and tile, shape (variables, tiles).

    Returns
    -------
    union
        Length covered by any interval, by tile.
    alone
        Length that only this interval covers, shape (variables, tiles).
    """
    count, tiles = starts.shape
    numbers = np.arange(1, count + 1)[:, None] * np.ones(tiles, np.int64)
    edges = np.concatenate([starts, starts + sizes])
    order = np.argsort(edges, axis=0, kind="stable")
    depth = np.cumsum(np.take_along_axis(np.concatenate([np.ones_like(starts), -np.ones_like(starts)]), order, 0), 0)
    # where exactly one interval is open, the sum of the open intervals' numbers is its number
    owner = np.cumsum(np.take_along_axis(np.concatenate([numbers, -numbers]), order, 0), 0)[:-1]
    lengths = np.diff(np.take_along_axis(edges, order, 0), axis=0)
    union = np.where(depth[:-1] > 0, lengths, 0).sum(axis=0)
    alone = np.zeros((count, tiles), np.int64)
    single, at = np.nonzero((depth[:-1] == 1) & (lengths > 0))
    np.add.at(alone, (owner[single, at] - 1, at), lengths[single, at])
    return union, alone
