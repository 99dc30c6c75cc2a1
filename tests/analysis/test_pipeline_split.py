"""Splitting a report into pipeline stages against plain Python over its rows, and against the published method."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pvanalyse
from pvanalyse.analysis.memory import tile_categories, tiles_frame
from pvanalyse.analysis.operation_groups import operation_groups
from pvanalyse.analysis.splitting.layers import find_layers
from pvanalyse.analysis.splitting.pipeline_split import PipelineSplit, pipeline_split
from pvanalyse.analysis.splitting.stage_memory import KINDS, StageMemory, read_code
from pvanalyse.analysis.splitting.uses import read_uses
from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from pvanalyse.tables import TableSource
from tests.conftest import SAMPLES
from tests.oracle.reports import write_profile
from tests.oracle.splitting import Operation, Splitter, make_report, splits
from tests.oracle.splitting import greedy as oracle_greedy

REGEX = r"layer_(\d+)"
SINGLE = {
    "transformer_before": r"encoder/(layer_\d+/\w+)",
    "transformer_after": r"encoder/(layer_\d+/\w+)",
    "out_of_memory": r"layer_0/(\w+/\w+)",
    "tensorflow/tf_report__2022-05-03__10-15-30__12345": r"resnet/(\w+)",
}
SEEDS = range(10)


def layer_of(pattern: str) -> Callable[[str], str | None]:
    def layer(name: str) -> str | None:
        match = re.search(pattern, name)
        return match[1] if match else None

    return layer


def stage_memory(source: TableSource, pattern: str | None, num_stages: int = 1) -> tuple[StageMemory, list[str]]:
    layers = find_layers(source, num_stages, pattern)
    tiles = source.arrow("target").to_pylist()[0]["tiles_per_ipu"]
    code, uses = read_code(source, layers, tiles), read_uses(source, layers, tiles)
    return StageMemory(code, uses, layers.first_step, layers.stop_step), list(layers.names)


def operations_of(report: pvanalyse.Report, splitter: Splitter) -> list[Operation]:
    """The operations that debug information tells apart, for plain Python to put into layers."""
    groups = operation_groups(report)
    programs: dict[str, set[int]] = defaultdict(set)
    ids = report.arrow("programs", ["program_id"]).column(0).to_pylist()
    for program, row in zip(ids, groups.of_program.tolist(), strict=True):
        if row >= 0:
            programs[groups.frame["name"][row]].add(program)
    return splitter.operations(programs)


def same(used: Any, expected: dict[str, np.ndarray]) -> None:
    assert {kind: getattr(used, kind).tolist() for kind in KINDS} == {
        kind: values.tolist() for kind, values in expected.items()
    }


# ------------------------------------------------------------------------------------------------- memory of stages
@pytest.mark.parametrize("seed", SEEDS)
def test_memory_of_every_stage_of_random_reports(tmp_path: Path, seed: int) -> None:
    # GIVEN a report; WHEN any neighbouring layers are a stage; THEN each kind of bytes on each tile is that of the rows
    path = make_report(tmp_path, seed)
    splitter = Splitter(path, layer_of(REGEX))
    operations = splitter.operations()
    with pvanalyse.open_report(path) as report:
        memory, layers = stage_memory(report, REGEX)
    assert layers == splitter.layers(operations)
    for first, stop in combinations(range(len(layers) + 1), 2):
        same(memory.stage(first, stop), splitter.stage(operations, layers[first:stop]))
        assert memory.fullest(first, stop) == splitter.fullest(operations, layers[first:stop])


def test_layers_that_no_step_runs(tmp_path: Path) -> None:
    # GIVEN a layer of which no program is in the liveness steps, and which uses variables; WHEN it is a stage, or part
    # of one; THEN its variables count in the steps of the others, and alone only its code does
    path = make_report(tmp_path, 3)
    before = Splitter(path, layer_of(REGEX))
    ids = [one for one, name in before.name.items() if name.startswith("model/")]
    unused = max(ids, key=lambda one: len(before.uses[one]))
    other = next(one for one in ids if one != unused)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE programs SET name = 'model/layer_0/a/x' WHERE name LIKE 'model/%'")
        database.execute("UPDATE programs SET name = 'model/layer_1/a/x' WHERE program_id = ?", (unused,))
        database.execute("UPDATE liveness_steps SET program_id = ? WHERE program_id = ?", (other, unused))
    splitter = Splitter(path, layer_of(REGEX))
    (first,) = (one for one in splitter.operations() if one.layer is not None)
    both = Operation("0", first.programs | {unused}, first.first_step, first.last_step)
    both.variables = first.variables | splitter.uses[unused]
    with pvanalyse.open_report(path) as report:
        memory, layers = stage_memory(report, REGEX)
    assert layers == ["0", "1"]
    same(memory.stage(0, 2), splitter.stage([both], ["0"]))
    alone = memory.stage(1, 2)
    assert splitter.uses[unused]
    assert (memory.steps(1, 2), alone.variables.any()) == ((0, 0), False)
    assert alone.control_code.tolist() == splitter.control[unused].tolist()
    assert memory.fullest(0, 2) >= max(memory.fullest(0, 1), memory.fullest(1, 2))


@pytest.mark.parametrize("name", SINGLE)
def test_memory_of_stages_is_the_published_one(name: str) -> None:
    # GIVEN a sample whose operations do not nest in time; WHEN layers are a stage; THEN its bytes are, kind by kind
    # and tile by tile, those that the published method counts
    pattern = SINGLE[name]
    with pvanalyse.open_report(SAMPLES / name) as report:
        memory, layers = stage_memory(report, pattern)
        splitter = Splitter(SAMPLES / name / "profile.pop", layer_of(pattern), ends_with_last=True)
        operations = operations_of(report, splitter)
    assert layers == splitter.layers(operations)
    count = len(layers)
    for first, stop in {(0, count), (0, 1), (count - 1, count), (0, count // 2), (count // 2, count), (1, count - 1)}:
        same(memory.stage(first, stop), splitter.stage(operations, layers[first:stop]))


@pytest.mark.parametrize("name", SINGLE)
def test_one_stage_of_all_layers_is_nearly_the_program(name: str) -> None:
    # GIVEN a sample; WHEN everything that has a name is one stage; THEN its code is what the tiles' own memory says,
    # control code and the whole are never more, and little is missing: stacks, descriptors, copies from and to the host
    with pvanalyse.open_report(SAMPLES / name) as report:
        memory, layers = stage_memory(report, None)
        held, tiles = tile_categories(report), tiles_frame(report)
    used = memory.stage(0, len(layers))
    assert used.vertex_code.tolist() == held["vertexCode"].tolist()
    assert used.vertex_state.tolist() == held["vertexInstanceState"].tolist()
    assert used.exchange_code.tolist() == held["internalExchangeCode"].tolist()
    assert (used.control_code <= held["controlCode"]).all()
    live = (tiles["always_live_bytes"] + tiles["not_always_live_bytes"]).to_numpy()
    assert (used.total <= live).all()
    assert 0.97 * live.sum() < used.total.sum()


# ------------------------------------------------------------------------------------------------------------ splits
@pytest.mark.parametrize("seed", SEEDS)
def test_splits_of_random_reports(tmp_path: Path, seed: int) -> None:
    # GIVEN a report; WHEN split by both methods; THEN the exact one is the best of all and the greedy one the published
    path = make_report(tmp_path, seed)
    splitter = Splitter(path, layer_of(REGEX))
    operations = splitter.operations()
    layers = splitter.layers(operations)
    cost = {(first, stop): splitter.fullest(operations, layers[first:stop])
            for first, stop in combinations(range(len(layers) + 1), 2)}  # fmt: skip

    def fullest(stops: list[int]) -> int:
        return max(cost[stage] for stage in zip([0, *stops], stops, strict=False))

    with pvanalyse.open_report(path) as report:
        for number in {1, 2, len(layers)} & set(range(1, len(layers) + 1)):
            exact = pipeline_split(report, number, REGEX)
            best = min(map(fullest, splits(len(layers), number)))
            assert exact.stages["fullest_tile_bytes"].max() == best
            assert exact.fits == (best <= exact.limit_bytes)
            for limit in (best * 5 // 4, best * 2 // 3):
                greedy = pipeline_split(report, number, REGEX, "greedy", limit)
                published = oracle_greedy(lambda first, stop: cost[first, stop], len(layers), number, limit)
                if published is None:
                    assert len(greedy.stages) == number
                else:
                    assert (stops_of(greedy), greedy.fits) == (published, True)
                    assert best <= fullest(published)


def stops_of(split: PipelineSplit) -> list[int]:
    return split.stages["num_layers"].cumsum().tolist()


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("number", [2, 3])
def test_exact_is_no_fuller_than_the_published_split(name: str, number: int) -> None:
    # GIVEN a sample and a limit that the greedy method needs all stages for; WHEN split; THEN the exact fullest tile is
    # no fuller, by the published count
    pattern = SINGLE[name]
    with pvanalyse.open_report(SAMPLES / name) as report:
        exact = pipeline_split(report, number, pattern)
        splitter = Splitter(SAMPLES / name / "profile.pop", layer_of(pattern), ends_with_last=True)
        operations = operations_of(report, splitter)
        layers = splitter.layers(operations)
        best = int(exact.stages["fullest_tile_bytes"].max())
        greedy = next(
            found for part in range(100, 200, 10)
            if len(found := splitter.greedy(operations, number, best * part // 100) or []) > 1
        )  # fmt: skip

    def fullest(stops: list[int]) -> int:
        return max(splitter.fullest(operations, layers[a:b]) for a, b in zip([0, *stops], stops, strict=False))

    assert fullest(stops_of(exact)) == best
    assert best <= fullest(greedy)


# ------------------------------------------------------------------------------------------------- what frames say
@pytest.mark.parametrize("seed", SEEDS)
def test_frames_of_random_reports(tmp_path: Path, seed: int) -> None:
    # GIVEN a split of a report; WHEN its frames are looked at; THEN they say what the rows of the report say
    path = make_report(tmp_path, seed)
    splitter = Splitter(path, layer_of(REGEX))
    operations = splitter.operations()
    layers = splitter.layers(operations)
    number = min(3, len(layers))
    with pvanalyse.open_report(path) as report:
        split = pipeline_split(report, number, REGEX)
    stops = stops_of(split)
    stages = [layers[first:stop] for first, stop in zip([0, *stops], stops, strict=False)]
    assert split.split_points == [stage[0] for stage in stages[1:]]
    assert split.layers["stage"].tolist() == [at for at, stage in enumerate(stages) for _ in stage]
    assert split.layers["layer"].tolist() == layers
    assert split.left_out_operations == sum(one.layer is None for one in operations)
    for row, stage in zip(split.stages.to_dict("records"), stages, strict=True):
        mine = [one for one in operations if one.layer in stage]
        used = splitter.stage(operations, stage)
        total = sum(used.values())
        tile = int(total.argmax())
        expected = {
            "first_layer": stage[0],
            "last_layer": stage[-1],
            "num_operations": len(mine),
            "step_begin": min(one.first_step for one in mine),
            "step_end": max(one.last_step for one in mine) + 1,
            "fullest_tile": tile,
            "fullest_tile_bytes": total.max(),
            "used_fraction": total.max() / split.limit_bytes,
            "tiles_over": (total > split.limit_bytes).sum(),
            "total_bytes": total.sum(),
            **{f"{kind}_bytes": values.sum() for kind, values in used.items()},
            **{f"fullest_{kind}_bytes": values[tile] for kind, values in used.items()},
        }
        assert {key: row[key] for key in expected} == expected
    _same_traffic(split, splitter, operations, stages)


def _same_traffic(
    split: PipelineSplit, splitter: Splitter, operations: list[Operation], stages: list[list[str]]
) -> None:
    stage_of = {layer: at for at, stage in enumerate(stages) for layer in stage}
    users: dict[int, list[tuple[int, int]]] = defaultdict(list)  # first step and stage of each program
    for one in operations:
        if one.layer is not None:
            for program in one.programs:
                for variable in splitter.uses[program]:
                    users[variable].append((splitter.steps[program][0], stage_of[one.layer]))
    traffic: dict[tuple[int, int], int] = defaultdict(int)
    sent: dict[tuple[int, int], set[int | None]] = defaultdict(set)
    shared: dict[int | None, list[int]] = defaultdict(lambda: [0, 0])
    within: dict[int | None, set[int]] = defaultdict(set)
    for variable, found in users.items():
        kind, size, _ = splitter.variables[variable]
        declared, writer, used_in = splitter.declared[variable], min(found)[1], {stage for _, stage in found}
        if len(used_in) > 1:
            shared[declared][0] += size
            shared[declared][1] += size if kind == "always" else 0
            within[declared] |= used_in
        if kind != "always":
            for stage in used_in - {writer}:
                traffic[writer, stage] += size
                sent[writer, stage].add(declared)
    assert split.traffic.values.tolist() == [
        [*pair, size, len(sent[pair])] for pair, size in sorted(traffic.items())
    ]  # fmt: skip
    rows = [(None if row["variable_id"] is None else row["variable_id"], row["bytes"], row["always_live_bytes"], set(row["stages"]))
            for row in split.shared.astype(object).where(split.shared.notna(), None).to_dict("records")]  # fmt: skip
    by_id = {variable: (*sizes, within[variable]) for variable, sizes in shared.items()}
    assert {row[0]: row[1:] for row in rows} == by_id
    assert [row[1] for row in rows] == sorted((sizes[0] for sizes in shared.values()), reverse=True)
    for at, row in enumerate(split.stages.to_dict("records")):
        assert row["received_bytes"] == sum(size for (_, to), size in traffic.items() if to == at)
        assert row["sent_bytes"] == sum(size for (start, _), size in traffic.items() if start == at)
        assert row["shared_bytes"] == sum(sizes[0] for one, sizes in shared.items() if at in within[one])


@pytest.mark.parametrize("seed", range(6))
def test_estimated_cycles_of_random_reports(tmp_path: Path, seed: int) -> None:
    # GIVEN a report that did not run; WHEN split; THEN a stage is estimated to take what its programs are
    path = make_report(tmp_path, seed)
    splitter = Splitter(path, layer_of(REGEX))
    operations = splitter.operations()
    with pvanalyse.open_report(path) as report:
        split = pipeline_split(report, 1, REGEX)
        cells = {name: report.arrow(name).to_pylist() for name in ("compute_sets", "compute_set_vertices", "programs")}
    running = {row["compute_set_id"] for row in cells["compute_set_vertices"] if any(row["count_by_tile"] or [])}
    of_set = {row["compute_set_id"]: max(row["estimated_cycles_by_tile"] or [0]) for row in cells["compute_sets"]}
    mine = set().union(*(one.programs for one in operations if one.layer is not None))
    expected = 0
    for row in cells["programs"]:
        if row["program_id"] in mine:
            expected += of_set[row["compute_set_id"]] if row["compute_set_id"] in running else 0
            expected += max(row["estimated_cycles_by_tile"] or [0]) if any(row["code_bytes_by_tile"] or []) else 0
    assert split.stages["estimated_cycles"].tolist() == [expected]
    assert split.stages["cycles"].isna().all()


def test_executed_cycles_of_a_sample() -> None:
    # GIVEN a sample that ran; WHEN split; THEN the cycles of its stages are those of their programs' executed steps
    name = "transformer_after"
    with pvanalyse.open_report(SAMPLES / name) as report:
        split = report.split(2, REGEX)
        splitter = Splitter(SAMPLES / name / "profile.pop", layer_of(REGEX))
        operations = operations_of(report, splitter)
        layers = splitter.layers(operations)
        program_of = dict(
            zip(*report.arrow("execution_steps", ["step_id", "program_id"]).to_pydict().values(), strict=True)
        )
        steps = report.arrow("execution_step_ipus", ["step_id", "cycles"]).to_pylist()
    of_program = {program: one.layer for one in operations for program in one.programs}
    sums = dict.fromkeys(layers, 0)
    for row in steps:
        layer = of_program.get(program_of[row["step_id"]])
        if layer is not None:
            sums[layer] += row["cycles"]
    assert split.stages["cycles"].tolist() == list(sums.values())


# -------------------------------------------------------------------------------------------------------- the layers
def named_report(directory: Path, names: list[str]) -> Path:
    """A report with a program of each name, one after another; their operations are called what is before the slash."""
    rows = {
        "target": [{"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": 1,
                    "num_tiles": 1, "bytes_per_tile": 100, "clock_frequency": 1e9}],
        "programs": [{"program_id": at, "type": "Sync", "name": f"{name}/x"} for at, name in enumerate(names)],
        "liveness_steps": [{"step": at, "program_id": at, "not_always_live_bytes": 0} for at in range(len(names))],
    }  # fmt: skip
    return write_profile(directory / "profile.pop", rows)


@pytest.mark.parametrize(
    ("names", "stages", "pattern", "expected"),
    [
        (["m/l1/a", "m/l2/b", "m/l1/c", "end"], 1, r"l\d", ["l1", "l2"]),
        (["m/l1/a", "m/l2/b", "m/l1/c", "end"], 1, r"(l)\d", ["l"]),
        (["m/l1/a", "m/h2/b"], 1, r"l(\d)|h(\d)", ["1", "2"]),
        (["m/l1/a", "/b", "///", "m/l1/b"], 1, None, ["m", "b"]),
        (["m/a", "m/b"], 2, None, ["m/a", "m/b"]),
        (["m/l1/a", "m/l1/b", "m/l2/a", "m/l2/b", "end/of/it"], 2, None, ["m/l1", "m/l2", "end/of"]),
        (["m/l1/a", "m/l1/b", "m/l2/a", "m/l2/b"], 1, None, ["m"]),
        (["m/a", "m/b", "gradients/m/b", "gradient_tape/m/a", "gradients_1/m/b"], 2, None, ["m/a", "m/b", "m/b"]),
        (["m/a/x", "m/b", "m/b/y", "m/c", "m/c/z", "m/a"], 3, None, ["m/a", "m/b", "m/c"]),
        (["m/x", "m/x/w", "m/y/p", "m/y/q", "m/y/r", "m/y/s"], 3, None, ["m/x", "m/y/p", "m/y/q", "m/y/r", "m/y/s"]),
        (["m/a", "m/b/w", "m/b/w/1", "m/b/v"], 4, None, ["m/a", "m/b/w", "m/b/w/1", "m/b/v"]),
    ],
)
def test_layers_by_name(
    tmp_path: Path, names: list[str], stages: int, pattern: str | None, expected: list[str]
) -> None:
    # GIVEN operations of these names; WHEN put into layers; THEN the layers are, in the order in which they begin
    named_report(tmp_path, names)
    with pvanalyse.open_report(tmp_path) as report:
        layers = find_layers(report, stages, pattern)
    assert list(layers.names) == list(dict.fromkeys(expected))


# ------------------------------------------------------------------------------------------------------ what is wrong
def altered(report: Path, directory: Path, *statements: str) -> Path:
    """A copy of a report's profile.pop with some statements run on it."""
    directory.mkdir(exist_ok=True)
    copy = directory / "profile.pop"
    copy.write_bytes((report / "profile.pop").read_bytes())
    with closing(sqlite3.connect(copy)) as database, database:
        database.create_function("twice", 1, lambda blob: blob and 2 * blob)
        for statement in statements:
            database.execute(statement)
    return copy


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"num_ipus": 0}, "1 stage or more, not 0"),
        ({"method": "best"}, "no method 'best'; there are: exact, greedy"),
        ({"limit": 0}, "above 0 bytes, not 0"),
        ({"pattern": "nowhere"}, "'nowhere' names no layer in any operation; operations are called 'host_load"),
        ({"pattern": "(nowhere)?"}, "names no layer in any operation"),
        ({"pattern": "(", "num_ipus": 1}, "not a regular expression: missing )"),
        ({"pattern": REGEX, "num_ipus": 3}, "2 layers cannot be split into 3 stages; choose another --layer-regex"),
        ({"pattern": "bert", "num_ipus": 2}, "one layer cannot be split into 2 stages"),
        ({"num_ipus": 1000}, "layers cannot be split into 1000 stages"),
    ],
)
def test_questions_that_are_wrong(asked: dict[str, Any], said: str) -> None:
    # GIVEN a report; WHEN asked for what cannot be; THEN one sentence says why
    with pvanalyse.open_report(SAMPLES / "transformer_after") as report:
        with pytest.raises(UsageError, match=re.escape(said)):
            pipeline_split(report, **{"num_ipus": 2, **asked})


