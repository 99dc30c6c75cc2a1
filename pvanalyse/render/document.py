"""What a command has to say, apart from how it is written down."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pvanalyse import units


class Unit(Enum):
    """What a value is, and so how it is written for people."""

    TEXT = ""
    COUNT = "count"
    BYTES = "bytes"
    CYCLES = "cycles"
    SECONDS = "s"
    HERTZ = "Hz"
    FRACTION = "fraction"
    RATE = "bytes/s"
    ADDRESS = "address"


Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Fact:
    """A named value."""

    label: str
    value: Value
    unit: Unit = Unit.TEXT


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a grid; ``key`` is its name in machine formats, where it ends in its unit as columns do."""

    label: str
    key: str
    unit: Unit = Unit.TEXT


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: fields and rows of as many values."""

    title: str
    fields: Sequence[Field]
    rows: Sequence[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Section:
    """Facts, tables and sentences under one heading; an empty one is not shown."""

    title: str
    facts: Sequence[Fact] = ()
    grids: Sequence[Grid] = ()
    sentences: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.facts or self.sentences or any(grid.rows for grid in self.grids))


@dataclass(frozen=True, slots=True)
class Document:
    """A whole answer.

    Attributes
    ----------
    title
        What it is about.
    verdict
        The answer in one sentence, before everything else; may be empty.
    alarming
        Whether the verdict is bad news.
    sections
        In the order of reading.
    data
        The machine form: what JSON shows.
    """

    title: str
    sections: Sequence[Section]
    data: Any
    verdict: str = ""
    alarming: bool = False
    grid: Grid | None = field(default=None)
    """The one table that CSV shows, when the answer is a table."""


Formatter = Callable[[Value, Unit], str]


def formatter(byte_units: units.ByteUnits) -> Formatter:
    """Return a function that writes a value of a unit for people."""
    numbers: Mapping[Unit, Callable[[float], str]] = {
        Unit.COUNT: units.format_count,
        Unit.CYCLES: units.format_count,
        Unit.BYTES: lambda value: units.format_bytes(value, byte_units),
        Unit.RATE: lambda value: f"{units.format_bytes(value, byte_units)}/s",
        Unit.SECONDS: units.format_seconds,
        Unit.HERTZ: units.format_hertz,
        Unit.FRACTION: units.format_fraction,
        Unit.ADDRESS: lambda value: f"0x{int(value):x}",
    }

    def write(value: Value, unit: Unit) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str):
            return printable(value)
        return numbers[unit](value) if unit in numbers else str(value)

    return write


def printable(text: str) -> str:
    """Return a name from a report so that no terminal or page obeys what is in it.

    Control characters, bidirectional marks, lone surrogates and line breaks are written as escapes.
    """
    if text.isprintable():
        return text
    return "".join(char if unicodedata.category(char)[0] not in "CZ" or char == " " else _escape(char) for char in text)


def printable_lines(text: str) -> str:
    """Return :func:`printable` text that keeps its line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def shorten(text: str, width: int) -> str:
    """Cut a long name in the middle, where names of programs say least."""
    if len(text) <= width or width < 5:
        return text
    tail = (width - 1) * 3 // 5
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a file name that is not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
