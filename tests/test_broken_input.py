"""Whatever is wrong with a file of a report, the command line says so in one sentence, or the file does not matter.

Never a traceback, never a hang, never half an answer, and never a change to the report.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pvanalyse.tables import TABLES
from tests.oracle.command_line import CommandLine, Outcome, environment
from tests.oracle.reports import make_report, write_archive, write_metadata, write_trace_cache

FILES = ("profile.pop", "archive.a", "debug.cbor", "framework.json", "app.json", "profile.pop_cache")
COMMANDS = ("summary", "metrics")
READ_BY = {"summary": frozenset(FILES), "metrics": frozenset({"profile.pop", "archive.a", "debug.cbor"})}
Damage = Callable[[Path], None]
LOAD = 1  # p_type of a segment that is loaded


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with CommandLine(tmp_path_factory.mktemp("command_line")) as line:
        yield line


@pytest.fixture(scope="module")
def sound_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report directory with every file, none of them damaged."""
    directory = tmp_path_factory.mktemp("sound") / "report"
    make_report(directory, 3, dropped=frozenset(), emptied=frozenset(), debug_info=True, ipus=2, replicas=1, steps=30)
    write_archive(directory / "archive.a", {tile: [(LOAD, 8, 100), (LOAD, 0, 50)] for tile in range(4)})
    write_metadata(directory)
    write_trace_cache(directory / "profile.pop_cache", directory / "profile.pop")
    return directory


@pytest.fixture
def report(sound_report: Path, tmp_path: Path) -> Path:
    """A copy of the sound report, to be damaged."""
    return Path(shutil.copytree(sound_report, tmp_path / "report"))


