"""The catalogue of metrics held against a brute-force computation and against numbers worked out by hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import open_report
from pvanalyse.errors import PvanalyseError
from tests.oracle.metrics import brute_force, lengths, lengths_cycle_by_cycle
from tests.oracle.reports import Rows, make_report, write_archive, write_debug_info, write_profile

Numbers = Mapping[str, int | float]

CATALOGUE = """
    target.num_ipus target.num_replicas target.num_tiles target.bytes_per_tile target.clock_frequency
    graph.num_vertices graph.num_edges graph.num_variables graph.num_compute_sets
    memory.total_including_gaps memory.total_excluding_gaps
    memory.tile_max_including_gaps memory.tile_max_excluding_gaps
    memory.tile_mean_including_gaps memory.tile_p99_including_gaps memory.gaps memory.tile_balance
    memory.tiles_out_of_memory memory.overflowed memory.ipu_max_including_gaps memory.used_fraction
    memory.always_live memory.not_always_live
    memory.region.non_interleaved memory.region.interleaved memory.region.overflowed
    liveness.num_steps liveness.peak_not_always_live liveness.peak_step liveness.peak liveness.peak_fraction
    variables.num_lowered variables.num_unlowered
    execution.num_runs execution.num_steps execution.cycles execution.seconds execution.host_seconds
    execution.tile_balance execution.active_tile_balance execution.compute_io_overlap
    execution.stream_bytes.in execution.stream_bytes.out execution.exchange_bytes.global execution.host_bandwidth
    archive.num_tiles archive.loaded_bytes archive.tile_max_loaded_bytes
    debug.num_contexts
