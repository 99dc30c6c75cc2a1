"""What the plots of an execution draw, held against counting single cycles and against SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle, StepPatch

from pvanalyse import NotCaptured, Report, UsageError, open_report
from pvanalyse.analysis.stretches import coverage
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import figure_axes
from pvanalyse.plots.time_axis import spread
from pvanalyse.plots.timeline import COLOURS
from pvanalyse.units import format_fraction
from tests.conftest import SAMPLES
from tests.plots.pictures import sample
from tests.plots.sources import Rows, target
from tests.plots.test_data import labels, legend_names, sql

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 99)), max_size=10)
COLUMNS = st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 7))


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    with sample() as opened:
        yield opened


def plot(source: Any, kind: str, **options: Any) -> Axes:
    return KINDS[kind].load()(source, **options)


def columns_of(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    begin, length, size = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    return begin, begin + length, size


# ------------------------------------------------------------------------------------------------- what a column shows
@given(INTERVALS, COLUMNS)
def test_coverage_is_the_share_of_single_cycles(rows: list[tuple[int, int, int]], window: tuple[int, int, int]) -> None:
    low, width, count = window
    begin, end, _ = columns_of(rows)
    edges = np.linspace(low, low + width * count, count + 1)
    cycles = {cycle for first, last in zip(begin, end, strict=True) for cycle in range(first, last)}
    parts = [range(low + at * width, low + (at + 1) * width) for at in range(count)]
    assert coverage(begin, end, edges).tolist() == pytest.approx([len(cycles & set(part)) / width for part in parts])


@given(INTERVALS, COLUMNS)
def test_bytes_are_spread_over_single_cycles(rows: list[tuple[int, int, int]], window: tuple[int, int, int]) -> None:
    low, width, count = window
    begin, end, size = columns_of(rows)
    edges = np.linspace(low, low + width * count, count + 1)
    of_cycle = dict.fromkeys(range(200), 0.0)
    for first, last, moved in zip(begin.tolist(), end.tolist(), size.tolist(), strict=True):
        for cycle in range(first, max(last, first + 1)):
            of_cycle[cycle] += moved / max(1, last - first)
    expected = [sum(of_cycle[low + at * width + one] for one in range(width)) / width for at in range(count)]
    assert spread(begin, end, size, edges).tolist() == pytest.approx(expected, abs=1e-9)


# ---------------------------------------------------------------------------------------------------------- timelines
TYPES = ("OnTileExecute", "DoExchange", "SyncAns", "StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd", "Call")


def execution(*steps: tuple[int, int, str, int, int], names: tuple[str, ...] = TYPES) -> Rows:
    """Steps given by run, IPU, type, begin and end."""
    programs = [{"program_id": at, "type": kind, "name": name}
                for at, (kind, name) in enumerate(zip(TYPES, names, strict=True))]  # fmt: skip
    rows = [
        {"step_id": step, "ipu": ipu, "cycles": end - begin, "active_from_max": begin, "active_to_max": end,
         "all_from_min": begin, "all_to_max": end, "tile_balance": 0.75, "data_in": 64, "data_out": None}
        for step, (_, ipu, _, begin, end) in enumerate(steps)
    ]  # fmt: skip
    runs = [
        {"step_id": step, "run_id": run, "program_id": TYPES.index(kind)}
        for step, (run, _, kind, _, _) in enumerate(steps)
    ]
    return Rows({"target": [target(4, 2)], "programs": programs, "execution_steps": runs, "execution_step_ipus": rows})


SMALL = (
    (0, 0, "OnTileExecute", 100, 110), (0, 0, "DoExchange", 108, 112), (0, 0, "SyncAns", 0, 120),
    (0, 1, "StreamCopyBegin", 100, 104), (0, 1, "StreamCopyMid", 104, 106), (0, 1, "Call", 106, 106),
    (1, 1, "StreamCopyEnd", 118, 120), (1, 0, "OnTileExecute", 114, 116),
)  # fmt: skip


def shares(axes: Axes) -> list[tuple[str, list[float]]]:
    """Colour and share of each column of every row that a flat timeline filled, from the top."""
    found = []
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, _, baseline = patch.get_data()
            found.append((to_hex(patch.get_facecolor()).upper(), ((baseline - values) / 0.84).round(9).tolist()))
    return found


def test_a_flat_timeline_has_a_row_for_each_ipu_and_kind() -> None:
    # GIVEN a small execution; WHEN all of it is drawn, a column being a cycle
    axes = plot(execution(*SMALL), "timeline")
    # THEN there is a row for each kind that there is on any IPU, but for answers to syncs, counted from the first cycle
    assert labels(axes) == ["IPU 0  compute", "exchange", "host", "other",
                            "IPU 1  compute", "exchange", "host", "other"]  # fmt: skip
    assert axes.get_xlim() == (0, 20)
    assert "since cycle 100 " in axes.get_xlabel()

    def busy(*stretches: tuple[int, int]) -> list[float]:
        return [float(any(first <= cycle < last for first, last in stretches)) for cycle in range(20)]

    assert shares(axes) == [
        (COLOURS["compute"], busy((0, 10), (14, 16))), (COLOURS["exchange"], busy((8, 12))),
        ("#A6DCCB", busy()), (COLOURS["host"], busy()), (COLOURS["other"], busy()),
        (COLOURS["compute"], busy()), (COLOURS["exchange"], busy()),
        ("#A6DCCB", busy((0, 6), (18, 20))), (COLOURS["host"], busy((4, 6))), (COLOURS["other"], busy()),
    ]  # fmt: skip


def test_a_window_and_a_choice() -> None:
    axes = plot(execution(*SMALL), "timeline", run=0, ipu=0, begin=7, end=11)
    assert labels(axes) == ["IPU 0  compute", "exchange"]
    assert axes.get_xlim() == (7, 11)
    assert shares(axes) == [(COLOURS["compute"], [1, 1, 1, 0]), (COLOURS["exchange"], [0, 1, 1, 1])]


def test_a_flame_timeline_draws_blocks_in_their_groups() -> None:
    names = ("mm/1/Convolve", "mm/1/Pre", *TYPES[2:])
    axes = plot(execution(*SMALL, names=names), "timeline", view="flame", ipu=0, ax=figure_axes((12, 4), 100))
    # GIVEN three steps with names that start alike; THEN they are below a group that reaches over all of them
    boxes = {}
    for bars in axes.collections:
        assert isinstance(bars, PolyCollection)
        colour = to_hex(bars.get_facecolor()[0]).upper() if len(bars.get_paths()) else ""
        for path in bars.get_paths():
            extent = path.get_extents()
            boxes[round(extent.y0 + 0.42), extent.x0, extent.x1] = colour
    assert boxes == {(0, 0, 16): "#DDE3E8", (1, 0, 10): COLOURS["compute"], (1, 8, 12): COLOURS["exchange"],
                     (1, 14, 16): COLOURS["compute"]}  # fmt: skip
    # AND each has its name, where no other is
    texts = [text.get_text() for text in axes.texts]
    assert [text for text in texts if text in ("mm/1", "Convolve", "Pre")] == ["mm/1", "Convolve", "Pre", "Convolve"]
    assert labels(axes) == ["IPU 0", ""]


def test_blocks_shorter_than_a_column_are_drawn_together() -> None:
    steps = [(0, 0, "OnTileExecute", at * 10, at * 10 + 1) for at in range(5_000)]
    axes = plot(execution(*steps), "timeline", view="flame", ax=figure_axes((8, 4), 60))
    # GIVEN thousands of steps of one name, which are one block; THEN that is drawn; AND apart, they are not
    assert sum(len(bars.get_paths()) for bars in axes.collections) == 1
    others = [(0, 0, TYPES[at % 2], at * 10, at * 10 + 1) for at in range(5_000)]
    axes = plot(execution(*others), "timeline", view="flame", ax=figure_axes((8, 4), 60))
    assert sum(len(bars.get_paths()) for bars in axes.collections) == 0
    assert set(shares(axes)[0][1]) == {1.0}


def test_the_real_pipeline_has_two_stages(real_cache: Path) -> None:
    # GIVEN a real program of two pipeline stages that ran twice; WHEN its timeline is drawn
    with open_report(real_cache) as opened:
        axes = plot(opened, "timeline")
    compute = [np.array(share) for colour, share in shares(axes) if colour == COLOURS["compute"]]
    # THEN it is as long as it was; AND the second stage starts after the first, and ends before it, in each run
    assert axes.get_xlim() == (0, 2_540_750)
    first, second = (share > 0.5 for share in compute)
    between = int(len(first) * 1_400_000 / 2_540_750)  # the first run ends 50,000 cycles earlier
    for run in (slice(0, between), slice(between, None)):
        starts = [int(np.flatnonzero(stage[run])[0]) for stage in (first, second)]
        ends = [int(np.flatnonzero(stage[run])[-1]) for stage in (first, second)]
        assert starts[0] < starts[1] < ends[1] < ends[0]
    # AND both stages work at the same time in between
    assert (first & second).sum() > 0.5 * second.sum()


# -------------------------------------------------------------------------------------------------------------- sums
def test_cycles_by_type_are_those_of_sql(report: Report) -> None:
    axes = plot(report, "cycles-by-type")
    names = [text.rpartition("  ")[0] for text in legend_names(axes)]
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    drawn = {}
    for at, bar in enumerate(bars):
        if bar.get_width():
            drawn[names[at // 2], at % 2] = round(bar.get_width())
    query = """SELECT type, ipu, sum(cycles) FROM execution_step_ipus JOIN execution_steps USING (step_id)
               JOIN programs USING (program_id) GROUP BY 1, 2 HAVING sum(cycles) > 0"""
    assert drawn == {(kind, ipu): cycles for kind, ipu, cycles in sql(query)}


def test_imbalance_ranks_programs(report: Report) -> None:
    axes = plot(report, "imbalance", count=3)
    widths = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert len(widths) == 4
    assert widths[:3] == sorted(widths[:3], reverse=True)
    # GIVEN one step of 10 and one of 2 cycles of a program on tiles that are balanced to three quarters
    axes = plot(execution(*SMALL), "imbalance", ipu=0)
    # THEN a quarter of its cycles is lost, and less of a shorter program
    bars = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert dict(zip(labels(axes), bars, strict=True)) == {"OnTileExecute": 3.0, "DoExchange": 1.0}


def test_bandwidth_adds_up_to_the_bytes(report: Report) -> None:
    axes = plot(report, "bandwidth", run=1)
    drawn = 0.0
    for patch in axes.patches:
        values, edges, _ = patch.get_data()
        drawn += float((values * np.diff(edges)).sum())
    (clock,) = sql("SELECT clock_frequency FROM target")[0]
    (moved,) = sql("""
        SELECT sum(CASE type WHEN 'StreamCopyMid' THEN coalesce(data_in, 0) + coalesce(data_out, 0)
                             WHEN 'GlobalExchange' THEN coalesce(data_out, 0) ELSE 0 END)
        FROM execution_step_ipus JOIN execution_steps USING (step_id) JOIN programs USING (program_id)
        WHERE run_id = 1""")[0]
    assert drawn / clock == pytest.approx(moved)


# ------------------------------------------------------------------------------------------------------ tiles, overlap
def test_a_bsp_picture_is_a_row_per_tile() -> None:
    # GIVEN a compute step of 4 cycles in which tile 1 works for two, an exchange, and one that only waits
    source = execution((0, 0, "OnTileExecute", 100, 104), (0, 0, "DoExchange", 104, 106),
                       (0, 0, "StreamCopyBegin", 106, 108), (0, 0, "OnTileExecute", 110, 112))  # fmt: skip
    steps = source.arrow("execution_steps").to_pylist()
    for step, cycles in zip(steps, ([4, 2, 9, 9], None, None, [2, 0, 0, 0]), strict=True):
        step["cycles_by_tile"] = cycles
    source = Rows({**{name: source.arrow(name).to_pylist() for name in ("target", "programs", "execution_step_ipus")},
                   "execution_steps": steps})  # fmt: skip
    # WHEN drawn, a column being a cycle
    axes = plot(source, "bsp")
    (image,) = axes.images
    pixels = image.get_array()
    letters = {COLOURS["compute"]: "c", COLOURS["exchange"]: "x", COLOURS["sync"]: "w", "#FFFFFF": " "}
    drawn = ["".join(letters[to_hex(colour).upper()] for colour in row) for row in pixels]
    # THEN the tiles of the IPU that ran are there, and what each does; AND nothing is between steps
    assert drawn == ["ccccxxww  cc", "ccwwxxww  ww"]
    assert tuple(image.get_extent()) == (0, 12, 2, 0)
    assert labels(axes) == ["0", "1"]
    assert legend_names(axes) == ["compute", "exchange", "sync or wait"]
    # AND a tile of an IPU that did not run can be asked for
    assert plot(source, "bsp", tiles=[3]).images[0].get_array().min() == 1


def test_more_tiles_than_pixels_are_thinned_out() -> None:
    with open_report(SAMPLES / "replicated") as opened:
        axes = plot(opened, "bsp", run=1, ax=figure_axes((8, 1), 60))
    # GIVEN fewer rows of pixels than the 96 tiles; THEN every second is shown, and that is said
    assert axes.images[0].get_array().shape[0] == 48
    assert "of every 2 tiles the first is shown" in "".join(text.get_text() for text in axes.texts)


@given(INTERVALS, INTERVALS)
def test_overlap_is_what_both_do(compute: list[tuple[int, int, int]], moves: list[tuple[int, int, int]]) -> None:
    steps = [(0, 0, "Call", 0, 60), *((0, 0, kind, begin, begin + length) for kind, rows in
             (("OnTileExecute", compute), ("StreamCopyMid", moves)) for begin, length, _ in rows)]  # fmt: skip
    axes = plot(execution(*steps), "overlap", ax=figure_axes((12, 4), 100))
    cycles = [
        {cycle for begin, length, _ in rows for cycle in range(begin, begin + length)} for rows in (compute, moves)
    ]
    both = cycles[0] & cycles[1]
    # THEN the strips are single cycles of either, and of both; AND beside them is the share of the smaller
    strips = [{at for at, share in enumerate(shares) if share} for _, shares in shares(axes)]
    assert strips == [cycles[0], both, cycles[1]]
    smaller = min(len(one) for one in cycles)
    said = (
        f"{format_fraction(len(both) / smaller)}, {len(both)} cycle{'' if len(both) == 1 else 's'}" if both else "never"
    )
    assert said in [text.get_text() for text in axes.texts]


def test_overlap_of_a_run_is_that_of_the_table(report: Report) -> None:
    axes = plot(report, "overlap", run=1)
    told = report.execution.overlap(run=1)
    said = [text.get_text() for text in axes.texts]
    for row in told.itertuples():
        assert (f"{format_fraction(row.overlap)}, {row.both_cycles:,} cycles" if row.both_cycles else "never") in said


# ----------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("timeline", {"view": "bsp"}, "flat or flame, not 'bsp'"),
        ("timeline", {"run": 7}, "no run 7"),
        ("timeline", {"ipu": [0, 2]}, "no IPU 2"),
        ("timeline", {"begin": 9, "end": 9}, "from cycle 9 to 9 is empty; there are cycles 0 to 20"),
        ("timeline", {"begin": 20}, "from cycle 20 to 20 is empty"),
        ("bandwidth", {"begin": 30, "end": 40}, "is empty"),
        ("bandwidth", {"begin": -1}, "is empty"),
        ("imbalance", {"count": 0}, "at least 1, not 0"),
        ("bsp", {"tiles": [9]}, "no tile 9"),
        ("overlap", {"run": 7}, "no run 7"),
    ],
)
def test_what_makes_no_sense_is_refused(kind: str, options: dict[str, Any], sentence: str) -> None:
    rows = [step for step in SMALL if step[2] != "SyncAns"]
    with pytest.raises(UsageError, match=sentence):
        plot(execution(*rows), kind, **options)


@pytest.mark.parametrize("kind", ["bandwidth", "bsp"])
def test_blocks_say_neither_bytes_nor_tiles(kind: str) -> None:
    with open_report(SAMPLES / "lightweight") as opened, pytest.raises(NotCaptured):
        plot(opened, kind)


def test_cycles_of_tiles_that_were_not_captured(report: Report) -> None:
    with pytest.raises(NotCaptured, match=r'"debug\.computeInstrumentationLevel": "tile"'):
        plot(report, "bsp")


def test_a_bsp_picture_of_steps_that_took_no_time() -> None:
    with pytest.raises(UsageError, match="nothing in the window took any time"):
        plot(execution((0, 0, "OnTileExecute", 5, 5)), "bsp")


@pytest.mark.parametrize("kind", ["timeline", "cycles-by-type", "imbalance", "bandwidth", "overlap"])
def test_steps_that_took_no_time(kind: str) -> None:
    # GIVEN nothing but a step of no cycles; THEN it is drawn without a warning
    assert plot(execution((0, 0, "StreamCopyMid", 5, 5)), kind).get_xlim()[0] == 0
