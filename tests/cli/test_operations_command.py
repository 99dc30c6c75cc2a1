"""``pvanalyse operations``: what it prints, in every format, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cbor2
import pandas as pd
import pytest

from pvanalyse import open_report
from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal
from tests.conftest import SAMPLES
from tests.oracle.frames import plain
from tests.oracle.reports import write_profile
from tests.render.hostile import NAMES

SAMPLE = SAMPLES / "transformer_after"
ASK = ("operations", str(SAMPLE))
TARGET = {"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": 1, "num_tiles": 1,
          "bytes_per_tile": 638_976, "clock_frequency": 1e9}  # fmt: skip


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    columns, rows = plain(frame)
    return [dict(zip(map(str, columns), row, strict=True)) for row in rows]


def make(directory: Path, name: str, *, debug: bool = False) -> str:
    rows = [{"program_id": 1, "type": "Sequence", "name": f"{name}/x", "debug_context_id": 1 if debug else None}]
    write_profile(directory / "profile.pop", {"target": [TARGET], "programs": rows})
    if debug:
        context = {"id": 1, "layer": name, "name": 0, "location": {"fileName": 0, "functionName": 0, "lineNumber": 3}}
        (directory / "debug.cbor").write_bytes(cbor2.dumps({"contexts": [context], "stringTable": [name]}))
    return str(directory)


def test_text(capsys: Capture) -> None:
    # GIVEN a report; WHEN asked for the modules of its encoder; THEN this is all there is to read
    assert answer(capsys, *ASK, "--by", "module", "--match", r"bert/encoder/(layer_\d+)") == (
        f"""\
{SAMPLE}
56 operations: 40 of poptorch, 11 of poplibs, 5 of poplar.

Modules, matching 'bert/encoder/(layer_\\d+)'
  Module    Operations       Code   Variables   At the peak       Cycles
  ──────────────────────────────────────────────────────────────────────
  layer_1           23   2.87 MiB    65.6 MiB      30.4 MiB   28,242,573
  layer_0           23   2.34 MiB    58.6 MiB      12.2 MiB   24,917,607