@pytest.fixture(scope="module")
def sound_answers(command_line: CommandLine, sound_report: Path) -> dict[str, Outcome]:
    return {command: run_without_trace(command_line, command, sound_report) for command in COMMANDS}


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Kind and bytes of everything below a directory."""
    found = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        found[str(path.relative_to(directory))] = (mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
    return found


def run_without_trace(command_line: CommandLine, command: str, report: Path) -> Outcome:
    """Run a command and see that it leaves the report as it was; answers do not depend on where the report is.

    Quiet, because on a busy machine a command may otherwise remark that it is still reading.
    """
    before = contents(report)
    outcome = command_line.run(command, "--quiet", report)
    assert contents(report) == before
    return replace(outcome, stdout=outcome.stdout.replace(str(report), "REPORT"))


def assert_refused(outcome: Outcome, name: str) -> None:
    """One sentence on stderr that names the file, nothing on stdout, exit code 3."""
    assert (outcome.code, outcome.stdout) == (3, ""), outcome.stderr
    assert len(outcome.stderr.strip().splitlines()) == 1, outcome.stderr
    assert name in outcome.stderr
    assert "Traceback" not in outcome.stderr


def assert_refused_or_answered(outcome: Outcome, name: str) -> None:
    """Refused as above; or an answer on stdout and, as it is quiet, nothing on stderr."""
    if outcome.code == 0:
        assert outcome.stdout
        assert outcome.stderr == ""
    else:
        assert_refused(outcome, name)


# ------------------------------------------------------------------------------------------------ kinds of damage
def cut_at(position: int) -> Damage:
    return lambda path: os.truncate(path, position)


def cut_to(percent: int) -> Damage:
    return lambda path: os.truncate(path, path.stat().st_size * percent // 100)


def without_last_byte(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def replace_by(data: bytes) -> Damage:
    def damage(path: Path) -> None:
        path.write_bytes(data)

    return damage


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(10_000))


def become_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def become_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def become_other_profiler(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, textId INTEGER);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER);"
            "INSERT INTO StringIds VALUES (1, 'volta_sgemm');"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1);"
        )


def become_database_without_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")


DAMAGES: dict[str, Damage] = {
    "empty": cut_at(0),
    "cut_at_1_byte": cut_at(1),
    "cut_at_10_bytes": cut_at(10),
    "cut_at_20_bytes": cut_at(20),
    "cut_in_half": cut_to(50),
    "cut_at_90_percent": cut_to(90),
    "last_byte_missing": without_last_byte,
    "zeros": zeros,
    "noise": noise,
    "text": replace_by(b"<html><body>404 Not Found</body></html>\n"),
    "lfs_pointer": replace_by(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
    "elf": replace_by(b"\x7fELF\x01\x01\x01" + bytes(45)),
    "gzip": replace_by(b"\x1f\x8b\x08\x00" + bytes(60)),
    "cbor_array": replace_by(b"\x83\x01\x02\x03"),
    "json_array": replace_by(b"[1, 2, 3]"),
    "other_profiler": become_other_profiler,
    "database_without_tables": become_database_without_tables,
    "directory": become_directory,
    "fifo": become_fifo,
    "link_to_itself": become_loop,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_sound_report_is_answered(
    sound_answers: dict[str, Outcome], sound_report: Path, command_line: CommandLine, command: str
) -> None:
    # GIVEN an undamaged report; WHEN asked; THEN the answer is on stdout, and asking leaves no trace
    outcome = run_without_trace(command_line, command, sound_report)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout == sound_answers[command].stdout != ""


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_damaged_file_is_named_in_one_sentence(
    command_line: CommandLine, sound_answers: dict[str, Outcome], report: Path, command: str, name: str, damage: str
) -> None:
    # GIVEN a report with one damaged file
    DAMAGES[damage](report / name)
    # WHEN a command is run
    outcome = run_without_trace(command_line, command, report)
    # THEN it is refused; or the command has no use for that file, and answers as if nothing were wrong
    if name in READ_BY[command] or outcome.code != 0:
        assert_refused(outcome, name)
    else:
        assert outcome == sound_answers[command]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", FILES)
def test_flipped_bits_are_refused_or_harmless(command_line: CommandLine, report: Path, name: str, seed: int) -> None:
    # GIVEN a file with a few flipped bits, half of the time among its first bytes
    rng = random.Random(f"{name} {seed}")
    data = bytearray((report / name).read_bytes())
    within = min(len(data), 200) if seed % 2 else len(data)
    for _ in range(rng.choice((1, 1, 4, 30))):
        data[rng.randrange(within)] ^= 1 << rng.randrange(8)
    (report / name).write_bytes(data)
    for command in COMMANDS:
        # WHEN a command is run
        outcome = run_without_trace(command_line, command, report)
        # THEN it is refused in one sentence, or answered
        assert_refused_or_answered(outcome, name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_file_without_permission_is_named(
    report: Path, sound_answers: dict[str, Outcome], command: str, name: str
) -> None:
    # GIVEN a file that its owner may not read; the superuser may, unless that capability is taken away
    (report / name).chmod(0)
    withheld = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    prefix = withheld if os.access(report / name, os.R_OK) else []
    if prefix and not can_withhold(prefix, report / name):
        pytest.skip("this user may read every file, and setpriv cannot take that away")
    # WHEN a command is run
    argv = [*prefix, sys.executable, "-m", "pvanalyse", command, "--quiet", str(report)]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    outcome = Outcome(done.returncode, done.stdout.replace(str(report), "REPORT"), done.stderr)
    # THEN it is refused, or the command has no use for that file
    if name in READ_BY[command] or outcome.code != 0:
        assert_refused(outcome, name)
    else:
        assert outcome.stdout == sound_answers[command].stdout


def can_withhold(prefix: list[str], path: Path) -> bool:
    return shutil.which("setpriv") is not None and (
        subprocess.run([*prefix, "cat", str(path)], capture_output=True, check=False).returncode == 1
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", ["nothing", "an empty directory", "a report in a missing directory"])
def test_path_without_report_is_named(command_line: CommandLine, tmp_path: Path, command: str, what: str) -> None:
    # GIVEN a path at which there is no report
    path = tmp_path / "place"
    if what == "an empty directory":
        path.mkdir()
    if what == "a report in a missing directory":
        path = path / "profile.pop"
    # WHEN a command is run; THEN it says so
    assert_refused(command_line.run(command, path), "place")


# --------------------------------------------------------------------------------------------- hostile databases
def change(profile: Path, *statements: str) -> None:
    with closing(sqlite3.connect(profile)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
HOSTILE = {
    "column missing": ["ALTER TABLE tile_memory DROP COLUMN always_live_bytes"],
    "endless view": [
        "DROP TABLE runs",
        f"CREATE VIEW runs AS {ENDLESS} SELECT i AS run_id, '' AS name, i AS start_us, i AS end_us FROM n",
    ],
    "text in numbers": ["UPDATE tile_memory SET total_including_gaps = 'many' WHERE tile % 2"],
    "blobs in numbers": ["UPDATE execution_step_ipus SET cycles = x'00ff'"],
    "real numbers in numbers": ["UPDATE execution_step_ipus SET cycles = 1.5"],
    "infinite numbers": ["UPDATE execution_step_ipus SET tile_balance = 9e999, active_tile_balance = -9e999"],
    "text that is not UTF-8": ["UPDATE programs SET type = CAST(x'ff41' AS TEXT), name = CAST(x'c328' AS TEXT)"],
    "text with a zero byte": ["UPDATE programs SET type = 'a' || char(0) || 'b'"],
    "two targets": ["INSERT INTO target SELECT * FROM target"],
    "negative sizes": ["UPDATE target SET num_tiles = -1, tiles_per_ipu = -1, num_ipus = -1, bytes_per_tile = -1"],
    "huge target": ["UPDATE target SET num_tiles = 1 << 62, tiles_per_ipu = 1 << 62, num_ipus = 1 << 62"],
    "huge identifiers": [
        "UPDATE tile_memory SET tile = 9223372036854775807 WHERE tile = 0",
        "UPDATE liveness_steps SET step = 9223372036854775807 WHERE step = (SELECT max(step) FROM liveness_steps)",
    ],
    "blobs of a wrong length": ["UPDATE execution_steps SET cycles_by_tile = x'010203'"],
    "terminal control sequences": [
        "UPDATE programs SET type = char(27) || '[2J' || char(27) || ']0;title' || char(7)",
        "UPDATE tile_memory_category SET category = category || char(27) || '[31m'",
    ],
    "names of a megabyte": ["UPDATE programs SET type = hex(zeroblob(500000))"],
}


@pytest.mark.parametrize("statements", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_database_is_refused_or_answered(
    command_line: CommandLine, report: Path, command: str, statements: list[str]
) -> None:
    # GIVEN a profile.pop that SQLite finds nothing wrong with, but that no honest program writes
    change(report / "profile.pop", *statements)
    # WHEN a command is run
    outcome = run_without_trace(command_line, command, report)
    # THEN it is refused, or answered without sending the terminal what the names say
    assert_refused_or_answered(outcome, "profile.pop")
    assert "\x1b" not in outcome.stdout + outcome.stderr


ODD_VALUES = {
    "text": "'many'",
    "no text": "''",
    "text that is not UTF-8": "CAST(x'ff41' AS TEXT)",
    "bytes": "x'00ff10'",
    "real number": "-1.5",
    "largest integer": "9223372036854775807",
    "smallest integer": "-9223372036854775808",
}


@pytest.mark.parametrize("value", ODD_VALUES)
@pytest.mark.parametrize("table", [name for name, schema in TABLES.items() if schema.source == "profile.pop"])
def test_odd_values_in_a_table_are_refused_or_left_out(
    command_line: CommandLine, report: Path, table: str, value: str
) -> None:
    # GIVEN a table with one odd value wherever it is taken, whatever type the column declares
    with closing(sqlite3.connect(report / "profile.pop")) as connection, connection:
        for _, column, kind, _, _, in_key in connection.execute(f"PRAGMA table_info({table})").fetchall():
            if not (in_key and kind == "INTEGER" and "integer" not in value):
                connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {ODD_VALUES[value]}")
    for command in COMMANDS:
        # WHEN a command is run; THEN it is refused, or answered
        assert_refused_or_answered(run_without_trace(command_line, command, report), "profile.pop")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("profile.pop", b"start_us INTEGER", b"st\xf4rt_us INTEGER"),
        ("profile.pop", b"CREATE TABLE tile_memory (", b"CREATE TABLE t\xf4le_memory ("),
        ("profile.pop", b"CREATE TABLE runs", b"CREATE TABLE\xf4runs"),
        ("profile.pop", b"layout", b"lay\xf4ut"),
        ("profile.pop_cache", b"tag TEXT", b"t\xf4g TEXT"),
        ("profile.pop_cache", b"CREATE TABLE cache_info", b"CREATE TABLE c\xf4che_info"),
        ("profile.pop_cache", b"blocks_v3_1", b"blocks_v\xf4_1"),
        ("framework.json", b"TensorFlow", b"Tensor\xf4low"),
        ("app.json", b"small", b"sm\xf4ll"),
        ("debug.cbor", b"second", b"sec\xf4nd"),
    ],
)
def test_bytes_that_are_not_utf8_are_refused_or_answered(
    command_line: CommandLine, report: Path, name: str, before: bytes, after: bytes
) -> None:
    # GIVEN a file in which one letter of a name, of a column or of a table has become another byte
    data = (report / name).read_bytes()
    assert before in data
    (report / name).write_bytes(data.replace(before, after))
    for command in COMMANDS:
        # WHEN a command is run; THEN it is refused, or answered
        assert_refused_or_answered(run_without_trace(command_line, command, report), name)


@pytest.mark.parametrize("command", COMMANDS)
def test_write_ahead_database_is_read_without_a_trace(
    command_line: CommandLine, sound_answers: dict[str, Outcome], report: Path, command: str
) -> None:
    # GIVEN a profile.pop in write-ahead mode, which SQLite opens by making two files beside it
    change(report / "profile.pop", "PRAGMA journal_mode = WAL")
    (report / "profile.pop_cache").unlink()
    write_trace_cache(report / "profile.pop_cache", report / "profile.pop")
    assert (report / "profile.pop").read_bytes()[18:20] == b"\x02\x02"
    # WHEN a command is run; THEN it answers, and there are no such files
    outcome = run_without_trace(command_line, command, report)
    assert (outcome.code, outcome.stdout) == (0, sound_answers[command].stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_profile_without_any_captured_table_is_answered_or_refused(
    command_line: CommandLine, report: Path, command: str
) -> None:
    # GIVEN a profile.pop of the right layout in which nothing was captured
    with closing(sqlite3.connect(report / "profile.pop")) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    change(report / "profile.pop", *(f"DROP TABLE {name}" for name in names if name != "report_info"))
    # WHEN a command is run; THEN missing is not an error
    outcome = run_without_trace(command_line, command, report)
    assert outcome.code == 0, outcome.stderr


# ------------------------------------------------------------------------------------------ other hostile files
SIZE_FIELD = slice(8 + 48, 8 + 58)
OTHER_HOSTILE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "map of 2**62 pairs": ("debug.cbor", lambda _: b"\xbb" + struct.pack(">Q", 2**62)),
    "list of 2**62 contexts": ("debug.cbor", lambda _: b"\xa1\x68contexts\x9b" + struct.pack(">Q", 2**62)),
    "string of 2**62 bytes": ("debug.cbor", lambda _: b"\xa1\x7b" + struct.pack(">Q", 2**62)),
    "nested lists": ("debug.cbor", lambda _: b"\xa1\x68contexts" + b"\x81" * 200_000 + b"\x00"),
    "nested tags": ("debug.cbor", lambda _: b"\xc1" * 200_000 + b"\x00"),
    "list that holds itself": ("debug.cbor", lambda _: b"\xa1\x68contexts\xd8\x1c\x81\xd8\x1d\x00"),
    "nothing after the contexts": ("debug.cbor", lambda _: b"\xa2\x68contexts\x80"),
    "member larger than the file": ("archive.a", lambda data: _with_size(data, b"9999999999")),
    "member of negative size": ("archive.a", lambda data: _with_size(data, b"-60       ")),
    "member of no size": ("archive.a", lambda data: _with_size(data, b"          ")),
    "member of hexadecimal size": ("archive.a", lambda data: _with_size(data, b"0x10      ")),
    "thin archive of missing members": ("archive.a", lambda data: b"!<thin>\n" + data[8:68]),
    "program headers beyond the file": ("archive.a", lambda data: data[:96] + b"\xff" * 4 + data[100:]),
}


def _with_size(archive: bytes, size: bytes) -> bytes:
    return archive[: SIZE_FIELD.start] + size + archive[SIZE_FIELD.stop :]


@pytest.mark.parametrize(("name", "rewrite"), OTHER_HOSTILE.values(), ids=OTHER_HOSTILE)
def test_hostile_file_is_named(
    command_line: CommandLine, report: Path, name: str, rewrite: Callable[[bytes], bytes]
) -> None:
    # GIVEN a file whose headers promise what it does not hold
    (report / name).write_bytes(rewrite((report / name).read_bytes()))
    # WHEN its metrics are asked for; THEN it is refused
    assert_refused(run_without_trace(command_line, "metrics", report), name)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "9" * 10_000], ids=["lists", "objects", "digits"])
@pytest.mark.parametrize("name", ["framework.json", "app.json"])
def test_hostile_json_is_named(command_line: CommandLine, report: Path, name: str, text: str) -> None:
    # GIVEN JSON that is nested too deeply, or is no object
    (report / name).write_text(text, encoding="utf-8")
    # WHEN a summary is asked for; THEN it is refused
    assert_refused(run_without_trace(command_line, "summary", report), name)
