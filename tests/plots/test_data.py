"""What is drawn, held against the numbers that SQL finds in the sample's profile.pop."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle, StepPatch

from pvanalyse import Report, UsageError
from pvanalyse.plots import KINDS
from pvanalyse.plots.accessor import Plots
from tests.conftest import SAMPLES
from tests.plots.pictures import sample

PROFILE = SAMPLES / "pipelined" / "training" / "profile.pop"


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    with sample() as opened:
        yield opened


def sql(query: str, *values: Any) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(f"file:{PROFILE}?mode=ro&immutable=1", uri=True)
    try:
        return database.execute(query, values).fetchall()
    finally:
        database.close()


def plot(report: Report, kind: str, **options: Any) -> Axes:
    return KINDS[kind].load()(report, **options)


def layers(axes: Axes) -> np.ndarray[Any, Any]:
    """Heights of each layer of a stack, from the bottom up: shape (layers, columns)."""
    tops = [patch.get_data().values for patch in reversed(axes.patches) if isinstance(patch, StepPatch) and patch.fill]
    return np.diff(np.array(tops), axis=0, prepend=0)


def legend_names(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def labels(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


# ------------------------------------------------------------------------------------------------- memory of tiles
def test_memory_by_category_is_each_category_and_adds_up_to_the_total(report: Report) -> None:
    axes = plot(report, "memory-by-tile")
    # GIVEN the layers as drawn, bottom up, with their names in the legend, top down
    drawn = dict(zip(reversed(legend_names(axes)[1:]), layers(axes), strict=True))
    # THEN each category is what the table says, tile by tile
    found: dict[str, list[int]] = {}
    for name, number, size in sql("SELECT category, tile, sum(non_overlapped) FROM tile_memory_category GROUP BY 1, 2"):
        found.setdefault(name, [0] * 128)[number] = size
    shown = {name: heights for name, heights in drawn.items() if name in found}
    assert len(shown) >= 12
    assert {name: heights.tolist() for name, heights in shown.items()} == {name: found[name] for name in shown}
    # AND the small ones are together
    rest = np.sum([sizes for name, sizes in found.items() if name not in shown], axis=0)
    assert [heights.tolist() for name, heights in drawn.items() if name.endswith("smaller categories")] == [
        rest.tolist()
    ]
    # AND the top is the total including gaps, of which the last layer is the gaps
    totals = sql(
        "SELECT total_including_gaps, total_including_gaps - total_excluding_gaps FROM tile_memory ORDER BY tile"
    )
    assert list(zip(layers(axes).sum(axis=0).tolist(), drawn["gaps"].tolist(), strict=True)) == totals


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        ("region", ["non_interleaved_including_gaps", "interleaved_including_gaps", "overflowed_including_gaps"]),
        ("liveness", ["always_live_bytes", "not_always_live_bytes"]),
    ],
)
def test_memory_by_region_and_liveness(report: Report, by: str, columns: list[str]) -> None:
    axes = plot(report, "memory-by-tile", by=by)
    assert list(map(tuple, layers(axes).T.tolist())) == sql(
        f"SELECT {', '.join(columns)} FROM tile_memory ORDER BY tile"
    )


def test_the_limit_is_the_memory_of_a_tile(report: Report) -> None:
    lines = {line.get_label(): set(line.get_ydata()) for line in plot(report, "memory-by-tile").lines}
    assert lines["tile memory 624 KiB"] == {638_976}


def test_the_fullest_tiles_come_first(report: Report) -> None:
    axes = plot(report, "memory-by-tile", worst=7, by="region")
    expected = sql("SELECT tile, total_including_gaps FROM tile_memory ORDER BY 2 DESC, 1 LIMIT 7")
    names = [int(text.get_text()) for text in axes.get_xticklabels()]
    assert list(zip(names, layers(axes).sum(axis=0).tolist(), strict=True)) == expected


def test_chosen_tiles_are_named(report: Report) -> None:
    axes = plot(report, "memory-by-tile", tiles="3,60-62,100", by="region")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["3", "60", "61", "62", "100"]


def test_categories_are_bars(report: Report) -> None:
    axes = plot(report, "categories", ipu=1)
    own, shared = bars(axes)[::2], bars(axes)[1::2]
    drawn = list(zip(labels(axes), [bar.get_width() for bar in own], [bar.get_width() for bar in shared], strict=True))
    assert drawn == sql(
        "SELECT category, sum(non_overlapped) AS own, sum(overlapped) FROM tile_memory_category"
        " WHERE tile >= 64 GROUP BY 1 ORDER BY own DESC, 1"
    )
    assert [bar.get_x() for bar in shared] == [bar.get_width() for bar in own]


def test_the_histogram_counts_every_tile_once(report: Report) -> None:
    axes = plot(report, "tile-histogram", bins=10)
    counts, edges, _ = axes.patches[0].get_data()  # type: ignore[attr-defined]
    sizes = [size for (size,) in sql("SELECT total_including_gaps FROM tile_memory")]
    inside = [
        sum(low <= size < high or (size == high == max(sizes)) for size in sizes) for low, high in pairwise(edges)
    ]
    assert counts.tolist() == inside
    assert sum(inside) == len(sizes) == 128


def test_the_map_shows_every_tile_in_the_order_of_numbers(report: Report) -> None:
    cells = np.ma.filled(plot(report, "tile-map", column="always_live_bytes").images[0].get_array(), np.nan)
    sizes = [size for (size,) in sql("SELECT always_live_bytes FROM tile_memory ORDER BY tile")]
    # 64 tiles are 8 × 8, one IPU beside the other
    panels = [cells[:8, :8], cells[:8, -8:]]
    assert [size for panel in panels for size in panel.ravel().tolist()] == sizes
    assert np.isfinite(cells).sum() == 128


# ------------------------------------------------------------------------------------------------------- liveness
def test_the_curve_is_the_steps(report: Report) -> None:
    axes = plot(report, "liveness")
    expected = [size for (size,) in sql("SELECT not_always_live_bytes FROM liveness_steps ORDER BY step")]
    assert layers(axes)[0].tolist() == expected
    marker = next(line for line in axes.lines if line.get_label() == "peak")
    assert (marker.get_xdata()[0] - 0.5, marker.get_ydata()[0]) == (expected.index(max(expected)), max(expected))


def test_the_curve_of_an_ipu_is_the_sum_of_what_is_live_on_its_tiles(report: Report) -> None:
    axes = plot(report, "liveness", ipu=1, always_live=True)
    live = dict(sql(
        "SELECT s.step, sum(v.bytes) FROM lowered_variables v JOIN equivalence_class_intervals i"
        " USING (equivalence_class_id) JOIN liveness_steps s ON i.step_begin <= s.step AND s.step < i.step_end"
        " WHERE v.tile >= 64 AND NOT v.always_live GROUP BY 1"
    ))  # fmt: skip
    always = sql("SELECT sum(always_live_bytes) FROM tile_memory WHERE tile >= 64")[0][0]
    base, above = layers(axes)
    assert set(base.tolist()) == {always}
    assert above.tolist() == [live.get(step, 0) for step in range(len(above))]


def test_the_variables_at_the_peak(report: Report) -> None:
    axes = plot(report, "peak-variables", count=5)
    step = sql("SELECT step FROM liveness_steps ORDER BY not_always_live_bytes DESC, step LIMIT 1")[0][0]
    expected = sql(
        "SELECT name, sum(bytes) FROM variable_liveness WHERE step_begin <= ? AND ? < step_end GROUP BY 1, variable_id"
        " ORDER BY 2 DESC, 1", step, step,
    )  # fmt: skip
    widths = [bar.get_width() for bar in bars(axes)]
    assert widths == [size for _, size in expected[:5]] + [sum(size for _, size in expected[5:])]
    assert f"step {step}" in axes.get_title(loc="left")
    assert labels(axes)[5] == f"{len(expected) - 5} more variables"


def test_lifetimes_are_intervals(report: Report) -> None:
    axes = plot(report, "lifetimes", count=1000, pattern="LayerNorm")
    drawn = Counter((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars(axes))
    assert drawn == Counter(sql("SELECT step_begin, step_end FROM variable_liveness WHERE name LIKE '%LayerNorm%'"))
    assert len({bar.get_y() for bar in bars(axes)}) == len(
        sql("SELECT DISTINCT name FROM variable_liveness WHERE name LIKE '%LayerNorm%'")
    )


def test_the_memory_map_is_rectangles(report: Report) -> None:
    axes = plot(report, "memory-map", tile=9)
    drawn = Counter(
        tuple(value for corner in (path.vertices[0], path.vertices[2]) for value in corner.tolist())
        for collection in axes.collections
        if collection.get_label() != "gaps"
        for path in collection.get_paths()
    )
    num_steps = sql("SELECT count(*) FROM liveness_steps")[0][0]
    expected = Counter(sql(
        "SELECT coalesce(min(step_begin), 0), offset, coalesce(max(step_end), ?), offset + bytes FROM lowered_variables"
        " LEFT JOIN equivalence_class_intervals USING (equivalence_class_id) WHERE tile = 9 AND offset IS NOT NULL"
        " GROUP BY lowered_variable_id", num_steps,
    ))  # fmt: skip
    assert drawn == expected


# -------------------------------------------------------------------------------------------------------- the rest
def test_methods_of_a_report_are_the_kinds(report: Report) -> None:
    plots = Plots(report)
    assert {name for name in dir(plots) if not name.startswith("_")} == {kind.function for kind in KINDS.values()}
    drawn = plots.liveness(ipu=0)
    assert drawn.get_title(loc="left").startswith("Live memory of IPU 0")
    assert (plots.liveness.__doc__ or "").startswith("Draw the live bytes")
    with pytest.raises(AttributeError):
        _ = plots.nonsense


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("memory-by-tile", {"by": "colour"}),
        ("memory-by-tile", {"tiles": "128"}),
        ("memory-by-tile", {"ipu": 2}),
        ("tile-map", {"column": "tile"}),
        ("tile-histogram", {"column": "nonsense"}),
        ("memory-map", {"tile": 128}),
        ("peak-variables", {"step": 100_000}),
        ("peak-variables", {"count": 0}),
        ("lifetimes", {"pattern": "no such variable"}),
        ("lifetimes", {"pattern": "("}),
    ],
)
def test_a_wrong_question_is_refused(report: Report, kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        plot(report, kind, **options)
