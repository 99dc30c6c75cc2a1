"""Bytes, cycles, seconds and shares, written for people.

Machine formats never come here: they carry exact numbers.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

ByteUnits = Literal["binary", "si", "bytes"]
BYTE_UNITS: tuple[ByteUnits, ...] = get_args(ByteUnits)

_STEPS: dict[str, tuple[int, tuple[str, ...]]] = {
    "binary": (1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")),
    "si": (1000, ("B", "kB", "MB", "GB", "TB", "PB")),
}
_SIZE = re.compile(r"(\d{1,3}(?:,\d{3}){1,9}|\d{1,30})(?:\.(\d{1,30}))?\s*([a-z]*)", re.ASCII | re.IGNORECASE)
_FACTORS: dict[str, int] = {
    name.lower(): base**power for base, names in _STEPS.values() for power, name in enumerate(names)
}
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_HERTZ = ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz"))


def _rounded(value: float) -> str:
    """Three significant digits, but never fewer than the whole number has."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    # The limits are where the digits of one step round up to the next: 9.996 is 10.0, not 10.00.
    return f"{value:,.{2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0}f}"


def _plain(value: float) -> str:
    """Every digit of a whole number, one decimal of any other."""
    if isinstance(value, int):
        return f"{value:,}"  # a float has no room for all of them
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


def format_bytes(value: float, units: ByteUnits = "binary") -> str:
    """Write a number of bytes.

    Parameters
    ----------
    value
        Bytes; may be negative (a difference) and fractional (a mean).
    units
        ``binary`` for KiB (1,024), ``si`` for kB (1,000), ``bytes`` for the plain number.
    """
    if units == "bytes":
        return f"{_plain(value)} B"
    base, names = _STEPS[units]
    size = float(value)
    for name in names[:-1]:
        # 1023.7 KiB must not be shown as "1,024 KiB"
        if abs(size) < base - 0.5:
            return f"{size:,.0f} B" if name == "B" else f"{_rounded(size)} {name}"
        size /= base
    return f"{_rounded(size)} {names[-1]}"


def parse_bytes(text: str) -> int:
    """Read a number of bytes that a person wrote, such as ``64 KiB``, ``1.5MB`` or ``4096``.

    Parameters
    ----------
    text
        A number, with commas between thousands or without, and a unit of :func:`format_bytes` in any case, KiB being
        1,024 bytes and kB 1,000; without one, bytes. A part of a byte is rounded.

    Raises
    ------
    ValueError
        It is no size, with what one looks like.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _FACTORS.get(match[3].lower() or "b") if match else None
    if match is None or factor is None:
        raise ValueError(f"'{text}' is no size, which is a number and B, KiB, MiB, GiB, kB, MB, GB …, such as 64 KiB")
    scale: int = 10 ** len(match[2] or "")
    scaled = int(match[1].replace(",", "") + (match[2] or "")) * factor
    return (2 * scaled + scale) // (2 * scale)


def format_count(value: float) -> str:
    """Write a whole number with thousands separators, every digit of it."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def counted(count: int, noun: str) -> str:
    """Write a number of things, such as ``1 tile`` or ``1,472 tiles``."""
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def format_fraction(value: float) -> str:
    """Write a share of one as a percentage; one that is too small to show is not shown as nothing."""
    percent = value * 100
    if 0 < abs(percent) < 0.005:
        return "< 0.01 %" if percent > 0 else "> -0.01 %"
    return f"{percent:.2f} %" if 0 < abs(percent) < 0.995 else f"{percent:.1f} %"


def _scaled(value: float, scale: tuple[tuple[float, str], ...]) -> str:
    for factor, name in scale:
        # 999.7 ms must not be shown as "1,000 ms"
        if abs(value) >= factor * 0.9995:
            return f"{_rounded(value / factor)} {name}"
    factor, name = scale[-1]
    return f"{_rounded(value / factor)} {name}"


def format_seconds(value: float) -> str:
    """Write a duration in seconds with the unit that suits it."""
    return "0 s" if value == 0 else _scaled(value, _SECONDS)


def format_hertz(value: float) -> str:
    """Write a frequency in hertz with the unit that suits it."""
    return _scaled(value, _HERTZ)
