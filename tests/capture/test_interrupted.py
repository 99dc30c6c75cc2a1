"""A capture that stops anywhere goes on from there, and ends in the same rows as one that did not."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pvanalyse import libpva
from pvanalyse.capture import capture_report
from pvanalyse.errors import PvanalyseError, UnreadableFile
from pvanalyse.report_files import CAPTURING
from pvanalyse.tables import PROFILE
from tests.capture.canonical import consistent_report
from tests.capture.strict import strict_pva
from tests.conftest import ROOT
from tests.libpva.reports import sample


def contents(directory: Path) -> dict[str, list[Any]]:
    """Every row of every table, in the order in which they are stored."""
    with closing(sqlite3.connect(f"file:{directory / PROFILE}?mode=ro&immutable=1", uri=True)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}


class Fragile(set[Any]):
    """What a strict pva takes down what is asked for in: raises when it is asked for the last time it can bear."""

    def __init__(self, bears: int, error: BaseException) -> None:
        super().__init__()
        self.bears, self.error = bears, error

    def add(self, _what: Any) -> None:
        self.bears -= 1
        if self.bears < 0:
            raise self.error


@pytest.mark.parametrize("seed", range(12))
def test_interrupted_anywhere_it_goes_on_from_there(seed: int, tmp_path: Path) -> None:
    # GIVEN a report, and how it is captured in one go
    rng = random.Random(seed)
    source = consistent_report(tmp_path / "report", seed) / PROFILE
    count: set[Any] = Fragile(10**9, KeyboardInterrupt())
    capture_report(source, tmp_path / "whole", strict_pva("D U C++ L", count))
    asks = 10**9 - count.bears
    # WHEN it is interrupted again and again, at other places, with chunks of one item
    error = rng.choice([KeyboardInterrupt(), MemoryError(), RuntimeError("bus"), OSError("gone")])
    interrupted = 0
    for attempt in range(200):
        try:
            fragile = Fragile(rng.randint(asks // 30, asks // 10) + 20 * attempt, error)
            done = capture_report(source, tmp_path / "parts", strict_pva("D U C++ L", fragile), chunk_seconds=0)
            break
        except (KeyboardInterrupt, MemoryError, PvanalyseError):
            interrupted += 1
            assert not (tmp_path / "parts" / PROFILE).exists()
    # THEN it ends, says that it went on, and has the same rows in the same order; nothing is left of the work
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert interrupted > 3
    assert done.remarks == ("an earlier capture was continued",)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [PROFILE]


def test_interrupted_after_every_step_nothing_lives_longer_or_shorter(tmp_path: Path) -> None:
    # GIVEN a report in which variables live for several steps
    source = consistent_report(tmp_path / "report", 4) / PROFILE
    lives = [("b", 2, 5, 8), ("a", 0, 9, 4), ("c", 5, 12, 16), ("b", 7, 12, 8)]  # by their ends
    with closing(sqlite3.connect(source)) as database, database:
        database.executescript("DELETE FROM liveness_steps; DELETE FROM variable_liveness")
        database.executemany("INSERT INTO liveness_steps VALUES (?, 0, 0)", [(step,) for step in range(12)])
        database.executemany("INSERT INTO variable_liveness VALUES (NULL, ?, ?, ?, ?)", lives)
    capture_report(source, tmp_path / "whole", libpva)
    whole = contents(tmp_path / "whole")
    assert whole["variable_liveness"] == [(None, *life) for life in lives]
    kept: list[int] = []

    def interrupt(part: str, done: int, _total: int) -> None:
        if part == "liveness steps" and done > len(kept):
            kept.append(done)
            raise KeyboardInterrupt

    # WHEN it is interrupted after each of its liveness steps
    for _ in range(12):
        with pytest.raises(KeyboardInterrupt):
            capture_report(source, tmp_path / "parts", libpva, progress=interrupt, chunk_seconds=0)
    assert kept == list(range(1, 13))
    # THEN it ends in the same rows
    capture_report(source, tmp_path / "parts", libpva)
    assert contents(tmp_path / "parts") == whole


def test_what_fails_is_said_with_its_place(tmp_path: Path) -> None:
    # GIVEN a pva that fails in the middle
    source = sample("replicated") / PROFILE
    fragile = Fragile(20_000, RuntimeError("the file\x1b[2J is short"))
    # THEN it is said where, how to go on, and without control characters
    with pytest.raises(UnreadableFile) as raised:
        capture_report(source, tmp_path / "out", strict_pva("D U C++ L", fragile))
    said = str(raised.value)
    assert said.startswith(f"{source}: strict failed (RuntimeError: the file")
    assert "in part 'tiles', item " in said
    assert "--skip 'tiles'" in said
    assert "\x1b" not in said
    # AND the part can be skipped, although half of it is there
    captured = capture_report(source, tmp_path / "out", libpva_named("strict"), skip=["tiles"])
    assert {one.table for one in captured.without if one.meaning == "left out: it was to be skipped"} == {
        "tile_memory", "tile_memory_category", "tile_vertices",
    }  # fmt: skip
    assert "tile_memory" not in captured.tables
    assert captured.tables["lowered_variables"] == 9380


def libpva_named(name: str) -> Any:
    return SimpleNamespace(__name__=name, openReport=libpva.openReport)


def test_a_report_that_changed_is_captured_afresh(tmp_path: Path) -> None:
    # GIVEN an interrupted capture of a report
    report = consistent_report(tmp_path / "report", 5)
    with pytest.raises(KeyboardInterrupt):
        capture_report(report / PROFILE, tmp_path / "out", strict_pva("D U", Fragile(2000, KeyboardInterrupt())),
                       chunk_seconds=0)  # fmt: skip
    # WHEN the report is another one when it is captured again
    (report / PROFILE).unlink()
    (report / "archive.a").unlink(missing_ok=True)
    consistent_report(report, 6)
    captured = capture_report(report / PROFILE, tmp_path / "out", strict_pva("D U", set()))
    # THEN nothing of the old one is in it, and this is said
    capture_report(report / PROFILE, tmp_path / "whole", strict_pva("D U", set()))
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert captured.remarks == (
        "profile_capturing.pop was of another report, or of this one before it changed; captured afresh",
    )


def test_a_report_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    report = consistent_report(tmp_path / "report", 5)

    def change(_part: str, _done: int, _total: int) -> None:
        os.utime(report / PROFILE, ns=(1, 1))

    with pytest.raises(UnreadableFile, match="was changed while it was captured"):
        capture_report(report / PROFILE, tmp_path / "out", libpva, progress=change)
    assert not (tmp_path / "out" / PROFILE).exists()


def test_a_complete_file_that_was_not_renamed_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a capture that was killed just before the file got its name
    source = sample("replicated") / PROFILE
    capture_report(source, tmp_path / "whole", libpva, skip=["blocks"])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(UnreadableFile, match="cannot be written"):
            capture_report(source, tmp_path / "out", libpva, skip=["blocks"])
    # THEN the next one need not read the report, and lists the same
    calls: list[str] = []
    module = SimpleNamespace(__name__=libpva.__name__, openReport=calls.append)
    captured = capture_report(source, tmp_path / "out", module)
    assert calls == []
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert any(one.table == "execution_blocks" and "left out" in one.meaning for one in captured.without)


def test_another_file_of_the_name_is_left_alone(tmp_path: Path) -> None:
    source = sample("replicated") / PROFILE
    for content in (b"not a database, but more than nothing", (sample("lightweight") / PROFILE).read_bytes()):
        (tmp_path / CAPTURING).write_bytes(content)
        with pytest.raises(UnreadableFile, match="is not an unfinished capture"):
            capture_report(source, tmp_path, libpva)
        assert (tmp_path / CAPTURING).read_bytes() == content


def test_two_at_once_do_not_mix(tmp_path: Path) -> None:
    source = sample("replicated") / PROFILE
    second: list[str] = []

    def again(_part: str, _done: int, _total: int) -> None:
        if not second:
            with pytest.raises(UnreadableFile) as raised:
                capture_report(source, tmp_path, libpva)
            second.append(str(raised.value))

    capture_report(source, tmp_path, libpva, progress=again)
    assert "another capture is writing it" in second[0]
    assert (tmp_path / PROFILE).exists()


RUN = """
import sys
from pathlib import Path
from pvanalyse import libpva
from pvanalyse.capture import capture_report
def slow(part, done, total):
    print(part, done, flush=True)
