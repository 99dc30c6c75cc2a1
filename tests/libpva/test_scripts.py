"""Scripts in the idioms of public ones, run as people run them; their numbers are pvanalyse's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pvanalyse
from tests.conftest import ROOT
from tests.libpva.reports import SAMPLE_REPORTS, WITH_LOWERED, Raw

SCRIPTS = Path(__file__).parent / "scripts"


def run(script: str, *arguments: Any, cwd: Path = ROOT) -> str:
    command = [sys.executable, "-W", "error", "-m", "pvanalyse.libpva", SCRIPTS / script, *arguments]
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("directory", SAMPLE_REPORTS, ids=lambda path: path.name)
def test_memory(directory: Path, tmp_path: Path) -> None:
    run("memory_helper.py", "--profile", directory / "profile.pop", "--out", "found.json", cwd=tmp_path)
    found = json.loads((tmp_path / "found.json").read_text())
    with pvanalyse.open_report(directory) as report:
        metrics = report.metrics()
    if directory.name == "no_lowered_variables":
        assert found.pop("variables.num_lowered") == 0
        assert "variables.num_lowered" not in metrics
    assert found == {name: metrics[name] for name in found}


@pytest.mark.parametrize(
    "directory",
    [path for path in SAMPLE_REPORTS if path.name not in ("lightweight", "out_of_memory")],
    ids=lambda path: path.name,
)
def test_cycles(directory: Path) -> None:
    found = json.loads(run("cycles_helper.py", directory / "profile.pop"))
    with pvanalyse.open_report(directory) as report:
        metrics = report.metrics()
    assert found == {name: pytest.approx(metrics[name], rel=1e-12) for name in found}


@pytest.mark.parametrize("directory", WITH_LOWERED[:2] + WITH_LOWERED[-1:], ids=lambda path: path.name)
def test_pipeline_splitter(directory: Path) -> None:
    with pvanalyse.open_report(directory) as report:
        debug_info = report.files.debug_info
        live = report.liveness.tile_peaks()
        groups_programs = report.table("programs", ["program_id", "debug_context_id"])
    found = json.loads(run("pipeline_splitter.py", directory / "profile.pop", debug_info))
    raw = Raw(directory)
    always = {row["tile"]: 0 for row in raw["tile_memory"]}
    for row in raw["lowered_variables"]:
        always[row["tile"]] += row["bytes"] * row["always_live"]
    assert found["peaks"] == [peak + always[tile] for tile, peak in zip(live["tile"], live["peak_bytes"], strict=True)]
    names = {row["vertex_type_id"]: row["name"] for row in raw["vertex_types"]}
    code = dict.fromkeys(sorted({names[row["vertex_type_id"]] for row in raw["tile_vertices"]}), 0)
    for row in raw["tile_vertices"]:
        code[names[row["vertex_type_id"]]] += row["code_bytes"]
    assert found["code"] == code
    parents = {row["program_id"] for row in raw["program_children"]}
    mine = [row for row in raw["programs"] if row["program_id"] in set(found["programs"])]
    assert len(mine) == len(found["programs"]) > 0
    assert set(found["programs"]) <= set(groups_programs["program_id"])
    assert found["control"] == sum(
        sum(raw.per_tile(row["control_code_by_tile"])) for row in mine if row["program_id"] not in parents
    )
    assert found["exchange"] == sum(
        sum(raw.per_tile(row["code_bytes_by_tile"])) for row in mine if row["type"] == "DoExchange"
    )
    ids = set(found["programs"])
    used = {row["lowered_variable_id"] for row in raw["program_lowered_variables"] if row["program_id"] in ids}
    assert found["used"] == len(used)
