"""The catalogue of metrics: one flat dict of exact numbers per report.

A name is a promise: budgets, baselines and comparisons speak these names, so each keeps its meaning; the README lists
them. A metric whose data was not captured is absent, never 0. Integers stay exact; shares and means are floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pvanalyse.analysis.columns import exact_sum, integers, only_row
from pvanalyse.analysis.execution import ExecutionTotals, execution_totals
from pvanalyse.analysis.liveness import Peak, liveness_peak
from pvanalyse.analysis.memory import CategoryBytes, TileMemory, category_bytes, regions_known, tile_memory
from pvanalyse.tables import TableSource

Number = int | float
Metrics = dict[str, Number]
Known = Mapping[str, Number | None]
"""Metrics some of which may be None: not captured."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """What a metric's name promises; ``name`` may end in a part in angle brackets that the report fills in.

    Attributes
    ----------
    unit
        ``count``, ``bytes``, ``cycles``, ``s``, ``Hz``, ``bytes/s``, or ``fraction``, which is a share of one.
    """

    name: str
    unit: str
    doc: str


CATALOGUE = (
    MetricSpec("target.num_ipus", "count", "IPUs of all replicas together"),
    MetricSpec("target.num_replicas", "count", "replicas"),
    MetricSpec("target.num_tiles", "count", "tiles of all IPUs"),
    MetricSpec("target.bytes_per_tile", "bytes", "memory of a tile"),
    MetricSpec("target.clock_frequency", "Hz", "clock of the tiles"),
    MetricSpec("graph.num_vertices", "count", "vertices"),
    MetricSpec("graph.num_edges", "count", "edges"),
    MetricSpec("graph.num_variables", "count", "variables"),
    MetricSpec("graph.num_compute_sets", "count", "compute sets"),
    MetricSpec("memory.total_including_gaps", "bytes", "sum over tiles"),
    MetricSpec("memory.total_excluding_gaps", "bytes", "sum over tiles"),
    MetricSpec("memory.tile_max_including_gaps", "bytes", "fullest tile"),
    MetricSpec("memory.tile_max_excluding_gaps", "bytes", "fullest tile"),
    MetricSpec("memory.tile_mean_including_gaps", "bytes", "mean over tiles"),
    MetricSpec("memory.tile_p99_including_gaps", "bytes", "99th percentile of the tiles, linear interpolation"),
    MetricSpec("memory.gaps", "bytes", "including less excluding gaps, sum over tiles"),
    MetricSpec("memory.tile_balance", "fraction", "mean tile / fullest tile, including gaps"),
    MetricSpec("memory.tiles_out_of_memory", "count", "tiles that overflow or use more than a tile has"),
    MetricSpec("memory.overflowed", "bytes", "sum over tiles of what overflowed, including gaps"),
    MetricSpec("memory.ipu_max_including_gaps", "bytes", "fullest IPU"),
    MetricSpec("memory.used_fraction", "fraction", "total including gaps / memory of all tiles"),
    MetricSpec("memory.always_live", "bytes", "sum over tiles"),
    MetricSpec("memory.not_always_live", "bytes", "sum over tiles of each tile's own peak"),
    MetricSpec("memory.region.non_interleaved", "bytes", "sum over tiles, including gaps"),
    MetricSpec("memory.region.interleaved", "bytes", "sum over tiles, including gaps"),
    MetricSpec("memory.region.overflowed", "bytes", "sum over tiles, including gaps"),
    MetricSpec("memory.category.<category>", "bytes", "not overlapped, sum over tiles and regions"),
    MetricSpec("variables.num_lowered", "count", "lowered variables"),
    MetricSpec("variables.num_unlowered", "count", "variables as the program declared them"),
    MetricSpec("liveness.num_steps", "count", "compile-time steps"),
    MetricSpec("liveness.peak_not_always_live", "bytes", "largest step, one replica"),
    MetricSpec("liveness.peak_step", "count", "the first step that reaches it, counted from 0"),
    MetricSpec("liveness.peak", "bytes", "always live + replicas × peak not always live"),
    MetricSpec("liveness.peak_fraction", "fraction", "liveness.peak / memory of all tiles"),
    MetricSpec("execution.num_runs", "count", "calls of Engine::run"),
    MetricSpec("execution.num_steps", "count", "executed steps"),
    MetricSpec("execution.cycles", "cycles", "sum over runs of first to last cycle, over all IPUs"),
    MetricSpec("execution.seconds", "s", "execution.cycles / clock frequency"),
    MetricSpec("execution.host_seconds", "s", "sum over runs of host time"),
    MetricSpec("execution.step_cycles.<ProgramType>", "cycles", "sum over steps of the type and over IPUs"),
    MetricSpec("execution.fraction.<ProgramType>", "fraction", "that / the sum over all types"),
    MetricSpec("execution.tile_balance", "fraction", "mean over steps and IPUs, without Sync, SyncAns and empty steps"),
    MetricSpec("execution.active_tile_balance", "fraction", "the same over the tiles that do work"),
    MetricSpec(
        "execution.compute_io_overlap", "fraction", "OnTileExecute at the same time as StreamCopyMid / the smaller"
    ),
    MetricSpec("execution.stream_bytes.in", "bytes", "data_in of StreamCopyMid"),
    MetricSpec("execution.stream_bytes.out", "bytes", "data_out of StreamCopyMid"),
    MetricSpec("execution.exchange_bytes.global", "bytes", "data_out of GlobalExchange"),
    MetricSpec("execution.host_bandwidth", "bytes/s", "stream bytes in and out / host seconds"),
    MetricSpec("archive.num_tiles", "count", "executables in archive.a"),
    MetricSpec("archive.loaded_bytes", "bytes", "sum over executables of their PT_LOAD segments in memory"),
    MetricSpec("archive.tile_max_loaded_bytes", "bytes", "largest executable"),
    MetricSpec("debug.num_contexts", "count", "contexts in debug.cbor"),
)
"""Every metric there is, in the order in which they are listed."""

_TARGET = ("num_ipus", "num_replicas", "num_tiles", "bytes_per_tile", "clock_frequency")
_GRAPH = ("num_vertices", "num_edges", "num_variables", "num_compute_sets")


def metrics(source: TableSource) -> Metrics:
    """Return every metric that the report's data allows, in the order of the catalogue."""
    target, graph = only_row(source, "target"), only_row(source, "graph")
    tiles = tile_memory(source)
    return captured_only(
        {f"target.{name}": target.get(name) for name in _TARGET},
        {f"graph.{name}": graph.get(name) for name in _GRAPH},
        memory_metrics(tiles, target) if tiles else {},
        category_metrics(category_bytes(source)),
        {"variables.num_lowered": row_count(source, "lowered_variables")},
        {"variables.num_unlowered": row_count(source, "variables")},
        liveness_metrics(liveness_peak(source), tiles, target),
        execution_metrics(execution_totals(source), target),
        archive_metrics(source),
        {"debug.num_contexts": row_count(source, "debug_contexts")},
    )


