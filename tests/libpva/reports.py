"""Reports for these tests, and their contents read with nothing but the standard library."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.conftest import SAMPLES
from tests.oracle.reports import make_report

Row = dict[str, Any]

SAMPLE_REPORTS = sorted(path.parent for path in SAMPLES.rglob("profile.pop"))
WITH_LOWERED = [path for path in SAMPLE_REPORTS if path.name != "no_lowered_variables"]
SEEDS = range(8)


def sample(name: str) -> Path:
    """Return the directory of a sample."""
    return next(path for path in SAMPLE_REPORTS if path.name == name)


def random_report(directory: Path, seed: int) -> Path:
    """Write a random report that has every table, and return its directory."""
    make_report(directory, seed, dropped=frozenset(), emptied=frozenset(), debug_info=True)
    return directory


class Raw:
    """The tables of a profile.pop, as lists of dicts."""

    def __init__(self, directory: Path) -> None:
        with closing(sqlite3.connect(f"file:{directory / 'profile.pop'}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            self._tables = {name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")] for name in names}

    def __getitem__(self, table: str) -> list[Row]:
        return self._tables.get(table, [])

    def by(self, table: str, *columns: str) -> dict[Any, Row]:
        """Return the rows of a table by their key."""
        return {row[columns[0]] if len(columns) == 1 else tuple(row[c] for c in columns): row for row in self[table]}

    @property
    def target(self) -> Row:
        return self["target"][0]

    def per_tile(self, blob: bytes | None, otherwise: Any = 0) -> list[int]:
        """Return a per-tile BLOB as numbers; zeros for NULL, or nothing at all."""
        if blob is None:
            return [0] * self.target["num_tiles"] if otherwise == 0 else otherwise
        return list(struct.unpack(f"<{len(blob) // 4}I", blob))
