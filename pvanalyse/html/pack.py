"""Many numbers and names in few bytes: typed arrays and one table of strings behind a header, all of it compressed.

The bytes, before compression: the length of the header as 32 bits; the header, a JSON object padded with spaces to a
multiple of 8; then the arrays, each at a multiple of 8 from the start of the first. All numbers are little-endian.
The header has ``root``, a tree of plain values; ``arrays``, for each its type, offset, length and whether it holds
differences; and ``strings``. In the tree ``{"$": n}`` stands for array ``n``, and ``{"$text": n}`` for texts whose
positions in ``strings`` are array ``n``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pvanalyse.names import printable

_ALIGNMENT = 8
_SAFE = 2**53
"""Beyond this a number of JavaScript is not exact."""
_WHOLE = (np.uint8, np.uint16, np.uint32, np.int32)

Reference = dict[str, int]


class Packer:
    """Collects arrays and names while a tree of plain values is made that refers to them."""

    def __init__(self) -> None:
        self._arrays: list[npt.NDArray[Any]] = []
        self._differences: list[bool] = []
        self._strings: dict[str, int] = {}

    def whole(self, values: npt.ArrayLike) -> Reference:
        """Add whole numbers, of as few bytes each as the extremes need; those beyond 2⁵³ lose their last digits.

        Numbers that never fall, of which the differences need fewer bytes, are kept as differences.
        """
        numbers = np.asarray(values, np.int64)
        dtype = _smallest(numbers)
        if len(numbers) > 1 and numbers[0] >= 0 and (numbers[1:] >= numbers[:-1]).all():
            differences = np.diff(numbers, prepend=0)
            smaller = _smallest(differences)
            if np.dtype(smaller).itemsize < np.dtype(dtype).itemsize:
                return self._add(differences.astype(smaller), differences=True)
        return self._add(numbers.astype(dtype))

    def real(self, values: npt.ArrayLike, *, exactly: bool = False) -> Reference:
        """Add numbers, NaN where there is none, with seven digits or ``exactly`` as they are."""
        return self._add(np.asarray(values, np.float64 if exactly else np.float32))

    def texts(self, values: Iterable[str]) -> Reference:
        """Add names, which the page gets on one line and with what is not printable as escapes."""
        known, numbers = self._strings, []
        shown: dict[str, int] = {}
        for value in values:
            if value not in shown:
                shown[value] = known.setdefault(printable(value), len(known))
            numbers.append(shown[value])
        return {"$text": self.whole(np.array(numbers, np.int64))["$"]}

    def finish(self, root: Mapping[str, Any]) -> bytes:
        """Return everything as bytes; the same for the same content."""
        described, offset = [], 0
        for values, differences in zip(self._arrays, self._differences, strict=True):
            described.append([values.dtype.str[1:], offset, len(values), int(differences)])
            offset += _padded(values.nbytes)
        header = json.dumps(
            {"root": root, "arrays": described, "strings": list(self._strings)},
            ensure_ascii=False, allow_nan=False, separators=(",", ":"),
        ).encode("utf-8", "backslashreplace")  # fmt: skip
        header = header.ljust(_padded(4 + len(header)) - 4)
        parts = [len(header).to_bytes(4, "little"), header]
        for values in self._arrays:
            contents = values.astype(values.dtype.newbyteorder("<")).tobytes()
            parts.append(contents.ljust(_padded(len(contents)), b"\0"))
        return gzip.compress(b"".join(parts), compresslevel=9, mtime=0)

    def _add(self, values: npt.NDArray[Any], *, differences: bool = False) -> Reference:
        self._arrays.append(values)
        self._differences.append(differences)
        return {"$": len(self._arrays) - 1}


def exact(value: Any) -> Any:
    """Return a value as JSON can carry it: whole numbers beyond 2⁵³ as text, names printable, NaN as null."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (int, np.integer)):
        return int(value) if -_SAFE <= value <= _SAFE else f"{int(value):,}"
    number = float(value)
    return number if np.isfinite(number) else None


def exact_rows(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return rows of values as JSON can carry them."""
    return [[exact(value) for value in row] for row in rows]


def _smallest(numbers: npt.NDArray[np.int64]) -> type[np.number[Any]]:
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    return next((one for one in _WHOLE if np.iinfo(one).min <= low and high <= np.iinfo(one).max), np.float64)


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
