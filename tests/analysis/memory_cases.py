"""The reports that the tests of memory and liveness run over."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.oracle.frames import Captured
from tests.oracle.memory_reports import make_memory_report

SAMPLE_NAMES = sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("profile.pop"))
RANDOM = [f"random {seed}" for seed in range(60)]
CONSISTENT = [f"consistent {seed}" for seed in range(60, 85)]

captured_of = cache(Captured)


def report_of(case: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a sample, or of a random report that is made."""
    kind, _, seed = case.partition(" ")
    if not seed:
        return SAMPLES / case
    directory = tmp_path_factory.mktemp(kind) / "report"
    return make_memory_report(directory, int(seed), kind == "consistent", kind == "consistent").parent
