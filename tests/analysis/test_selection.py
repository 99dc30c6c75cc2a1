"""Which tiles are meant."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import open_report
from pvanalyse.analysis.selection import parse_tiles, select_tiles
from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from tests.conftest import SAMPLES
from tests.oracle.frames import Captured
from tests.oracle.reports import write_profile

REPLICATED = SAMPLES / "replicated"  # 4 IPUs of 48 tiles

pairs = st.tuples(st.integers(0, 3000), st.integers(0, 500))
space = st.sampled_from(["", " ", "  ", "\t"])


@given(st.lists(st.tuples(pairs, st.booleans(), space, space), min_size=1, max_size=8))
def test_rendered_selections_are_read_back(parts: list[tuple[tuple[int, int], bool, str, str]]) -> None:
    # GIVEN ranges and numbers, written with blanks between them
    texts, expected = [], []
    for (first, length), single, before, after in parts:
        last = first if single else first + length
        texts.append(f"{before}{first}{after}" if single else f"{before}{first}{after}-{before}{last}{after}")
        expected.append(list(range(first, last + 1)))
    # WHEN the text is read; THEN it means them
    assert [list(part) for part in parse_tiles(",".join(texts))] == expected


@pytest.mark.parametrize(
    ("text", "at", "length"),
    [
        ("", 0, 1),
        ("5,", 2, 1),
        (",5", 0, 1),
        ("1,,2", 2, 1),
        ("1,x,2", 2, 1),
        ("10-20,9-3", 6, 3),
        ("1,-4", 2, 2),
        ("3-", 0, 2),
        ("1-2-3,4", 0, 5),
        ("7, 1.5", 2, 4),
        ("0,1e3", 2, 3),
        ("0,9999999999", 2, 10),
        ("all", 0, 3),
        ("0;1", 0, 3),
    ],
)
def test_a_bad_text_is_refused_with_the_mistake_marked(text: str, at: int, length: int) -> None:
    with pytest.raises(UsageError) as caught:
        parse_tiles(text)
    _, shown, marks = str(caught.value).split("\n")
    assert shown == f"  {text}"
    assert marks == "  " + " " * at + "^" * length


@given(st.text(st.sampled_from("0123456789,- x\u0663\n"), max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    parts = text.split(",")
    if all(re.fullmatch(r"\s*\d{1,9}\s*(-\s*\d{1,9}\s*)?", part) for part in parts):
        bounds = [[int(number) for number in part.split("-")] for part in parts]
        if all(bound[0] <= bound[-1] for bound in bounds):
            assert parse_tiles(text) == [range(bound[0], bound[-1] + 1) for bound in bounds]
            return
    with pytest.raises(UsageError, match=r"\^"):
        parse_tiles(text)


def by_fullness(tiles: list[int]) -> list[int]:
    total = {row["tile"]: row["total_including_gaps"] for row in Captured(REPLICATED / "profile.pop")["tile_memory"]}
    return sorted(tiles, key=lambda tile: (-total[tile], tile))


EVERY = list(range(192))


@pytest.mark.parametrize(
    ("tiles", "ipu", "worst", "expected"),
    [
        ("5,3,3-4", None, None, [3, 4, 5]),
        ([9, 2, 9], None, None, [2, 9]),
        (np.array([7]), None, None, [7]),
        (range(3), None, None, [0, 1, 2]),
        (None, 1, None, EVERY[48:96]),
        (None, np.int64(1), None, EVERY[48:96]),
        (None, [3, 0], None, EVERY[:48] + EVERY[144:]),
        (None, (), None, None),
        ("40-60", 1, None, EVERY[48:61]),
        (None, None, 5, by_fullness(EVERY)[:5]),
        (None, 2, 7, by_fullness(EVERY[96:144])[:7]),
        ("100-110", 2, 3, by_fullness(EVERY[100:111])[:3]),
        ("0-3", None, 10**9, by_fullness(EVERY[:4])),
        ("0", 1, None, None),
        ([], None, None, None),
    ],
)  # fmt: skip
def test_choices_narrow_each_other_down(
    tiles: object, ipu: object, worst: int | None, expected: list[int] | None
) -> None:
    with open_report(REPLICATED) as report:
        if expected is None:  # nothing is left, which is no answer
            with pytest.raises(UsageError, match="no tile is left"):
                select_tiles(report, tiles, ipu, worst)
            return
        found = select_tiles(report, tiles, ipu, worst)
    assert found is not None
    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_nothing_asked_is_all_tiles() -> None:
    with open_report(REPLICATED) as report:
        assert select_tiles(report) is None


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"tiles": "192"}, "tile 192;"),
        ({"tiles": "0-999999999"}, "tile 999,999,999;"),
        ({"tiles": [0, 500, 4]}, "tile 500;"),
        ({"tiles": [-1]}, "tile -1;"),
        ({"tiles": [2**80]}, "tile 1,208"),
        ({"ipu": 4}, "IPU 4;"),
        ({"ipu": -1}, "IPU -1;"),
        ({"ipu": [0, 2**80]}, "IPU 1,208"),
        ({"worst": 0}, "not 0"),
        ({"worst": -3}, "not -3"),
    ],
)
def test_what_does_not_exist_is_named(choice: dict[str, object], named: str) -> None:
    with open_report(REPLICATED) as report, pytest.raises(UsageError, match=named):
        select_tiles(report, **choice)  # type: ignore[arg-type]


TARGET = {"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": 4, "num_tiles": 4,
          "bytes_per_tile": 10, "clock_frequency": 1.0}  # fmt: skip
SIZES = (
    *("total_excluding_gaps", "non_interleaved_including_gaps", "non_interleaved_excluding_gaps"),
    *("interleaved_including_gaps", "interleaved_excluding_gaps", "overflowed_including_gaps"),
    *("overflowed_excluding_gaps", "always_live_bytes", "not_always_live_bytes"),
)
MEMORY = [{"tile": tile, "total_including_gaps": tile % 2, **dict.fromkeys(SIZES, 0)} for tile in range(4)]


def test_equally_full_tiles_come_by_number(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {"tile_memory": MEMORY})
    with open_report(tmp_path) as report:
        found = select_tiles(report, worst=3)
        assert found is not None
        assert found.tolist() == [1, 3, 0]
        with pytest.raises(NotCaptured, match="target"):
            select_tiles(report, ipu=0)


def test_without_memory_of_tiles_there_is_no_worst(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {"target": [TARGET]})
    with open_report(tmp_path) as report, pytest.raises(NotCaptured, match="tile_memory"):
        select_tiles(report, worst=1)


def test_without_both_there_is_no_tile(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {})
    with open_report(tmp_path) as report, pytest.raises(NotCaptured, match="target"):
        select_tiles(report, tiles="0")


@pytest.mark.parametrize("number", [1 << 60, -4, 1 << 31])
def test_a_number_of_tiles_that_cannot_be_is_refused(tmp_path: Path, number: int) -> None:
    write_profile(tmp_path / "profile.pop", {"target": [{**TARGET, "num_tiles": number}]})
    with open_report(tmp_path) as report, pytest.raises(PvanalyseError, match="tiles"):
        select_tiles(report, tiles="0")
