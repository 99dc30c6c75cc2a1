"""How well the tiles are used: what they lose to imbalance, how fast they compute, and what was expected of them.

Each function takes a :class:`~pvanalyse.analysis.execution_trace.Trace`, as those of
:mod:`pvanalyse.analysis.execution_details` do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from pvanalyse.analysis.columns import Integers, integers, only_row
from pvanalyse.analysis.execution_details import (
    PROGRAM,
    clock_frequency,
    compute_set_names,
    compute_set_of_cell,
    descriptions,
    matched,
    ratio,
)
from pvanalyse.analysis.execution_trace import Trace, lost_by_balance
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.analysis.memory_details import per_tile
from pvanalyse.analysis.selection import number_of_tiles
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import TableSource, table

FAR_APART = 2.0
"""Measured and estimated cycles are far apart when one is at least so many times the other."""

# Floating-point operations of a tile in a cycle, in half precision with matrices, which is the most it can do:
# 124.5 TFLOPS on the 1,216 tiles of a Mk1 at 1.6 GHz, 250 TFLOPS on the 1,472 of a Mk2 at 1.33 GHz (as published).
# In single precision it is a quarter of that (31.1 and 62.5 TFLOPS); which one an estimate is of is not recorded.
_FLOPS_PER_CYCLE = {"Ipu1": 64, "Ipu2": 128, "Ipu21": 128}


def imbalance(trace: Trace, pattern: str | None = None) -> pd.DataFrame:
    """Return the cycles that tiles lost waiting for the slowest of their IPU, by program, the most first.

    A step loses on an IPU max − mean of the cycles over its tiles: from ``cycles_by_tile`` where that was captured,
    else cycles × (1 − tile balance). Synchronisation is left out: all it does is wait.

    Returns
    -------
    pandas.DataFrame
        ``program_id`` (null unknown), ``type``, ``name``, ``num_steps``, ``cycles``, ``lost_cycles`` (NaN unknown),
        ``lost_fraction`` of the program's cycles, ``share`` of what all programs lose, and ``num_unknown`` steps
        of which neither cycles by tile nor a balance is known.
    """
    cells = trace.cells[trace.cells["kind"] != "sync"]
    if trace.kind == "steps":
        cells = _with_measured_loss(trace, cells)
    columns = ["num_steps", "cycles", "lost_cycles", "num_unknown"]
    frame = cells.groupby(PROGRAM, sort=True, as_index=False)[columns].sum()
    frame["lost_cycles"] = frame["lost_cycles"].where(frame["num_unknown"] < frame["num_steps"])
    frame["lost_fraction"] = ratio(frame["lost_cycles"], frame["cycles"])
    frame["share"] = ratio(frame["lost_cycles"], frame["lost_cycles"].sum())
    frame = frame[[*PROGRAM, "num_steps", "cycles", "lost_cycles", "lost_fraction", "share", "num_unknown"]]
    frame = frame.sort_values(["lost_cycles", *PROGRAM], ascending=[False, True, True, True], kind="stable")
    frame["program_id"] = frame["program_id"].astype("Int64").where(frame["program_id"] >= 0)
    return matched(frame, pattern)


def _with_measured_loss(trace: Trace, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with what their steps lose by tile where that is known, and by balance where not."""
    step_id, by_tile = _lost_by_tile(trace.source)
    if not len(step_id):
        return cells
    keys = ["run_id", "ipu", "program_id"]
    parts = []
    columns = ["step_id", *keys, "cycles", "tile_balance"]
    for batch in interval_batches(trace.source, "steps", trace.runs, trace.ipus, columns):
        step, ipu = batch["step_id"].to_numpy(), batch["ipu"].to_numpy()
        at = np.minimum(np.searchsorted(step_id, step), len(step_id) - 1)
        measured = (step_id[at] == step) & (ipu >= 0) & (ipu < by_tile.shape[1])
        lost = lost_by_balance(batch["cycles"].to_numpy(), batch["tile_balance"].to_numpy())
        lost[measured] = by_tile[at[measured], ipu[measured]]
        part = batch[keys].assign(lost_cycles=np.nan_to_num(lost), num_unknown=np.isnan(lost).astype(np.int64))
        parts.append(part.groupby(keys, as_index=False).sum())
    sums = pd.concat(parts).groupby(keys).sum().reindex(pd.MultiIndex.from_frame(cells[keys]))
    return cells.assign(lost_cycles=sums["lost_cycles"].to_numpy(), num_unknown=sums["num_unknown"].to_numpy())


