"""profile.pop_cache: the execution trace as the vendor's viewer cached it beside profile.pop.

The layout was learned from a real file (a viewer of 2022). Tables are found by their prefix,
``execution_trace_blocks_v<version>_<options>``; of several, the highest version is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pvanalyse.errors import UnknownLayout, UnreadableFile
from pvanalyse.readers.sqlite import STORAGE_OF, Database, Field, quote_identifier
from pvanalyse.tables import TRACE_CACHE, Kind, tables_of

_BLOCKS = re.compile(r"execution_trace_blocks_v(\d+)_(\w*)")
_STORED = {"block_id": "id", "depth": "row"}  # where the name in the file is another
_LAST = 0x80  # marks the last byte of a number
_MAX_GROUPS = 9  # base-128 digits that fit into 63 bits

(_SCHEMA,) = tables_of(TRACE_CACHE)


class TraceCache:
    """An open profile.pop_cache; a context manager.

    Attributes
    ----------
    table_name
        The table of blocks that is read.
    profile_change_counter
        SQLite's change counter of the profile.pop that the cache was made from; None when it is not recorded.

    Raises
    ------
    UnreadableFile
        The file is missing or damaged.
    UnknownLayout
        It has no table of blocks, or one with other columns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = Database(path)
        try:
            tables = self.database.tables()
            self.table_name = _newest(path, tables)
            missing = {_STORED.get(name, name) for name in _SCHEMA.column_names} - set(tables[self.table_name])
            if missing:
                raise UnknownLayout(path, f"table '{self.table_name}' lacks the column '{min(missing)}'")
            self.profile_change_counter = self._change_counter(tables)
        except BaseException:
            self.database.close()
            raise

    def __enter__(self) -> TraceCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def count(self) -> int:
        """Return the number of blocks."""
        return self.database.count(self._query())

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Stream the table ``trace_blocks``, or only some of its columns, by block id.

        Raises
        ------
        UnreadableFile
            The file is damaged.
        """
        schema = _SCHEMA.arrow_schema(None if columns is None else tuple(columns))
        fields = [Field(name, STORAGE_OF[_SCHEMA.by_name[name].kind]) for name in schema.names]
        for batch in self.database.batches(self._query(), fields, "block_id"):
            yield pa.RecordBatch.from_arrays(
                [self._decode(name, array) for name, array in zip(schema.names, batch.columns, strict=True)],
                names=schema.names,
            )

    def _decode(self, name: str, array: pa.Array) -> pa.Array:
        kind = _SCHEMA.by_name[name].kind
        if kind is Kind.INTEGERS:
            try:
                return decode_step_ids(array)
            except ValueError as error:
                raise UnreadableFile(self.path, f"damaged: {self.table_name}.step_ids: {error}") from None
        return array.dictionary_encode() if kind is Kind.CATEGORY else array

    def _query(self) -> str:
        columns = ", ".join(
            f"{quote_identifier(_STORED.get(name, name))} AS {quote_identifier(name)}" for name in _SCHEMA.column_names
        )
        return f"SELECT {columns} FROM {quote_identifier(self.table_name)}"

    def _change_counter(self, tables: dict[str, list[str]]) -> int | None:
        if "profile_pop_fcc" not in tables.get("cache_info", ()):
            return None
        rows = self.database.rows("SELECT profile_pop_fcc FROM cache_info ORDER BY id LIMIT 1")
        return rows[0][0] if rows and isinstance(rows[0][0], int) else None


def decode_step_ids(blobs: pa.Array) -> pa.Array:
    """Return the step ids in a binary array as lists of integers.

    A number is its base-128 digits, the most significant first; the last byte of each number has bit 0x80 set, so
    ``05 dd`` is 5 × 128 + 93 = 733.

    Raises
    ------
    ValueError
        A number is cut off or does not fit into 63 bits.
    """
    offsets = np.frombuffer(blobs.buffers()[1], np.int32, len(blobs) + 1, blobs.offset * 4)
    first, last = int(offsets[0]), int(offsets[-1])
    raw = np.frombuffer(blobs.buffers()[2], np.uint8, last - first, first) if last > first else np.empty(0, np.uint8)
    ends = np.flatnonzero(raw & _LAST)
    rows = offsets - first
    filled = rows[1:] > rows[:-1]
    if not (raw[rows[1:][filled] - 1] & _LAST).all():
        row = int(np.flatnonzero(filled)[np.flatnonzero(~(raw[rows[1:][filled] - 1] & _LAST).astype(bool))[0]])
        raise ValueError(f"the last number of row {row + 1} is cut off")
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    lengths = ends - starts + 1
    if len(lengths) and lengths.max() > _MAX_GROUPS:
        raise ValueError(f"a number of {lengths.max()} bytes does not fit into 63 bits")
    places = np.repeat(ends, lengths) - np.arange(len(raw))
    digits = (raw & 0x7F).astype(np.int64) << (7 * places)
    numbers = np.add.reduceat(digits, starts) if len(starts) else np.empty(0, np.int64)
    positions = pa.array(np.searchsorted(ends, rows, "left").astype(np.int32))
    return pa.ListArray.from_arrays(positions, pa.array(numbers, pa.int64()))


def _newest(path: Path, tables: dict[str, list[str]]) -> str:
    found = [(int(match[1]), match[2], name) for name in tables if (match := _BLOCKS.fullmatch(name))]
    if not found:
        raise UnknownLayout(
            path, f"no table 'execution_trace_blocks_v…' in this database (its tables: {', '.join(tables) or 'none'})"
        )
    return max(found)[2]
