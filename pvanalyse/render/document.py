"""What a command has to say, apart from how it is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pvanalyse import units
from pvanalyse.names import printable


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
    """A column of a grid.

    ``key`` is its name in machine formats, where it ends in its unit as columns do; without one it is for people only.
    ``prose`` is read from its beginning; where room is short, it loses its end and a name its middle.
    """

    label: str
    key: str
    unit: Unit = Unit.TEXT
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: fields and rows of as many values."""

    title: str
    fields: Sequence[Field]
    rows: Sequence[Sequence[Value]]

    def for_people(self) -> Grid:
        """Return the table without the columns that have nothing to say, the first always kept."""
        kept = [at for at in range(len(self.fields)) if not at or any(row[at] not in (None, "") for row in self.rows)]
        rows = [[row[at] for at in kept] for row in self.rows]
        return Grid(self.title, [self.fields[at] for at in kept], rows)


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
