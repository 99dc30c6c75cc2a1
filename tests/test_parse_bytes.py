"""Sizes that people write."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.units import format_bytes, parse_bytes

FACTORS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
           "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("0", 0),
        ("64 KiB", 65_536),
        ("64KiB", 65_536),
        ("64kib", 65_536),
        ("1.5MB", 1_500_000),
        ("1.5 MiB", 1_572_864),
        ("  2  GiB ", 2**31),
        ("638,976 B", 638_976),
        ("1,048,576 PiB", 2**70),
        ("0.4", 0),
        ("0.5", 1),
        ("0.1 KiB", 102),
        ("9007199254740993", 9_007_199_254_740_993),  # more than a float can hold
        ("0.000000000000000000000001 PB", 0),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    ["", " ", "KiB", "-1", "+1", "1e3", "nan", "inf", "1.", ".5", "1..5", "1,00", "1,0000", "1 K", "64 Kb/s", "6 4", "٣",
     "1 \u212aiB", "0x10", "1_000", "9" * 31, "1.5 MiBs", "12\n34"],
)  # fmt: skip
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size, which is a number and B, KiB, MiB"):
        parse_bytes(text)


@given(
    whole=st.integers(0, 10**18),
    part=st.text("0123456789", max_size=12),
    unit=st.sampled_from(list(FACTORS)),
    space=st.sampled_from(["", " "]),
    commas=st.booleans(),
)
def test_any_size_is_exact_to_half_a_byte(whole: int, part: str, unit: str, space: str, commas: bool) -> None:
    # GIVEN any number and unit; WHEN read
    number = f"{whole:,}" if commas else str(whole)
    size = parse_bytes(f"{number}{'.' if part else ''}{part}{space}{unit}")
    # THEN it differs from the exact value by rounding only, halves up
    exact = (whole + Fraction(int(part or "0"), 10 ** len(part))) * FACTORS[unit]
    assert -Fraction(1, 2) < size - exact <= Fraction(1, 2) or size == exact


@given(st.integers(0, 2**80))
def test_plain_bytes_read_back(value: int) -> None:
    assert parse_bytes(format_bytes(value, "bytes")) == value
