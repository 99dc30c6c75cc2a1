"""SQLite files as Arrow, fast and without trust.

Bulk data goes through ADBC's driver, SQLite to Arrow without Python objects. That driver infers a column's type from
its first rows, and SQLite lets every row of a column have another type; so each query gets a typed first row, which
is cut off again, and where a stored value still contradicts the type, the query is read once more with a guard around
each column: a value of the wrong type becomes null and is counted.

The file format: https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

from pvanalyse.errors import PvanalyseError, UnreadableFile, UsageError
from pvanalyse.readers.files import describe, regular_file
from pvanalyse.tables import Kind

Storage = Literal["integer", "real", "text", "blob"]

STORAGE_OF: Mapping[Kind, Storage] = {
    Kind.INTEGER: "integer",
    Kind.REAL: "real",
    Kind.TEXT: "text",
    Kind.CATEGORY: "text",
    Kind.BOOLEAN: "integer",
    Kind.PER_TILE: "blob",
    Kind.INTEGERS: "blob",
}
"""How SQLite stores a logical column, unless a dialect says otherwise."""

_ARROW: dict[Storage, pa.DataType] = {
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "blob": pa.binary(),
}
_FIRST_ROW: dict[Storage, str] = {"integer": "0", "real": "0.0", "text": "''", "blob": "x''"}
# Text is guarded as bytes: SQLite stores any bytes as text, Arrow only UTF-8.
_GUARD: dict[Storage, str] = {
    "integer": "CASE typeof({c}) WHEN 'integer' THEN {c} END",
    "real": "CASE WHEN typeof({c}) IN ('real', 'integer') THEN CAST({c} AS REAL) END",
    "text": "CASE WHEN typeof({c}) <> 'blob' THEN CAST(CAST({c} AS TEXT) AS BLOB) END",
    "blob": "CASE typeof({c}) WHEN 'blob' THEN {c} END",
}
_WRONG: dict[Storage, str] = {
    "integer": "typeof({c}) NOT IN ('integer', 'null')",
    "real": "typeof({c}) NOT IN ('real', 'integer', 'null')",
    "text": "typeof({c}) = 'blob'",
    "blob": "typeof({c}) NOT IN ('blob', 'null')",
}
_ROWS_PER_BATCH = 65_536
_ROWS_PER_BATCH_WITH_BLOBS = 256  # a per-tile BLOB of 16 IPUs is 94 KB

_STEPS_BETWEEN_BREATHS = 100_000  # of SQLite's virtual machine: some milliseconds
_READ_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION}
_HEADER = struct.Struct(">16sH6xII60xI4x")  # magic, page size, change counter, pages, version valid for


class MissingObject(UsageError):
    """A query names a table or column that the database does not have."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a query's result and how SQLite should store it."""

    name: str
    storage: Storage


class _Contradiction(Exception):
    """A stored value contradicts its column's type."""


