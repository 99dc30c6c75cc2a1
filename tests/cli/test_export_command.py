"""``pvanalyse export``: what it writes, what it says about it, what it refuses, and with which exit code."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path

import pyarrow.parquet
import pytest

from pvanalyse.cli import main
from pvanalyse.cli.export_command import FILES, TRACES
from tests.cli.calls import Capture, answer, answer_json, refusal, rows
from tests.conftest import SAMPLES
from tests.oracle.reports import write_profile
from tests.render.traces import given_report, hostile_report
from tests.render.wire import decode

REPORT = SAMPLES / "pipelined" / "training"
COUNT = "SELECT count(*) AS n FROM execution_step_ipus"


def slices_in(kind: str, file: Path) -> int:
    if kind == "perfetto":
        events = [packet.get("track_event", {}) for packet in decode(file.read_bytes())["packet"]]
        return sum(event.get("type") == 1 and "debug_annotations" in event for event in events)  # groups have none
    trace = json.loads(file.read_text("ascii"))
    if kind == "chrome":
        return sum(event["ph"] == "X" for event in trace["traceEvents"])
    return sum(event["type"] == "O" for profile in trace["profiles"] for event in profile["events"])


@pytest.mark.parametrize("kind", TRACES)
def test_a_trace_and_what_is_said_about_it(capsys: Capture, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "trace"
    said = answer_json(capsys, "export", kind, str(REPORT), "-o", str(file))
    (count,) = rows(REPORT, COUNT)
    assert slices_in(kind, file) == count["n"]
    tracks, groups = said.pop("tracks"), said.pop("groups")
    assert tracks >= 2
    assert (groups > 0) is (kind == "perfetto")
    assert said == {
        "report": str(REPORT), "kind": kind, "file": str(file), "bytes": file.stat().st_size, "slices": count["n"],
        "ipus": [0, 1], "clock_hz": 1.33e9,
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("kind", TRACES)
def test_runs_and_ipus(capsys: Capture, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "trace"
    said = answer_json(capsys, "export", kind, str(REPORT), "-o", str(file), "--run", "1", "--run", "2", "--ipu", "1")
    query = f"{COUNT} JOIN execution_steps USING (step_id) WHERE run_id IN (1, 2) AND ipu = 1"
    (count,) = rows(REPORT, query)
    assert said["slices"] == slices_in(kind, file) == count["n"] > 0
    assert said["ipus"] == [1]


def test_a_table(capsys: Capture, tmp_path: Path) -> None:
    (count,) = rows(REPORT, "SELECT count(*) AS n FROM programs")
    for kind in ("csv", "parquet"):
        said = answer_json(capsys, "export", kind, str(REPORT), "-o", str(tmp_path / kind), "--table", "programs")
        assert said["tables"] == [{"table": "programs", "rows": count["n"]}]
    assert len(list(csv.reader(StringIO((tmp_path / "csv").read_text("utf-8"))))) == count["n"] + 1
    assert pyarrow.parquet.read_table(tmp_path / "parquet").num_rows == count["n"]


def test_tables_in_one_database(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN no names; THEN the database has all that was captured; WITH names only these
    every, some = tmp_path / "every.db", tmp_path / "some.db"
    said = answer_json(capsys, "export", "sqlite", str(REPORT), "-o", str(every))
    answer(capsys, "export", "sqlite", str(REPORT), "-o", str(some), "--table", "runs", "--table", "target")
    found = {}
    for file in (every, some):
        with closing(sqlite3.connect(file)) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
            found[file] = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    assert found[every] == {one["table"]: one["rows"] for one in said["tables"]}
    assert set(found[every]) >= {"programs", "lowered_variables", "archive_tiles", "debug_contexts"}
    assert "trace_blocks" not in found[every]
    assert found[some] == {"runs": 4, "target": 1}


def test_what_people_are_told(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    given_report(tmp_path / "report", [(0, 5, "Sync", "x"), (5, 9, "Sync", "y")], ipus=3)
    said = answer(capsys, "export", "chrome", str(tmp_path / "report"), "-o", str(file), "--units", "bytes")
    facts = [line.split(maxsplit=1) for line in said.splitlines()[3:]]
    assert facts == [["File", str(file)], ["Size", f"{file.stat().st_size:,} B"], ["Slices", "6"], ["Tracks", "3"],
                     ["IPUs", "0, 1, 2"], ["Clock", "1.00 GHz"]]  # fmt: skip


@pytest.mark.parametrize("kind", [*TRACES, *FILES])
def test_a_file_is_not_overwritten_unless_forced(capsys: Capture, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    argv = ["export", kind, str(REPORT), "-o", str(file), *(["--table", "target"] if kind in FILES else [])]
    assert "exists already; --force overwrites it" in refusal(capsys, 2, *argv)
    assert file.read_text() == "precious"
    answer(capsys, *argv, "--force")
    assert file.read_bytes()[:8] != b"precious"


@pytest.mark.parametrize(("kind", "options"), [("perfetto", ["--run", "77"]), ("chrome", ["--ipu", "9"]),
                                               ("csv", ["--table", "trace_blocks"])])  # fmt: skip
def test_when_it_fails_what_was_there_stays(capsys: Capture, tmp_path: Path, kind: str, options: list[str]) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    refusal(capsys, 4 if kind == "csv" else 2, "export", kind, str(REPORT), "-o", str(file), "--force", *options)
    assert file.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_half_way_leaves_nothing(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN a report whose last step is at a time that no trace can say
    steps = [(at, at + 1, "Sync", "") for at in range(10)] + [(2**62, 2**62 + 5, "Sync", "")]
    given_report(tmp_path / "report", steps, hz=1)
    for kind in TRACES:
        said = refusal(capsys, 3, "export", kind, str(tmp_path / "report"), "-o", str(tmp_path / "trace"))
        assert "is a time that a trace has no room for" in said
    assert [one.name for one in tmp_path.iterdir()] == ["report"]


def test_the_report_itself_is_never_overwritten(capsys: Capture, tmp_path: Path) -> None:
    report = tmp_path / "report"
    shutil.copytree(REPORT, report)
    (tmp_path / "link").symlink_to(report / "profile.pop")
    before = (report / "profile.pop").read_bytes()
    for place in (report / "profile.pop", tmp_path / "link"):
        argv = ["export", "perfetto", str(report), "-o", str(place), "--force"]
        assert "is a file of the report itself" in refusal(capsys, 2, *argv)
    assert (report / "profile.pop").read_bytes() == before


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["csv"], "csv is a file of one table: name it with --table"),
        (["parquet", "--table", "runs", "--table", "target"], "parquet is a file of one table"),
        (["csv", "--table", "programms"], "there is no table 'programms'; did you mean programs"),
        (["csv", "--table", "runs", "--run", "0"], "--run is not for csv but for perfetto, speedscope, chrome"),
        (["sqlite", "--ipu", "0"], "--ipu is not for sqlite"),
        (["perfetto", "--table", "runs"], "--table is not for perfetto but for csv, parquet, sqlite"),
        (["perfetto", "--run", "99"], "there is no run 99; runs are 0 to 3"),
        (["perfetto", "--ipu", "2"], "there is no IPU 2; IPUs are 0 to 1"),
        (["nonsense"], "'nonsense' is not one of"),
        (["perfetto", "--format", "json:file"], "two answers go to file"),
    ],
)
def test_wrong_usage(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refusal(capsys, 2, "export", argv[0], str(REPORT), "-o", "file", *argv[1:])
    assert list(tmp_path.iterdir()) == []


def test_the_file_has_to_be_named(capsys: Capture) -> None:
    assert "Missing option '--output'" in refusal(capsys, 2, "export", "perfetto", str(REPORT))


@pytest.mark.parametrize("kind", TRACES)
def test_no_execution(capsys: Capture, tmp_path: Path, kind: str) -> None:
    write_profile(tmp_path / "profile.pop", {}, ["execution_steps", "execution_step_ipus", "execution_blocks"])
    said = refusal(capsys, 4, "export", kind, str(tmp_path), "-o", str(tmp_path / "trace"))
    assert "was not captured in this report; to capture it:" in said
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("kind", TRACES)
def test_hostile_names_are_no_trouble(capsys: Capture, tmp_path: Path, kind: str) -> None:
    report = hostile_report(tmp_path / "report")
    said = answer_json(capsys, "export", kind, str(report), "-o", str(tmp_path / "trace"))
    assert slices_in(kind, tmp_path / "trace") == said["slices"]


def test_without_a_clock_it_is_said(capsys: Capture, tmp_path: Path, real_cache: Path) -> None:
    argv = ["export", "perfetto", str(real_cache), "-o", str(tmp_path / "trace"), "--force", "--format", "json"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert err == "pvanalyse: the clock of the target is not known: a cycle is shown as a nanosecond\n"
    said = json.loads(out)
    assert (said["clock_hz"], said["ipus"]) == (None, [0, 1])
    assert main([*argv, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("kind", [*TRACES, "csv", "parquet"])
def test_a_full_disk(capsys: Capture, kind: str) -> None:
    table = ["--table", "programs"] if kind in FILES else []
    said = refusal(capsys, 3, "export", kind, str(REPORT), "-o", "/dev/full", *table)
    assert said == f"pvanalyse: /dev/full: cannot be written ({os.strerror(28)})\n"


def test_a_database_is_no_device(capsys: Capture) -> None:
    said = refusal(capsys, 2, "export", "sqlite", str(REPORT), "-o", os.devnull)
    assert "a database is a regular file" in said


def test_through_a_link_to_where_it_leads(capsys: Capture, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    answer(capsys, "export", "csv", str(REPORT), "-o", str(link), "--table", "runs")
    assert link.is_symlink()
    assert target.read_text("utf-8").startswith('"run_id"')
