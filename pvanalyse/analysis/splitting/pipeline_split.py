"""Split points for a pipeline, from the profile of a program that was compiled for one IPU.

It is an estimate of what the stages will need: their own code, state and variables, as the compiler laid them out on
one IPU; see :mod:`~pvanalyse.analysis.splitting.stage_memory` for what counts. The compiler will lay out the parts
anew, and a pipeline adds exchanges between IPUs and buffers for what waits there. What no program of a layer uses is
in no stage: stacks, copies from and to the host, gaps between allocations, and operations outside the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.selection import number_of_tiles
from pvanalyse.analysis.splitting.layers import Layers, find_layers
from pvanalyse.analysis.splitting.moved import shared_frame, traffic_frame
from pvanalyse.analysis.splitting.partition import (
    Cost,
    exact_split,
    fewest_stages,
    filled_split,
    greedy_split,
    stages_of,
)
from pvanalyse.analysis.splitting.stage_cycles import cycles_of_layers
from pvanalyse.analysis.splitting.stage_memory import KINDS, StageMemory, read_code
from pvanalyse.analysis.splitting.uses import read_uses
from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from pvanalyse.tables import TableSource, table

METHODS = ("exact", "greedy")
"""How layers are put into stages; see :mod:`pvanalyse.analysis.splitting.partition`."""


@dataclass(frozen=True)
class PipelineSplit:
    """A split and what it means.

    Attributes
    ----------
    method
        Of :data:`METHODS`.
    num_ipus
        How many stages were asked for; the greedy method may need fewer.
    limit_bytes
        What a tile may hold.
    stages
        A row per stage: ``stage`` (counted from 0), ``first_layer``, ``last_layer``, ``num_layers``,
        ``num_operations``, ``step_begin`` and ``step_end`` (from its first liveness step to the one after its last; 0
        and 0 when no step runs any of it), ``fullest_tile``, ``fullest_tile_bytes``, ``used_fraction`` (of the limit),
        ``tiles_over`` the limit;
        ``variables_bytes``, ``vertex_code_bytes``, ``vertex_state_bytes``, ``exchange_code_bytes`` and
        ``control_code_bytes`` over all tiles, each tile's variables at its own peak, ``total_bytes``, and the same
        with ``fullest_`` before it for the fullest tile; ``received_bytes`` and ``sent_bytes`` of the traffic,
        ``shared_bytes`` of the variables that another stage uses too; ``cycles`` of all executed steps (null when
        none was recorded), and ``estimated_cycles`` of running each program once (null without estimates).
    layers
        A row per layer, in order: ``layer``, ``stage``, ``num_operations``, ``step_begin``, ``step_end``,
        ``fullest_tile_bytes`` of the layer alone.
    traffic
        See :func:`~pvanalyse.analysis.splitting.moved.traffic_frame`.
    shared
        See :func:`~pvanalyse.analysis.splitting.moved.shared_frame`.
    fewest_ipus
        How few stages fit, None when not even single layers do.
    left_out_operations
        How many operations are in no layer, and so in no stage.
    grouped_by
        How operations were told apart.
    """

    method: str
    num_ipus: int
    limit_bytes: int
    stages: pd.DataFrame
    layers: pd.DataFrame
    traffic: pd.DataFrame
    shared: pd.DataFrame
    fewest_ipus: int | None
    left_out_operations: int
    grouped_by: str

    @property
    def fits(self) -> bool:
        """Whether every stage is within the limit."""
        return not self.stages["tiles_over"].any()

    @property
    def split_points(self) -> list[str]:
        """The layers at which a new stage begins."""
        return [str(name) for name in self.stages["first_layer"].iloc[1:]]


def pipeline_split(
    source: TableSource, num_ipus: int, pattern: str | None = None, method: str = "exact", limit: int | None = None
) -> PipelineSplit:
    """Propose where to split a program into the stages of a pipeline, one for each IPU.

    Parameters
    ----------
    source
        A report of a program that was compiled for one IPU, or for replicas of one, of which the first is looked at.
    num_ipus
        How many stages.
    pattern
        What tells layers apart; see :func:`~pvanalyse.analysis.splitting.layers.find_layers`.
    method
        ``exact`` for the split whose fullest tile is the least full that is possible; ``greedy`` for the one that the
        published method finds, see :func:`~pvanalyse.analysis.splitting.partition.greedy_split`, or, when it finds
        none, one whose stages are filled in turn while the last takes what is left.
    limit
        Bytes that a tile may hold, by default those that it has.

    Raises
    ------
    UsageError
        The program is for several IPUs already; there is no such method; a number is not above 0; or the layers cannot
        be told, see :func:`~pvanalyse.analysis.splitting.layers.find_layers`.
    NotCaptured
        The report has no target, programs, lowered variables, or not what programs use of them.
    """
    _check(num_ipus, method, limit)
    target = _single_ipu(source)
    limit = target["bytes_per_tile"] if limit is None else limit
    layers = find_layers(source, num_ipus, pattern)
    uses = read_uses(source, layers, target["tiles_per_ipu"])
    code = read_code(source, layers, target["tiles_per_ipu"])
    memory = StageMemory(code, uses, layers.first_step, layers.stop_step)
    stops = _SPLIT[method](memory.fullest, len(layers), num_ipus, limit)
    stage_of_layer = np.searchsorted(stops, np.arange(len(layers)), side="right")
    traffic, shared = traffic_frame(uses, stage_of_layer), shared_frame(source, uses, stage_of_layer)
    stages = [
        _stages(layers, memory, stops, limit),
        _moved(len(stops), traffic, shared),
        _cycles(source, layers, stage_of_layer),
    ]
    return PipelineSplit(
        method=method,
        num_ipus=num_ipus,
        limit_bytes=limit,
        stages=pd.concat(stages, axis=1),
        layers=_layers(layers, memory, stage_of_layer),
        traffic=traffic,
        shared=shared,
        fewest_ipus=fewest_stages(memory.fullest, len(layers), limit),
        left_out_operations=layers.left_out,
        grouped_by=layers.grouped_by,
    )


def _check(num_ipus: int, method: str, limit: int | None) -> None:
    if method not in METHODS:
        raise UsageError(f"there is no method '{method}'; there are: {', '.join(METHODS)}")
    if num_ipus < 1:
        raise UsageError(f"a pipeline has 1 stage or more, not {num_ipus}")
    if limit is not None and limit < 1:
        raise UsageError(f"the limit of a tile must be above 0 bytes, not {limit:,}")


def _single_ipu(source: TableSource) -> Mapping[str, Any]:
    target = only_row(source, "target")
    if not (target.get("tiles_per_ipu") and target.get("bytes_per_tile") and target.get("num_ipus")):
        raise NotCaptured("target", table("target").capture)
    ipus = target["num_ipus"] // max(1, target.get("num_replicas", 1))
    if ipus > 1:
        raise UsageError(
            f"the program is on {ipus} IPUs already; a split is found from a profile that was compiled for one, "
            "even one that is out of memory"
        )
    if number_of_tiles(source) < target["tiles_per_ipu"]:
        raise PvanalyseError("table 'target' cannot be: it has fewer tiles than an IPU has")
    return target


def _exact(cost: Cost, num_layers: int, num_stages: int, limit: int) -> list[int]:  # noqa: ARG001
    return exact_split(cost, num_layers, num_stages)


def _greedy(cost: Cost, num_layers: int, num_stages: int, limit: int) -> list[int]:
    found = greedy_split(cost, num_layers, num_stages, limit)
    return filled_split(cost, num_layers, num_stages, limit) if found is None else found


_SPLIT: Mapping[str, Callable[[Cost, int, int, int], list[int]]] = {"exact": _exact, "greedy": _greedy}


# ------------------------------------------------------------------------------------------------------------ frames
def _stages(layers: Layers, memory: StageMemory, stops: Sequence[int], limit: int) -> pd.DataFrame:
    rows = []
    for number, (first, stop) in enumerate(stages_of(stops)):
        used = memory.stage(first, stop)
        tile = int(used.total.argmax())
        begin, end = memory.steps(first, stop)
        row: dict[str, Any] = {
            "stage": number,
            "first_layer": layers.names[first],
            "last_layer": layers.names[stop - 1],
            "num_layers": stop - first,
            "num_operations": int(layers.num_operations[first:stop].sum()),
            "step_begin": begin,
            "step_end": end,
            "fullest_tile": tile,
            "fullest_tile_bytes": int(used.total[tile]),
            "used_fraction": int(used.total[tile]) / limit,
            "tiles_over": int((used.total > limit).sum()),
            "total_bytes": int(used.total.sum()),
        }
        row |= {f"{kind}_bytes": int(getattr(used, kind).sum()) for kind in KINDS}
        rows.append(row | {f"fullest_{kind}_bytes": int(getattr(used, kind)[tile]) for kind in KINDS})
    return pd.DataFrame(rows).astype({"first_layer": "str", "last_layer": "str"})


def _moved(num_stages: int, traffic: pd.DataFrame, shared: pd.DataFrame) -> pd.DataFrame:
    """Return by stage what it receives and sends, and what of its variables another stage uses too."""
    stages = range(num_stages)
    in_stage = shared.explode("stages")
    sums = {
        "received_bytes": traffic.groupby("to_stage")["bytes"].sum(),
        "sent_bytes": traffic.groupby("from_stage")["bytes"].sum(),
        "shared_bytes": in_stage["bytes"].groupby(in_stage["stages"]).sum(),
    }
    return pd.DataFrame({name: found.reindex(stages, fill_value=0).astype(np.int64) for name, found in sums.items()})


def _cycles(source: TableSource, layers: Layers, stage_of_layer: Integers) -> pd.DataFrame:
    """Return by stage the cycles of its layers."""
    frame = cycles_of_layers(source, layers)
    return frame.groupby(stage_of_layer).sum(min_count=1)


def _layers(layers: Layers, memory: StageMemory, stage_of_layer: Integers) -> pd.DataFrame:
    steps = [memory.steps(at, at + 1) for at in range(len(layers))]
    return pd.DataFrame(
        {
            "layer": pd.array(list(layers.names), "str"),
            "stage": stage_of_layer,
            "num_operations": layers.num_operations,
            "step_begin": [begin for begin, _ in steps],
            "step_end": [end for _, end in steps],
            "fullest_tile_bytes": [memory.fullest(at, at + 1) for at in range(len(layers))],
        }
    )
