"""Rules on what the bytes are: instrumentation, exchange code, vertex state, and what is always live."""

from __future__ import annotations

import numpy as np

from pvanalyse.analysis.insights.facts import Facts
from pvanalyse.analysis.insights.model import Evidence, Insight, insight, rule, share, size, text, tile
from pvanalyse.analysis.liveness import always_live_frame
from pvanalyse.analysis.memory_details import exchanges_frame, vertices_frame
from pvanalyse.errors import NotCaptured

INSTRUMENTATION = ("instrumentationResults",)
EXCHANGE_CODE = ("internalExchangeCode", "globalExchangeCode", "hostExchangeCode")
VERTEX_STATE = ("vertexInstanceState", "vertexFieldData", "vectorListDescriptor", "copyDescriptor")

_LOPSIDED = 4  # one tile holds so many times the mean: it records the branches


@rule("instrumentation")
def instrumentation(facts: Facts) -> Insight | None:
    """Whether the counters of the instrumentation take a noticeable share, of all memory or of one tile."""
    total = facts.category_bytes(INSTRUMENTATION)
    of_all = facts.category_fraction(INSTRUMENTATION)
    if not total:
        return None
    by_tile = facts.tile_categories[INSTRUMENTATION[0]].to_numpy(np.int64)
    largest, most = int(facts.tile_categories.index[int(by_tile.argmax())]), int(by_tile.max())
    of_tile = most / facts.bytes_per_tile
    if max(of_all, of_tile) < facts.limits.instrumentation:
        return None
    lopsided = most > _LOPSIDED * total / len(facts.memory["tile"])
    branches = " Tile {largest_tile} holds most of it; debug.branchRecordTile can choose a tile with more room."
    return insight(
        facts.saving_severity,
        "Counters of the instrumentation take {instrumentation_bytes}, {fraction} of the memory in use; tile "
        "{largest_tile} has most, {largest_tile_bytes}.",
        size("instrumentation_bytes", total),
        share("fraction", of_all),
        tile("largest_tile", largest),
        size("largest_tile_bytes", most),
        share("fraction_of_largest_tile", of_tile),
        *(
            [text("level", facts.report_info["instrument_compute"])]
            if "instrument_compute" in facts.report_info
            else []
        ),
        advice="A program without instrumentation does not need this. To measure with less, take a coarser level such "
        "as 'ipu' or 'device', or profile only the programs of interest."
        + (branches.format(largest_tile=largest) if lopsided else ""),
        options=("debug.instrument", "debug.computeInstrumentationLevel", "profiler.programs.filter")
        + (("debug.branchRecordTile",) if lopsided else ()),
        saving_bytes=total,
        tiles=[largest],
    )


@rule("exchange-code")
def exchange_code(facts: Facts) -> Insight | None:
    """Whether code for exchanges takes a large share."""
    total, fraction = facts.category_bytes(EXCHANGE_CODE), facts.category_fraction(EXCHANGE_CODE)
    if fraction < facts.limits.exchange_code:
        return None
    return insight(
        facts.saving_severity,
        "Code for exchanges takes {exchange_code_bytes}, {fraction} of the memory in use.",
        size("exchange_code_bytes", total),
        share("fraction", fraction),
        *(size(name, facts.category_bytes((name,))) for name in EXCHANGE_CODE),
        *_largest_exchange(facts),
        advice="Exchange code grows with the number of pieces that tensors are copied in. Have the compiler favour "
        "memory over cycles, keep tensors in one layout between operations, and let repeated layers share their code.",
        options=(
            "opt.internalExchangeOptimisationTarget",
            "PopART: SessionOptions.enableOutlining",
            "PopART: SessionOptions.outlineThreshold",
        ),
    )


def _largest_exchange(facts: Facts) -> list[Evidence]:
    try:
        frame = exchanges_frame(facts.source)
    except NotCaptured:
        return []
    if frame.empty:
        return []
    first = frame.iloc[0]
    name = text("largest_exchange", f"{first['type']} {first['name']}".strip())
    return [name, size("largest_exchange_bytes", first["code_bytes"])]


@rule("vertex-state")
def vertex_state(facts: Facts) -> Insight | None:
    """Whether the state of vertices takes a large share."""
    total, fraction = facts.category_bytes(VERTEX_STATE), facts.category_fraction(VERTEX_STATE)
    if fraction < facts.limits.vertex_state:
        return None
    return insight(
        facts.saving_severity,
        "State of vertices takes {vertex_state_bytes}, {fraction} of the memory in use.",
        size("vertex_state_bytes", total),
        share("fraction", fraction),
        *(size(name, facts.category_bytes((name,))) for name in VERTEX_STATE),
        *_largest_vertex(facts),
        advice="Every vertex keeps its state in memory for the whole program. Fewer and larger vertices need less: let "
        "repeated layers share theirs, and avoid operations on many small or scattered slices.",
        options=("PopART: SessionOptions.enableOutlining", "PopART: SessionOptions.outlineThreshold"),
    )


def _largest_vertex(facts: Facts) -> list[Evidence]:
    try:
        frame = vertices_frame(facts.source)
    except NotCaptured:
        return []
    if frame.empty:
        return []
    first = frame.iloc[int(frame["state_bytes"].to_numpy().argmax())]
    return [text("largest_vertex", first["name"]), size("largest_vertex_state_bytes", first["state_bytes"])]


@rule("always-live")
def always_live(facts: Facts) -> Insight | None:
    """Whether what is live during the whole program takes a large share."""
    always, at_times = (facts.memory.total(f"{kind}_bytes") for kind in ("always_live", "not_always_live"))
    fraction = always / max(1, always + at_times)
    if fraction < facts.limits.always_live:
        return None
    known = facts.source.captured("always_live_variables")
    largest = always_live_frame(facts.source)[: facts.limits.shown] if known else None
    return insight(
        facts.saving_severity,
        "Always-live memory takes {always_live_bytes}, {fraction} of what is live at the tiles' peaks.",
        size("always_live_bytes", always),
        size("not_always_live_bytes", at_times),
        share("fraction", fraction),
        *(() if largest is None else (size("largest_variable_bytes", largest["bytes"].iloc[0]),)),
        advice="Weights, optimiser state and code stay for the whole program, so a smaller batch or recomputation will "
        "not help much. Keep optimiser state off the chip, share it out over replicas, or hold weights in half "
        "precision.",
        options=(
            "PopTorch: Options.TensorLocations.setOptimizerLocation",
            "PopART: SessionOptions.optimizerStateTensorLocationSettings",
            "PopART: SessionOptions.weightTensorLocationSettings",
        ),
        variables=() if largest is None else largest["name"].tolist(),
    )
