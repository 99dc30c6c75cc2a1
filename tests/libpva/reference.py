"""The rows of the reference list of libpva's Python API: whose attribute, its name, and how well it is known.

D documented · U seen in public Python programs · C++ seen in public C++ programs · L its data is known from the older
JSON profiles · H a guess · X known not to exist. An owner is a key of what `owners` in test_reference.py finds.
"""

from __future__ import annotations

ROWS: list[tuple[str, str, str]] = [
    # module
    *(("pva", name, "D") for name in ("openReport", "Report", "ProgramVisitor")),
    *(("pva", name, "U") for name in ("OperationAnalysis", "Program", "IPU", "Target", "ExecutionStep", "pva_core")),
    *(("pva", name, "U") for name in ("openTrace", "Event")),
    *(("pva.pva_core", name, "U") for name in ("ExecutionStep", "Program", "Report")),
    # report and settings
    *(("Report", name, "D") for name in ("compilation", "execution", "instrumentationSettings", "poplarVersion")),
    *(("Report", name, "D") for name in ("version", "listPrintLength")),
    *(("PoplarVersion", name, "D") for name in ("major", "minor", "point", "packageHash", "string")),
    *(("ProfileReportVersion", name, "D") for name in ("major", "minor", "point", "isUnstableFormat")),
    *(("InstrumentationSettings", name, "D") for name in ("compute", "externalExchange")),
    ("InstrumentationSettings", "ComputeInstrumentationLevel", "D"),
    ("InstrumentationSettings", "ExternalExchangeInstrumentationLevel", "D"),
    *(("InstrumentationSettings", name, "D") for name in ("Off", "Vertex", "Tile", "Ipu", "Device", "Unknown")),
    # compilation
    ("CompilationReport", "target", "D"),
    *(("CompilationReport", name, "U") for name in ("graph", "tiles", "ipus", "computeSets", "programs")),
    *(("CompilationReport", name, "U") for name in ("livenessProgramSteps", "alwaysLiveVariables")),
    *(("CompilationReport", name, "U") for name in ("alwaysLiveVariablesForTile", "loweredVariables")),
    *(("CompilationReport", name, "H") for name in ("controlPrograms", "functionPrograms", "remoteBuffers")),
    *(("CompilationReport", name, "H") for name in ("hostExchanges", "engineOptions", "timestamp")),
    *(("AlwaysLiveVariable", name, "U") for name in ("name", "size")),
    *(("Target", name, "D") for name in ("numIPUs", "numReplicas")),
    *(("Target", name, "U") for name in ("type", "architecture", "ipusPerReplica", "tilesPerReplica")),
    *(("Target", name, "U") for name in ("memoryPerReplica", "tilesPerIpu", "numTiles", "bytesPerTile")),
    *(("Target", name, "U") for name in ("bytesPerIPU", "totalMemory", "clockFrequency", "Type")),
    *(("Target", name, "H") for name in ("relativeSyncDelayByTile", "minSyncDelay")),  # L, the spelling H
    *(("Target", name, "X") for name in ("tilesPerIPU", "numIpus", "bytesPerIpu")),  # section 7: keep the spelling
    ("Graph", "numComputeSets", "U"),
    ("Graph", "numVertices", "C++"),
    *(("Graph", name, "H") for name in ("numEdges", "numVars")),  # L, the spelling H
    ("Tile", "memory", "U"),
    ("IPU", "tiles", "U"),
    ("IPU", "Architecture", "U"),
    *(("TileMemory", name, "U") for name in ("total", "overflowed", "alwaysLiveBytes", "notAlwaysLiveBytes")),
    *(("TileMemory", name, "U") for name in ("category", "vertices")),
    *(("TileMemory", name, "H") for name in ("interleaved", "nonInterleaved")),  # L, in this shape H
    *(("TileMemory", name, "X") for name in ("used", "free")),
    *(("GapBytes", name, "U") for name in ("includingGaps", "excludingGaps")),
    *(("VertexMemory", name, "U") for name in ("type", "codeBytes")),
    *(("VertexType", name, "U") for name in ("name", "size")),
    *(("Categories", name, "U") for name in ("vertexCode", "vertexInstanceState", "vertexFieldData", "controlCode")),
    *(("Categories", name, "U") for name in ("vectorListDescriptor", "copyDescriptor", "constant")),
    *(("Categories", name, "U") for name in ("internalExchangeCode", "globalExchangeCode", "hostExchangeCode")),
    *(("Categories", name, "D") for name in ("controlId", "controlTable")),
    *(("Categories", name, "U") for name in ("globalExchangePacketHeader", "hostExchangePacketHeader", "stack")),
    *(("Categories", name, "U") for name in ("instrumentationResults", "variable")),
    *(("Categories", name, "H") for name in ("hostMessage", "globalMessage", "sharedCodeStorage")),
    ("Category", "total", "U"),
    *(("Category", name, "C++") for name in ("nonInterleaved", "interleaved", "overflowed")),
    ("Region", "nonOverlapped", "C++"),
    ("Region", "overlapped", "L"),
    *(("ComputeSet", name, "U") for name in ("name", "vertices", "estimatedCyclesByTile")),
    *(("VertexInstances", name, "U") for name in ("type", "countByTile")),
    *(("LivenessProgramStep", name, "U") for name in ("program", "notAlwaysLiveMemory")),
    *(("LivenessProgramStep", f"notAlwaysLiveMemoryFor{place}", "U") for place in ("Tile", "Ipu")),
    *(("LiveMemory", name, "U") for name in ("bytes", "variables")),
    *(("LiveVariable", name, "U") for name in ("name", "size")),
    *(("LoweredVariables", name, "U") for name in ("allBriefVars", "forTile")),
    *(("BriefVariable", name, "U") for name in ("id", "bytes", "tileId", "equivalenceClass")),
    *(("EquivalenceClass", name, "U") for name in ("id", "steps")),
    *(("StepInterval", name, "U") for name in ("start", "end")),
    *(("LoweredVariable", name, "U") for name in ("_id", "name", "bytes", "hasUnloweredVar", "unloweredVar")),
    ("LoweredVariable", "alwaysLive", "C++"),
    *(("LoweredVariable", name, "H") for name in ("offset", "alignment", "category", "isConstant")),  # L, spelling H
    *(("LoweredVariable", name, "H") for name in ("executable", "vertexCode", "lowest256KB", "inInterleavedMem")),
    # programs
    *(("Program", name, "U") for name in ("_id", "name", "type", "children", "accept", "vars", "controlCodeByTile")),
    ("Program", "Type", "U"),
    ("Program", "debugContext", "H"),
    ("Program", "cycles", "X"),
    *(("DoExchange", name, "U") for name in ("codeBytesByTile", "estimatedCyclesByTile")),
    ("OnTileExecute", "computeset", "U"),
    *(("ProgramVisitor", f"visit{name}", "U") for name in ("OnTileExecute", "DoExchange", "GlobalExchange")),
    *(("ProgramVisitor", f"visitStreamCopy{part}", "U") for part in ("Begin", "Mid", "End")),
    # execution
    *(("ExecutionReport", name, "U") for name in ("runs", "totalCycles")),
    ("ExecutionReport", "steps", "D"),
    ("ExecutionReport", "blocks", "C++"),
    ("ExecutionReport", "profilerMode", "H"),  # L and H
    ("TotalCycles", "total", "U"),
    *(("Run", name, "U") for name in ("name", "steps", "microseconds")),
    ("Run", "cyclesByIpu", "H"),  # one client tries it and expects to fail
    ("Run", "programs", "X"),
    *(("Microseconds", name, "U") for name in ("start", "end")),
    *(("ExecutionStep", name, "U") for name in ("program", "ipus", "cyclesByTile", "computeSets")),
    *(("ExecutedComputeSet", name, "U") for name in ("name", "cyclesByTile")),
    ("ExecutedComputeSet", "estimatedCyclesByTile", "C++"),
    *(("IPUExecutionStep", name, "U") for name in ("cycles", "activeCycles", "tileBalance", "activeTileBalance")),
    *(("IPUExecutionStep", name, "U") for name in ("dataIn", "dataOut")),
    ("IPUExecutionStep", "allCycles", "C++"),
    *(("CycleSpan", name, "U") for name in ("cyclesFrom", "cyclesTo")),
    *(("CycleRange", name, "U") for name in ("min", "max")),
    *(("Block", name, "C++") for name in ("cyclesFrom", "cyclesTo", "program", "tile")),
    *(("Block", f"is{kind}", "C++") for kind in ("Common", "StreamCopy", "Overflow", "BlockFlush")),
    # operations
    ("OperationAnalysis", "operations", "U"),
    *(("Operation", name, "U") for name in ("name", "programs", "vars", "firstStepIndex", "lastStepIndex")),
    *(("Operation", name, "U") for name in ("debugContext", "replacedDebugContext")),
    *(("Operation", name, "H") for name in ("flops", "codeSize", "cycles")),
    *(("DebugContext", name, "U") for name in ("id", "json", "layer", "parents", "location")),
    *(("SourceLocation", name, "U") for name in ("fileName", "lineNumber")),
    # what was written once and did not exist
    *(("tiles", name, "X") for name in ("numTiles", "maxMemory")),
    ("Report", "executionProfile", "X"),
]

ENUMERATIONS: dict[str, dict[str, int] | list[str]] = {
    # documented with values
    "InstrumentationSettings.ComputeInstrumentationLevel":
        {"Off": 0, "Vertex": 1, "Tile": 2, "Ipu": 3, "Device": 4, "Unknown": 5},
    "InstrumentationSettings.ExternalExchangeInstrumentationLevel": {"Off": 0, "Tile": 1, "Unknown": 2},
    # names only
    "IPU.Architecture": ["Ipu2"],
    "Target.Type": ["Ipu", "IpuModel", "Cpu", "Unknown"],
    "Program.Type": ["Sequence", "Repeat", "OnTileExecute", "OnEveryTileSwitch", "DoExchange", "GlobalExchange",
                     "StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd", "Sync", "SyncAns", "Sans"],
}  # fmt: skip
