"""report.memory and report.liveness: each method gives what the analysis gives for the tiles that are meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pvanalyse import Report, open_report
from pvanalyse.accessors import LivenessAccessor, MemoryAccessor
from pvanalyse.analysis import liveness, memory, memory_details, peak_reduction
from pvanalyse.errors import UsageError
from tests.conftest import SAMPLES

OF_IPU = np.arange(48, 61)
BOTH = {"tiles": "40-60", "ipu": 1}


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    with open_report(SAMPLES / "replicated") as opened:
        yield opened


Question = Callable[[Report], Any]
SAME: dict[str, tuple[Question, Question]] = {
    "by_tile": (lambda r: r.memory.by_tile(**BOTH), lambda r: memory.tiles_frame(r, OF_IPU)),
    "by_ipu": (lambda r: r.memory.by_ipu(), memory.ipus_frame),
    "by_category": (lambda r: r.memory.by_category(**BOTH), lambda r: memory.categories_frame(r, OF_IPU)),
    "by_tile_and_category": (
        lambda r: r.memory.by_tile_and_category(**BOTH),
        lambda r: memory.tile_categories(r, OF_IPU),
    ),
    "by_region": (lambda r: r.memory.by_region(**BOTH), lambda r: memory.tile_regions(r, OF_IPU)),
    "by_liveness": (lambda r: r.memory.by_liveness(**BOTH), lambda r: memory.tile_liveness(r, OF_IPU)),
    "largest_tiles": (lambda r: r.memory.largest_tiles(7), lambda r: r.memory.by_tile(worst=7)),
    "quantiles": (
        lambda r: r.memory.quantiles(**BOTH, column="always_live_bytes"),
        lambda r: memory.distribution(r, OF_IPU, "always_live_bytes")[0],
    ),
    "histogram": (
        lambda r: r.memory.histogram(**BOTH, bins=3),
        lambda r: memory.distribution(r, OF_IPU, bins=3)[1],
    ),
    "out_of_memory": (lambda r: r.memory.out_of_memory(), memory.out_of_memory),
    "vertices": (
        lambda r: r.memory.vertices(**BOTH, pattern="a"),
        lambda r: memory_details.vertices_frame(r, OF_IPU, "a"),
    ),
    "compute_sets": (
        lambda r: r.memory.compute_sets(**BOTH, pattern="a"),
        lambda r: memory_details.compute_sets_frame(r, OF_IPU, "a"),
    ),
    "exchanges": (
        lambda r: r.memory.exchanges(**BOTH, pattern="a"),
        lambda r: memory_details.exchanges_frame(r, OF_IPU, "a"),
    ),
    "variables": (
        lambda r: r.memory.variables(**BOTH, pattern="a"),
        lambda r: memory_details.variables_frame(r, OF_IPU, "a"),
    ),
    "variable_tiles": (
        lambda r: r.memory.variable_tiles("a", **BOTH),
        lambda r: memory_details.variable_tiles(r, "a", OF_IPU),
    ),
    "map": (lambda r: r.memory.map(5), lambda r: memory_details.memory_map(r, 5)),
    "curve": (
        lambda r: r.liveness.curve(ipu=1, tiles="40-60", always_live=True),
        lambda r: liveness.curve(r, tiles=OF_IPU, always_live=True),
    ),
    "peaks": (lambda r: r.liveness.peaks(3), lambda r: liveness.peaks(r, 3)),
    "live_at": (lambda r: r.liveness.live_at(99, **BOTH), lambda r: liveness.live_at_frame(r, 99, OF_IPU)),
    "lifetimes": (lambda r: r.liveness.lifetimes("a", 4), lambda r: liveness.lifetimes_frame(r, "a", 4)),
    "difference": (lambda r: r.liveness.difference(3, 9), lambda r: liveness.difference(r, 3, 9)),
    "always_live": (lambda r: r.liveness.always_live(), liveness.always_live_frame),
    "tile_peaks": (lambda r: r.liveness.tile_peaks(), liveness.tile_peaks),
    "headroom": (lambda r: r.liveness.headroom(**BOTH), lambda r: liveness.headroom(r, OF_IPU)),
    "explain_peak": (lambda r: r.liveness.explain_peak(1000), lambda r: peak_reduction.explain_peak(r, 1000)),
    "fp16_candidates": (lambda r: r.liveness.fp16_candidates(3), lambda r: peak_reduction.fp16_candidates(r, 3)),
}


def test_every_method_is_compared() -> None:
    kinds = (MemoryAccessor, LivenessAccessor)
    assert set(SAME) == {name for kind in kinds for name in vars(kind) if not name.startswith("_")}


@pytest.mark.parametrize("name", SAME)
def test_methods_give_what_the_analysis_gives(report: Report, name: str) -> None:
    theirs, ours = (question(report) for question in SAME[name])
    pd.testing.assert_frame_equal(theirs, ours)


@pytest.mark.parametrize("name", [name for name in SAME if name not in ("out_of_memory", "fp16_candidates")])
def test_what_is_compared_is_not_empty(report: Report, name: str) -> None:
    assert len(SAME[name][0](report))


@pytest.mark.parametrize("name", SAME)
def test_answers_are_the_callers_own(report: Report, name: str) -> None:
    # GIVEN an answer; WHEN its owner spoils it; THEN the next answer is as the first was
    question = SAME[name][0]
    first = question(report)
    kept = first.copy(deep=True)
    for at, kind in enumerate(first.dtypes):
        if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            first.iloc[:, at] = kind.type(7) if isinstance(kind, np.dtype) else 7
    pd.testing.assert_frame_equal(question(report), kept)


def test_an_unnamed_choice_of_headroom_is_refused(report: Report) -> None:
    with pytest.raises(UsageError, match="tiles, ipu or worst"):
        report.liveness.headroom()


@pytest.mark.parametrize("tile", [-1, 192, 10**30])
def test_the_map_of_a_tile_that_does_not_exist_is_refused(report: Report, tile: int) -> None:
    with pytest.raises(UsageError, match="there is no tile"):
        report.memory.map(tile)


def test_methods_that_take_tiles_refuse_those_that_do_not_exist(report: Report) -> None:
    asked = 0
    for accessor in (report.memory, report.liveness):
        for name, method in inspect.getmembers(accessor, inspect.ismethod):
            if "tiles" in inspect.signature(method).parameters and not name.startswith("_"):
                needed = [at for at in ("a", 1) if _required(method) and isinstance(at, _required(method)[0])]
                with pytest.raises(UsageError, match="there is no tile 999"):
                    method(*needed, tiles="0,999")
                asked += 1
    assert asked >= 15


def _required(method: Callable[..., Any]) -> list[type]:
    parameters = inspect.signature(method).parameters.values()
    kinds = {"str": str, "int": int}
    return [kinds[one.annotation] for one in parameters if one.default is one.empty]


def test_accessors_are_made_once(report: Report) -> None:
    assert report.memory is report.memory
    assert report.liveness is report.liveness
