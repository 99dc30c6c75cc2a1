"""A report whose names try to be a program: they are text in every view, and nothing of them runs."""

from __future__ import annotations

import shutil
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

import pvanalyse
from pvanalyse.names import printable
from tests.conftest import SAMPLES
from tests.html.conftest import Tab

NAMES = (
    "</script><script>window.caught = 1</script>",
    "<img src=x onerror=\"window.caught = 2\"><svg onload='window.caught = 3'>",
    '<a href="https://example.invalid/">press</a><b style="position:fixed;inset:0">',
    '" onmouseover="window.caught = 4" x="\' autofocus onfocus=\'window.caught = 5',
    "javascript:window.caught=6//{{7*7}}${8*8}",
    "user\u202egnp.exe\u2066\u2069\u200f\u200b\x00\x1b[31m\n\u2028end",
    "<!-- ]]> --> &lt;b&gt; &#x3c; \\u003c %3Cscript%3E </title></style></textarea>",
    "__proto__",
    "long/" * 2000,
    "",
)
TEXT_COLUMNS = {
    "programs": "name", "variables": "name", "lowered_variables": "name", "always_live_variables": "name",
    "variable_liveness": "name", "runs": "name", "compute_sets": "name", "vertex_types": "name",
}  # fmt: skip
FORBIDDEN = ("main img", "main script", "main iframe", "main i", "main a:not([href^='#'])", "main svg a", "main [onerror]",
             "main [onmouseover]")  # fmt: skip
VIEWS = ("summary", "compare", "insights", "memory", "map", "tile", "liveness", "lifetimes", "programs", "operations",
         "timeline", "statistics")  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a report of such names, beside itself."""
    directory = tmp_path_factory.mktemp("hostile") / "<i>report<script>window.caught = 7</script>"
    shutil.copytree(SAMPLES / "pipelined" / "training", directory / "x", symlinks=False)
    directory = directory.joinpath("x")
    with sqlite3.connect(directory / "profile.pop") as database:
        for table, column in TEXT_COLUMNS.items():
            rows = [rowid for (rowid,) in database.execute(f"SELECT rowid FROM {table}")]
            names = [(NAMES[at % len(NAMES)], rowid) for at, rowid in enumerate(rows)]
            database.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", names)
        categories = [name for (name,) in database.execute("SELECT DISTINCT category FROM tile_memory_category")]
        for at, name in enumerate(categories[: len(NAMES) - 2]):
            database.execute("UPDATE tile_memory_category SET category = ? WHERE category = ?", (NAMES[at], name))
        database.execute("UPDATE report_info SET value = ? WHERE key = 'poplar_version'", (NAMES[0],))
        types = [name for (name,) in database.execute("SELECT DISTINCT type FROM programs")]
        database.execute("UPDATE programs SET type = ? WHERE type = ?", (NAMES[1], types[-1]))
    database.close()
    path = tmp_path_factory.mktemp("hostile-page") / "report.html"
    with pvanalyse.open_report(directory) as report:
        report.html(report).save(path)
    return path


class Tags(HTMLParser):
    """The elements of a file, and the policy it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_names_are_nowhere_in_the_markup(hostile: Path) -> None:
    text = hostile.read_text("utf-8")
    found = Tags()
    found.feed(text)
    assert [tag for tag in found.tags if tag in ("img", "svg", "i", "b")] == []
    assert found.tags.count("script") == 5  # two reports, what differs, the charting library, the program
    assert [name for name, _ in found.attributes if name.startswith("on")] == []
    assert "example.invalid" not in text


def test_names_are_text_in_every_view(tab: Tab, hostile: Path) -> None:
    # GIVEN the page, WHEN each view is shown and its pictures are pointed at
    tab.show(hostile)
    shown = {}
    for view in VIEWS:
        tab.tab.locator(f"nav a[data-view={view}]").click()
        tab.settle()
        for one in tab.tab.locator("[data-picture]").all()[:2]:
            box = one.bounding_box()
            for share in (0.1, 0.4, 0.7):
                tab.tab.mouse.move(box["x"] + box["width"] * share, box["y"] + min(box["height"], 400) * share)
        # THEN nothing ran, nothing is an element that should not be, and no link leads out
        assert tab.tab.evaluate("() => window.caught") is None
        for selector in FORBIDDEN:
            assert tab.tab.locator(selector).count() == 0, (view, selector)
        # and what is shown has no characters that turn text around or hide in it, and no endless words
        text = tab.tab.evaluate("() => document.querySelector('main').innerText")
        titles = tab.tab.evaluate("() => [...document.querySelectorAll('[title]')].map((one) => one.title).join('')")
        assert not set(text + titles) & set("\u202e\u2066\u2069\u200f\u200b\x00\x1b\u2028")
        assert max(map(len, text.split("\n"))) < 2000
        shown[view] = text
    for view in ("liveness", "programs"):
        assert printable(NAMES[5])[:20] in shown[view]
        assert NAMES[0] in shown[view]


def test_a_long_name_is_cut_and_can_be_seen_whole(tab: Tab, hostile: Path) -> None:
    tab.show(hostile, "view=operations&table=variables&report=a")
    tab.tab.get_by_role("searchbox", name="Filter").fill("long/long/")
    tab.wait("document.querySelector('.data-table .status').innerText.includes('match')")
    name = tab.tab.locator(".data-table tbody .name").first
    assert len(name.inner_text()) == 160
    assert "…" in name.inner_text()
    assert name.get_attribute("title") == NAMES[8]
