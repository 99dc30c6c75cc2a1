"""Tables of a report as files for other tools: CSV, Parquet and SQLite, streamed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pvanalyse.errors import PvanalyseError
from pvanalyse.render.streaming import ended
from pvanalyse.tables import Column, Kind, TableSchema, TableSource, table

_SQL_TYPES = {Kind.INTEGER: "INTEGER", Kind.REAL: "REAL", Kind.BOOLEAN: "INTEGER"}  # TEXT otherwise
_LISTS = (Kind.PER_TILE, Kind.INTEGERS)


def write_csv(source: TableSource, name: str, out: BinaryIO) -> int:
    """Write a table as CSV (RFC 4180 but for its line ends, which are LF) and return its number of rows.

    UTF-8 with a header. Texts are quoted and nulls are not, so an empty text (``""``) is no null (nothing); a list is
    a JSON array, a boolean ``true`` or ``false``.

    Raises
    ------
    NotCaptured
        The report does not hold the table.
    UsageError
        There is no such table.
    """
    columns = table(name).columns
    schema = pa.schema([(one.name, _text_type(one)) for one in columns])
    options = pyarrow.csv.WriteOptions(include_header=True, quoting_style="needed")
    rows = 0
    with ended(source.batches(name)) as batches, pyarrow.csv.CSVWriter(out, schema, write_options=options) as writer:
        for batch in batches:
            arrays = [_as_text(array, one) for array, one in zip(batch.columns, columns, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows += batch.num_rows
    return rows


def write_parquet(source: TableSource, name: str, out: BinaryIO) -> int:
    """Write a table as Parquet, compressed by zstd, and return its number of rows.

    Types are those of the data model; what a column means and its unit are metadata of its field.

    Raises
    ------
    NotCaptured
        The report does not hold the table.
    UsageError
        There is no such table.
    """
    schema = _documented(table(name))
    rows = 0
    with (
        ended(source.batches(name)) as batches,
        pyarrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer,
    ):
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            rows += batch.num_rows
    return rows


def write_sqlite(source: TableSource, names: Sequence[str], path: Path) -> Mapping[str, int]:
    """Write tables into a new SQLite database and return the number of rows of each.

    Columns have the names of the data model. A list is text, a JSON array that ``json_each`` takes apart; a boolean is
    0 or 1.

    Parameters
    ----------
    source
        A report.
    names
        Of tables.
    path
        Of a file that is not there yet, or empty.

    Raises
    ------
    NotCaptured
        The report does not hold one of the tables.
    UsageError
        There is no table of one of the names.
    PvanalyseError
        The database cannot be written.
    """
    written = {}
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            # Whoever asked for the file gets it whole or not at all; there is nothing to roll back to.
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("BEGIN")
            for name in dict.fromkeys(names):
                written[name] = _insert(database, source, table(name))
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise PvanalyseError(f"the database cannot be written ({error})") from None
    return written


def _insert(database: sqlite3.Connection, source: TableSource, schema: TableSchema) -> int:
    columns = ", ".join(f'"{one.name}" {_SQL_TYPES.get(one.kind, "TEXT")}' for one in schema.columns)
    insert = f'INSERT INTO "{schema.name}" VALUES ({", ".join("?" for _ in schema.columns)})'  # noqa: S608
    rows = 0
    with ended(source.batches(schema.name)) as batches:
        database.execute(f'CREATE TABLE "{schema.name}" ({columns})')
        for batch in batches:
            values = [_sql_values(array, one) for array, one in zip(batch.columns, schema.columns, strict=True)]
            database.executemany(insert, zip(*values, strict=True))
            rows += batch.num_rows
    return rows


def _sql_values(array: pa.Array, column: Column) -> list[Any]:
    values: list[Any] = (_as_text(array, column) if column.kind in _LISTS else array).to_pylist()
    return values


def _text_type(column: Column) -> pa.DataType:
    return column.arrow_type() if column.kind in (Kind.INTEGER, Kind.REAL, Kind.BOOLEAN) else pa.string()


def _as_text(array: pa.Array, column: Column) -> pa.Array:
    """Return a column as CSV has it: lists as JSON arrays, categories as text."""
    if column.kind in _LISTS:
        joined = pc.binary_join(array.cast(pa.list_(pa.string())), ",")
        return pc.binary_join_element_wise("[", joined, "]", "")
    return array.cast(_text_type(column))


def _documented(schema: TableSchema) -> pa.Schema:
    fields = [pa.field(one.name, one.arrow_type(), metadata={"doc": one.doc, "unit": one.unit})
              for one in schema.columns]  # fmt: skip
    return pa.schema(fields, metadata={"pvanalyse.table": schema.name, "pvanalyse.doc": schema.doc})
