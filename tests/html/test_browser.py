"""The page as a person meets it: each view shows the report's own numbers, and can be searched and chosen from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import pvanalyse
from pvanalyse.analysis.flame import flame_blocks
from pvanalyse.analysis.intervals import GROUP
from pvanalyse.html.page import page
from pvanalyse.html.serving import LivePage, served
from pvanalyse.units import format_bytes, format_count
from tests.conftest import SAMPLES
from tests.html.conftest import Tab

PageOf = Callable[..., Path]
SAMPLE = "pipelined/training"
ALL = ("summary", "insights", "memory", "map", "tile", "liveness", "lifetimes", "programs", "operations", "timeline",
       "statistics")  # fmt: skip


@pytest.fixture(scope="module")
def report() -> pvanalyse.Report:
    return pvanalyse.open_report(SAMPLES / SAMPLE)


@pytest.mark.parametrize("sample", ["lightweight", "no_lowered_variables", "out_of_memory", "replicated",
                                    "tensorflow/tf_report__2022-05-03__10-15-30__12345"])  # fmt: skip
def test_every_view_of_every_kind_of_report_is_drawn(tab: Tab, sample_page: PageOf, sample: str) -> None:
    # GIVEN a report, WHEN every view is shown, by its link
    tab.show(sample_page(sample))
    links = tab.tab.locator("nav a")
    seen = []
    for at in range(links.count()):
        links.nth(at).click()
        tab.settle()
        # THEN it has its title, and shows something or says why not
        seen.append(tab.tab.evaluate("new URLSearchParams(location.hash.slice(1)).get('view')"))
        assert tab.texts("#main h2") == [links.nth(at).inner_text()]
        assert len(tab.tab.locator("#main").inner_text()) > 60
    assert seen == list(ALL)


def test_the_summary_shows_every_metric_exactly(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    tab.show(sample_page(SAMPLE))
    shown = {name: exact for name, _, exact, _ in tab.table("details")}
    assert shown.keys() == report.metrics().keys()
    assert {name: float(value) for name, value in shown.items()} == report.metrics()


def test_memory_by_tile(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    # GIVEN memory by tile, at first with the fullest one chosen
    tab.show(sample_page(SAMPLE), "view=memory")
    metrics = report.metrics()
    assert tab.facts("#main")["Including gaps"] == format_bytes(metrics["memory.tile_max_including_gaps"])
    assert f"a tile holds {format_bytes(metrics['target.bytes_per_tile'])}" in tab.tab.locator(".plot").inner_text()
    # THEN the sums over all tiles are the metrics
    for by in ("category", "region"):
        tab.select("By", by)
        cells = tab.tab.locator("tr[data-layer]").all()
        sums = {
            row.get_attribute("data-layer"): int(row.locator("[data-exact]").get_attribute("data-exact"))
            for row in cells
        }
        own = {name: size for name, size in sums.items() if name not in ("gaps", "shared over time")}
        prefix = f"memory.{by}."
        expected = {name.removeprefix(prefix).replace("non_inter", "non-inter"): size for name, size in metrics.items()
                    if name.startswith(prefix) and (size or by == "region")}  # fmt: skip
        assert own == expected
        if by == "category":
            assert sum(sums.values()) == metrics["memory.total_including_gaps"]
    # WHEN a tile is chosen by number, by key and by the address, THEN its sizes are shown, and the address names it
    frame = report.memory.by_tile().set_index("tile")["total_including_gaps"]
    tab.tab.get_by_role("spinbutton", name="Tile").fill("77")
    tab.tab.keyboard.press("Enter")
    assert tab.facts("#main")["Including gaps"] == format_bytes(frame[77])
    tab.tab.locator(".chart").focus()
    tab.tab.keyboard.press("ArrowRight")
    assert tab.facts("#main")["Including gaps"] == format_bytes(frame[78])
    assert "tile=78" in tab.tab.url
    tab.show(sample_page(SAMPLE), "view=memory&tile=3&by=liveness")
    assert tab.facts("#main")["Including gaps"] == format_bytes(frame[3])
    assert tab.texts("tr[data-layer] td:first-child") == ["not always live (peak)", "always live"]


def test_a_click_on_the_chart_chooses_the_tile_under_it(tab: Tab, sample_page: PageOf) -> None:
    tab.show(sample_page(SAMPLE), "view=memory")
    tab.tab.wait_for_selector(".plot .nsewdrag")
    box = tab.tab.locator(".plot .nsewdrag").bounding_box()
    tab.tab.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.6)
    tab.tab.wait_for_timeout(300)
    tab.tab.mouse.down()
    tab.tab.mouse.up()
    tab.wait("location.hash.includes('tile=')")
    assert abs(int(tab.facts("#main")["Tile"]) - 31) <= 2  # a quarter of 128 tiles


def test_the_map_and_the_tile(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    # GIVEN the map of tiles
    tab.show(sample_page(SAMPLE), "view=map&tile=70")
    frame = report.memory.by_tile().set_index("tile")
    assert tab.facts("#main")["Including gaps"] == format_bytes(frame.loc[70, "total_including_gaps"])
    # WHEN one goes a tile to the right and asks what lies there
    tab.tab.locator("canvas").focus()
    tab.tab.keyboard.press("ArrowLeft")
    assert tab.facts("#main")["Tile"] == "69"
    fullest = int(frame["total_including_gaps"].idxmax())
    tab.show(sample_page(SAMPLE), f"view=tile&tile={fullest}")
    # THEN what is listed is the tile's memory map
    tab.tab.get_by_text("Show 1,000 more").click()
    expected = report.memory.map(fullest).sort_values("bytes", ascending=False, kind="stable")
    rows = tab.table(".data-table")
    assert [row[1] for row in rows] == [format_bytes(size) for size in expected["bytes"]]
    assert sorted(row[5] for row in rows) == sorted(
        "" if at is None else f"0x{at:x}"
        for at in expected["begin"].astype(object).where(expected["begin"].notna(), None)
    )
    # WHEN they are grouped by category, THEN the sums are those of the frame
    tab.select("Group by", label="Category")
    sums = expected.groupby("category")["bytes"].sum()
    assert {row[0]: row[2] for row in tab.table(".data-table")} == {
        name: format_bytes(size) for name, size in sums.items()
    }


def test_a_tile_whose_map_is_not_in_the_page_says_so(tab: Tab, sample_page: PageOf) -> None:
    tab.show(sample_page("transformer_after"), "view=tile&tile=300")
    assert "What lies where on tile 300 is not in this page" in tab.tab.locator("#main").inner_text()
    assert "Memory maps are in this page for 96 of 368 tiles" in tab.tab.locator(".left-out").inner_text()


def test_liveness_shows_the_peak_and_what_lives_at_a_step(
    tab: Tab, sample_page: PageOf, report: pvanalyse.Report
) -> None:
    # GIVEN liveness, at first at its peak
    tab.show(sample_page(SAMPLE), "view=liveness")
    metrics = report.metrics()
    facts = tab.facts("#main")
    assert tab.texts("#main h3")[0] == f"Step {format_count(metrics['liveness.peak_step'])}"
    assert facts["Live, not always"] == format_bytes(metrics["liveness.peak_not_always_live"])
    assert facts["Always live"] == format_bytes(metrics["memory.always_live"])
    # WHEN another step is chosen, THEN its variables are listed
    for step in (40, 200):
        tab.tab.get_by_role("spinbutton", name="Step").fill(str(step))
        tab.tab.keyboard.press("Enter")
        live = report.liveness.live_at(step)
        shown = [(row[0], row[1]) for row in tab.table(".data-table")]
        assert shown == [(name, format_bytes(size)) for name, size in zip(live["name"], live["bytes"], strict=True)]
        assert f"step={step}" in tab.tab.url
        assert tab.facts("#main")["Live, not always"] == format_bytes(int(live["bytes"].sum()))
    # WHEN the list is filtered, THEN only what matches is left, by text and by expression
    name = live["name"][0]
    tab.tab.get_by_role("searchbox", name="Filter").first.fill(name.lower())
    tab.wait("document.querySelector('.data-table .status').innerText.includes('match')")
    assert [row[0] for row in tab.table(".data-table")] == [one for one in live["name"] if name.lower() in one.lower()]
    tab.tab.get_by_role("searchbox", name="Filter").first.fill("/(/")
    tab.wait("document.querySelector('.data-table .status').innerText.includes('not a regular')")


def test_lifetimes_can_be_searched_and_chosen(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    tab.show(sample_page(SAMPLE), "view=lifetimes")
    largest = report.liveness.lifetimes(count=1)
    tab.tab.locator("canvas").focus()
    tab.tab.keyboard.press("ArrowDown")
    assert tab.texts("#main h3")[-1] == largest["name"][0]
    assert tab.table("#main .card")[0][2] == format_bytes(largest["bytes"][0])
    before = tab.texts("#main .status")[0]
    tab.tab.get_by_role("searchbox", name="Search").fill("gelu")
    tab.wait("document.querySelector('#main .status').innerText !== of", before)
    found = report.liveness.lifetimes(pattern="(?i)gelu").drop_duplicates(["name", "variable_id"])
    assert tab.texts("#main .status")[0].startswith(f"{len(found)} variables")


def test_programs_can_be_opened_and_searched(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    # GIVEN the tree
    tab.show(sample_page(SAMPLE), "view=programs")
    tree = report.programs.tree()
    roots = tree[tree["depth"] == 0]
    assert tab.tab.locator("li[aria-level='1']").count() == len(roots)
    assert tab.tab.locator("li[aria-level='2']").count() == int((tree["depth"] == 1).sum())
    # WHEN a program is searched for and chosen
    tab.tab.get_by_role("searchbox", name="Search").fill("Gelu")
    tab.tab.wait_for_selector("text=programs match")
    found = tree[tree["name"].str.contains("gelu", case=False) & ~tree["note"].isin(["shared", "cycle"])]
    assert tab.texts("#main .status")[0] == f"{len(found)} programs match"
    tab.tab.locator(".data-table tbody button").nth(2).click()
    # THEN the tree opens down to it, and shows what it costs
    wanted = found.iloc[2]
    facts = tab.facts(".two > .card:last-child")
    assert facts["Program"] == format_count(int(wanted["program_id"]))
    assert facts["cycles"] == format_count(int(wanted["cycles"]))
    assert tab.tab.locator("li[role=treeitem]:focus .line").count() == 1
    assert wanted["name"] in tab.tab.locator(".line.selected").inner_text()
    # WHEN one goes up by key, THEN the parent is chosen
    tab.tab.keyboard.press("ArrowLeft")
    assert tab.facts(".two > .card:last-child")["Program"] == format_count(int(wanted["parent_id"]))


def test_operations_can_be_sorted_and_grouped(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    # GIVEN the operations, those with most cycles first
    tab.show(sample_page(SAMPLE), "view=operations")
    frame = report.operations.by_operation().sort_values("cycles", ascending=False, kind="stable", na_position="last")
    shown = tab.table(".data-table")
    assert [row[0] for row in shown] == list(frame["name"][: len(shown)])
    assert shown[0][3] == format_count(int(frame["cycles"].iloc[0]))
    # WHEN they are sorted by name, THEN they are
    tab.tab.get_by_role("button", name="Operation", exact=True).click()
    assert [row[0] for row in tab.table(".data-table")] == sorted(frame["name"])[: len(shown)]
    assert tab.tab.locator("th[aria-sort=ascending]").inner_text().startswith("Operation")
    # WHEN they are put together by where they were written, THEN the cycles of each add up
    tab.select("Group by", label="Source")
    sums = frame.groupby("location")["cycles"].sum().to_dict()
    assert {row[0]: row[2] for row in tab.table(".data-table")}.items() <= {
        name: format_count(int(size)) for name, size in sums.items()
    }.items()
    assert len(tab.table(".data-table")) == min(len(sums), 50)
    # WHEN variables are shown instead, THEN the largest comes first
    tab.select("Show", "variables")
    largest = report.memory.variables().iloc[0]
    assert tab.table(".data-table")[0][:2] == [largest["name"], format_bytes(int(largest["bytes"]))]


def whole_names(steps: pd.DataFrame) -> list[str]:
    """The names of the blocks of an IPU that are no groups, after those of the groups they are in."""
    blocks = flame_blocks(steps)
    names: dict[int, str] = {}
    for row in blocks.itertuples():  # groups come before what is in them
        names[row.block_id] = "/".join(filter(None, (names.get(row.parent_id, ""), row.name)))
    return [names[number] for number, kind in zip(blocks["block_id"], blocks["type"], strict=True) if kind != GROUP]


def test_the_timeline_can_be_zoomed_searched_and_chosen_from(
    tab: Tab, sample_page: PageOf, report: pvanalyse.Report
) -> None:
    # GIVEN the timeline
    tab.show(sample_page(SAMPLE), "view=timeline")
    steps = report.execution.steps()
    steps = steps[steps["end"] > steps["begin"]]
    span = int(steps["end"].max() - steps["begin"].min())
    where = tab.tab.locator("#main .controls .status").nth(1)
    assert f"{format_count(span)} cycles" in where.inner_text()
    # WHEN one zooms by key and back, THEN the window says so
    tab.tab.locator("canvas").focus()
    tab.tab.keyboard.press("+")
    tab.wait(
        "!document.querySelectorAll('#main .controls .status')[1].innerText.includes(of)",
        f"{format_count(span)} cycles",
    )
    tab.tab.keyboard.press("0")
    tab.wait(
        "document.querySelectorAll('#main .controls .status')[1].innerText.includes(of)", f"{format_count(span)} cycles"
    )
    # WHEN a block is chosen by key, THEN it is the first of the first IPU
    tab.tab.keyboard.press("ArrowRight")
    facts = tab.facts("#main > div")
    assert facts["IPU"] == "0"
    first = int(steps.loc[steps["ipu"] == 0, "begin"].min())
    assert facts["In the report"] == format_count(first)
    assert facts["From cycle"] == format_count(first - int(steps["begin"].min()))
    # WHEN names are searched for, THEN the blocks of both IPUs are found, and gone to in turn
    tab.tab.get_by_role("searchbox", name="Search").fill("External Sync")
    tab.tab.wait_for_selector("text=blocks match")
    matching = steps[steps["name"].str.contains("External Sync")]
    text = tab.texts("#main .controls .status")[0]
    assert text.endswith(f"{format_count(int((matching['end'] - matching['begin']).sum()))} cycles in all")
    tab.tab.get_by_role("button", name="Next").click()
    assert "External Sync" in tab.facts("#main > div")["Name"]
    # WHEN a part of a path is searched for that goes through groups, THEN whole names are what is searched in
    tab.tab.get_by_role("searchbox", name="Search").fill("attention/self/")
    tab.wait("!document.querySelector('#main .controls .status').innerText.startsWith(of)", text.partition(" ")[0])
    number = sum("attention/self/" in name for ipu in (0, 1) for name in whole_names(steps[steps["ipu"] == ipu]))
    assert tab.texts("#main .controls .status")[0].startswith(f"{format_count(number)} blocks match")


def test_cycle_statistics_show_the_cycles_of_each_type(tab: Tab, sample_page: PageOf, report: pvanalyse.Report) -> None:
    tab.show(sample_page(SAMPLE), "view=statistics")
    shown = (
        tab.tab.locator("section.card").filter(has_text="Cycles by program type").locator("tbody tr").all_inner_texts()
    )
    metrics = report.metrics()
    for name, cycles in metrics.items():
        if name.startswith("execution.step_cycles."):
            kind = name.rpartition(".")[2]
            assert any(row.split("\t")[0] == kind and format_count(cycles) in row for row in shown), (kind, shown)


def test_two_reports_are_shown_side_by_side(tab: Tab, sample_page: PageOf) -> None:
    # GIVEN a page of two reports
    names = ("transformer_before", "transformer_after")
    tab.show(sample_page(*names), "view=compare")
    with pvanalyse.open_report(SAMPLES / names[0]) as a, pvanalyse.open_report(SAMPLES / names[1]) as b:
        first, second = a.metrics(), b.metrics()
    # THEN it lists the metrics that differ, with the difference
    rows = {row[0]: row for row in tab.table("[aria-label='Metrics of both reports']")}
    assert rows.keys() == {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)}
    change = second["liveness.peak"] - first["liveness.peak"]
    assert rows["liveness.peak"][1:4] == [
        format_bytes(first["liveness.peak"]),
        format_bytes(second["liveness.peak"]),
        f"+{format_bytes(change)}",
    ]
    # WHEN another view is shown, THEN both are, with the same tile chosen, until one alone is asked for
    tab.show(sample_page(*names), "view=memory&tile=182")
    assert tab.texts(".pane-name") == [f"A {names[0]}", f"B {names[1]}"]
    shown = [tab.facts(f".pane:nth-child({at})")["Including gaps"] for at in (1, 2)]
    assert shown == [
        format_bytes(first["memory.tile_max_including_gaps"]),
        format_bytes(second["memory.tile_max_including_gaps"]),
    ]
    tab.select("Reports", "b")
    assert tab.facts("#main")["Including gaps"] == shown[1]
    assert tab.tab.locator(".pane").count() == 1


def test_a_cache_alone_shows_its_timeline(tab: Tab, real_cache: Path, tmp_path: Path) -> None:
    # GIVEN a directory with only the viewer's cache
    with pvanalyse.open_report(real_cache) as report:
        report.html().save(tmp_path / "report.html")
        steps = report.execution.steps()
    # THEN its timeline is there, and other views say what captures them
    tab.show(tmp_path / "report.html", "view=timeline")
    assert len(tab.tab.locator("input[type=checkbox]").all()) == steps["ipu"].nunique()
    tab.show(tmp_path / "report.html", "view=memory")
    assert "was not captured in this report; to capture it:" in tab.tab.locator(".missing").inner_text()
    assert "nothing" in tab.tab.locator("nav a[data-view=memory]").get_attribute("class")


def test_a_served_page_is_loaded_again_when_there_is_another(tab: Tab) -> None:
    # GIVEN a page on the loopback, with a view chosen
    texts = []
    for name in ("lightweight", "replicated"):
        with pvanalyse.open_report(SAMPLES / name) as report:
            texts.append(page([(name, report)], live=True).text)
    live = LivePage(texts[0])
    with served(live) as address:
        with tab.tab.expect_response("**/events"):
            tab.tab.goto(f"{address}#view=map&tile=5")
        tab.settle()
        assert tab.texts("#reports") == ["lightweight"]
        tab.tab.wait_for_timeout(500)  # until it has heard which page this is
        # WHEN there is another page, THEN that is shown, with the same view, and only this server was asked
        live.replace(texts[1])
        tab.tab.wait_for_selector("#reports:has-text('replicated')")
        tab.settle()
        assert tab.facts("#main")["Tile"] == "5"
        tab.tab.goto("about:blank")
    assert {url.partition("#")[0] for url in tab.asked} == {address, f"{address}events"}
    tab.asked.clear()


def test_units_theme_and_keys(open_tab: Callable[..., Tab], sample_page: PageOf, report: pvanalyse.Report) -> None:
    # GIVEN a reader who likes it dark
    tab = open_tab(color_scheme="dark")
    tab.show(sample_page(SAMPLE), "view=memory")
    assert tab.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    # WHEN keys are pressed, THEN the views follow each other, and the theme changes
    tab.tab.locator("#view-title").focus()
    tab.tab.keyboard.press("]")
    assert tab.texts("#main h2") == ["Tile map"]
    tab.tab.keyboard.press("[")
    assert tab.texts("#main h2") == ["Memory by tile"]
    tab.tab.keyboard.press("t")
    assert tab.tab.evaluate("document.documentElement.dataset.theme") == "light"
    tab.tab.keyboard.press("?")
    assert tab.tab.locator("dialog[open]").count() == 1
    tab.tab.keyboard.press("Escape")
    # WHEN other units are chosen, THEN sizes are in them
    most = report.metrics()["memory.tile_max_including_gaps"]
    for units in ("si", "bytes", "binary"):
        tab.select("Sizes", units)
        assert tab.facts("#main")["Including gaps"] == format_bytes(most, units)
    # and a link to the content changes no view
    tab.tab.locator(".skip").focus()
    tab.tab.keyboard.press("Enter")
    assert tab.tab.evaluate("() => document.activeElement.id") == "main"
    assert tab.texts("#main h2") == ["Memory by tile"]
    # and the way back leads through the views
    tab.tab.go_back()
    assert tab.texts("#main h2") == ["Tile map"]


def test_a_frame_shows_the_page_inside_another(tab: Tab, tmp_path: Path, report: pvanalyse.Report) -> None:
    outer = tmp_path / "notebook.html"
    outer.write_text(f"<!doctype html><meta charset=utf-8><title>notebook</title>{report.html().frame()}", "utf-8")
    tab.tab.goto(outer.as_uri())
    frame = tab.tab.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for()
    frame.locator("nav a", has_text="Memory by tile").click()
    frame.locator(".chart[data-drawn]").wait_for()
    most = report.metrics()["memory.tile_max_including_gaps"]
    assert frame.locator("dl.facts dd").nth(2).inner_text() == format_bytes(most)
