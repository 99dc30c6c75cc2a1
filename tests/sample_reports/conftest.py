"""The samples, and a few reports of other sizes that are made for the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sample_reports.reading import SAMPLES, SYNTHESISE, Profile

COMMITTED = sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("profile.pop"))
MADE = {
    "one tile": "--tiles-per-ipu 1 --hidden 64 --sequence 8 --seed 11",
    "three stages": "--ipus 3 --tiles-per-ipu 24 --io-tiles 3 --layers 5 --seed 12 --framework tensorflow",
    "fragments": "--ipus 4 --replicas 2 --tiles-per-ipu 8 --lowered-variables 9000 --execution-steps 3000 --hidden 64",
    "too big": "--network convolutional --tiles-per-ipu 12 --hidden 48 --sequence 96 --execution tiles --seed 13",
    "inference": "--ipus 2 --tiles-per-ipu 20 --inference --seed 14 --archive symbols",
}


def synthesise(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SYNTHESISE), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="session", params=[*COMMITTED, *MADE])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Every committed sample and every made report in turn."""
    if request.param not in MADE:
        return Profile(SAMPLES / request.param)
    directory: Path = tmp_path_factory.mktemp("made") / "report"
    made = synthesise("-o", str(directory), *MADE[request.param].split())
    assert made.returncode == 0, made.stderr
    return Profile(directory)


@pytest.fixture
def lowered_profile(profile: Profile) -> Profile:
    """Only reports that captured lowered variables."""
    if "lowered_variables" not in profile.tables:
        pytest.skip("this sample is the one without lowered variables")
    return profile


@pytest.fixture
def executed_profile(profile: Profile) -> Profile:
    """Only reports that recorded execution steps."""
    if not profile.value("SELECT count(*) FROM execution_steps"):
        pytest.skip("this sample recorded no steps")
    return profile
