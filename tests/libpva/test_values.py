"""Every value equal to the tables, which plain Python reads: on every sample, and on random reports."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from pvanalyse import libpva as pva
from tests.libpva.reports import SAMPLE_REPORTS, SEEDS, WITH_LOWERED, Raw, Row, random_report

REGIONS = ("nonInterleaved", "interleaved", "overflowed")


@pytest.fixture(params=[*SAMPLE_REPORTS, *SEEDS], ids=lambda one: one.name if isinstance(one, Path) else f"random{one}")
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return request.param if isinstance(request.param, Path) else random_report(tmp_path, request.param)


@pytest.fixture
def raw(directory: Path) -> Raw:
    return Raw(directory)


@pytest.fixture
def report(directory: Path) -> pva.Report:
    return pva.openReport(str(directory / "profile.pop"))


# ------------------------------------------------------------------------------------------------------ compilation
def test_versions_target_and_graph(raw: Raw, report: pva.Report) -> None:
    target, known = report.compilation.target, raw.target
    assert (target.type.name, target.architecture.name) == (known["type"], known["architecture"])
    replicas, ipus = known["num_replicas"], known["num_ipus"]
    assert {name: getattr(target, name) for name in dir(target) if name[0] != "_" and name not in ("Type", "type",
            "architecture")} == {
        "numIPUs": ipus, "numReplicas": replicas, "ipusPerReplica": ipus // replicas,
        "tilesPerIpu": known["tiles_per_ipu"], "numTiles": known["num_tiles"],
        "tilesPerReplica": known["num_tiles"] // replicas, "bytesPerTile": known["bytes_per_tile"],
        "bytesPerIPU": known["bytes_per_tile"] * known["tiles_per_ipu"],
        "totalMemory": known["bytes_per_tile"] * known["num_tiles"],
        "memoryPerReplica": known["bytes_per_tile"] * (known["num_tiles"] // replicas),
        "clockFrequency": known["clock_frequency"],
    }  # fmt: skip
    for column, name in (("num_compute_sets", "numComputeSets"), ("num_vertices", "numVertices")):
        if raw["graph"][0][column] is not None:
            assert getattr(report.compilation.graph, name) == raw["graph"][0][column]
    info = {row["key"]: row["value"] for row in raw["report_info"]}
    if "poplar_version" in info:
        poplar, version = report.poplarVersion, report.version
        said = [*(f"poplar_{name}" for name in ("major", "minor", "point", "package_hash", "version")),
                *(f"format_{name}" for name in ("major", "minor", "point", "unstable"))]  # fmt: skip
        assert [
            *(str(poplar.major), str(poplar.minor), str(poplar.point), poplar.packageHash, poplar.string),
            *(str(version.major), str(version.minor), str(version.point), str(int(version.isUnstableFormat))),
        ] == [info[key] for key in said]
        settings = report.instrumentationSettings
        assert settings.compute.name == info["instrument_compute"]
        assert settings.externalExchange.name == info["instrument_external_exchange"]


def test_tiles(raw: Raw, report: pva.Report) -> None:
    rows, tiles = raw.by("tile_memory", "tile"), report.compilation.tiles
    assert len(tiles) == raw.target["num_tiles"]
    for number, tile in enumerate(tiles):
        row = defaultdict(int, rows.get(number, {}))
        memory = tile.memory
        assert (memory.total.includingGaps, memory.total.excludingGaps) == (
            row["total_including_gaps"], row["total_excluding_gaps"])  # fmt: skip
        assert (memory.overflowed.includingGaps, memory.overflowed.excludingGaps) == (
            row["overflowed_including_gaps"], row["overflowed_excluding_gaps"])  # fmt: skip
        assert (memory.alwaysLiveBytes, memory.notAlwaysLiveBytes) == (
            row["always_live_bytes"], row["not_always_live_bytes"])  # fmt: skip
    per_ipu = raw.target["tiles_per_ipu"]
    assert [list(ipu.tiles) for ipu in report.compilation.ipus] == [
        list(tiles)[start : start + per_ipu] for start in range(0, len(tiles), per_ipu)
    ]


def test_categories(raw: Raw, report: pva.Report) -> None:
    cells: dict[tuple[str, int, str], Row] = raw.by("tile_memory_category", "category", "tile", "region")
    tiles = report.compilation.tiles
    for category in {category for category, _, _ in cells} | {"vertexCode", "controlTable"}:
        for number, tile in enumerate(tiles):
            memory = getattr(tile.memory.category, category)
            known = [cells.get((category, number, region), {}) for region in REGIONS]
            regions = [getattr(memory, region) for region in REGIONS]
            assert [one.nonOverlapped for one in regions] == [one.get("non_overlapped", 0) for one in known]
            assert [one.overlapped for one in regions] == [one.get("overlapped", 0) for one in known]
            assert memory.total == sum(one.get("non_overlapped", 0) for one in known)


def test_vertices_of_tiles(raw: Raw, report: pva.Report) -> None:
    types = raw.by("vertex_types", "vertex_type_id")
    known: dict[int, list[Any]] = defaultdict(list)
    for row in sorted(raw["tile_vertices"], key=lambda row: (row["tile"], row["vertex_type_id"])):
        kind = types.get(row["vertex_type_id"], {"name": "", "instance_bytes": 0})
        known[row["tile"]].append((kind["name"], kind["instance_bytes"], row["code_bytes"]))
    for number, tile in enumerate(report.compilation.tiles):
        found = [(one.type.name, one.type.size, one.codeBytes) for one in tile.memory.vertices]
        assert found == known[number]


def test_compute_sets(raw: Raw, report: pva.Report) -> None:
    types = raw.by("vertex_types", "vertex_type_id")
    sets = raw["compute_sets"]
    assert [one.name for one in report.compilation.computeSets] == [row["name"] for row in sets]
    for row, one in zip(sets, report.compilation.computeSets, strict=True):
        assert one.estimatedCyclesByTile == raw.per_tile(row["estimated_cycles_by_tile"], [])
        rows = [of for of in raw["compute_set_vertices"] if of["compute_set_id"] == row["compute_set_id"]]
        rows.sort(key=lambda of: of["vertex_type_id"])
        expected = [(*_type(types, of["vertex_type_id"]), raw.per_tile(of["count_by_tile"])) for of in rows]
        assert [(of.type.name, of.type.size, of.countByTile) for of in one.vertices] == expected


def _type(types: dict[int, Row], identity: int) -> tuple[str, int]:
    row = types.get(identity, {"name": "", "instance_bytes": 0})
    return row["name"], row["instance_bytes"]


def test_programs(raw: Raw, report: pva.Report) -> None:
    rows = raw["programs"]
    known_types = pva.Program.Type.__members__
    children: dict[int, list[int]] = defaultdict(list)
    for edge in sorted(raw["program_children"], key=lambda edge: edge["position"]):
        children[edge["program_id"]].append(edge["child_id"])
    uses: dict[int, set[int]] = defaultdict(set)
    there = {row["lowered_variable_id"] for row in raw["lowered_variables"]}
    for use in raw["program_lowered_variables"]:
        uses[use["program_id"]] |= {use["lowered_variable_id"]} & there
    names = raw.by("compute_sets", "compute_set_id")
    assert [program._id for program in report.compilation.programs] == [row["program_id"] for row in rows]
    for row, program in zip(rows, report.compilation.programs, strict=True):
        assert program.name == row["name"]
        assert program.type.name == (row["type"] if row["type"] in known_types else "Unknown")
        assert [child._id for child in program.children] == children[row["program_id"]]
        assert program.controlCodeByTile == raw.per_tile(row["control_code_by_tile"])
        assert {variable._id for variable in program.vars} == uses[row["program_id"]]
        if row["type"] == "DoExchange":
            assert program.codeBytesByTile == raw.per_tile(row["code_bytes_by_tile"])
            assert program.estimatedCyclesByTile == raw.per_tile(row["estimated_cycles_by_tile"])
        if row["type"] == "OnTileExecute":
            assert program.computeset.name == names.get(row["compute_set_id"], {"name": ""})["name"]


# --------------------------------------------------------------------------------------------------------- liveness
def by_variable(raw: Raw, rows: list[Row]) -> Counter[tuple[str, int | str]]:
    """Return bytes of lowered variables by name and identity of what they are of."""
    declared = {row["variable_id"]: row["name"] for row in raw["variables"]}
    sizes: Counter[tuple[str, int | str]] = Counter()
    names: dict[int, str] = {}
    for row in rows:
        own = row["name"]
        if row["variable_id"] is None:
            code = row["always_live"] and row["category"] not in ("variable", "constant", "message")
            label = row["category"] if code else own
            sizes[label, label] += row["bytes"]
        else:
            name = declared.get(row["variable_id"]) or names.setdefault(row["variable_id"], own)
            sizes[name, row["variable_id"]] += row["bytes"]
    return sizes


def found(variables: Any) -> dict[tuple[str, int | str], int]:
    """Return the same of libpva's variables, of which there must not be two that are equal."""
    sizes = {(one.name, one._identity): one.size for one in variables}
    assert len(sizes) == len(variables) == len(set(variables))
    return sizes


