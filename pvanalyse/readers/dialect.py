"""Dialects: how the logical tables of :mod:`pvanalyse.tables` are had from a SQLite database of some layout.

The vendor's layout of profile.pop is not public, so the reader knows no layout of its own: a dialect is data, a TOML
file that says how to recognise a database and gives one SQL query per logical table. The built-in ones stand in the
folder ``dialects``; ``pvanalyse inspect FILE --suggest-dialect OUT`` writes one to start from, and ``--dialect OUT``
uses it. The keys of such a file::

    name = "my-sdk"                     # required
    description = "what it reads"

    [[recognise]]                       # any one of these blocks is enough; within a block, all of it must hold
    application_id = 0x50564131         # PRAGMA application_id
    user_version = 3                    # PRAGMA user_version
    tables = { tile = ["id", "total"] } # tables that exist, with the columns that they have
    query = "SELECT ..."                # a query whose first value is true

    [tables.tile_memory]                # one block per logical table; a table without one is "not captured"
    query = "SELECT id AS tile, total AS total_including_gaps, ... FROM tile"
    order = "tile"                      # ORDER BY, so that columns read at different times belong together

    [tables.tile_memory.columns.total_including_gaps]   # decoders, where SQL cannot do it; one column may use several
    scale = 1024                        # multiply an integer
    map = { 0 = "Ipu1", 1 = "Ipu2" }    # replace a value by a text; others stay, as text
    packed = "u32"                      # a per-tile BLOB of u8, u16, u32 or u64 (append "be" for big-endian)
    compression = "zlib"                # the BLOB is compressed: zlib or gzip
    json = true                         # a per-tile column is the text of a JSON array

A query's columns are matched by name. A column that may be null can be left out; one more than needed is ignored.
Per-tile columns are ``packed = "u32"`` unless the dialect says otherwise. Queries may only read.
"""

from __future__ import annotations

import json
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.errors import UnreadableFile, UsageError
from pvanalyse.readers.files import regular_file
from pvanalyse.readers.sqlite import STORAGE_OF, Database, MissingObject, Storage
from pvanalyse.tables import TABLES, Column, Kind

if TYPE_CHECKING:
    from os import PathLike

_PACKED = {f"u{bits}{order}": np.dtype(f"{'>' if order == 'be' else '<'}u{bits // 8}")
           for bits in (8, 16, 32, 64) for order in ("", "le", "be")}  # fmt: skip


class BadValue(Exception):
    """A stored value cannot be decoded; the text says why."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """How a stored column becomes a logical one; see the module's documentation."""

    packed: str = "u32"
    compression: str = ""
    json: bool = False
    scale: int = 1
    map: Mapping[str, str] = field(default_factory=dict)

    def storage(self, column: Column) -> Storage:
        """Return the SQLite storage class that the column is read as."""
        return "text" if self.json else STORAGE_OF[column.kind]

    def decode(self, array: pa.Array, column: Column, num_tiles: int | None) -> pa.Array:
        """Return ``array``, as read from SQLite, as the logical column's Arrow type.

        Raises
        ------
        BadValue
            A per-tile value is not one number per tile.
        """
        if column.kind is Kind.PER_TILE:
            return self._per_tile(array, num_tiles)
        if self.map:
            texts = array.cast(pa.string()).to_pylist()
            array = pa.array([self.map.get(text, text) if text is not None else None for text in texts], pa.string())
        if self.scale != 1:
            array = pc.multiply(array, self.scale)
        if column.kind is Kind.CATEGORY:
            return array.dictionary_encode()
        return array.cast(column.arrow_type())

    def _per_tile(self, array: pa.Array, num_tiles: int | None) -> pa.Array:
        if self.json:
            lists = [None if text is None else _json_numbers(text) for text in array.to_pylist()]
            decoded = pa.array(lists, pa.list_(pa.uint32()))
            _check_lengths(np.diff(decoded.offsets.to_numpy()), array, num_tiles)
            return decoded
        if self.compression:
            array = pa.array([None if raw is None else _decompress(raw) for raw in array.to_pylist()], pa.binary())
        return _unpack(array, _PACKED[self.packed], num_tiles)