def _lost_by_tile(source: TableSource) -> tuple[Integers, npt.NDArray[np.float64]]:
    """Return the steps with cycles by tile, ascending, and what each loses on each IPU, shape (steps, IPUs)."""
    ids: list[Integers] = []
    losses: list[npt.NDArray[np.float64]] = []
    for batch in source.batches("execution_steps", ["step_id", "cycles_by_tile"]):
        chosen = batch.filter(batch.column("cycles_by_tile").is_valid())
        if chosen.num_rows:
            tiles = per_tile(chosen.column("cycles_by_tile"), number_of_tiles(source))
            by_ipu = tiles.reshape(len(tiles), -1, _tiles_per_ipu(source))
            ids.append(integers(chosen.column("step_id")))
            losses.append(by_ipu.max(axis=2) - by_ipu.mean(axis=2))
    if not ids:
        return np.empty(0, np.int64), np.empty((0, 0))
    step_id = np.concatenate(ids)
    order = np.argsort(step_id, kind="stable")
    return step_id[order], np.concatenate(losses)[order]


def _tiles_per_ipu(source: TableSource) -> int:
    """Return the tiles of an IPU; all of them when they cannot be split into IPUs."""
    num_tiles = number_of_tiles(source)
    tiles = int(only_row(source, "target").get("tiles_per_ipu") or num_tiles)
    return tiles if tiles > 0 and num_tiles % tiles == 0 else num_tiles


def flops(trace: Trace, pattern: str | None = None) -> pd.DataFrame:
    """Return how fast each compute set computes, those with most operations first.

    Returns
    -------
    pandas.DataFrame
        ``compute_set_id``, ``name``, ``flops`` of one execution (an estimate, over all tiles), ``executions``,
        ``cycles`` on the IPU that it took longest on, ``flops_per_cycle``, ``flops_per_second`` (NaN where the clock
        is not known), and ``utilisation``: the share of what all tiles of the target can do in half precision, 64
        operations in a cycle on a tile of a Mk1 and 128 of a Mk2 (NaN for others).

    Raises
    ------
    NotCaptured
        There are no compute sets, or no estimates of their operations.
    """
    names = compute_set_names(trace.source)
    columns = trace.source.arrow("compute_sets", ["compute_set_id", "flops"]).to_pydict()
    estimate = {one: value for one, value in zip(*columns.values(), strict=True) if value is not None}
    if not estimate:
        raise NotCaptured("compute_sets", "engine option profiler.includeFlopEstimates=true")
    cells = trace.cells.assign(compute_set_id=compute_set_of_cell(trace))
    cells = cells[cells["compute_set_id"].isin(list(estimate))]
    frame = cells.groupby("compute_set_id", as_index=False)[["num_executions"]].sum()
    cycles = cells.groupby(["compute_set_id", "ipu"])["cycles"].sum().groupby("compute_set_id").max()
    return matched(_flops_frame(trace.source, frame, cycles, names, estimate), pattern)


def _flops_frame(
    source: TableSource, frame: pd.DataFrame, cycles: pd.Series[int], names: Mapping[int, str],
    estimate: Mapping[int, int],
) -> pd.DataFrame:  # fmt: skip
    ids = frame["compute_set_id"].tolist()
    target = only_row(source, "target")
    most = _FLOPS_PER_CYCLE.get(str(target.get("architecture")), 0) * int(target.get("num_tiles") or 0)
    found = pd.DataFrame({
        "compute_set_id": np.array(ids, np.int64),
        "name": pd.Series([names[one] for one in ids], dtype="str"),
        "flops": np.array([estimate[one] for one in ids], np.int64),
        "executions": frame["num_executions"].to_numpy(np.int64),
        "cycles": cycles.reindex(ids).to_numpy(np.int64),
    })  # fmt: skip
    found["flops_per_cycle"] = ratio(found["flops"].astype(float) * found["executions"], found["cycles"])
    found["flops_per_second"] = found["flops_per_cycle"] * (clock_frequency(source) or np.nan)
    found["utilisation"] = found["flops_per_cycle"] / (most or np.nan)
    total = found["flops"].astype(float) * found["executions"]
    return found.iloc[np.lexsort((found["compute_set_id"], -total))].reset_index(drop=True)


