"""A description of a SQLite file, for people and programs."""

from __future__ import annotations

from dataclasses import asdict

from pvanalyse.readers.inspection import ColumnFacts, DatabaseFacts, TableFacts
from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, Value

_FIELDS = [
    Field("Column", "column"),
    Field("Declared", "declared"),
    Field("Found", "found"),
    Field("Nulls", "nulls", Unit.COUNT),
    Field("BLOB bytes", "blob_bytes"),
    Field("Looks like", "looks_like", prose=True),
]

_STORAGE_CLASSES = ("integer", "real", "text", "blob", "null")
_CSV_FIELDS = [
    Field("Table", "table"),
    Field("Kind", "kind"),
    Field("Rows", "rows", Unit.COUNT),
    Field("Looked at", "sampled", Unit.COUNT),
    Field("Column", "column"),
    Field("Declared", "declared"),
    *(Field(name, name, Unit.COUNT) for name in _STORAGE_CLASSES),
    Field("Smallest BLOB", "smallest_blob_bytes", Unit.BYTES),
    Field("Largest BLOB", "largest_blob_bytes", Unit.BYTES),
    Field("Packed", "packed"),
    Field("Values", "values", Unit.COUNT),
]


def inspection_document(facts: DatabaseFacts) -> Document:
    """Return a description as a document."""
    about = [
        Fact("Size", facts.bytes, Unit.BYTES),
        Fact("Read by dialect", facts.dialect or "none: --suggest-dialect FILE drafts one"),
        Fact("Application id", facts.application_id, Unit.ADDRESS),
        Fact("User version", facts.user_version),
        Fact("Page size", facts.page_size, Unit.BYTES),
        Fact("Change counter", facts.change_counter, Unit.COUNT),
        Fact("Tables", len(facts.tables), Unit.COUNT),
    ]
    data = asdict(facts) | {"path": str(facts.path)}
    sections = [Section("SQLite database", about), *map(_table, facts.tables)]
    rows = [_csv_row(table, column) for table in facts.tables for column in table.columns]
    return Document(str(facts.path), sections, data, grid=Grid("", _CSV_FIELDS, rows))


def _csv_row(table: TableFacts, column: ColumnFacts) -> tuple[Value, ...]:
    blobs = column.blobs
    sizes = (blobs.smallest, blobs.largest, blobs.packed, blobs.values or None) if blobs else (None, None, "", None)
    found = (None if table.kind == "view" else column.found.get(name, 0) for name in _STORAGE_CLASSES)
    rows = (None, None) if table.kind == "view" else (table.rows, table.sampled)
    return table.name, table.kind, *rows, column.name, column.declared, *found, *sizes


def _table(table: TableFacts) -> Section:
    rows = [_column(column) for column in table.columns]
    return Section(f"{table.kind} {table.name}: {_seen(table)}", grids=[Grid("", _FIELDS, rows)])


def _seen(table: TableFacts) -> str:
    if table.kind == "view":
        return "not run"
    count = "1 row" if table.rows == 1 else f"{table.rows:,} rows"
    return f"{count}, of which {table.sampled:,} were looked at" if table.sampled < table.rows else count


def _column(column: ColumnFacts) -> tuple[Value, ...]:
    kinds = {kind: count for kind, count in column.found.items() if kind != "null"}
    found = ", ".join(kind if len(kinds) == 1 else f"{kind} {count:,}" for kind, count in kinds.items())
    nulls = column.found.get("null") or None
    blobs = column.blobs
    if blobs is None:
        return column.name, column.declared, found, nulls, None, None
    size = f"{blobs.smallest:,}" if blobs.smallest == blobs.largest else f"{blobs.smallest:,} – {blobs.largest:,}"
    packed = f"{blobs.values:,} × {blobs.packed}, one per tile?" if blobs.packed else None
    return column.name, column.declared, found, nulls, size, packed
