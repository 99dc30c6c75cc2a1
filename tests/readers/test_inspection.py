"""Descriptions of SQLite files, and drafts of dialects that work."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.dialect import parse_dialect
from pvanalyse.readers.inspection import BlobFacts, ColumnFacts, TableFacts, inspect_database, looks_packed
from pvanalyse.readers.profile import Profile
from pvanalyse.readers.suggestion import match_tables, suggest_dialect
from pvanalyse.tables import PROFILE, tables_of


def make(path: Path, script: str, *rows: tuple[str, tuple[object, ...]]) -> Path:
    with sqlite3.connect(path) as database:
        database.executescript(script)
        for table, values in rows:
            database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
    database.close()
    return path


def test_a_whole_description(tmp_path: Path) -> None:
    # GIVEN a file with a table of mixed values, a view, and an index that is nobody's business
    path = make(
        tmp_path / "x.db",
        "PRAGMA application_id = 305419896; PRAGMA user_version = 3;"
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB); CREATE INDEX i ON t(a);"
        "CREATE VIEW v AS SELECT id FROM t;",
        ("t", (1, "x", bytes(24))), ("t", (2, None, bytes(24))), ("t", (3, 5.5, bytes(24))),
    )  # fmt: skip

    # WHEN it is inspected
    facts = inspect_database(path)

    # THEN everything is told
    assert (facts.application_id, facts.user_version, facts.dialect) == (305419896, 3, "")
    assert facts.tables == (
        TableFacts("t", "table", 3, 3, (
            ColumnFacts("id", "INTEGER", {"integer": 3}),
            ColumnFacts("a", "TEXT", {"text": 2, "null": 1}),
            ColumnFacts("b", "BLOB", {"blob": 3}, BlobFacts(24, 24, "u32", 6)),
        ), ("id",)),
        TableFacts("v", "view", 0, 0, (ColumnFacts("id", "INTEGER", {}),), ()),
    )  # fmt: skip


def pack(values: list[int], kind: str) -> bytes:
    return np.array(values, kind).tobytes()


@pytest.mark.parametrize(
    ("blobs", "expected"),
    [
        ([pack([1, 2, 3, 4], "<u4")], ("u32", 4)),
        ([pack([1, 2, 3, 4], "<u8"), pack([0, 9, 0, 9], "<u8")], ("u64", 4)),
        ([pack([5, 0] * 736, "<u4")], ("u32", 1472)),  # 1,472 words is an IPU; 736 is not
        ([pack([5, 0] * 1472, "<u4")], ("u64", 1472)),
        ([bytes(16), bytes(16)], ("u32", 4)),
        ([bytes(16), bytes(20)], ("", 0)),
        ([bytes(15)], ("", 0)),
        ([bytes(8)], ("", 0)),
        ([], ("", 0)),
    ],
)
def test_what_looks_packed(blobs: list[bytes], expected: tuple[str, int]) -> None:
    assert looks_packed(blobs) == expected


def test_the_draft_for_our_own_layout_reads_every_table(make_profile: Callable[..., Path]) -> None:
    # GIVEN a file of layout pvanalyse-1, whose names are all alike
    path = make_profile({"runs": [(1, "b", 5, 9), (0, "a", 0, 4)], "variable_liveness": [(None, "z", 0, 3, 8)]})

    # WHEN a dialect is drafted for it
    facts = inspect_database(path)
    draft = parse_dialect(suggest_dialect(facts, "draft"), "draft.toml")

    # THEN every table is in it, recognises the file, and reads what the built-in one reads
    assert facts.dialect == "pvanalyse-1"
    assert set(draft.queries) == {schema.name for schema in tables_of(PROFILE)}
    with Profile(path, draft) as drafted, Profile(path) as built_in:
        assert draft.recognises(drafted.database)
        for name in ("runs", "variable_liveness"):
            assert drafted.read(name).to_pylist() == built_in.read(name).to_pylist()


def test_the_draft_for_another_layout_finds_what_is_alike(tmp_path: Path) -> None:
    # GIVEN other spellings, other orders, a table of nothing of ours
    path = make(
        tmp_path / "x.db",
        """
        CREATE TABLE "Runs" (runId INTEGER PRIMARY KEY, "name" TEXT, startUs INTEGER, endUs INTEGER);
        CREATE TABLE lowered_vars (id INTEGER PRIMARY KEY, variableId INTEGER, name TEXT, tile INTEGER,
          offset INTEGER, size INTEGER, alignment INTEGER, category TEXT, region TEXT, alwaysLive INTEGER,
          isConstant INTEGER, isExecutable INTEGER, equivalenceClassId INTEGER, colour TEXT);
        CREATE TABLE recipes (title TEXT, minutes INTEGER);
        """,
        ("Runs", (3, "step", 10, 20)),
        ("lowered_vars", (1, 2, "v", 0, 64, 128, 8, "variable", "interleaved", 0, 0, 0, 5, "red")),
        ("recipes", ("soup", 30)),
    )

    # WHEN a dialect is drafted and used
    text = suggest_dialect(inspect_database(path), "other")
    with Profile(path, parse_dialect(text, "other.toml")) as profile:
        runs = profile.read("runs").to_pylist()
        lowered = profile.read("lowered_variables").to_pylist()

    # THEN it reads them, and says what it left
    assert runs == [{"run_id": 3, "name": "step", "start_us": 10, "end_us": 20}]
    assert lowered == [{
        "lowered_variable_id": 1, "variable_id": 2, "name": "v", "tile": 0, "offset": 64, "bytes": 128, "alignment": 8,
        "category": "variable", "region": "interleaved", "always_live": False, "is_constant": False,
        "is_executable": False, "equivalence_class_id": 5,
    }]  # fmt: skip
    assert "# not used: colour" in text
    assert "#   recipes: title, minutes" in text
    assert "#   tile_memory: tile, total_including_gaps" in text


def test_a_table_that_cannot_be_read_yet_stands_there_as_a_comment(tmp_path: Path) -> None:
    path = make(
        tmp_path / "x.db", "CREATE TABLE runs (run_id INTEGER, name TEXT, start_us INTEGER)", ("runs", (1, "a", 2))
    )
    text = suggest_dialect(inspect_database(path), "x")
    assert "# runs: cannot be read yet, nothing was found for: end_us" in text
    assert parse_dialect(text + "\n[tables]\n", "x").queries == {}


@pytest.mark.parametrize(
    "name", ['a"b', "a\\b", 'x"""y', "new\nline", "tab\tname", "\x7f", "日本", "it's", "# no remark"]
)
def test_hostile_names_do_not_break_the_draft(tmp_path: Path, name: str) -> None:
    # GIVEN a run table whose file, table or column has a hostile name
    quoted = name.replace('"', '""')
    path = make(
        tmp_path / "x.db",
        f'CREATE TABLE runs (run_id INTEGER PRIMARY KEY, name TEXT, start_us INTEGER, end_us INTEGER, "{quoted}" TEXT);'
        f'CREATE TABLE "{quoted}" ("{quoted}" TEXT);',
        ("runs", (1, "a", 2, 3, "x")),
    )

    # WHEN a dialect is drafted under that name THEN it can be used
    dialect = parse_dialect(suggest_dialect(inspect_database(path), name), "x")
    assert dialect.name == name
    with Profile(path, dialect) as profile:
        assert profile.count("runs") == 1


def test_what_is_not_sqlite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="is a directory"):
        inspect_database(tmp_path)


def test_each_stored_table_serves_one_of_ours(make_profile: Callable[..., Path]) -> None:
    matches = match_tables(inspect_database(make_profile({})))
    assert len({match.table.name for match in matches}) == len(matches) == 26
