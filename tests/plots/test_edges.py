"""Names that mean mischief, the smallest and the largest reports, and what leaves no traces."""

from __future__ import annotations

import random
from io import BytesIO
from itertools import pairwise
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import StepPatch
from matplotlib.text import Text

from pvanalyse import NotCaptured
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import figure_axes, picture
from pvanalyse.plots.floor_plan import floor_plan
from tests.plots.sources import Rows, small, tiles_of

HOSTILE = [
    "$x^2$ and $\\frac{1}{2}$ and $\\undefined{",
    "\u202egnol\u2066 one\nline\rof\x1b[31m <script>alert(1)</script>&amp; \u4e2d\u6587 \U0001f600",
    "_nolegend_",
    "",
    "%s {0} \\n" * 10_000,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:20]))
def test_any_name_can_be_drawn(kind: str, name: str) -> None:
    # GIVEN a report of one tile and one step in which everything has this name
    source = small(name, name, name or "?")
    axes = KINDS[kind].load()(source, ax=figure_axes((9, 5), 60))
    # WHEN it is drawn, which warns of nothing (a warning fails a test)
    pixels = imread(BytesIO(picture(axes, "png", 60)), format="png")
    # THEN it has its size, and no text is TeX, longer than a line, or has control characters in it
    assert pixels.shape[:2] == (300, 540)
    texts = [text for text in axes.figure.findobj(Text) if isinstance(text, Text) and text.get_text()]
    mine = [text for text in texts if "$" in text.get_text()]
    assert not any(text.get_parse_math() for text in mine)
    assert all(line.isprintable() for text in texts for line in text.get_text().splitlines())
    assert max(len(line) for text in texts for line in text.get_text().splitlines()) < 160


def test_a_hostile_name_is_only_text_in_an_svg() -> None:
    with mpl.rc_context({"svg.fonttype": "none"}):
        source = small(name="</text><script>alert(1)</script>")
        svg = picture(KINDS["peak-variables"].load()(source), "svg")
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(svg).iter()}
    assert "text" in tags
    assert "script" not in tags


def test_a_legend_names_everything() -> None:
    axes = KINDS["memory-by-tile"].load()(small(category_name="_hidden"))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["gaps", "shared over time", "_hidden"]


def test_a_single_tile_and_step_are_labelled_with_whole_numbers() -> None:
    axes = KINDS["memory-by-tile"].load()(small())
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0"]
    axes = KINDS["liveness"].load()(small())
    picture(axes, "png", 50)
    assert [text.get_text() for text in axes.get_xticklabels() if text.get_text()] == ["0", "1"]


# ----------------------------------------------------------------------------------------------- the largest machine
@pytest.fixture(scope="module")
def sizes() -> list[int]:
    numbers = random.Random(1)
    sizes = [numbers.randrange(200_000, 500_000) for _ in range(23_552)]
    for tile in (0, 7_777, 1_471, 23_551):
        sizes[tile] = 630_000 + tile // 10
    return sizes


def test_each_column_shows_its_fullest_tile(sizes: list[int]) -> None:
    # GIVEN 16 IPUs; WHEN drawn into Axes of far fewer pixels than there are tiles
    axes = KINDS["memory-by-tile"].load()(tiles_of(sizes, 1472, ["a", "b"]), ax=figure_axes((10, 4), 80))
    tops, edges, _ = next(patch for patch in axes.patches if isinstance(patch, StepPatch)).get_data()
    borders = [round(edge + 0.5) for edge in edges]
    # THEN there are no more columns than pixels, each is as high as its fullest tile, and none is on two IPUs
    assert len(tops) <= axes.get_window_extent().width
    assert tops.tolist() == [max(sizes[low:high]) for low, high in pairwise(borders)]
    assert {1472 * ipu for ipu in range(17)} <= set(borders)
    assert max(high - low for low, high in pairwise(borders)) > 20
    # AND the picture says so
    texts = [text.get_text() for text in axes.texts]
    assert (
        f"each column shows the fullest of up to {max(high - low for low, high in pairwise(borders))} neighbouring tiles"
        in texts
    )


