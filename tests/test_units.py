"""Numbers for people: exact cases, and what must hold of every number."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.units import (
    BYTE_UNITS,
    ByteUnits,
    format_bytes,
    format_count,
    format_fraction,
    format_hertz,
    format_seconds,
)

FACTORS = {
    "binary": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50},
    "si": {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15},
    "bytes": {"B": 1},
}


@pytest.mark.parametrize(
    ("value", "units", "written"),
    [
        (0, "binary", "0 B"),
        (1, "binary", "1 B"),
        (1023, "binary", "1,023 B"),
        (1024, "binary", "1.00 KiB"),
        (10_235, "binary", "10.0 KiB"),  # 9.995 KiB
        (102_400, "binary", "100 KiB"),
        (1_047_552, "binary", "1,023 KiB"),
        (1_048_300, "binary", "1.00 MiB"),  # not "1,024 KiB"
        (638_976, "binary", "624 KiB"),
        (638_976, "si", "639 kB"),
        (999_700, "si", "1.00 MB"),  # not "1,000 kB"
        (1_881_145_344, "binary", "1.75 GiB"),
        (1_881_145_344, "si", "1.88 GB"),
        (1_881_145_344, "bytes", "1,881,145,344 B"),
        (2**63 - 1, "bytes", "9,223,372,036,854,775,807 B"),
        (2**70, "binary", "1,048,576 PiB"),
        (-2048, "binary", "-2.00 KiB"),
        (1.25, "bytes", "1.2 B"),
        (3.0, "bytes", "3 B"),
    ],
)
def test_bytes(value: float, units: ByteUnits, written: str) -> None:
    assert format_bytes(value, units) == written


@given(value=st.integers(-(2**62), 2**62), units=st.sampled_from(BYTE_UNITS))
def test_bytes_read_back(value: int, units: ByteUnits) -> None:
    # GIVEN any size; WHEN written and read back
    match = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?) (\w+)", format_bytes(value, units))
    assert match is not None
    number, unit = float(match[1].replace(",", "")), match[2]
    # THEN it is right to three digits, and shown in a unit that fits
    assert number * FACTORS[units][unit] == pytest.approx(value, rel=0.006)
    if units != "bytes" and unit not in ("PiB", "PB"):
        assert abs(number) < (1024 if units == "binary" else 1000)


@given(st.integers(-(2**80), 2**80))
def test_counts_keep_every_digit(value: int) -> None:
    assert int(format_count(value).replace(",", "")) == value
    assert int(format_bytes(value, "bytes").removesuffix(" B").replace(",", "")) == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0.0 %"),
        (1, "100.0 %"),
        (0.5, "50.0 %"),
        (0.1234, "12.3 %"),
        (0.0068, "0.68 %"),
        (0.00997, "1.0 %"),
        (0.0001, "0.01 %"),
        (0.00004, "< 0.01 %"),  # something is not nothing
        (-0.00004, "> -0.01 %"),
        (-0.25, "-25.0 %"),
        (12.5, "1250.0 %"),
    ],
)
def test_fractions(value: float, written: str) -> None:
    assert format_fraction(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0 s"),
        (0.02114, "21.1 ms"),
        (0.9997, "1.00 s"),  # not "1,000 ms"
        (0.0009994, "999 µs"),
        (0.00000123, "1.23 µs"),
        (4e-9, "4.00 ns"),
        (12_345.6, "12,346 s"),
        (-0.5, "-500 ms"),
    ],
)
def test_seconds(value: float, written: str) -> None:
    assert format_seconds(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.33e9, "1.33 GHz"), (999_999_999, "1.00 GHz"), (1.6e6, "1.60 MHz"), (50, "50.0 Hz"), (0, "0 Hz")],
)
def test_hertz(value: float, written: str) -> None:
    assert format_hertz(value) == written
