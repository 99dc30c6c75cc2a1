"""The gate as Python sees it: any way to name reports, baselines and limits; files for everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pvanalyse import Report, ReportNotFound, UnreadableFile, UsageError, gate, open_report
from pvanalyse.gate.measured import Measured
from tests.conftest import ROOT, SAMPLES
from tests.oracle.reports import make_report

BEFORE, AFTER = SAMPLES / "transformer_before", SAMPLES / "transformer_after"


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "b.json"
    with open_report(BEFORE) as report:
        path.write_text(gate.baseline_text(gate.make_baseline(Measured(report))), "utf-8")
    return path


def test_every_way_to_name_a_report_and_a_baseline_says_the_same(baseline: Path) -> None:
    with open_report(AFTER) as after, open_report(BEFORE) as before:
        ways = [
            gate.check(report, baseline=against, max_increase="1%")
            for report in (after, AFTER, str(AFTER))
            for against in (before, BEFORE, BEFORE / "profile.pop", baseline, gate.read_baseline(baseline))
        ]
    assert {way.exit_code for way in ways} == {1}
    assert len({way.checks for way in ways}) == 1
    assert {len(way.reports[0].whys) for way in ways} == {len(ways[0].reports[0].whys)}


def test_a_result_can_be_read_at_a_glance() -> None:
    result = gate.check(AFTER, baseline=BEFORE, max_increase="1%")
    assert not result.passed
    assert gate.verdict(result).startswith(
        "FAILED: 24 of 35 checks; memory.tile_max_including_gaps is 599 KiB (+51.5 KiB"
    )
    assert gate.verdict(result) in " ".join(gate.full_text(result).split())
    assert gate.check(AFTER, limits={"memory.gaps": "1 TiB"}).passed


def test_errors_are_raised_for_one_report(tmp_path: Path) -> None:
    with pytest.raises(ReportNotFound):
        gate.check(tmp_path / "nothing", limits="memory.gaps<=1")
    with pytest.raises(UnreadableFile):
        gate.check(AFTER, baseline=tmp_path / "nothing.json")
    with pytest.raises(UsageError, match="nothing to check against"):
        gate.check(AFTER)


def test_two_reports_are_not_written_to_one_baseline(tmp_path: Path) -> None:
    made = gate.make_gate(baselines=[tmp_path / "new.json"])
    with pytest.raises(UsageError, match="two reports would be written"):
        made.accept([BEFORE, AFTER])
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_read_leaves_its_baseline_alone(tmp_path: Path, baseline: Path) -> None:
    before = baseline.read_bytes()
    result, written = gate.make_gate(baselines=[baseline]).accept([tmp_path / "nothing"])
    assert (result.exit_code, written, baseline.read_bytes()) == (3, {}, before)


@pytest.mark.parametrize("seed", range(12))
def test_a_random_report_never_grows_over_itself(tmp_path: Path, seed: int) -> None:
    # GIVEN a report of any shape, with parts missing; WHEN held against itself, and against its baseline file
    report = make_report(tmp_path / "r", seed)
    path = tmp_path / "b.json"
    with open_report(report) as opened:
        path.write_text(gate.baseline_text(gate.make_baseline(Measured(opened))), "utf-8")
    for against in (report, path):
        result = gate.check(report, baseline=against)
        # THEN nothing has changed; and where nothing of memory was captured, it does not pass either
        captured = any(
            name.startswith(("memory.", "liveness.", "archive.l")) for name in gate.read_baseline(path).metrics
        )
        assert {check.status for check in result.checks} == {
            gate.Status.PASSED if captured else gate.Status.NOT_CAPTURED
        }
        assert {check.change for check in result.checks} <= {0}
        assert result.reports[0].differences == ()


def test_a_check_that_passes_reads_no_more_than_the_metrics_do(monkeypatch: pytest.MonkeyPatch, baseline: Path) -> None:
    # GIVEN reports that tell what is read of them
    seen: set[str] = set()

    def telling(method: Callable[..., Any]) -> Callable[..., Any]:
        def told(self: Report, name: str, *args: Any, **kwargs: Any) -> Any:
            seen.add(name)
            return method(self, name, *args, **kwargs)

        return told

    for name in ("arrow", "batches"):
        monkeypatch.setattr(Report, name, telling(getattr(Report, name)))
    with open_report(BEFORE) as report:
        report.metrics()
    metrics = frozenset(seen)
    seen.clear()
    # WHEN a check passes; THEN it read only what the metrics need, and the SDK's version
    assert gate.check(BEFORE, baseline=baseline).passed
    assert {"tile_memory", "report_info"} <= seen <= metrics | {"report_info"}


def test_the_gate_is_not_loaded_before_it_is_used() -> None:
    # GIVEN a fresh interpreter; WHEN the package of the pytest plugin is imported; THEN nothing heavy comes with it
    code = "import sys, pvanalyse.gate as gate; print({'pandas', 'pyarrow', 'numpy', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert {name: getattr(gate, name) for name in gate.__all__}.keys() <= set(dir(gate))
    with pytest.raises(AttributeError):
        gate.nothing  # noqa: B018
