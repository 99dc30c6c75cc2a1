"""``pvanalyse open`` as a process: the page it serves, and a browser that loads it again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from pvanalyse.cli import main
from pvanalyse.units import format_bytes
from tests.cli.calls import Capture
from tests.conftest import ROOT, SAMPLES

PATIENCE_SECONDS = 120


@pytest.fixture
def report(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / "transformer_before", tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def opened(report: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pvanalyse", "open", "--no-browser", "--interval", "0.1", str(report)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    return address


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_it_serves_the_page_and_ends_with_control_c(opened: subprocess.Popen[str]) -> None:
    with urllib.request.urlopen(address_of(opened), timeout=PATIENCE_SECONDS) as answer:
        text = answer.read().decode()
    assert text.startswith("<!doctype html>")
    assert "connect-src 'self'" in text.replace("&#39;", "'")
    opened.send_signal(signal.SIGINT)
    assert opened.wait(PATIENCE_SECONDS) == 130


def test_the_browser_loads_it_again_when_the_report_changes(opened: subprocess.Popen[str], report: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright, which drives a browser, is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    change = json.loads((ROOT / "tests/sample_reports/transformer_change.json").read_text("utf-8"))
    before, after = (format_bytes(change[when]["memory.tile_max_including_gaps"]) for when in ("before", "after"))
    address = address_of(opened)
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page()

        # GIVEN a browser that shows the report
        tab.goto(f"{address}#view=summary")
        tab.wait_for_function("(size) => document.body.innerText.includes(size)", arg=before)

        # WHEN another profile takes the place of the report's
        shutil.copy(SAMPLES / "transformer_after" / "profile.pop", report / "new.tmp")
        (report / "new.tmp").rename(report / "profile.pop")

        # THEN the tab shows that one, in the same view, without being asked to
        tab.wait_for_function(
            "(size) => document.body.innerText.includes(size)", arg=after, timeout=PATIENCE_SECONDS * 1000
        )
        assert "view=summary" in tab.url
        browser.close()


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["no/such/report"], 3, "no/such/report"),
        ([str(SAMPLES / "pipelined")], 2, "inference"),
        (["--port", "70000", "."], 2, "70000"),
        (["--port", "1", str(SAMPLES / "lightweight")], 2, "port 1 cannot be served"),
    ],
)
def test_what_cannot_be_opened_is_said_at_once(argv: list[str], code: int, said: str, capsys: Capture) -> None:
    if said.startswith("port 1 ") and os.geteuid() == 0:
        pytest.skip("root may use every port")
    assert main(["open", "--no-browser", *argv]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