"""
    )


ANSWERS = {
    (): lambda one: one.frame.sort_values("cycles", ascending=False, kind="stable"),
    ("--sort", "order"): lambda one: one.frame,
    ("--sort", "name"): lambda one: one.frame.sort_values("name", kind="stable"),
    ("--sort", "peak"): lambda one: one.frame.sort_values("peak_bytes", ascending=False, kind="stable"),
    ("--sort", "order", "--match", "Norm"): lambda one: one.find("Norm"),
    ("--sort", "order", "--layer", "poplibs"): lambda one: one.by_layer("poplibs"),
    ("--sort", "order", "--layer", "popart", "--discarded"): lambda one: one.by_operation("popart", discarded=True),
    ("--sort", "order", "--by", "module"): lambda one: one.by_module(),
    ("--sort", "order", "--by", "module", "--depth", "3"): lambda one: one.by_module(3),
    ("--sort", "order", "--by", "module", "--match", r"layer_(\d)"): lambda one: one.by_module(pattern=r"layer_(\d)"),
    ("--sort", "order", "--by", "source"): lambda one: one.by_source(),
    ("--sort", "order", "--by", "source", "--match", "Norm"): lambda one: one.by_source(pattern="Norm"),
    ("--sort", "order", "--by", "file"): lambda one: one.by_source("file"),
    ("--by", "layer"): lambda one: one.layers(),
    ("--show", "tensors"): lambda one: one.tensors(),
    ("--show", "tensors", "--match", "Norm"): lambda one: one.tensors("Norm"),
    ("--sort", "order", "--show", "code", "--top", "3"): lambda one: one.frame.head(3),
}


@pytest.mark.parametrize("options", ANSWERS, ids=" ".join)
def test_csv_and_json_are_the_analysis(capsys: Capture, options: tuple[str, ...]) -> None:
    with open_report(SAMPLE) as report:
        expected = records(ANSWERS[options](report.operations))
        rest = report.operations.outside()
    assert answer_csv(capsys, *ASK, *options) == [as_text(row) for row in expected]
    found = answer_json(capsys, *ASK, *options)
    layer = options[options.index("--layer") + 1] if "--layer" in options else None
    by = options[options.index("--by") + 1] if "--by" in options else "operation"
    key = "tensors" if "tensors" in options else f"{by}s"
    assert found.pop("outside", rest) == rest or layer is not None
    assert found == {"report": str(SAMPLE), "grouped_by": "debug contexts", "layer": layer, key: expected,
                     "not_captured": []}  # fmt: skip


def test_what_is_in_no_operation_is_said_where_all_are_shown(capsys: Capture) -> None:
    assert "In no operation\n  Programs   69\n" in answer(capsys, *ASK)
    assert "In no operation" not in answer(capsys, *ASK, "--match", "Norm")
    assert "In no operation" not in answer(capsys, *ASK, "--by", "module")


@pytest.mark.parametrize("show", ["summary", "code", "memory", "execution"])
@pytest.mark.parametrize("by", ["operation", "module", "source", "file"])
def test_people_see_the_costs_that_they_ask_for(capsys: Capture, show: str, by: str) -> None:
    headings = {"summary": "At the peak", "code": "Of exchanges", "memory": "Always live", "execution": "Executions"}
    text = answer(capsys, *ASK, "--show", show, "--by", by)
    assert [name for name, heading in headings.items() if heading in text and name != "memory"] == (
        [show] if show != "memory" else ["summary"]  # memory shows the peak, too
    )
    assert ("Always live" in text) == (show == "memory")


def test_without_debug_information_names_are_told_apart_and_that_is_said(capsys: Capture, tmp_path: Path) -> None:
    report = make(tmp_path, "model/layer")
    text = answer(capsys, "operations", report)
    assert (
        "1 operation. Without debug information, operations are what the names of programs and variables begin" in text
    )
    assert "  model/layer\n" in text
    assert answer_json(capsys, "operations", report)["grouped_by"] == "name paths"


def test_nothing_found_is_said(capsys: Capture) -> None:
    assert "There are none whose name matches 'no such name'." in answer(capsys, *ASK, "--match", "no such name")


@pytest.mark.parametrize(
    ("code", "options", "sentence"),
    [
        (2, ("--layer", "xla_op"), "there is no layer 'xla_op' in the debug information; there are: poplar, poptorch"),
        (2, ("--depth", "2"), "--depth says what a module is: use it with '--by module'"),
        (2, ("--by", "module", "--depth", "0"), "0 is not in the range x>=1"),
        (2, ("--show", "tensors", "--by", "file"), "--show tensors is by operation"),
        (2, ("--by", "layer", "--sort", "name"), "--by layer only counts"),
        (2, ("--by", "colour"), "'colour' is not one of 'operation', 'layer', 'module', 'source', 'file'"),
        (2, ("--match", "a("), "--match: not a regular expression: missing ), unterminated subpattern"),
    ],
)
def test_wrong_questions_are_refused(capsys: Capture, code: int, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(capsys, code, *ASK, *options)


def test_what_was_not_captured_is_said(capsys: Capture, tmp_path: Path) -> None:
    report = make(tmp_path, "a")
    assert "'debug_contexts' was not captured" in refusal(capsys, 4, "operations", report, "--by", "layer")
    assert "'debug_contexts' was not captured" in refusal(capsys, 4, "operations", report, "--layer", "onnx")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "surrogate"])
@pytest.mark.parametrize("debug", [False, True])
def test_names_do_no_harm(capsys: Capture, tmp_path: Path, name: str, debug: bool) -> None:
    report = make(tmp_path, NAMES[name], debug=debug)
    for form in ("text", "markdown"):
        assert all(line.isprintable() for line in answer(capsys, "operations", report, "--format", form).split("\n"))
    found = json.loads(answer(capsys, "operations", report, "--format", "json"))
    # An operation without a name is none; a program without one is what is left of it.
    expected = [NAMES[name] or "/x"] if NAMES[name] or not debug else []
    assert [row["name"] for row in found["operations"]] == expected
