"""Pages in a real browser, which is watched: nothing may go wrong in it, and nothing may be asked of the outside."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import pvanalyse
from pvanalyse.html.page import page
from tests.conftest import SAMPLES

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
LOCAL = ("file:", "data:", "blob:", "about:")
PATIENCE_MS = 30_000


@dataclass
class Tab:
    """A tab of the browser, and what went wrong or out in it."""

    tab: Any
    wrong: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def show(self, file: Path, address: str = "") -> None:
        self.tab.goto("about:blank")  # another address of the same page would not load it again
        self.tab.goto(f"{file.as_uri()}#{address}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page and its pictures are drawn."""
        self.tab.wait_for_selector("html[data-ready]")
        if self.tab.locator("[data-picture]").count():
            self.tab.wait_for_selector("[data-drawn]")

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.tab.locator(selector).all_inner_texts()]

    def select(self, field: str, value: str | None = None, **option: str) -> None:
        self.tab.get_by_role("combobox", name=field, exact=True).select_option(value, **option)

    def wait(self, condition: str, of: object = None) -> None:
        """Wait until a JavaScript expression, in which ``of`` may be named, is true."""
        # As a function: the page's policy lets nobody evaluate text.
        self.tab.wait_for_function(f"(of) => {condition}", arg=of)

    def facts(self, within: str) -> dict[str, str]:
        """The first list of facts in an element."""
        rows = self.tab.locator(f"{within} dl.facts").first.locator("div")
        return {row.locator("dt").inner_text(): row.locator("dd").inner_text() for row in rows.all()}

    def table(self, within: str) -> list[list[str]]:
        """The cells of the body of the first table in an element."""
        return self.tab.evaluate(
            "(where) => [...document.querySelector(where).querySelector('table').tBodies[0].rows]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))",
            within,
        )


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, for no longer than a module: its driver's event loop would be in the way of others'."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright, which drives a browser, is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    """A function that opens a tab; at the end nothing may have gone wrong or out in any."""
    tabs: list[tuple[Any, Tab]] = []

    def open_(**options: Any) -> Tab:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_default_timeout(PATIENCE_MS)
        tab = Tab(context.new_page())
        tab.tab.on("console", lambda message: tab.wrong.append(message.text) if message.type != "log" else None)
        tab.tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
        tab.tab.on("dialog", lambda dialog: (tab.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        context.on("page", lambda other: tab.wrong.append(f"opened: {other.url}"))
        tab.tab.on("request", lambda request: None if request.url.startswith(LOCAL) else tab.asked.append(request.url))
        tabs.append((context, tab))
        return tab

    yield open_
    for context, tab in tabs:
        context.close()
        assert (tab.wrong, tab.asked) == ([], [])


@pytest.fixture
def tab(open_tab: Callable[..., Tab]) -> Tab:
    return open_tab()


@pytest.fixture(scope="session")
def sample_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that returns the file of the page of a sample, or of two."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*names: str) -> Path:
        if names not in made:
            path = tmp_path_factory.mktemp("pages") / "report.html"
            reports = [pvanalyse.open_report(SAMPLES / name) for name in names]
            page([(name, report) for name, report in zip(names, reports, strict=True)]).save(path)
            for report in reports:
                report.close()
            made[names] = path
        return made[names]

    return make
