"""Ticks that a person would choose, and colours that stay what they are."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.plots.palette import CATEGORIES, Style, category_styles
from pvanalyse.plots.scales import ByteFormatter, ByteLocator
from pvanalyse.units import BYTE_UNITS, ByteUnits

SCALE = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4,
         "kB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}  # fmt: skip


@given(st.integers(0, 10**13), st.integers(1, 10**13), st.sampled_from(BYTE_UNITS))
def test_ticks_are_few_round_and_written_exactly(low: int, span: int, units: ByteUnits) -> None:
    # GIVEN an axis of bytes; WHEN its ticks are chosen and written
    ticks = ByteLocator(units).tick_values(low, low + span).tolist()
    write = ByteFormatter(units)
    texts = write.format_ticks(ticks)
    # THEN there are not too many, not too few, at multiples of a round step
    assert (3 if span >= 5 else 0) <= len(ticks) <= 10
    steps = {round(high - lower) for lower, high in pairwise(ticks)}
    assert len(steps) <= 1
    for step in steps:
        assert math.log2(step).is_integer() if units == "binary" else str(step).strip("0") in ("1", "2", "5")
        assert all(tick % step == 0 for tick in ticks)
    # AND no two are written alike, and what is written is the number
    assert len(set(texts)) == len(texts)
    for tick, text in zip(ticks, texts, strict=True):
        number, _, unit = text.partition(" ")
        assert int(number.replace(",", "")) * SCALE[unit or "B"] == tick


def test_a_category_has_one_colour_whatever_else_is_drawn() -> None:
    together = category_styles([*CATEGORIES, "mystery"])
    assert {name: category_styles([name])[name] for name in together} == together
    assert {name: together[name] for name in CATEGORIES} == CATEGORIES


def test_no_two_categories_look_alike() -> None:
    # GIVEN all that are known, and as many unknown as there are looks for; THEN all look different
    unknown = [f"unknown{number}" for number in range(28)]
    styles = category_styles([*CATEGORIES, *unknown])
    assert len(set(styles.values())) == len(CATEGORIES) + len(unknown)
    # AND more than that are drawn all the same
    assert len(category_styles(str(number) for number in range(500))) == 500


def test_an_unknown_category_looks_the_same_in_every_run() -> None:
    assert category_styles(["futureCategory"]) == {"futureCategory": Style("#999933", "++++")}


# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
# severity 1.0, on linear RGB.
DEFICIENCIES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def _linear(colour: str) -> list[float]:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def _lab(linear: list[float]) -> list[float]:
    matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    xyz = [sum(m * v for m, v in zip(row, linear, strict=True)) / w for row, w in zip(matrix, white, strict=True)]
    x, y, z = (max(value, 0) ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_plain_colours_are_told_apart_without_red_or_green(deficiency: str) -> None:
    # GIVEN the colours of the categories without a hatch, as someone with the deficiency sees them
    def seen(colour: str) -> list[float]:
        linear = _linear(colour)
        return _lab([sum(m * v for m, v in zip(row, linear, strict=True)) for row in DEFICIENCIES[deficiency]])

    plain = {name: seen(style.colour) for name, style in CATEGORIES.items() if not style.hatch}
    # THEN any two of them are further apart than a just noticeable difference (2.3), several times over
    distances = {(one, two): math.dist(plain[one], plain[two]) for one, two in combinations(plain, 2)}
    assert min(distances.values()) > 15, min(distances, key=distances.__getitem__)
    assert len(distances) == math.comb(8, 2)
