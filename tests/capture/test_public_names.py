"""Only names that are public are asked for; what is graded less is used when it is there, and else listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pvanalyse import libpva
from pvanalyse.capture import capture_report
from pvanalyse.capture.not_told import GUARDED, NEVER_TOLD
from pvanalyse.tables import PROFILE
from tests.capture.canonical import Canonical
from tests.capture.strict import GRADES, SPECIAL, strict_pva
from tests.libpva.reports import Raw, sample

CPP_ONLY = {
    *("tile_memory_category", "lowered_variables", "execution_steps", "execution_blocks", "graph"),
}
"""Tables that need names which only C++ programs show."""


def graded(owner: str, name: str) -> str | None:
    owners = [owner, *(SPECIAL.values() if owner == "Program" else ())]
    return next((GRADES[one, name] for one in owners if (one, name) in GRADES), None)


@pytest.mark.parametrize("name", ["lightweight", "replicated", "no_lowered_variables"])
def test_nothing_else_is_asked_for(name: str, tmp_path: Path) -> None:
    report = sample(name)
    # GIVEN a pva with every name but those that are guesses or not known
    asked: set[tuple[str, str]] = set()
    captured = capture_report(report / PROFILE, tmp_path / "captured", strict_pva("D U C++ L", asked))
    # THEN no guess was asked for, and everything is captured; categories are an open set, looked for by dir
    asked = {one for one in asked if one[0] != "Categories"}
    assert {one: graded(*one) for one in asked if graded(*one) not in ("D", "U", "C++", "L")} == {}
    assert {one for one in asked if graded(*one) == "L"} == {("Region", "overlapped")}
    assert Canonical(tmp_path / "captured").tables() == Canonical(report).tables()
    assert captured.without[: len(NEVER_TOLD)] == NEVER_TOLD


def test_without_names_of_cpp_the_rest_is_there_and_they_are_listed(tmp_path: Path) -> None:
    # GIVEN a pva with nothing but what is documented or seen in Python programs
    report = sample("replicated")
    captured = capture_report(report / PROFILE, tmp_path / "captured", strict_pva("D U", set()))
    # THEN tables that need no more are equal
    expected, found = Canonical(report).tables(), Canonical(tmp_path / "captured").tables()
    assert {name for name in expected if found[name] != expected[name]} <= CPP_ONLY
    # AND what was not there is listed with what it fills
    listed = {(one.table, one.columns) for one in captured.without[len(NEVER_TOLD) :]}
    assert listed == {
        GUARDED["Graph.numVertices"], GUARDED["CategoryMemory.regions"], GUARDED["LoweredVariable.alwaysLive"],
        GUARDED["IPUExecutionStep.allCycles"], GUARDED["ExecutionReport.blocks"],
    }  # fmt: skip
    # AND null: categories are in a region that is not known
    raw = Canonical(tmp_path / "captured").raw
    assert {row["num_vertices"] for row in raw["graph"]} == {None}
    assert {row["always_live"] for row in raw["lowered_variables"]} == {None}
    assert {row["all_to_max"] for row in raw["execution_step_ipus"]} == {None}
    totals = {(tile, name): sum(sizes[0] for (at, category, _), sizes in expected["tile_memory_category"].items()
                                if (at, category) == (tile, name))
              for tile, name, _ in expected["tile_memory_category"]}  # fmt: skip
    rows = {(row["tile"], row["category"]): (row["region"], row["non_overlapped"], row["overlapped"])
            for row in raw["tile_memory_category"]}  # fmt: skip
    assert rows == {key: ("unknown", total, None) for key, total in totals.items() if total}


@pytest.mark.parametrize("name", ["loweredVariables", "programs", "computeSets", "tiles", "livenessProgramSteps"])
def test_a_part_that_is_not_there_is_left_out_and_listed(name: str, tmp_path: Path) -> None:
    # GIVEN a pva of another version, without one of the names
    report, asked = sample("replicated"), set()
    module = strict_pva("D U C++ L", asked)
    opened = module.openReport

    def without(path: str) -> object:
        made = opened(path)
        compilation = made.compilation

        class Older:
            def __getattr__(self, wanted: str) -> object:
                if wanted == name:
                    raise AttributeError(f"CompilationReport has no {wanted}")
                return getattr(compilation, wanted)

        made.compilation = Older()
        return made

    module.openReport = without
    # WHEN it is captured
    captured = capture_report(report / PROFILE, tmp_path / "captured", module)
    # THEN its tables are missing and listed, and the others equal as far as they do not need it
    gone = {one.table for one in captured.without if "left out" in one.meaning}
    needs = {
        "loweredVariables": {"equivalence_class_intervals", "lowered_variables", "variables"},
        "programs": {"programs", "program_children", "program_lowered_variables"},
        "computeSets": {"compute_sets", "compute_set_vertices"},
        "tiles": {"tile_memory", "tile_memory_category", "tile_vertices"},
        "livenessProgramSteps": {"liveness_steps", "variable_liveness"},
    }[name]
    assert gone == needs
    assert gone & set(captured.tables) == set()
    indirectly = {
        "loweredVariables": {"program_lowered_variables", "always_live_variables", "variable_liveness"},
        "programs": {"execution_blocks"},
        "computeSets": {"programs"},
        "livenessProgramSteps": {"lowered_variables"},
        "tiles": set(),
    }[name]
    expected, found = Canonical(report).tables(), Canonical(tmp_path / "captured").tables()
    assert {table for table in expected if found[table] != expected[table]} <= gone | indirectly


def test_steps_of_no_run_are_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a pva that knows no runs
    report = sample("replicated")
    monkeypatch.setattr(libpva.pva_core.ExecutionReport, "runs", [])
    # THEN the steps are there, in no run
    captured = capture_report(report / PROFILE, tmp_path, libpva)
    expected, found = Raw(report)["execution_steps"], Raw(tmp_path)["execution_steps"]
    assert [(row["program_id"], row["run_id"]) for row in found] == [(row["program_id"], None) for row in expected]
    assert captured.remarks == ()


def test_what_has_no_place_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a pva that has lists of another length than there are tiles, numbers that are too large, a variable on no
    # tile, and steps that belong to no run
    report, core = sample("replicated"), libpva.pva_core
    runs, brief = core.ExecutionReport.runs, core.LoweredVariables.allBriefVars
    monkeypatch.setattr(core.Program, "controlCodeByTile", [1, 2, 3])
    monkeypatch.setattr(core.ComputeSet, "estimatedCyclesByTile", [2**32] * 192)
    monkeypatch.setattr(core.ExecutionReport, "runs", property(lambda self: runs.fget(self)[:1]))
    more = core.BriefVariable(10**6, 4, 0, brief.fget(libpva.openReport(report).compilation.loweredVariables)[0][3])
    monkeypatch.setattr(core.LoweredVariables, "allBriefVars", property(lambda self: [*brief.fget(self), more]))
    # WHEN it is captured
    captured = capture_report(report / PROFILE, tmp_path, libpva)
    # THEN that is null, and said
    misfits = {(one.table, one.columns): one.meaning for one in captured.without[len(NEVER_TOLD) :]}
    assert misfits.keys() == {("programs", ("control_code_by_tile",)), ("compute_sets", ("estimated_cycles_by_tile",))}
    assert misfits["programs", ("control_code_by_tile",)].startswith("in 213 rows ")
    raw = Raw(tmp_path)
    assert {row["control_code_by_tile"] for row in raw["programs"]} == {None}
    assert {row["estimated_cycles_by_tile"] for row in raw["compute_sets"]} == {None}
    others = sum(row["run_id"] != 0 for row in Raw(report)["execution_steps"])
    assert captured.remarks == (
        "1 of the variables in allBriefVars are on no tile, and left out",
        f"{others:,} executed steps belong to no run, and are left out",
    )
