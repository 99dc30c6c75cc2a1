"""What tiles do when, against looking at every single cycle of every tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.analysis import tile_activity as module
from pvanalyse.analysis.execution_trace import KINDS
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.analysis.tile_activity import ACTIVITY_COLUMNS, tile_activity
from pvanalyse.errors import NotCaptured
from tests.plots.sources import Rows, target

TILES, PER_IPU, HORIZON = 6, 3, 24
DOES = {"OnTileExecute": "compute", "DoExchange": "exchange", "GlobalExchange": "inter-IPU", "StreamCopyMid": "host",
        "StreamCopyEnd": "host", "Call": "other"}  # fmt: skip
TYPES = (*DOES, "StreamCopyBegin", "Sync", "SyncAns")
BOUNDS = st.tuples(st.integers(0, HORIZON), st.integers(0, 9), st.integers(0, 3), st.integers(0, 3))
STEP = st.tuples(st.sampled_from(TYPES), st.lists(BOUNDS, min_size=2, max_size=2),
                 st.none() | st.lists(st.integers(0, 9), min_size=TILES, max_size=TILES))  # fmt: skip


def report(steps: list[Any]) -> Rows:
    """Steps by type, bounds on each IPU, and cycles of each tile or None."""
    rows = []
    for number, (_, bounds, _) in enumerate(steps):
        for ipu, (begin, length, before, after) in enumerate(bounds):
            rows.append({"step_id": number, "ipu": ipu, "cycles": length, "active_from_max": begin + before,
                         "active_to_max": begin + before + length, "all_from_min": begin,
                         "all_to_max": begin + before + length + after})  # fmt: skip
    return Rows({
        "target": [target(TILES, PER_IPU)],
        "programs": [{"program_id": at, "type": kind, "name": ""} for at, (kind, _, _) in enumerate(steps)],
        "execution_steps": [{"step_id": at, "run_id": 0, "program_id": at, "cycles_by_tile": cycles}
                            for at, (_, _, cycles) in enumerate(steps)],
        "execution_step_ipus": rows,
    })  # fmt: skip


def found(steps: list[Any], edges: np.ndarray, tiles: list[int] | None = None) -> np.ndarray:
    source = report(steps)
    frame = pd.concat(interval_batches(source, "steps", columns=ACTIVITY_COLUMNS))
    return tile_activity(source, frame, np.array(range(TILES) if tiles is None else tiles), edges)


def at_cycle(steps: list[Any], tile: int, cycle: int) -> dict[str, float]:
    """What a tile does in one cycle."""
    own, ipu_wide, on = [], set(), False
    for kind, bounds, cycles in steps:
        begin, length, before, after = bounds[tile // PER_IPU]
        first, last = begin + before, begin + before + length + after
        if kind == "SyncAns":
            continue
        on |= begin <= cycle < last
        if cycles is not None:
            if kind in DOES and first <= cycle < min(first + cycles[tile], last):
                own.append(DOES[kind])
        elif kind in DOES and first <= cycle < first + length:
            ipu_wide.add(DOES[kind])
    doing = own or sorted(ipu_wide)
    if doing:
        return {kind: doing.count(kind) / len(doing) for kind in doing}
    return {"sync": 1.0} if on else {}


@given(st.lists(STEP, min_size=1, max_size=6))
def test_every_cycle_of_every_tile(steps: list[Any]) -> None:
    # GIVEN steps that overlap, take no time, wait, and are known by tile or not
    steps = [*steps, ("OnTileExecute", [(0, 0, 0, 0)] * 2, [0] * TILES)]
    # WHEN columns are single cycles; THEN each tile does in each what one finds by looking
    edges = np.arange(0.0, HORIZON + 20)
    shares = found(steps, edges)
    for tile in range(TILES):
        for cycle in range(len(edges) - 1):
            here = {kind: share for kind, share in zip(KINDS, shares[:, tile, cycle].tolist(), strict=True) if share}
            assert here == pytest.approx(at_cycle(steps, tile, cycle))


@given(st.lists(STEP, min_size=1, max_size=6), st.integers(1, 7), st.integers(1, 4))
def test_wide_columns_hold_the_mean_of_what_is_known_of_a_tile(steps: list[Any], width: int, at_once: int) -> None:
    # GIVEN one step after the other, WHEN looked at through wide columns, from the middle on, a few pairs at once
    cycle, apart = 0, []
    for kind, bounds, cycles in steps:
        apart.append(
            (kind, [(cycle, length, before, after) for _, length, before, after in bounds], cycles or [3] * TILES)
        )
        cycle += 20
    edges = np.arange(5, cycle + 30, width, dtype=float)
    single = found(apart, np.arange(5, edges[-1] + 1, dtype=float))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_AT_ONCE", at_once)
        shares = found(apart, edges, [1, 4])
    # THEN a column is the mean of its cycles; AND chosen tiles are as among all
    expected = single[:, [1, 4]].reshape(len(KINDS), 2, -1, width).mean(axis=3)
    assert np.allclose(shares, expected)


def test_many_steps_are_found_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [("OnTileExecute", [(at * 5, 4, 0, 0)] * 2, [at % 5] * TILES) for at in range(20)]
    edges = np.arange(0.0, 101.0)
    few = found(steps, edges)
    monkeypatch.setattr(module, "_FEW", 3)
    assert (found(steps, edges) == few).all()
    assert few[KINDS.index("compute"), 0].sum() == sum(at % 5 for at in range(20))


def test_cycles_that_no_step_has_by_tile_are_not_captured() -> None:
    with pytest.raises(NotCaptured, match=r'"debug\.computeInstrumentationLevel": "tile"'):
        found([("OnTileExecute", [(0, 4, 0, 0)] * 2, None)], np.arange(0.0, 9.0))