capture_report(Path(sys.argv[1]), Path(sys.argv[2]), libpva, progress=slow, chunk_seconds=0)
"""


def test_killed_anywhere_it_goes_on(tmp_path: Path) -> None:
    # GIVEN a report and its capture in one go
    source = sample("lightweight") / PROFILE
    capture_report(source, tmp_path / "whole", libpva)
    # WHEN processes that capture it are killed without warning, each a little later
    lines = [5, 60, 900]
    for wanted in lines:
        process = subprocess.Popen([sys.executable, "-c", RUN, str(source), str(tmp_path / "out")], cwd=ROOT,
                                   stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert process.stdout is not None
        reached = [process.stdout.readline() for _ in range(wanted)]
        time.sleep(random.random() / 50)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert reached[-1]
        assert not (tmp_path / "out" / PROFILE).exists()
    # THEN the next goes on from there and all is there
    captured = capture_report(source, tmp_path / "out", libpva)
    assert captured.remarks == ("an earlier capture was continued",)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [PROFILE]


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
from pvanalyse.cli import main
raise SystemExit(main({command!r}))
"""


def test_no_room_left_is_one_sentence_and_goes_on(tmp_path: Path) -> None:
    # GIVEN a file system that has no room for all of it; a limit of files' sizes is one that needs no privileges
    source = sample("replicated") / PROFILE
    code = LIMITED.format(command=["capture", "--pva", "pvanalyse.libpva", "-o", "out", "-q", str(source)])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    # THEN that is said in a sentence
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert "profile_capturing.pop" in done.stderr
    assert "the same command continues it" in done.stderr
    # AND with room, it goes on
    captured = capture_report(source, tmp_path / "out", libpva)
    capture_report(source, tmp_path / "whole", libpva)
    assert captured.remarks == ("an earlier capture was continued",)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_full_disk_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a database that may not grow as large as the report, which SQLite calls full
    source, connect = sample("replicated") / PROFILE, sqlite3.connect

    def small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        database = connect(*arguments, **options)
        database.execute("PRAGMA max_page_count = 100")
        return database

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", small)
        with pytest.raises(UnreadableFile) as raised:
            capture_report(source, tmp_path / "out", libpva)
    assert str(raised.value) == (
        f"{tmp_path / 'out' / CAPTURING}: the disk is full; make room, what was captured so far is kept, the same "
        "command continues it"
    )
    # AND it goes on when there is room
    capture_report(source, tmp_path / "out", libpva)
    capture_report(source, tmp_path / "whole", libpva)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
