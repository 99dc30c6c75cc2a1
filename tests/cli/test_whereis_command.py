"""``pvanalyse whereis``: what it prints, in every format, and what it says when nothing has the name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pvanalyse import open_report
from pvanalyse.analysis.whereis import whereis
from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal
from tests.cli.test_operations_command import make, records
from tests.conftest import SAMPLES
from tests.oracle.reports import write_profile
from tests.render.hostile import NAMES

SAMPLE = SAMPLES / "transformer_after"
ASK = ("whereis", str(SAMPLE))
KINDS = ("layers", "operations", "programs", "compute-sets", "vertex-types", "variables", "tiles")


def test_text(capsys: Capture) -> None:
    # GIVEN a report; WHEN asked for a name; THEN this is all there is to read
    assert answer(capsys, *ASK, "layer_1/attention/self/scores", "--show", "programs", "--top", "2") == (
        f"""\
{SAMPLE}
'layer_1/attention/self/scores' is in the names of 2 operations, 6 programs, 3 compute sets and 2 variables: 14.2 MiB on
180 tiles and 4,420,248 cycles.

Programs, each by itself
  Id   Type            Program                                     Control code   Exchange code   Executions      Cycles
  ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  45   DoExchange      bert/encoder/lay…ouped/Conv_1/ExchangePre       2.11 KiB        62.7 KiB           24      34,608
  46   OnTileExecute   bert/encoder/lay…lGrouped/Conv_1/Convolve       7.03 KiB             0 B           24   1,444,128

  The first 2 of 6; --top shows more.
"""
    )


@pytest.mark.parametrize("name", ["layer_0/attention", "Norm$", "Convolve|Softmax", "no such name"])
def test_json_has_everything(capsys: Capture, name: str) -> None:
    with open_report(SAMPLE) as report:
        expected = whereis(report, name)
    found = answer_json(capsys, *ASK, name)
    assert found == {
        "report": str(SAMPLE), "name": name, "pattern": expected.pattern, "nearest": list(expected.nearest),
        **{kind: records(frame) for kind, frame in expected.found.items()}, "not_captured": [],
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["layer_0", "Convolution", "no such name"])
def test_csv_is_a_table_of_what_is_asked_for(capsys: Capture, kind: str, name: str) -> None:
    with open_report(SAMPLE) as report:
        frame = whereis(report, name).found[kind.replace("-", "_")]
    assert answer_csv(capsys, *ASK, name, "--show", kind) == [as_text(row) for row in records(frame)]
    header = answer(capsys, *ASK, name, "--show", kind, "--format", "csv").splitlines()[0]
    assert header == ",".join(frame.columns)


def test_only_what_has_the_name_is_shown_unless_asked_for(capsys: Capture) -> None:
    text = answer(capsys, *ASK, "layer_0/attention")
    assert "Vertex types" not in text
    assert "There are none." in answer(capsys, *ASK, "layer_0/attention", "--show", "vertex-types")


def test_the_sentence_adds_up(capsys: Capture) -> None:
    with open_report(SAMPLE) as report:
        found = whereis(report, "Convolve").found
    sentence = " ".join(answer(capsys, *ASK, "Convolve", "--units", "bytes").split())
    numbers = [len(found["programs"]), len(found["compute_sets"])]
    assert f"'Convolve' is in the names of {numbers[0]} programs and {numbers[1]} compute sets" in sentence
    assert f"{found['programs']['own_cycles'].sum():,} cycles." in sentence


def test_the_nearest_names_are_shown_when_nothing_has_it(capsys: Capture) -> None:
    assert "Nothing has a name like 'Atention'; near are: attention." in answer(capsys, *ASK, "Atention")
    assert "Nothing has a name like 'qqqqqqqqqqqqq'." in answer(capsys, *ASK, "qqqqqqqqqqqqq")


def test_what_was_not_captured_is_said(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN a report without lowered variables
    report = str(SAMPLES / "no_lowered_variables")
    found = answer_json(capsys, "whereis", report, "MatMul")
    assert [row["part"] for row in found["not_captured"]] == ["variables"]
    assert "autoReport.outputLoweredVars" in answer(capsys, "whereis", report, "MatMul")
    assert "'lowered_variables' was not captured" in refusal(capsys, 4, "whereis", report, "a", "--show", "variables")
    # AND one that names nothing
    write_profile(tmp_path / "profile.pop", {})
    assert "'programs' was not captured" in refusal(capsys, 4, "whereis", str(tmp_path), "a")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("(no",), "not a regular expression: missing ), unterminated subpattern"),
        ((), "Missing argument 'NAME'"),
        (("a", "--show", "colours"), "'colours' is not one of 'layers', 'operations'"),
    ],
)
def test_wrong_questions_are_refused(capsys: Capture, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(capsys, 2, *ASK, *arguments)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "surrogate"])
def test_names_do_no_harm(capsys: Capture, tmp_path: Path, name: str) -> None:
    report = make(tmp_path, NAMES[name], debug=True)
    for wanted in (NAMES[name], "no such name"):
        for form in ("text", "markdown"):
            text = answer(capsys, "whereis", "--format", form, "--", report, wanted)
            assert all(line.isprintable() for line in text.split("\n"))
    found = json.loads(answer(capsys, "whereis", "--format", "json", "--", report, f"{NAMES[name]}/x"))
    assert [row["name"] for row in found["programs"]] == [f"{NAMES[name]}/x"]
