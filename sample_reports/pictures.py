#!/usr/bin/env python3
"""Make the pictures of the README: what the commands print and draw of the sample reports.

    python sample_reports/pictures.py

Run it with pvanalyse installed for tests; the picture of the page needs Chromium too, and stays as it is without.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

SAMPLES = Path(__file__).resolve().parent
PICTURES = SAMPLES / "pictures"
COLUMNS = 120

TERMINALS = {
    "memory": (["memory", "out_of_memory"], 42),
    "check": (["check", "transformer_after", "--baseline", "transformer_before", "--max-increase",
               "memory.tile_max*=1%"], 22),
}  # fmt: skip
"""What to print: the command, with reports of this folder, and how many of its lines are kept."""

PLOTS = {
    "memory_by_tile": ["memory-by-tile", "out_of_memory"],
    "timeline": ["timeline", "pipelined/training", "--run", "1"],
    "memory_map": ["memory-map", "out_of_memory", "--tile", "947"],
}

PAGE = ("out_of_memory", "#view=memory")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def pvanalyse(*arguments: str) -> str:
    """Run a command in this folder, in a terminal that has colours; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(SAMPLES.parent), "COLUMNS": str(COLUMNS), "LC_ALL": "C.UTF-8",
                   "TERM": "xterm-256color"}  # fmt: skip
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "pvanalyse", *arguments, "--quiet"]
    process = subprocess.Popen(command, cwd=SAMPLES, env=environment, stdout=its, stderr=its)  # noqa: S603  (ours)
    os.close(its)
    printed = b""
    with suppress(OSError):  # at its end, a terminal whose other side is closed is an error to read
        while block := os.read(ours, 65_536):
            printed += block
    os.close(ours)
    if process.wait() not in (0, 1):
        raise SystemExit(printed.decode())
    return printed.decode().replace("\r\n", "\n")


def terminal(name: str, arguments: list[str], lines: int) -> None:
    """Write what a command prints as SVG."""
    printed = pvanalyse(*arguments).splitlines()
    shown = [f"$ pvanalyse {' '.join(arguments)}", *printed[:lines], *(["…"] if len(printed) > lines else [])]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(shown)), soft_wrap=True)
    svg = console.export_svg(title="pvanalyse", theme=DIMMED_MONOKAI, unique_id=name)
    own = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # a picture asks no other machine for fonts
    (PICTURES / f"{name}.svg").write_text(own, "utf-8")


def plot(name: str, arguments: list[str]) -> None:
    """Write a plot as PNG."""
    pvanalyse("plot", *arguments, "-o", str(PICTURES / f"{name}.png"), "--dpi", "72", "--force")


def page(report: str, place: str) -> None:
    """Write a picture of the page of a report, as a browser shows it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "report.html"
        pvanalyse("html", report, "-o", str(file))
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1280, "height": 720})
        tab.goto(f"{file.as_uri()}{place}")
        tab.wait_for_timeout(2000)
        tab.screenshot(path=PICTURES / "page.png")
        browser.close()


def main() -> None:
    """Make all of them."""
    PICTURES.mkdir(exist_ok=True)
    for name, (arguments, lines) in TERMINALS.items():
        terminal(name, arguments, lines)
    for name, arguments in PLOTS.items():
        plot(name, arguments)
    if CHROMIUM is None:
        print("no Chromium: page.png stays as it is")
    else:
        page(*PAGE)


if __name__ == "__main__":
    main()
