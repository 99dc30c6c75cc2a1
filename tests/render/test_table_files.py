"""Tables as files, read back and compared with profile.pop as the standard library reads it."""

from __future__ import annotations

import csv
import json
import sqlite3
import struct
from contextlib import closing
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from pvanalyse.render.table_files import write_csv, write_parquet, write_sqlite
from pvanalyse.report import open_report
from pvanalyse.tables import PROFILE, TABLES, Kind, TableSchema
from tests.oracle.reports import make_report, write_profile
from tests.render.hostile import NAMES

STORED = [schema.name for schema in TABLES.values() if schema.source == PROFILE]
SEEDS = range(3)
Row = tuple[Any, ...]


@pytest.fixture(params=SEEDS)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A report with every table of profile.pop."""
    make_report(tmp_path / "report", request.param, dropped=frozenset(), emptied=frozenset())
    return tmp_path / "report"


def stored(directory: Path, schema: TableSchema) -> list[Row]:
    """The rows of a table as they are in the file, per-tile arrays unpacked and truth values made so."""
    names = ", ".join(f'"{name}"' for name in schema.column_names)
    with closing(sqlite3.connect(directory / "profile.pop")) as database:
        rows = database.execute(f"SELECT {names} FROM {schema.name}").fetchall()
    return [
        tuple(_meant(value, column.kind) for value, column in zip(row, schema.columns, strict=True)) for row in rows
    ]


def _meant(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind is Kind.PER_TILE:
        return list(struct.unpack(f"<{len(value) // 4}I", value))
    return {Kind.BOOLEAN: bool, Kind.REAL: float}.get(kind, lambda same: same)(value)


def ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def read_csv(data: bytes, schema: TableSchema) -> list[Row]:
    """The rows of a CSV file by Python's csv module, which reads a null and an empty text alike."""
    text = data.decode("utf-8")
    plain = csv.reader(StringIO(text, newline=""), strict=True)
    assert next(plain) == list(schema.column_names)
    return [
        tuple(_from_text(value, column.kind) for value, column in zip(row, schema.columns, strict=True))
        for row in plain
    ]


def _from_text(value: str, kind: Kind) -> Any:
    if kind in (Kind.TEXT, Kind.CATEGORY):
        return value or None  # the two empty ones have a test of their own
    if value == "":
        return None
    if kind is Kind.REAL:
        return float(value)
    return json.loads(value)


@pytest.mark.parametrize("name", STORED)
def test_csv_holds_the_table(directory: Path, name: str) -> None:
    schema, out = TABLES[name], BytesIO()
    with open_report(directory) as report:
        rows = write_csv(report, name, out)
    found = read_csv(out.getvalue(), schema)
    texts = [at for at, column in enumerate(schema.columns) if column.kind in (Kind.TEXT, Kind.CATEGORY)]
    wanted = [tuple((value or None) if at in texts else value for at, value in enumerate(row))
              for row in stored(directory, schema)]  # fmt: skip
    assert ordered(found) == ordered(wanted)
    assert rows == len(wanted)


@pytest.mark.parametrize("name", STORED)
def test_parquet_holds_the_table_with_types_and_units(directory: Path, name: str) -> None:
    schema, out = TABLES[name], BytesIO()
    with open_report(directory) as report:
        rows = write_parquet(report, name, out)
    table = pyarrow.parquet.read_table(BytesIO(out.getvalue()))
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert ordered(found) == ordered(stored(directory, schema))
    assert rows == len(found)
    types = [field.type.value_type if pa.types.is_list(field.type) else field.type for field in table.schema]
    assert types == [
        {Kind.PER_TILE: pa.uint32(), Kind.INTEGERS: pa.int64()}.get(column.kind, column.arrow_type())
        for column in schema.columns
    ]
    described = [
        (field.name, field.metadata[b"doc"].decode(), field.metadata[b"unit"].decode()) for field in table.schema
    ]
    assert described == [(column.name, column.doc, column.unit) for column in schema.columns]


def test_sqlite_holds_the_tables(directory: Path, tmp_path: Path) -> None:
    with open_report(directory) as report:
        rows = write_sqlite(report, STORED, tmp_path / "tables.db")
    with closing(sqlite3.connect(tmp_path / "tables.db")) as database:
        assert {name for (name,) in database.execute("SELECT name FROM sqlite_master")} == set(STORED)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for name in STORED:
            schema = TABLES[name]
            cursor = database.execute(f'SELECT * FROM "{name}"')
            assert [one[0] for one in cursor.description] == list(schema.column_names)
            found = [tuple(_from_sql(value, column.kind) for value, column in zip(row, schema.columns, strict=True))
                     for row in cursor]  # fmt: skip
            assert ordered(found) == ordered(stored(directory, schema))
            assert rows[name] == len(found)


def _from_sql(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind is Kind.PER_TILE:
        return json.loads(value)
    return {Kind.BOOLEAN: bool}.get(kind, lambda same: same)(value)


def test_csv_tells_an_empty_text_from_none(tmp_path: Path) -> None:
    # GIVEN variables without a type, and with one of no letters
    rows = [{"variable_id": at, "name": "v", "element_type": kind} for at, kind in enumerate((None, "", "half"))]
    write_profile(tmp_path / "profile.pop", {"variables": rows})
    out = BytesIO()
    with open_report(tmp_path) as report:
        write_csv(report, "variables", out)
    columns = TABLES["variables"].column_names
    at = columns.index("element_type")
    assert [line.split(",")[at] for line in out.getvalue().decode().splitlines()[1:]] == ["", '""', '"half"']


def test_hostile_names_come_through_as_they_are(tmp_path: Path) -> None:
    names = [name.encode("utf-8", "backslashreplace").decode() for name in NAMES.values() if name]
    write_profile(tmp_path / "profile.pop", {"programs": [{"program_id": at, "type": "Sync", "name": name}
                                                          for at, name in enumerate(names)]})  # fmt: skip
    text, parquet, database = BytesIO(), BytesIO(), tmp_path / "tables.db"
    with open_report(tmp_path) as report:
        write_csv(report, "programs", text)
        write_parquet(report, "programs", parquet)
        write_sqlite(report, ["programs"], database)
    at = TABLES["programs"].column_names.index("name")
    assert [row[at] for row in read_csv(text.getvalue(), TABLES["programs"])] == names
    assert pyarrow.parquet.read_table(parquet).column("name").to_pylist() == names
    with closing(sqlite3.connect(database)) as opened:
        assert [name for (name,) in opened.execute("SELECT name FROM programs")] == names


def test_what_was_not_captured(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {}, ["runs"])
    with open_report(tmp_path) as report:
        with pytest.raises(NotCaptured, match="'runs' was not captured"):
            write_csv(report, "runs", BytesIO())
        with pytest.raises(NotCaptured, match="'runs' was not captured"):
            write_parquet(report, "runs", BytesIO())
        with pytest.raises(NotCaptured, match="'runs' was not captured"):
            write_sqlite(report, ["runs"], tmp_path / "tables.db")
        with pytest.raises(UsageError, match="there is no table 'rums'; did you mean runs"):
            write_csv(report, "rums", BytesIO())


def test_a_place_where_no_database_can_be(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {})
    with open_report(tmp_path) as report, pytest.raises(PvanalyseError, match="the database cannot be written"):
        write_sqlite(report, ["report_info"], tmp_path / "nowhere" / "tables.db")
