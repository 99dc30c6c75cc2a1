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
    Field("Looks like", "looks_like"),
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
    return Document(str(facts.path), [Section("SQLite database", about), *map(_table, facts.tables)], data)


def _table(table: TableFacts) -> Section:
    seen = f", of which {table.sampled:,} were looked at" if table.sampled < table.rows else ""
    rows = [_column(column) for column in table.columns]
    return Section(f"{table.kind} {table.name}: {table.rows:,} rows{seen}", grids=[Grid("", _FIELDS, rows)])


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
