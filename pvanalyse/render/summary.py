"""The summary of a report, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase

from pvanalyse.analysis.summary import (
    ArchiveSummary,
    ExecutionSummary,
    FullTile,
    LivenessSummary,
    MemorySummary,
    Summary,
    TraceSummary,
)
from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, Value
from pvanalyse.render.html import render_html
from pvanalyse.units import ByteUnits, format_bytes, format_fraction

_MARKETING = {"Ipu1": "Ipu1 (Mk1)", "Ipu2": "Ipu2 (Mk2)"}
_SHOWN_RUNS = 8
_SHOWN_CATEGORIES = 2

_TARGET = (
    ("type", "Type", Unit.TEXT),
    ("architecture", "Architecture", Unit.TEXT),
    ("num_ipus", "IPUs", Unit.COUNT),
    ("num_replicas", "Replicas", Unit.COUNT),
    ("ipus_per_replica", "IPUs per replica", Unit.COUNT),
    ("tiles_per_ipu", "Tiles per IPU", Unit.COUNT),
    ("num_tiles", "Tiles", Unit.COUNT),
    ("bytes_per_tile", "Memory per tile", Unit.BYTES),
    ("bytes_per_ipu", "Memory per IPU", Unit.BYTES),
    ("bytes_total", "Memory in all", Unit.BYTES),
    ("clock_frequency", "Clock", Unit.HERTZ),
)
_GRAPH = (
    ("num_vertices", "Vertices"),
    ("num_edges", "Edges"),
    ("num_variables", "Variables"),
    ("num_compute_sets", "Compute sets"),
)
_MEMORY = (
    ("memory.total_including_gaps", "Total including gaps", Unit.BYTES),
    ("memory.total_excluding_gaps", "Total excluding gaps", Unit.BYTES),
    ("memory.gaps", "Gaps", Unit.BYTES),
    ("memory.used_fraction", "Used of all memory", Unit.FRACTION),
    ("memory.tile_max_including_gaps", "Fullest tile", Unit.BYTES),
    ("memory.tile_p99_including_gaps", "99th percentile of tiles", Unit.BYTES),
    ("memory.tile_mean_including_gaps", "Mean tile", Unit.BYTES),
    ("memory.tile_balance", "Tile balance (mean / fullest)", Unit.FRACTION),
    ("memory.always_live", "Always live", Unit.BYTES),
    ("memory.not_always_live", "Not always live (each tile's own peak)", Unit.BYTES),
    ("memory.region.non_interleaved", "Non-interleaved region", Unit.BYTES),
    ("memory.region.interleaved", "Interleaved region", Unit.BYTES),
    ("memory.region.overflowed", "Overflowed", Unit.BYTES),
)
_LIVENESS = (
    ("liveness.peak", "Peak of all replicas, with always live", Unit.BYTES),
    ("liveness.peak_fraction", "Share of all memory", Unit.FRACTION),
    ("liveness.peak_not_always_live", "Not always live at the peak, one replica", Unit.BYTES),
    ("liveness.peak_step", "Peak at step", Unit.COUNT),
    ("liveness.num_steps", "Steps", Unit.COUNT),
)
_EXECUTION = (
    ("execution.num_runs", "Runs", Unit.COUNT),
    ("execution.num_steps", "Steps", Unit.COUNT),
    ("execution.cycles", "Cycles", Unit.CYCLES),
    ("execution.seconds", "Time on the IPU", Unit.SECONDS),
    ("execution.host_seconds", "Time on the host", Unit.SECONDS),
    ("execution.tile_balance", "Tile balance", Unit.FRACTION),
    ("execution.active_tile_balance", "Balance of active tiles", Unit.FRACTION),
    ("execution.compute_io_overlap", "Compute and I/O overlap", Unit.FRACTION),
    ("execution.stream_bytes.in", "Streamed in", Unit.BYTES),
    ("execution.stream_bytes.out", "Streamed out", Unit.BYTES),
    ("execution.exchange_bytes.global", "Sent between IPUs", Unit.BYTES),
    ("execution.host_bandwidth", "Bandwidth to the host", Unit.RATE),
)
_COUNTS = (
    ("programs", "Programs"),
    ("vertex_types", "Vertex types"),
    ("variables", "Variables (unlowered)"),
    ("lowered_variables", "Lowered variables"),
    ("debug_contexts", "Debug contexts"),
)
_ABOUT = (
    ("engine", "Engine"),
    ("engine_name", "Engine name"),
    ("cluster", "TensorFlow cluster"),
    ("created", "Directory made"),
    ("compiled_at", "Compiled"),
    ("poplar_version", "Poplar"),
)
_INSTRUMENTATION = (
    ("instrument_compute", "Compute"),
    ("instrument_external_exchange", "External exchange"),
    ("profiled_replica", "Profiled replica"),
)


def summary_document(summary: Summary, byte_units: ByteUnits = "binary", options: str = "*") -> Document:
    """Return a summary as a document.

    Parameters
    ----------
    summary
        What to show.
    byte_units
        Units for the sizes in the verdict's sentence.
    options
        A pattern (``*``, ``?``, ``[…]``) that chooses the engine options to show.
    """
    verdict, alarming = _verdict(summary, byte_units)
    return Document(
        title=summary.report.get("directory", "Report"),
        verdict=verdict,
        alarming=alarming,
        sections=list(_sections(summary, options)),
        data=asdict(summary),
    )


def _verdict(summary: Summary, byte_units: ByteUnits) -> tuple[str, bool]:
    memory = summary.memory
    if memory is None:
        return "", False

    def size(value: float) -> str:
        return format_bytes(value, byte_units)

    top = memory.fullest[0]
    if memory.fits and memory.bytes_per_tile:
        of = f"{size(memory.bytes_per_tile)} ({format_fraction(top.including_gaps / memory.bytes_per_tile)})"
        return f"Fits: the fullest tile, {top.tile}, uses {size(top.including_gaps)} of {of}.", False
    if memory.fits:
        sentence = f"No tile overflows; the fullest, {top.tile}, uses {size(top.including_gaps)}"
        return f"{sentence} (the size of a tile's memory was not captured).", False
    worst = max(memory.fullest, key=lambda tile: tile.over)
    category, size_of_category = next(iter(worst.categories.items()), ("", 0))
    share = size_of_category / max(1, sum(worst.categories.values()))
    reason = f"; {format_fraction(share)} of its bytes are {category}" if category else ""
    count = f"{memory.tiles_out_of_memory:,} of {memory.num_tiles:,}"
    return f"OUT OF MEMORY: {count} tiles do not fit; tile {worst.tile} is over by {size(worst.over)}{reason}.", True


def _sections(summary: Summary, options: str) -> Iterator[Section]:
    yield Section("Report", _facts(summary.report, ((*one, Unit.TEXT) for one in _ABOUT)))
    target = dict(summary.target)
    if "architecture" in target:
        target["architecture"] = _MARKETING.get(target["architecture"], target["architecture"])
    yield Section("Target", _facts(target, _TARGET))
    graph = ((*one, Unit.COUNT) for one in _GRAPH)
    counts = ((*one, Unit.COUNT) for one in _COUNTS)
    yield Section("Graph", [*_facts(summary.graph, graph), *_facts(summary.counts, counts)])
    yield Section("Instrumentation", _facts(summary.instrumentation, ((*one, Unit.TEXT) for one in _INSTRUMENTATION)))
    if summary.memory:
        yield _memory(summary.memory)
    if summary.liveness:
        yield _liveness(summary.liveness)
    if summary.execution:
        yield _execution(summary.execution)
    if summary.trace:
        yield _trace(summary.trace)
    if summary.archive:
        yield _archive(summary.archive)
    yield from _key_values("framework.json", summary.framework)
    yield from _key_values("app.json", summary.app)
    yield _engine_options(summary, options)
    fields = [Field("File", "name"), Field("Size", "bytes", Unit.BYTES), Field("Note", "note", prose=True)]
    files = [(file["name"], file["bytes"], file["note"]) for file in summary.files]
    yield Section("Files", grids=[Grid("", fields, files)])
    missing = [
        Fact(one.part if one.whole else f"{one.part}, in part: {', '.join(one.tables)}", one.how)
        for one in summary.not_captured
    ]
    yield Section("Not captured, and what captures it", missing)
    yield Section("Notes", sentences=summary.notes)


def _facts(values: Mapping[str, Value], wanted: Iterable[tuple[str, str, Unit]]) -> list[Fact]:
    return [Fact(label, values[key], unit) for key, label, unit in wanted if values.get(key) not in (None, "")]


def _memory(memory: MemorySummary) -> Section:
    over = any(tile.over for tile in memory.fullest)
    tile_fields = [
        Field("Tile", "tile", Unit.COUNT),
        Field("IPU", "ipu", Unit.COUNT),
        Field("Including gaps", "including_gaps_bytes", Unit.BYTES),
        Field("Excluding gaps", "excluding_gaps_bytes", Unit.BYTES),
        *([Field("Over", "over_bytes", Unit.BYTES)] if over else []),
        Field("Filled by", "", prose=True),
    ]
    ipu_fields = [
        Field("IPU", "ipu", Unit.COUNT),
        Field("Including gaps", "including_gaps_bytes", Unit.BYTES),
        Field("Tiles out of memory", "tiles_out_of_memory", Unit.COUNT),
    ]
    category_fields = [
        Field("Category", "category"),
        Field("Not overlapped", "bytes", Unit.BYTES),
        Field("Share", "fraction", Unit.FRACTION),
        Field("Overlapped", "overlapped_bytes", Unit.BYTES),
    ]
    return Section(
        "Memory",
        _facts(memory.metrics, _MEMORY),
        [
            Grid("Fullest tiles", tile_fields, [_tile_row(tile, over) for tile in memory.fullest]),
            Grid("By IPU", ipu_fields, [(i.ipu, i.including_gaps, i.tiles_out_of_memory) for i in memory.ipus]),
            Grid(
                "By category",
                category_fields,
                [(c.category, c.bytes, c.fraction, c.overlapped) for c in memory.categories],
            ),
        ],
    )


def _tile_row(tile: FullTile, over: bool) -> tuple[Value, ...]:
    total = sum(tile.categories.values())
    largest = list(tile.categories.items())[:_SHOWN_CATEGORIES]
    filled_by = ", ".join(f"{name} {format_fraction(size / total)}" for name, size in largest if total)
    sizes = [tile.including_gaps, tile.excluding_gaps, *([tile.over] if over else [])]
    return tile.tile, tile.ipu, *sizes, filled_by


def _liveness(liveness: LivenessSummary) -> Section:
    facts = _facts(liveness.metrics, _LIVENESS)
    if liveness.program or liveness.program_type:
        facts.append(Fact("Peak in program", f"{liveness.program_type} {liveness.program or '(no name)'}"))
    fields = [Field("Variable", "name"), Field("Size, one replica", "bytes", Unit.BYTES)]
    rows = [(variable.name, variable.bytes) for variable in liveness.variables]
    title = f"Largest of {liveness.num_variables:,} variables live at the peak"
    return Section("Liveness", facts, [Grid(title, fields, rows)])


def _execution(execution: ExecutionSummary) -> Section:
    totals = execution.totals
    all_cycles = sum(totals.cycles_by_type.values())
    kinds = sorted(totals.cycles_by_type.items(), key=lambda item: (-item[1], item[0]))
    type_fields = [
        Field("Program type", "type"),
        Field("Steps × IPUs", "steps", Unit.COUNT),
        Field("Cycles", "cycles", Unit.CYCLES),
        Field("Share", "fraction", Unit.FRACTION),
    ]
    by_type = [
        (name, totals.steps_by_type[name], cycles, cycles / all_cycles if all_cycles else None)
        for name, cycles in kinds
    ]
    run_fields = [
        Field("Run", "run", Unit.COUNT),
        Field("Name", "name"),
        Field("Cycles", "cycles", Unit.CYCLES),
        Field("Host time", "host_s", Unit.SECONDS),
    ]
    runs = [
        (run.run_id, run.name, run.cycles, None if run.host_us is None else run.host_us / 1e6)
        for run in totals.runs[:_SHOWN_RUNS]
    ]
    title = "Runs" if len(totals.runs) <= _SHOWN_RUNS else f"The first {_SHOWN_RUNS} of {len(totals.runs):,} runs"
    return Section(
        "Execution",
        _facts(execution.metrics, _EXECUTION),
        [
            Grid("Cycles by program type (steps overlap, so they add up to more than the time that passed)",
                 type_fields, by_type),
            Grid(title, run_fields, runs),
        ],
    )  # fmt: skip


def _trace(trace: TraceSummary) -> Section:
    ipus = sorted(trace.blocks_by_ipu)
    fields = [
        Field("Tag", "tag"),
        Field("Blocks", "blocks", Unit.COUNT),
        *(Field(f"IPU {ipu}", f"blocks_ipu_{ipu}", Unit.COUNT) for ipu in ipus),
        Field("Cycles", "cycles", Unit.CYCLES),
    ]
    rows: list[tuple[Value, ...]] = [
        (t.tag, t.blocks, *(t.blocks_by_ipu.get(ipu, 0) for ipu in ipus), t.cycles) for t in trace.tags
    ]
    total: tuple[Value, ...] = ("all", trace.blocks, *(trace.blocks_by_ipu[ipu] for ipu in ipus), None)
    facts = [Fact("First cycle", trace.first_cycle, Unit.CYCLES), Fact("Last cycle", trace.last_cycle, Unit.CYCLES)]
    return Section("Execution trace, as the vendor's viewer cached it", facts, [Grid("", fields, [*rows, total])])


def _archive(archive: ArchiveSummary) -> Section:
    wanted = (
        ("archive.num_tiles", "Executables", Unit.COUNT),
        ("archive.loaded_bytes", "Loaded in all", Unit.BYTES),
        ("archive.tile_max_loaded_bytes", "Loaded on the fullest tile", Unit.BYTES),
    )
    kinds = ", ".join(f"{_MARKETING.get(name, name)}" for name in archive.architectures)
    return Section("Executables (archive.a)", [*_facts(archive.metrics, wanted), Fact("Architecture", kinds)])


def _key_values(title: str, rows: tuple[tuple[str, str, str], ...]) -> Iterator[Section]:
    yield Section(title, [Fact(f"{section}: {key}" if section else key, value) for section, key, value in rows])


def _engine_options(summary: Summary, options: str) -> Section:
    shown = [row for row in summary.engine_options if fnmatchcase(row[1].lower(), options.lower())]
    hidden = len(summary.engine_options) - len(shown)
    fields = [Field("Option", "name"), Field("Value", "value"), Field("Scope", "scope")]
    sentences = [f"{hidden} of {len(summary.engine_options)} options do not match '{options}'."] if hidden else []
    return Section("Engine options", grids=[Grid("", fields, [(n, v, s) for s, n, v in shown])], sentences=sentences)


Summary.show_with(lambda summary: render_html(summary_document(summary)))
