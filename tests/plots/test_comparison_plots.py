"""Plots of reports compared: what they draw is what the tables say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch

import pvanalyse
from pvanalyse import NotCaptured, UsageError
from pvanalyse.analysis.contributions import explaining
from pvanalyse.comparisons import ReportComparison
from pvanalyse.plots import COMPARISON_KINDS
from pvanalyse.plots.figures import picture
from tests.conftest import SAMPLES
from tests.oracle.frames import Captured

BEFORE, AFTER = SAMPLES / "transformer_before", SAMPLES / "transformer_after"
NAMES = sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("profile.pop"))


@pytest.fixture(scope="module")
def regression() -> Iterator[ReportComparison]:
    with pvanalyse.compare(BEFORE, AFTER) as found:
        yield found


def steps(ax: Axes) -> list[tuple[list[float], list[float]]]:
    """Heights and edges of every step plot."""
    return [
        (list(one.get_data().values), list(one.get_data().edges)) for one in ax.patches if isinstance(one, StepPatch)
    ]


def test_tiles_show_each_change(regression: ReportComparison) -> None:
    # GIVEN the memory of each tile, read by other means
    sizes = [
        {row["tile"]: row["total_including_gaps"] for row in Captured(path / "profile.pop")["tile_memory"]}
        for path in (AFTER, BEFORE)
    ]
    change = [sizes[0][tile] - sizes[1][tile] for tile in sorted(sizes[0])]
    # WHEN the changes are drawn there and back
    (more, edges), (less, _) = steps(regression.plot.tiles())
    with pvanalyse.compare(AFTER, BEFORE) as back:
        (none, _), (all_less, _) = steps(back.plot.tiles())
    # THEN each tile has its own, of the colour of its sign
    assert more == [max(one, 0) for one in change]
    assert less == [min(one, 0) for one in change]
    assert edges == [tile - 0.5 for tile in range(len(change) + 1)]
    assert (none, all_less) == ([-one for one in less], [-one for one in more])


def test_liveness_shows_the_curve_of_each(regression: ReportComparison) -> None:
    drawn = steps(regression.plot.liveness())
    for path, (heights, edges) in zip((BEFORE, AFTER), drawn, strict=True):
        rows = Captured(path / "profile.pop")["liveness_steps"]
        assert heights == [row["not_always_live_bytes"] for row in rows]
        assert edges == [*(row["step"] for row in rows), rows[-1]["step"] + 1]


@pytest.mark.parametrize("metric", ["memory.tile_max_including_gaps", "liveness.peak", "execution.cycles"])
@pytest.mark.parametrize("count", [1, 3, 12])
def test_contributions_fall_from_one_value_to_the_other(regression: ReportComparison, metric: str, count: int) -> None:
    ax = regression.plot.contributions(metric, count=count)
    before, after = (values[metric] for values in regression.metric_values)
    first, *falling, last = sorted(ax.patches, key=lambda bar: bar.get_y())
    # THEN each bar begins where the one before it ends, from the one value to the other
    at = before
    for bar in falling:
        assert bar.get_x() == at
        at += bar.get_width()
    assert at == after
    assert (first.get_x() + first.get_width(), last.get_x() + last.get_width()) == (before, after)
    listed = explaining(regression.contributions(metric)).head(count)
    assert [bar.get_width() for bar in falling][: len(listed)] == listed["change"].tolist()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "A"
    assert labels[-1] == "B"
    assert len(labels) == len(falling) + 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", COMPARISON_KINDS)
def test_every_plot_of_every_sample(kind: str, name: str) -> None:
    # GIVEN three reports, of other targets perhaps
    with pvanalyse.compare(SAMPLES / name, AFTER, SAMPLES / name) as found:
        try:
            ax = getattr(found.plot, kind)()
        except (UsageError, NotCaptured):
            # THEN what cannot be drawn is refused only where tiles differ
            assert kind == "tiles"
            assert not found.same_tiles
            return
        assert picture(ax, "png", 50).startswith(b"\x89PNG")
        assert not np.isnan(ax.get_xlim()).any()


def test_what_cannot_be_drawn(regression: ReportComparison) -> None:
    with pytest.raises(AttributeError, match="there is no plot 'pie'; there are: tiles, liveness, contributions"):
        regression.plot.pie()
    with pytest.raises(UsageError, match="at least 1"):
        regression.plot.contributions(count=0)
    assert {*COMPARISON_KINDS} <= {*dir(regression.plot)}
