"""When a report counts as complete, step by step as a program, a copy or a crash leaves it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pvanalyse.watching import Event, Watcher
from tests.conftest import SAMPLES

LIGHTWEIGHT = SAMPLES / "lightweight"


def events(watcher: Watcher, looks: int = 1) -> list[tuple[str, str]]:
    """What so many looks tell: event and the directory's path below the one that is watched."""
    told = [change for _ in range(looks) for change in watcher.look()]
    return [(change.event.value, change.directory.relative_to(watcher.path).as_posix()) for change in told]


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    shutil.copytree(LIGHTWEIGHT, tmp_path / "a")
    return tmp_path


def test_a_report_is_told_once_when_two_looks_find_it_the_same(watched: Path) -> None:
    watcher = Watcher(watched)
    assert [events(watcher) for _ in range(4)] == [[], [("new", "a")], [], []]


def test_what_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path / "later")
    assert events(watcher, 3) == []
    shutil.copytree(LIGHTWEIGHT, tmp_path / "later" / "run")
    assert events(watcher, 2) == [("new", "run")]


def test_a_profile_under_its_temporary_name_is_not_complete(watched: Path) -> None:
    # GIVEN a program that has not destroyed its engine yet
    profile = watched / "a" / "profile.pop"
    for other in (watched / "a").iterdir():
        if other != profile:
            other.unlink()
    temporary = profile.rename(profile.with_name("profile_x7Tq.pop"))
    watcher = Watcher(watched)
    assert events(watcher, 5) == []

    # WHEN it does
    temporary.rename(profile)

    # THEN the report is complete
    assert events(watcher, 2) == [("new", "a")]


def test_a_copy_that_grows_is_waited_for_and_told_when_it_has_grown(watched: Path) -> None:
    profile = watched / "a" / "profile.pop"
    whole = profile.read_bytes()
    profile.write_bytes(whole[:5000])
    watcher = Watcher(watched)
    for size in range(10_000, 40_000, 10_000):
        assert events(watcher) == []
        profile.write_bytes(whole[:size])
    profile.write_bytes(whole)
    assert events(watcher, 3) == [("new", "a")]


def test_a_profile_that_stays_cut_off_is_told_after_a_while_with_the_reason_before(watched: Path) -> None:
    profile = watched / "a" / "profile.pop"
    profile.write_bytes(profile.read_bytes()[:5000])
    watcher = Watcher(watched)
    changes = [change for _ in range(8) for change in watcher.look()]
    assert [change.event for change in changes] == [Event.WAITING, Event.NEW]
    assert changes[0].reason.startswith("profile.pop truncated: its header promises")


def test_a_journal_that_holds_something_is_waited_for(watched: Path) -> None:
    journal = watched / "a" / "profile.pop-wal"
    journal.write_bytes(b"something")
    watcher = Watcher(watched)
    assert events(watcher, 6) == [("waiting", "a")]
    journal.unlink()
    assert events(watcher, 2) == [("new", "a")]


def test_a_side_file_of_nothing_is_no_reason_to_wait(watched: Path) -> None:
    (watched / "a" / "profile.pop-wal").write_bytes(b"")
    (watched / "a" / "profile.pop-shm").write_bytes(b"x")
    assert events(Watcher(watched), 2) == [("new", "a")]


def test_a_transaction_in_place_is_a_change(watched: Path) -> None:
    # GIVEN a report that was told
    watcher = Watcher(watched)
    events(watcher, 2)

    # WHEN SQLite writes to it and the file keeps its size
    profile = watched / "a" / "profile.pop"
    with closing(sqlite3.connect(profile)) as database:
        database.execute("UPDATE report_info SET key = key")
        database.commit()

    # THEN it is told again
    assert events(watcher, 3) == [("changed", "a")]


def test_any_file_of_the_report_counts_and_so_does_a_new_one(watched: Path) -> None:
    watcher = Watcher(watched)
    events(watcher, 2)
    (watched / "a" / "app.json").write_text('{"epoch": 2}')
    assert events(watcher, 3) == [("changed", "a")]


def test_a_debug_cbor_of_the_parent_counts(watched: Path) -> None:
    (watched / "a" / "debug.cbor").unlink()
    watcher = Watcher(watched)
    events(watcher, 2)
    (watched / "debug.cbor").write_bytes(b"\xa0")
    assert events(watcher, 3) == [("changed", "a")]


def test_deletion_and_replacement(watched: Path) -> None:
    watcher = Watcher(watched)
    events(watcher, 2)
    shutil.rmtree(watched / "a")
    assert events(watcher, 3) == [("gone", "a")]
    shutil.copytree(SAMPLES / "replicated", watched / "a")
    assert events(watcher, 3) == [("new", "a")]


def test_the_directory_itself_may_go_and_come_back(watched: Path) -> None:
    watcher = Watcher(watched)
    events(watcher, 2)
    away = watched.rename(watched.with_name("away"))
    assert events(watcher, 2) == [("gone", "a")]
    away.rename(watched)
    assert events(watcher, 3) == [("new", "a")]


def test_a_profile_put_in_place_of_another_is_a_change(watched: Path) -> None:
    watcher = Watcher(watched)
    events(watcher, 2)
    shutil.copy(SAMPLES / "replicated" / "profile.pop", watched / "new.tmp")
    (watched / "new.tmp").rename(watched / "a" / "profile.pop")
    assert events(watcher, 3) == [("changed", "a")]


def test_what_is_known_is_not_told_until_it_changes_or_comes_back(watched: Path) -> None:
    watcher = Watcher(watched)
    watcher.know()
    assert events(watcher, 3) == []
    (watched / "a" / "app.json").write_text("{}")
    assert events(watcher, 3) == [("changed", "a")]
    shutil.rmtree(watched / "a")
    shutil.copytree(LIGHTWEIGHT, watched / "b")
    assert events(watcher, 3) == [("gone", "a"), ("new", "b")]


def test_each_of_several_reports_is_told_of_its_own(watched: Path) -> None:
    watcher = Watcher(watched)
    events(watcher, 2)
    shutil.copytree(LIGHTWEIGHT, watched / "b")
    assert events(watcher, 3) == [("new", "b")]


def test_one_file_can_be_watched(watched: Path) -> None:
    watcher = Watcher(watched / "a" / "profile.pop")
    assert [change.event for _ in range(2) for change in watcher.look()] == [Event.NEW]
