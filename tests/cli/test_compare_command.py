"""``pvanalyse compare``: what it says, as text and for programs, what it draws and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pvanalyse
from pvanalyse.analysis.contributions import explaining
from pvanalyse.analysis.side_by_side import changed_rows
from pvanalyse.cli import main
from pvanalyse.plots import COMPARISON_KINDS
from pvanalyse.render.comparison import USUAL, overview
from pvanalyse.render.parts import records
from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal
from tests.conftest import SAMPLES

BEFORE, AFTER = (str(SAMPLES / f"transformer_{when}") for when in ("before", "after"))
NAMES = sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("profile.pop"))
LISTS = ("categories", "ipus", "layers", "operations", "variables", "peak", "vertices", "compute-sets", "exchanges",
         "programs")  # fmt: skip
VARIABLE, SOURCE = "bert/encoder/layer_1/attention/self/scores:0", "model/attention.py:88"


def test_the_cause_of_the_regression_is_named_first(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN the samples before and after a known regression, and a wide terminal
    monkeypatch.setenv("COLUMNS", "200")
    said = answer(capsys, "compare", BEFORE, AFTER)
    # THEN the answer comes first, and the first contributor to it is the variable with its source line
    assert said.splitlines()[1].startswith("From A to B: the fullest tile uses 51.5 KiB more (9.4 %); ")
    lines = said.splitlines()
    first = lines[lines.index("What made the difference") + 4]
    assert first.split() == [VARIABLE, SOURCE, "21.6", "KiB", "43.2", "KiB", "21.6", "KiB", "41.9", "%"]


def test_json_has_what_the_analysis_has(capsys: Capture) -> None:
    data = answer_json(capsys, "compare", BEFORE, AFTER)
    with pvanalyse.compare(BEFORE, AFTER) as found:
        assert data["reports"] == {"A": BEFORE, "B": AFTER}
        assert data["metrics"] == records(found.metrics)
        for name in ("categories", "ipus", "variables", "peak"):
            assert data[name] == records(changed_rows(getattr(found, name)))
        assert data["tiles"]["changed"] == records(changed_rows(found.tiles))
        for why in data["why"]:
            changed = found.contributions(why["metric"])
            assert why["change"] == changed["change"].sum()
            assert why["contributors"] == records(explaining(changed))
    assert [why["metric"] for why in data["why"]] == [
        "memory.tile_max_including_gaps", "memory.total_including_gaps", "liveness.peak", "execution.cycles",
    ]  # fmt: skip
    assert set(USUAL) < set(data)


@pytest.mark.parametrize("name", LISTS)
def test_csv_of_one_list_is_its_frame(capsys: Capture, name: str) -> None:
    rows = answer_csv(capsys, "compare", BEFORE, AFTER, "--show", name)
    with pvanalyse.compare(BEFORE, AFTER) as found:
        frame = changed_rows(getattr(found, name.replace("-", "_")))
    assert rows == [as_text(row) for row in records(frame)]


def test_top_and_match(capsys: Capture) -> None:
    args = ("compare", BEFORE, AFTER, "--show", "variables", "--show", "metrics")
    data = answer_json(capsys, *args, "--match", "^Gradient|cycles$")
    assert [row["variable"] for row in data["variables"]] == [f"Gradient___{VARIABLE}"]
    assert [row["metric"] for row in data["metrics"]] == ["execution.cycles"]
    assert len(answer_json(capsys, *args, "--top", "1")["variables"]) == 1


def test_a_metric_is_explained_when_asked(capsys: Capture) -> None:
    data = answer_json(capsys, "compare", BEFORE, AFTER, "--show", "why", "--why", "memory.category.vertexCode")
    (why,) = data["why"]
    assert why["metric"] == "memory.category.vertexCode"
    assert {row["variable"] for row in why["contributors"]} == {
        "poplin::ConvPartial1x1Out<float,float,true,false,16,4,false>", "popops::Cast<float,float>",
    }  # fmt: skip
    said = answer(capsys, "compare", BEFORE, AFTER, "--show", "why", "--why", "memory.category.stack")
    assert "Nothing changed memory.category.stack from A to B." in said


def test_a_report_and_itself(capsys: Capture) -> None:
    said = answer(capsys, "compare", AFTER, AFTER)
    assert said.splitlines()[1] == "No metric differs."
    assert "None of 76 variables differs." in said


@pytest.mark.parametrize("output", ["text", "markdown", "csv", "json"])
@pytest.mark.parametrize("name", NAMES)
def test_any_two_reports_can_be_compared(capsys: Capture, name: str, output: str) -> None:
    # GIVEN a sample, of whatever target and whatever it captured, and another
    said = answer(capsys, "compare", BEFORE, str(SAMPLES / name), AFTER, "--format", output)
    # THEN all are named
    said = said.replace("\\_", "_")
    assert all(part in said for part in (BEFORE, name, AFTER))


def test_what_was_not_captured_is_said(capsys: Capture) -> None:
    data = answer_json(capsys, "compare", BEFORE, str(SAMPLES / "lightweight"))
    assert data["notes"][-1] == "Only A captured execution profile."
    assert {"execution.cycles", "liveness.peak"} & {
        row["metric"] for row in data["metrics"] if row["only_in"] == "A"
    } == {"execution.cycles"}


@pytest.mark.parametrize("kind", COMPARISON_KINDS)
def test_pictures(capsys: Capture, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "picture.png"
    answer(capsys, "compare", BEFORE, AFTER, "--plot", f"{kind}:{file}")
    assert file.read_bytes().startswith(b"\x89PNG")
    # AND it is not overwritten
    before = file.read_bytes()
    assert "exists already" in refusal(capsys, 2, "compare", BEFORE, AFTER, "--plot", f"{kind}:{file}")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        ((BEFORE,), 2, "2 to 26 reports can be compared, not 1"),
        ((BEFORE, AFTER, "--why", "memory.tile_maxx"), 2, "no metric 'memory.tile_maxx'; did you mean"),
        ((BEFORE, AFTER, "--why", "memory.tile_balance"), 2, "'memory.tile_balance' is not made of parts"),
        ((BEFORE, AFTER, "--plot", "pie:x.png"), 2, "'pie' is none of tiles, liveness, contributions"),
        ((BEFORE, AFTER, "--plot", "tiles"), 2, "names no file that ends in .png"),
        ((BEFORE, AFTER, "--plot", "tiles:x.gif"), 2, "names no file that ends in .png"),
        ((BEFORE, AFTER, "--match", "["), 2, "not a regular expression"),
        ((BEFORE, str(SAMPLES / "replicated"), "--plot", "tiles:x.png"), 2, "different tiles"),
        ((BEFORE, "nowhere"), 3, "nowhere: no such file"),
        ((BEFORE, str(SAMPLES / "out_of_memory"), "--show", "programs"), 4, "'execution_steps' was not captured"),
    ],
)
def test_refusals(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], code: int, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, code, "compare", *argv)
    assert says in said.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []


def test_more_tiles_out_of_memory_is_alarming() -> None:
    fits, overflows = BEFORE, str(SAMPLES / "out_of_memory")
    with pvanalyse.compare(fits, overflows) as found, pvanalyse.compare(overflows, fits) as back:
        assert (overview(found).alarming, overview(back).alarming) == (True, False)


def test_it_writes_files(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "change.json"
    assert main(["compare", BEFORE, AFTER, "--format", f"json:{file}"]) == 0
    assert capsys.readouterr() == ("", "")
    assert json.loads(file.read_text("utf-8"))["reports"] == {"A": BEFORE, "B": AFTER}
