"""Where things came from: chains of debug contexts, against the CBOR read in plain Python."""

from __future__ import annotations

from pathlib import Path

import cbor2
import pytest

from pvanalyse import open_report
from pvanalyse.analysis.origins import Origins
from tests.conftest import SAMPLES
from tests.oracle.frames import Captured
from tests.oracle.liveness import debug_chain
from tests.oracle.memory_reports import make_memory_report
from tests.oracle.reports import write_profile


def assert_agrees(directory: Path) -> None:
    """Every context's chain, location and operation are those of a plain walk."""
    captured = Captured(directory / "profile.pop")
    ids = [context["id"] for context in captured.contexts["contexts"]]
    with open_report(directory) as report:
        origins = Origins(report)
        for identity in [*ids, None, -1, 10**6]:
            expected = debug_chain(captured, identity)
            chain = origins.chain(identity)
            assert [(one.debug_context_id, one.name or "", one.layer) for one in chain] == [
                (one["id"], one["name"], one["layer"]) for one in expected
            ]
            places = [one["place"] for one in expected if one["place"]]
            assert origins.location(identity) == (places[-1] if places else "")
            names = [one["name"] for one in expected if one["name"]]
            assert origins.operation(identity) == (names[-1] if names else "")


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_are_those_of_a_plain_walk(tmp_path: Path, seed: int) -> None:
    # GIVEN contexts whose parents are absent, unknown, themselves, or in a circle; THEN every walk ends as it must
    assert_agrees(make_memory_report(tmp_path / "report", seed, whole=True).parent)


@pytest.mark.parametrize("sample", ["transformer_after", "replicated", "lightweight"])
def test_chains_of_samples_are_those_of_a_plain_walk(sample: str) -> None:
    assert_agrees(SAMPLES / sample)


def test_the_line_that_the_user_wrote_is_found() -> None:
    with open_report(SAMPLES / "transformer_after") as report:
        origins = Origins(report)
        name = "bert/encoder/layer_1/attention/self/scores:0"
        variables = report.arrow("variables").to_pylist()
        [context] = [row["debug_context_id"] for row in variables if row["name"] == name]
        assert origins.location(context).endswith("model/attention.py:88")


def test_without_debug_information_every_answer_is_empty(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {})
    with open_report(tmp_path) as report:
        origins = Origins(report)
        assert (origins.chain(1), origins.location(1), origins.operation(1)) == ([], "", "")
        assert (origins.chain(None), origins.location(None), origins.operation(None)) == ([], "", "")


def test_a_long_chain_is_walked_to_its_end(tmp_path: Path) -> None:
    # GIVEN a chain longer than Python's recursion allows, whose outermost context alone has a line
    write_profile(tmp_path / "profile.pop", {})
    contexts = [{"id": at, "parentId": at + 1, "name": 0, "layer": "poplar"} for at in range(1, 20_000)]
    contexts.append({"id": 20_000, "name": 1, "layer": "onnx",
                     "location": {"fileName": 2, "functionName": 0, "lineNumber": 3}})  # fmt: skip
    document = {"contexts": contexts, "stringTable": ["inner", "outer", "user.py"]}
    (tmp_path / "debug.cbor").write_bytes(cbor2.dumps(document))
    with open_report(tmp_path) as report:
        origins = Origins(report)
        assert len(origins.chain(1)) == 20_000
        assert (origins.operation(1), origins.location(1)) == ("outer", "user.py:3")


def test_of_two_contexts_of_one_id_the_first_counts(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {})
    contexts = [{"id": 1, "name": name, "layer": "poplar"} for name in (0, 1)]
    document = {"contexts": contexts, "stringTable": ["first", "second"]}
    (tmp_path / "debug.cbor").write_bytes(cbor2.dumps(document))
    with open_report(tmp_path) as report:
        assert Origins(report).operation(1) == "first"