def against_estimates(trace: Trace, pattern: str | None = None) -> pd.DataFrame:
    """Return measured cycles beside those that the compiler estimated, the largest differences first.

    Returns
    -------
    pandas.DataFrame
        ``program_id``, ``type``, ``name``, ``ipu``, ``num_steps``, ``estimated_cycles`` of a step (the slowest tile of
        that IPU; of the compute set, or of the exchange), ``measured_cycles`` of a step (the mean), ``ratio`` of
        measured to estimated, ``difference_cycles`` over all steps, and ``far_apart``: whether one is at least
        :data:`FAR_APART` times the other. Programs that nothing was estimated for are left out.

    Raises
    ------
    NotCaptured
        The report does not describe its programs, or nothing was estimated.
    """
    estimates = dict(_estimates(trace.source))
    if not estimates:
        raise NotCaptured("compute_sets", table("compute_sets").capture)
    keys = [*PROGRAM, "ipu"]
    frame = trace.cells.groupby(keys, sort=True, as_index=False)[["num_steps", "cycles"]].sum()
    found = [estimates[program][ipu] if program in estimates and 0 <= ipu < len(estimates[program]) else 0
             for program, ipu in zip(frame["program_id"].tolist(), frame["ipu"].tolist(), strict=True)]  # fmt: skip
    frame["estimated_cycles"] = np.array(found, np.int64)
    frame = frame[frame["estimated_cycles"] > 0].copy()
    frame["measured_cycles"] = ratio(frame["cycles"], frame["num_steps"])
    frame["ratio"] = frame["measured_cycles"] / frame["estimated_cycles"]
    frame["difference_cycles"] = frame["cycles"] - frame["estimated_cycles"] * frame["num_steps"]
    frame["far_apart"] = (frame["ratio"] >= FAR_APART) | (frame["ratio"] <= 1 / FAR_APART)
    order = np.lexsort((np.arange(len(frame)), -np.abs(frame["difference_cycles"].to_numpy())))
    return matched(frame.iloc[order].drop(columns="cycles"), pattern)


def _estimates(source: TableSource) -> Iterator[tuple[int, Integers]]:
    """Yield programs with the estimated cycles of the slowest tile of each IPU; those of nothing but 0 are left out."""
    if not source.captured("programs"):
        raise NotCaptured("programs", table("programs").capture)
    of_set: dict[int, Integers] = {}
    if source.captured("compute_sets"):
        of_set = dict(_slowest(source, "compute_sets", "compute_set_id"))
    of_program = dict(_slowest(source, "programs", "program_id"))
    for program, (compute_set, _) in descriptions(source).items():
        cycles = of_program.get(program, of_set.get(-1 if compute_set is None else compute_set))
        if cycles is not None:
            yield program, cycles


def _slowest(source: TableSource, name: str, key: str) -> Iterator[tuple[int, Integers]]:
    for batch in source.batches(name, [key, "estimated_cycles_by_tile"]):
        chosen = batch.filter(batch.column("estimated_cycles_by_tile").is_valid())
        if not chosen.num_rows:
            continue
        tiles = per_tile(chosen.column("estimated_cycles_by_tile"), number_of_tiles(source))
        by_ipu = tiles.reshape(len(tiles), -1, _tiles_per_ipu(source)).max(axis=2).astype(np.int64)
        some = by_ipu.any(axis=1)
        yield from zip(integers(chosen.column(key))[some].tolist(), by_ipu[some], strict=True)
