"""``pvanalyse insights``: what it prints, in every format, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pvanalyse import open_report
from pvanalyse.analysis.insights import SEVERITIES, insights
from pvanalyse.cli import main
from pvanalyse.cli.insights_command import command
from tests.conftest import SAMPLES
from tests.render.hostile import NAMES

FULL = str(SAMPLES / "out_of_memory")
Capture = pytest.CaptureFixture[str]


def answer(capsys: Capture, *argv: str) -> str:
    """Run the command, which must succeed and say nothing else; return its answer."""
    code = main(["insights", *argv])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def refusal(capsys: Capture, *argv: str) -> str:
    """Run the command, which must be refused as wrong usage; return what it says about it."""
    assert main(["insights", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_the_severities_of_the_option_are_those_there_are() -> None:
    option = next(one for one in command.params if one.name == "min_severity")
    assert tuple(option.type.choices) == SEVERITIES  # type: ignore[attr-defined]


def test_text(capsys: Capture) -> None:
    # GIVEN a report that does not fit; WHEN judged by two rules; THEN this is all there is to read
    text = answer(capsys, FULL, "--rule", "overflow-spread", "--rule", "gaps")
    assert text == (
        f"""\
{FULL}
416 of 1,472 tiles do not fit, yet the fullest IPU that has such tiles, 0, uses only 56.9 % of its memory. (1 warning.)

Warning: overflow-spread
  Finding              416 of 1,472 tiles do not fit, yet the fullest IPU that has such tiles, 0, uses only 56.9 % of
                       its memory.
  Tiles out of memory  416
  Number of tiles      1,472
  IPUs out of memory   1
  Fullest IPU          0
  Used                 511 MiB
  Used, share          56.9 %
  Capacity             897 MiB
  Advice               There is room on other tiles of the same IPU, so it is the mapping: spread the tensors that fill
                       the tiles over more of them (poputil::mapTensorLinearly, Graph::setTileMapping), or split large
                       operations.

Evaluated, with nothing to say
  gaps
