"""profile.pop: a SQLite database, read through the dialect that recognises it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from pvanalyse.errors import NotCaptured, UnknownLayout, UnreadableFile
from pvanalyse.readers.dialect import BadValue, Dialect, Query, builtin_dialects
from pvanalyse.readers.sqlite import Database, Field, MissingObject, quote_identifier
from pvanalyse.tables import Column, Where, table

Progress = Callable[[str, int], None]
"""Called with a table's name and the number of its rows read so far."""


class Profile:
    """An open profile.pop; a context manager.

    Parameters
    ----------
    path
        The file.
    dialect
        The layout; by default the built-in dialect that recognises the file.
    progress
        Called after each batch of rows.

    Raises
    ------
    UnknownLayout
        No built-in dialect recognises the database.
    UnreadableFile
        The file is missing or damaged.
    """

    def __init__(self, path: Path, dialect: Dialect | None = None, progress: Progress | None = None) -> None:
        self.path = path
        self.database = Database(path, views=dialect is not None)
        self._progress = progress or (lambda _table, _rows: None)
        self._columns: dict[str, list[str] | None] = {}
        try:
            self.dialect = dialect or _recognise(self.database)
        except BaseException:
            self.database.close()
            raise

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    @property
    def warnings(self) -> list[str]:
        """What was left out while reading, a sentence each."""
        return self.database.warnings

    @cached_property
    def num_tiles(self) -> int | None:
        """Length of the per-tile columns; None when the target was not captured."""
        if not self.captured("target"):
            return None
        (value,) = self.read("target", ["num_tiles"]).column(0)[:1].to_pylist()
        return int(value) if value is not None else None

    def captured(self, name: str) -> bool:
        """Tell whether a logical table is there and has a row."""
        query = self._query(name)
        return query is not None and bool(self.database.rows(f"SELECT 1 FROM ({query.sql}\n) LIMIT 1"))

    def count(self, name: str) -> int:
        """Return the number of rows of a logical table, 0 when it was not captured."""
        query = self._query(name)
        return self.database.count(query.sql) if query else 0

    def read(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a logical table, or only some of its columns.

        Raises
        ------
        NotCaptured
            The report does not hold this table.
        UnreadableFile
            The file is damaged.
        """
        schema = table(name).arrow_schema(None if columns is None else tuple(columns))
        batches = list(self.batches(name, columns))
        # Each batch brings a dictionary of its own; a column has one.
        return pa.Table.from_batches(batches, schema).unify_dictionaries()

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream a logical table, in the order of its keys; see :meth:`read`. ``where`` is SQLite's to look up."""
        wanted = table(name).select(None if columns is None else tuple(columns))
        query = self._query(name)
        if query is None or not self.captured(name):
            raise NotCaptured(name, self._how(name))
        there = self._columns[name] or []
        self._require(name, [*wanted, *table(name).select(list(where or ()))], there)
        stored = [column for column in wanted if column.name in there]
        fields = [Field(column.name, query.decoder(column.name).storage(column)) for column in stored]
        # A table asked only for columns that are not there still has its number of rows.
        fields = fields or [Field(there[0], "blob")]
        rows = 0
        sql, order = (_chosen(query, where), "") if where else (query.sql, query.order)
        for batch in self.database.batches(sql, fields, order):
            yield self._decode(name, batch, wanted, query)
            rows += batch.num_rows
            self._progress(name, rows)

    def _decode(self, name: str, batch: pa.RecordBatch, wanted: Sequence[Column], query: Query) -> pa.RecordBatch:
        arrays = []
        for column in wanted:
            if column.name in batch.schema.names:
                num_tiles = None if name == "target" else self.num_tiles
                try:
                    decoder = query.decoder(column.name)
                    arrays.append(decoder.decode(batch.column(column.name), column, num_tiles))
                except BadValue as error:
                    raise UnreadableFile(self.path, f"damaged: {name}.{column.name}, {error}") from None
                except pa.ArrowInvalid as error:
                    raise UnreadableFile(self.path, f"damaged: {name}.{column.name}: {error}") from None
            else:
                arrays.append(pa.nulls(batch.num_rows, column.arrow_type()))
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in wanted])

    def _query(self, name: str) -> Query | None:
        """Return the query of a logical table, None when the file has not what the query needs."""
        query = self.dialect.queries.get(table(name).name)
        if query is not None and name not in self._columns:
            try:
                self._columns[name] = self.database.columns_of(query.ordered)
            except MissingObject as missing:
                if "no such column" in str(missing):
                    raise UnreadableFile(self.path, f"table '{name}' cannot be read by dialect "
                                         f"'{self.dialect.name}': {missing}") from None  # fmt: skip
                self._columns[name] = None
        return query if query is not None and self._columns[name] is not None else None

    def _require(self, name: str, wanted: Sequence[Column], there: Sequence[str]) -> None:
        missing = [column.name for column in wanted if column.name not in there and not column.nullable]
        if missing:
            raise UnreadableFile(
                self.path, f"table '{name}' lacks the column '{missing[0]}' (dialect '{self.dialect.name}')"
            )

    def _how(self, name: str) -> str:
        if name not in self.dialect.queries:
            return f"the dialect '{self.dialect.name}' needs a query for it"
        return table(name).capture


def _chosen(query: Query, where: Where) -> str:
    """Return the query for only some rows; in this form SQLite uses an index of the table where there is one."""
    conditions = []
    for name, values in where.items():
        scale = query.decoder(name).scale
        column = quote_identifier(name) if scale == 1 else f"{quote_identifier(name)} * {scale}"
        conditions.append(f"{column} IN ({', '.join(str(int(value)) for value in values)})")
    return f"SELECT * FROM ({query.ordered}\n) WHERE {' AND '.join(conditions)}"


def _recognise(database: Database) -> Dialect:
    for dialect in builtin_dialects():
        if dialect.recognises(database):
            return dialect
    names = list(database.tables())
    found = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    raise UnknownLayout(
        database.path,
        f"no dialect knows the layout of this SQLite database (its tables: {found or 'none'}); "
        "look at it with 'pvanalyse inspect' and read it with '--dialect'",
    )
