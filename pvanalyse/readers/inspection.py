"""What is in a SQLite file of any layout, so that a dialect can be written for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pvanalyse.readers.dialect import builtin_dialects
from pvanalyse.readers.sqlite import Database, quote_identifier

SAMPLE_ROWS = 10_000
"""Rows of a table that are looked at to tell what its columns hold."""

_TILES_OF_AN_IPU = (1216, 1472)  # Mk1, Mk2
_FEWEST_TILES = 4


@dataclass(frozen=True, slots=True)
class BlobFacts:
    """Sizes of the BLOBs of a column, in bytes, and what they look like.

    Attributes
    ----------
    packed
        ``u32`` or ``u64`` when every BLOB could be that many-bit integers, one per tile; otherwise empty.
    values
        How many integers that would be in each.
    """

    smallest: int
    largest: int
    packed: str = ""
    values: int = 0


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column: what it was declared as, and how many values of each storage class were found."""

    name: str
    declared: str
    found: Mapping[str, int]
    blobs: BlobFacts | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table or view; ``sampled`` rows of ``rows`` were looked at, of a view none: it is a program that may not end.

    ``key`` is what orders its rows: the primary key, or SQLite's ``rowid``; empty for a view.
    """

    name: str
    kind: str
    rows: int
    sampled: int
    columns: tuple[ColumnFacts, ...]
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """A SQLite file; ``dialect`` is the built-in one that reads it, or empty."""

    path: Path
    bytes: int
    application_id: int
    user_version: int
    page_size: int
    change_counter: int
    dialect: str
    tables: tuple[TableFacts, ...]


def inspect_database(path: Path, sample_rows: int = SAMPLE_ROWS) -> DatabaseFacts:
    """Describe a SQLite file.

    Parameters
    ----------
    path
        The file.
    sample_rows
        How many rows of each table to look at; the row counts are of all.

    Raises
    ------
    UnreadableFile
        The file is missing, not SQLite, or damaged.
    """
    with Database(path, views=True) as database:
        return DatabaseFacts(
            path=path,
            bytes=path.stat().st_size,
            application_id=database.pragma("application_id"),
            user_version=database.pragma("user_version"),
            page_size=database.pragma("page_size"),
            change_counter=database.change_counter,
            dialect=next((dialect.name for dialect in builtin_dialects() if dialect.recognises(database)), ""),
            tables=tuple(_table(database, name, sample_rows) for name in database.tables()),
        )


def looks_packed(blobs: Sequence[bytes]) -> tuple[str, int]:
    """Tell whether BLOBs look like one unsigned integer per tile.

    They do when all have one size that is a plausible number of 32-bit or 64-bit integers. When every second 32-bit
    word is zero, and not all are, they are taken for 64-bit ones.

    Returns
    -------
    packed, values
        ``u32``, ``u64`` or empty, and the number of integers.
    """
    sizes = {len(blob) for blob in blobs}
    if len(sizes) != 1:
        return "", 0
    (size,) = sizes
    if size % 4 or size < 4 * _FEWEST_TILES:
        return "", 0
    words = np.frombuffer(b"".join(blobs), "<u4").reshape(len(blobs), -1)
    if size % 8 == 0 and not words[:, 1::2].any() and words[:, ::2].any():
        whole_ipus = any(size // 4 % tiles == 0 for tiles in _TILES_OF_AN_IPU)
        half_ipus = any(size // 8 % tiles == 0 for tiles in _TILES_OF_AN_IPU)
        if half_ipus or not whole_ipus:
            return "u64", size // 8
    return "u32", size // 4


def _table(database: Database, name: str, sample_rows: int) -> TableFacts:
    source = quote_identifier(name)
    (kind,) = database.schema("SELECT type FROM sqlite_master WHERE name = ?", (name,))[0]
    declared = database.schema("SELECT name, type, pk FROM pragma_table_info(?)", (name,))
    if kind == "view":
        return TableFacts(
            name, kind, 0, 0, tuple(ColumnFacts(column, as_declared, {}) for column, as_declared, _ in declared)
        )
    rows = database.count(f"SELECT * FROM {source}")
    sample = f"(SELECT * FROM {source} LIMIT {int(sample_rows)})"
    columns = tuple(_column(database, column, as_declared, sample) for column, as_declared, _ in declared)
    key = tuple(column for column, _, at in sorted(declared, key=lambda row: row[2]) if at)
    return TableFacts(name, kind, rows, min(rows, sample_rows), columns, key or ("rowid",))


def _column(database: Database, name: str, declared: str, sample: str) -> ColumnFacts:
    column = quote_identifier(name)
    found = database.rows(f"SELECT typeof({column}), count(*) FROM {sample} GROUP BY 1 ORDER BY 2 DESC, 1")
    blobs = _blobs(database, column, sample) if any(kind == "blob" for kind, _ in found) else None
    return ColumnFacts(name, declared, dict(found), blobs)


def _blobs(database: Database, column: str, sample: str) -> BlobFacts:
    only = f"FROM {sample} WHERE typeof({column}) = 'blob'"
    smallest, largest = database.rows(f"SELECT min(length({column})), max(length({column})) {only}")[0]
    some = [blob for (blob,) in database.rows(f"SELECT {column} {only} LIMIT 64")]
    packed, values = looks_packed(some) if smallest == largest else ("", 0)
    return BlobFacts(smallest, largest, packed, values)
