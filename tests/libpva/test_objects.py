"""How the objects behave: sequences, equality, visitors, text, what is missing, and what no report can hold."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pvanalyse
from pvanalyse import libpva as pva
from tests.libpva.reports import sample

TARGET = ("Ipu", "Ipu2", 2, 1, 4, 8, 638976, 1.33e9, None, None, None)


@pytest.fixture
def report() -> pva.Report:
    return pva.openReport(sample("replicated") / "profile.pop")


def sequences(report: pva.Report) -> dict[str, Any]:
    compilation = report.compilation
    return {
        "tiles": compilation.tiles,
        "ipus": compilation.ipus,
        "tiles of an IPU": compilation.ipus[1].tiles,
        "vertices": compilation.tiles[5].memory.vertices,
        "compute sets": compilation.computeSets,
        "programs": compilation.programs,
        "children": compilation.programs[0].children,
        "vars": next(program.vars for program in compilation.programs if len(program.vars)),
        "liveness": compilation.livenessProgramSteps,
        "always live": compilation.alwaysLiveVariables,
        "brief": compilation.loweredVariables.allBriefVars,
        "of a tile": compilation.loweredVariables.forTile(3),
        "runs": report.execution.runs,
        "steps": report.execution.steps,
        "steps of a run": report.execution.runs[-1].steps,
        "ipus of a step": report.execution.steps[0].ipus,
        "operations": pva.OperationAnalysis(report).operations,
    }


@pytest.mark.parametrize("name", sequences(pva.openReport(sample("replicated"))))
def test_sequences(report: pva.Report, name: str) -> None:
    # GIVEN a sequence, THEN its size, its iteration, its items and its slices say the same
    sequence = sequences(report)[name]
    items = list(sequence)
    number = len(sequence)
    assert len(items) == number > 0
    assert [sequence[at] for at in range(number)] == items
    assert [sequence[at - number] for at in range(number)] == items
    for part in (slice(2), slice(1, None), slice(None, None, -1), slice(-3, None, 2), slice(5, 2), slice(number, None)):
        assert sequence[part] == items[part]
    for outside in (number, -number - 1, 10**20):
        with pytest.raises(IndexError):
            sequence[outside]
    with pytest.raises(TypeError):
        sequence["0"]
    # AND it can be walked twice at a time
    assert [(one, other) for one, other in zip(sequence, sequence, strict=True)] == list(zip(items, items, strict=True))
    assert items[0] in sequence


def test_equality_and_keys(report: pva.Report) -> None:
    compilation = report.compilation
    # The same thing is equal and has one place in a dict, however it was reached.
    step = compilation.livenessProgramSteps[10]
    program = next(one for one in compilation.programs if one._id == step.program._id)
    assert {step.program: 1}[program] == 1
    assert len(set(compilation.programs)) == len(compilation.programs)
    assert compilation.tiles[7] == compilation.ipus[0].tiles[7] != compilation.tiles[8]
    assert compilation.tiles[7].memory != compilation.tiles[7]
    # A lowered variable's own is the variable of the liveness.
    worst = max(compilation.livenessProgramSteps, key=lambda one: one.notAlwaysLiveMemory.bytes)
    tile = max(range(96), key=lambda one: worst.notAlwaysLiveMemoryForTile(one).bytes)
    live = {one: one.size for one in worst.notAlwaysLiveMemoryForTile(tile).variables}
    lowered = [one for one in compilation.loweredVariables.forTile(tile) if one.hasUnloweredVar]
    sums = dict.fromkeys(live, 0)
    for one in lowered:
        if one.unloweredVar in live and not one.alwaysLive:
            sums[one.unloweredVar] += one.bytes
    known = {one.unloweredVar for one in lowered}
    assert any(one in known for one in live)
    assert {one: size for one, size in sums.items() if one in known} == {
        one: size for one, size in live.items() if one in known
    }
    # Things of different reports differ.
    other = pva.openReport(sample("replicated")).compilation
    assert other.programs[0] != compilation.programs[0]
    assert other.tiles[0] != compilation.tiles[0]


def test_visitor(report: pva.Report) -> None:
    class Visitor(pva.ProgramVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[tuple[str, int]] = []

        def visitSequence(self, program: Any) -> None:  # noqa: N802
            self.seen.append(("Sequence", program._id))

        def visitOnTileExecute(self, program: Any) -> None:  # noqa: N802
            self.seen.append((program.computeset.name, program._id))

    visitor = Visitor()
    for program in report.compilation.programs:
        program.accept(visitor)
    # Each program is visited itself, and its children are not.
    expected = [one for one in report.compilation.programs if one.type.name in ("Sequence", "OnTileExecute")]
    assert [identity for _, identity in visitor.seen] == [one._id for one in expected]
    assert {name for name, _ in visitor.seen} > {"Sequence"}


def test_repr_and_its_length(report: pva.Report) -> None:
    runs = report.execution.runs
    assert repr(runs).count("Run(") == min(10, len(runs))
    report.listPrintLength(2)
    tiles = report.compilation.tiles
    assert repr(tiles) == f"[Tile(), Tile(), … and {len(tiles) - 2} more]"
    assert repr(tiles[:1]) == "[Tile()]"
    assert repr(report.compilation.loweredVariables.allBriefVars).startswith("[BriefVariable(id=0, bytes=")
    report.listPrintLength(0)
    assert repr(tiles) == f"[… and {len(tiles)} more]"
    target = repr(report.compilation.target)
    assert target.startswith("Target(architecture=<Architecture.Ipu2: 2>, bytesPerIPU=")
    assert "numIPUs=4" in target
    assert "total=GapBytes(includingGaps=" in repr(tiles[0].memory)
    assert "vertexCode=" in repr(tiles[0].memory.category)
    # Every object has a text, and none is long or fails.
    for name, sequence in sequences(report).items():
        assert 0 < len(repr(sequence[0])) < 2000, name


def test_objects_keep_their_report_open() -> None:
    # GIVEN an object whose report nobody holds, WHEN the rest is collected, THEN it still answers
    tile = pva.openReport(sample("replicated")).compilation.tiles[3]
    gc.collect()
    assert tile.memory.total.includingGaps > 0


def test_plain_values_are_python_s_own(report: pva.Report) -> None:
    tile, step = report.compilation.tiles[3], report.execution.steps[3]
    brief = next(iter(report.compilation.loweredVariables.allBriefVars))
    numbers = [
        *(tile.memory.total.includingGaps, tile.memory.alwaysLiveBytes, tile.memory.category.vertexCode.total),
        *(step.ipus[0].cycles, step.ipus[0].activeCycles.cyclesFrom.min, brief.id, brief.bytes, brief.tileId),
        *(brief.equivalenceClass.id, brief.equivalenceClass.steps[0].start, step.program._id),
        *report.compilation.programs[0].controlCodeByTile[:2],
        tile.memory.category.vertexCode.nonInterleaved.nonOverlapped,
        report.compilation.livenessProgramSteps[9].notAlwaysLiveMemory.bytes,
        report.compilation.livenessProgramSteps[9].notAlwaysLiveMemoryForTile(1).bytes,
        report.compilation.alwaysLiveVariablesForTile(1)[0].size,
    ]
    assert {type(one) for one in numbers} == {int}
    assert type(step.ipus[0].tileBalance) is float


# ----------------------------------------------------------------------------------------------------- what is missing
def test_lists_of_what_was_not_recorded_are_empty(make_profile: Callable[..., Path]) -> None:
    report = pva.openReport(make_profile({"report_info": [("layout", "pvanalyse-1")], "target": [TARGET]}))
    compilation, execution = report.compilation, report.execution
    lists = [
        *(compilation.tiles, compilation.computeSets, compilation.programs, compilation.livenessProgramSteps),
        *(compilation.alwaysLiveVariables, compilation.loweredVariables.allBriefVars),
        *(compilation.loweredVariables.forTile(1), execution.runs, execution.steps, execution.blocks(0)),
        compilation.ipus[0].tiles,
    ]
    assert [len(one) for one in lists] == [0] * len(lists)
    assert [list(one) for one in lists] == [[]] * len(lists)
    assert execution.totalCycles.total == 0
    assert len(compilation.ipus) == 2
    assert report.instrumentationSettings.compute.name == "Unknown"


def test_answers_that_would_be_wrong_are_refused(make_profile: Callable[..., Path]) -> None:
    rows = {"target": [TARGET], "liveness_steps": [(0, 1, 64)]}
    report = pva.openReport(make_profile(rows, drop=["lowered_variables", "graph"]))
    step = report.compilation.livenessProgramSteps[0]
    assert step.notAlwaysLiveMemory.bytes == 64
    assert (step.program._id, step.program.name, step.program.type.name) == (1, "", "Unknown")
    assert list(step.program.children) == list(step.program.vars) == []
    assert step.program.controlCodeByTile == [0] * 8
    for ask, what in (
        (lambda: step.notAlwaysLiveMemoryForTile(0), "lowered_variables"),
        (lambda: step.notAlwaysLiveMemoryForIpu(0), "lowered_variables"),
        (lambda: report.compilation.alwaysLiveVariablesForTile(0), "lowered_variables"),
        (lambda: step.notAlwaysLiveMemory.variables, "variable_liveness"),
        (lambda: report.compilation.graph.numVertices, "graph"),
        (lambda: report.poplarVersion.string, "poplar_version"),
        (lambda: pva.OperationAnalysis(report), "debug_contexts"),
    ):
        with pytest.raises(pvanalyse.NotCaptured, match=what):
            ask()


def test_what_is_not_there_is_an_index_error(report: pva.Report) -> None:
    step = report.compilation.livenessProgramSteps[0]
    number = len(report.compilation.tiles)
    for tile in (-1, number, 10**9):
        for ask in (step.notAlwaysLiveMemoryForTile, report.compilation.alwaysLiveVariablesForTile,
                    report.compilation.loweredVariables.forTile):  # fmt: skip
            with pytest.raises(IndexError, match=f"there is no tile {tile}; the report has tiles 0 to {number - 1}"):
                ask(tile)
    with pytest.raises(IndexError, match="there is no IPU 4; the report has IPUs 0 to 3"):
        step.notAlwaysLiveMemoryForIpu(4)


# -------------------------------------------------------------------------------------------------- what cannot be read
@pytest.mark.parametrize("kind", ["missing", "empty", "text", "fifo", "directory", "cut"])
def test_files_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.pop"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind != "missing":
        whole = (sample("replicated") / "profile.pop").read_bytes()
        path.write_bytes({"empty": b"", "text": b"not a profile at all", "cut": whole[: len(whole) // 2]}[kind])
    with pytest.raises((pvanalyse.UnreadableFile, pvanalyse.ReportNotFound)) as caught:
        pva.openReport(path)
    assert "profile.pop" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_ways_to_name_the_files(tmp_path: Path) -> None:
    profile = sample("replicated") / "profile.pop"
    debug = sample("replicated") / "debug.cbor"
    for report in (
        pva.openReport(str(profile)),
        pva.openReport(filename=profile),
        pva.openReport(profile, debug),
        pva.openReport(profileFilename=str(profile), debugInfoFilename=str(debug)),
    ):
        assert len(pva.OperationAnalysis(report).operations) == 32
    with pytest.raises(TypeError, match=r"profile\.pop"):
        pva.openReport()
    with pytest.raises(pvanalyse.UnreadableFile, match=r"elsewhere\.cbor"):
        pva.openReport(profile, tmp_path / "elsewhere.cbor")


def test_one_ipu_needs_no_lowered_variables(make_profile: Callable[..., Path]) -> None:
    target = (*TARGET[:2], 1, 1, 8, 8, *TARGET[6:])
    rows = {"target": [target], "liveness_steps": [(0, 1, 64)], "variable_liveness": [(3, "v", 0, 1, 64)]}
    step = pva.openReport(make_profile(rows)).compilation.livenessProgramSteps[0]
    memory = step.notAlwaysLiveMemoryForIpu(0)
    assert (memory.bytes, [(one.name, one.size) for one in memory.variables]) == (64, [("v", 64)])
    with pytest.raises(pvanalyse.NotCaptured, match="lowered_variables"):
        step.notAlwaysLiveMemoryForIpu(1)


def test_debug_information_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "debug.cbor").write_bytes(b"\xa1")
    report = pva.openReport(sample("replicated") / "profile.pop", tmp_path / "debug.cbor")
    with pytest.raises(pvanalyse.UnreadableFile, match="debug.cbor"):
        pva.OperationAnalysis(report)


HOSTILE: dict[str, tuple[dict[str, Any], Callable[[pva.Report], Any], Any]] = {
    "no replicas": ({"target": [(*TARGET[:3], 0, *TARGET[4:])]}, lambda r: r.compilation.target.ipusPerReplica, 2),
    "no tiles per IPU": ({"target": [(*TARGET[:4], 0, *TARGET[5:])]}, lambda r: len(r.compilation.ipus[0].tiles), 0),
    "a word for a number": (
        {"target": [TARGET], "report_info": [("format_major", "three")]},
        lambda r: r.version.major,
        "'format_major' is not a number",
    ),
    "an IPU beyond belief": (
        {"execution_steps": [(0, 0, 0, None)], "execution_step_ipus": [(0, 2**40, *[1] * 9, 0.5, 0.5, 1, 1)]},
        lambda r: r.execution.steps[0].ipus,
        "it has an IPU 1,099,511,627,776",
    ),
    "a negative IPU": (
        {"execution_steps": [(0, 0, 0, None)], "execution_step_ipus": [(0, -5, *[1] * 9, 0.5, 0.5, 1, 1)]},
        lambda r: len(r.execution.steps[0].ipus),
        0,
    ),
    "tiles beyond belief": (
        {"target": [(*TARGET[:5], 2**60, *TARGET[6:])], "tile_memory": [tuple(range(11))]},
        lambda r: r.compilation.tiles,
        "it says that there are",
    ),
    "a tile that is not there": (
        {"target": [TARGET], "tile_memory": [(2**50, *range(10)), (-3, *range(10)), (7, *range(10, 20))]},
        lambda r: [tile.memory.total.includingGaps for tile in r.compilation.tiles],
        [0] * 7 + [10],
    ),
    "a program above itself": (
        {"target": [TARGET], "programs": [(1, "Sequence", "", *[None] * 6)], "program_children": [(1, 0, 1)]},
        lambda r: r.compilation.programs[0].children[0].children[0]._id,
        1,
    ),
    "steps beyond belief": (
        {"liveness_steps": [(-(2**60), 0, 1), (2**60, 0, 2)],
         "variable_liveness": [(1, "v", -(2**62), 2**62, 3), (2, "w", 2**60, 2**60 + 1, 4)],
         "equivalence_class_intervals": [(1, -(2**62), 2**62)]},
        lambda r: [[one.size for one in step.notAlwaysLiveMemory.variables] for step in
                   r.compilation.livenessProgramSteps],
        [[3], [3, 4]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_contents_that_no_report_has(name: str, make_profile: Callable[..., Path]) -> None:
    rows, ask, expected = HOSTILE[name]
    report = pva.openReport(make_profile(rows))
    if isinstance(expected, str):
        with pytest.raises(pvanalyse.PvanalyseError, match=expected):
            ask(report)
    else:
        assert ask(report) == expected
