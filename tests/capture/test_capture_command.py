"""``pvanalyse capture``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pvanalyse import find_reports, libpva, open_report
from pvanalyse.capture import PARTS
from pvanalyse.capture.not_told import NEVER_TOLD
from pvanalyse.cli import main
from tests.capture.canonical import Canonical
from tests.cli.calls import Capture, answer, answer_csv, answer_json, refusal
from tests.libpva.reports import sample

STAND_IN = ("--pva", "pvanalyse.libpva")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A copy of a sample that may not be written to."""
    directory = tmp_path / "report"
    directory.mkdir()
    for name in ("profile.pop", "debug.cbor"):
        shutil.copy(sample("replicated") / name, directory / name)
        (directory / name).chmod(0o444)
    return directory


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of modules that Python finds."""
    directory = tmp_path / "modules"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    before = set(sys.modules)
    yield directory
    for name in set(sys.modules) - before:
        if name.startswith("stand_in") or name == "pva":
            del sys.modules[name]


def test_a_report_is_captured_beside_itself(report: Path, capsys: Capture) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in report.iterdir()}
    # WHEN a report is captured without saying where to
    data = answer_json(capsys, "capture", str(report), *STAND_IN)
    # THEN a report of its own is below it, which knows the debug information above, and the original is as it was
    captured = report / "captured"
    assert [path.name for path in captured.iterdir()] == ["profile.pop"]
    assert Canonical(captured).tables() == Canonical(report).tables()
    assert {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in report.iterdir() if path.is_file()
    } == before
    assert [(files.directory, files.debug_info) for files in find_reports(report)] == [
        (report, report / "debug.cbor"), (captured, report / "debug.cbor"),
    ]  # fmt: skip
    with open_report(captured) as opened:
        assert opened.captured("debug_contexts")
        tables = {one["table"]: one["rows"] for one in data["tables"]}
        assert tables == {name: opened.count(name) for name in tables}
        facts = dict(opened.arrow("report_info").to_pydict().items())
    assert "captured_without" in facts["key"]
    # AND the answer says what was written and what is not told
    assert (data["report"], data["file"]) == (str(report / "profile.pop"), str(captured / "profile.pop"))
    assert (data["bytes"], data["pva"]) == ((captured / "profile.pop").stat().st_size, "pvanalyse.libpva")
    assert data["not_told"] == [
        {"table": one.table, "columns": list(one.columns), "meaning": one.meaning} for one in NEVER_TOLD
    ]
    assert data["remarks"] == []


def test_people_are_told_what_is_missing(report: Path, capsys: Capture) -> None:
    text = " ".join(answer(capsys, "capture", str(report), *STAND_IN).split())
    for one in NEVER_TOLD:
        assert f"{one.table} {one.meaning}" in text
    assert answer_csv(capsys, "capture", str(report), *STAND_IN, "--force")


def test_nothing_is_overwritten_unless_forced(report: Path, tmp_path: Path, capsys: Capture) -> None:
    # GIVEN a captured report
    out = tmp_path / "out"
    answer(capsys, "capture", str(report), *STAND_IN, "-o", str(out), "--skip", "blocks")
    before = (out / "profile.pop").read_bytes()
    # THEN it is not overwritten unless forced
    said = refusal(capsys, 2, "capture", str(report), *STAND_IN, "-o", str(out))
    assert said == f"pvanalyse: {out / 'profile.pop'}: exists already; --force overwrites it\n"
    assert (out / "profile.pop").read_bytes() == before
    answer(capsys, "capture", str(report), *STAND_IN, "-o", str(out), "--force", "--skip", "runs")
    with open_report(out) as again:
        assert not again.captured("runs")
    # AND the report itself never is, by whatever name
    (tmp_path / "link").symlink_to(report)
    for place in (report, tmp_path / "link"):
        said = refusal(capsys, 2, "capture", str(report), *STAND_IN, "-o", str(place), "--force")
        assert "is the report itself" in said


def test_an_interrupted_command_goes_on(report: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a capture that somebody interrupted
    with monkeypatch.context() as patch:
        patch.setattr(libpva.pva_core.Run, "name", property(lambda _: (_ for _ in ()).throw(KeyboardInterrupt)))
        assert main(["capture", str(report), *STAND_IN]) == 130
    capsys.readouterr()
    assert [path.name for path in (report / "captured").iterdir()] == ["profile_capturing.pop"]
    # THEN the same command goes on
    assert main(["capture", str(report), *STAND_IN]) == 0
    assert capsys.readouterr().err == "pvanalyse: an earlier capture was continued\n"
    assert [path.name for path in (report / "captured").iterdir()] == ["profile.pop"]


def test_without_an_sdk_it_is_said_where_pva_comes_from(report: Path, capsys: Capture, modules: Path) -> None:
    if "pva" in sys.modules:
        pytest.skip("there is a pva")
    said = refusal(capsys, 2, "capture", str(report), "--pva", "stand_in_that_is_not_there")
    assert said.startswith("pvanalyse: there is no Python module 'stand_in_that_is_not_there'; it comes with Graphcore")
    # GIVEN modules that are no libpva, or cannot be loaded
    (modules / "stand_in_other.py").write_text("def openreport(path): ...\n")
    (modules / "stand_in_library.py").write_text("raise ImportError('libpoplar.so: cannot open shared object file')\n")
    (modules / "stand_in_needs.py").write_text("import stand_in_more\n")
    (modules / "stand_in_raises.py").write_text("1 / 0\n")
    for name, problem in {
        "other": "is not libpva, it has no openReport",
        "library": "cannot be imported (ImportError: libpoplar.so: cannot open shared object file)",
        "needs": "cannot be imported (No module named 'stand_in_more')",
        "raises": "cannot be imported (ZeroDivisionError: division by zero)",
    }.items():
        said = refusal(capsys, 2, "capture", str(report), "--pva", f"stand_in_{name}")
        assert said.startswith(f"pvanalyse: the Python module 'stand_in_{name}' {problem}; it comes with Graphcore")
    assert not (report / "captured").exists()


def test_pva_is_what_is_imported(report: Path, capsys: Capture, modules: Path) -> None:
    # GIVEN a pva
    (modules / "pva.py").write_text("from pvanalyse.libpva import *\nfrom pvanalyse.libpva import openReport\n")
    # THEN it reads the report
    data = answer_json(capsys, "capture", str(report))
    assert data["pva"] == "pva"
    with open_report(report / "captured") as opened:
        facts = dict(zip(*(opened.arrow("report_info").column(at).to_pylist() for at in (0, 1)), strict=True))
    assert facts["captured_through"] == "pva"


def test_usage(report: Path, tmp_path: Path, capsys: Capture) -> None:
    said = refusal(capsys, 2, "capture", str(report), *STAND_IN, "--skip", "everything")
    assert said == f"pvanalyse: there is no part 'everything'; there are: {', '.join(PARTS)}\n"
    shown = " ".join(answer(capsys, "capture", "--help").split())
    assert f"Leave a part out: {', '.join(PARTS[:6])}, lowered variables (which takes long), " in shown
    assert all(part in shown for part in PARTS)
    assert "no such file" in refusal(capsys, 3, "capture", str(tmp_path / "nothing"), *STAND_IN)
    shutil.copy(sample("replicated") / "archive.a", tmp_path / "archive.a")
    said = refusal(capsys, 3, "capture", str(tmp_path / "archive.a"), *STAND_IN)
    assert said == f"pvanalyse: {tmp_path}: there is no profile.pop to capture\n"
    (tmp_path / "file").write_text("in the way")
    said = refusal(capsys, 3, "capture", str(report), *STAND_IN, "-o", str(tmp_path / "file" / "below"))
    assert "cannot be made" in said
    assert "name another one with -o" in said


def test_a_damaged_report_is_said_to_be(report: Path, capsys: Capture) -> None:
    whole = (report / "profile.pop").read_bytes()
    (report / "profile.pop").chmod(0o644)
    for content in (b"", whole[:5000], b"x" * 5000):
        (report / "profile.pop").write_bytes(content)
        said = refusal(capsys, 3, "capture", str(report), *STAND_IN)
        assert str(report / "profile.pop") in said
        assert not (report / "captured" / "profile.pop").exists()