"""
NAMES = frozenset(CATALOGUE.split())
OPEN_NAMES = ("memory.category.", "execution.step_cycles.", "execution.fraction.")


def metrics_of(directory: Path) -> Numbers:
    with open_report(directory) as report:
        return report.metrics()


def assert_same(found: Numbers, expected: Numbers) -> None:
    """Equal names, equal types, integers equal and fractions equal to twelve digits."""
    assert set(found) == set(expected)
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }
    tolerated = {
        name: pytest.approx(value, rel=1e-12, abs=0) if isinstance(value, float) else value
        for name, value in expected.items()
    }
    assert dict(found) == tolerated


# ------------------------------------------------------------------------------------------------- random reports
@pytest.mark.parametrize("seed", range(150))
def test_metrics_of_random_reports_are_those_of_brute_force(tmp_path: Path, seed: int) -> None:
    # GIVEN a report of random numbers, of which some tables are missing and some are empty
    profile = make_report(tmp_path / "report", seed)
    # WHEN its metrics are asked for
    found = metrics_of(profile.parent)
    # THEN they are what the definitions give
    assert_same(found, brute_force(profile))


@pytest.mark.parametrize("seed", range(1000, 1030))
@pytest.mark.parametrize("horizon", [8, 60, 2**50])
def test_metrics_of_crowded_executions_are_those_of_brute_force(tmp_path: Path, seed: int, horizon: int) -> None:
    # GIVEN a whole report with many steps in few runs, so that their intervals touch, nest and coincide
    everything: dict[str, Any] = {"dropped": frozenset(), "emptied": frozenset()}
    profile = make_report(
        tmp_path / "report", seed, horizon=horizon, ipus=2, replicas=1, runs=2, steps=60, programs=12, **everything
    )
    # WHEN its metrics are asked for
    found = metrics_of(profile.parent)
    # THEN they are what the definitions give
    assert_same(found, brute_force(profile))


@pytest.mark.parametrize("column", ["tiles_per_ipu", "num_tiles", "bytes_per_tile", "clock_frequency", "num_replicas"])
def test_metrics_divided_by_a_zero_of_the_target_are_absent(handmade: Path, column: str) -> None:
    # GIVEN a report whose target row has a zero
    with closing(sqlite3.connect(handmade)) as connection, connection:
        connection.execute(f"UPDATE target SET {column} = 0")
    # WHEN its metrics are asked for; THEN those that would be divided by it are absent, and all others stand
    assert_same(metrics_of(handmade.parent), brute_force(handmade))


def test_random_reports_have_every_metric_and_lack_every_metric(tmp_path: Path) -> None:
    # GIVEN some of the random reports
    found = [set(brute_force(make_report(tmp_path / str(seed), seed))) for seed in range(60)]
    # THEN the comparison above speaks of the presence of each metric, and of its absence
    assert set.union(*found) >= NAMES
    assert not set.intersection(*found) & NAMES


small_intervals = st.lists(st.tuples(st.integers(-5, 25), st.integers(-5, 25)), max_size=8)


@given(small_intervals, small_intervals)
def test_lengths_of_intervals_are_numbers_of_cycles(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    # GIVEN any intervals; THEN brute force with large numbers agrees with counting cycles one by one
    assert lengths(first, second) == lengths_cycle_by_cycle(first, second)


# ------------------------------------------------------------------------------------------------------- by hand
def by_columns(columns: str, *rows: tuple[Any, ...]) -> Rows:
    names = columns.split()
    return [dict(zip(names, row, strict=True)) for row in rows]


PROFILE: dict[str, Rows] = {
    "target": by_columns(
        "type architecture num_ipus num_replicas tiles_per_ipu num_tiles bytes_per_tile clock_frequency",
        ("Ipu", "Ipu2", 2, 2, 2, 4, 1000, 100),
    ),
    "graph": by_columns("num_vertices num_edges num_variables num_compute_sets", (10, 20, 3, 2)),
    "tile_memory": by_columns(
        """tile total_including_gaps total_excluding_gaps
        non_interleaved_including_gaps non_interleaved_excluding_gaps
        interleaved_including_gaps interleaved_excluding_gaps
        overflowed_including_gaps overflowed_excluding_gaps always_live_bytes not_always_live_bytes""",
        (0, 400, 390, 300, 295, 100, 95, 0, 0, 250, 150),
        (1, 200, 200, 192, 192, 0, 0, 8, 8, 150, 50),  # does not fit: it overflows
        (2, 1000, 900, 600, 550, 400, 350, 0, 0, 700, 300),  # fits, to the last byte
        (3, 1200, 1100, 600, 550, 400, 390, 200, 160, 800, 400),  # does not fit: larger than a tile
    ),
    "tile_memory_category": by_columns(
        "tile category region non_overlapped overlapped",
        (0, "vertexCode", "nonInterleaved", 100, 0),
        (2, "vertexCode", "interleaved", 50, 7),
        (0, "variable", "nonInterleaved", 20, 5),
        (3, "variable", "overflowed", 30, 0),
    ),
    "programs": by_columns(
        "program_id type name",
        (1, "OnTileExecute", "Convolve"),
        (2, "StreamCopyMid", ""),
        (3, "GlobalExchange", ""),
        (4, "Sync", ""),
        (5, "SyncAns", ""),
    ),
    "variables": by_columns("variable_id name", (0, "a"), (1, "b"), (2, "c")),
    "lowered_variables": by_columns(
        """lowered_variable_id variable_id name tile offset bytes alignment category region
        always_live is_constant is_executable equivalence_class_id""",
        (0, 0, "a", 0, 64, 8, 4, "variable", "nonInterleaved", 1, 0, 0, None),
        (1, 1, "b", 3, 72, 8, 4, "variable", "nonInterleaved", 0, 0, 0, 5),
    ),
    "liveness_steps": by_columns(
        "step program_id not_always_live_bytes", (0, 1, 100), (1, 2, 300), (2, 3, 300), (3, 1, 0)
    ),
    "runs": by_columns(
        "run_id name start_us end_us",
        (0, "first", 1_000_000, 3_000_000),
        (1, "second", 3_500_000, 4_000_000),
        (2, "without steps", 5_000_000, 5_500_000),
    ),
    "execution_steps": by_columns(
        "step_id run_id program_id",
        *((10, 0, 1), (11, 0, 2), (12, 0, 3), (13, 0, 4)),
        *((20, 1, 1), (21, 1, 2), (22, 1, 5), (23, 1, 9)),  # there is no program 9
    ),
    "execution_step_ipus": [
        # columns that no metric speaks of hold numbers that would spoil one
        row | {"active_from_min": -7, "active_to_min": 7777, "all_from_max": -7, "all_to_min": 7777}
        for row in by_columns(
            """step_id ipu cycles active_from_max active_to_max all_from_min all_to_max
            tile_balance active_tile_balance data_in data_out""",
            (10, 0, 90, 10, 100, 0, 100, 0.5, 0.75, None, None),
            (10, 1, 40, 0, 40, 0, 40, 0.25, 0.5, None, None),
            (11, 0, 60, 70, 130, 60, 130, 1.0, 1.0, 400, None),
            (11, 1, 20, 40, 60, 40, 60, 1.0, None, 100, 60),
            (12, 0, 30, 130, 160, 130, 160, 0.5, 0.5, 0, 64),
            (12, 1, 30, 130, 160, 130, 160, 0.5, 0.5, 0, 36),
            (13, 0, 10, 160, 170, 160, 170, 0.0, 0.0, None, None),
            (20, 0, 50, 1000, 1050, 1000, 1050, 0.25, 0.25, None, None),
            (20, 1, 0, 1000, 1000, 1000, 1000, 0.0, 0.0, None, None),
            (21, 0, 25, 1000, 1025, 1000, 1025, 1.0, 1.0, 40, None),
            (22, 0, 5, 1050, 1055, 1050, 1060, 0.0, 0.0, None, None),
            (23, 1, 40, 1000, 1040, 995, 1040, 0.75, 0.75, None, None),
        )
    ],
}
LOAD, NOTE = 1, 4
ARCHIVE = {0: [(LOAD, 8, 100), (LOAD, 0, 50), (NOTE, 4, 1000)], 1: [(LOAD, 3, 70)], 2: [(LOAD, 80, 80)], 3: []}

EXPECTED: Numbers = {
    "target.num_ipus": 2,
    "target.num_replicas": 2,
    "target.num_tiles": 4,
    "target.bytes_per_tile": 1000,
    "target.clock_frequency": 100.0,
    "graph.num_vertices": 10,
    "graph.num_edges": 20,
    "graph.num_variables": 3,
    "graph.num_compute_sets": 2,
    "memory.total_including_gaps": 2800,  # 400 + 200 + 1000 + 1200
    "memory.total_excluding_gaps": 2590,  # 390 + 200 + 900 + 1100
    "memory.tile_max_including_gaps": 1200,
    "memory.tile_max_excluding_gaps": 1100,
    "memory.tile_mean_including_gaps": 700.0,  # 2800 / 4
    "memory.tile_p99_including_gaps": 1194.0,  # rank 0.99 × 3 = 2.97 between 1000 and 1200
    "memory.gaps": 210,
    "memory.tile_balance": 700 / 1200,
    "memory.tiles_out_of_memory": 2,  # 1 and 3
    "memory.overflowed": 208,
    "memory.ipu_max_including_gaps": 2200,  # IPU 1: tiles 2 and 3
    "memory.used_fraction": 0.7,  # 2800 / (4 × 1000)
    "memory.always_live": 1900,  # 250 + 150 + 700 + 800
    "memory.not_always_live": 900,  # 150 + 50 + 300 + 400
    "memory.region.non_interleaved": 1692,  # 300 + 192 + 600 + 600
    "memory.region.interleaved": 900,  # 100 + 0 + 400 + 400
    "memory.region.overflowed": 208,
    "memory.category.vertexCode": 150,
    "memory.category.variable": 50,
    "liveness.num_steps": 4,
    "liveness.peak_not_always_live": 300,
    "liveness.peak_step": 1,
    "liveness.peak": 2500,  # 1900 + 2 replicas × 300
    "liveness.peak_fraction": 0.625,
    "variables.num_lowered": 2,
    "variables.num_unlowered": 3,
    "execution.num_runs": 3,
    "execution.num_steps": 8,
    "execution.cycles": 235,  # (170 − 0) + (1060 − 995) + nothing
    "execution.seconds": 2.35,  # at 100 Hz
    "execution.host_seconds": 3.0,  # 2 + 0.5 + 0.5
    "execution.step_cycles.OnTileExecute": 180,  # 90 + 40 + 50 + 0
    "execution.step_cycles.StreamCopyMid": 105,  # 60 + 20 + 25
    "execution.step_cycles.GlobalExchange": 60,
    "execution.step_cycles.Sync": 10,
    "execution.step_cycles.SyncAns": 5,
    "execution.step_cycles.Unknown": 40,
    "execution.fraction.OnTileExecute": 0.45,  # of 400
    "execution.fraction.StreamCopyMid": 0.2625,
    "execution.fraction.GlobalExchange": 0.15,
    "execution.fraction.Sync": 0.025,
    "execution.fraction.SyncAns": 0.0125,
    "execution.fraction.Unknown": 0.1,
    # without steps 13 and 22, which are syncs, and without step 20 on IPU 1, where no tile works
    "execution.tile_balance": 5.75 / 9,  # 0.5 + 0.25 + 1 + 1 + 0.5 + 0.5 + 0.25 + 1 + 0.75
    "execution.active_tile_balance": 5.25 / 8,  # 0.75 + 0.5 + 1 + 0.5 + 0.5 + 0.25 + 1 + 0.75; step 11 on IPU 1 is NULL
    # run 0: IPU 0 [70, 100) of 60 cycles, IPU 1 nothing of 20; run 1: IPU 0 [1000, 1025) of 25, IPU 1 copies nothing
    "execution.compute_io_overlap": 0.5,  # (0.5 + 0 + 1) / 3
    "execution.stream_bytes.in": 540,  # 400 + 100 + 40
    "execution.stream_bytes.out": 60,
    "execution.exchange_bytes.global": 100,  # 64 + 36
    "execution.host_bandwidth": 200.0,  # (540 + 60) / 3
    "archive.num_tiles": 4,
    "archive.loaded_bytes": 300,  # (100 + 50) + 70 + 80 + 0
    "archive.tile_max_loaded_bytes": 150,
    "debug.num_contexts": 7,
}


@pytest.fixture
def handmade(tmp_path: Path) -> Path:
    """The profile.pop of a report whose every metric is known."""
    directory = tmp_path / "handmade"
    directory.mkdir()
    write_archive(directory / "archive.a", ARCHIVE)
    write_debug_info(directory / "debug.cbor", 7)
    return write_profile(directory / "profile.pop", PROFILE)


def test_metrics_of_a_small_report_are_the_numbers_worked_out_by_hand(handmade: Path) -> None:
    assert_same(metrics_of(handmade.parent), EXPECTED)


def test_brute_force_gives_the_numbers_worked_out_by_hand(handmade: Path) -> None:
    assert_same(brute_force(handmade), EXPECTED)


def test_catalogue_is_complete(handmade: Path) -> None:
    # GIVEN a report with everything captured; WHEN its metrics are asked for
    found = metrics_of(handmade.parent)
    # THEN every name of the catalogue is there, and no other but those that depend on the report
    assert {name for name in found if not name.startswith(OPEN_NAMES)} == NAMES
    assert all(any(name.startswith(start) for name in found) for start in OPEN_NAMES)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("tile_memory", "total_including_gaps"),
        ("tile_memory", "always_live_bytes"),
        ("tile_memory_category", "non_overlapped"),
        ("liveness_steps", "not_always_live_bytes"),
        ("execution_step_ipus", "cycles"),
        ("execution_step_ipus", "all_to_max"),
        ("execution_step_ipus", "active_to_max"),
        ("execution_step_ipus", "data_out"),
        ("runs", "end_us"),
    ],
)
def test_sums_beyond_64_bits_are_exact_or_refused(handmade: Path, table: str, column: str) -> None:
    # GIVEN numbers whose sum does not fit into 64 bits
    with closing(sqlite3.connect(handmade)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = 9223372036854775807")
    # WHEN the metrics are asked for
    found = metrics_or_error(handmade.parent)
    # THEN no sum has wrapped around: they are exact, or the file is refused
    if isinstance(found, PvanalyseError):
        assert "profile.pop" in str(found)
    else:
        assert_same(found, brute_force(handmade))


def metrics_or_error(directory: Path) -> Numbers | PvanalyseError:
    try:
        return metrics_of(directory)
    except PvanalyseError as error:
        return error
