"""``pvanalyse watch`` as a process that goes on, and in one look."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from pvanalyse.cli import main
from tests.cli.calls import Capture
from tests.conftest import ROOT, SAMPLES

PATIENCE_SECONDS = 120
LIGHTWEIGHT = SAMPLES / "lightweight"


class Watching:
    """A running ``pvanalyse watch``, whose lines can be waited for."""

    def __init__(self, *argv: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pvanalyse", "watch", *argv],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def until(self, words: str) -> str:
        """Return the next line that has these words."""
        while words not in (line := self._lines.get(timeout=PATIENCE_SECONDS)):
            pass
        return line

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watching]:
    watching = Watching("--interval", "0.1", str(tmp_path), "metrics", "--match", "memory.tile_max_including_gaps")
    yield watching
    watching.end()


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_it_shows_a_report_when_it_comes_changes_and_comes_back(watch: Watching, tmp_path: Path) -> None:
    watch.until("waiting for a complete report")
    shutil.copytree(SAMPLES / "transformer_before", tmp_path / "run")
    watch.until("run: a complete report")
    watch.until("548 KiB")

    shutil.copy(SAMPLES / "transformer_after" / "profile.pop", tmp_path / "run" / "profile.pop")
    watch.until("run: changed")
    watch.until("599 KiB")

    shutil.rmtree(tmp_path / "run")
    watch.until("is gone; waiting for it to come back")
    shutil.copytree(SAMPLES / "transformer_before", tmp_path / "run")
    watch.until("run: a complete report")
    watch.until("548 KiB")
    assert watch.interrupt() == 130


def test_a_damaged_report_is_said_and_watching_goes_on(watch: Watching, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "profile.pop").write_bytes(b"SQLite format 3\0" + bytes(10))
    watch.until("waiting: profile.pop truncated")
    watch.until("truncated: a SQLite header has 100 bytes")
    shutil.copy(LIGHTWEIGHT / "profile.pop", tmp_path / "run" / "profile.pop")
    watch.until("run: changed")
    assert watch.process.poll() is None


def once(*argv: str) -> int:
    return main(["watch", "--once", "--interval", "0.05", *argv])


def test_once_ends_with_the_code_of_the_command(capsys: Capture) -> None:
    assert once(str(LIGHTWEIGHT), "metrics", "-q", "--match", "target.num_tiles", "-f", "json") == 0
    assert capsys.readouterr().out.splitlines()[1].strip().startswith('"target.num_tiles":')
    assert once(str(LIGHTWEIGHT), "metrics", "--match", "no.such") == 4


def test_the_report_stands_where_it_is_wanted(tmp_path: Path) -> None:
    picture = tmp_path / "memory.png"
    assert once(str(SAMPLES / "transformer_before"), "plot", "memory-by-tile", "{}", "-o", str(picture)) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_once_gives_up_after_its_time(tmp_path: Path, capsys: Capture) -> None:
    assert once("--timeout", "0.2", str(tmp_path)) == 3
    assert "no report was complete within 0.2 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--timeout", "1", "."], "--timeout is about --once"),
        ([".", "ls"], "watch cannot run 'ls'; it runs: summary, memory,"),
        ([".", "watch"], "watch cannot run 'watch'"),
        ([".", "nothing"], "watch cannot run 'nothing'"),
        (["no/such/place"], "no/such/place: there is no directory 'no/such' in which it could appear"),
        (["--interval", "0", "."], "0"),
    ],
)
def test_wrong_usage_is_refused_at_once(argv: list[str], said: str, capsys: Capture) -> None:
    assert main(["watch", *argv]) == 2
    assert said in capsys.readouterr().err
