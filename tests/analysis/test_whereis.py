"""Where a name is: every kind of thing that has it, against plain Python; and what is said when nothing has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pvanalyse import Report, open_report
from pvanalyse.analysis.whereis import Whereis, whereis
from pvanalyse.errors import NotCaptured, UsageError
from tests.conftest import SAMPLES
from tests.oracle import whereis as brute
from tests.oracle.frames import Captured, plain
from tests.oracle.operation_reports import make_operation_report
from tests.oracle.reports import write_profile

Case = tuple[Report, Captured]
SOME_SAMPLES = ("transformer_after", "no_lowered_variables", "lightweight")
WANTED = ("a", "layer_0", "layer_[01]", "/", "^x/$", "no such name", "日本", "it's\n", "Conv_1|Norm", "(a")


@pytest.fixture(scope="module", params=[*SOME_SAMPLES, *range(300, 318)])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    if isinstance(request.param, int):
        directory = make_operation_report(tmp_path_factory.mktemp("report") / "report", request.param).parent
    else:
        directory = SAMPLES / request.param
    with open_report(directory) as report:
        yield report, Captured(directory / "profile.pop")


@pytest.mark.parametrize("name", WANTED)
def test_what_has_a_name_is_that_of_plain_python(case: Case, name: str) -> None:
    # GIVEN a report and a part of a name, or a regular expression; WHEN it is looked for
    report, captured = case
    pattern = brute.pattern_of(captured, name)
    try:
        re.compile(pattern)
    except re.error:
        with pytest.raises(UsageError, match="not a regular expression"):
            whereis(report, name)
        return
    answer = whereis(report, name)
    # THEN the same things have it, of every kind that was captured
    assert answer.pattern == pattern
    for kind, table in (("programs", "programs"), ("compute_sets", "compute_sets"), ("vertex_types", "vertex_types")):
        if kind in answer.found:
            frame = answer.found[kind]
            assert sorted(frame[brute.TABLES[kind]].tolist()) == sorted(brute.ids(captured, table, pattern)), kind
        else:
            assert answer.missing[kind].table not in captured
    if "layers" in answer.found:
        layers = answer.found["layers"]
        counts = dict(zip(layers["layer"].tolist(), layers["num_contexts"].tolist(), strict=True))
        assert counts == brute.layers(captured, pattern)
    else:
        assert captured.contexts is None or not captured.contexts["contexts"]
    assert_allocations(answer, captured)


def assert_allocations(answer: Whereis, captured: Captured) -> None:
    """Variables and tiles are those of plain Python, in order."""
    if "lowered_variables" in captured:
        columns, found = plain(answer.found["variables"])
        assert columns == ["name", "variable_id", "bytes", "always_live_bytes", "num_tiles", "largest_tile",
                           "largest_tile_bytes"]  # fmt: skip
        expected = brute.variables(captured, answer.pattern)
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        assert [(row[2], row[0]) for row in found] == sorted(
            ((row[2], row[0]) for row in expected), key=lambda row: (-row[0], row[1])
        )
    else:
        assert answer.missing["variables"].table == "lowered_variables"
    columns, found = plain(answer.found["tiles"])
    assert columns == ["tile", "bytes", "variable_bytes", "vertex_code_bytes", "exchange_code_bytes"]
    assert found == brute.tiles(captured, answer.pattern)


def test_operations_are_those_whose_name_it_is_in() -> None:
    with open_report(SAMPLES / "transformer_after") as report:
        found = whereis(report, "attention/self").found["operations"]
        everything = report.operations.frame
        expected = everything[["attention/self" in name for name in everything["name"]]]
        assert plain(found) == plain(expected)
        assert len(expected) > 0


# ----------------------------------------------------------------------------------------------------- nothing has it
@pytest.mark.parametrize(
    ("name", "near"),
    [("Atention", "attention"), ("LAYERNORM", "LayerNorm"), ("encodr", "encoder"), ("Softmx", "Softmax")],
)
def test_names_that_are_near_are_found(name: str, near: str) -> None:
    with open_report(SAMPLES / "transformer_after") as report:
        answer = whereis(report, name)
    assert all(len(frame) == 0 for frame in answer.found.values())
    assert near in answer.nearest[:2]


def test_nothing_is_near_to_nonsense() -> None:
    with open_report(SAMPLES / "transformer_after") as report:
        assert list(whereis(report, "qqqqqqqqqqqqqqqqq").nearest) == []


def test_a_report_that_names_nothing_is_not_captured(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {})
    with open_report(tmp_path) as report, pytest.raises(NotCaptured):
        whereis(report, "a")
