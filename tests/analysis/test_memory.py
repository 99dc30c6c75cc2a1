"""Memory by tile, IPU, category and region: every frame, whole, against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pvanalyse import Report, open_report
from pvanalyse.analysis import memory
from pvanalyse.errors import NotCaptured, UsageError
from tests.analysis.memory_cases import CONSISTENT, RANDOM, SAMPLE_NAMES, captured_of, report_of
from tests.oracle import memory as brute
from tests.oracle.frames import Captured, assert_not_captured, assert_same, outcome, plain

Case = tuple[Report, Captured]


@pytest.fixture(scope="module", params=[*SAMPLE_NAMES, *CONSISTENT, *RANDOM])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    directory = report_of(request.param, tmp_path_factory)
    with open_report(directory) as report:
        yield report, captured_of(directory / "profile.pop")


def choices(captured: Captured) -> list[list[int] | None]:
    """All tiles, one, and some in an order of their own."""
    tiles = [row["tile"] for row in captured.get("tile_memory", [])]
    return [None, tiles[-1:], tiles[::3][::-1]] if tiles else [None]


def array(tiles: list[int] | None) -> np.ndarray | None:
    return None if tiles is None else np.array(tiles, np.int64)


FRAMES = ["tiles_frame", "tile_regions", "tile_liveness", "categories_frame", "tile_categories"]


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_tiles_are_those_of_brute_force(case: Case, name: str) -> None:
    report, captured = case
    for tiles in choices(captured):
        found = outcome(getattr(memory, name), report, array(tiles))
        assert_same(found, outcome(getattr(brute, name), captured, tiles), (name, tiles))


def test_ipus_are_those_of_brute_force(case: Case) -> None:
    report, captured = case
    assert_same(outcome(memory.ipus_frame, report), outcome(brute.ipus_frame, captured))


def test_tiles_out_of_memory_are_those_of_brute_force(case: Case) -> None:
    # GIVEN a report; WHEN what does not fit is asked for, by the program and by brute force
    report, captured = case
    found, expected = outcome(memory.out_of_memory, report), outcome(brute.out_of_memory, captured)
    if expected == "not captured":
        assert found == expected
        return
    # THEN they agree; of several equally large categories any may be named
    names = [row[5] for row in found[1]]
    assert all(name in allowed for name, (*_, allowed, _) in zip(names, expected[1], strict=True))
    rows = [(*row[:5], name, row[6]) for name, row in zip(names, expected[1], strict=True)]
    assert_same(found, (expected[0], rows))


@pytest.mark.parametrize(
    ("column", "bins"), [("total_including_gaps", 20), ("always_live_bytes", 7), ("overflowed_excluding_gaps", 1)]
)
def test_distribution_counts_every_tile_once(case: Case, column: str, bins: int) -> None:
    report, captured = case
    if "tile_memory" not in captured:
        with pytest.raises(NotCaptured):
            memory.distribution(report, None, column, bins)
        return
    for tiles in choices(captured):
        # WHEN a column's distribution is asked for
        quantiles, histogram = memory.distribution(report, array(tiles), column, bins)
        # THEN the quantiles are exact, and the bins are equally wide, adjacent, and hold what lies in them
        assert_same(plain(quantiles), brute.quantiles(captured, tiles, column))
        values = [row[column] for row in brute.tile_rows(captured, tiles)]
        begins, ends, counts = (histogram[name].tolist() for name in ("from_bytes", "to_bytes", "num_tiles"))
        assert list(histogram.columns) == ["from_bytes", "to_bytes", "num_tiles"]
        assert begins[1:] == ends[:-1]
        assert np.allclose(np.diff([*begins, ends[-1]]), (ends[-1] - begins[0]) / bins)
        if min(values) < max(values):
            assert (begins[0], ends[-1]) == (min(values), max(values))
        last = len(counts) - 1
        inside = [sum(low <= value < high or (at == last and value == high) for value in values)
                  for at, (low, high) in enumerate(zip(begins, ends, strict=True))]  # fmt: skip
        assert counts == inside
        assert sum(counts) == len(values)


def test_sizes_are_plain_64_bit_integers(case: Case) -> None:
    report, captured = case
    if not {"tile_memory", "tile_memory_category", "target"} <= set(captured):
        pytest.skip("needs all tables")
    frames = [memory.tiles_frame(report), memory.ipus_frame(report), memory.tile_categories(report),
              memory.categories_frame(report), memory.tile_regions(report), memory.tile_liveness(report)]  # fmt: skip
    frames.append(memory.out_of_memory(report))
    for frame in frames:
        for name, kind in frame.dtypes.items():
            expected = "float64" if name in ("fraction", "used_fraction") else "int64"
            if name not in ("category", "largest_category"):
                assert kind == expected, name


@pytest.mark.parametrize("column", ["nothing", "tile", "ipu", ""])
def test_distribution_of_what_is_no_column_is_refused(column: str) -> None:
    with open_report(report_of("replicated", None)) as report, pytest.raises(UsageError, match="total_including_gaps"):
        memory.distribution(report, column=column)


def test_distribution_needs_a_bin_and_a_tile() -> None:
    with open_report(report_of("replicated", None)) as report:
        with pytest.raises(UsageError, match="bin"):
            memory.distribution(report, bins=0)
        with pytest.raises(UsageError, match="tile"):
            memory.distribution(report, np.array([], np.int64))


def test_tiles_without_a_row_are_named() -> None:
    with open_report(report_of("replicated", None)) as report, pytest.raises(UsageError, match=r"tile 5,000"):
        memory.tiles_frame(report, np.array([3, 5000]))


# ------------------------------------------------------------------------------------------------------- relations
@pytest.fixture(scope="module", params=[*SAMPLE_NAMES, *CONSISTENT])
def consistent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    with open_report(report_of(request.param, tmp_path_factory)) as report:
        yield report


def test_what_is_taken_apart_adds_up_again(consistent: Report) -> None:
    # GIVEN a report whose numbers agree with one another; WHEN its memory is taken apart in several ways
    tiles, ipus = memory.tiles_frame(consistent), memory.ipus_frame(consistent)
    categories, by_tile = memory.categories_frame(consistent), memory.tile_categories(consistent)
    # THEN regions add up to totals, tiles to IPUs and tiles to categories
    totals = tiles.set_index("tile")["total_including_gaps"]
    assert memory.tile_regions(consistent).sum(axis=1).tolist() == totals.tolist()
    assert ipus["total_including_gaps"].sum() == totals.sum()
    assert ipus["tiles"].sum() == len(tiles)
    assert by_tile.sum().to_dict() == categories.set_index("category")["bytes"].to_dict()
    regions = ["non_interleaved_bytes", "interleaved_bytes", "overflowed_bytes"]
    assert (categories[regions].sum(axis=1) == categories["bytes"]).all()
    assert categories["fraction"].sum() == pytest.approx(1 if categories["bytes"].any() else 0)
    # THEN what is shared is counted for each that shares it
    alone, shared = categories["bytes"].sum(), categories["overlapped_bytes"].sum()
    assert alone <= tiles["total_excluding_gaps"].sum() <= alone + shared


def test_out_of_memory_sample_has_the_tiles_that_its_readme_says() -> None:
    with open_report(report_of("out_of_memory", None)) as report:
        frame = memory.out_of_memory(report)
    assert len(frame) == 416
    assert (frame["over_bytes"] > 0).all()
    assert frame["over_bytes"].is_monotonic_decreasing


def test_frames_are_the_callers_own(tmp_path: Path) -> None:
    # GIVEN a frame that its owner has spoilt
    with open_report(report_of("replicated", None)) as report:
        first = memory.tiles_frame(report)
        before = first.copy()
        first.loc[:, "total_including_gaps"] = -1
        # WHEN the same is asked again; THEN nothing of that is in it
        pd.testing.assert_frame_equal(memory.tiles_frame(report), before)


def test_not_captured_names_the_table_and_the_option(case: Case) -> None:
    report, captured = case
    for name in (*FRAMES, "ipus_frame", "out_of_memory"):
        try:
            getattr(memory, name)(report)
        except NotCaptured as error:
            assert_not_captured(error, captured)
