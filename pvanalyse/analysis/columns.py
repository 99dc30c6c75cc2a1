"""From Arrow columns to numpy arrays and plain values, nulls and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pvanalyse.tables import TableSource

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


def integers(column: pa.Array | pa.ChunkedArray) -> Integers:
    """Return an integer column as int64; a null, which is a value that could not be read, counts as 0."""
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy())


def reals(column: pa.Array | pa.ChunkedArray) -> Reals:
    """Return a column as float64, nulls as NaN."""
    values = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    return np.asarray(values, np.float64)


def codes(column: pa.DictionaryArray, known: dict[str, int], null: str = "Unknown") -> Integers:
    """Return a category column as positions in ``known``, to which new values are added.

    A batch's dictionary is its own, so the positions of one batch mean nothing to the next; these do.
    """
    for value in [*column.dictionary.to_pylist(), null] if column.null_count else column.dictionary.to_pylist():
        known.setdefault(value, len(known))
    translation = np.array([known[value] for value in column.dictionary.to_pylist()] or [0], np.int64)
    indices = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    if column.null_count:
        return np.where(indices < 0, known[null], translation[indices])
    return np.asarray(translation[indices])


def exact_sum(values: Integers) -> int:
    """Return the sum of 64-bit integers, which may need more than 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


class Keys:
    """Where in a table the rows with given keys are."""

    def __init__(self, keys: Integers) -> None:
        in_order = not (keys[1:] < keys[:-1]).any()
        self._order = None if in_order else np.argsort(keys, kind="stable")
        self._keys = keys if self._order is None else keys[self._order]
        self._without_gap = bool((np.diff(self._keys) == 1).all())  # as steps and programs mostly are numbered

    def positions(self, wanted: Integers) -> Integers:
        """Return the row of each key, of equal keys the first, −1 for a key that is not there."""
        if not len(self._keys):
            return np.full(len(wanted), -1)
        if self._without_gap:
            at = np.clip(wanted, self._keys[0], self._keys[-1]) - self._keys[0]
        else:
            at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, at if self._order is None else self._order[at], -1)


class Sums:
    """Sums of integers by position, exact however large; grows as positions come."""

    _AT_ONCE = 1 << 20  # as many 32-bit halves as a float64 adds up exactly: 2**52

    def __init__(self, size: int = 0) -> None:
        self._sums = [0] * size

    def add(self, positions: Integers, values: Integers) -> None:
        """Add each value to the sum at its position."""
        self._sums += [0] * (int(positions.max(initial=-1)) + 1 - len(self._sums))
        for start in range(0, len(positions), self._AT_ONCE):
            part = slice(start, start + self._AT_ONCE)
            # Much faster than numpy.add.at, and exact because each half is small.
            high = np.bincount(positions[part], values[part] >> 32)
            low = np.bincount(positions[part], values[part] & 0xFFFFFFFF)
            for at in np.flatnonzero(high) if high.any() else ():
                self._sums[at] += int(high[at]) << 32
            for at in np.flatnonzero(low):
                self._sums[at] += int(low[at])

    def __getitem__(self, position: int) -> int:
        return self._sums[position]


def only_row(source: TableSource, name: str) -> dict[str, Any]:
    """Return the first row of a table that has one, without nulls; empty when it was not captured."""
    if not source.captured(name):
        return {}
    row = source.arrow(name).slice(0, 1).to_pylist()[0]
    return {key: value for key, value in row.items() if value is not None}


def key_values(source: TableSource, name: str, key: str = "key") -> dict[str, str]:
    """Return a table of keys and values as a dict; empty when it was not captured."""
    if not source.captured(name):
        return {}
    table = source.arrow(name, [key, "value"])
    return dict(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))
