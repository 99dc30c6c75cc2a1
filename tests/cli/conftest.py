"""Tests in this directory do not depend on the terminal that they run in."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
