"""The SQLite reader against Python's own sqlite3, on values that SQLite's loose typing allows."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pvanalyse.errors import UnreadableFile, UsageError
from pvanalyse.readers.sqlite import Database, Field, quote_identifier

STORED = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
    st.binary(max_size=8),
)


def make(path: Path, rows: list[tuple[Any, ...]], columns: str = "a, b, c, d") -> Path:
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE t ({columns})")
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * (columns.count(',') + 1))})", rows)
    database.close()
    return path


def read(
    path: Path, fields: list[Field], query: str = "SELECT * FROM t", order: str = "rowid"
) -> list[tuple[Any, ...]]:
    with Database(path) as database:
        batches = list(database.batches(query, fields, order))
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


ALL = [Field("a", "integer"), Field("b", "real"), Field("c", "text"), Field("d", "blob")]


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(STORED, STORED, STORED, STORED), max_size=12))
def test_a_value_of_the_wrong_type_becomes_null_and_the_rest_is_exact(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    # GIVEN a table whose columns have no types, so that SQLite keeps each value as it is
    path = make(tmp_path_factory.mktemp("db") / "x.db", rows)

    # WHEN it is read as four columns of fixed types
    got = read(path, ALL)

    # THEN values of the right type are there, exact, and others are null; numbers may stand in for text
    assert len(got) == len(rows)
    for (a, b, c, d), (ga, gb, gc, gd) in zip(rows, got, strict=True):
        assert ga == (a if isinstance(a, int) else None)
        assert gb == (float(b) if isinstance(b, int | float) else None)
        assert gd == (d if isinstance(d, bytes) else None)
        if isinstance(c, str):
            assert gc == c
        elif isinstance(c, bytes):
            assert gc is None or gc.encode() == c
        else:
            assert (gc is None) == (c is None)


@pytest.mark.parametrize("position", [0, 1, 70_000, 199_999])
def test_a_contradiction_far_down_is_found_and_no_row_is_lost_or_doubled(tmp_path: Path, position: int) -> None:
    # GIVEN 200,000 integers, one of which is text, and a second column that is fine
    rows = [("x" if at == position else at, str(at)) for at in range(200_000)]
    path = make(tmp_path / "x.db", rows, "a, b")

    # WHEN they are streamed
    with Database(path) as database:
        got = [r for b in database.batches("SELECT * FROM t", [Field("a", "integer"), Field("b", "text")], "rowid")
               for r in zip(*(c.to_pylist() for c in b.columns), strict=True)]  # fmt: skip
        warnings = database.warnings

    # THEN every row is there once, the one value is null, and that is said
    assert got == [(None if at == position else at, str(at)) for at in range(200_000)]
    assert warnings == [f"{path}: 1 values of column 'a' are not integer and are left out"]


def test_text_that_is_not_utf8_is_shown_with_replacement_characters(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (a TEXT)")
        database.execute("INSERT INTO t VALUES ('fine'), (CAST(x'41ff42' AS TEXT))")
    database.close()
    assert read(path, [Field("a", "text")]) == [("fine",), ("A\ufffdB",)]


def test_an_empty_table_gives_no_rows(tmp_path: Path) -> None:
    assert read(make(tmp_path / "x.db", []), ALL) == []


def test_columns_read_apart_belong_together(tmp_path: Path) -> None:
    # GIVEN a table with an index that covers one column, which SQLite would rather walk
    path = make(tmp_path / "x.db", [(at, (at * 7919) % 1000) for at in range(5000)], "a, b")
    with sqlite3.connect(path) as database:
        database.execute("CREATE INDEX by_b ON t(b)")
    database.close()

    # WHEN each column is read by itself
    apart = [read(path, [Field(name, "integer")]) for name in "ab"]

    # THEN the rows are those of one reading
    together = read(path, [Field("a", "integer"), Field("b", "integer")])
    assert [(a, b) for (a,), (b,) in zip(*apart, strict=True)] == together


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM t",
        "INSERT INTO t VALUES (1)",
        "ATTACH 'other.db' AS o",
        "PRAGMA journal_mode = WAL",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "CREATE TABLE u (a)",
        "VACUUM INTO 'copy.db'",
        "SELEC 1",
        "SELECT nothing FROM t",
        "SELECT * FROM nowhere",
        "",
    ],
)
def test_only_a_reading_query_runs(tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path / "x.db", [(1,)], "a")
    before = path.read_bytes()
    with Database(path) as database, pytest.raises(UsageError):
        database.query(query)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.db"]


def test_a_query_of_the_user_gives_its_result(tmp_path: Path) -> None:
    path = make(tmp_path / "x.db", [(2, "b"), (1, "a")], "a, b")
    with Database(path) as database:
        result = database.query("SELECT b, a * 1.5 AS more FROM t ORDER BY a -- a remark")
        nothing = database.query("SELECT a FROM t WHERE 0")
    assert result.to_pylist() == [{"b": "a", "more": 1.5}, {"b": "b", "more": 3.0}]
    assert nothing.column_names == ["a"]


@pytest.mark.parametrize("name", ["a b", 'say "x"', "50%", "q?x=1&y=2#z", "nötig", "new\nline", "semi;colon"])
def test_odd_file_and_column_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.db"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE TABLE t ({quote_identifier(name)})")
        database.execute("INSERT INTO t VALUES (5)")
    database.close()
    assert read(path, [Field(name, "integer")]) == [(5,)]


class TestDamage:
    """Files that are not what they should be."""

    @pytest.fixture
    def good(self, tmp_path: Path) -> Path:
        return make(tmp_path / "x.db", [(at, "x" * 100) for at in range(2000)], "a, b")

    def test_truncated(self, good: Path) -> None:
        good.write_bytes(good.read_bytes()[:-5000])
        with pytest.raises(UnreadableFile, match="truncated: its header promises"):
            Database(good)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "the file is empty"),
            (b"SQLite format 3\0", "truncated"),
            (b"\0" * 4096, "zero bytes only"),
            (b"!<arch>\nx", "an ar archive"),
            (b'{"a": 1}', "JSON text"),
            (b"hello\n", "it looks like text"),
            (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
            (b"SQLite format 3\0" + b"\xff" * 84, "page size"),
        ],
    )
    def test_wrong_kind(self, tmp_path: Path, content: bytes, problem: str) -> None:
        path = tmp_path / "x.db"
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match=problem):
            Database(path)

    def test_a_page_of_noise_is_an_error_and_not_a_crash(self, good: Path) -> None:
        raw = bytearray(good.read_bytes())
        raw[8192:12288] = bytes(range(256)) * 16
        good.write_bytes(raw)
        with pytest.raises(UnreadableFile, match="damaged"):
            read(good, [Field("a", "integer"), Field("b", "text")])


def test_a_long_query_can_be_interrupted(tmp_path: Path) -> None:
    # GIVEN a query without end, and Ctrl-C soon after it began
    path = make(tmp_path / "x.db", [(1,)], "a")
    endless = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with Database(path) as database:
        timer.start()

        # WHEN it runs THEN it ends as an interrupted program does
        with pytest.raises(KeyboardInterrupt):
            database.rows(endless)
