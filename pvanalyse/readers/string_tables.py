"""Names out of many ELF string tables at once, as dictionary-encoded Arrow columns.

A string table is a run of NUL-terminated strings, and a name is an offset into it. Linkers let names share their ends:
the name ``text`` may be an offset into the middle of ``.text``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.errors import UnreadableFile

Int64s = npt.NDArray[np.int64]

# Names that share their ends take more room apart than together. A linker's tables stay far below this; a forged one
# (every offset into one long string) would grow with the square of its size.
_MOST_BYTES_PER_BYTE = 16
_MOST_BYTES = 2**31 - 1  # of all strings in one Arrow array


class StringTables:
    """The string tables of several files, laid end to end."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._begins: list[int] = []
        self._ends: list[int] = []

    def add(self, append: Callable[[bytearray], None]) -> None:
        """Add a table, which ``append`` appends to the bytes that it is given."""
        self._begins.append(len(self._bytes))
        append(self._bytes)
        self._ends.append(len(self._bytes))
        self._bytes += b"\0"  # so that every name ends, and none in a table that is not its own

    def names(
        self, tables: Int64s, offsets: Int64s, damaged: Callable[[int, str], UnreadableFile]
    ) -> pa.DictionaryArray:
        """Return the names at offsets into tables.

        Parameters
        ----------
        tables
            For each name, which table it is in, in the order in which they were added.
        offsets
            For each name, its first byte within that table. Offset 0 of an empty table is the empty name.
        damaged
            Makes the error for a table, of which the problem is known.

        Returns
        -------
        pyarrow.DictionaryArray
            As long as ``offsets``, ``dictionary<int32, string>`` without unused or repeated entries. Bytes that are
            not UTF-8 become backslash escapes.

        Raises
        ------
        UnreadableFile
            A name lies outside its table, or the names take up an unbelievable amount of memory.
        """
        raw = np.frombuffer(self._bytes, np.uint8)
        ends = np.flatnonzero(raw == 0)
        starts = np.asarray(self._begins, np.int64)[tables] + offsets
        self._check(tables, offsets, starts, damaged)
        strings = np.searchsorted(ends, starts)
        self._check_terminated(tables, ends[strings], damaged)

        begins = np.concatenate(([0], ends + 1))  # one more than there are strings
        apart = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(ends), [None, pa.py_buffer(begins), pa.py_buffer(raw)]
        ).dictionary_encode()
        # a name is known by the distinct string it lies in and the number of bytes left out at the string's front
        distinct_strings = apart.indices.to_numpy()[strings].astype(np.int64)
        keys = pa.array(distinct_strings << 32 | (starts - begins[strings])).dictionary_encode()
        distinct = keys.dictionary.to_numpy()
        used, which = np.unique(distinct >> 32, return_inverse=True)
        whole = apart.dictionary.take(pa.array(used))
        cut = distinct & 0xFFFFFFFF
        size = int(np.sum(pc.binary_length(whole).to_numpy()[which] - cut - 1))
        if size > min(_MOST_BYTES_PER_BYTE * len(raw) + 4096, _MOST_BYTES):
            largest = np.bincount(tables, ends[strings] - starts).argmax()
            raise damaged(int(largest), f"the names of its sections or symbols would take up {size:,} bytes")
        spelled = whole.to_pylist()
        texts = [
            spelled[string][begin:-1].decode("utf-8", "backslashreplace")
            for string, begin in zip(which.tolist(), cut.tolist(), strict=True)
        ]
        return encoded(keys.indices.to_numpy(), texts)

    def _check(
        self, tables: Int64s, offsets: Int64s, starts: Int64s, damaged: Callable[[int, str], UnreadableFile]
    ) -> None:
        ends = np.asarray(self._ends, np.int64)[tables]
        outside = np.flatnonzero((starts >= ends) & (offsets > 0))
        if len(outside):
            row = outside[0]
            table = int(tables[row])
            size = self._ends[table] - self._begins[table]
            raise damaged(table, f"a name begins at byte {offsets[row]:,} of a string table of {size:,} bytes")

    def _check_terminated(self, tables: Int64s, ends: Int64s, damaged: Callable[[int, str], UnreadableFile]) -> None:
        table_ends = np.asarray(self._ends, np.int64)
        is_empty = table_ends == np.asarray(self._begins, np.int64)
        running_on = np.flatnonzero((ends == table_ends[tables]) & ~is_empty[tables])
        if len(running_on):
            raise damaged(int(tables[running_on[0]]), "the last name of a string table does not end")


def encoded(codes: npt.NDArray[np.integer], texts: Sequence[str]) -> pa.DictionaryArray:
    """Return the texts that codes stand for as ``dictionary<int32, string>``; texts may be repeated."""
    positions: dict[str, int] = {}
    renumbered = np.array([positions.setdefault(text, len(positions)) for text in texts], np.int32)
    indices = renumbered[codes] if len(codes) else np.empty(0, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(list(positions), pa.string()))


def category(values: npt.NDArray[np.integer], name: Callable[[int], str]) -> pa.DictionaryArray:
    """Return the names of numbers as ``dictionary<int32, string>``, calling ``name`` once for each distinct number."""
    numbers = pa.array(values).dictionary_encode()
    return encoded(numbers.indices.to_numpy(), [name(number) for number in numbers.dictionary.to_pylist()])
