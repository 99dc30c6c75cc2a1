"""The tree of debug contexts as arrays, so that a question about all of them is answered at once.

A debug.cbor of a large model has a million contexts. Walking up from each of them in Python takes minutes; here every
context looks twice as far up in each round (pointer doubling), so that a round per doubling of the depth suffices.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.ids import Ids

Flags = npt.NDArray[np.bool_]


class ContextTree:
    """The contexts by their row in table ``debug_contexts``, and how they lie one above the other.

    Of several contexts with one id, the first is the one that the id refers to. Where a damaged file has parents in
    a circle, the circle is cut open above the first of its contexts, which then is a root.

    Parameters
    ----------
    contexts
        Columns ``debug_context_id`` and ``parent_id`` of table ``debug_contexts``.
    """

    def __init__(self, contexts: pa.Table) -> None:
        self._ids = Ids(contexts.column("debug_context_id"))
        # One place more than there are contexts: above the roots, and above itself.
        above = self._ids.rows(contexts.column("parent_id"))
        self._parent = np.append(np.where(above < 0, len(above), above), len(above))
        self._open_circles()

    def __len__(self) -> int:
        return len(self._parent) - 1

    def rows(self, ids: pa.Array | pa.ChunkedArray) -> Integers:
        """Return the row of each context, −1 for null and for one that is not there."""
        return self._ids.rows(ids)

    @cached_property
    def parent(self) -> Integers:
        """The row of each context's parent, −1 for roots."""
        above = self._parent[:-1]
        return np.where(above == len(self), -1, above)

    def nearest(self, flags: Flags) -> Integers:
        """Return, for each context, the innermost that is flagged of itself and those above it; −1 for none."""
        found, jump = self._start(flags), self._parent
        while ((found < 0) & (jump < len(self))).any():
            found = np.where(found < 0, found[jump], found)
            jump = jump[jump]
        return found[:-1]

    def outermost(self, flags: Flags) -> Integers:
        """Return, for each context, the outermost that is flagged of itself and those above it; −1 for none."""
        found, jump = self._start(flags), self._parent
        while (jump < len(self)).any():
            found = np.where(found[jump] >= 0, found[jump], found)
            jump = jump[jump]
        return found[:-1]

    def chain(self, row: int) -> list[int]:
        """Return the rows of a context and of those above it, innermost first."""
        rows = []
        while 0 <= row < len(self):
            rows.append(row)
            row = int(self._parent[row])
        return rows

    def _start(self, flags: Flags) -> Integers:
        return np.append(np.where(flags, np.arange(len(self)), -1), -1)

    def _open_circles(self) -> None:
        arrived, lowest, jump = self._parent, np.arange(len(self) + 1), self._parent
        for _ in range(len(self).bit_length()):
            arrived = arrived[arrived]
        inside = np.unique(arrived)[:-1]  # what has not arrived above the roots goes round, through all of its circle
        if len(inside):
            for _ in range(len(self).bit_length()):
                lowest = np.minimum(lowest, lowest[jump])
                jump = jump[jump]
            self._parent[inside[lowest[inside] == inside]] = len(self)
