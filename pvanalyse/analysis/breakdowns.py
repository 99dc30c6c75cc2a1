"""Each metric that has one broken down into its contributors; see :mod:`pvanalyse.analysis.contributions`.

================================== ===================================================================================
metric                             broken down from
================================== ===================================================================================
``memory.total_*``                 always-live variables and the sizes of all others, times replicas; else by category
``memory.tile_max_*``              the allocations on the fullest tile; else its categories
``memory.ipu_max_*``               the allocations on the fullest IPU; where it has many tiles, their categories
``memory.overflowed``              the same of the tiles that overflow
``memory.gaps``                    the gaps of each region
``memory.region.*``                the categories in the region
``memory.category.*``              variables, types of vertices, compute sets (vertex state), exchanges; else as a whole
``memory.always_live``             always-live variables, times replicas
``memory.not_always_live``         the variables live at the peak of a replica, times replicas
``liveness.peak*``                 the variables live at the peak, with or without always-live ones
``execution.*``                    the cycles of the programs; for those that passed, without answers to syncs
================================== ===================================================================================

Only small tables are read, and of large ones only the rows of some tiles: a failed check of a report of a gigabyte
explains itself in a moment. The executed steps are the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pvanalyse.analysis import memory_details
from pvanalyse.analysis.breakdown_parts import NO_NAME, VARIABLE, Parts, times
from pvanalyse.analysis.columns import exact_sum, only_row
from pvanalyse.analysis.contributions import GAPS, SHARED, Contributions, Key, Share, Shares, add, from_shares
from pvanalyse.analysis.execution import UNKNOWN
from pvanalyse.analysis.execution_details import descriptions
from pvanalyse.analysis.memory import category_bytes, regions_known
from pvanalyse.analysis.stable_names import stable_name
from pvanalyse.tables import TableSource

UNATTRIBUTED = "(unattributed)"
OTHER_PEAKS = "(tiles that peak at other steps)"
SIMULTANEOUS = "(at the same time as others)"
REGION_NAMES = {"non_interleaved": "nonInterleaved", "interleaved": "interleaved", "overflowed": "overflowed"}

Made = tuple[int, Shares] | None
"""A metric's value and rows that sum to it."""
Maker = Callable[[Parts], Made]


def is_broken_down(metric: str) -> bool:
    """Tell by a metric's name whether it can be broken down."""
    return _maker(metric) is not None


class Breakdowns(Parts):
    """Breaks down the metrics of one report; what several of them need is read once."""

    def __init__(self, source: TableSource) -> None:
        super().__init__(source)
        self._found: dict[str, Contributions | None] = {}

    def of(self, metric: str) -> Contributions | None:
        """Return what a metric is made of, None when it has no breakdown or was not captured finely enough."""
        if metric not in self._found:
            maker = _maker(metric)
            made = maker(self) if maker else None
            self._found[metric] = from_shares(metric, *made) if made else None
        return self._found[metric]


# ------------------------------------------------------------------------------------------------- a metric's own rows


def _maker(metric: str) -> Maker | None:
    if metric in _MAKERS:
        return _MAKERS[metric]
    for prefix, maker in _MAKERS_OF.items():
        if metric.startswith(prefix) and len(metric) > len(prefix):
            return partial(maker, metric.removeprefix(prefix))
    return None


def _total(kind: str, parts: Parts) -> Made:
    if parts.tiles is None:
        return None
    shares = parts.categories_of(None) if parts.sizes is None else dict(parts.sizes)
    value = parts.tiles.total(f"total_{kind}_gaps")
    return _with_gaps(value, shares, parts.tiles.total("total_excluding_gaps"))


def _fullest_tile(kind: str, parts: Parts) -> Made:
    if parts.tiles is None:
        return None
    column = parts.tiles[f"total_{kind}_gaps"]
    at = int(np.argmax(column))
    shares = parts.on_tiles(parts.tiles["tile"][[at]])
    return _with_gaps(int(column[at]), shares, int(parts.tiles["total_excluding_gaps"][at]))