def quote_identifier(name: str) -> str:
    """Quote a table or column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def read_header(path: Path) -> int:
    """Check the header of a SQLite file and return its file change counter.

    Raises
    ------
    UnreadableFile
        Not a regular file, not SQLite, or shorter than its header says.
    """
    size, head = regular_file(path, 100)
    if not head.startswith(b"SQLite format 3\0"):
        raise UnreadableFile(path, f"not a SQLite database; it looks like {describe(head)}")
    if len(head) < 100:
        raise UnreadableFile(path, f"truncated: a SQLite header has 100 bytes, the file only {size}")
    _, page_size, changes, pages, valid_for = _HEADER.unpack(head)
    page_size = 65_536 if page_size == 1 else page_size
    if page_size < 512 or page_size & (page_size - 1):
        raise UnreadableFile(path, f"damaged: its SQLite header gives a page size of {page_size}")
    # The page count in the header is only kept up by SQLite 3.7.0 and later, which then sets both counters.
    if changes == valid_for and pages * page_size > size:
        raise UnreadableFile(
            path, f"truncated: its header promises {pages:,} pages ({pages * page_size:,} bytes), it has {size:,} bytes"
        )
    return int(changes)


class Database:
    """A SQLite file, opened read-only and as if nobody could change it.

    Use as a context manager, or call :meth:`close`.

    Parameters
    ----------
    path
        The file.
    views
        Whether :meth:`columns_of` lets queries use views, which are programs and may run for ever.

    Raises
    ------
    UnreadableFile
        Missing, not SQLite, truncated or otherwise damaged.
    """

    def __init__(self, path: Path, views: bool = False) -> None:
        self.path = path
        self._views_allowed = views
        self._read: set[str] = set()
        self.change_counter = read_header(path)
        self.warnings: list[str] = []
        uri = f"file:{quote(str(path.absolute()), errors='surrogateescape')}?mode=ro&immutable=1"
        with self._errors_of("SELECT * FROM sqlite_master"):
            self._sqlite = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._sqlite.text_factory = lambda raw: raw.decode(errors="replace")
            self._sqlite.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self._sqlite.set_authorizer(self._authorise)
            # Python notices Ctrl-C only while it runs; in here, that interrupts the query.
            self._sqlite.set_progress_handler(lambda: 0, _STEPS_BETWEEN_BREATHS)
        try:
            self._adbc_database = adbc_driver_sqlite.connect(uri)
            self._adbc = adbc_driver_manager.AdbcConnection(self._adbc_database)
        except adbc_driver_manager.Error as error:
            raise self._damaged(error) from None

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; further reads fail."""
        self._sqlite.close()
        # A stream that was not read to its end keeps its statement open; both then go with the last reference.
        with suppress(adbc_driver_manager.Error, RuntimeError):
            self._adbc.close()
            self._adbc_database.close()

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a small query as Python values.

        Raises
        ------
        UnreadableFile
            The file is damaged.
        MissingObject
            The query names what is not there.
        """
        with self._errors_of(query):
            return self._sqlite.execute(query, parameters).fetchall()

    def schema(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query of our own that asks SQLite about the file, which others may not."""
        self._sqlite.set_authorizer(None)
        try:
            return self.rows(query, parameters)
        finally:
            self._sqlite.set_authorizer(self._authorise)

    def tables(self) -> dict[str, list[str]]:
        """Return the columns of every table and view by its name, SQLite's own left out."""
        listed = self.schema(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "ORDER BY rowid"
        )
        columns = "SELECT name FROM pragma_table_info(?)"
        return {name: [row[0] for row in self.schema(columns, (name,))] for (name,) in listed}

    def pragma(self, name: Literal["application_id", "user_version", "page_size"]) -> int:
        """Return one of the file's integer pragmas."""
        return int(self.schema(f"PRAGMA {name}")[0][0])

    def columns_of(self, query: str) -> list[str]:
        """Return the names of a query's columns, having checked that it only reads.

        Raises
        ------
        UsageError
            The query is not one reading statement, or not SQL.
        MissingObject
            The query names a table or column that is not there.
        UnreadableFile
            The file is damaged.
        """
        self._check(query)
        views = self._read & {name for (name,) in self.schema("SELECT name FROM sqlite_master WHERE type = 'view'")}
        if views and not self._views_allowed:
            raise UnreadableFile(self.path, f"'{min(views)}' is a view where a table should be, and is not run")
        return self._names(query)

    def count(self, query: str) -> int:
        """Return the number of rows of a query."""
        return int(self.rows(f"SELECT count(*) FROM ({query}\n)")[0][0])

    def batches(self, query: str, fields: Sequence[Field], order: str = "") -> Iterator[pa.RecordBatch]:
        """Stream the named columns of a query.

        Parameters
        ----------
        query
            A ``SELECT`` that has (at least) the columns of ``fields``.
        fields
            Columns to read; the batches have these, with the Arrow type of their storage class.
        order
            The text of an ``ORDER BY`` clause; with one, columns read separately still belong together.

        Raises
        ------
        UnreadableFile
            The file is damaged.
        """
        delivered = 0
        try:
            for batch in self._typed(query, fields, order):
                yield batch
                delivered += batch.num_rows
        except _Contradiction:
            self._count_wrong(query, fields)
            for batch in self._guarded(query, fields, order):
                # The rows that were handed out before the contradiction are not handed out again.
                skip = min(delivered, batch.num_rows)
                delivered -= skip
                if skip < batch.num_rows:
                    yield batch.slice(skip)

    def query(self, sql: str) -> pa.Table:
        """Return the result of a reading statement of the user's.

        Raises
        ------
        UsageError
            Not a single reading statement, or not SQL, or a column mixes types.
        """
        self._check(sql)
        names = self._names(sql)
        try:
            batches = list(self._stream(sql, 1_000_000))
        except _Contradiction as error:
            raise UsageError(f"a column of the result mixes types ({error}); CAST it to one type") from None
        schema = batches[0].schema if batches else pa.schema([(name, pa.null()) for name in names])
        return pa.Table.from_batches(batches, schema)

    def _check(self, query: str) -> None:
        self._read.clear()
        with self._errors_of(query):
            self._sqlite.execute(f"EXPLAIN {query}\n").close()

    def _names(self, query: str) -> list[str]:
        # As a subquery, so that nothing but a SELECT will do.
        with self._errors_of(query), closing(self._sqlite.execute(f"SELECT * FROM ({query}\n) LIMIT 0")) as cursor:
            return [column[0] for column in cursor.description]

    @contextmanager
    def _errors_of(self, query: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.ProgrammingError, sqlite3.Warning) as error:
            raise UsageError(f"a query must be a single SELECT statement: {error}") from None
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None
            raise self._explain(error, query) from None
        except UnicodeDecodeError:
            # Python's sqlite3 fails like this over names of columns, and over SQLite's messages that contain them.
            raise UnreadableFile(self.path, "damaged: a name in its schema is not UTF-8 text") from None

    def _authorise(
        self, action: int, first: str | None, second: str | None, _database: str | None, inside: str | None
    ) -> int:
        # A view is told as the table that is read, or as what the reading happens inside of.
        self._read |= {name for name in (first if action == sqlite3.SQLITE_READ else None, inside) if name}
        allowed = action in _READ_ACTIONS and second != "load_extension"
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _typed(self, query: str, fields: Sequence[Field], order: str) -> Iterator[pa.RecordBatch]:
        first = ", ".join(f"{_FIRST_ROW[f.storage]} AS {quote_identifier(f.name)}" for f in fields)
        schema = pa.schema([(f.name, _ARROW[f.storage]) for f in fields])
        has_text = any(f.storage == "text" for f in fields)
        # The driver takes numbers and text for BLOBs without a word. To look at types needs no BLOB to be read.
        wrong = " OR ".join(_WRONG["blob"].format(c=quote_identifier(f.name)) for f in fields if f.storage == "blob")
        if wrong and self.rows(f"SELECT 1 FROM ({query}\n) WHERE {wrong} LIMIT 1"):
            raise _Contradiction
        skip = 1
        for batch in self._stream(f"SELECT {first} UNION ALL {_select(query, fields, order)}", _rows_per_batch(fields)):
            if batch.schema != schema:
                raise _Contradiction
            if has_text:
                try:
                    batch.validate(full=True)
                except pa.ArrowInvalid:
                    raise _Contradiction from None
            rest = batch.slice(skip)
            skip = 0
            if rest.num_rows:
                yield rest

    def _guarded(self, query: str, fields: Sequence[Field], order: str) -> Iterator[pa.RecordBatch]:
        as_bytes = [Field(f.name, "blob" if f.storage == "text" else f.storage) for f in fields]
        columns = ", ".join(
            f"{_GUARD[f.storage].format(c=quote_identifier(f.name))} AS {quote_identifier(f.name)}" for f in fields
        )
        for batch in self._typed(f"SELECT {columns} FROM ({_select(query, fields, order)} LIMIT -1)", as_bytes, ""):
            arrays = [
                _decode_text(array) if field.storage == "text" else array
                for field, array in zip(fields, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=[f.name for f in fields])

    def _count_wrong(self, query: str, fields: Sequence[Field]) -> None:
        counts = ", ".join(f"sum({_WRONG[f.storage].format(c=quote_identifier(f.name))})" for f in fields)
        (row,) = self.rows(f"SELECT {counts} FROM ({query}\n)")
        for field, count in zip(fields, row, strict=True):
            if count:
                warning = (
                    f"{self.path}: {count:,} values of column '{field.name}' are not {field.storage} and are left out"
                )
                if warning not in self.warnings:
                    self.warnings.append(warning)

    def _stream(self, sql: str, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        statement = adbc_driver_manager.AdbcStatement(self._adbc)
        try:
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(rows_per_batch)})
            statement.set_sql_query(sql)
            handle, _ = statement.execute_query()
            with pa.RecordBatchReader.from_stream(handle) as reader:
                yield from reader
        except UnicodeDecodeError:
            raise UnreadableFile(self.path, "damaged: a name in its schema is not UTF-8 text") from None
        except (adbc_driver_manager.Error, pa.ArrowException, OSError) as error:
            if "Type mismatch" in str(error):
                raise _Contradiction(str(error)) from None
            raise self._damaged(error) from None
        finally:
            statement.close()

    def _explain(self, error: sqlite3.Error, query: str) -> PvanalyseError:
        message = str(error)
        if message.startswith(("no such table", "no such column")):
            return MissingObject(message)
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_AUTH or "prohibited" in message or "not authorized" in message:
            return UsageError(f"a query may only read: {query.strip().splitlines()[0][:80]!r} is refused")
        if isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_ERROR:
            return UsageError(f"not valid SQL: {message}")
        return self._damaged(error)

    def _damaged(self, error: Exception) -> UnreadableFile:
        message = " ".join(str(error).split())
        return UnreadableFile(self.path, f"damaged: SQLite says '{message}'")


def _rows_per_batch(fields: Iterable[Field]) -> int:
    return _ROWS_PER_BATCH_WITH_BLOBS if any(f.storage == "blob" for f in fields) else _ROWS_PER_BATCH


def _select(query: str, fields: Sequence[Field], order: str) -> str:
    columns = ", ".join(quote_identifier(f.name) for f in fields)
    # The inner ORDER BY is kept by SQLite because the outer query has none of its own.
    return f"SELECT {columns} FROM ({query}\n{f'ORDER BY {order}' if order else ''})"


def _decode_text(array: pa.Array) -> pa.Array:
    return pa.array(
        [None if value is None else value.decode("utf-8", "replace") for value in array.to_pylist()], pa.string()
    )