def metric_spec(name: str) -> MetricSpec | None:
    """Return what the catalogue says of a metric's name, None when it is not a metric."""
    for spec in CATALOGUE:
        prefix, bracket, _ = spec.name.partition("<")
        if name == spec.name or (bracket and name.startswith(prefix) and len(name) > len(prefix)):
            return spec
    return None


def captured_only(*parts: Known) -> Metrics:
    """Join metrics into one dict and leave out those that are None."""
    return {name: value for part in parts for name, value in part.items() if value is not None}


def row_count(source: TableSource, name: str) -> int | None:
    """Return a table's number of rows, None when it was not captured."""
    return source.count(name) if source.captured(name) else None


def memory_metrics(tiles: TileMemory, target: Mapping[str, Any]) -> Known:
    """Return the metrics of ``tile_memory``."""
    including, excluding = tiles["total_including_gaps"], tiles["total_excluding_gaps"]
    total, fullest = tiles.total("total_including_gaps"), int(including.max())
    total_excluding = tiles.total("total_excluding_gaps")
    return {
        "memory.total_including_gaps": total,
        "memory.total_excluding_gaps": total_excluding,
        "memory.tile_max_including_gaps": fullest,
        "memory.tile_max_excluding_gaps": int(excluding.max()),
        "memory.tile_mean_including_gaps": total / len(including),
        "memory.tile_p99_including_gaps": float(np.percentile(including, 99)),
        "memory.gaps": total - total_excluding,
        "memory.tile_balance": total / len(including) / fullest if fullest else None,
        "memory.tiles_out_of_memory": None if tiles.bytes_per_tile is None else len(tiles.out_of_memory),
        "memory.overflowed": tiles.total("overflowed_including_gaps"),
        "memory.ipu_max_including_gaps": max(tiles.bytes_by_ipu.values(), default=None),
        "memory.used_fraction": _of_capacity(total, target),
        "memory.always_live": tiles.total("always_live_bytes"),
        "memory.not_always_live": tiles.total("not_always_live_bytes"),
        **{f"memory.region.{region}": tiles.total(f"{region}_including_gaps") for region in regions_known(tiles)},
    }