def _fullest_ipu(parts: Parts) -> Made:
    tiles = parts.tiles
    if tiles is None or not tiles.bytes_by_ipu:
        return None
    fullest = max(tiles.bytes_by_ipu, key=lambda ipu: (tiles.bytes_by_ipu[ipu], -ipu))
    inside = tiles["tile"] // (tiles.tiles_per_ipu or 1) == fullest
    excluding = exact_sum(tiles["total_excluding_gaps"][inside])
    return _with_gaps(tiles.bytes_by_ipu[fullest], parts.on_tiles(tiles["tile"][inside]), excluding)


def _overflowed(parts: Parts) -> Made:
    if parts.tiles is None:
        return None
    over = parts.tiles["tile"][parts.tiles["overflowed_including_gaps"] != 0]
    shares = parts.on_tiles(over, "overflowed") if len(over) else {}
    return _with_gaps(
        parts.tiles.total("overflowed_including_gaps"), shares, parts.tiles.total("overflowed_excluding_gaps")
    )


def _region(region: str, parts: Parts) -> Made:
    if parts.tiles is None or region not in regions_known(parts.tiles):
        return None
    value, excluding = (parts.tiles.total(f"{region}_{kind}_gaps") for kind in ("including", "excluding"))
    return _with_gaps(value, parts.categories_of(None, REGION_NAMES[region]), excluding)


def _gaps(parts: Parts) -> Made:
    tiles = parts.tiles
    if tiles is None:
        return None
    shares: Shares = {}
    for region in regions_known(tiles):
        size = tiles.total(f"{region}_including_gaps") - tiles.total(f"{region}_excluding_gaps")
        _add_nobodys(shares, f"(gaps in {region.replace('_', '-')} memory)", size)
    return _with_rest(tiles.total("total_including_gaps") - tiles.total("total_excluding_gaps"), shares)


def _category(category: str, parts: Parts) -> Made:
    value = category_bytes(parts.source).non_overlapped.get(category)
    if value is None:
        return None
    if category == VARIABLE and parts.sizes is not None:
        variables = {key: share for key, share in parts.sizes.items() if key.category == VARIABLE}
        return _with_rest(value, variables, SHARED)
    if category in _CODE and all(parts.source.captured(name) for name in _CODE_TABLES) and parts.has_tiles:
        return _with_rest(value, _CODE[category](category, parts))
    return value, {Key(category or UNKNOWN, "", "", ""): Share(value)}


def _vertex_code(category: str, parts: Parts) -> Shares:
    shares: Shares = {}
    for name, size in _columns(memory_details.vertices_frame(parts.source), "name", "code_bytes"):
        add(shares, Key(category, "", "", stable_name(name) or NO_NAME), Share(size))
    return shares


def _vertex_state(category: str, parts: Parts) -> Shares:
    columns = parts.source.arrow("compute_sets", ["compute_set_id", "debug_context_id"]).to_pydict()
    contexts = dict(zip(*columns.values(), strict=True))
    frame = memory_details.compute_sets_frame(parts.source)
    shares: Shares = {}
    for identity, name, size in _columns(frame, "compute_set_id", "name", "state_bytes"):
        add(shares, *parts.named(category, name, contexts.get(identity), size))
    return shares


def _exchange_code(category: str, parts: Parts) -> Shares:
    described = descriptions(parts.source)
    frame = memory_details.exchanges_frame(parts.source)
    shares: Shares = {}
    for program, kind, name, size in _columns(frame, "program_id", "type", "name", "code_bytes"):
        if _CATEGORY_OF_EXCHANGE.get(kind) == category:
            add(shares, *parts.named(category, name, described.get(program, (None, None))[1], size))
    return shares


def _columns(frame: pd.DataFrame, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(frame[name].tolist() for name in names), strict=True)


