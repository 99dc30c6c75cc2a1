"""Attribute by attribute against the reference list: what is known is answered, and what is not known is not."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import pvanalyse
from pvanalyse import libpva as pva
from tests.libpva.reference import ENUMERATIONS, ROWS
from tests.libpva.reports import sample

ANSWERED = ("D", "U", "C++", "L")  # of the rows L, those whose spelling is doubtful stand as H in the table


@cache
def owners() -> dict[str, Any]:
    """An object of each kind, of reports that have everything between them."""
    report = pva.openReport(str(sample("replicated") / "profile.pop"), str(sample("replicated") / "debug.cbor"))
    blocks = pva.openReport(sample("lightweight") / "profile.pop").execution.blocks(0)
    compilation, execution = report.compilation, report.execution
    tile = next(tile for tile in compilation.tiles if len(tile.memory.vertices))
    peak = max(compilation.livenessProgramSteps, key=lambda step: step.notAlwaysLiveMemory.bytes)
    programs = {program.type.name: program for program in compilation.programs}
    brief = next(one for one in compilation.loweredVariables.allBriefVars if one.equivalenceClass.steps)
    step = next(step for step in execution.steps if step.computeSets)
    analysis = pva.OperationAnalysis(report)
    context = analysis.operations[0].debugContext
    found = [
        report, report.poplarVersion, report.version, report.instrumentationSettings, compilation, compilation.target,
        compilation.graph, tile, compilation.ipus[0], tile.memory, tile.memory.total, tile.memory.vertices[0],
        tile.memory.vertices[0].type, compilation.computeSets[0], compilation.computeSets[0].vertices[0], peak,
        peak.notAlwaysLiveMemory, compilation.loweredVariables, brief, brief.equivalenceClass,
        brief.equivalenceClass.steps[0], compilation.loweredVariables.forTile(brief.tileId)[0], execution,
        execution.totalCycles, execution.runs[0], execution.runs[0].microseconds, step, step.computeSets[0],
        step.ipus[0], step.ipus[0].activeCycles, step.ipus[0].activeCycles.cyclesFrom, blocks[0], analysis,
        analysis.operations[0], context, context.location, pva.ProgramVisitor(),
    ]  # fmt: skip
    return {type(one).__name__: one for one in found} | {
        "pva": pva,
        "pva.pva_core": pva.pva_core,
        "Program": programs["Sequence"],
        "DoExchange": programs["DoExchange"],
        "OnTileExecute": programs["OnTileExecute"],
        "AlwaysLiveVariable": compilation.alwaysLiveVariables[0],
        "LiveVariable": peak.notAlwaysLiveMemory.variables[0],
        "Categories": tile.memory.category,
        "Category": tile.memory.category.vertexCode,
        "Region": tile.memory.category.vertexCode.nonInterleaved,
        "tiles": compilation.tiles,
    }


def rows(*grades: str) -> list[Any]:
    return [pytest.param(owner, name, id=f"{owner}.{name}") for owner, name, grade in ROWS if grade in grades]


def test_the_list_has_no_row_twice_and_only_known_grades() -> None:
    assert len({row[:2] for row in ROWS}) == len(ROWS)
    assert {grade for _, _, grade in ROWS} == {*ANSWERED, "H", "X"}


@pytest.mark.parametrize(("owner", "name"), rows(*ANSWERED))
def test_what_is_known_is_answered(owner: str, name: str) -> None:
    value = getattr(owners()[owner], name)
    # What a report holds is read-only, as properties of libpva are.
    if owner not in ("pva", "pva.pva_core", "ProgramVisitor"):
        with pytest.raises(AttributeError):
            setattr(owners()[owner], name, value)


@pytest.mark.parametrize(("owner", "name"), rows("H"))
def test_what_is_a_guess_is_refused_with_a_sentence(owner: str, name: str) -> None:
    with pytest.raises(AttributeError, match=r"not known|is known"):
        getattr(owners()[owner], name)


@pytest.mark.parametrize(("owner", "name"), rows("X"))
def test_what_does_not_exist_does_not_exist(owner: str, name: str) -> None:
    assert not hasattr(owners()[owner], name)


def test_what_only_some_programs_have_the_others_have_not() -> None:
    for owner in ("Program", "OnTileExecute"):
        assert not hasattr(owners()[owner], "codeBytesByTile")
        assert not hasattr(owners()[owner], "estimatedCyclesByTile")
    assert not hasattr(owners()["Program"], "computeset")


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_enumerations(name: str) -> None:
    owner, _, own = name.partition(".")
    enumeration = getattr(getattr(pva, owner), own)
    members = {member.name: member.value for member in enumeration.__members__.values()}
    expected = ENUMERATIONS[name]
    if isinstance(expected, dict):
        assert members == expected
    else:
        assert set(expected) <= set(members)
    assert list(enumeration.__members__) == list(members)
    assert len(set(members.values())) == len(members)
    for member in enumeration.__members__.values():
        assert int(member) == member.value
        assert enumeration(member.value) is member
        assert {member: 1}[member] == 1
        assert enumeration[member.name] == member != object()


def test_members_of_the_settings_are_on_their_class_too() -> None:
    settings = pva.InstrumentationSettings
    assert settings.Device is settings.ComputeInstrumentationLevel.Device
    assert settings.Vertex is settings.ComputeInstrumentationLevel.Vertex
    assert settings.Off is settings.ExternalExchangeInstrumentationLevel.Off


def test_there_is_a_visit_for_every_type() -> None:
    for name in pva.Program.Type.__members__:
        assert getattr(pva.ProgramVisitor(), f"visit{name}")(None) is None


def test_host_traces_are_refused() -> None:
    with pytest.raises(pvanalyse.UsageError, match="pvti"):
        pva.openTrace("run.pvti")
    with pytest.raises(pvanalyse.UsageError, match="pvti"):
        pva.Event()


def test_annotations_that_public_programs_use() -> None:
    def annotated(report: pva.Report) -> list[pva.pva_core.ExecutionStep]:
        return list(report.execution.steps)

    assert isinstance(annotated(owners()["Report"])[0], pva.ExecutionStep)
    assert isinstance(owners()["Report"], pva.Report)
    assert pva.pva_core.Program.Type is pva.Program.Type
