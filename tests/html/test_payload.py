"""What a page holds of a report, and what it says of what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pvanalyse
from pvanalyse.errors import UnreadableFile, UsageError
from pvanalyse.html.limits import Limits
from pvanalyse.html.payload import SECTIONS, payload
from pvanalyse.html.sections.execution import _coarser
from tests.conftest import SAMPLES
from tests.html.test_pack import unpacked
from tests.oracle.execution_reports import make_execution_report
from tests.oracle.memory_reports import make_memory_report
from tests.oracle.reports import make_report


def sections(report: pvanalyse.Report, **limits: int) -> dict[str, Any]:
    return unpacked(payload(report, "name", Limits(**limits), "binary"))["sections"]


@pytest.fixture(scope="module")
def report() -> pvanalyse.Report:
    return pvanalyse.open_report(SAMPLES / "pipelined" / "training")


@pytest.fixture(scope="module")
def whole(report: pvanalyse.Report) -> dict[str, Any]:
    return sections(report, tiles=1000)


@pytest.fixture(scope="module")
def reduced(report: pvanalyse.Report) -> dict[str, Any]:
    return sections(report, memory_cells=600, tiles=6, allocations=10, steps=40, lifetimes=30, programs=50,
                    intervals=800, blocks=200, rows=5)  # fmt: skip


def test_a_small_report_is_there_whole(whole: dict[str, Any], report: pvanalyse.Report) -> None:
    assert whole.keys() == SECTIONS.keys()
    assert [section for section in whole.values() if "missing" in section] == []
    assert [sentence for section in whole.values() for sentence in section["leftOut"]] == []
    assert whole["memory"]["total"] == report.memory.by_tile()["total_including_gaps"].tolist()
    assert whole["liveness"]["bytes"] == report.liveness.curve()["bytes"].tolist()
    assert len(whole["tiles"]["maps"]) == report.count("tile_memory")
    assert whole["programs"]["length"] == len(report.programs.tree())


def test_the_layers_of_a_tile_add_up_to_what_it_holds(whole: dict[str, Any], reduced: dict[str, Any]) -> None:
    for made in (whole["memory"], reduced["memory"]):
        heights = np.sum([layer["bytes"] for layer in made["layers"]["category"]], axis=0)
        assert heights.tolist() == made["total"]


def test_a_timeline_has_every_step_that_took_time(whole: dict[str, Any], report: pvanalyse.Report) -> None:
    # GIVEN the executed steps, as the report has them
    steps = report.execution.steps()
    steps = steps[steps["end"] > steps["begin"]]
    for lane in whole["timeline"]["ipus"]:
        mine = steps[steps["ipu"] == lane["ipu"]]
        # THEN the blocks of the IPU are made of all of them, and reach from the first to the last
        assert sum(lane["steps"]) == len(mine)
        begin = np.array(lane["begin"]) + whole["timeline"]["begin"]
        assert (begin.min(), (begin + lane["length"]).max()) == (mine["begin"].min(), mine["end"].max())


def test_what_is_left_out_is_said(reduced: dict[str, Any], whole: dict[str, Any], report: pvanalyse.Report) -> None:
    said = {name: " ".join(section["leftOut"]) for name, section in reduced.items()}
    assert "smaller ones are shown together" in said["memory"]
    assert "6 of 128 tiles" in said["tiles"]
    assert "the 10 largest of" in said["tiles"]
    steps = report.count("liveness_steps")
    assert f"Of {steps} steps" in said["liveness"]
    assert "Only the 30 largest of" in said["liveness"]
    assert f"of {whole['programs']['length']} rows of the tree" in said["programs"]
    assert f"the first 800 of {len(report.execution.steps()):,} executed steps" in said["timeline"]
    assert "neighbours of fewer than" in said["timeline"]
    assert "Only the 5 largest of" in said["operations"]


def test_a_reduced_report_keeps_what_stands_out(reduced: dict[str, Any], report: pvanalyse.Report) -> None:
    # GIVEN a report of which little is kept
    metrics = report.metrics()
    liveness = reduced["liveness"]
    # THEN the peak is among the steps, which are not too many, and rise
    assert len(liveness["step"]) <= 40
    assert liveness["step"] == sorted(set(liveness["step"]))
    at = liveness["bytes"].index(metrics["liveness.peak_not_always_live"])
    assert liveness["step"][at] == metrics["liveness.peak_step"]
    # and the largest variables, and the fullest tile, and the top of the tree
    largest = report.liveness.lifetimes()["bytes"].nlargest(30).tolist()
    assert sorted(liveness["intervals"]["bytes"], reverse=True) == largest
    assert str(report.memory.by_tile()["total_including_gaps"].idxmax()) in reduced["tiles"]["maps"]
    assert reduced["programs"]["length"] <= 50
    assert reduced["programs"]["depth"].count(0) == report.programs.tree()["depth"].eq(0).sum()
    assert sum(len(lane["begin"]) for lane in reduced["timeline"]["ipus"]) <= 200


def test_short_neighbours_become_one_block_and_nothing_gets_lost() -> None:
    # GIVEN blocks: short ones in a row, a long one, and a short one far away
    begin = [0, 2, 4, 6, 100, 400]
    end = [1, 3, 5, 7, 300, 401]
    frame = pd.DataFrame({"begin": begin, "end": end, "depth": 0, "type": "t", "name": "n", "kind": 0, "steps": 1})
    # WHEN what is shorter than 10 cycles is put together
    coarse = _coarser(frame, 10)
    # THEN the row is one block from its first cycle to its last
    assert coarse[["begin", "end", "steps"]].to_numpy().tolist() == [[0, 7, 4], [100, 300, 1], [400, 401, 1]]
    assert coarse["name"].tolist() == ["4 short blocks", "n", "n"]


def test_blocks_of_other_depths_stay_apart() -> None:
    frame = pd.DataFrame(
        {
            "begin": [0, 1, 0, 1],
            "end": [1, 2, 1, 2],
            "depth": [0, 0, 1, 1],
            "type": "t",
            "name": "n",
            "kind": 0,
            "steps": 1,
        }
    )
    assert _coarser(frame, 100)["depth"].tolist() == [0, 1]


def test_tiles_that_are_asked_for_are_there_too(report: pvanalyse.Report) -> None:
    made = unpacked(payload(report, "", Limits(tiles=3), "binary", tiles="50-52"))["sections"]["tiles"]
    assert {"50", "51", "52"} <= made["maps"].keys()
    assert len(made["maps"]) <= 6
    with pytest.raises(UsageError, match="tile 5,?000"):
        payload(report, "", Limits(), "binary", tiles=[5000])


def test_what_was_not_captured_says_how_to_capture_it(make_profile: Callable[..., Path]) -> None:
    # GIVEN an empty profile
    path = make_profile({"report_info": [("layout", "pvanalyse-1")]})
    with pvanalyse.open_report(path) as report:
        made = sections(report)
    # THEN every section but the summary and the insights says what is missing
    missing = {name: section["missing"] for name, section in made.items() if "missing" in section}
    assert missing.keys() == SECTIONS.keys() - {"summary", "insights"}
    assert all("was not captured in this report; to capture it:" in sentence for sentence in missing.values())


def test_a_cache_alone_gives_a_timeline(real_cache: Path) -> None:
    with pvanalyse.open_report(real_cache) as report:
        made = sections(report)
        steps = report.execution.steps()
    assert sum(len(lane["begin"]) for lane in made["timeline"]["ipus"]) > 0
    assert {lane["ipu"] for lane in made["timeline"]["ipus"]} == set(steps["ipu"])
    assert "missing" in made["memory"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [make_report, make_memory_report, make_execution_report])
def test_any_report_can_be_put_into_a_page(make: Callable[..., Path], seed: int, tmp_path: Path) -> None:
    # GIVEN a report of random contents, with tables and values missing
    path = make(tmp_path / "report", seed)
    # WHEN it is put into a page whole, and with next to no room, THEN the memory that is shown is the report's
    with pvanalyse.open_report(path) as report:
        expected = report.metrics().get("memory.total_including_gaps")
        for made in (sections(report), sections(report, **dict.fromkeys(Limits.__slots__, 3))):
            assert made.keys() == SECTIONS.keys()
            assert sum(made["memory"].get("total", [])) == (expected or 0)
            for section in made.values():
                assert ("missing" in section) != ("leftOut" in section)


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "profile.pop").write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    with pvanalyse.open_report(tmp_path) as report, pytest.raises(UnreadableFile):
        payload(report, "", Limits(), "binary")