_CODE_TABLES = ("programs", "compute_sets", "compute_set_vertices", "vertex_types", "tile_vertices")
_CATEGORY_OF_EXCHANGE = {
    "DoExchange": "internalExchangeCode",
    "GlobalExchange": "globalExchangeCode",
    "StreamCopyMid": "hostExchangeCode",
}
_CODE: dict[str, Callable[[str, Parts], Shares]] = {
    "vertexCode": _vertex_code,
    "vertexInstanceState": _vertex_state,
    **dict.fromkeys(_CATEGORY_OF_EXCHANGE.values(), _exchange_code),
}


def _always_live(parts: Parts) -> Made:
    if parts.tiles is None or parts.always_live is None:
        return None
    return _with_rest(parts.tiles.total("always_live_bytes"), times(parts.replicas, parts.always_live))


def _not_always_live(parts: Parts) -> Made:
    if parts.tiles is None or parts.live_at_peak is None:
        return None
    value = parts.tiles.total("not_always_live_bytes")
    return _with_rest(value, times(parts.replicas, parts.live_at_peak), OTHER_PEAKS)


def _peak_not_always_live(parts: Parts) -> Made:
    if parts.peak is None or parts.live_at_peak is None:
        return None
    return _with_rest(parts.peak.not_always_live_bytes, dict(parts.live_at_peak))


def _peak(parts: Parts) -> Made:
    if parts.tiles is None or parts.peak is None or parts.always_live is None or parts.live_at_peak is None:
        return None
    if "num_replicas" not in only_row(parts.source, "target"):
        return None
    value = parts.tiles.total("always_live_bytes") + parts.replicas * parts.peak.not_always_live_bytes
    return _with_rest(value, times(parts.replicas, parts.always_live, parts.live_at_peak))


def _elapsed(parts: Parts) -> Made:
    if parts.cycles is None or parts.programs is None:
        return None
    # An answer to a sync is an IPU waiting for others: while it passes, what these do is what counts.
    working = {key: share for key, share in parts.programs.items() if key.category != "SyncAns"}
    return _with_rest(parts.cycles[0], working, SIMULTANEOUS)


def _cycles_of_type(kind: str, parts: Parts) -> Made:
    if parts.programs is None or not parts.source.captured("programs"):
        return None
    shares = {key: share for key, share in parts.programs.items() if key.category == kind}
    return (_sum(shares), shares) if shares else None


_MAKERS: dict[str, Maker] = {
    **{f"memory.total_{kind}_gaps": partial(_total, kind) for kind in ("including", "excluding")},
    **{f"memory.tile_max_{kind}_gaps": partial(_fullest_tile, kind) for kind in ("including", "excluding")},
    **{f"memory.region.{region}": partial(_region, region) for region in REGION_NAMES},
    "memory.gaps": _gaps,
    "memory.overflowed": _overflowed,
    "memory.ipu_max_including_gaps": _fullest_ipu,
    "memory.always_live": _always_live,
    "memory.not_always_live": _not_always_live,
    "liveness.peak_not_always_live": _peak_not_always_live,
    "liveness.peak": _peak,
    "execution.cycles": _elapsed,
}
_MAKERS_OF: dict[str, Callable[[str, Parts], Made]] = {
    "memory.category.": _category,
    "execution.step_cycles.": _cycles_of_type,
}


def _with_gaps(value: int, shares: Shares | None, excluding: int) -> Made:
    """Add what gaps add to the value, which may be one without any, and what sharing addresses takes from it."""
    if shares is None:
        return None
    _add_nobodys(shares, SHARED, excluding - _sum(shares))
    return _with_rest(value, shares, GAPS)


def _with_rest(value: int, shares: Shares, name: str = UNATTRIBUTED) -> Made:
    _add_nobodys(shares, name, value - _sum(shares))
    return value, shares


def _add_nobodys(shares: Shares, name: str, value: int) -> None:
    if value:
        add(shares, Key("", "", "", name), Share(value))


def _sum(shares: Shares) -> int:
    return sum(share.value for share in shares.values())
