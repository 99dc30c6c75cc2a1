"""What a person wants to know first: what was compiled, what fits and what does not, and what ran.

A :class:`Summary` is plain values in dataclasses; ``dataclasses.asdict`` gives its machine form. A part whose data was
not captured is None or empty, and named in :attr:`Summary.not_captured`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pvanalyse.analysis.columns import codes, integers, key_values, only_row
from pvanalyse.analysis.execution import ExecutionTotals, execution_totals
from pvanalyse.analysis.liveness import LiveVariable, Peak, live_at, liveness_peak
from pvanalyse.analysis.memory import TileMemory, category_bytes, tile_memory
from pvanalyse.analysis.metrics import (
    Metrics,
    archive_metrics,
    captured_only,
    execution_metrics,
    liveness_metrics,
    memory_metrics,
    row_count,
)
from pvanalyse.analysis.shown import Shown
from pvanalyse.tables import APP, FRAMEWORK, TABLES, TRACE_CACHE, Part, TableSource

_FULLEST = 5
_LARGEST = 10


@dataclass(frozen=True, slots=True)
class FullTile:
    """One of the fullest tiles; sizes in bytes, ``over`` is what does not fit, ``categories`` the largest first."""

    tile: int
    ipu: int | None
    including_gaps: int
    excluding_gaps: int
    over: int
    categories: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class IpuMemory:
    """One IPU's bytes including gaps, and how many of its tiles do not fit."""

    ipu: int
    including_gaps: int
    tiles_out_of_memory: int


@dataclass(frozen=True, slots=True)
class CategoryShare:
    """Bytes of a storage category over all tiles, and its share of all categories."""

    category: str
    bytes: int
    overlapped: int
    fraction: float


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """Memory of all tiles; ``capacity`` and ``bytes_per_tile`` are None when the target was not captured."""

    fits: bool
    tiles_out_of_memory: int
    capacity: int | None
    bytes_per_tile: int | None
    num_tiles: int
    metrics: Metrics
    fullest: tuple[FullTile, ...]
    ipus: tuple[IpuMemory, ...]
    categories: tuple[CategoryShare, ...]


@dataclass(frozen=True, slots=True)
class LivenessSummary:
    """The liveness peak: its metrics, its program, and the largest variables live there (bytes of one replica)."""

    metrics: Metrics
    program: str
    program_type: str
    variables: tuple[LiveVariable, ...]
    num_variables: int


@dataclass(frozen=True, slots=True)
class TraceTag:
    """Blocks of one kind in the viewer's trace cache: how many, and their cycles added up, by IPU."""

    tag: str
    blocks: int
    cycles: int
    blocks_by_ipu: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """The viewer's cache of the execution trace; cycles are counted from the start of the execution."""

    blocks: int
    first_cycle: int
    last_cycle: int
    blocks_by_ipu: Mapping[int, int]
    tags: tuple[TraceTag, ...]


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """The executables in archive.a."""

    metrics: Metrics
    architectures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Missing:
    """A part of a profile that was not captured, whole or only some tables of it, and what captures it."""

    part: str
    whole: bool
    tables: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True)
class Summary(Shown):
    """A report in brief.

    Attributes
    ----------
    report
        Where it is, and from which engine and SDK: ``directory``, ``engine``, ``poplar_version`` …, as far as known.
    target, graph
        The single rows of these tables, the target with sizes that follow from it.
    instrumentation
        What was measured, and so what the cycles mean.
    engine_options
        (scope, name, value) of each option.
    files
        ``name``, ``bytes`` and ``note`` of each file of the report.
    notes
        Sentences on what is unusual.
    """

    report: Mapping[str, str]
    target: Mapping[str, Any]
    graph: Mapping[str, int]
    instrumentation: Mapping[str, str]
    engine_options: tuple[tuple[str, str, str], ...]
    memory: MemorySummary | None
    liveness: LivenessSummary | None
    execution: ExecutionSummary | None
    trace: TraceSummary | None
    archive: ArchiveSummary | None
    counts: Mapping[str, int]
    framework: tuple[tuple[str, str, str], ...]
    app: tuple[tuple[str, str, str], ...]
    files: tuple[Mapping[str, Any], ...]
    not_captured: tuple[Missing, ...]
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class ExecutionSummary:
    """What ran: the metrics, and cycles and steps of each program type, most cycles first."""

    metrics: Metrics
    totals: ExecutionTotals


