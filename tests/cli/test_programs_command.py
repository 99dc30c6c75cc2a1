"""``pvanalyse programs``: what it prints, in every format, the graph it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pvanalyse import open_report
from pvanalyse.analysis.programs import program_tree
from pvanalyse.render.programs import dot, nested_programs
from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal, rows
from tests.conftest import SAMPLES
from tests.oracle.frames import plain
from tests.oracle.reports import Rows, write_profile
from tests.render.hostile import NAMES

TRAINING = SAMPLES / "pipelined" / "training"
ASK = ("programs", str(TRAINING))
TARGET = {"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": 1, "num_tiles": 1,
          "bytes_per_tile": 638_976, "clock_frequency": 1e9}  # fmt: skip


def flat(**question: Any) -> list[dict[str, Any]]:
    """The rows of the analysis, as plain values."""
    with open_report(TRAINING) as report:
        columns, values = plain(program_tree(report, **question))
    return [dict(zip(map(str, columns), row, strict=True)) for row in values]


def make(directory: Path, edges: list[tuple[int, int]], names: list[str]) -> str:
    tables: dict[str, Rows] = {
        "target": [TARGET],
        "programs": [{"program_id": at, "type": "Sequence", "name": name} for at, name in enumerate(names)],
        "program_children": [{"program_id": a, "position": at, "child_id": b} for at, (a, b) in enumerate(edges)],
        "program_roots": [{"kind": "control", "position": 0, "program_id": 0}],
    }
    write_profile(directory / "profile.pop", tables)
    return str(directory)


def test_text(capsys: Capture) -> None:
    # GIVEN a training with functions; WHEN the weight update is asked for; THEN this is all there is to read
    assert answer(capsys, *ASK, "--root", "321", "--match", "stage_1|store") == (
        f"""\
{TRAINING}

Programs, with everything below them
  Program                                     Id    Control code   Exchange code   Executions      Cycles   Live at most
  ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  Sequence SgdUpdate                          321       21.0 KiB        11.0 KiB           57   9,285,515       10.5 MiB
  | Sequence SgdUpdate/stage_1                333       8.75 KiB             0 B           15      25,365       8.51 MiB
  | StreamCopyBegi…emote/Accl___store/Begin   340          448 B             0 B            3      31,480       7.00 MiB
  | StreamCopyMid …_store/ Device -> Remote   341          448 B        5.50 KiB            3   4,201,752       7.00 MiB
  | StreamCopyEnd remote/Accl___store/End     342            0 B             0 B            3         840       7.00 MiB
