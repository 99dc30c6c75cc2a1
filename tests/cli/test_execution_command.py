"""``pvanalyse execution`` against the analysis and the file: every part, every format, every refusal."""

from __future__ import annotations

from collections import Counter

import pytest

from pvanalyse.cli.execution_command import _PARTS, _USUAL
from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal, rows
from tests.conftest import SAMPLES

REPORT = SAMPLES / "pipelined" / "training"
NO_EXECUTION = SAMPLES / "out_of_memory"


def test_the_usual_parts(capsys: Capture) -> None:
    # GIVEN a report that captured all; WHEN asked as JSON; THEN every usual part is there and says what it is about
    data = answer_json(capsys, "execution", str(REPORT))
    parts = [name.replace("-", "_") for name in _USUAL]
    assert list(data) == ["report", "intervals", "runs_chosen", "ipus_chosen", *parts, "not_captured"]
    assert (data["intervals"], data["runs_chosen"], data["not_captured"]) == ("steps", None, [])
    assert all(data[part] for part in parts)


@pytest.mark.parametrize("words", [[], ["--run", "1"], ["--ipu", "1"], ["--run", "1", "--run", "2", "--ipu", "0"]])
def test_types_are_those_of_the_file(capsys: Capture, words: list[str]) -> None:
    # GIVEN a choice of runs and IPUs; THEN cycles by type are those of the chosen rows
    data = answer_json(capsys, "execution", str(REPORT), "--show", "types", *words)
    chosen = {name: [int(value) for one, value in zip(words[::2], words[1::2], strict=True) if one == name]
              for name in ("--run", "--ipu")}  # fmt: skip
    cycles: Counter[str] = Counter()
    query = """SELECT type, run_id, ipu, cycles FROM execution_step_ipus JOIN execution_steps USING (step_id)
        JOIN programs USING (program_id)"""
    for row in rows(REPORT, query):
        if row["run_id"] in (chosen["--run"] or [row["run_id"]]) and row["ipu"] in (chosen["--ipu"] or [row["ipu"]]):
            cycles[row["type"]] += row["cycles"]
    assert {row["type"]: row["cycles"] for row in data["types"]} == cycles
    assert (data["runs_chosen"] or [], data["ipus_chosen"] or []) == (chosen["--run"], chosen["--ipu"])


@pytest.mark.parametrize("part", _PARTS)
def test_every_part_alone(capsys: Capture, part: str) -> None:
    # GIVEN one part; THEN CSV has the rows of JSON, and people see a heading
    words = ("execution", str(REPORT), "--show", part, "--top", "7")
    found = answer_json(capsys, *words)[part.replace("-", "_")]
    assert 0 < len(found) <= 7
    assert answer_csv(capsys, *words) == [as_text(row) for row in found]
    assert len(answer(capsys, *words).splitlines()) > len(found)


def test_match_and_prefix(capsys: Capture) -> None:
    data = answer_json(capsys, "execution", str(REPORT), "--match", "Softmax")
    names = {row["name"] for row in rows(REPORT, "SELECT name FROM programs") if "Softmax" in row["name"]}
    assert {row["name"] for row in data["programs"]} == names
    data = answer_json(capsys, "execution", str(REPORT), "--prefix", "bert/encoder", "--depth", "1")
    assert {row["prefix"] for row in data["prefixes"]} == {"bert/encoder/layer_0", "bert/encoder/layer_1"}


def test_the_verdict_points_out_the_first_run(capsys: Capture) -> None:
    (longest,) = rows(REPORT, """SELECT MAX(cycles) AS cycles FROM execution_step_ipus JOIN execution_steps
        USING (step_id) JOIN programs USING (program_id) WHERE type = 'StreamCopyBegin'""")  # fmt: skip
    said = " ".join(answer(capsys, "execution", str(REPORT)).split())
    assert f"Run 0 is distorted: one StreamCopyBegin waited {longest['cycles']:,} cycles for the host" in said
    assert "distorted" not in answer(capsys, "execution", str(REPORT), "--run", "1", "--run", "2")


def test_refusals(capsys: Capture) -> None:
    assert "was not captured" in refusal(capsys, 4, "execution", str(NO_EXECUTION))
    assert "there is no run 9" in refusal(capsys, 2, "execution", str(REPORT), "--run", "9")
    assert "there is no IPU 7" in refusal(capsys, 2, "execution", str(REPORT), "--ipu", "7")
    assert "not a regular expression" in refusal(capsys, 2, "execution", str(REPORT), "--match", "(")
    assert "--match is about" in refusal(capsys, 2, "execution", str(REPORT), "--match", "a", "--show", "runs")
