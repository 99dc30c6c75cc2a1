"""What tests share: where samples and real files are, and how a small profile.pop is made."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_reports"
LAYOUT = ROOT / "pvanalyse" / "readers" / "dialects" / "pvanalyse-1.sql"
REAL_REPORTS = Path(os.environ.get("PVANALYSE_REAL_REPORTS", ROOT.parent / "shared" / "real_reports"))

Rows = Mapping[str, Iterable[Sequence[Any]]]


@pytest.fixture
def real_cache() -> Path:
    """The directory with the only real file that the tests know of: a profile.pop_cache."""
    directory = REAL_REPORTS / "popxl_mnist_pipeline"
    if not (directory / "profile.pop_cache").is_file():
        pytest.skip("the real profile.pop_cache is not there; PVANALYSE_REAL_REPORTS can name its directory")
    return directory


@pytest.fixture
def make_profile(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a profile.pop of layout pvanalyse-1 with the given rows by table."""

    def make(rows: Rows, directory: Path = tmp_path, drop: Sequence[str] = ()) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "profile.pop"
        with sqlite3.connect(path) as database:
            database.executescript(LAYOUT.read_text("utf-8"))
            for table, values in rows.items():
                for row in values:
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", tuple(row))
            for table in drop:
                database.execute(f"DROP TABLE {table}")
        database.close()
        return path

    return make
