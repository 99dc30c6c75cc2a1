"""The names of libpva's native module, ``pva.pva_core``; ``pva`` has the same."""

from __future__ import annotations

from typing import Any, NoReturn

from pvanalyse.errors import UsageError
from pvanalyse.libpva.execution import Block, ExecutedComputeSet, ExecutionReport, ExecutionStep, IPUExecutionStep, Run
from pvanalyse.libpva.liveness import LivenessProgramStep
from pvanalyse.libpva.operations import DebugContext, Operation, OperationAnalysis
from pvanalyse.libpva.programs import (
    ComputeSet,
    DoExchangeProgram,
    OnTileExecuteProgram,
    Program,
    ProgramVisitor,
    VertexInstances,
)
from pvanalyse.libpva.report import (
    CompilationReport,
    Graph,
    InstrumentationSettings,
    PoplarVersion,
    ProfileReportVersion,
    Report,
    Target,
    openReport,
)
from pvanalyse.libpva.tiles import IPU, Tile, TileMemory, VertexMemory, VertexType
from pvanalyse.libpva.variables import BriefVariable, EquivalenceClass, LoweredVariable, LoweredVariables

__all__ = [
    "IPU",
    "Block",
    "BriefVariable",
    "CompilationReport",
    "ComputeSet",
    "DebugContext",
    "DoExchangeProgram",
    "EquivalenceClass",
    "Event",
    "ExecutedComputeSet",
    "ExecutionReport",
    "ExecutionStep",
    "Graph",
    "IPUExecutionStep",
    "InstrumentationSettings",
    "LivenessProgramStep",
    "LoweredVariable",
    "LoweredVariables",
    "OnTileExecuteProgram",
    "Operation",
    "OperationAnalysis",
    "PoplarVersion",
    "ProfileReportVersion",
    "Program",
    "ProgramVisitor",
    "Report",
    "Run",
    "Target",
    "Tile",
    "TileMemory",
    "VertexInstances",
    "VertexMemory",
    "VertexType",
    "openReport",
    "openTrace",
]

_HOST_TRACES = "host traces (.pvti, of the PopVision System Analyser) are not read by pvanalyse, which reads reports"


def openTrace(path: object) -> NoReturn:  # noqa: ARG001, N802
    """Say that host traces are not read.

    Raises
    ------
    UsageError
        Always.
    """
    raise UsageError(_HOST_TRACES)


class Event:
    """An event of a host trace, of which there are none here: making one raises UsageError."""

    def __init__(self, *_arguments: Any) -> None:
        raise UsageError(_HOST_TRACES)
