"""Commands called in process, and the profile that they were asked about, read by other means."""

from __future__ import annotations

import csv
import json
import sqlite3
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pvanalyse.cli import main

Capture = pytest.CaptureFixture[str]


def answer(capsys: Capture, *argv: str) -> str:
    """Run a command that must succeed and say nothing else; return its answer."""
    code = main(argv)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def answer_json(capsys: Capture, *argv: str) -> Any:
    return json.loads(answer(capsys, *argv, "--format", "json"))


def answer_csv(capsys: Capture, *argv: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(answer(capsys, *argv, "--format", "csv"), newline=""), strict=True))


def refusal(capsys: Capture, code: int, *argv: str) -> str:
    """Run a command that must be refused with this code; return what it says about it."""
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def rows(report: Path, query: str) -> list[dict[str, Any]]:
    """Rows of a report's profile.pop, by the standard library."""
    database = sqlite3.connect(f"file:{report / 'profile.pop'}?mode=ro&immutable=1", uri=True)
    database.row_factory = sqlite3.Row
    found = [dict(row) for row in database.execute(query)]
    database.close()
    return found


def as_text(record: dict[str, Any]) -> dict[str, str]:
    """What CSV has for a row of JSON."""
    return {name: "" if value is None else str(value) for name, value in record.items()}
