"""Rules on whether a program fits, and how its bytes lie on the tiles."""

from __future__ import annotations

import numpy as np

from pvanalyse.analysis.insights.facts import Facts
from pvanalyse.analysis.insights.model import Evidence, Insight, count, insight, rule, share, size, text, tile
from pvanalyse.analysis.memory import ipus_frame


@rule("fit")
def fit(facts: Facts) -> Insight | None:
    """Whether every tile fits, and by how much."""
    if len(facts.memory.out_of_memory):
        return _does_not_fit(facts)
    used = int(facts.memory["total_including_gaps"][facts.fullest])
    free = facts.bytes_per_tile - used
    little = free < facts.limits.little_headroom * facts.bytes_per_tile
    return insight(
        "warning" if little else "info",
        "Every tile fits; the fullest, {fullest_tile}, has {free_bytes} of {bytes_per_tile} left ({free_fraction}).",
        tile("fullest_tile", facts.memory["tile"][facts.fullest]),
        size("used_bytes", used),
        size("free_bytes", free),
        size("bytes_per_tile", facts.bytes_per_tile),
        share("free_fraction", free / facts.bytes_per_tile),
        share("used_of_all_tiles_fraction", facts.total_bytes / (facts.bytes_per_tile * len(facts.memory["tile"]))),
        advice="A small change of the program, or instrumentation, may need more than is left." if little else "",
        tiles=facts.fullest_tiles(facts.limits.shown),
    )


def _does_not_fit(facts: Facts) -> Insight:
    memory = facts.memory
    over = memory.over
    order = np.lexsort((memory["tile"], -over))[: min(facts.limits.shown, len(memory.out_of_memory))]
    worst = int(order[0])
    return insight(
        "critical",
        "{tiles_out_of_memory} of {num_tiles} tiles do not fit; tile {worst_tile} is over by {over_bytes}.",
        count("tiles_out_of_memory", len(memory.out_of_memory)),
        count("num_tiles", len(memory["tile"])),
        tile("worst_tile", memory["tile"][worst]),
        size("over_bytes", over[worst]),
        size("over_of_all_tiles_bytes", sum(over[memory.out_of_memory].tolist())),
        *_filled_by(facts, worst),
        advice="Nothing can run until every tile fits: what the other findings can save is a place to start.",
        tiles=memory["tile"][order].tolist(),
        variables=facts.variables_of_tile(int(memory["tile"][worst])),
    )


def _filled_by(facts: Facts, worst: int) -> list[Evidence]:
    if not facts.source.captured("tile_memory_category"):
        return []
    number = int(facts.memory["tile"][worst])
    name, most = facts.largest_category(number)
    total = int(facts.tile_categories.loc[number].to_numpy(np.int64).sum())
    return [text("largest_category", name), share("largest_category_fraction", most / max(1, total))]


@rule("overflow-spread")
def overflow_spread(facts: Facts) -> Insight | None:
    """Whether what does not fit would fit elsewhere: on other tiles of its IPU, or on other IPUs."""
    memory = facts.memory
    if not len(memory.out_of_memory):
        return None
    frame = ipus_frame(facts.source)
    hit = frame[frame["tiles_out_of_memory"] > 0]
    worst = hit.iloc[int(hit["used_fraction"].to_numpy().argmax())]
    lightest = frame.iloc[int(frame["used_fraction"].to_numpy().argmin())]
    evidence = (
        count("tiles_out_of_memory", len(memory.out_of_memory)),
        count("num_tiles", len(memory["tile"])),
        count("ipus_out_of_memory", len(hit)),
        count("fullest_ipu", worst["ipu"]),
        size("used_bytes", worst["total_including_gaps"]),
        share("used_fraction", worst["used_fraction"]),
        size("capacity_bytes", worst["capacity_bytes"]),
    )
    if worst["used_fraction"] < facts.limits.spread:
        return insight(
            "warning",
            "{tiles_out_of_memory} of {num_tiles} tiles do not fit, yet the fullest IPU that has such tiles, "
            "{fullest_ipu}, uses only {used_fraction} of its memory.",
            *evidence,
            advice="There is room on other tiles of the same IPU, so it is the mapping: spread the tensors that fill "
            "the tiles over more of them (poputil::mapTensorLinearly, Graph::setTileMapping), or split large "
            "operations.",
        )
    if lightest["used_fraction"] < facts.limits.spread and len(frame) > 1:
        return insight(
            "warning",
            "IPU {fullest_ipu} uses {used_fraction} of its memory and does not fit, while IPU {lightest_ipu} uses "
            "{lightest_fraction}.",
            *evidence,
            count("lightest_ipu", lightest["ipu"]),
            share("lightest_fraction", lightest["used_fraction"]),
            advice="It is the split over IPUs: move layers or pipeline stages from the one to the other.",
        )
    return insight(
        "warning",
        "IPU {fullest_ipu} uses {used_fraction} of its memory: a better mapping alone will hardly make it fit.",
        *evidence,
        advice="It is the capacity: use more IPUs, a smaller batch, recomputation, half precision, or keep state off "
        "the chip.",
    )