def summarise(
    source: TableSource, report: Mapping[str, str], files: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> Summary:
    """Return the summary of a report.

    Parameters
    ----------
    source
        The report's tables.
    report, files, notes
        What is known of the report besides its tables: its directory and engine, its files, sentences about them.
    """
    info = key_values(source, "report_info")
    target = only_row(source, "target")
    tiles = tile_memory(source)
    return Summary(
        report={**report, **_known(info, _ABOUT)},
        target=_with_derived({name: value for name, value in target.items() if not isinstance(value, list)}),
        graph=only_row(source, "graph"),
        instrumentation=_known(info, _INSTRUMENTATION),
        engine_options=_triples(source, "engine_options", ("scope", "name", "value")),
        memory=_memory(source, tiles, target) if tiles else None,
        liveness=_liveness(source, tiles, target),
        execution=_execution(source, target),
        trace=_trace(source),
        archive=_archive(source),
        counts=_counts(source),
        framework=_triples(source, "framework", ("section", "key", "value")),
        app=_triples(source, "app", ("section", "key", "value")),
        files=tuple(files),
        not_captured=_not_captured(source),
        notes=tuple(notes),
    )


_NOT_MISSED = (TRACE_CACHE, FRAMEWORK, APP)  # nobody expects these in every report
_ABOUT = ("poplar_version", "poplar_package_hash", "compiled_at", "engine_name")
_INSTRUMENTATION = ("instrument_compute", "instrument_external_exchange", "profiled_replica")
_COUNTED = ("programs", "compute_sets", "vertex_types", "variables", "lowered_variables", "debug_contexts")


def _known(values: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: values[name] for name in names if values.get(name)}


def _triples(source: TableSource, name: str, columns: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    if not source.captured(name):
        return ()
    table = source.arrow(name, columns)
    # A text that could not be read is shown as nothing.
    return tuple(zip(*(table.column(column).fill_null("").to_pylist() for column in columns), strict=True))


def _with_derived(target: dict[str, Any]) -> dict[str, Any]:
    """Add sizes that follow from the target's row."""
    ipus, replicas, tiles = (target.get(name) for name in ("num_ipus", "num_replicas", "tiles_per_ipu"))
    per_tile = target.get("bytes_per_tile")
    if ipus and replicas:
        target["ipus_per_replica"] = ipus // replicas
    if tiles and per_tile:
        target["bytes_per_ipu"] = tiles * per_tile
        if ipus:
            target["bytes_total"] = ipus * tiles * per_tile
    return target


def _memory(source: TableSource, tiles: TileMemory, target: Mapping[str, Any]) -> MemorySummary:
    fullest = tiles.fullest(_FULLEST)
    categories = category_bytes(source, tiles["tile"][fullest])
    total = sum(categories.non_overlapped.values())
    return MemorySummary(
        fits=not len(tiles.out_of_memory),
        tiles_out_of_memory=len(tiles.out_of_memory),
        capacity=target.get("num_tiles", 0) * target.get("bytes_per_tile", 0) or None,
        bytes_per_tile=tiles.bytes_per_tile,
        num_tiles=len(tiles["tile"]),
        metrics=captured_only(memory_metrics(tiles, target)),
        fullest=tuple(_full_tile(tiles, int(at), categories.tiles) for at in fullest),
        ipus=_ipus(tiles),
        categories=tuple(
            CategoryShare(name, size, categories.overlapped[name], size / total if total else 0.0)
            for name, size in sorted(categories.non_overlapped.items(), key=_largest_first)
        ),
    )


def _full_tile(tiles: TileMemory, at: int, categories: Mapping[int, Mapping[str, int]]) -> FullTile:
    tile, including = int(tiles["tile"][at]), int(tiles["total_including_gaps"][at])
    return FullTile(
        tile=tile,
        ipu=tile // tiles.tiles_per_ipu if tiles.tiles_per_ipu else None,
        including_gaps=including,
        excluding_gaps=int(tiles["total_excluding_gaps"][at]),
        over=int(tiles.over[at]),
        categories=dict(sorted(categories.get(tile, {}).items(), key=_largest_first)),
    )


def _ipus(tiles: TileMemory) -> tuple[IpuMemory, ...]:
    if not tiles.tiles_per_ipu:
        return ()
    out_of_memory = tiles["tile"][tiles.out_of_memory] // tiles.tiles_per_ipu
    return tuple(
        IpuMemory(ipu, size, int((out_of_memory == ipu).sum())) for ipu, size in sorted(tiles.bytes_by_ipu.items())
    )


def _liveness(source: TableSource, tiles: TileMemory | None, target: Mapping[str, Any]) -> LivenessSummary | None:
    peak = liveness_peak(source)
    if peak is None:
        return None
    name, kind = _program(source, peak)
    variables = live_at(source, peak.step)
    return LivenessSummary(
        metrics=captured_only(liveness_metrics(peak, tiles, target)),
        program=name,
        program_type=kind,
        variables=tuple(variables[:_LARGEST]),
        num_variables=len(variables),
    )


def _program(source: TableSource, peak: Peak) -> tuple[str, str]:
    if not source.captured("programs"):
        return "", ""
    programs = source.arrow("programs", ["program_id", "name", "type"])
    found = np.flatnonzero(integers(programs.column(0)) == peak.program_id)
    if not len(found):
        return "", ""
    row = programs.slice(int(found[0]), 1).to_pylist()[0]
    return row["name"] or "", row["type"] or ""


def _execution(source: TableSource, target: Mapping[str, Any]) -> ExecutionSummary | None:
    totals = execution_totals(source)
    metrics = captured_only(execution_metrics(totals, target))
    return ExecutionSummary(metrics, totals) if metrics else None


def _trace(source: TableSource) -> TraceSummary | None:
    if not source.captured("trace_blocks"):
        return None
    tags: dict[str, int] = {}
    parts = []
    for batch in source.batches("trace_blocks", ["tag", "ipu", "cycles_from", "cycles_to"]):
        columns = [codes(batch.column(0), tags), *(integers(batch.column(at)) for at in (1, 2, 3))]
        parts.append(np.stack(columns))
    tag, ipu, begin, end = np.concatenate(parts, axis=1)
    by_tag = [
        TraceTag(name, int((tag == code).sum()), int((end - begin)[tag == code].sum()), _count(ipu[tag == code]))
        for name, code in tags.items()
    ]
    return TraceSummary(
        blocks=len(tag),
        first_cycle=int(begin.min()),
        last_cycle=int(end.max()),
        blocks_by_ipu=_count(ipu),
        tags=tuple(sorted(by_tag, key=lambda one: (-one.cycles, one.tag))),
    )


def _count(values: Any) -> dict[int, int]:
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _archive(source: TableSource) -> ArchiveSummary | None:
    if not source.captured("archive_tiles"):
        return None
    architectures = source.arrow("archive_tiles", ["architecture"]).column(0).to_pylist()
    counts = {name: architectures.count(name) for name in sorted(set(architectures))}
    return ArchiveSummary(captured_only(archive_metrics(source)), counts)


def _counts(source: TableSource) -> dict[str, int]:
    counts = {name: row_count(source, name) for name in _COUNTED}
    return {name: count for name, count in counts.items() if count is not None}


def _not_captured(source: TableSource) -> tuple[Missing, ...]:
    missing: dict[Part, list[str]] = {}
    partly: set[Part] = set()
    for name, schema in TABLES.items():
        if schema.source in _NOT_MISSED or schema.may_be_empty:
            continue
        if source.captured(name):
            partly.add(schema.part)
        else:
            missing.setdefault(schema.part, []).append(name)
    return tuple(Missing(part.name, part not in partly, tuple(names), part.how) for part, names in missing.items())


def _largest_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
