"""What the brute-force analyses read, and how their answers are held against DataFrames: whole, in order, type by type."""

from __future__ import annotations

import math
import sqlite3
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import cbor2
import pandas as pd

from pvanalyse.errors import NotCaptured

Row = dict[str, Any]
Answer = tuple[list[str], list[tuple[Any, ...]]]
"""Names of columns, and rows."""


class Missing(Exception):
    """A table that an answer needs is missing or empty."""


class Captured(dict[str, list[Row]]):
    """The tables of a profile.pop that have rows; a reading of any other raises `Missing`."""

    def __init__(self, profile: Path) -> None:
        with closing(sqlite3.connect(profile)) as connection:
            connection.row_factory = sqlite3.Row
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables = {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")] for name in names}
        super().__init__({name: rows for name, rows in tables.items() if rows})
        places = [directory / "debug.cbor" for directory in profile.parents[:2]]  # or in the directory above
        found = next((place for place in places if place.exists()), None)
        self.contexts = cbor2.loads(found.read_bytes()) if found else None

    def __missing__(self, name: str) -> list[Row]:
        raise Missing(name)

    @property
    def target(self) -> Row:
        return self["target"][0]


def answer(columns: str, rows: Sequence[tuple[Any, ...]]) -> Answer:
    return columns.split(), list(rows)


def numbers(blob: bytes | None, tiles: int) -> Sequence[int]:
    """Decode a per-tile value; NULL is all zeros."""
    return struct.unpack(f"<{tiles}I", blob) if blob is not None else [0] * tiles


def plain(frame: pd.DataFrame) -> Answer:
    """Return a frame as plain Python values; an index that has a name is the first column."""
    frame = frame.reset_index() if frame.index.name else frame
    columns = [[_value(value) for value in frame[name].tolist()] for name in frame.columns]
    return [name if isinstance(name, str) else int(name) for name in frame.columns], list(zip(*columns, strict=True))


def _value(value: Any) -> Any:
    return None if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)) else value


def outcome(question: Callable[..., Any], *arguments: Any) -> Any:
    """Return the answer to a question, as plain values, or 'not captured'."""
    try:
        found = question(*arguments)
    except (Missing, NotCaptured):
        return "not captured"
    return plain(found) if isinstance(found, pd.DataFrame) else found


def assert_same(found: Any, expected: Any, what: object = "") -> None:
    """Equal columns, rows and types; fractions to twelve digits."""
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected, what
        return
    assert found[0] == expected[0], what
    assert [_rounded(row) for row in found[1]] == [_rounded(row) for row in expected[1]], what


def _rounded(row: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return [(type(value).__name__, float(f"{value:.12g}") if type(value) is float else value) for value in row]


def assert_not_captured(error: NotCaptured, captured: Captured) -> None:
    """The error names a table that really is not there, and says how to have it."""
    assert error.table not in captured
    assert error.how
    assert error.table in str(error)
    assert error.how in str(error)
