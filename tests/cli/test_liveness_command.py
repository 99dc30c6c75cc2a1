"""``pvanalyse liveness`` against plain Python over sqlite3: every part, every option, every refusal."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal, rows
from tests.conftest import SAMPLES

REPORT = SAMPLES / "pipelined" / "training"
NO_LOWERED = SAMPLES / "no_lowered_variables"
PARTS = ("peaks", "at-peak", "always-live", "tiles", "curve", "fp16")


def steps_of(report: Path) -> list[dict[str, Any]]:
    programs = {row["program_id"]: row for row in rows(report, "SELECT * FROM programs")}
    return [
        {"step": row["step"], "program_id": row["program_id"], "program_type": programs[row["program_id"]]["type"],
         "program_name": programs[row["program_id"]]["name"], "bytes": row["not_always_live_bytes"]}
        for row in rows(report, "SELECT * FROM liveness_steps ORDER BY step")
    ]  # fmt: skip


def curve_of_tiles(report: Path, tiles: Collection[int]) -> list[int]:
    """Live bytes at each step, an allocation and a step at a time."""
    live = [0] * len(steps_of(report))
    spans = defaultdict(list)
    for row in rows(report, "SELECT * FROM equivalence_class_intervals"):
        spans[row["equivalence_class_id"]].append(range(row["step_begin"], row["step_end"]))
    for row in rows(report, "SELECT * FROM lowered_variables WHERE NOT always_live"):
        if row["tile"] in tiles:
            for span in spans[row["equivalence_class_id"]]:
                for step in span:
                    live[step] += row["bytes"]
    return live


def live_at(report: Path, step: int) -> list[dict[str, Any]]:
    """Variables that are live at a step, the largest first."""
    declared = {row["variable_id"]: row for row in rows(report, "SELECT * FROM variables")}
    found = []
    for row in rows(report, "SELECT * FROM variable_liveness"):
        if row["step_begin"] <= step < row["step_end"]:
            of = declared.get(row["variable_id"], {"element_type": None, "shape": None})
            found.append({
                "name": row["name"], "variable_id": row["variable_id"], "bytes": row["bytes"],
                "element_type": of["element_type"], "shape": of["shape"], "step_begin": row["step_begin"],
                "step_end": row["step_end"],
            })  # fmt: skip
    return sorted(found, key=lambda row: (-row["bytes"], row["name"]))


def sizes_at(report: Path, step: int) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for row in live_at(report, step):
        sizes[row["name"]] += row["bytes"]
    return sizes


# ------------------------------------------------------------------------------------------------- the usual parts
@pytest.mark.parametrize("report", [REPORT, NO_LOWERED], ids=lambda path: path.name)
def test_the_curve_and_its_peaks(capsys: Capture, report: Path) -> None:
    data = answer_json(capsys, "liveness", str(report), "--peaks", "4")
    steps = steps_of(report)
    assert data["curve"] == steps
    # a local peak is higher than what comes before its plateau and after it
    size = [row["bytes"] for row in steps]
    tops = []
    for at, value in enumerate(size):
        rises = at == 0 or size[at - 1] < value
        after = next((other for other in size[at:] if other != value), -1)
        if rises and after < value:
            tops.append(steps[at])
    expected = sorted(tops, key=lambda row: (-row["bytes"], row["step"]))[:4]
    shown = [{name: peak[name] for name in steps[0]} for peak in data["peaks"]]
    assert shown == expected
    assert all(re.fullmatch(r"\S+:\d+", peak["location"]) for peak in data["peaks"])
    assert all(peak["operation"] for peak in data["peaks"])


@pytest.mark.parametrize("report", [REPORT, NO_LOWERED], ids=lambda path: path.name)
def test_variables_at_the_peak_and_always_live(capsys: Capture, report: Path) -> None:
    data = answer_json(capsys, "liveness", str(report))
    top = max(steps_of(report), key=lambda row: (row["bytes"], -row["step"]))
    expected = live_at(report, top["step"])
    assert data["at_peak"] == {
        "step": top["step"], "bytes": top["bytes"], "num_variables": len(expected), "variables": expected,
    }  # fmt: skip
    always = rows(report, "SELECT * FROM always_live_variables")
    assert data["always_live"] == sorted(always, key=lambda row: (-row["bytes"], row["name"]))


def test_the_tiles_with_the_highest_peaks(capsys: Capture) -> None:
    data = answer_json(capsys, "liveness", str(REPORT), "--show", "tiles")["tiles"]
    memory = {row["tile"]: row for row in rows(REPORT, "SELECT * FROM tile_memory")}
    assert sorted(row["tile"] for row in data) == sorted(memory)
    for row in data:
        stored = memory[row["tile"]]
        assert row["peak_bytes"] == stored["not_always_live_bytes"]
        assert row["peak_total_bytes"] == stored["not_always_live_bytes"] + stored["always_live_bytes"]
    assert [row["peak_total_bytes"] for row in data] == sorted((row["peak_total_bytes"] for row in data), reverse=True)
    live = curve_of_tiles(REPORT, {data[0]["tile"]})
    assert data[0]["peak_step"] == live.index(max(live))


def test_the_verdict_says_where_the_peak_is(capsys: Capture) -> None:
    top = max(steps_of(REPORT), key=lambda row: (row["bytes"], -row["step"]))
    second = " ".join(answer(capsys, "liveness", str(REPORT), "--units", "bytes").splitlines()[1:3])
    assert second.startswith(
        f"The peak is at step {top['step']}: {top['bytes']:,} B not always live, over one replica; it is in "
        f"{top['program_type']} {top['program_name']}, from "
    )


def test_the_picture_of_the_curve(capsys: Capture) -> None:
    # GIVEN the curve as text; WHEN read back; THEN stretches cover all steps, each with its maximum and a bar to scale
    out = answer(capsys, "liveness", str(REPORT), "--show", "curve", "--top", "10", "--units", "bytes")
    found = re.findall(r"^  (\d+)-(\d+) +([\d,]+) B +(\S*) +(\d+)  ", out, re.MULTILINE)
    size = [row["bytes"] for row in steps_of(REPORT)]
    assert len(found) == 10
    assert [step for low, high, *_ in found for step in range(int(low), int(high) + 1)] == list(range(len(size)))
    for low, high, most, drawn, at in found:
        stretch = size[int(low) : int(high) + 1]
        assert int(most.replace(",", "")) == max(stretch) == size[int(at)]
        eighths = sum(8 if char == "█" else " ▏▎▍▌▋▊▉".index(char) for char in drawn)
        assert eighths == pytest.approx(max(1, 160 * max(stretch) / max(size)), abs=0.51)


# ------------------------------------------------------------------------------------------------- chosen tiles
@pytest.mark.parametrize(
    ("words", "tiles"),
    [(["--tiles", "0,5,100-103"], [0, 5, 100, 101, 102, 103]), (["--ipu", "1"], range(64, 128))],
    ids=["tiles", "ipu"],
)
def test_chosen_tiles(capsys: Capture, words: list[str], tiles: Collection[int]) -> None:
    # GIVEN tiles; WHEN asked about; THEN everything is of these, added up allocation by allocation
    data = answer_json(capsys, "liveness", str(REPORT), *words)
    assert list(data) == [
        "report", "tiles_chosen", "peaks", "at_peak", "always_live", "tiles", "curve", "not_captured",
    ]  # fmt: skip
    assert data["tiles_chosen"] == list(tiles)
    live = curve_of_tiles(REPORT, tiles)
    assert [row["bytes"] for row in data["curve"]] == live
    top = live.index(max(live))
    assert (data["peaks"][0]["step"], data["peaks"][0]["bytes"]) == (top, live[top])
    assert (data["at_peak"]["step"], data["at_peak"]["bytes"]) == (top, live[top])
    assert sorted(row["tile"] for row in data["tiles"]) == list(tiles)
    always = sum(row["always_live_bytes"] for row in rows(REPORT, "SELECT * FROM tile_memory") if row["tile"] in tiles)
    assert sum(row["bytes"] for row in data["always_live"]) == always
    with_them = answer_json(capsys, "liveness", str(REPORT), *words, "--always-live")
    assert [row["bytes"] for row in with_them["curve"]] == [size + always for size in live]
    assert with_them["peaks"][0]["with_always_live_bytes"] == live[top] + always


def test_always_live_bytes_of_one_replica(capsys: Capture) -> None:
    report = SAMPLES / "replicated"
    (target,) = rows(report, "SELECT * FROM target")
    always = sum(row["always_live_bytes"] for row in rows(report, "SELECT * FROM tile_memory"))
    each = always // target["num_replicas"]
    data = answer_json(capsys, "liveness", str(report), "--always-live", "--show", "curve", "--show", "peaks")
    size = [row["bytes"] for row in steps_of(report)]
    assert target["num_replicas"] == 2
    assert [row["bytes"] for row in data["curve"]] == [value + each for value in size]
    assert data["peaks"][0]["with_always_live_bytes"] == max(size) + each


# ---------------------------------------------------------------------------------------------- what is asked for
@pytest.mark.parametrize("step", [0, 100, 311, 342])
def test_a_step(capsys: Capture, step: int) -> None:
    data = answer_json(capsys, "liveness", str(REPORT), "--step", str(step))
    assert list(data) == ["report", "tiles_chosen", "at_step", "not_captured"]
    expected = live_at(REPORT, step)
    size = steps_of(REPORT)[step]["bytes"]
    assert data["at_step"] == {"step": step, "bytes": size, "num_variables": len(expected), "variables": expected}


def test_a_step_on_chosen_tiles(capsys: Capture) -> None:
    data = answer_json(capsys, "liveness", str(REPORT), "--step", "311", "--tiles", "7,8")["at_step"]
    assert data["bytes"] == curve_of_tiles(REPORT, {7, 8})[311] == sum(row["bytes"] for row in data["variables"])


def test_a_difference(capsys: Capture) -> None:
    data = answer_json(capsys, "liveness", str(REPORT), "--diff", "100", "311")["difference"]
    first, second = sizes_at(REPORT, 100), sizes_at(REPORT, 311)
    expected = [
        {"name": name, "first_bytes": first[name], "second_bytes": second[name], "change_bytes": change}
        for name in first | second
        if (change := second[name] - first[name])
    ]
    expected.sort(key=lambda row: (-abs(row["change_bytes"]), row["name"]))
    steps = steps_of(REPORT)
    assert data == {
        "first_step": 100, "second_step": 311, "change_bytes": steps[311]["bytes"] - steps[100]["bytes"],
        "variables": expected,
    }  # fmt: skip
    same = answer(capsys, "liveness", str(REPORT), "--diff", "100", "100")
    assert "The same variables are live at steps 100 and 100." in same


@pytest.mark.parametrize("pattern", ["Gather", "^Accl.*(Layer|Gather)", "(?i)SOFTMAX"])
def test_lifetimes(capsys: Capture, pattern: str) -> None:
    data = answer_json(capsys, "liveness", str(REPORT), "--variable", pattern)["lifetimes"]
    expected = [
        row for row in rows(REPORT, "SELECT name, variable_id, bytes, step_begin, step_end FROM variable_liveness")
        if re.search(pattern, row["name"])
    ]  # fmt: skip

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["name"], row["step_begin"]

    assert sorted(data, key=key) == sorted(expected, key=key)
    most = [row["bytes"] for row in data]
    assert most == sorted(most, reverse=True)
    assert data


def test_lifetimes_that_are_none(capsys: Capture) -> None:
    out = answer(capsys, "liveness", str(REPORT), "--variable", "no such thing")
    assert "No variable that is not always live has a name that matches 'no such thing'." in out


@pytest.mark.parametrize(("size", "number"), [("2 MiB", 2 * 2**20), ("1.5MB", 1_500_000), ("4096", 4096), ("1", 1)])
def test_a_lower_peak(capsys: Capture, size: str, number: int) -> None:
    # GIVEN bytes to save; WHEN asked what to free
    data = answer_json(capsys, "liveness", str(REPORT), "--reduce-by", size)["reduction"]
    # THEN without these variables the curve, added up anew after each, is as low as is said
    spans = rows(REPORT, "SELECT * FROM variable_liveness")
    live = [row["bytes"] for row in steps_of(REPORT)]
    assert data["peak_bytes"] == max(live)
    for one in data["variables"]:
        assert live.index(max(live)) == one["at_step"]
        gone = [row for row in spans if row["name"] == one["name"]]
        at_peak = sum(row["bytes"] for row in gone if row["step_begin"] <= one["at_step"] < row["step_end"])
        assert at_peak == one["bytes"]
        for row in gone:
            for step in range(row["step_begin"], row["step_end"]):
                live[step] -= row["bytes"]
        assert (max(live), live.index(max(live))) == (one["peak_after_bytes"], one["peak_after_step"])
    assert data["peak_after_bytes"] == max(live)
    assert data["reached"]
    assert data["peak_bytes"] - max(live) >= data["reduce_by_bytes"] == number
    out = answer(capsys, "liveness", str(REPORT), "--reduce-by", size, "--units", "bytes")
    assert f"the peak is {max(live):,} B instead of {data['peak_bytes']:,} B." in " ".join(out.split())


def test_a_peak_that_cannot_be_that_much_lower(capsys: Capture) -> None:
    data = answer_json(capsys, "liveness", str(REPORT), "--reduce-by", "1 GiB")["reduction"]
    assert (data["reached"], data["peak_after_bytes"]) == (False, 0)
    out = " ".join(answer(capsys, "liveness", str(REPORT), "--reduce-by", "1 GiB").split())
    assert "it cannot be 1.00 GiB lower." in out


def test_candidates_for_half_precision(capsys: Capture) -> None:
    # GIVEN a report without lowered variables; THEN candidates are the single-precision ones at the peak
    data = answer_json(capsys, "liveness", str(NO_LOWERED), "--show", "fp16")["fp16"]
    top = max(steps_of(NO_LOWERED), key=lambda row: (row["bytes"], -row["step"]))
    expected = {row["name"]: row["bytes"] for row in live_at(NO_LOWERED, top["step"]) if row["element_type"] == "float"}
    assert {row["name"]: row["bytes"] for row in data} == expected
    assert {row["saving_bytes"] * 2 == row["bytes"] and row["num_tiles"] is None for row in data} == {True}
    # GIVEN one with them; THEN they are those on the five tiles with the highest peaks
    data = answer_json(capsys, "liveness", str(REPORT), "--show", "fp16")["fp16"]
    tiles = answer_json(capsys, "liveness", str(REPORT), "--show", "tiles", "--top", "5")["tiles"]
    sizes: Counter[str] = Counter()
    for one in tiles:
        words = ("--step", str(one["peak_step"]), "--tiles", str(one["tile"]))
        live = answer_json(capsys, "liveness", str(REPORT), *words)["at_step"]["variables"]
        sizes.update({row["name"]: row["bytes"] for row in live if row["element_type"] == "float"})
    assert {row["name"]: row["bytes"] for row in data} == dict(sizes)


# ------------------------------------------------------------------------------------------------- choice and form
CALLS = {**{part: ["--show", part] for part in PARTS}, "at-step": ["--step", "311"],
         "difference": ["--diff", "3", "311"], "lifetimes": ["--variable", "Gather"],
         "reduction": ["--reduce-by", "3 MiB"]}  # fmt: skip


@pytest.mark.parametrize("part", CALLS)
def test_each_part_by_itself(capsys: Capture, part: str) -> None:
    key = part.replace("-", "_")
    data = answer_json(capsys, "liveness", str(REPORT), *CALLS[part])
    assert list(data) == ["report", "tiles_chosen", key, "not_captured"]
    expected = data[key] if isinstance(data[key], list) else data[key]["variables"]
    found = answer_csv(capsys, "liveness", str(REPORT), *CALLS[part])
    assert found == [as_text(row) for row in expected]
    assert found
    limited = answer_csv(capsys, "liveness", str(REPORT), *CALLS[part], "--top", "2")
    assert limited == (found if part in ("curve", "peaks") else found[:2])


@pytest.mark.parametrize("part", CALLS)
@pytest.mark.parametrize("columns", ["80", "120"])
def test_lines_fit(capsys: Capture, monkeypatch: pytest.MonkeyPatch, part: str, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = answer(capsys, "liveness", str(REPORT), *CALLS[part], "--units", "bytes").splitlines()
    assert max(map(len, lines[1:])) <= int(columns)
    assert len(lines) > 2


def test_several_parts_in_one_go(capsys: Capture) -> None:
    words = [word for part in CALLS.values() for word in part]
    data = answer_json(capsys, "liveness", str(REPORT), *words)
    assert list(data)[2:-1] == [part.replace("-", "_") for part in CALLS]


# ------------------------------------------------------------------------------------------------- what is missing
LOWERED = 'engine option "autoReport.outputLoweredVars": "true"'


def test_without_lowered_variables_the_rest_is_shown(capsys: Capture) -> None:
    data = answer_json(capsys, "liveness", str(NO_LOWERED))
    assert [(one["part"], one["how"]) for one in data["not_captured"]] == [("tiles", LOWERED)]
    assert list(data)[2:-1] == ["peaks", "at_peak", "always_live", "curve", "fp16"]
    assert LOWERED in answer(capsys, "liveness", str(NO_LOWERED))


@pytest.mark.parametrize(
    "words", [["--tiles", "3"], ["--worst", "2"], ["--show", "tiles"], ["--step", "3", "--ipu", "0"]]
)
def test_what_was_asked_for_and_not_captured_ends_with_4(capsys: Capture, words: list[str]) -> None:
    err = refusal(capsys, 4, "liveness", str(NO_LOWERED), *words)
    assert f"was not captured in this report; to capture it: {LOWERED}" in err


def test_a_report_without_liveness_ends_with_4(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    path = make_profile({"runs": [(0, "step", 0, 10)]})
    for words in ([], *CALLS.values()):
        assert "was not captured" in refusal(capsys, 4, "liveness", str(path), *words)


def test_steps_alone_are_shown(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    path = make_profile({"liveness_steps": [(0, 7, 100), (1, 8, 300), (2, 7, 200)]})
    data = answer_json(capsys, "liveness", str(path))
    assert [row["bytes"] for row in data["curve"]] == [100, 300, 200]
    assert [one["part"] for one in data["not_captured"]] == ["at_peak", "always_live", "tiles", "fp16"]
    assert "The peak is at step 1: 300 B not always live, over one replica." in answer(capsys, "liveness", str(path))


# ------------------------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--step", "343"], "there is no step 343; the report has steps 0 to 342"),
        (["--step", "-1"], "Invalid value for '--step'"),
        (["--diff", "1", "343"], "there is no step 343"),
        (["--diff", "1"], "requires 2 arguments"),
        (["--variable", "a(b"], "--variable: not a regular expression: missing ), unterminated subpattern\n  a(b\n   ^"),
        (["--reduce-by", "2x"], "Invalid value for '--reduce-by': '2x' is no size"),
        (["--reduce-by", "-2"], "is no size"),
        (["--reduce-by", "0"], "0"),
        (["--peaks", "0"], "Invalid value for '--peaks'"),
        (["--show", "nothing"], "Invalid value for '--show'"),
        (["--tiles", "200"], "there is no tile 200; the report has tiles 0 to 127"),
        (["--tiles", "0", "--ipu", "1"], "no tile is chosen by --tiles 0 --ipu 1"),
        (["--tiles", "0-3", "--diff", "1", "2"], "--diff cannot be about chosen tiles; leave out --tiles 0-3"),
        (["--ipu", "1", "--variable", "x"], "--variable cannot be about chosen tiles; leave out --ipu 1"),
        (["--worst", "1", "--reduce-by", "1"], "--reduce-by cannot be about chosen tiles; leave out --worst 1"),
        (["--tiles", "1", "--show", "fp16"], "--show fp16 cannot be about chosen tiles; leave out --tiles 1"),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_2(capsys: Capture, words: list[str], problem: str) -> None:
    assert problem in refusal(capsys, 2, "liveness", str(REPORT), *words)


def test_help_says_what_can_be_shown(capsys: Capture) -> None:
    words = " ".join(answer(capsys, "liveness", "--help").split())
    for option in (*PARTS, "--tiles", "--ipu", "--worst", "--show", "--step", "--diff", "--variable", "--reduce-by",
                   "--peaks", "--always-live", "--top"):  # fmt: skip
        assert option in words