def category_metrics(categories: CategoryBytes) -> Known:
    """Return the bytes of each storage category."""
    return {f"memory.category.{name}": size for name, size in sorted(categories.non_overlapped.items())}


def liveness_metrics(peak: Peak | None, tiles: TileMemory | None, target: Mapping[str, Any]) -> Known:
    """Return the metrics of the liveness curve."""
    if peak is None:
        return {}
    replicas = target.get("num_replicas")
    total = None
    if tiles is not None and replicas is not None:
        total = tiles.total("always_live_bytes") + replicas * peak.not_always_live_bytes
    return {
        "liveness.num_steps": peak.num_steps,
        "liveness.peak_not_always_live": peak.not_always_live_bytes,
        "liveness.peak_step": peak.step,
        "liveness.peak": total,
        "liveness.peak_fraction": _of_capacity(total, target),
    }


def execution_metrics(totals: ExecutionTotals, target: Mapping[str, Any]) -> Known:
    """Return the metrics of the execution."""
    clock = target.get("clock_frequency")
    host_seconds = None if totals.host_us is None else totals.host_us / 1e6
    all_cycles = sum(totals.cycles_by_type.values())
    by_type = sorted(totals.cycles_by_type.items())
    return {
        "execution.num_runs": totals.num_runs,
        "execution.num_steps": totals.num_steps,
        "execution.cycles": totals.cycles,
        "execution.seconds": totals.cycles / clock if totals.cycles is not None and clock else None,
        "execution.host_seconds": host_seconds,
        **{f"execution.step_cycles.{name}": cycles for name, cycles in by_type},
        **{f"execution.fraction.{name}": cycles / all_cycles if all_cycles else None for name, cycles in by_type},
        "execution.tile_balance": totals.tile_balance,
        "execution.active_tile_balance": totals.active_tile_balance,
        "execution.compute_io_overlap": totals.compute_io_overlap,
        "execution.stream_bytes.in": totals.stream_bytes_in,
        "execution.stream_bytes.out": totals.stream_bytes_out,
        "execution.exchange_bytes.global": totals.exchange_bytes,
        "execution.host_bandwidth": _bandwidth(totals, host_seconds),
    }


def archive_metrics(source: TableSource) -> Known:
    """Return the metrics of archive.a."""
    if not source.captured("archive_tiles"):
        return {}
    loaded = integers(source.arrow("archive_tiles", ["loaded_bytes"]).column(0))
    return {
        "archive.num_tiles": len(loaded),
        "archive.loaded_bytes": exact_sum(loaded),
        "archive.tile_max_loaded_bytes": int(loaded.max()),
    }


def _of_capacity(size: int | None, target: Mapping[str, Any]) -> float | None:
    capacity = (target.get("num_tiles") or 0) * (target.get("bytes_per_tile") or 0)
    return size / capacity if size is not None and capacity else None


def _bandwidth(totals: ExecutionTotals, host_seconds: float | None) -> float | None:
    if not host_seconds or totals.stream_bytes_in is None or totals.stream_bytes_out is None:
        return None
    return (totals.stream_bytes_in + totals.stream_bytes_out) / host_seconds