"""
    )


def test_json_is_that_of_the_api(capsys: Capture) -> None:
    # GIVEN what the API finds
    with open_report(FULL) as report:
        expected = asdict(insights(report, profile_bytes=(SAMPLES / "out_of_memory" / "profile.pop").stat().st_size))
    # WHEN JSON is asked for; THEN it is the same, but for the templates of the titles
    data = json.loads(answer(capsys, FULL, "-f", "json"))
    for one in expected["found"]:
        del one["template"]
    assert data == json.loads(json.dumps({"report": FULL, "insights": expected.pop("found"), **expected}))


def test_csv_has_a_row_for_each_value(capsys: Capture) -> None:
    data = json.loads(answer(capsys, FULL, "-f", "json"))
    rows = list(csv.DictReader(StringIO(answer(capsys, FULL, "-f", "csv"), newline=""), strict=True))
    # THEN everything that JSON has is a row
    expected: list[tuple[str, ...]] = []
    for one in data["insights"]:
        head = (one["severity"], one["rule"])
        expected.append((*head, "title", one["title"], ""))
        expected += [(*head, each["name"], str(each["value"]), each["unit"]) for each in one["evidence"]]
        if one["saving_bytes"] is not None:
            expected.append((*head, "saving_bytes", str(one["saving_bytes"]), "bytes"))
        expected.append((*head, "advice", one["advice"], ""))
        expected += [(*head, "option", option, "") for option in one["options"]]
        expected += [(*head, "tile", str(tile), "tile") for tile in one["tiles"]]
        expected += [(*head, "variable", name, "") for name in one["variables"]]
    assert [tuple(row.values()) for row in rows] == expected


def test_markdown_has_a_heading_for_each_finding(capsys: Capture) -> None:
    data = json.loads(answer(capsys, FULL, "-f", "json"))
    text = answer(capsys, FULL, "-f", "markdown")
    headings = [f"{one['severity'].capitalize()}: {one['rule']}" for one in data["insights"]]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [*headings, "Evaluated, with nothing to say"]


def test_units_change_what_people_read_only(capsys: Capture) -> None:
    shown = {units: answer(capsys, FULL, "--units", units) for units in ("binary", "si", "bytes")}
    first = {units: text.splitlines()[1] for units, text in shown.items()}
    over = "416 of 1,472 tiles do not fit; tile 947 is over by"
    assert {units: line.partition(". (")[0] for units, line in first.items()} == {
        "binary": f"{over} 268 KiB", "si": f"{over} 275 kB", "bytes": f"{over} 274,896 B"
    }  # fmt: skip
    for format_ in ("json", "csv"):
        texts = {answer(capsys, FULL, "-f", format_, "--units", units) for units in shown}
        assert len(texts) == 1
        assert re.findall(r"\d [kKMGT]?i?B\b|\d %", texts.pop()) == []


def test_only_what_is_severe_enough(capsys: Capture) -> None:
    every = json.loads(answer(capsys, FULL, "-f", "json"))["insights"]
    some = json.loads(answer(capsys, FULL, "-f", "json", "--min-severity", "warning"))
    assert some["insights"] == [one for one in every if one["severity"] in ("critical", "warning")]
    assert some["milder"] == [one["rule"] for one in every if one["severity"] in ("advice", "info")]


def test_nothing_severe_enough(capsys: Capture) -> None:
    text = answer(capsys, str(SAMPLES / "lightweight"), "--rule", "fit", "--min-severity", "critical")
    assert text.splitlines()[1:] == ["Nothing found.", "", "Left out, because milder", "  fit"]


def test_a_limit(capsys: Capture) -> None:
    arguments = [FULL, "--rule", "gaps", "-f", "json"]
    assert json.loads(answer(capsys, *arguments))["nothing_found"] == ["gaps"]
    data = json.loads(answer(capsys, *arguments, "--limit", "gaps=0.001", "--limit", "shown=2"))
    assert len(data["insights"][0]["tiles"]) == 2


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--limit", "gaps", "--limit: 'gaps' lacks a number, as in gaps=0.1"),
        ("--limit", "gaps=much", "--limit: 'gaps=much' is not NAME=NUMBER"),
        ("--limit", "gap=1", "there is no limit 'gap'; there are: little_headroom, "),
        ("--rule", "fat", "there is no rule 'fat'; there are: fit, overflow-spread, "),
        ("--min-severity", "fatal", "'fatal' is not one of 'info', 'advice', 'warning', 'critical'"),
    ],
)
def test_wrong_usage(capsys: Capture, option: str, value: str, problem: str) -> None:
    assert problem in refusal(capsys, FULL, option, value)


def test_an_archive_alone(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN a report with nothing that a rule looks at; WHEN judged
    shutil.copy(SAMPLES / "pipelined" / "training" / "archive.a", tmp_path)
    code = main(["insights", str(tmp_path), "--format", "json"])
    out, err = capsys.readouterr()
    # THEN every rule is listed with what it needs, and the exit code says that there was no answer
    data = json.loads(out)
    assert (code, err, data["insights"], data["nothing_found"]) == (4, "", [], [])
    assert {one["how"] for one in data["not_evaluated"]} == {
        'engine option "autoReport.outputGraphProfile": "true"', 'engine option "autoReport.outputLoweredVars": "true"'
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(str(path.parent) for path in SAMPLES.rglob("profile.pop")))
@pytest.mark.parametrize("format_", ["text", "markdown", "csv"])
def test_every_sample_in_every_format(capsys: Capture, name: str, format_: str) -> None:
    text = answer(capsys, name, "--format", format_)
    assert "fit" in text
    assert not re.search(r"\bnan\b|<NA>|None|array\(", text)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_hostile_names_reach_no_terminal(capsys: Capture, make_profile: Callable[..., Path], name: str) -> None:
    # GIVEN a category, a program and variables of such a name, where the first two are the evidence of a finding
    stored: Any = name.encode("utf-8", "replace").decode()
    tables = {
        "target": [("Ipu", "Ipu2", 1, 1, 1, 1, 1000, 1e9, None, None, None)],
        "tile_memory": [(0, 2000, 2000, 1000, 1000, 0, 0, 1000, 1000, 0, 0)],
        "tile_memory_category": [(0, stored, "nonInterleaved", 2000, 0)],
        "liveness_steps": [(0, 1, 100)],
        "programs": [(1, "OnTileExecute", stored, None, None, None, None, None, None)],
        "variable_liveness": [(None, f"{stored}{at}", 0, 1, 25) for at in range(4)],
    }
    directory = str(make_profile(tables).parent)
    # WHEN shown; THEN there is no control character but line ends
    for format_ in ("text", "markdown"):
        text = answer(capsys, directory, "--format", format_)
        assert [char for char in text if not char.isprintable() and char != "\n"] == []
    # and programs get the name itself
    evidence = json.loads(answer(capsys, directory, "--format", "json"))["insights"][0]["evidence"]
    assert {"name": "largest_category", "value": stored, "unit": ""} in evidence