def test_several_ipus_are_refused_and_replicas_of_one_are_not(tmp_path: Path) -> None:
    # GIVEN programs on several IPUs, and on one whose replica is another; WHEN split; THEN only the second can be, and
    # as the first replica alone would be
    with pvanalyse.open_report(SAMPLES / "pipelined" / "training") as report:
        with pytest.raises(UsageError, match="the program is on 2 IPUs already"):
            pipeline_split(report, 2)
    twice = (
        ("programs", "control_code_by_tile"),
        ("programs", "code_bytes_by_tile"),
        ("compute_set_vertices", "count_by_tile"),
    )
    alone = altered(SAMPLES / "transformer_after", tmp_path / "alone", *_WITHOUT_CYCLES)
    replicated = altered(
        alone.parent, tmp_path / "replicated",
        *(f"UPDATE {name} SET {column} = twice({column})" for name, column in twice),
        "UPDATE target SET num_ipus = 2, num_replicas = 2, num_tiles = 2 * num_tiles",
        "INSERT INTO tile_vertices SELECT tile + 368, vertex_type_id, code_bytes FROM tile_vertices",
    )  # fmt: skip
    splits_of = []
    for path in (alone, replicated):
        with pvanalyse.open_report(path) as report:
            splits_of.append(pipeline_split(report, 2))
    assert splits_of[0].stages.equals(splits_of[1].stages)
    assert (splits_of[0].stages["vertex_state_bytes"] > 0).all()


