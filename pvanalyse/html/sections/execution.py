"""What ran when, and what the cycles went into."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pvanalyse.analysis import execution_details as details
from pvanalyse.analysis import execution_efficiency as efficiency
from pvanalyse.analysis import execution_waits as waits
from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.execution_trace import KIND_OF_TYPE, KINDS, Trace
from pvanalyse.analysis.flame import flame_blocks
from pvanalyse.analysis.intervals import GROUP, interval_batches
from pvanalyse.errors import NotCaptured
from pvanalyse.html.pack import exact
from pvanalyse.html.sections.source import Making, section
from pvanalyse.plots.timeline import COLOURS
from pvanalyse.render import execution as view
from pvanalyse.render.parts import Rows

_ROWS = Rows(usual=100)
_MERGED = "merged"
"""The kind of neighbouring blocks that are too short to be kept apart."""
_ORDER = (*KINDS, "group", _MERGED)


def statistics(making: Making) -> dict[str, Any]:
    """Return what the cycles went into as sections of a document."""
    trace = _trace(making)
    runs = details.runs_frame(making.report, trace)
    parts = [view.runs(runs, _ROWS)]
    shares = None
    if trace is not None:
        shares = details.shares(trace)
        parts += [
            view.kinds(shares, _ROWS),
            view.types(details.by_type(trace), _ROWS),
            view.programs(details.by_program(trace), None, _ROWS),
            view.imbalance(efficiency.imbalance(trace), None, _ROWS),
            view.overlap(details.compute_io_overlap(trace), _ROWS),
            view.bandwidth(details.bandwidth(trace), _ROWS),
            view.pipeline(waits.bubbles(trace), _ROWS),
        ]
    return {"verdict": exact(view.verdict(runs, shares)), "sections": [section(part.section) for part in parts]}


def _trace(making: Making) -> Trace | None:
    try:
        return making.trace
    except NotCaptured:
        return None


# ------------------------------------------------------------------------------------------------------ the timeline


def timeline(making: Making) -> dict[str, Any]:
    """Return nested blocks of each IPU by time; beyond the limit neighbours that are too short to be seen are one."""
    intervals = _intervals(making)
    ipus = sorted(set(intervals["ipu"].tolist()))
    blocks = [(ipu, _blocks(intervals[intervals["ipu"] == ipu])) for ipu in ipus]
    begin = min((int(part["begin"].min()) for _, part in blocks if len(part)), default=0)
    end = max((int(part["end"].max()) for _, part in blocks if len(part)), default=0)
    number = sum(len(part) for _, part in blocks)
    finest = 0
    shown = blocks
    while sum(len(part) for _, part in shown) > making.limits.blocks and finest < end - begin:
        finest = 2 * finest or max(1, (end - begin) // (64 * making.limits.blocks))
        shown = [(ipu, _coarser(part, finest)) for ipu, part in blocks]
    if finest:
        making.left_out.append(
            f"{number:,} blocks are shown as {sum(len(part) for _, part in shown):,}: neighbours of fewer than "
            f"{finest:,} cycles are one block, drawn in grey."
        )
    clock = details.clock_frequency(making.report)
    return {
        "begin": exact(begin),
        "end": exact(end),
        "clock": exact(clock),
        "kinds": list(_ORDER),
        "colours": {**COLOURS, "group": "#DDE3E8", _MERGED: "#9AA1A8"},
        "ipus": [_packed(making, ipu, part, begin) for ipu, part in shown if len(part)],
    }


def _intervals(making: Making) -> pd.DataFrame:
    """Return the intervals that the timeline is made of, the first ones."""
    columns = ["step_id", "ipu", "type", "name", "begin", "end"]
    parts: list[pd.DataFrame] = []
    rows, most = 0, making.limits.intervals
    for batch in interval_batches(making.report, columns=columns):
        parts.append(batch.head(max(0, most - rows)))
        rows += len(batch)
    if rows > most:
        making.left_out.append(
            f"The timeline shows the first {most:,} of {rows:,} executed steps, counted on each IPU; the statistics "
            "are of all of them."
        )
    return pd.concat(parts, ignore_index=True)


def _blocks(intervals: pd.DataFrame) -> pd.DataFrame:
    blocks = flame_blocks(intervals)
    kinds = {kind: _ORDER.index(KIND_OF_TYPE.get(kind, "other")) for kind in set(blocks["type"])}
    kinds[GROUP] = _ORDER.index("group")
    return pd.DataFrame({
        "begin": blocks["begin"],
        "end": blocks["end"],
        "depth": blocks["depth"],
        "type": blocks["type"],
        "name": blocks["name"],
        "kind": blocks["type"].map(kinds).astype("int64"),
        "steps": blocks["step_ids"].map(len).astype("int64"),
    })  # fmt: skip


def _coarser(blocks: pd.DataFrame, finest: int) -> pd.DataFrame:
    """Return blocks in which neighbours of one depth that are shorter than ``finest``, and as near, are one."""
    frame = blocks.sort_values(["depth", "begin"], kind="stable", ignore_index=True)
    begin, end, depth = (frame[name].to_numpy(np.int64) for name in ("begin", "end", "depth"))
    short = end - begin < finest
    near = np.zeros(len(frame), bool)
    near[1:] = short[1:] & short[:-1] & (depth[1:] == depth[:-1]) & (begin[1:] - end[:-1] < finest)
    # What is one grows no wider than the rest: it starts anew with each stretch of the time axis.
    near[1:] &= begin[1:] // finest == begin[:-1] // finest
    first: Integers = np.flatnonzero(~near)
    if not len(first):
        return frame
    members = np.diff(np.append(first, len(frame)))
    merged: npt.NDArray[np.bool_] = members > 1
    coarse = frame.iloc[first].reset_index(drop=True)
    coarse["end"] = np.maximum.reduceat(end, first)
    coarse["steps"] = np.add.reduceat(frame["steps"].to_numpy(np.int64), first)
    coarse.loc[merged, "kind"] = _ORDER.index(_MERGED)
    coarse.loc[merged, "type"] = _MERGED
    coarse.loc[merged, "name"] = [f"{count:,} short blocks" for count in members[merged].tolist()]
    return coarse


def _packed(making: Making, ipu: int, blocks: pd.DataFrame, origin: int) -> dict[str, Any]:
    frame = blocks.sort_values(["depth", "begin"], kind="stable")
    pack = making.pack
    depth = frame["depth"].to_numpy(np.int64)
    rows = np.searchsorted(depth, np.arange(int(depth.max()) + 2)).tolist()
    return {
        "ipu": ipu,
        "rows": rows,  # where each depth starts among the blocks, and where the last ends
        "begin": pack.whole(frame["begin"].to_numpy(np.int64) - origin),
        "length": pack.whole(frame["end"].to_numpy(np.int64) - frame["begin"].to_numpy(np.int64)),
        "kind": pack.whole(frame["kind"]),
        "type": pack.texts(frame["type"]),
        "name": pack.texts(frame["name"]),
        "steps": pack.whole(frame["steps"]),
    }
