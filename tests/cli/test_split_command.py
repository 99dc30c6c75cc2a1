"""``pvanalyse split``: what each format says, and every refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import pvanalyse
from pvanalyse.analysis.splitting.pipeline_split import PipelineSplit, pipeline_split
from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal
from tests.conftest import SAMPLES

REPORT = SAMPLES / "transformer_after"
FULL = SAMPLES / "out_of_memory"
REGEX = r"layer_\d+/\w+"


def found(report: Path, *asked: object) -> PipelineSplit:
    with pvanalyse.open_report(report) as opened:
        return pipeline_split(opened, *asked)  # type: ignore[arg-type]


def plain(frame: object) -> list[dict[str, object]]:
    """Rows of a frame as JSON has them."""
    return json.loads(frame.to_json(orient="records", double_precision=15))  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ["exact", "greedy"])
def test_json_is_the_frames(capsys: Capture, method: str) -> None:
    # GIVEN a report; WHEN asked as JSON; THEN every part is the frame of the analysis, and what was asked is beside it
    words = ("--ipus", "3", "--layer-regex", REGEX, "--method", method, "--limit", "400 KiB")
    data = answer_json(capsys, "split", str(REPORT), *words)
    split = found(REPORT, 3, REGEX, method, 400 * 1024)
    for part in ("layers", "traffic", "shared"):
        assert data.pop(part) == plain(getattr(split, part))
    fractions = [row.pop("used_fraction") for row in data["stages"]]
    assert fractions == split.stages["used_fraction"].tolist()
    assert data.pop("stages") == plain(split.stages.drop(columns="used_fraction"))
    assert "estimate" in data.pop("estimate")
    assert data == {
        "report": str(REPORT),
        "method": method,
        "num_ipus": 3,
        "limit_bytes": 409_600,
        "layer_regex": REGEX,
        "operations_grouped_by": "debug contexts",
        "left_out_operations": split.left_out_operations,
        "fits": True,
        "fewest_ipus": split.fewest_ipus,
        "split_points": split.split_points,
        "not_captured": [],
    }


@pytest.mark.parametrize("part", ["stages", "layers", "traffic", "shared"])
def test_csv_is_one_table(capsys: Capture, part: str) -> None:
    # GIVEN one part; WHEN asked as CSV; THEN it has the rows of JSON, of which --top leaves some
    asked = ("split", str(REPORT), "--ipus", "3", "--show", part)
    expected = answer_json(capsys, *asked)[part]
    for row in expected if part == "shared" else ():
        row["stages"] = ", ".join(map(str, row["stages"]))
    assert answer_csv(capsys, *asked) == [as_text(row) for row in expected]
    assert answer_csv(capsys, *asked, "--top", "1") == [as_text(row) for row in expected[:1]]


def test_text_of_a_split_that_should_fit(capsys: Capture) -> None:
    # GIVEN a program that is out of memory; WHEN split so that it fits; THEN the first line says where it is fullest
    text = answer(capsys, "split", str(FULL), "--ipus", "3")
    split = found(FULL, 3)
    worst = split.stages.loc[split.stages["fullest_tile_bytes"].idxmax()]
    assert split.fits
    tile = f"tile {worst['fullest_tile']:,} of stage {worst['stage']}"
    assert text.splitlines()[1].startswith(
        f"Should fit on 3 IPUs: the fullest, {tile}, needs 525 KiB of 624 KiB (84.1 %)."
    )
    assert " ".join(text.split()).count("An estimate, from how the program was laid out on one IPU") == 1
    assert all(point.rpartition("/")[2] in text for point in split.split_points)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["2"], (r"DOES NOT FIT on 2 IPUs: tile 1,022 of stage 1 needs 633 KiB, over by 9\.25 KiB; with these layers .*, since "
                "'bert/encoder/layer_0/intermediate' alone needs 633 KiB[.] Stages")),
        (["2", "--limit", "530KiB", "--layer-regex", r"\w+/\w+$"], r"DOES NOT FIT on 2 IPUs: .*; 3 IPUs would do\."),
        (["2", "--limit", "530KiB", "--layer-regex", r"\w+/\w+$", "--method", "greedy"],
         r"DOES NOT FIT on 2 IPUs: .*; 3 IPUs would do\."),
        (["1"], r"DOES NOT FIT on 1 IPU: "),
    ],
)  # fmt: skip
def test_text_of_a_split_that_does_not_fit(capsys: Capture, words: list[str], said: str) -> None:
    # GIVEN a program that is out of memory; WHEN split so that it does not fit; THEN it is said, and what would help
    text = answer(capsys, "split", str(FULL), "--ipus", *words)
    assert re.search(said, " ".join(text.split()))


def test_greedy_may_need_fewer(capsys: Capture) -> None:
    # GIVEN a program that fits; WHEN filled greedily; THEN the stages that were not needed are told
    text = answer(capsys, "split", str(REPORT), "--ipus", "3", "--method", "greedy", "--limit", "99999999999PB")
    assert "Should fit on 1 of the 3 IPUs" in text
    assert "No stage uses what another one writes." in text
    assert "No variable is used by several stages." in text


def test_markdown_and_widths(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a narrow terminal; WHEN shown; THEN no line of the stages is wider, and Markdown has a table of each part
    monkeypatch.setenv("COLUMNS", "80")
    text = answer(capsys, "split", str(FULL), "--ipus", "2")
    assert max(map(len, text.splitlines())) <= 80
    markdown = answer(capsys, "split", str(FULL), "--ipus", "2", "--format", "markdown")
    assert [line for line in markdown.splitlines() if line.startswith("## ")] == [
        "## Stages", "## Layers", "## Traffic between stages", "## Variables of several stages, counted in each of them",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "--ipus"),
        (["--ipus", "0"], 2, "--ipus"),
        (["--ipus", "2", "--method", "best"], 2, "--method"),
        (["--ipus", "2", "--limit", "much"], 2, "'much' is no size"),
        (["--ipus", "2", "--limit", "0"], 2, "above 0 bytes"),
        (["--ipus", "2", "--layer-regex", "("], 2, "--layer-regex: not a regular expression"),
        (["--ipus", "2", "--layer-regex", "nowhere"], 2, "names no layer"),
        (["--ipus", "500"], 2, "cannot be split into 500 stages"),
        (["--ipus", "9" * 30], 2, "cannot be split into"),
        (["--ipus", "9" * 30, "--layer-regex", REGEX], 2, "cannot be split into"),
    ],
)
def test_refusals(capsys: Capture, words: list[str], code: int, said: str) -> None:
    # GIVEN a wrong question; WHEN asked; THEN one sentence says what is wrong
    assert said in refusal(capsys, code, "split", str(REPORT), *words)


def test_reports_that_cannot_be_split(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    # GIVEN a report on several IPUs, and one that holds next to nothing; WHEN split; THEN each says why not
    assert "on 4 IPUs already" in refusal(capsys, 2, "split", str(SAMPLES / "no_lowered_variables"), "--ipus", "2")
    rows = {"report_info": [("layout", "pvanalyse-1")],
            "target": [("Ipu", "Ipu2", 1, 1, 4, 4, 1000, 1e9, None, None, None)],
            "programs": [(1, "Sync", "a/b", None, None, None, None, None, None)]}  # fmt: skip
    said = refusal(capsys, 4, "split", str(make_profile(rows)), "--ipus", "1")
    assert "'program_lowered_variables' was not captured" in said
    assert "autoReport.outputLoweredVars" in said
