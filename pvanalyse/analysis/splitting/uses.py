"""Which layer uses which allocation: what its programs read or write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pvanalyse.analysis.columns import Integers, Keys, integers
from pvanalyse.analysis.ids import Ids
from pvanalyse.analysis.lifetimes import Lifetimes, number_of_steps
from pvanalyse.analysis.lifetimes import class_intervals as class_intervals
from pvanalyse.analysis.splitting.layers import Layers
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import TableSource, table

_ALLOCATION = ("lowered_variable_id", "variable_id", "tile", "bytes", "always_live", "equivalence_class_id")
NOBODY = int(np.iinfo(np.int64).min)
"""In place of an id that is null."""

_NONE = -1
_NO_IDS = [np.iinfo(np.int64).max - 1, np.iinfo(np.int64).max]
_RADIX = 1 << 16  # numbers of 16 bits are sorted in time proportional to how many there are

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Uses:
    """Which layers use which allocations.

    Attributes
    ----------
    lifetimes
        All allocations. What is always live is of a class that is live during all steps.
    variable
        The variable of each allocation, :data:`NOBODY` for what the compiler made.
    always_live
        Whether each allocation is.
    allocation, layer
        Of each pair of an allocation and a layer that uses it, shape (pairs,): positions of both, ordered by layer.
    previous
        The last layer before it that uses the same allocation, −1 for none.
    writer
        The layer of the first program that uses the allocation of each pair, as the one that writes it.
    """

    lifetimes: Lifetimes
    variable: Integers
    always_live: Flags
    allocation: Integers
    layer: Integers
    previous: Integers
    writer: Integers

    def of_stage(self, first: int, stop: int) -> Lifetimes:
        """Return when the allocations that layers ``first`` to ``stop`` − 1 use are live, a row for each interval."""
        live, pair = self._by_interval
        low, high = np.searchsorted(pair, np.searchsorted(self.layer, [first, stop]))
        return live.select(np.flatnonzero(self.previous[pair[low:high]] < first) + low)

    @cached_property
    def _by_interval(self) -> tuple[Lifetimes, Integers]:
        """The lifetimes of the allocation of each pair, as if each interval were a class of its own; and the pair.

        Those of neighbouring layers then lie together, and that some classes have several intervals costs nothing.
        """
        of_pair = self.lifetimes.select(self.allocation)
        counts = of_pair.intervals_of_class[of_pair.class_index]
        pair = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        number = np.arange(len(of_pair.begin) + 1)
        live = replace(of_pair.select(pair), class_ids=number[:-1], first_interval=number)
        return replace(live, class_index=(of_pair.first_interval[live.class_index] + nth).astype(np.int32)), pair


def read_uses(source: TableSource, layers: Layers, num_tiles: int) -> Uses:
    """Read which of the layers uses which allocation on the first so many tiles.

    Raises
    ------
    NotCaptured
        The report has no lowered variables, or does not say what programs use.
    PvanalyseError
        The steps of the report cannot be.
    """
    if not source.count("program_lowered_variables"):
        raise NotCaptured("program_lowered_variables", table("program_lowered_variables").capture)
    lowered = _read_lowered(source, num_tiles)
    rank, layer_of_rank = _ranks(source, layers)
    programs = Ids(source.arrow("programs", ["program_id"]).column(0))
    identities, ranks = [], []
    for batch in source.batches("program_lowered_variables"):
        program = programs.rows(batch.column(0))
        program[batch.column(1).is_null().to_numpy(zero_copy_only=False)] = _NONE
        known = np.flatnonzero(np.append(layers.of_program, _NONE)[program] >= 0)
        identities.append(integers(batch.column(1))[known])
        ranks.append(rank[program[known]])
    allocation, by = Keys(lowered.identity).positions(np.concatenate(identities)), np.concatenate(ranks)
    known = np.flatnonzero(allocation >= 0)
    return _uses(lowered, allocation[known], by[known], layer_of_rank)


@dataclass(frozen=True)
class _Lowered:
    """Lowered variables, each column of shape (allocations,)."""

    identity: Integers
    variable: Integers
    always_live: Flags
    lifetimes: Lifetimes


def _read_lowered(source: TableSource, num_tiles: int) -> _Lowered:
    columns: list[list[npt.NDArray[Any]]] = [[] for _ in _ALLOCATION]
    for batch in source.batches("lowered_variables", _ALLOCATION):
        tile = integers(batch.column("tile"))
        here = (tile >= 0) & (tile < num_tiles)
        for name, parts in zip(_ALLOCATION, columns, strict=True):
            column = batch.column(name)
            if name == "always_live":
                values = column.fill_null(False).to_numpy(zero_copy_only=False)
            else:
                values = integers(column.fill_null(NOBODY) if column.null_count and name != "bytes" else column)
            parts.append(values[here].astype(np.int32) if name == "tile" else values[here])
    identity, variable, tile, size, always_live, class_id = (np.concatenate(parts) for parts in columns)
    return _Lowered(identity, variable, always_live, _lifetimes(source, tile, size, always_live, class_id))


def _lifetimes(
    source: TableSource, tile: npt.NDArray[Any], size: Integers, always_live: Flags, class_id: Integers
) -> Lifetimes:
    """Return the lifetimes of all; with a class that is live during all steps, and one that never is."""
    num_steps = number_of_steps(source)
    class_ids, first_interval, begin, end = class_intervals(source, num_steps)
    always, never = len(class_ids), len(class_ids) + 1
    known = Keys(class_ids).positions(class_id)
    class_index = np.where(always_live, always, np.where(known < 0, never, known)).astype(np.int32)
    last = first_interval[-1]
    return Lifetimes(tile, size, class_index, np.append(class_ids, _NO_IDS), np.append(first_interval, [last + 1] * 2),
                     np.append(begin, 0), np.append(end, num_steps), num_steps)  # fmt: skip


def _ranks(source: TableSource, layers: Layers) -> tuple[Integers, Integers]:
    """Return when each row of ``programs`` comes first in the liveness steps, counted; and the layers in that order."""
    steps = source.arrow("liveness_steps", ["step", "program_id"])
    at = Ids(source.arrow("programs", ["program_id"]).column(0)).rows(steps.column("program_id"))
    first = np.full(len(layers.of_program), np.iinfo(np.int64).max)
    np.minimum.at(first, at[at >= 0], integers(steps.column("step"))[at >= 0])
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank, layers.of_program[order]


def _uses(lowered: _Lowered, allocation: Integers, rank: Integers, layer_of_rank: Integers) -> Uses:
    """Return the uses of allocations by programs, which are given by when they come first."""
    earliest = np.full(len(lowered.identity), len(layer_of_rank))
    np.minimum.at(earliest, allocation, rank)
    num_layers = int(layer_of_rank.max(initial=_NONE)) + 1
    layer = layer_of_rank[rank]
    order = np.argsort(layer.astype(np.uint16) if num_layers < _RADIX else layer, kind="stable")
    allocation, bounds = allocation[order], np.searchsorted(layer[order], np.arange(num_layers + 1))
    last_layer, place = np.full(len(earliest), _NONE), np.empty(len(earliest), np.int64)
    pairs = [(allocation[:0], layer[:0], layer[:0])]
    for number, (low, high) in enumerate(pairwise(bounds)):
        here = allocation[low:high]
        place[here] = np.arange(len(here))
        here = here[place[here] == np.arange(len(here))]  # each once
        pairs.append((here, np.full(len(here), number), last_layer[here]))
        last_layer[here] = number
    allocation, layer, previous = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return Uses(lowered.lifetimes, lowered.variable, lowered.always_live, allocation, layer, previous,
                writer=layer_of_rank[earliest[allocation]])  # fmt: skip
