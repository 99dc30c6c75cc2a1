"""The Perfetto trace, decoded, against the steps of profile.pop; and by Perfetto's own proto where that is there."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from pvanalyse.analysis import flame
from pvanalyse.analysis.flame import flame_blocks
from pvanalyse.analysis.intervals import GROUP
from pvanalyse.errors import NotCaptured, PvanalyseError
from pvanalyse.render import perfetto, trace_tracks
from pvanalyse.render.perfetto import write_perfetto
from pvanalyse.report import open_report
from tests.oracle.reports import write_profile
from tests.render.traces import (
    KINDS,
    Expected,
    Slice,
    expected,
    given_report,
    hostile_report,
    nanoseconds,
    random_report,
    replayed,
)
from tests.render.wire import decode

SEEDS = range(16)
ANNOTATIONS = {
    "step": "step",
    "run": "run",
    "program": "program",
    "cycles": "cycles",
    "tile balance": "tile_balance",
    "active tile balance": "active_tile_balance",
    "bytes in": "data_in",
    "bytes out": "data_out",
}


def written(directory: Path, **selection: Any) -> bytes:
    out = BytesIO()
    with open_report(directory) as report:
        write_perfetto(report, out, **selection)
    return out.getvalue()


class Trace:
    """A trace as a viewer understands it."""

    def __init__(self, data: bytes) -> None:
        self.tracks: dict[int, dict[str, Any]] = {}
        self.events: list[tuple[int, bool, int, Any]] = []
        self.counters: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        interned: dict[str, dict[int, str]] = {}
        for packet in decode(data)["packet"]:
            assert packet["trusted_packet_sequence_id"] == 1
            if packet.get("sequence_flags") == 1:
                interned = {}
            for table, entries in packet.get("interned_data", {}).items():
                for entry in entries:
                    assert entry["iid"] > 0
                    assert interned.setdefault(table, {}).setdefault(entry["iid"], entry["name"]) == entry["name"]
            if "track_descriptor" in packet:
                descriptor = packet["track_descriptor"]
                assert descriptor["uuid"] not in self.tracks
                self.tracks[descriptor["uuid"]] = descriptor
            if "track_event" in packet:
                self._take(packet["timestamp"], packet["track_event"], interned)

    def _take(self, time: int, event: dict[str, Any], interned: dict[str, dict[int, str]]) -> None:
        uuid = event["track_uuid"]
        assert uuid in self.tracks
        if event["type"] == 4:
            self.counters[self.ipu(uuid), self.tracks[uuid]["name"]].append((time, event["counter_value"]))
            return
        what = None
        if event["type"] == 1:
            (category,) = event["category_iids"]
            notes = {
                interned["debug_annotation_names"][one["name_iid"]]: one.get("int_value", one.get("double_value"))
                for one in event.get("debug_annotations", ())
            }
            name = interned["event_names"][event["name_iid"]]
            what = (name, interned["event_categories"][category], tuple(sorted(notes.items())))
        self.events.append((uuid, event["type"] == 1, time, what))

    def ipu(self, uuid: int) -> int:
        process = self.tracks[self.tracks[uuid]["parent_uuid"]]["process"]
        ipu = process["pid"] - 1
        assert process["process_name"] == f"IPU {ipu}"
        return int(ipu)

    def slices(self) -> Counter[tuple[Slice, str, Any]]:
        """Each slice with the name of its track and its annotations."""
        return Counter(
            (Slice(self.ipu(uuid), what[0], what[1], begin, duration), self.tracks[uuid]["name"], what[2])
            for uuid, what, begin, duration, _ in replayed(self.events)
            if self.tracks[uuid]["name"] != "groups"
        )

    def groups(self) -> Counter[tuple[int, str, int, int]]:
        """IPU, name, begin and duration of each group."""
        return Counter(
            (self.ipu(uuid), what[0], begin, duration)
            for uuid, what, begin, duration, _ in replayed(self.events)
            if self.tracks[uuid]["name"] == "groups"
        )


def grouped(directory: Path, hz: float) -> Counter[tuple[int, str, int, int]]:
    """The groups as they are found in all intervals of an IPU at once."""
    found: Counter[tuple[int, str, int, int]] = Counter()
    with open_report(directory) as report:
        steps = report.execution.steps()
    for ipu, part in steps.groupby("ipu"):
        blocks = flame_blocks(part)
        for row in blocks[blocks["type"] == GROUP].itertuples():
            begin, end = nanoseconds(row.begin, hz), nanoseconds(row.end, hz)
            found[ipu, row.name or "group", begin, end - begin] += 1
    return found


def live(what: Expected, directory: Path, ipu: int) -> list[tuple[int, int]]:
    """When the bytes change that are live at the step of the program that began last, and to what."""
    most: dict[int, int] = {}
    with sqlite3.connect(f"file:{directory / 'profile.pop'}?mode=ro&immutable=1", uri=True) as database:
        for program, size in database.execute("SELECT program_id, not_always_live_bytes FROM liveness_steps"):
            most[program] = max(size, most.get(program, size))
    database.close()
    rows = [r for r in what.rows if r["ipu"] == ipu and r["end"] > r["begin"] and r["type"] != "SyncAns"]
    points: list[tuple[int, int]] = []
    for row in sorted(rows, key=lambda r: (r["begin"], r["step"])):
        size = most.get(row["program"])
        if size is not None and (not points or points[-1][1] != size):
            points.append((nanoseconds(row["begin"], what.hz), size))
    return points


def wanted(what: Expected) -> Counter[tuple[Slice, str, Any]]:
    def notes(row: dict[str, Any]) -> Any:
        return tuple(sorted((name, row[key]) for name, key in ANNOTATIONS.items() if row[key] is not None))

    return Counter((what.slice(row), KINDS.get(row["type"], "other"), notes(row)) for row in what.rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_step_is_a_slice(tmp_path: Path, seed: int) -> None:
    # GIVEN steps that touch, nest, overlap and take no time, on several IPUs, in several runs
    directory = random_report(tmp_path / "report", seed)
    what = expected(directory)
    # WHEN exported; THEN tracks nest, and their slices are the steps
    trace = Trace(written(directory))
    assert trace.slices() == wanted(what)
    # AND a counter is the total of what has ended by then
    for column, name in (("data_in", "bytes in"), ("data_out", "bytes out")):
        for ipu in {row["ipu"] for row in what.rows}:
            moved = [(max(r["begin"], r["end"]), r[column]) for r in what.rows if r["ipu"] == ipu and r[column]]
            total, points = 0, []
            for cycle, count in sorted(moved):
                total += count
                points.append((nanoseconds(cycle, what.hz), total))
            found = trace.counters.get((ipu, name), [])
            assert [time for time, _ in found] == [time for time, _ in points]
            assert dict(found) == dict(points)  # of steps that end together, the last is what stays
    # AND another is the memory that is live while they run
    for ipu in {row["ipu"] for row in what.rows}:
        assert trace.counters.get((ipu, "live memory of the replica"), []) == live(what, directory, ipu)
    # AND groups of neighbours are slices of their own
    assert trace.groups() == grouped(directory, what.hz)


@pytest.mark.parametrize("seed", range(4))
def test_runs_and_ipus_can_be_chosen(tmp_path: Path, seed: int) -> None:
    directory = random_report(tmp_path / "report", seed)
    every = expected(directory)
    run, ipu = every.rows[0]["run"], every.rows[0]["ipu"]
    assert Trace(written(directory, runs=[run])).slices() == wanted(expected(directory, f"run_id = {run}"))
    assert Trace(written(directory, ipus=[ipu])).slices() == wanted(expected(directory, f"ipu = {ipu}"))


@pytest.mark.parametrize("batch", [1, 3, 40])
def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    # GIVEN intervals that come in small batches, so that what is open at the end of one ends in a later one,
    # AND names that are soon too many to be kept in mind
    directory = random_report(tmp_path / "report", 5)
    batches = trace_tracks.interval_batches

    def small(*arguments: Any, **options: Any) -> Any:
        for frame in batches(*arguments, **options):
            yield from (frame.iloc[at : at + batch] for at in range(0, len(frame), batch))

    monkeypatch.setattr(trace_tracks, "interval_batches", small)
    monkeypatch.setattr(perfetto, "_MOST_NAMES", 4)
    # WHEN exported; THEN it is as ever
    data = written(directory)
    what, trace = expected(directory), Trace(data)
    assert trace.slices() == wanted(what)
    # AND a counter never goes back in time, and ends with all that was moved
    moved = {(row["ipu"], name): 0 for row in what.rows for name in ("bytes in", "bytes out")}
    for row in what.rows:
        moved[row["ipu"], "bytes in"] += row["data_in"] or 0
        moved[row["ipu"], "bytes out"] += row["data_out"] or 0
    totals = {key: points[-1][1] for key, points in trace.counters.items() if key in moved}
    assert totals == {key: total for key, total in moved.items() if total}
    assert all([time for time, _ in points] == sorted(time for time, _ in points) for points in trace.counters.values())
    # AND groups are as if all came at once
    assert trace.groups() == grouped(directory, what.hz)
    assert trace.counters
    cleared = [packet for packet in decode(data)["packet"] if packet.get("sequence_flags") == 1]
    assert len(cleared) > 1


def test_intervals_that_nest_share_a_track_and_others_do_not(tmp_path: Path) -> None:
    # GIVEN one within another, two that begin or end together, one without length, and one that overlaps
    steps = [(0, 40, "b"), (0, 100, "a"), (10, 40, "c"), (40, 40, "d"), (60, 100, "e"), (90, 120, "f"), (100, 130, "g")]
    directory = given_report(tmp_path / "report", [(b, e, "OnTileExecute", name) for b, e, name in steps])
    # WHEN exported
    trace = Trace(written(directory))
    found = [(uuid, what[0], begin, duration, depth) for uuid, what, begin, duration, depth in replayed(trace.events)]
    # THEN all but one lie on one track, as deep as they nest
    first, second = sorted(uuid for uuid, one in trace.tracks.items() if one.get("name") == "compute")
    assert sorted(found) == sorted([
        (first, "a", 0, 100, 0), (first, "b", 0, 40, 1), (first, "c", 10, 30, 2), (first, "d", 40, 0, 1),
        (first, "e", 60, 40, 1), (second, "f", 90, 30, 0), (first, "g", 100, 30, 0),
    ])  # fmt: skip


def test_groups_are_nested_and_end_with_a_stream_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a/b/x", "a/b/y", "a/c", "a/c", "copy", "a/b/z", "a/d"]
    steps = [(at * 10, at * 10 + 9, "StreamCopyBegin" if name == "copy" else "OnTileExecute", name)
             for at, name in enumerate(names)]  # fmt: skip
    directory = given_report(tmp_path / "report", steps)

    def groups() -> list[tuple[str, int, int, int]]:
        trace = Trace(written(directory))
        found = [(what[0], begin, begin + duration, depth) for uuid, what, begin, duration, depth in
                 replayed(trace.events) if trace.tracks[uuid]["name"] == "groups"]  # fmt: skip
        return sorted(found, key=lambda one: (one[1], one[3]))

    # GIVEN names that share parts, and a stream copy; THEN groups nest; AND none reaches across the copy
    assert groups() == [("a", 0, 39, 0), ("b", 0, 19, 1), ("StreamCopy", 40, 49, 0), ("a", 50, 69, 0)]
    # AND where too many intervals would have to be kept, a group is cut in two
    monkeypatch.setattr(flame, "_MOST_KEPT", 3)
    batches = trace_tracks.interval_batches
    monkeypatch.setattr(trace_tracks, "interval_batches", lambda *arguments, **options: (
        frame.iloc[at : at + 1] for frame in batches(*arguments, **options) for at in range(len(frame))))  # fmt: skip
    assert groups() == [("a", 0, 29, 0), ("b", 0, 19, 1), ("StreamCopy", 40, 49, 0), ("a", 50, 69, 0)]


def test_hostile_names_come_through_as_they_are(tmp_path: Path) -> None:
    directory = hostile_report(tmp_path / "report")
    assert Trace(written(directory)).slices() == wanted(expected(directory))


@pytest.mark.parametrize("hz", [1.0, 1.33e9, 1.85e9, 1e9 / 3, 0.1, 2.0**40])
def test_cycles_are_rounded_exactly(tmp_path: Path, hz: float) -> None:
    # GIVEN cycles up to the last that fits, which floating point would not tell apart
    last = min(int((2**63 - 2) * hz / 10**9 * (1 - 1e-15)), 2**62)
    steps = [(cycle, cycle + 1, "OnTileExecute", "") for cycle in (0, 1, 2, 7, last // 3, last - 9, last - 5)]
    directory = given_report(tmp_path / "report", steps, hz=hz)
    assert Trace(written(directory)).slices() == wanted(expected(directory))


@pytest.mark.parametrize("interval", [(-1, 5), (2**62, 2**62 + 1)])
def test_times_beyond_a_trace_are_refused(tmp_path: Path, interval: tuple[int, int]) -> None:
    directory = given_report(tmp_path / "report", [(*interval, "Sync", "")], hz=1.0)
    with pytest.raises(PvanalyseError, match="is a time that a trace has no room for"):
        written(directory)


def test_without_a_clock_a_cycle_is_a_nanosecond_and_the_trace_says_so(tmp_path: Path) -> None:
    # GIVEN the same steps with a clock of 1 GHz, and with none
    steps = [(5, 9, "Sync", "wait"), (9, 30, "OnTileExecute", "work")]
    known = given_report(tmp_path / "known", steps, hz=1e9)
    unknown = given_report(tmp_path / "unknown", steps, hz=0)
    # THEN the slices are the same, and only one of the two says something
    traces = [Trace(written(directory)) for directory in (known, unknown)]
    assert traces[0].slices() == traces[1].slices() == wanted(expected(known))
    labels = [[one["process"].get("process_labels") for one in trace.tracks.values() if "process" in one]
              for trace in traces]  # fmt: skip
    assert labels == [[None], [["the clock of the target is not known: a cycle is shown as a nanosecond"]]]


def test_more_lanes_than_are_kept_open(tmp_path: Path) -> None:
    # GIVEN 300 intervals of which each overlaps all others without nesting
    steps = [(at, 1000 + at, "OnTileExecute", f"{at}") for at in range(300)]
    directory = given_report(tmp_path / "report", steps)
    trace = Trace(written(directory))
    assert trace.slices() == wanted(expected(directory))
    assert sum(one.get("name") == "compute" for one in trace.tracks.values()) == 300


def test_no_execution(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", {"programs": [{"program_id": 0, "type": "Sync", "name": ""}]},
                  ["execution_steps", "execution_step_ipus", "execution_blocks"])  # fmt: skip
    with pytest.raises(NotCaptured, match="execution"):
        written(tmp_path)


def test_the_real_cache(real_cache: Path) -> None:
    # GIVEN the only real file; WHEN exported; THEN its leaf blocks are the slices, and the span is the known one
    with sqlite3.connect(f"file:{real_cache / 'profile.pop_cache'}?mode=ro&immutable=1", uri=True) as database:
        (name,) = next(
            iter(database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'execution_trace_blocks%'"))
        )
        blocks = database.execute(
            f"SELECT ipu, cycles_from, cycles_to FROM {name} WHERE tag <> 'FlameGraphNode'"
        ).fetchall()
    database.close()
    trace = Trace(written(real_cache))
    slices = trace.slices()
    found = Counter({(one.ipu, one.begin, one.begin + one.duration): 0 for one, _, _ in slices})
    for (one, _, _), count in slices.items():
        found[one.ipu, one.begin, one.begin + one.duration] += count
    assert found == Counter(blocks)
    # AND its groups are there
    assert trace.groups() == grouped(real_cache, 1e9)
    assert sum(trace.groups().values()) > 500


@pytest.mark.parametrize("seed", range(4))
def test_perfetto_s_own_proto_reads_the_same(tmp_path: Path, seed: int) -> None:
    # GIVEN Perfetto's published proto; WHEN it reads a trace; THEN it finds what was read here, and nothing else
    proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is not installed")
    data = written(random_report(tmp_path / "report", seed))
    trace = proto.Trace()
    trace.ParseFromString(data)
    assert _plain(trace) == decode(data)


def _plain(message: Any) -> Any:
    """A message as plain values by name."""
    if not hasattr(message, "ListFields"):
        return message
    found = {}
    for field, value in message.ListFields():
        repeated = getattr(field, "is_repeated", None)
        many = repeated if repeated is not None else field.label == field.LABEL_REPEATED
        found[field.name] = [_plain(one) for one in value] if many else _plain(value)
    return found
