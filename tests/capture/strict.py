"""libpva's objects behind objects that have the names of a grade of the reference list, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from pvanalyse import libpva
from tests.libpva.reference import ROWS

# What each attribute is; an owner in brackets is a list of such. Others are numbers, texts and members of enumerations.
KINDS: dict[tuple[str, str], Any] = {
    ("Report", "compilation"): "CompilationReport",
    ("Report", "execution"): "ExecutionReport",
    ("Report", "poplarVersion"): "PoplarVersion",
    ("Report", "version"): "ProfileReportVersion",
    ("Report", "instrumentationSettings"): "InstrumentationSettings",
    ("CompilationReport", "target"): "Target",
    ("CompilationReport", "graph"): "Graph",
    ("CompilationReport", "tiles"): ["Tile"],
    ("CompilationReport", "computeSets"): ["ComputeSet"],
    ("CompilationReport", "programs"): ["Program"],
    ("CompilationReport", "livenessProgramSteps"): ["LivenessProgramStep"],
    ("CompilationReport", "alwaysLiveVariables"): ["LiveVariable"],
    ("CompilationReport", "loweredVariables"): "LoweredVariables",
    ("Tile", "memory"): "TileMemory",
    ("TileMemory", "total"): "GapBytes",
    ("TileMemory", "overflowed"): "GapBytes",
    ("TileMemory", "vertices"): ["VertexMemory"],
    ("TileMemory", "category"): "Categories",
    ("Category", "nonInterleaved"): "Region",
    ("Category", "interleaved"): "Region",
    ("Category", "overflowed"): "Region",
    ("VertexMemory", "type"): "VertexType",
    ("ComputeSet", "vertices"): ["VertexInstances"],
    ("VertexInstances", "type"): "VertexType",
    ("LivenessProgramStep", "program"): "Program",
    ("LivenessProgramStep", "notAlwaysLiveMemory"): "LiveMemory",
    ("LiveMemory", "variables"): ["LiveVariable"],
    ("LoweredVariables", "allBriefVars"): ["BriefVariable"],
    ("LoweredVariables", "forTile"): ["LoweredVariable"],
    ("BriefVariable", "equivalenceClass"): "EquivalenceClass",
    ("EquivalenceClass", "steps"): ["StepInterval"],
    ("LoweredVariable", "unloweredVar"): "LiveVariable",
    ("Program", "children"): ["Program"],
    ("Program", "vars"): ["LoweredVariable"],
    ("Program", "computeset"): "ComputeSet",
    ("ExecutionReport", "runs"): ["Run"],
    ("ExecutionReport", "steps"): ["ExecutionStep"],
    ("ExecutionReport", "blocks"): ["Block"],
    ("Run", "steps"): ["ExecutionStep"],
    ("Run", "microseconds"): "Microseconds",
    ("ExecutionStep", "program"): "Program",
    ("ExecutionStep", "ipus"): ["IPUExecutionStep"],
    ("IPUExecutionStep", "activeCycles"): "CycleSpan",
    ("IPUExecutionStep", "allCycles"): "CycleSpan",
    ("CycleSpan", "cyclesFrom"): "CycleRange",
    ("CycleSpan", "cyclesTo"): "CycleRange",
    ("Block", "program"): "Program",
}
METHODS = {("LoweredVariables", "forTile"), ("ExecutionReport", "blocks")}
GRADES: dict[tuple[str, str], str] = {("PROGRAM", ""): ""}
for _owner, _name, _grade in ROWS:
    GRADES[_owner, _name] = _grade
SPECIAL = {"OnTileExecute": "OnTileExecute", "DoExchange": "DoExchange"}


class Strict:
    """An object of libpva, with the attributes of some grades."""

    def __init__(self, thing: Any, owner: str, grades: str, asked: set[tuple[str, str]]) -> None:
        self._strict = (thing, owner, grades, asked)

    def __getattr__(self, name: str) -> Any:
        thing, owner, grades, asked = self._strict
        if name == "__dict__" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        grade = GRADES.get((owner, name))
        if owner == "Program" and grade is None and thing.type.name in SPECIAL:
            grade = GRADES.get((thing.type.name, name))
        if owner == "Categories" and hasattr(thing, name):
            grade = grade or "U"  # an open set
        asked.add((owner, name))
        if grade is None or grade not in grades.split():
            raise AttributeError(f"{owner} has no {name}")
        value = getattr(thing, name)
        kind = "Category" if owner == "Categories" else KINDS.get((owner, name))
        if (owner, name) in METHODS:
            return lambda number: wrapped(value(number), kind, grades, asked)
        return wrapped(value, kind, grades, asked)

    def __dir__(self) -> list[str]:
        return dir(self._strict[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strict) and bool(self._strict[0] == other._strict[0])

    def __hash__(self) -> int:
        return hash(self._strict[0])


class StrictList:
    """A list that can be measured, walked, and asked for an item by a number from 0; nothing else."""

    def __init__(self, things: Any, wrap: Callable[[Any], Any]) -> None:
        self._things, self._wrap = things, wrap

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[Any]:
        return map(self._wrap, self._things)

    def __getitem__(self, index: int) -> Any:
        assert type(index) is int
        assert index >= 0
        return self._wrap(self._things[index])


def wrapped(value: Any, kind: Any, grades: str, asked: set[tuple[str, str]]) -> Any:
    if kind is None or value is None:
        return value
    if isinstance(kind, list):
        return StrictList(value, lambda one: wrapped(one, kind[0], grades, asked))
    return Strict(value, kind, grades, asked)


def strict_pva(grades: str, asked: set[tuple[str, str]]) -> Any:
    """Return a module like pva whose objects have only the names of these grades; what is asked for is taken down."""
    return SimpleNamespace(
        __name__="strict", openReport=lambda path: Strict(libpva.openReport(path), "Report", grades, asked)
    )
