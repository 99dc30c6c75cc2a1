"""The command line as a process: pipes that close, signals, terminals, locales, and streams that are not there."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes, signals and terminals as POSIX has them")

REPORT = str(SAMPLES / "pipelined" / "training")
PVANALYSE = [sys.executable, "-m", "pvanalyse"]
CALLS = {
    "summary": ["summary", REPORT],
    "metrics": ["metrics", REPORT],
    "json": ["metrics", REPORT, "--format", "json"],
    "csv": ["summary", REPORT, "--format", "csv"],
    "inspect": ["inspect", f"{REPORT}/profile.pop"],
    "dialect": ["inspect", f"{REPORT}/profile.pop", "--suggest-dialect", "-"],
    "ls": ["ls", str(SAMPLES)],
    "help": ["--help"],
    "help of a command": ["summary", "--help"],
}
PATIENCE_SECONDS = 120
_ANY_ENVIRONMENT = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM", "LC_ALL", "LANG", "PYTHONIOENCODING",
                    "PYTHONUTF8", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM")  # fmt: skip


def environment(**added: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _ANY_ENVIRONMENT}
    return {**kept, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **added}


def ended(
    argv: Sequence[str | bytes], stdout: int = subprocess.PIPE, **added: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a process to its end; what it says of its progress, as it may where a machine is slow, is left out."""
    done = subprocess.run(
        argv, env=environment(**added), stdout=stdout, stderr=subprocess.PIPE, timeout=PATIENCE_SECONDS, check=False
    )
    done.stderr = re.sub(rb"(?m)^pvanalyse: reading .*\n", b"", done.stderr)
    return done


def run(argv: Sequence[str], **added: str) -> subprocess.CompletedProcess[bytes]:
    return ended([*PVANALYSE, *argv], **added)


