"""Operations and what they cost: every frame, whole, against plain Python; and where totals must agree with others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import cbor2
import numpy as np
import pandas as pd
import pytest

from pvanalyse import Report, open_report
from pvanalyse.analysis.operation_costs import OperationCosts
from pvanalyse.errors import NotCaptured, UsageError
from tests.analysis.memory_cases import SAMPLE_NAMES
from tests.conftest import SAMPLES
from tests.oracle import operations as brute
from tests.oracle.execution_reports import make_execution_report
from tests.oracle.frames import Captured, assert_same, plain
from tests.oracle.memory_reports import make_memory_report
from tests.oracle.operation_reports import make_operation_report
from tests.oracle.reports import Rows, write_profile

MAKERS = {
    "operations": make_operation_report,
    "execution": make_execution_report,
    "memory": partial(make_memory_report, whole=True),
}
RANDOM = [
    f"{kind} {seed}" for kind, number in (("operations", 45), ("execution", 5), ("memory", 5)) for seed in range(number)
]
Case = tuple[Report, Captured]


@pytest.fixture(scope="module", params=[*SAMPLE_NAMES, *RANDOM])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    maker, _, seed = request.param.partition(" ")
    if seed:
        directory = MAKERS[maker](tmp_path_factory.mktemp("report") / "report", int(seed)).parent
    else:
        directory = SAMPLES / request.param
    captured = Captured(directory / "profile.pop")
    if not ("programs" in captured or "variables" in captured):
        pytest.skip("neither programs nor variables were captured")
    with open_report(directory) as report:
        yield report, captured


def test_operations_are_those_of_plain_python(case: Case) -> None:
    report, captured = case
    assert_same(plain(report.operations.frame), brute.by_operation(captured))
    assert report.operations.grouped_by == brute.Groups(captured).grouped_by


def test_discarded_operations_are_those_of_plain_python(case: Case) -> None:
    report, captured = case
    found = report.operations.by_operation(discarded=True)
    assert_same(plain(found), brute.by_operation(captured, discarded=True))


def test_operations_of_every_layer_are_those_of_plain_python(case: Case) -> None:
    report, captured = case
    if not report.captured("debug_contexts"):
        pytest.skip("there is no debug information")
    layers = list(dict.fromkeys(one["layer"] for one in captured.contexts["contexts"]))
    assert report.operations.layers()["layer"].tolist() == layers
    for layer in layers if len(captured.contexts["contexts"]) < 100 else ("poplibs",):
        for discarded in (False, True):
            found = report.operations.by_operation(layer, discarded)
            assert_same(plain(found), brute.by_operation(captured, layer, discarded), (layer, discarded))


def test_what_is_in_no_operation_is_that_of_plain_python(case: Case) -> None:
    report, captured = case
    assert report.operations.outside() == brute.outside(captured)


@pytest.mark.parametrize(("depth", "pattern"), [(1, None), (2, None), (1, r"layer_(\d)"), (1, "(a|o)")])
def test_modules_are_those_of_plain_python(case: Case, depth: int, pattern: str | None) -> None:
    report, captured = case
    assert_same(plain(report.operations.by_module(depth, pattern)), brute.by_module(captured, depth, pattern))


@pytest.mark.parametrize("per", ["line", "file"])
def test_lines_and_files_are_those_of_plain_python(case: Case, per: str) -> None:
    report, captured = case
    assert_same(plain(report.operations.by_source(per)), brute.by_source(captured, per))  # type: ignore[arg-type]


def test_tensors_are_those_of_plain_python(case: Case) -> None:
    report, captured = case
    assert_same(plain(report.operations.tensors()), brute.tensors(captured))


def test_chains_are_those_of_plain_python(case: Case) -> None:
    report, captured = case
    if not report.captured("debug_contexts"):
        pytest.skip("there is no debug information")
    contexts, of_set = brute.Contexts(captured), brute.contexts_of_sets(captured)
    for row in captured.get("programs", [])[:30]:
        identity = row["debug_context_id"]
        identity = of_set.get(row["compute_set_id"]) if identity is None else identity
        assert chain(report.operations.chain(program=row["program_id"])) == brute.chain(contexts, identity)
    for row in captured.get("variables", [])[:30]:
        expected = brute.chain(contexts, row["debug_context_id"])
        assert chain(report.operations.chain(variable=row["variable_id"])) == expected


def chain(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return plain(frame[["debug_context_id", "layer", "name", "file"]])[1]


# ------------------------------------------------------------------------------------------------ totals of other parts
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_costs_add_up_to_what_other_parts_say(name: str) -> None:
    with open_report(SAMPLES / name) as report:
        operations, rest = report.operations.frame, report.operations.outside()
        metrics = dict(report.metrics().items())

        def total(column: str) -> int | None:
            return None if rest[column] is None else int(operations[column].sum()) + int(rest[column] or 0)

        assert operations["num_programs"].sum() + rest["num_programs"] == report.count("programs")
        assert operations["num_variables"].sum() + rest["num_variables"] == report.count("variables")
        assert total("executions") == (report.count("execution_steps") or None)
        cycles = [value for key, value in metrics.items() if key.startswith("execution.step_cycles.")]
        assert total("cycles") == (sum(cycles) if cycles else None)
        assert total("peak_bytes") == metrics["liveness.peak_not_always_live"]
        assert total("exchange_code_bytes") == report.memory.exchanges()["code_bytes"].sum()
        tree = report.programs.tree().drop_duplicates("program_id")
        assert total("control_code_bytes") == tree["own_control_code_bytes"].sum()
        if report.captured("lowered_variables"):
            variables = report.memory.variables()
            assert total("variable_bytes") == variables["bytes"].sum()
            assert total("always_live_bytes") == variables["always_live_bytes"].sum()


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_vertices_of_everything_together_are_those_of_memory(name: str) -> None:
    # GIVEN a report; WHEN everything is put into one group
    with open_report(SAMPLES / name) as report:
        programs, variables = (np.zeros(report.count(table), np.int64) for table in ("programs", "variables"))
        costs = OperationCosts(report).of_groups(programs, variables, 1).iloc[0]
        vertices = report.memory.vertices()
    # THEN its vertex code is there once
    assert costs["vertex_code_bytes"] == vertices["code_bytes"].sum()
    assert costs["vertex_state_bytes"] == vertices["state_bytes"].sum()


@pytest.mark.parametrize("name", ["transformer_after", "pipelined/training"])
def test_cycles_are_those_of_the_execution_by_operation(name: str) -> None:
    with open_report(SAMPLES / name) as report:
        mine = report.operations.frame.groupby("name")["cycles"].sum()
        theirs = report.execution.by_operation()
        theirs = theirs[theirs["origin"] == "debug.cbor"].groupby("operation")["cycles"].sum()
    mine = mine[mine > 0]
    assert mine.to_dict() == theirs.loc[mine.index].to_dict()
    assert mine.sum() == theirs.sum()


# ---------------------------------------------------------------------------------------------------- what can be read
def write(directory: Path, contexts: list[dict[str, object]], **rows: Rows) -> Path:
    target = {"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": 2,
              "num_tiles": 2, "bytes_per_tile": 100, "clock_frequency": 1e9}  # fmt: skip
    write_profile(directory / "profile.pop", {"target": [target], **rows})
    document = {"contexts": contexts, "stringTable": ["", "inner", "outer"]}
    (directory / "debug.cbor").write_bytes(cbor2.dumps(document))
    return directory


def program(identity: int, context: int | None, name: str = "") -> dict[str, object]:
    return {"program_id": identity, "type": "OnTileExecute", "name": name, "debug_context_id": context}


def test_a_discarded_operation_is_hidden_unless_asked_for(tmp_path: Path) -> None:
    # GIVEN an operation that PopART discarded, of which nothing was made, and one of which a program was
    discarded = {"id": 1, "layer": "popart", "name": 1, "category": "op", "discard": 1}
    kept = {"id": 2, "layer": "popart", "name": 2, "category": "op", "discard": 0}
    with open_report(write(tmp_path, [discarded, kept], programs=[program(7, 2)])) as report:
        assert report.operations.frame["name"].tolist() == ["outer"]
        assert report.operations.by_operation(discarded=True)["name"].tolist() == ["outer", "inner"]


def test_what_a_discarded_operation_left_goes_to_the_one_above_it(tmp_path: Path) -> None:
    discarded = {"id": 1, "parentId": 2, "layer": "popart", "name": 1, "category": "op", "discard": 1}
    above = {"id": 2, "layer": "popart", "name": 2, "category": "op"}
    with open_report(write(tmp_path, [discarded, above], programs=[program(7, 1)])) as report:
        assert report.operations.by_layer("popart")["name"].tolist() == ["outer"]
        assert report.operations.by_operation("popart", discarded=True)["name"].tolist() == ["inner"]


def test_names_take_the_place_of_a_debug_cbor_of_another_program(tmp_path: Path) -> None:
    contexts = [{"id": 1, "layer": "onnx", "name": 1}]
    with open_report(
        write(tmp_path, contexts, programs=[program(1, 55, "a/b/c"), program(2, None, "a/b/d")])
    ) as report:
        assert report.operations.grouped_by == "name paths"
        assert plain(report.operations.frame[["name", "num_programs"]])[1] == [("a/b", 2)]


def test_a_chain_deeper_than_recursion_goes_up_to_its_end(tmp_path: Path) -> None:
    contexts: list[dict[str, object]] = [
        {"id": at, "parentId": at + 1, "layer": "poplar", "name": 1} for at in range(1, 30_000)
    ]
    contexts.append({"id": 30_000, "layer": "onnx", "name": 2})
    with open_report(write(tmp_path, contexts, programs=[program(7, 1)])) as report:
        assert report.operations.frame["name"].tolist() == ["outer"]
        assert len(report.operations.chain(program=7)) == 30_000


# ------------------------------------------------------------------------------------------------ what cannot be asked
def test_wrong_questions_are_refused() -> None:
    with open_report(SAMPLES / "replicated") as report:
        operations = report.operations
        questions = {
            "there is no layer 'xla_op' in the debug information; there are: poplar,": lambda: operations.by_layer(
                "xla_op"
            ),
            "the depth of a module must be at least 1, not 0": lambda: operations.by_module(0),
            "not a regular expression": lambda: operations.find("("),
            "source is told apart by line or by file, not by 'word'": lambda: operations.by_source("word"),  # type: ignore[arg-type]
            "name one of them": lambda: operations.chain(),
            "a chain is that of a program or of a variable": lambda: operations.chain(1, 1),
            "there is no program 'x'": lambda: operations.chain(program="x"),
            "there is no variable -1": lambda: operations.chain(variable=-1),
        }
        for sentence, ask in questions.items():
            with pytest.raises(UsageError, match=re.escape(sentence)):
                ask()


def test_layers_and_chains_need_debug_information(tmp_path: Path) -> None:
    write(tmp_path, [], programs=[program(1, None, "a")])
    (tmp_path / "debug.cbor").unlink()
    with open_report(tmp_path) as report:
        for ask in (report.operations.layers, lambda: report.operations.by_layer("onnx"),
                    lambda: report.operations.chain(program=1)):  # fmt: skip
            with pytest.raises(NotCaptured, match=re.escape("'debug_contexts' was not captured")):
                ask()


def test_a_report_without_programs_and_variables_has_no_operations(tmp_path: Path) -> None:
    with open_report(write(tmp_path, [])) as report, pytest.raises(NotCaptured, match="'programs'"):
        _ = report.operations.frame
