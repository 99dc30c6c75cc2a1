"""Every command on reports of which something is missing or damaged: an answer or one sentence, never a traceback."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pvanalyse.cli import main
from pvanalyse.tables import PROFILE, tables_of
from tests.cli.calls import Capture
from tests.conftest import SAMPLES

REPORT, OUT = "REPORT", "OUT"
CALLS: dict[str, Sequence[str]] = {
    "summary": ["summary", REPORT],
    "memory": ["memory", REPORT],
    "memory of variables": ["memory", REPORT, "--show", "variables", "--worst", "3"],
    "memory map": ["memory", REPORT, "--show", "map"],
    "liveness": ["liveness", REPORT],
    "programs": ["programs", REPORT],
    "execution": ["execution", REPORT],
    "operations": ["operations", REPORT],
    "whereis": ["whereis", REPORT, "MatMul"],
    "insights": ["insights", REPORT],
    "split": ["split", REPORT, "--ipus", "2"],
    "metrics": ["metrics", REPORT],
    "compare": ["compare", REPORT, REPORT],
    "baseline": ["baseline", REPORT, "-o", OUT],
    "check": ["check", REPORT, "--limit", "memory.tile_max_including_gaps<=1GiB"],
    "check with a baseline": ["check", REPORT, "--baseline", str(SAMPLES / "lightweight")],
    "plot": ["plot", "memory-by-tile", REPORT, "-o", f"{OUT}.png"],
    "plot of the execution": ["plot", "timeline", REPORT, "-o", f"{OUT}.png"],
    "html": ["html", REPORT, "-o", OUT],
    "perfetto": ["export", "perfetto", REPORT, "-o", OUT],
}
CODES = {0, 1, 3, 4}
PROFILE_TABLES = [schema.name for schema in tables_of(PROFILE)]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A small report with everything that a profile can hold, on one IPU, and its debug.cbor."""
    return Path(shutil.copytree(SAMPLES / "tensorflow", tmp_path / "tensorflow", symlinks=True))


def run(call: str, report: Path, tmp_path: Path, capsys: Capture) -> int:
    """Run a command that answers, or says one sentence and has no answer; return its exit code."""
    words = {REPORT: str(report), OUT: str(tmp_path / "out"), f"{OUT}.png": str(tmp_path / "out.png")}
    code = main([*(words.get(word, word) for word in CALLS[call]), "--quiet"])
    out, err = capsys.readouterr()
    assert code in CODES, err
    if code in (3, 4) and not out:
        assert len(err.strip().splitlines()) == 1, err
        assert not (tmp_path / "out").exists()
    return code


def execute(report: Path, *statements: str) -> None:
    (profile,) = report.rglob(PROFILE)
    with closing(sqlite3.connect(profile)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize("call", CALLS)
def test_the_report_as_it_is(call: str, report: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run(call, report, tmp_path, capsys) == (1 if call == "check with a baseline" else 0)


@pytest.mark.parametrize("call", CALLS)
def test_without_each_table(call: str, report: Path, tmp_path: Path, capsys: Capture) -> None:
    (profile,) = report.rglob(PROFILE)
    whole = profile.read_bytes()
    for name in PROFILE_TABLES:
        profile.write_bytes(whole)
        execute(report, f"DELETE FROM {name}")
        run(call, report, tmp_path, capsys)
        for made in tmp_path.glob("out*"):
            made.unlink()


@pytest.mark.parametrize("call", CALLS)
def test_values_of_the_wrong_type(call: str, report: Path, tmp_path: Path, capsys: Capture) -> None:
    execute(
        report,
        "UPDATE programs SET name = x'ff00', type = 7 WHERE program_id % 5 = 0",
        "UPDATE lowered_variables SET name = 12, bytes = 'many', tile = -5 WHERE lowered_variable_id % 7 = 0",
        "UPDATE variables SET name = x'c328', element_type = 3 WHERE variable_id % 3 = 0",
        "UPDATE variable_liveness SET bytes = 1.5, name = x'00' WHERE rowid % 4 = 0",
        "UPDATE execution_step_ipus SET cycles = 'x' WHERE step_id % 9 = 0",
        "UPDATE always_live_variables SET bytes = NULL WHERE 0",
        "UPDATE compute_sets SET flops = 'none', name = 5 WHERE compute_set_id % 2 = 0",
        "UPDATE program_children SET child_id = 999999 WHERE rowid_ % 6 = 0".replace("rowid_", "position"),
    )
    run(call, report, tmp_path, capsys)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", [PROFILE, "debug.cbor"])
def test_a_file_that_is_cut_off(name: str, call: str, report: Path, tmp_path: Path, capsys: Capture) -> None:
    (file,) = (one for one in report.rglob(name) if not one.is_symlink())
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    code = run(call, report, tmp_path, capsys)
    assert code == 3 or name != PROFILE


@pytest.mark.parametrize("call", CALLS)
def test_no_report(call: str, tmp_path: Path, capsys: Capture) -> None:
    assert run(call, tmp_path / "nothing", tmp_path, capsys) == 3
