"""A report captured through pvanalyse.libpva, which stands in for pva, has every table that libpva can express."""

from __future__ import annotations

from pathlib import Path

import pytest

from pvanalyse import libpva, open_report
from pvanalyse.capture import capture_report
from pvanalyse.capture.not_told import NEVER_TOLD
from pvanalyse.tables import PROFILE, TABLES, tables_of
from tests.capture.canonical import Canonical, consistent_report
from tests.libpva.reports import SAMPLE_REPORTS

TOLD = {name for name in vars(Canonical) if not name.startswith("_") and name != "tables"}


@pytest.mark.parametrize("report", SAMPLE_REPORTS, ids=lambda path: path.name)
def test_a_captured_sample_is_equal(report: Path, tmp_path: Path) -> None:
    # WHEN a sample is captured
    captured = capture_report(report / PROFILE, tmp_path / "captured", libpva)
    # THEN all of its tables are there again, except what needs lowered variables where there are none
    expected, found = Canonical(report), Canonical(tmp_path / "captured")
    for name in TOLD:
        assert getattr(found, name)() == getattr(expected, name)(), name
    assert captured.without == NEVER_TOLD if expected.lowered else len(captured.without) == len(NEVER_TOLD) + 1


@pytest.mark.parametrize("seed", range(24))
def test_a_captured_random_report_is_equal(seed: int, tmp_path: Path) -> None:
    # GIVEN a random report in which a variable goes by one name
    report = consistent_report(tmp_path / "report", seed)
    # THEN it is captured as it is
    capture_report(report / PROFILE, tmp_path / "captured", libpva)
    expected, found = Canonical(report), Canonical(tmp_path / "captured")
    for name in TOLD:
        assert getattr(found, name)() == getattr(expected, name)(), name


@pytest.mark.parametrize("report", SAMPLE_REPORTS, ids=lambda path: path.name)
def test_metrics_are_equal(report: Path, tmp_path: Path) -> None:
    # GIVEN a captured report
    captured = capture_report(report / PROFILE, tmp_path / "captured", libpva)
    columns = {(one.table, column) for one in captured.without for column in one.columns}
    # WHEN both are measured
    with open_report(report) as one, open_report(tmp_path / "captured") as other:
        expected, found = one.metrics(), other.metrics()
        lowered = one.captured("lowered_variables")
    # THEN all metrics are equal but those of what libpva does not tell, or what is in other files
    needs = {
        "graph.num_edges": ("graph", "num_edges"),
        "graph.num_variables": ("graph", "num_variables"),
        "memory.region.non_interleaved": ("tile_memory", "non_interleaved_including_gaps"),
        "memory.region.interleaved": ("tile_memory", "interleaved_including_gaps"),
    }
    assert set(needs.values()) <= columns
    others = {name for name in expected if name.startswith(("archive.", "debug."))}
    gone = set(needs) | others | (set() if lowered else {"variables.num_unlowered"})
    assert {name: value for name, value in found.items() if name not in needs} == {
        name: value for name, value in expected.items() if name not in gone
    }


def test_every_table_of_a_profile_is_told_or_listed() -> None:
    whole = {one.table for one in NEVER_TOLD if not one.columns}
    parts = {one.table: set(one.columns) for one in NEVER_TOLD if one.columns}
    profile = {schema.name for schema in tables_of(PROFILE)}
    derived = {"vertex_types", "equivalence_class_intervals", "compute_set_vertices", "execution_step_ipus"}
    assert profile == TOLD | derived | (whole - {"report_info"})
    for table, columns in parts.items():
        assert columns <= set(TABLES[table].column_names)