@rule("outlier-tile")
def outlier_tile(facts: Facts) -> Insight | None:
    """Whether one tile stands far above the rest, and what makes it so."""
    used = facts.memory["total_including_gaps"]
    high = float(np.quantile(used, 0.99))
    above = int(used[facts.fullest]) - high
    if above < facts.limits.outlier * facts.bytes_per_tile:
        return None
    number = int(facts.memory["tile"][facts.fullest])
    return insight(
        "warning" if facts.short_of_memory else "info",
        "Tile {fullest_tile} uses {used_bytes}, {above_bytes} more than 99 in 100 tiles use at most.",
        tile("fullest_tile", number),
        size("used_bytes", used[facts.fullest]),
        size("percentile_99_bytes", high),
        size("above_bytes", above),
        *_more_of(facts, number),
        advice="What fits is decided by the fullest tile: look for what lies on it and not on others, such as a small "
        "tensor mapped to one tile, a reduction onto it, or the branch record of the instrumentation.",
        tiles=facts.fullest_tiles(facts.limits.shown),
        variables=facts.variables_of_tile(number),
    )


def _more_of(facts: Facts, number: int) -> list[Evidence]:
    """Return the category of which a tile has most more than the mean tile."""
    if not facts.source.captured("tile_memory_category"):
        return []
    name, more = facts.category_above_mean(number)
    return [text("category_above_mean", name), size("category_above_mean_bytes", more)]


@rule("tile-balance")
def tile_balance(facts: Facts) -> Insight | None:
    """Whether tiles are filled unevenly while the fullest is nearly full."""
    used = facts.memory["total_including_gaps"]
    fullest = int(used[facts.fullest])
    mean = facts.total_bytes / len(used)
    if not facts.short_of_memory or mean >= facts.limits.tile_balance * fullest:
        return None
    return insight(
        "advice",
        "The mean tile uses {mean_bytes}, {tile_balance} of what the fullest uses ({fullest_bytes}).",
        size("mean_bytes", mean),
        size("fullest_bytes", fullest),
        share("tile_balance", mean / fullest),
        size("free_of_all_tiles_bytes", int(np.maximum(facts.bytes_per_tile - used, 0).sum())),
        *_more_of(facts, int(facts.memory["tile"][facts.fullest])),
        advice="There is room, but not where it is needed: spread the tensors of the fullest tiles over more tiles.",
        tiles=facts.fullest_tiles(facts.limits.shown),
    )


@rule("gaps")
def gaps(facts: Facts) -> Insight | None:
    """Whether unused bytes between allocations take a large share."""
    including = facts.memory["total_including_gaps"]
    lost = including - facts.memory["total_excluding_gaps"]
    total = int(lost.sum())
    if total < facts.limits.gaps * facts.total_bytes:
        return None
    order = np.lexsort((facts.memory["tile"], -lost))[: facts.limits.shown]
    return insight(
        facts.saving_severity,
        "Gaps between allocations take {gap_bytes}, {gap_fraction} of the memory in use; most on tile {worst_tile}, "
        "{worst_gap_bytes}.",
        size("gap_bytes", total),
        share("gap_fraction", total / facts.total_bytes),
        tile("worst_tile", facts.memory["tile"][order[0]]),
        size("worst_gap_bytes", lost[order[0]]),
        advice="Gaps come from alignment and from variables that must lie in one memory bank or away from others: "
        "vertices that ask for either (aligned, interleaved or separate-bank fields) on the worst tiles are the cause.",
        tiles=facts.memory["tile"][order].tolist(),
    )
