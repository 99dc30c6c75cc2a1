"""Progress: on standard error, only when it takes long, never amid an answer."""

from __future__ import annotations

import threading
from io import StringIO

import pytest

from pvanalyse.cli import progress as module
from pvanalyse.cli.progress import Progress, progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Closed(StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class Clock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


def test_a_log_gets_a_line_for_each_table_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a log, and tables of which the second and the last take more than a second
    clock, log = Clock(monkeypatch), StringIO()
    shown = Progress(log)
    # WHEN they are read
    for seconds, table in ((0.1, "quick"), (0.1, "slow"), (0.9, "slow"), (0.2, "slow"), (9, "slow"), (0, "quick"),
                           (0, "last\x1b[31m"), (1.1, "last\x1b[31m")):  # fmt: skip
        clock.now += seconds
        shown.update(table, 1)
    shown.stop()
    # THEN each of these has one line, in which nothing is obeyed
    assert log.getvalue() == "pvanalyse: reading slow\npvanalyse: reading last\\x1b[31m\n"


def test_nothing_is_said_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, log = Clock(monkeypatch), StringIO()
    shown = Progress(log)
    shown.update("table", 1)
    shown.stop()
    clock.now += 10
    shown.update("table", 2)
    shown.stop()
    assert log.getvalue() == ""


def test_a_terminal_gets_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a terminal and a reading that takes longer than the patience
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "_SLOW_SECONDS", 0.0)
    started = threading.Event()
    terminal = Terminal()
    real = Progress._start

    def start(self: Progress) -> None:
        real(self)
        started.set()

    monkeypatch.setattr(Progress, "_start", start)
    # WHEN it is read
    shown = Progress(terminal)
    assert started.wait(60)
    shown.update("my [red]table\x1b[31m", 1234)
    shown.stop()
    # THEN the terminal was told what, obeying nothing, and has its line and its cursor back
    text = terminal.getvalue()
    assert "reading my [red]table\\x1b[31m: 1,234" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert text.endswith("\x1b[1A\x1b[2K")


def test_a_start_that_comes_too_late_shows_nothing() -> None:
    # GIVEN a reading that has ended; WHEN its timer fires all the same; THEN the terminal stays as it is
    terminal = Terminal()
    shown = Progress(terminal)
    shown.stop()
    shown._start()
    assert terminal.getvalue() == ""


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(monkeypatch)
    with progress(quiet=True) as shown:
        for _ in range(3):
            clock.now += 10
            shown.update("table", 1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("out", [None, Closed()], ids=["closed at first", "closed since"])
def test_a_standard_error_that_is_closed_does_no_harm(monkeypatch: pytest.MonkeyPatch, out: StringIO | None) -> None:
    clock = Clock(monkeypatch)
    shown = Progress(out)
    for _ in range(3):
        clock.now += 10
        shown.update("table", 1)
    shown.stop()