"""
    )


def test_people_see_as_many_levels_as_fit_and_are_told(capsys: Capture) -> None:
    text = answer(capsys, *ASK)
    assert "40 of 366 lines; --depth, --root and --match show others, CSV has all." in text
    assert "(258 more below)" in text
    # WHEN they say how deep; THEN they see it all
    whole = answer(capsys, *ASK, "--depth", "99")
    assert " of 366 lines" not in whole
    assert len([line for line in whole.splitlines() if " B " in line or "iB " in line]) == 366


@pytest.mark.parametrize(
    ("options", "question"),
    [
        ((), {}),
        (("--kind", "function", "--depth", "1"), {"kind": "function", "depth": 1}),
        (("--root", "61"), {"root": 61}),
        (("--match", "Norm$"), {"pattern": "Norm$"}),
        (("--operation", "LayerNorm", "--depth", "0"), {"operation": "LayerNorm", "depth": 0}),
        (("--kind", "other"), {"kind": "other"}),
        (("--kind", "function", "--operation", "layer_0"), {"kind": "function", "operation": "layer_0"}),
        (("--root", "321", "--operation", "Accl"), {"root": 321, "operation": "Accl"}),
        (("--match", "no such name at all"), {"pattern": "no such name at all"}),
    ],
)
def test_csv_and_json_are_the_analysis(capsys: Capture, options: tuple[str, ...], question: dict[str, Any]) -> None:
    expected = flat(**question)
    assert answer_csv(capsys, *ASK, *options) == [as_text(row) for row in expected]
    with open_report(TRAINING) as report:
        nested = nested_programs(program_tree(report, **question))
    found = answer_json(capsys, *ASK, *options)
    assert found == {"report": str(TRAINING), "programs": nested, "not_captured": []}


def test_the_tree_holds_every_program_of_the_database(capsys: Capture) -> None:
    found = answer_csv(capsys, *ASK, "--kind", "control")
    assert {row["program_id"] for row in found} == {
        str(row["program_id"]) for row in rows(TRAINING, "SELECT * FROM programs")
    }
    edges = [(str(row["program_id"]), str(row["child_id"])) for row in rows(TRAINING, "SELECT * FROM program_children")]
    assert sorted((row["parent_id"], row["program_id"]) for row in found if row["parent_id"]) == sorted(edges)


def test_nothing_found_is_said(capsys: Capture) -> None:
    assert "There is none." in answer(capsys, *ASK, "--match", "no such name at all")


# ------------------------------------------------------------------------------------------------------------ the graph
def test_a_graph_is_written_beside_the_answer(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "tree.dot"
    text = answer(capsys, *ASK, "--root", "321", "--dot", str(file))
    assert text == answer(capsys, *ASK, "--root", "321")
    with open_report(TRAINING) as report:
        expected = dot(program_tree(report, root=321))
    assert file.read_text("utf-8") == expected
    # WHEN it is there already; THEN it is overwritten only by force
    file.write_text("mine", "utf-8")
    assert f"{file}: exists already; --force overwrites it" in refusal(capsys, 2, *ASK, "--dot", str(file))
    assert file.read_text("utf-8") == "mine"
    answer(capsys, *ASK, "--root", "321", "--dot", str(file), "--force")
    assert file.read_text("utf-8") == expected


def test_a_graph_has_a_place_of_its_own(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "tree.dot"
    said = refusal(capsys, 2, *ASK, "--dot", str(file), "--format", f"csv:{file}")
    assert f"two formats go to {file}" in said
    assert "--dot needs the name of a file" in refusal(capsys, 2, *ASK, "--dot", "-")
    assert "is a directory" in refusal(capsys, 2, *ASK, "--dot", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------ what cannot be answered
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--root", "99999"), "there is no program 99999"),
        (("--root", "-1"), "there is no program -1"),
        (("--root", str(10**30)), f"there is no program {10**30}"),
        (("--kind", "function", "--root", "1"), "a root is the start of one tree, and a kind means whole trees"),
        (("--match", "a("), "--match: not a regular expression: missing ), unterminated subpattern"),
        (("--operation", "*"), "--operation: not a regular expression: nothing to repeat"),
        (("--kind", "any"), "'any' is not one of 'control', 'function', 'other'"),
        (("--depth", "-1"), "-1 is not in the range x>=0"),
        (("--depth", "deep"), "'deep' is not a valid integer range"),
    ],
)
def test_wrong_questions_are_refused(capsys: Capture, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(capsys, 2, *ASK, *options)


def test_a_report_without_programs_was_not_captured(capsys: Capture, tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {"target": [TARGET]})
    assert "'programs' was not captured in this report; to capture it: engine option" in refusal(
        capsys, 4, "programs", str(tmp_path)
    )


def test_an_operation_needs_debug_information(capsys: Capture, tmp_path: Path) -> None:
    report = make(tmp_path, [], ["a"])
    assert "'debug_contexts' was not captured" in refusal(capsys, 4, "programs", report, "--operation", "a")


# ---------------------------------------------------------------------------------------------------- damage and malice
def test_damage_is_reported(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN two programs that contain each other, and one that is only named
    report = make(tmp_path, [(0, 1), (1, 0), (1, 7)], ["main", "loop"])
    text = answer(capsys, "programs", report)
    assert "Damaged: lines of programs that are above themselves, not followed round: 1." in text
    assert "Damaged: lines of programs that the report names but does not describe: 1." in text
    notes = [row["note"] for row in answer_csv(capsys, "programs", report)]
    assert notes == ["", "", "cycle", "missing"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "surrogate"])
@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_names_do_no_harm(capsys: Capture, tmp_path: Path, name: str, form: str) -> None:
    report = make(tmp_path, [(0, 1)], ["main", NAMES[name]])
    found = answer(capsys, "programs", report, "--format", form)
    if form == "json":
        assert json.loads(found)["programs"][0]["children"][0]["name"] == NAMES[name]
    elif form == "csv":
        assert answer_csv(capsys, "programs", report)[1]["name"] == NAMES[name]
    else:
        assert all(line.isprintable() for line in found.split("\n"))
        assert "main" in found


def test_a_tree_as_deep_as_no_terminal_is_shown(capsys: Capture, tmp_path: Path) -> None:
    number = 3000
    report = make(tmp_path, [(at, at + 1) for at in range(number - 1)], [f"p{at}" for at in range(number)])
    text = answer(capsys, "programs", report, "--depth", str(number))
    assert "[2999] Sequence p2999" in text
    assert len(answer_csv(capsys, "programs", report)) == number
    assert "60 of 3,000 lines" in answer(capsys, "programs", report)


def test_a_tree_as_wide_as_no_one_reads_is_shown_in_part(capsys: Capture, tmp_path: Path) -> None:
    number = 6000
    report = make(tmp_path, [(0, at) for at in range(1, number)], ["main", *map(str, range(1, number))])
    assert "1 of 6,000 lines" in answer(capsys, "programs", report)
    text = answer(capsys, "programs", report, "--depth", "1")
    assert "5,000 of 6,000 lines" in text
    assert "Sequence 4999 " in text
    assert "Sequence 5000 " not in text


def test_each_format_is_whole_when_several_are_asked_for(capsys: Capture, tmp_path: Path) -> None:
    files = {form: tmp_path / f"tree.{form}" for form in ("text", "json", "csv", "markdown")}
    answer(capsys, *ASK, *(word for form, file in files.items() for word in ("--format", f"{form}:{file}")))
    for form, file in files.items():
        assert file.read_bytes().decode() == answer(capsys, *ASK, "--format", form)
