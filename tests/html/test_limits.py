"""A report as large as a page must hold: four IPUs, 50,000 liveness steps, 200,000 blocks of the execution."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pvanalyse
from pvanalyse.html.page import page
from pvanalyse.units import format_bytes
from tests.html.conftest import Tab

IPUS, TILES, STEPS, PROGRAMS = 4, 1472, 50_000, 5_000
MOST_BYTES = 15_000_000
CATEGORIES = ("variable", "vertexInstanceState", "internalExchangeCode", "controlCode", "vertexCode", "stack",
              "message", "constant", "copyDescriptor", "vectorListDescriptor")  # fmt: skip
OPERATIONS = ("MatMul/Convolve", "Softmax/Exp", "LayerNorm/Norm", "Gelu/Elementwise", "Reduce/Stage1", "Transpose/Copy")


@pytest.fixture
def large(make_profile: Callable[..., Path]) -> Path:
    chance = random.Random(1)
    number = IPUS * TILES
    sizes = [[chance.randrange(0, 60_000) for _ in CATEGORIES] for _ in range(number)]
    totals = [sum(row) for row in sizes]

    def executed() -> Iterator[tuple[object, ...]]:
        for ipu in range(IPUS):
            now = 0
            for step in range(STEPS):
                cycles = chance.randrange(100, 20_000)
                yield (
                    step,
                    ipu,
                    cycles,
                    now,
                    now,
                    now + cycles,
                    now + cycles,
                    now,
                    now,
                    now + cycles,
                    now + cycles,
                    0.5,
                    0.5,
                    None,
                    None,
                )
                now += cycles + chance.randrange(0, 200)

    return make_profile(
        {
            "report_info": [("layout", "pvanalyse-1")],
            "target": [("Ipu", "Ipu2", IPUS, 1, TILES, number, 638_976, 1.33e9, None, None, None)],
            "tile_memory": ((tile, total, total, total, total, 0, 0, 0, 0, total // 2, total // 3) for tile, total in enumerate(totals)),
            "tile_memory_category": ((tile, name, "nonInterleaved", size, 0) for tile, row in enumerate(sizes)
                                     for name, size in zip(CATEGORIES, row, strict=True)),
            "programs": ((program, "OnTileExecute", f"model/layer_{program % 97}/block_{program % 13}/{OPERATIONS[program % 6]}/{program}",
                          None, None, None, None, None, None) for program in range(PROGRAMS)),
            "liveness_steps": ((step, step % PROGRAMS, chance.randrange(10**6, 10**9)) for step in range(STEPS)),
            "variable_liveness": ((None, f"model/variable_{at}", at * 2, at * 2 + chance.randrange(1, 900), chance.randrange(1, 10**7)) for at in range(24_000)),
            "runs": [(0, "run", 0, 10**6)],
            "execution_steps": ((step, 0, chance.randrange(PROGRAMS), None) for step in range(STEPS)),
            "execution_step_ipus": executed(),
        }
    ).parent  # fmt: skip


def test_the_page_stays_small_and_is_drawn(large: Path, tmp_path: Path, tab: Tab) -> None:
    # GIVEN the page of such a report
    with pvanalyse.open_report(large) as report:
        made = page([("large", report)])
        metrics = report.metrics()
    path = tmp_path / "report.html"
    made.save(path)
    # THEN it is small, and none of the blocks and steps were left out
    assert path.stat().st_size < MOST_BYTES
    tab.show(path, "view=timeline")
    assert "blocks are shown as" not in tab.tab.locator("main").inner_text()
    tab.tab.get_by_role("searchbox", name="Search").fill("MatMul")
    tab.tab.wait_for_selector("text=blocks match")
    tab.show(path, "view=liveness")
    assert tab.facts("#main")["Live, not always"] == format_bytes(metrics["liveness.peak_not_always_live"])
    tab.show(path, "view=memory")
    assert tab.facts("#main")["Including gaps"] == format_bytes(metrics["memory.tile_max_including_gaps"])
    assert "Each column is the fullest of 4 tiles" in tab.tab.locator("main").inner_text()
    # WHEN one zooms into a part of the tiles, THEN every one of them is drawn
    tab.tab.wait_for_selector(".plot .nsewdrag")
    box = tab.tab.locator(".plot .nsewdrag").bounding_box()
    y = box["y"] + box["height"] / 2
    tab.tab.mouse.move(box["x"] + box["width"] * 0.3, y)
    tab.tab.mouse.down()
    tab.tab.mouse.move(box["x"] + box["width"] * 0.4, y, steps=5)
    tab.tab.mouse.up()
    tab.tab.wait_for_selector("text=Every tile in the range is drawn")