_WITHOUT_CYCLES = (
    "DELETE FROM execution_steps",
    "UPDATE target SET relative_sync_delay_by_tile = NULL",
    "UPDATE programs SET estimated_cycles_by_tile = NULL",
    "UPDATE compute_sets SET estimated_cycles_by_tile = NULL",
)


@pytest.mark.parametrize(
    "table", ["lowered_variables", "program_lowered_variables", "equivalence_class_intervals", "target", "programs",
              "liveness_steps", "tile_vertices", "vertex_types", "compute_set_vertices"],
)  # fmt: skip
def test_what_was_not_captured_is_named(tmp_path: Path, table: str) -> None:
    # GIVEN a report without a table that the memory of a stage needs; WHEN split; THEN that is said, and how to get it
    altered(SAMPLES / "transformer_after", tmp_path, f"DELETE FROM {table}")
    with pvanalyse.open_report(tmp_path) as report, pytest.raises(NotCaptured) as caught:
        pipeline_split(report, 2, REGEX)
    assert caught.value.table == table
    assert "engine option" in caught.value.how


def test_values_that_cannot_be_are_refused_or_left_out(tmp_path: Path) -> None:
    # GIVEN a report that says it has fewer tiles than an IPU; WHEN split; THEN that is refused
    altered(SAMPLES / "transformer_after", tmp_path, "UPDATE target SET tiles_per_ipu = 2 * num_tiles")
    with pvanalyse.open_report(tmp_path) as report, pytest.raises(PvanalyseError, match="table 'target' cannot be"):
        pipeline_split(report, 2, REGEX)
    # GIVEN allocations on tiles that are not there, of no class, and uses by nobody and of nothing; WHEN split; THEN
    # nothing changes but for them
    wrong = (
        "INSERT INTO lowered_variables VALUES (-5, NULL, 'x', -1, NULL, 9000000, 8, 'variable', 'overflowed', 0, 0, 0, 4)",
        "INSERT INTO lowered_variables VALUES (-4, NULL, 'x', 99999, NULL, 9000000, 8, 'variable', 'overflowed', 1, 0, 0, NULL)",
        "INSERT INTO lowered_variables VALUES (-3, NULL, 'x', 1, NULL, 9000000, 8, 'variable', 'overflowed', 0, 0, 0, -77)",
        "INSERT INTO program_lowered_variables SELECT 15, lowered_variable_id FROM lowered_variables WHERE lowered_variable_id < 0",
        "INSERT INTO program_lowered_variables VALUES (-9, 1), (15, -99)",
        "INSERT INTO tile_vertices VALUES (-1, 0, 9000000), (99999, 0, 9000000), (0, -7, 9000000)",
    )
    altered(SAMPLES / "transformer_after", tmp_path, *wrong)
    with pvanalyse.open_report(tmp_path) as report:
        found = pipeline_split(report, 2, REGEX)
    altered(SAMPLES / "transformer_after", tmp_path)
    with pvanalyse.open_report(tmp_path) as report:
        expected = pipeline_split(report, 2, REGEX)
    assert found.stages.equals(expected.stages)