@dataclass(frozen=True, slots=True)
class Query:
    """One logical table of a dialect: its SQL and its decoders."""

    sql: str
    order: str
    decoders: Mapping[str, Decoder]

    @property
    def ordered(self) -> str:
        """The SQL with its ORDER BY."""
        return f"{self.sql}\nORDER BY {self.order}" if self.order else self.sql

    def decoder(self, column: str) -> Decoder:
        """Return the decoder of a column."""
        return self.decoders.get(column, Decoder())


@dataclass(frozen=True, slots=True)
class Dialect:
    """A layout of profile.pop: how to recognise it, and a query per logical table."""

    name: str
    description: str
    recognise: tuple[Mapping[str, Any], ...]
    queries: Mapping[str, Query]

    def recognises(self, database: Database) -> bool:
        """Tell whether the database has this layout."""
        return any(_holds(rule, database) for rule in self.recognise)


@cache
def builtin_dialects() -> tuple[Dialect, ...]:
    """Return the dialects that come with pvanalyse."""
    folder = resources.files("pvanalyse.readers") / "dialects"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return tuple(parse_dialect(file.read_text("utf-8"), file.name) for file in files)


def load_dialect(path: str | PathLike[str]) -> Dialect:
    """Read a dialect file.

    Raises
    ------
    UsageError
        It is not a dialect; the message says where and why.
    """
    path = Path(path)
    try:
        regular_file(path)
        return parse_dialect(path.read_text("utf-8"), str(path))
    except UnreadableFile as error:
        raise UsageError(f"dialect {error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"dialect {path}: not UTF-8 text (byte {error.start})") from None


def parse_dialect(text: str, origin: str) -> Dialect:
    """Return the dialect that a TOML text describes; ``origin`` names it in errors.

    Raises
    ------
    UsageError
        Not TOML, an unknown key or table, or a value of the wrong type.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"dialect {origin}: not valid TOML: {error}") from None
    reject = _Reject(origin)
    reject.unknown(data, {"name", "description", "recognise", "tables"}, "")
    name = reject.unless(data.get("name"), str, "name")
    rules = reject.unless(data.get("recognise", []), list, "recognise")
    for rule in rules:
        reject.unless(rule, dict, "recognise")
        reject.unknown(rule, {"application_id", "user_version", "tables", "query"}, "recognise.")
    tables = reject.unless(data.get("tables"), dict, "tables")
    reject.unknown(tables, set(TABLES), "tables.")
    queries = {table: _parse_query(table, block, reject) for table, block in tables.items()}
    return Dialect(name, str(data.get("description", "")), tuple(rules), queries)


def _parse_query(table: str, block: Any, reject: _Reject) -> Query:
    where = f"tables.{table}"
    reject.unless(block, dict, where)
    reject.unknown(block, {"query", "order", "columns"}, f"{where}.")
    sql = reject.unless(block.get("query"), str, f"{where}.query")
    order = reject.unless(block.get("order", ""), str, f"{where}.order")
    columns = reject.unless(block.get("columns", {}), dict, f"{where}.columns")
    reject.unknown(columns, set(TABLES[table].by_name), f"{where}.columns.")
    return Query(sql, order, {name: _parse_decoder(f"{where}.columns.{name}", TABLES[table].by_name[name], spec, reject)
                              for name, spec in columns.items()})  # fmt: skip


def _parse_decoder(where: str, column: Column, spec: Any, reject: _Reject) -> Decoder:
    reject.unless(spec, dict, where)
    reject.unknown(spec, {"packed", "compression", "json", "scale", "map"}, f"{where}.")
    per_tile_only = [key for key in ("packed", "compression", "json") if key in spec]
    if per_tile_only and column.kind is not Kind.PER_TILE:
        reject(f"{where}.{per_tile_only[0]}: column '{column.name}' is not per tile")
    if spec.get("packed", "u32") not in _PACKED:
        reject(f"{where}.packed: {spec['packed']!r} is none of {', '.join(_PACKED)}")
    if spec.get("compression", "") not in ("", "zlib", "gzip"):
        reject(f"{where}.compression: {spec['compression']!r} is neither zlib nor gzip")
    if spec.get("scale", 1) != 1 and column.kind is not Kind.INTEGER:
        reject(f"{where}.scale: column '{column.name}' is not an integer")
    if "map" in spec and column.kind not in (Kind.TEXT, Kind.CATEGORY):
        reject(f"{where}.map: column '{column.name}' is not text")
    return Decoder(
        packed=spec.get("packed", "u32"),
        compression=spec.get("compression", ""),
        json=reject.unless(spec.get("json", False), bool, f"{where}.json"),
        scale=reject.unless(spec.get("scale", 1), int, f"{where}.scale"),
        map={str(k): str(v) for k, v in reject.unless(spec.get("map", {}), dict, f"{where}.map").items()},
    )


@dataclass(frozen=True)
class _Reject:
    """Raises the error of a dialect file, naming the file and the key."""

    origin: str

    def __call__(self, problem: str) -> None:
        raise UsageError(f"dialect {self.origin}: {problem}")

    def unless(self, value: Any, kind: type, key: str) -> Any:
        if not isinstance(value, kind):
            self(f"'{key}' is missing" if value is None else f"'{key}' must be a {kind.__name__}")
        return value

    def unknown(self, block: Mapping[str, Any], allowed: set[str], prefix: str) -> None:
        for key in block:
            if key not in allowed:
                self(f"unknown key '{prefix}{key}'; allowed are {', '.join(sorted(allowed))}")


def _holds(rule: Mapping[str, Any], database: Database) -> bool:
    return bool(rule) and all(holds(value, database) for holds, value in _tests(rule))


def _tests(rule: Mapping[str, Any]) -> Iterator[tuple[Callable[[Any, Database], bool], Any]]:
    tests: dict[str, Callable[[Any, Database], bool]] = {
        "application_id": lambda value, db: db.pragma("application_id") == value,
        "user_version": lambda value, db: db.pragma("user_version") == value,
        "tables": _has_tables,
        "query": _is_true,
    }
    return ((holds, rule[key]) for key, holds in tests.items() if key in rule)


def _has_tables(tables: Mapping[str, list[str]], database: Database) -> bool:
    there = database.tables()
    return all(name in there and set(columns) <= set(there[name]) for name, columns in tables.items())


def _is_true(query: str, database: Database) -> bool:
    try:
        database.columns_of(query)
        rows = database.rows(query)
    except MissingObject:
        return False
    return bool(rows and rows[0][0])


def _unpack(array: pa.Array, packed: np.dtype[Any], num_tiles: int | None) -> pa.Array:
    """View a binary array as lists of unsigned integers, without touching single rows."""
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    lengths = np.diff(offsets)
    if (lengths % packed.itemsize).any():
        row = int(np.flatnonzero(lengths % packed.itemsize)[0])
        raise BadValue(f"row {row + 1}: {lengths[row]} bytes are no whole number of {packed.itemsize}-byte integers")
    _check_lengths(lengths // packed.itemsize, array, num_tiles)
    first, last = int(offsets[0]), int(offsets[-1])
    data = array.buffers()[2]
    values = (
        np.frombuffer(data, packed, (last - first) // packed.itemsize, first) if last > first else np.array([], packed)
    )
    if packed.itemsize == 8 and len(values) and values.max() > np.iinfo(np.uint32).max:
        raise BadValue(f"the value {values.max()} does not fit into 32 bits")
    positions = pa.array((offsets - first) // packed.itemsize, pa.int32())
    return pa.ListArray.from_arrays(
        positions, pa.array(values.astype("<u4", copy=False)), mask=array.is_null() if array.null_count else None
    )


def _check_lengths(lengths: np.ndarray[Any, Any], array: pa.Array, num_tiles: int | None) -> None:
    if num_tiles is None:
        return
    wrong = (lengths != num_tiles) & array.is_valid().to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise BadValue(f"row {row + 1}: {lengths[row]:,} values for {num_tiles:,} tiles")


def _json_numbers(text: str) -> list[int]:
    try:
        numbers = json.loads(text)
        if isinstance(numbers, list) and all(type(number) is int and 0 <= number < 2**32 for number in numbers):
            return numbers
    except (ValueError, RecursionError):
        pass
    raise BadValue(f"{text[:40]!r} is not a JSON array of unsigned 32-bit integers")


def _decompress(raw: bytes) -> bytes:
    limit = 4 * 2**24  # far beyond any number of tiles; a BLOB must not be a bomb
    try:
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        data = unpacker.decompress(raw, limit)
    except zlib.error as error:
        raise BadValue(f"a BLOB cannot be decompressed ({error})") from None
    if unpacker.unconsumed_tail:
        raise BadValue(f"a BLOB decompresses to more than {limit:,} bytes")
    return data
