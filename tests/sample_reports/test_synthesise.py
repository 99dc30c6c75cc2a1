"""The command that makes the samples."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.sample_reports.conftest import synthesise
from tests.sample_reports.reading import SAMPLES, Profile

SMALL = ("--tiles-per-ipu", "4", "--hidden", "64", "--layers", "1", "--sequence", "8")


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def test_the_committed_samples_are_what_the_command_makes(tmp_path: Path) -> None:
    # WHEN all samples are made again
    made = synthesise("--all", "-o", str(tmp_path / "again"))
    assert made.returncode == 0, made.stderr
    # THEN they have the committed files; databases are compared by content, since SQLite puts its version into them
    names = [path.name for path in (tmp_path / "again").iterdir()]
    for name in names:
        again, committed = files_below(tmp_path / "again" / name), files_below(SAMPLES / name)
        assert set(again) == set(committed)
        for file, content in again.items():
            if file.endswith("profile.pop"):
                assert dump(tmp_path / "again" / name / file) == dump(SAMPLES / name / file), file
            else:
                assert content == committed[file], file


def test_the_same_command_makes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert synthesise(*SMALL, "-o", str(tmp_path / name)).returncode == 0
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")


def test_another_seed_makes_another_report(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        assert synthesise(*SMALL, "--seed", seed, "-o", str(tmp_path / seed)).returncode == 0
    one, two = Profile(tmp_path / "1"), Profile(tmp_path / "2")
    sql = "SELECT total_excluding_gaps FROM tile_memory ORDER BY tile"
    assert [tuple(row) for row in one.rows(sql)] != [tuple(row) for row in two.rows(sql)]


def test_an_existing_directory_is_kept_unless_forced(tmp_path: Path) -> None:
    # GIVEN a directory with something in it
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "mine.txt").write_text("mine")
    # WHEN a report is to be made there
    refused = synthesise(*SMALL, "-o", str(tmp_path / "report"))
    # THEN it is refused, unless forced
    assert refused.returncode == 2
    assert "exists already" in refused.stderr
    assert files_below(tmp_path) == {"report/mine.txt": b"mine"}
    assert synthesise(*SMALL, "--force", "-o", str(tmp_path / "report")).returncode == 0
    assert "mine.txt" not in files_below(tmp_path / "report")


def test_asked_sizes_are_reached(tmp_path: Path) -> None:
    sizes = (
        "--ipus",
        "4",
        "--replicas",
        "2",
        "--lowered-variables",
        "12000",
        "--execution-steps",
        "4000",
        "--runs",
        "2",
    )
    made = synthesise(*SMALL, "--layers", "3", *sizes, "-o", str(tmp_path / "report"))
    assert made.returncode == 0, made.stderr
    profile = Profile(tmp_path / "report")
    assert (profile.target["num_ipus"], profile.target["num_replicas"], profile.tiles) == (4, 2, 16)
    assert 12_000 <= profile.value("SELECT count(*) FROM lowered_variables") < 24_000
    assert 4_000 <= profile.value("SELECT count(*) FROM execution_steps") < 6_000
    assert profile.value("SELECT count(*) FROM runs") == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--ipus", "3", "--replicas", "2"], "cannot be shared"),
        (["--ipus", "4", "--layers", "2"], "cannot be dealt out"),
        (["--tiles-per-ipu", "4", "--io-tiles", "4"], "tiles that compute"),
        (["--batch", "0"], "must be 1 or more"),
        (["--runs", "-1"], "invalid"),
        (["--preset", "pipelined", "--layers", "3"], "fixed sizes"),
        (["--preset", "unheard_of"], "invalid choice"),
    ],
)
def test_impossible_sizes_are_refused(arguments: list[str], problem: str, tmp_path: Path) -> None:
    refused = synthesise(*arguments, "-o", str(tmp_path / "report"))
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert not (tmp_path / "report").exists()


def test_the_command_runs_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert synthesise(*SMALL, "-o", "here").returncode == 0
    assert (tmp_path / "here" / "profile.pop").exists()
    shutil.rmtree(tmp_path / "here")
