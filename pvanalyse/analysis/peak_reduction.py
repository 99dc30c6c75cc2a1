"""What would lower the peak: variables to shrink or free, and those that half precision would shrink."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pvanalyse.analysis.lifetimes import number_of_steps
from pvanalyse.analysis.liveness import curve, live_at_frame, liveness_peak, tile_peaks
from pvanalyse.analysis.variable_intervals import declared_variables, intervals_on, require_count, variable_intervals
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table


def explain_peak(source: TableSource, reduce_by: int) -> pd.DataFrame:
    """Return which variables to shrink or free so that the peak is lower by so many bytes.

    Greedy: at the step of the current peak the largest live variable goes, with all its intervals; then the next
    peak is looked for. The set is not always the smallest, but each row says where the next peak is.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``bytes``, ``at_step`` (the peak it was taken from), ``peak_after_bytes`` and ``peak_after_step``.

    Raises
    ------
    UsageError
        The number of bytes is not above 0.
    NotCaptured
        The report has no liveness of variables.
    """
    if reduce_by <= 0:
        raise UsageError(f"the peak can be lowered by 1 byte or more, not by {reduce_by:,}")
    rows = variable_intervals(source)
    steps = curve(source)
    size = np.zeros(number_of_steps(source), np.int64)
    size[steps["step"]] = steps["bytes"]
    goal = int(size.max()) - reduce_by
    left = rows.assign(key=rows["variable_id"].astype(object).where(rows["variable_id"].notna(), rows["name"]))
    chosen: list[tuple[str, int, int, int, int]] = []
    while int(size.max()) > max(goal, 0):
        step = int(size.argmax())
        live = left[(left["step_begin"] <= step) & (step < left["step_end"])]
        if live.empty:
            break
        largest = live.groupby("key", sort=False)["bytes"].sum().idxmax()
        gone = left["key"] == largest
        for begin, end, part in left.loc[gone, ["step_begin", "step_end", "bytes"]].itertuples(index=False):
            size[max(begin, 0) : max(end, 0)] -= part
        freed = live[live["key"] == largest]
        left = left[~gone]
        chosen.append((freed["name"].iloc[0], int(freed["bytes"].sum()), step, int(size.max()), int(size.argmax())))
    sizes = ["bytes", "at_step", "peak_after_bytes", "peak_after_step"]
    return pd.DataFrame(chosen, columns=["name", *sizes]).astype(dict.fromkeys(sizes, np.int64))


def fp16_candidates(source: TableSource, worst: int = 5, peaks_of_tiles: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return single-precision variables that are live where memory is tightest, with what half precision would save.

    Parameters
    ----------
    source
        A report.
    worst
        How many of the fullest tiles to look at, each at its own worst step. Without lowered variables the step of
        the peak is looked at, over the tiles of one replica.
    peaks_of_tiles
        What :func:`tile_peaks` returned, when it is known already.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``bytes``, ``saving_bytes`` (half of them), ``num_tiles``, ``largest_tile`` and
        ``largest_tile_saving_bytes``; the columns of tiles are null without lowered variables. Most saved first.
    """
    require_count(worst, "worst tiles")
    if not source.captured("variables"):  # without element types, nothing would be a candidate
        raise NotCaptured("variables", table("variables").capture)
    if not (source.captured("lowered_variables") and source.captured("equivalence_class_intervals")):
        return _fp16_of_replica(source)
    known = tile_peaks(source) if peaks_of_tiles is None else peaks_of_tiles
    tiles = known.sort_values(["peak_total_bytes", "tile"], ascending=[False, True])[:worst]
    live = intervals_on(source, tiles["tile"].to_numpy())
    step = live["tile"].map(tiles.set_index("tile")["peak_step"])
    live = live[(live["step_begin"] <= step) & (step < live["step_end"])]
    live = live.merge(declared_variables(source), on="variable_id", how="left")
    rows = live[live["element_type"] == "float"].groupby(["name", "tile"], as_index=False)[["bytes"]].sum()
    rows = rows.sort_values(["bytes", "tile"], ascending=[False, True])
    by_name = rows.groupby("name", sort=False)
    frame = by_name.agg(bytes=("bytes", "sum"), num_tiles=("tile", "size"), largest_tile=("tile", "first"))
    frame.insert(1, "saving_bytes", frame["bytes"] // 2)
    frame["largest_tile_saving_bytes"] = by_name["bytes"].max() // 2
    return frame.reset_index().sort_values(["saving_bytes", "name"], ascending=[False, True], ignore_index=True)


def _fp16_of_replica(source: TableSource) -> pd.DataFrame:
    peak = liveness_peak(source)
    if peak is None:
        raise NotCaptured("liveness_steps", table("liveness_steps").capture)
    frame = _floats(live_at_frame(source, peak.step)).groupby("name", as_index=False, sort=False).sum()
    frame["saving_bytes"] = frame["bytes"] // 2
    for column in ("num_tiles", "largest_tile", "largest_tile_saving_bytes"):
        frame[column] = pd.array([pd.NA] * len(frame), "Int64")
    return frame.sort_values(["saving_bytes", "name"], ascending=[False, True], ignore_index=True)


def _floats(live: pd.DataFrame) -> pd.DataFrame:
    return live.loc[live["element_type"] == "float", ["name", "bytes"]]
