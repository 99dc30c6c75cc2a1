"""Chrome's trace events against the steps of profile.pop."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pvanalyse.errors import NotCaptured
from pvanalyse.render import trace_tracks
from pvanalyse.render.chrome_trace import write_chrome_trace
from pvanalyse.report import open_report
from tests.oracle.reports import write_profile
from tests.render.traces import KINDS, Slice, expected, given_report, hostile_report, random_report

ARGUMENTS = {
    "step": "step",
    "run": "run",
    "program": "program",
    "cycles": "cycles",
    "tile balance": "tile_balance",
    "bytes in": "data_in",
    "bytes out": "data_out",
}


def refuse(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def written(directory: Path, **selection: Any) -> dict[str, Any]:
    out = StringIO(newline="")
    with open_report(directory) as report:
        write_chrome_trace(report, out, **selection)
    text = out.getvalue()
    assert text.isascii()
    trace: dict[str, Any] = json.loads(text, parse_float=Decimal, parse_constant=refuse)
    return trace


def slices(trace: dict[str, Any]) -> Counter[Any]:
    """Each slice with the names of its process and thread, and its arguments."""
    named = {(one["name"], one["pid"], one["tid"]): one["args"].get("name") for one in trace["traceEvents"]
             if one["ph"] == "M"}  # fmt: skip
    found: Counter[Any] = Counter()
    for one in trace["traceEvents"]:
        if one["ph"] == "X":
            ipu = one["pid"] - 1
            assert named["process_name", one["pid"], one["tid"]] == f"IPU {ipu}"
            begin, duration = one["ts"] * 1000, one["dur"] * 1000
            assert (begin, duration) == (int(begin), int(duration))
            notes = tuple(sorted((name, float(value)) for name, value in one["args"].items()))
            what = Slice(ipu, one["name"], one["cat"], int(begin), int(duration))
            found[what, named["thread_name", one["pid"], one["tid"]], notes] += 1
    return found


def wanted(directory: Path, where: str = "1") -> Counter[Any]:
    what = expected(directory, where)
    return Counter(
        (what.slice(row), KINDS.get(row["type"], "other"),
         tuple(sorted((name, float(row[key])) for name, key in ARGUMENTS.items() if row[key] is not None)))
        for row in what.rows
    )  # fmt: skip


def assert_nested(trace: dict[str, Any]) -> None:
    """Any two slices of a thread are apart, or one lies within the other."""
    threads = defaultdict(list)
    for one in trace["traceEvents"]:
        if one["ph"] == "X":
            threads[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for intervals in threads.values():
        for at, (begin, end) in enumerate(intervals):
            for other_begin, other_end in intervals[:at]:
                apart = end <= other_begin or other_end <= begin
                within = other_begin <= begin <= end <= other_end or begin <= other_begin <= other_end <= end
                assert apart or within


@pytest.mark.parametrize("seed", range(12))
def test_every_step_is_an_event(tmp_path: Path, seed: int) -> None:
    # GIVEN steps that touch, nest, overlap and take no time; WHEN exported
    directory = random_report(tmp_path / "report", seed)
    trace = written(directory)
    # THEN they are the events, on threads on which they nest
    assert slices(trace) == wanted(directory)
    assert_nested(trace)


@pytest.mark.parametrize("seed", range(2))
def test_batches_do_not_show_and_runs_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    directory = random_report(tmp_path / "report", seed)
    batches = trace_tracks.interval_batches

    def small(*arguments: Any, **options: Any) -> Any:
        for frame in batches(*arguments, **options):
            yield from (frame.iloc[at : at + 2] for at in range(0, len(frame), 2))

    monkeypatch.setattr(trace_tracks, "interval_batches", small)
    run = expected(directory).rows[0]["run"]
    trace = written(directory, runs=[run])
    assert slices(trace) == wanted(directory, f"run_id = {run}")
    assert_nested(trace)


def test_hostile_names(tmp_path: Path) -> None:
    directory = hostile_report(tmp_path / "report")
    assert slices(written(directory)) == wanted(directory)


def test_without_a_clock_a_cycle_is_a_nanosecond_and_the_trace_says_so(tmp_path: Path) -> None:
    steps = [(5, 9, "Sync", "wait"), (9, 3000, "OnTileExecute", "work")]
    known = written(given_report(tmp_path / "known", steps, hz=1e9))
    unknown = written(given_report(tmp_path / "unknown", steps, hz=0))
    assert known["traceEvents"] == unknown["traceEvents"]
    assert known["otherData"] == {"tool": "pvanalyse", "clock_hz": 10**9}
    remark = "the clock of the target is not known: a cycle is shown as a nanosecond"
    assert unknown["otherData"] == {"tool": "pvanalyse", "clock_hz": None, "remark": remark}


def test_a_balance_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    import sqlite3

    directory = given_report(tmp_path / "report", [(0, 5, "Sync", "")])
    with sqlite3.connect(directory / "profile.pop") as database:
        database.execute("UPDATE execution_step_ipus SET tile_balance = 9e999")
    database.close()
    (event,) = [one for one in written(directory)["traceEvents"] if one["ph"] == "X"]
    assert event["args"] == {"step": 0, "run": 0, "program": 0, "cycles": 5}


def test_no_intervals_are_a_trace_all_the_same(tmp_path: Path) -> None:
    directory = given_report(tmp_path / "report", [(0, 5, "Sync", "")])
    assert written(given_report(tmp_path / "two", [(0, 5, "Sync", "")], ipus=2), ipus=[1])["traceEvents"] != []
    import sqlite3

    with sqlite3.connect(directory / "profile.pop") as database:
        database.execute("UPDATE execution_step_ipus SET step_id = 77")
    database.close()
    assert written(directory)["traceEvents"] == []


def test_no_execution(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {"programs": [{"program_id": 0, "type": "Sync", "name": ""}]},
                  ["execution_steps", "execution_step_ipus", "execution_blocks"])  # fmt: skip
    with pytest.raises(NotCaptured, match="execution"):
        written(tmp_path)
