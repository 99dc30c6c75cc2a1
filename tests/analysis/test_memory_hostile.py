"""Memory and liveness of reports that hold what cannot be: an answer, or an error for a person; never another one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pvanalyse import Report, open_report
from pvanalyse.analysis import lifetimes, liveness, memory, memory_details, peak_reduction
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.errors import PvanalyseError
from tests.oracle import liveness as brute
from tests.oracle.frames import Captured, assert_same, plain
from tests.oracle.memory_reports import make_memory_report


def changed(directory: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(directory / "profile.pop")) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return directory


EVERY_QUESTION: dict[str, Callable[[Report], Any]] = {  # and those of memory, which share the tables
    **{
        name: getattr(memory, name)
        for name in (
            "tiles_frame",
            "ipus_frame",
            "categories_frame",
            "tile_categories",
            "distribution",
            "out_of_memory",
        )
    },
    **{
        name: getattr(memory_details, name)
        for name in ("vertices_frame", "compute_sets_frame", "exchanges_frame", "variables_frame")
    },
    "variable_tiles": lambda report: memory_details.variable_tiles(report, ""),
    "memory_map": lambda report: memory_details.memory_map(report, 0),
    "worst": lambda report: select_tiles(report, worst=1),
    "of an IPU": lambda report: select_tiles(report, ipu=0),
    "curve": liveness.curve,
    "curve of a tile": lambda report: liveness.curve(report, tiles=np.array([0]), always_live=True),
    "curve of a replica": lambda report: liveness.curve(report, always_live=True),
    "peaks": lambda report: liveness.peaks(report, 5),
    "tile_peaks": liveness.tile_peaks,
    "headroom": lambda report: liveness.headroom(report, np.array([0])),
    "live_at": lambda report: liveness.live_at_frame(report, 0),
    "live_at of a tile": lambda report: liveness.live_at_frame(report, 0, np.array([0])),
    "lifetimes": liveness.lifetimes_frame,
    "difference": lambda report: liveness.difference(report, 0, 0),
    "always_live": liveness.always_live_frame,
    "explain_peak": lambda report: peak_reduction.explain_peak(report, 10),
    "fp16_candidates": peak_reduction.fp16_candidates,
    "lifetimes of allocations": lifetimes.read_lifetimes,
}
HOSTILE = [
    "UPDATE lowered_variables SET tile = 9000000000000",
    "UPDATE lowered_variables SET tile = -1",
    "UPDATE lowered_variables SET bytes = 9223372036854775807",
    "UPDATE lowered_variables SET bytes = -5",
    "UPDATE lowered_variables SET bytes = 'many' WHERE rowid % 2",
    "UPDATE lowered_variables SET tile = 'left' WHERE rowid % 2",
    "UPDATE lowered_variables SET always_live = 'yes' WHERE rowid % 2",
    "UPDATE lowered_variables SET equivalence_class_id = 'first' WHERE rowid % 2",
    "UPDATE lowered_variables SET variable_id = 'x' WHERE rowid % 2",
    "UPDATE lowered_variables SET variable_id = -1 WHERE rowid % 2",
    "UPDATE lowered_variables SET name = x'ff00' WHERE rowid % 2",
    "UPDATE variables SET name = x'ff00'",
    "UPDATE variables SET element_type = x'ff'",
    "UPDATE liveness_steps SET step = 1 << 60 WHERE step = (SELECT max(step) FROM liveness_steps)",
    "UPDATE liveness_steps SET step = -1 WHERE step = 0",
    "UPDATE liveness_steps SET not_always_live_bytes = 'some'",
    "UPDATE liveness_steps SET program_id = 'none'",
    "UPDATE equivalence_class_intervals SET step_begin = -7, step_end = 1 << 60",
    "UPDATE equivalence_class_intervals SET equivalence_class_id = 'a' || equivalence_class_id",
    "UPDATE variable_liveness SET step_begin = -7, step_end = 1 << 60",
    "UPDATE variable_liveness SET bytes = 'many', variable_id = 'x'",
    "UPDATE variable_liveness SET name = x'ff00'",
    "UPDATE always_live_variables SET bytes = 'many', variable_id = 'x'",
    "UPDATE tile_memory SET tile = tile + (1 << 60)",
    "UPDATE tile_memory SET always_live_bytes = 'all'",
    "UPDATE target SET num_replicas = 0",
    "UPDATE target SET num_replicas = 'none'",
    "UPDATE target SET num_tiles = 1 << 60",
    "UPDATE target SET num_tiles = 'all'",
    "UPDATE target SET tiles_per_ipu = 0",
    "UPDATE target SET bytes_per_tile = 'all'",
    "UPDATE target SET interleaved_begin = 'half'",
    "UPDATE programs SET debug_context_id = 'x', type = x'ff'",
    "UPDATE programs SET code_bytes_by_tile = x'00'",
    "UPDATE tile_memory SET total_including_gaps = 9223372036854775807 WHERE tile = 0",
    "UPDATE tile_memory SET total_including_gaps = 9223372036854775807 - tile",
    "UPDATE tile_memory SET overflowed_including_gaps = 'all', total_including_gaps = 'all'",
    "UPDATE tile_memory_category SET region = x'ff' || region, non_overlapped = 'all'",
    "UPDATE tile_memory_category SET category = x'ff' || tile || region || category",
    "UPDATE tile_vertices SET code_bytes = 'all'",
    "UPDATE vertex_types SET instance_bytes = 'all', name = x'ff'",
    "UPDATE compute_sets SET flops = 'many', name = x'ff'",
    "UPDATE lowered_variables SET offset = 'here' WHERE rowid % 2",
    "UPDATE lowered_variables SET offset = -3",
    "UPDATE lowered_variables SET category = x'ff', region = x'ff', name = x'ff', variable_id = NULL",
]


@pytest.mark.parametrize("statement", HOSTILE)
@pytest.mark.filterwarnings("error")
def test_numbers_that_cannot_be_are_answered_or_refused(tmp_path: Path, statement: str) -> None:
    # GIVEN a report with values of the wrong type, or far out of range
    directory = make_memory_report(tmp_path / "report", 7, consistent=True, whole=True).parent
    changed(directory, statement)
    with open_report(directory) as report:
        # WHEN anything is asked; THEN there is an answer, or an error for a person
        for question in EVERY_QUESTION.values():
            with suppress(PvanalyseError):
                question(report)


@pytest.mark.parametrize("tile", [1 << 60, -1])
def test_allocations_on_tiles_that_do_not_exist_are_nobodys(tmp_path: Path, tile: int) -> None:
    # GIVEN a report, and the same one with a further allocation on a tile that no machine has
    directory = make_memory_report(tmp_path / "report", 61, consistent=True, whole=True).parent
    with open_report(directory) as report:
        before = plain(liveness.tile_peaks(report))
    changed(directory, f"INSERT INTO lowered_variables SELECT 999999, variable_id, name, {tile}, 0, 5000, 4, category, "
                       "region, 0, 0, 0, (SELECT min(equivalence_class_id) FROM equivalence_class_intervals) "
                       "FROM lowered_variables LIMIT 1")  # fmt: skip
    # WHEN the peaks are asked for; THEN they are the same
    with open_report(directory) as report:
        assert plain(liveness.tile_peaks(report)) == before


def test_bytes_beyond_the_precision_of_a_float_are_exact(tmp_path: Path) -> None:
    # GIVEN sizes that a 64-bit float cannot tell from their neighbours
    directory = make_memory_report(tmp_path / "report", 62, consistent=True, whole=True).parent
    changed(directory, "UPDATE lowered_variables SET bytes = bytes + (1 << 55) + 1")
    # WHEN the peaks are computed; THEN they are exact
    with open_report(directory) as report:
        assert_same(plain(liveness.tile_peaks(report)), brute.tile_peaks(Captured(directory / "profile.pop")))
