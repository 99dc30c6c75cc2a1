"""What the stages of a pipeline exchange, and what they both need."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.splitting.uses import NOBODY, Uses
from pvanalyse.tables import TableSource


def traffic_frame(uses: Uses, stage_of_layer: Integers) -> pd.DataFrame:
    """Return what has to be sent from one stage to another.

    A variable that is not always live is sent by the stage whose program uses it first, which is taken for the one
    that writes it, to every other stage that uses it, once in each pass through the program.

    Returns
    -------
    pandas.DataFrame
        ``from_stage``, ``to_stage``, ``bytes`` and ``num_variables`` (allocations of one variable are one; those that
        the compiler made, together, too). Only pairs of stages that exchange something.
    """
    rows = _in_stages(uses, stage_of_layer)
    sent = rows[(rows["from_stage"] != rows["to_stage"]) & ~rows["always_live"]]
    by_stages = sent.groupby(["from_stage", "to_stage"], as_index=False)
    return by_stages.agg(bytes=("bytes", "sum"), num_variables=("variable_id", "nunique"))


def shared_frame(source: TableSource, uses: Uses, stage_of_layer: Integers) -> pd.DataFrame:
    """Return the variables that several stages use, the largest first. They count in each of these stages.

    Returns
    -------
    pandas.DataFrame
        ``variable_id`` and ``name`` (null and empty for all together that the compiler made), ``bytes`` of the
        allocations that several stages use, ``always_live_bytes`` of them, and ``stages``, a tuple.
    """
    rows = _in_stages(uses, stage_of_layer)
    rows = rows[rows.groupby("allocation")["to_stage"].transform("size") > 1]
    stages = rows.groupby("variable_id")["to_stage"].unique().map(lambda found: tuple(sorted(found.tolist())))
    once = rows.drop_duplicates("allocation")
    once = once.assign(always_live_bytes=once["bytes"].where(once["always_live"], 0))
    frame = once.groupby("variable_id")[["bytes", "always_live_bytes"]].sum()
    frame["stages"] = stages.reindex(frame.index).astype(object)
    frame = frame.reset_index()
    frame.insert(1, "name", pd.Series(_names(source, frame["variable_id"].tolist()), dtype="str"))
    frame["variable_id"] = frame["variable_id"].astype("Int64").where(frame["variable_id"] != NOBODY)
    return frame.sort_values(["bytes", "variable_id"], ascending=[False, True], ignore_index=True)


def _in_stages(uses: Uses, stage_of_layer: Integers) -> pd.DataFrame:
    """Return which stage uses which allocation, each once, and which stage is the first to."""
    num_stages = int(stage_of_layer.max()) + 1
    pairs, at = np.unique(uses.allocation * num_stages + stage_of_layer[uses.layer], return_index=True)
    allocation = pairs // num_stages
    return pd.DataFrame(
        {
            "allocation": allocation,
            "from_stage": stage_of_layer[uses.writer[at]],
            "to_stage": pairs % num_stages,
            "variable_id": uses.variable[allocation],
            "bytes": uses.lifetimes.bytes[allocation],
            "always_live": uses.always_live[allocation],
        }
    )


def _names(source: TableSource, variables: list[int]) -> list[str]:
    if not source.captured("variables"):
        return [""] * len(variables)
    columns = source.arrow("variables", ["variable_id", "name"]).to_pydict()
    names = dict(zip(*columns.values(), strict=True))
    return [names.get(variable) or "" for variable in variables]
