"""Where the rows with given ids are, null ids and all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Keys, integers


class Ids:
    """The rows of a table by id; of several with one id, the first is the one that the id refers to.

    Parameters
    ----------
    column
        The ids, a null where a row has none, to which nothing refers.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._rows = _known(column)
        self._keys = Keys(integers(column)[self._rows])

    def rows(self, wanted: pa.Array | pa.ChunkedArray) -> Integers:
        """Return the row of each id, −1 for null and for one that is not there."""
        found = np.full(len(wanted), -1)
        known = _known(wanted)
        at = self._keys.positions(integers(wanted)[known])
        found[known] = np.append(self._rows, -1)[at]
        return found


def _known(column: pa.Array | pa.ChunkedArray) -> Integers:
    """Return where a column is not null."""
    if not column.null_count:
        return np.arange(len(column))
    valid = column.is_valid()
    return np.flatnonzero(valid.to_numpy(zero_copy_only=False) if isinstance(valid, pa.Array) else valid.to_numpy())