def live(raw: Raw, row: Row, step: int) -> bool:
    return any(
        one["equivalence_class_id"] == row["equivalence_class_id"] and one["step_begin"] <= step < one["step_end"]
        for one in raw["equivalence_class_intervals"]
    ) and not row["always_live"]  # fmt: skip


def chosen_steps(raw: Raw) -> list[int]:
    """Return the first and the last step, the peak, and a few between."""
    rows = raw["liveness_steps"]
    peak = max(range(len(rows)), key=lambda at: rows[at]["not_always_live_bytes"])
    return sorted({0, len(rows) - 1, peak, *range(0, len(rows), max(1, len(rows) // 7))})


def test_liveness_of_a_replica(raw: Raw, report: pva.Report) -> None:
    steps = report.compilation.livenessProgramSteps
    rows = sorted(raw["liveness_steps"], key=lambda row: row["step"])
    assert [(one.program._id, one.notAlwaysLiveMemory.bytes) for one in steps] == [
        (row["program_id"], row["not_always_live_bytes"]) for row in rows
    ]
    for row, one in zip(rows, steps, strict=True):
        sizes: Counter[tuple[str, int | str]] = Counter()
        first: dict[int | str, str] = {}
        for of in raw["variable_liveness"]:
            if of["step_begin"] <= row["step"] < of["step_end"]:
                identity = of["name"] if of["variable_id"] is None else of["variable_id"]
                sizes[first.setdefault(identity, of["name"]), identity] += of["bytes"]
        assert found(one.notAlwaysLiveMemory.variables) == sizes


def test_liveness_of_tiles_and_ipus(raw: Raw, report: pva.Report) -> None:
    rows, steps = raw["lowered_variables"], report.compilation.livenessProgramSteps
    if not rows:
        pytest.skip("the report has no lowered variables")
    numbers = sorted(row["step"] for row in raw["liveness_steps"])
    worst = max(raw["tile_memory"], key=lambda row: row["not_always_live_bytes"])["tile"]
    per_ipu = raw.target["tiles_per_ipu"]
    for step in chosen_steps(raw):
        alive = {one for one in {row["equivalence_class_id"] for row in rows if not row["always_live"]}
                 if live(raw, {"equivalence_class_id": one, "always_live": 0}, numbers[step])}  # fmt: skip
        now = [row for row in rows if not row["always_live"] and row["equivalence_class_id"] in alive]
        for tile in {0, worst, raw.target["num_tiles"] - 1}:
            memory = steps[step].notAlwaysLiveMemoryForTile(tile)
            mine = by_variable(raw, [row for row in now if row["tile"] == tile])
            assert (memory.bytes, found(memory.variables)) == (mine.total(), mine)
        for ipu in range(raw.target["num_ipus"]):
            memory = steps[step].notAlwaysLiveMemoryForIpu(ipu)
            mine = by_variable(raw, [row for row in now if row["tile"] // per_ipu == ipu])
            assert (memory.bytes, found(memory.variables)) == (mine.total(), mine)


def test_always_live(raw: Raw, report: pva.Report) -> None:
    assert [(one.name, one.size) for one in report.compilation.alwaysLiveVariables] == [
        (row["name"], row["bytes"]) for row in raw["always_live_variables"]
    ]
    for tile in range(0, raw.target["num_tiles"], max(1, raw.target["num_tiles"] // 9)):
        mine = [row for row in raw["lowered_variables"] if row["tile"] == tile and row["always_live"]]
        if raw["lowered_variables"]:
            assert found(report.compilation.alwaysLiveVariablesForTile(tile)) == by_variable(raw, mine)


# ------------------------------------------------------------------------------------------------- lowered variables
def test_brief_variables(raw: Raw, report: pva.Report) -> None:
    rows = sorted(raw["lowered_variables"], key=lambda row: row["lowered_variable_id"])
    steps = sorted(row["step"] for row in raw["liveness_steps"])
    brief = report.compilation.loweredVariables.allBriefVars
    assert [(one.id, one.bytes, one.tileId) for one in brief] == [
        (row["lowered_variable_id"], row["bytes"], row["tile"]) for row in rows
    ]
    assert len(brief) == len(rows)
    spans: dict[int, set[int]] = defaultdict(set)
    for row in raw["equivalence_class_intervals"]:
        spans[row["equivalence_class_id"]] |= {
            at for at, step in enumerate(steps) if row["step_begin"] <= step < row["step_end"]
        }
    classes = {one.equivalenceClass.id: one.equivalenceClass for one in brief}
    steps_of = {one: {at for span in classes[one].steps for at in range(span.start, span.end)} for one in classes}
    never = {one for one, found in steps_of.items() if not found}
    always: set[int] = set()
    for row, one in zip(rows, brief, strict=True):
        identity = one.equivalenceClass.id
        if row["always_live"]:
            always.add(identity)
            assert steps_of[identity] == set(range(len(steps)))
        elif spans.get(row["equivalence_class_id"]):
            assert identity == row["equivalence_class_id"]
            assert steps_of[identity] == spans[identity]
        else:
            assert identity in never
    assert len(never) <= 1
    assert len(always) <= 1
    assert always.isdisjoint(spans)


def test_lowered_variables_of_tiles(raw: Raw, report: pva.Report) -> None:
    declared = {row["variable_id"]: row["name"] for row in raw["variables"]}
    for tile in range(0, raw.target["num_tiles"], max(1, raw.target["num_tiles"] // 9)):
        rows = [row for row in raw["lowered_variables"] if row["tile"] == tile]
        variables = report.compilation.loweredVariables.forTile(tile)
        assert [(one._id, one.name, one.bytes, one.alwaysLive, one.hasUnloweredVar) for one in variables] == [
            (row["lowered_variable_id"], row["name"], row["bytes"], bool(row["always_live"]),
             row["variable_id"] is not None) for row in rows
        ]  # fmt: skip
        for row, one in zip(rows, variables, strict=True):
            name = None if row["variable_id"] is None else declared.get(row["variable_id"]) or row["name"]
            assert (one.unloweredVar.name if one.unloweredVar else None) == name


# -------------------------------------------------------------------------------------------------------- execution
def test_execution_steps(raw: Raw, report: pva.Report) -> None:
    rows = sorted(raw["execution_steps"], key=lambda row: row["step_id"])
    cells = raw.by("execution_step_ipus", "step_id", "ipu")
    ipus = max((ipu for _, ipu in cells), default=-1) + 1
    programs, sets = raw.by("programs", "program_id"), raw.by("compute_sets", "compute_set_id")
    steps = report.execution.steps
    assert [one.program._id for one in steps] == [row["program_id"] for row in rows]
    for row, one in zip(rows, steps, strict=True):
        cycles = raw.per_tile(row["cycles_by_tile"], [])
        assert one.cyclesByTile == cycles
        program = programs.get(row["program_id"], {"type": ""})
        executed = [(of.name, of.cyclesByTile, of.estimatedCyclesByTile) for of in one.computeSets]
        if program["type"] == "OnTileExecute":
            of = sets.get(program["compute_set_id"], {"name": "", "estimated_cycles_by_tile": None})
            assert executed == [(of["name"], cycles, raw.per_tile(of["estimated_cycles_by_tile"], []))]
        else:
            assert executed == []
        assert len(one.ipus) == ipus
        for ipu in range(ipus):
            known = cells.get((row["step_id"], ipu), {})
            assert _numbers(one.ipus[ipu]) == {
                name: known.get(name) or 0 for name in (*_SPANS, "cycles", "data_in", "data_out", "tile_balance",
                                                        "active_tile_balance")
            }  # fmt: skip


_SPANS = [f"{tiles}_{end}_{kind}" for tiles in ("active", "all") for end in ("from", "to") for kind in ("min", "max")]


def _numbers(step: Any) -> dict[str, Any]:
    ends = [
        getattr(getattr(getattr(step, f"{tiles}Cycles"), f"cycles{end}"), kind)
        for tiles in ("active", "all") for end in ("From", "To") for kind in ("min", "max")
    ]  # fmt: skip
    return dict(zip(_SPANS, ends, strict=True)) | {
        "cycles": step.cycles, "data_in": step.dataIn, "data_out": step.dataOut, "tile_balance": step.tileBalance,
        "active_tile_balance": step.activeTileBalance,
    }  # fmt: skip


def test_runs(raw: Raw, report: pva.Report) -> None:
    steps: dict[int, list[int]] = defaultdict(list)
    for row in sorted(raw["execution_steps"], key=lambda row: row["step_id"]):
        steps[row["run_id"]].append(row["program_id"])
    rows = sorted(raw["runs"], key=lambda row: row["run_id"])
    assert [
        (run.name, run.microseconds.start, run.microseconds.end, [step.program._id for step in run.steps])
        for run in report.execution.runs
    ] == [(row["name"], row["start_us"], row["end_us"], steps[row["run_id"]]) for row in rows]


def test_blocks(raw: Raw, report: pva.Report) -> None:
    kinds = {"isCommon": "common", "isStreamCopy": "streamCopy", "isOverflow": "overflow", "isBlockFlush": "blockFlush"}
    for tile in {row["tile"] for row in raw["execution_blocks"]} | {1}:
        rows = [row for row in raw["execution_blocks"] if row["tile"] == tile]
        blocks = report.execution.blocks(tile)
        assert [
            (one.tile, one.cyclesFrom, one.cyclesTo, one.program._id if one.program else None) for one in blocks
        ] == [(tile, row["cycles_from"], row["cycles_to"], row["program_id"]) for row in rows]
        assert [{name for name in kinds if getattr(one, name)} for one in blocks] == [
            {name for name, kind in kinds.items() if kind == row["kind"]} for row in rows
        ]


# ------------------------------------------------------------------------------------------------------- operations
@pytest.mark.parametrize("directory", SAMPLE_REPORTS, ids=lambda path: path.name, indirect=True)
def test_operations(directory: Path, raw: Raw, report: pva.Report) -> None:
    analysis = pva.OperationAnalysis(report)
    rows = raw.by("programs", "program_id")
    uses: dict[int, set[int]] = defaultdict(set)
    for use in raw["program_lowered_variables"]:
        uses[use["program_id"]].add(use["lowered_variable_id"])
    steps: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(sorted(raw["liveness_steps"], key=lambda row: row["step"])):
        steps[row["program_id"]].append(at)
    seen: list[int] = []
    order = []
    layers = set()
    for operation in analysis.operations:
        programs = [program._id for program in operation.programs()]
        seen += programs
        mine = [step for program in programs for step in steps[program]]
        if mine:
            assert (operation.firstStepIndex, operation.lastStepIndex) == (min(mine), max(mine))
            order.append(min(mine))
        assert {one._id for one in operation.vars} == set().union(*(uses[program] for program in programs))
        assert len(operation.vars) == len({one._id for one in operation.vars})
        # Each of its programs comes from it: its context is that of the program, or above.
        for program in programs:
            assert operation.debugContext.id in _chain(report, rows[program]["debug_context_id"])
        layers.add(json.loads(operation.debugContext.layer)["layer"])
        assert isinstance(json.loads(operation.debugContext.json), dict)
    assert len(seen) == len(set(seen))
    assert order == sorted(order)
    assert "popart" in layers or "xla_op" in layers


def _chain(report: pva.Report, identity: int) -> list[int]:
    """Return a context and those above it, from the table that is checked against CBOR elsewhere."""
    contexts = report._store.source.arrow("debug_contexts", ["debug_context_id", "parent_id"]).to_pydict()
    parents = dict(zip(contexts["debug_context_id"], contexts["parent_id"], strict=True))
    chain = []
    at: int | None = identity
    while at is not None:
        chain.append(at)
        at = parents.get(at)
    return chain


def test_debug_contexts(tmp_path: Path) -> None:
    # GIVEN an operation of PopART below one of PyTorch, and programs below poplar's contexts
    import cbor2

    from tests.oracle.reports import write_profile

    target = {"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": 2,
              "num_tiles": 2, "bytes_per_tile": 9, "clock_frequency": 1.0}  # fmt: skip
    programs = [{"program_id": at, "type": "Sync", "name": "", "debug_context_id": at} for at in (3, 4, 9)]
    write_profile(tmp_path / "profile.pop", {"target": [target], "programs": programs})
    contexts = [
        {"id": 3, "parentId": 2, "name": 0, "layer": "poplar"},
        {"id": 2, "parentId": 1, "name": 1, "layer": "popart", "instanceId": 5, "inputs": ["x"],
         "location": {"fileName": 2, "functionName": 1, "lineNumber": 7}},
        {"id": 1, "parentId": 0, "name": 1, "layer": "poptorch", "op_name": "linear"},
        {"id": 4, "parentId": 2, "name": 0, "layer": "poplar"},
    ]  # fmt: skip
    content = {"contexts": contexts, "stringTable": ["Sync", "linear", "model.py"]}
    (tmp_path / "other.cbor").write_bytes(cbor2.dumps(content))
    # WHEN it is opened with that debug information
    report = pva.openReport(str(tmp_path / "profile.pop"), str(tmp_path / "other.cbor"))
    (operation,) = pva.OperationAnalysis(report).operations
    # THEN the operation is PopART's, and leads to PyTorch's
    context = operation.debugContext
    assert (operation.name, [one._id for one in operation.programs()], operation.replacedDebugContext) == (
        "linear", [3, 4], [])  # fmt: skip
    assert (operation.firstStepIndex, operation.lastStepIndex, list(operation.vars)) == (-1, -1, [])
    assert (context.id, json.loads(context.json), json.loads(context.layer)) == (
        2, {"instanceId": 5, "inputs": ["x"]}, {"layer": "popart"})  # fmt: skip
    assert (context.location.fileName, context.location.lineNumber) == ("model.py", 7)
    (parent,) = context.parents
    assert (parent.id, json.loads(parent.json), parent.parents) == (1, {"op_name": "linear"}, [])
    assert (parent.location.fileName, parent.location.lineNumber) == ("", 0)


# -------------------------------------------------------------------------------------------------------- invariants
@pytest.mark.parametrize("directory", WITH_LOWERED, ids=lambda path: path.name, indirect=True)
def test_memory_of_the_worst_step_of_each_tile_adds_up(directory: Path, report: pva.Report) -> None:
    compilation = report.compilation
    tiles = range(0, len(compilation.tiles), max(1, len(compilation.tiles) // 40))
    for tile in tiles:
        worst = max(
            (step.notAlwaysLiveMemoryForTile(tile) for step in compilation.livenessProgramSteps),
            key=lambda memory: memory.bytes,
        )
        memory = compilation.tiles[tile].memory
        always = compilation.alwaysLiveVariablesForTile(tile)
        variables = sum(one.size for one in worst.variables) + sum(one.size for one in always)
        assert worst.bytes == memory.notAlwaysLiveBytes
        assert variables == worst.bytes + memory.alwaysLiveBytes
