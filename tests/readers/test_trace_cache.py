"""profile.pop_cache: the real file against sqlite3 and a decoder written byte by byte; and what cannot be read."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import open_report
from pvanalyse.errors import UnknownLayout, UnreadableFile
from pvanalyse.readers.trace_cache import TraceCache, decode_step_ids


def decode(blob: bytes) -> list[int]:
    numbers, number = [], 0
    for byte in blob:
        number = number * 128 + (byte & 0x7F)
        if byte & 0x80:
            numbers.append(number)
            number = 0
    return numbers


def encode(number: int) -> bytes:
    digits = [number % 128 | 0x80]
    while number := number // 128:
        digits.insert(0, number % 128)
    return bytes(digits)


@given(st.lists(st.lists(st.integers(0, 2**63 - 1), max_size=5), max_size=20), st.integers(0, 3))
def test_step_ids_come_back(rows: list[list[int]], skipped: int) -> None:
    blobs = pa.array([b"".join(map(encode, row)) for row in rows], pa.binary()).slice(skipped)
    assert decode_step_ids(blobs).to_pylist() == rows[skipped:]


@pytest.mark.parametrize(("blob", "ids"), [("80", [0]), ("8b8a", [11, 10]), ("0180", [128]), ("05dd", [733])])
def test_examples_of_the_format(blob: str, ids: list[int]) -> None:
    assert decode_step_ids(pa.array([bytes.fromhex(blob)])).to_pylist() == [ids]


@pytest.mark.parametrize(
    ("blobs", "problem"),
    [([b"\x80", b"\x01"], "row 2 is cut off"), ([b"\x01" * 9 + b"\x80"], "10 bytes")],
)
def test_damaged_step_ids(blobs: list[bytes], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decode_step_ids(pa.array(blobs))


def test_the_real_file_agrees_with_sqlite(real_cache: Path) -> None:
    # GIVEN the rows as sqlite3 gives them
    with sqlite3.connect(f"file:{real_cache / 'profile.pop_cache'}?immutable=1", uri=True) as database:
        (table,) = [n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE name LIKE '%blocks_v3%'"
                                                   " AND type = 'table'")]  # fmt: skip
        expected = database.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
    database.close()

    # WHEN the cache is read
    with open_report(real_cache) as report:
        got = report.arrow("trace_blocks").to_pylist()

    # THEN every value is the same
    assert [tuple(row.values()) for row in got] == [(*row[:9], decode(row[9]), *row[10:]) for row in expected]


def test_the_real_file_has_the_facts_of_its_origin(real_cache: Path) -> None:
    with open_report(real_cache) as report:
        trace = report.summary().trace
        blocks = report.arrow("trace_blocks")
    assert trace is not None
    assert (trace.blocks, trace.blocks_by_ipu) == (5194, {0: 2616, 1: 2578})
    assert (trace.first_cycle, trace.last_cycle) == (0, 2_540_750)
    assert {tag.tag: tag.blocks for tag in trace.tags} == {
        "OnTileExecute": 1986, "InternalSync": 1230, "SyncAns": 814, "FlameGraphNode": 590, "StreamCopyBegin": 152,
        "StreamCopyEnd": 152, "DoExchange": 130, "StreamCopy": 76, "GlobalExchange": 32, "ExternalSync": 32,
    }  # fmt: skip
    cycles: Counter[str] = Counter()
    for row in blocks.to_pylist():
        cycles[row["tag"]] += row["cycles_to"] - row["cycles_from"]
    assert {tag.tag: tag.cycles for tag in trace.tags} == cycles
    with TraceCache(real_cache / "profile.pop_cache") as cache:
        assert cache.profile_change_counter == 1201


def make(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


COLUMNS = ("id, parent_id, tag, ipu, graph, row, name, cycles_from, cycles_to, step_ids, tile_balance, "
           "stream_copy_destination")  # fmt: skip


def test_the_newest_version_is_read(tmp_path: Path) -> None:
    path = make(
        tmp_path / "profile.pop_cache",
        f"CREATE TABLE execution_trace_blocks_v9_1 ({COLUMNS})",
        f"CREATE TABLE execution_trace_blocks_v10_1 ({COLUMNS})",
        "INSERT INTO execution_trace_blocks_v10_1 VALUES (1, NULL, 'Sync', 0, 0, 0, NULL, 5, 9, x'80', 0.5, NULL)",
    )
    with TraceCache(path) as cache:
        assert (cache.table_name, cache.count(), cache.profile_change_counter) == (
            "execution_trace_blocks_v10_1",
            1,
            None,
        )


def test_other_databases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownLayout, match="no table 'execution_trace_blocks_v…'.*its tables: t"):
        TraceCache(make(tmp_path / "a.db", "CREATE TABLE t (a)"))
    with pytest.raises(UnknownLayout, match="lacks the column"):
        TraceCache(make(tmp_path / "b.db", "CREATE TABLE execution_trace_blocks_v3_1 (id, tag)"))


def test_damaged_step_ids_name_the_file(tmp_path: Path) -> None:
    path = make(
        tmp_path / "profile.pop_cache",
        f"CREATE TABLE execution_trace_blocks_v3_1 ({COLUMNS})",
        "INSERT INTO execution_trace_blocks_v3_1 VALUES (1, NULL, 'Sync', 0, 0, 0, NULL, 5, 9, x'01', 0.5, NULL)",
    )
    with TraceCache(path) as cache, pytest.raises(UnreadableFile, match=r"profile\.pop_cache: damaged: .*step_ids"):
        list(cache.batches())