def shell(script: str, *argv: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell script in which "$@" is the command."""
    return ended(["sh", "-c", script, "sh", *PVANALYSE, *argv])


# ------------------------------------------------------------------------------------------ pipes that are not there
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_reader_that_has_seen_enough_is_no_error(call: list[str]) -> None:
    # GIVEN a pipe whose reader is gone; WHEN a command writes into it; THEN it ends well and says nothing
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = ended([*PVANALYSE, *call], stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_first_line_is_all_that_head_wants() -> None:
    done = shell('{ "$@"; echo "ended with $?" >&2; } | head -n 1', *CALLS["summary"])
    assert done.stdout.decode() == f"{REPORT}\n"
    assert done.stderr == b"ended with 0\n"


@pytest.mark.parametrize("name", ["summary", "csv", "help", "help of a command"])
def test_a_full_disk_is_one_sentence(name: str) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("this system has no /dev/full")
    done = shell('"$@" > /dev/full', *CALLS[name])
    assert (done.returncode, done.stderr) == (
        3, b"pvanalyse: the answer cannot be written: No space left on device\n",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["summary", "csv", "dialect"])
def test_a_closed_standard_output_is_one_sentence(name: str) -> None:
    done = shell('"$@" >&-', *CALLS[name])
    assert (done.returncode, done.stderr) == (3, b"pvanalyse: standard output is closed\n")


def test_a_closed_standard_output_is_not_missed_when_the_answer_goes_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    done = shell('"$@" >&-', "metrics", REPORT, "--format", f"json:{file}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(file.read_bytes())["target.num_ipus"] == 2


def test_a_closed_standard_error_is_not_missed() -> None:
    done = shell('"$@" 2>&-', *CALLS["json"])
    assert done.returncode == 0
    assert json.loads(done.stdout)["target.num_ipus"] == 2
    assert shell('"$@" 2>&-', "metrics", REPORT + "/nothing").returncode == 3


def test_a_closed_standard_input_is_not_missed() -> None:
    assert shell('"$@" <&-', *CALLS["json"]).stdout == run(CALLS["json"]).stdout


# ---------------------------------------------------------------------------------------------------------- signals
def test_an_interrupt_ends_with_130_and_without_a_traceback() -> None:
    # GIVEN a command that takes long; survey() stands for it, so that the test need not wait for a slow disk
    code = (
        "import sys, time; import pvanalyse.discovery as discovery; from pvanalyse.cli import main\n"
        "def survey(path):\n    print('busy', flush=True)\n    time.sleep(600)\n"
        "discovery.survey = survey\nsys.exit(main(['ls', '.']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"busy\n"
        # WHEN interrupted
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    # THEN it ends as shells expect, in a sentence
    assert (process.returncode, out) == (130, b"")
    assert err.decode().split("\n")[-2:] == ["pvanalyse: interrupted", ""]
    assert b"Traceback" not in err


# ---------------------------------------------------------------------------------------------------------- locales
LOCALES: Mapping[str, Mapping[str, str]] = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ascii": {"PYTHONIOENCODING": "ascii:strict"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
}


@pytest.fixture
def greek(tmp_path: Path) -> str:
    """A report directory whose contents have letters that are in few encodings."""
    directory = tmp_path / "greek"
    directory.mkdir()
    for name in ("profile.pop", "archive.a", "framework.json"):
        (directory / name).write_bytes((Path(REPORT) / name).read_bytes())
    (directory / "app.json").write_text('{"größe": "10 µs × λ"}', encoding="utf-8")
    return str(directory)


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
def test_machine_formats_do_not_depend_on_the_locale(greek: str, locale: Mapping[str, str]) -> None:
    # GIVEN names that the locale cannot write; WHEN asked for JSON and CSV; THEN they are as in any other locale
    for format_ in ("json", "csv"):
        done = run(["summary", greek, "--format", format_], **locale)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == run(["summary", greek, "--format", format_]).stdout
    rows = list(csv.reader(StringIO(done.stdout.decode("utf-8"), newline="")))
    assert ["app.json", "", "größe", "", "10 µs × λ", ""] in rows


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES)
def test_text_makes_do_with_the_locale(greek: str, locale: Mapping[str, str]) -> None:
    # GIVEN a locale without our rules, signs and a name's letters; WHEN asked for text
    done = run(["summary", greek], **locale)
    assert (done.returncode, done.stderr) == (0, b"")
    # THEN lines are drawn with what there is, and names are escaped, not dropped
    encoding = "latin-1" if "latin-1" in locale.values() else "ascii"
    text = done.stdout.decode(encoding)
    assert re.search(r"^  -{20,}$", text, re.MULTILINE)
    assert "\\u03bb" in text
    assert "\\u2500" not in text
    assert len(text.splitlines()) == len(run(["summary", greek]).stdout.decode().splitlines())


def test_errors_make_do_with_the_locale(tmp_path: Path) -> None:
    done = run(["summary", str(tmp_path / "λ")], LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stdout) == (3, b"")
    assert len(done.stderr.decode("ascii").splitlines()) == 1


def test_a_directory_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    # GIVEN a report under a name that no encoding explains
    name = os.fsencode(tmp_path) + b"/caf\xe9"
    directory = Path(os.fsdecode(name))
    try:
        directory.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    (directory / "archive.a").write_bytes((Path(REPORT) / "archive.a").read_bytes())
    for format_ in ("text", "json", "csv", "markdown"):
        # WHEN asked for in any format; THEN the answer is UTF-8 and shows the byte
        done = run(["summary", str(directory), "--format", format_])
        assert (done.returncode, done.stderr) == (0, b"")
        text = done.stdout.decode("utf-8")
        if format_ == "json":
            assert os.fsencode(json.loads(text)["report"]["directory"]) == name
        elif format_ != "csv":
            assert "caf\\" in text


# --------------------------------------------------------------------------------------------------------- terminals
def on_terminal(argv: Sequence[str], width: int, **added: str) -> tuple[int, str]:
    """Run a command with a pseudo-terminal of this width as its standard output; return its code and what it shows."""
    import fcntl
    import pty
    import struct
    import termios

    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        [*PVANALYSE, *argv], env=environment(**added), stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL
    )
    os.close(terminal)
    shown = b""
    try:
        while chunk := _read(controller):
            shown += chunk
        code = process.wait(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    return code, shown.decode().replace("\r\n", "\n")


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 1 << 16)
    except OSError:  # Linux says EIO at the end
        return b""


ESCAPE = re.compile(r"\x1b\[[\d;]*m")


def test_colours_on_a_terminal() -> None:
    # GIVEN a terminal; WHEN asked for a summary; THEN it is that of a pipe of its width, the verdict in green
    code, shown = on_terminal(CALLS["summary"], 100, TERM="xterm-256color", PYTHONUNBUFFERED="")
    assert code == 0
    assert "\x1b[1;32mFits" in shown
    assert ESCAPE.sub("", shown) == run(CALLS["summary"], COLUMNS="100").stdout.decode()


def test_no_colours_where_they_are_not_wanted() -> None:
    colour = re.compile(r"\x1b\[[\d;]*3\dm")
    _, shown = on_terminal(CALLS["summary"], 100, TERM="xterm-256color", NO_COLOR="1")
    assert colour.findall(shown) == []
    _, shown = on_terminal(CALLS["summary"], 100, TERM="dumb")
    assert "\x1b" not in shown
    assert b"\x1b" not in run(CALLS["summary"], FORCE_COLOR="1", TERM="xterm").stdout


@pytest.mark.parametrize("width", [40, 62, 200])
def test_lines_are_as_wide_as_the_terminal(width: int) -> None:
    # GIVEN a terminal; WHEN asked for metrics; THEN no line is longer, and each value is there in full
    code, shown = on_terminal(["metrics", REPORT, "--units", "bytes"], width, TERM="dumb")
    assert code == 0
    lines = shown.splitlines()
    assert [line for line in lines[1:] if len(line) > width and len(line.split()) > 1] == []
    metrics = json.loads(run(CALLS["json"]).stdout)
    assert f"{metrics['memory.total_including_gaps']:,} B" in shown
    assert [name for name in metrics if not any(line.strip().startswith(name) for line in lines)] == []


@pytest.mark.parametrize("format_", ["json", "csv"])
def test_machine_formats_are_plain_on_a_terminal(format_: str) -> None:
    _, shown = on_terminal(["metrics", REPORT, "--format", format_], 40, TERM="xterm-256color")
    assert shown.replace("\r", "") == run(["metrics", REPORT, "--format", format_]).stdout.decode().replace("\r", "")
