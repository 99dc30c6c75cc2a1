"""speedscope's profiles against the steps of profile.pop, and against the facts of speedscope's JSON schema."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pvanalyse.errors import NotCaptured
from pvanalyse.render import speedscope, trace_tracks
from pvanalyse.render.speedscope import write_speedscope
from pvanalyse.report import open_report
from tests.oracle.reports import write_profile
from tests.render.traces import Slice, expected, given_report, hostile_report, random_report, replayed

# What https://www.speedscope.app/file-format-schema.json (1.25) requires and allows of what is written here.
TOP = {"required": {"$schema", "profiles", "shared"}, "allowed": {"activeProfileIndex", "exporter", "name"}}
FRAME = {"required": {"name"}, "allowed": {"file", "line", "col"}}
EVENTED = {"required": {"type", "name", "unit", "startValue", "endValue", "events"}, "allowed": set[str]()}
EVENT = {"required": {"type", "at", "frame"}, "allowed": set[str]()}
UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}


def written(directory: Path, **selection: Any) -> dict[str, Any]:
    out = StringIO(newline="")
    with open_report(directory) as report:
        write_speedscope(report, out, "a report", **selection)
    profile: dict[str, Any] = json.loads(out.getvalue())
    assert_valid(profile)
    return profile


def assert_valid(file: dict[str, Any]) -> None:
    """Check a file by the schema's facts, and what it cannot say: events are in order and nest."""

    def has_keys(value: dict[str, Any], facts: dict[str, set[str]]) -> None:
        assert facts["required"] <= set(value) <= facts["required"] | facts["allowed"]

    has_keys(file, TOP)
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file["shared"]) == {"frames"}
    for frame in file["shared"]["frames"]:
        has_keys(frame, FRAME)
        assert all(isinstance(value, str) for value in frame.values())
    for profile in file["profiles"]:
        has_keys(profile, EVENTED)
        assert profile["type"] == "evented"
        assert profile["unit"] in UNITS
        open_frames, latest = [], profile["startValue"]
        for event in profile["events"]:
            has_keys(event, EVENT)
            assert latest <= event["at"] <= profile["endValue"]
            latest = event["at"]
            assert 0 <= event["frame"] < len(file["shared"]["frames"])
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert open_frames.pop() == event["frame"]
        assert open_frames == []
        assert latest == profile["endValue"]


def slices(file: dict[str, Any]) -> Counter[Slice]:
    frames = [(one["name"], one["file"]) for one in file["shared"]["frames"]]
    assert len(set(frames)) == len(frames)
    events = [
        ((profile["name"]), event["type"] == "O", event["at"], frames[event["frame"]])
        for profile in file["profiles"]
        for event in profile["events"]
    ]
    return Counter(
        Slice(int(str(name).split(",")[0].removeprefix("IPU ")), *frame, begin, duration)
        for name, frame, begin, duration, _ in replayed(events)
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_step_is_opened_and_closed(tmp_path: Path, seed: int) -> None:
    # GIVEN steps that touch, nest, overlap and take no time; WHEN exported; THEN the file is valid and holds them
    directory = random_report(tmp_path / "report", seed)
    assert slices(written(directory)) == expected(directory).slices()


@pytest.mark.parametrize("seed", range(2))
def test_batches_and_files_do_not_show_and_ipus_can_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # GIVEN small batches, and profiles that are at once too large for memory
    directory = random_report(tmp_path / "report", seed)
    batches = trace_tracks.interval_batches

    def small(*arguments: Any, **options: Any) -> Any:
        for frame in batches(*arguments, **options):
            yield from (frame.iloc[at : at + 2] for at in range(0, len(frame), 2))

    monkeypatch.setattr(trace_tracks, "interval_batches", small)
    monkeypatch.setattr(speedscope, "_IN_MEMORY", 1)
    ipu = expected(directory).rows[0]["ipu"]
    assert slices(written(directory, ipus=[ipu])) == expected(directory, f"ipu = {ipu}").slices()


def test_an_ipu_is_a_profile_and_what_overlaps_is_another(tmp_path: Path) -> None:
    # GIVEN compute, a stream copy within it, and one that begins in it and ends after it
    steps = [(5, 90, "OnTileExecute", "work"), (10, 20, "StreamCopyMid", "in"), (80, 99, "StreamCopyMid", "out")]
    file = written(given_report(tmp_path / "report", steps, ipus=2))
    found = [(one["name"], one["startValue"], one["endValue"], len(one["events"])) for one in file["profiles"]]
    assert sorted(found) == [
        ("IPU 0", 5, 90, 4), ("IPU 0, at the same time (2)", 80, 99, 2),
        ("IPU 1", 5, 90, 4), ("IPU 1, at the same time (2)", 80, 99, 2),
    ]  # fmt: skip
    assert file["name"] == "a report"


def test_hostile_names(tmp_path: Path) -> None:
    directory = hostile_report(tmp_path / "report")
    assert slices(written(directory)) == expected(directory).slices()


@pytest.mark.parametrize(("hz", "unit"), [(1e9, "nanoseconds"), (0, "none")])
def test_without_a_clock_values_have_no_unit(tmp_path: Path, hz: float, unit: str) -> None:
    file = written(given_report(tmp_path / "report", [(5, 9, "Sync", "wait")], hz=hz))
    (profile,) = file["profiles"]
    assert (profile["unit"], profile["startValue"], profile["endValue"]) == (unit, 5, 9)


def test_no_execution(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {"programs": [{"program_id": 0, "type": "Sync", "name": ""}]},
                  ["execution_steps", "execution_step_ipus", "execution_blocks"])  # fmt: skip
    with pytest.raises(NotCaptured, match="execution"):
        written(tmp_path)