def test_the_layers_of_a_column_are_those_of_its_fullest_tile() -> None:
    # GIVEN tiles that are full of one thing or of another
    whole = tiles_of([100_000] * 2000, 2000, ["a"])
    other = [{"tile": tile, "category": "b", "region": "nonInterleaved", "non_overlapped": tile, "overlapped": 0}
             for tile in range(2000)]  # fmt: skip
    rows = {name: whole.arrow(name).to_pylist() for name in ("target", "tile_memory", "tile_memory_category")}
    rows["tile_memory"] = [{**row, "total_including_gaps": 100_000 + row["tile"],
                            "total_excluding_gaps": 100_000 + row["tile"]} for row in rows["tile_memory"]]  # fmt: skip
    rows["tile_memory_category"] += [row for row in other if row["non_overlapped"]]
    # WHEN drawn in few columns; THEN the layers add up to one tile, the last of each column, not to a mixture
    axes = KINDS["memory-by-tile"].load()(Rows(rows), ax=figure_axes((4, 4), 50))
    stacks = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    values, edges, _ = stacks[-2].get_data()
    assert (values - stacks[-1].get_data().values).tolist() == [round(edge - 0.5) for edge in edges[1:]]


def test_every_tile_has_a_cell_of_its_own() -> None:
    for num_tiles, tiles_per_ipu in (
        (1, 1),
        (23_552, 1472),
        (5_888, 1472),
        (2_432, 1216),
        (7, 7),
        (97 * 3, 97),
        (64, 1),
    ):
        plan = floor_plan(num_tiles, tiles_per_ipu)
        cells = set(zip(plan.row.tolist(), plan.column.tolist(), strict=True))
        assert len(cells) == num_tiles
        of_ipu = [tile // tiles_per_ipu for tile in range(num_tiles)]
        inside = (plan.row - plan.panel_row[of_ipu] < plan.panel_rows) & (plan.row >= plan.panel_row[of_ipu])
        inside &= (plan.column - plan.panel_column[of_ipu] < plan.panel_columns) & (
            plan.column >= plan.panel_column[of_ipu]
        )
        assert inside.all()


def test_tiles_that_do_not_fit_are_marked_on_the_map(sizes: list[int]) -> None:
    sizes = [*sizes[:1472]]
    sizes[5] = 700_000
    axes = KINDS["tile-map"].load()(tiles_of(sizes, 1472))
    over = np.ma.filled(axes.images[1].get_array(), np.nan)
    assert np.argwhere(over == 1).tolist() == [[0, 5]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["1 tile does not fit"]


# ------------------------------------------------------------------------------------------------- nothing, and after
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_without_the_tables_is_refused(kind: str) -> None:
    with pytest.raises(NotCaptured):
        KINDS[kind].load()(Rows({"target": small().arrow("target").to_pylist()}))


def test_a_plot_leaves_nothing_with_pyplot_and_draws_where_it_is_told() -> None:
    # GIVEN no notebook; WHEN a plot makes its own figure
    axes = KINDS["liveness"].load()(small())
    # THEN pyplot does not know it
    assert isinstance(axes.figure, Figure)
    assert plt.get_fignums() == []
    # AND GIVEN Axes; THEN it draws into those and touches no others
    figure = Figure()
    first, second = figure.subplots(1, 2)
    assert KINDS["liveness"].load()(small(), ax=second) is second
    assert not first.has_data()
    assert plt.get_fignums() == []


def test_a_notebook_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN the backend that a notebook sets; WHEN a plot makes its own figure; THEN it is one that pyplot will show
    monkeypatch.setattr(mpl, "get_backend", lambda **_: "module://matplotlib_inline.backend_inline")
    axes = KINDS["liveness"].load()(small())
    try:
        assert [plt.figure(number) for number in plt.get_fignums()] == [axes.figure]
    finally:
        plt.close("all")
