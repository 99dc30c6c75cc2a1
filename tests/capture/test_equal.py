"""A report captured through pvanalyse.libpva, which stands in for pva, has every table that libpva can express."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pvanalyse import NotCaptured, libpva, open_report
from pvanalyse.capture import Captured, capture_report
from pvanalyse.capture.not_told import NEVER_TOLD
from pvanalyse.tables import PROFILE, TABLES, tables_of
from tests.capture.canonical import IPU_STEP, TYPES, Canonical, consistent_report
from tests.conftest import SAMPLES
from tests.libpva.reports import SAMPLE_REPORTS

NEEDED = {
    "graph.num_edges": ("graph", "num_edges"),
    "graph.num_variables": ("graph", "num_variables"),
    "memory.region.non_interleaved": ("tile_memory", "non_interleaved_including_gaps"),
    "memory.region.interleaved": ("tile_memory", "interleaved_including_gaps"),
}
"""Metrics of what libpva does not tell."""


def metrics(directory: Path) -> dict[str, float]:
    """The metrics of a report's profile but for those of what libpva does not tell; real numbers to twelve digits."""
    with open_report(directory / PROFILE) as report:
        found = report.metrics()
    return {
        name: float(f"{value:.12g}") if isinstance(value, float) else value
        for name, value in found.items()
        if name not in NEEDED and not name.startswith(("archive.", "debug."))
    }


@pytest.mark.parametrize("report", SAMPLE_REPORTS, ids=lambda path: path.name)
def test_a_captured_sample_is_equal(report: Path, tmp_path: Path) -> None:
    # WHEN a sample is captured
    captured = capture_report(report / PROFILE, tmp_path, libpva)
    # THEN all of its tables are there again
    expected, found = Canonical(report), Canonical(tmp_path)
    assert found.tables() == expected.tables()
    # AND what is listed as not told is null
    for one in captured.without:
        for column in one.columns:
            if one.table in captured.tables and (one.table, column) != ("execution_blocks", "name"):
                assert {row[column] for row in found.raw[one.table]} == {None}
    # AND metrics are equal; variables that are on no tile are not known to be declared
    gone = set() if expected.lowered else {"variables.num_unlowered"}
    assert metrics(tmp_path) == {name: value for name, value in metrics(report).items() if name not in gone}
    assert captured.without[len(NEVER_TOLD) :] == (() if expected.lowered else (no_variable_ids(captured),))


def no_variable_ids(captured: Captured) -> object:
    (only,) = [one for one in captured.without if one.columns == ("variable_id",)]
    return only


@pytest.mark.parametrize("seed", range(16))
def test_a_captured_random_report_is_equal(seed: int, tmp_path: Path) -> None:
    # GIVEN a random report in which a variable goes by one name
    report = consistent_report(tmp_path / "report", seed)
    # WHEN it is captured
    capture_report(report / PROFILE, tmp_path / "captured", libpva)
    # THEN its tables are there again
    assert Canonical(tmp_path / "captured").tables() == Canonical(report).tables()
    # AND metrics are those of the report as libpva tells it
    tell_as_libpva_does(report / PROFILE)
    gone = {"variables.num_unlowered"}
    expected, found = metrics(report), metrics(tmp_path / "captured")
    assert {name: found[name] for name in found if name not in gone} == {
        name: expected[name] for name in expected if name not in gone
    }


def tell_as_libpva_does(profile: Path) -> None:
    """Change a profile into what libpva tells of it: zeros for nothing, steps by their place, types that it has."""
    zeros = " AND ".join(f"{name} = 0" for name in IPU_STEP)
    with closing(sqlite3.connect(profile)) as database, database:
        for name in IPU_STEP:
            database.execute(f"UPDATE execution_step_ipus SET {name} = 0 WHERE {name} IS NULL")
        database.execute(
            f"DELETE FROM execution_step_ipus WHERE ({zeros}) OR step_id NOT IN (SELECT step_id FROM execution_steps)"
        )
        database.execute(f"UPDATE programs SET type = 'Unknown' WHERE type NOT IN {TYPES}")
        database.execute("DELETE FROM tile_memory_category WHERE non_overlapped = 0 AND overlapped = 0")
        columns = len(database.execute("PRAGMA table_info(tile_memory)").fetchall())
        (tiles,) = database.execute("SELECT num_tiles FROM target").fetchone()
        empty = [(tile, *[0] * (columns - 1)) for tile in range(tiles)]
        database.executemany(f"INSERT OR IGNORE INTO tile_memory VALUES ({', '.join('?' * columns)})", empty)
        steps = sorted(step for (step,) in database.execute("SELECT step FROM liveness_steps"))
        database.executemany("UPDATE liveness_steps SET step = ? WHERE step = ?", list(enumerate(steps)))


def test_every_table_of_a_profile_is_told_or_listed() -> None:
    told = {name for name in vars(Canonical) if not name.startswith("_") and name != "tables"}
    whole = {one.table for one in NEVER_TOLD if not one.columns}
    shown_with_others = {"vertex_types", "equivalence_class_intervals", "compute_set_vertices", "execution_step_ipus"}
    profile = {schema.name for schema in tables_of(PROFILE)}
    assert told | shown_with_others | whole == profile
    assert told & whole == {"report_info"}
    for one in NEVER_TOLD:
        assert set(one.columns) <= set(TABLES[one.table].column_names)
    assert set(NEEDED.values()) <= {(one.table, column) for one in NEVER_TOLD for column in one.columns}


def test_compute_sets_that_are_alike_are_shared_out(tmp_path: Path) -> None:
    # GIVEN three compute sets of which nothing but the numbers differs, and a program for each
    report = consistent_report(tmp_path / "report", 3)
    with closing(sqlite3.connect(report / PROFILE)) as database, database:
        for table in ("compute_sets", "compute_set_vertices", "programs", "program_children"):
            database.execute(f"DELETE FROM {table}")
        database.executemany("INSERT INTO compute_sets VALUES (?, 'alike', NULL, NULL, NULL)", [(0,), (1,), (2,)])
        database.executemany(
            "INSERT INTO programs (program_id, type, name, compute_set_id) VALUES (?, 'OnTileExecute', 'one', ?)",
            [(10, 0), (11, 1), (12, 2)],
        )
    # WHEN they are captured
    capture_report(report / PROFILE, tmp_path / "captured", libpva)
    # THEN each program has one
    rows = Canonical(tmp_path / "captured").raw["programs"]
    assert [(row["program_id"], row["compute_set_id"]) for row in rows] == [(10, 0), (11, 1), (12, 2)]


def test_what_libpva_does_not_tell_of_regions_is_absent_and_no_contradiction(tmp_path: Path) -> None:
    # GIVEN a report that was written down without the regions of its tiles
    capture_report(SAMPLES / "transformer_after" / PROFILE, tmp_path, libpva)
    with open_report(tmp_path) as captured:
        # THEN no region is said to hold nothing, and nothing is said to contradict the totals
        assert [name for name in captured.metrics() if name.startswith("memory.region.non")] == []
        assert "consistency" not in [insight.rule for insight in captured.insights()]
        with pytest.raises(NotCaptured, match="non_interleaved_including_gaps"):
            captured.memory.by_region()
        assert "non_interleaved_including_gaps" not in captured.memory.by_tile()
