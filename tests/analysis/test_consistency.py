"""What a report stores against what its allocations add up to."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pvanalyse import open_report
from pvanalyse.analysis.consistency import COLUMNS, findings
from tests.analysis.memory_cases import CONSISTENT, RANDOM, SAMPLE_NAMES, captured_of, report_of
from tests.conftest import SAMPLES
from tests.oracle import liveness as brute
from tests.oracle.frames import plain
from tests.oracle.memory_reports import make_memory_report


@pytest.mark.parametrize("case", [*SAMPLE_NAMES, *CONSISTENT])
def test_consistent_reports_have_no_findings(case: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with open_report(report_of(case, tmp_path_factory)) as report:
        frame = findings(report)
    assert tuple(frame.columns) == COLUMNS
    assert plain(frame)[1] == []


@pytest.mark.parametrize("case", RANDOM)
def test_findings_are_those_of_brute_force(case: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    # GIVEN a report in which hardly any number agrees with another, and some tables are missing
    directory = report_of(case, tmp_path_factory)
    with open_report(directory) as report:
        found = plain(findings(report))[1]
    # WHEN stored numbers are held against computed ones; THEN exactly those that differ are listed, each once
    assert sorted(map(str, (row[:5] for row in found))) == sorted(
        map(str, brute.findings(captured_of(directory / "profile.pop")))
    )
    assert all(computed - stored == difference != 0 for *_, stored, computed, difference in found)


FIRST_OF_TILE_2 = "SELECT min(lowered_variable_id) FROM lowered_variables WHERE always_live AND tile = 2"
CHANGES = [
    ("UPDATE tile_memory SET total_including_gaps = total_including_gaps + 8 WHERE tile = 3",
     "total_including_gaps of the regions", 3, None, -8),
    ("UPDATE tile_memory SET always_live_bytes = always_live_bytes - 1 WHERE tile = 5", "always_live_bytes", 5, None, 1),
    ("UPDATE tile_memory SET not_always_live_bytes = not_always_live_bytes + 4 WHERE tile = 0",
     "not_always_live_bytes", 0, None, -4),
    ("UPDATE liveness_steps SET not_always_live_bytes = not_always_live_bytes + 3 WHERE step = 7",
     "liveness of one replica", None, 7, -3),
    (f"UPDATE lowered_variables SET bytes = bytes + 6 WHERE lowered_variable_id = ({FIRST_OF_TILE_2})",
     "always_live_bytes", 2, None, 6),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "quantity", "tile", "step", "difference"), CHANGES)
@pytest.mark.parametrize("sample", ["replicated", "pipelined/training"])
def test_one_changed_number_is_one_finding(
    tmp_path: Path, sample: str, statement: str, quantity: str, tile: int | None, step: int | None, difference: int
) -> None:
    # GIVEN a sample of which one number was changed
    shutil.copy(SAMPLES / sample / "profile.pop", tmp_path / "profile.pop")
    with closing(sqlite3.connect(tmp_path / "profile.pop")) as connection, connection:
        assert connection.execute(statement).rowcount == 1
    # WHEN its numbers are held against one another
    with open_report(tmp_path) as report:
        found = plain(findings(report))[1]
    # THEN that one, and no other, is found
    assert [(row[0], row[1], row[2], row[5]) for row in found] == [(quantity, tile, step, difference)]


@pytest.mark.parametrize("factor", [0, 3])
def test_categories_that_cannot_be_the_total_are_found(tmp_path: Path, factor: int) -> None:
    shutil.copy(SAMPLES / "replicated" / "profile.pop", tmp_path / "profile.pop")
    with closing(sqlite3.connect(tmp_path / "profile.pop")) as connection, connection:
        connection.execute(f"UPDATE tile_memory_category SET non_overlapped = {factor} * non_overlapped")
        connection.execute("UPDATE tile_memory_category SET overlapped = 0")
    with open_report(tmp_path) as report:
        [row] = plain(findings(report))[1]
    assert row[:3] == ("total_excluding_gaps of the categories", None, None)
    assert (row[5] > 0) == (factor > 1)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tile_memory SET tile = tile + (1 << 60)",
        "UPDATE lowered_variables SET tile = 1 << 60",
        "UPDATE lowered_variables SET tile = -1",
        "UPDATE target SET num_replicas = 0",
        "UPDATE lowered_variables SET bytes = 'many'",
        "UPDATE lowered_variables SET always_live = 'yes'",
        "UPDATE lowered_variables SET always_live = 0, equivalence_class_id = NULL",
    ],
)
def test_numbers_that_cannot_be_are_findings_and_no_failure(tmp_path: Path, statement: str) -> None:
    # GIVEN a consistent report, spoilt
    directory = make_memory_report(tmp_path / "report", 63, consistent=True, whole=True).parent
    with closing(sqlite3.connect(directory / "profile.pop")) as connection, connection:
        connection.execute(statement)
    # WHEN its numbers are compared; THEN there is an answer, and something is wrong unless only the replicas are unknown
    with open_report(directory) as report:
        frame = findings(report)
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) or "num_replicas" in statement
