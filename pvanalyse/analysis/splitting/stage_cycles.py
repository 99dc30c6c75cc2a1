"""How long the layers of a program take: measured where it ran, and as the compiler estimated it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import integers
from pvanalyse.analysis.execution_details import by_program
from pvanalyse.analysis.execution_trace import read_trace
from pvanalyse.analysis.memory_details import compute_sets_frame, exchanges_frame
from pvanalyse.analysis.splitting.layers import Layers
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import TableSource


def cycles_of_layers(source: TableSource, layers: Layers) -> pd.DataFrame:
    """Return the cycles of each layer.

    Returns
    -------
    pandas.DataFrame
        A row per layer: ``cycles`` of all executed steps of its programs, and ``estimated_cycles`` of running each of
        its compute sets and exchanges once, as long as the slowest tile takes; null where nothing is known.
    """
    columns = {"cycles": _measured, "estimated_cycles": _estimated}
    return pd.DataFrame({name: _of_layers(source, layers, made) for name, made in columns.items()})


def _of_layers(source: TableSource, layers: Layers, made: Callable[[TableSource], pd.Series[int]]) -> pd.Series[int]:
    try:
        by_id = made(source)
    except NotCaptured:
        return pd.Series([pd.NA] * len(layers), dtype="Int64")
    ids = source.arrow("programs", ["program_id"]).column(0)
    program = pd.Series(integers(ids)).map(by_id).fillna(0).to_numpy(np.int64)
    sums = np.zeros(len(layers) + 1, np.int64)
    np.add.at(sums, layers.of_program, program)  # those of no layer come last
    return pd.Series(sums[:-1], dtype="Int64")


def _measured(source: TableSource) -> pd.Series[int]:
    """Return cycles by program id."""
    frame = by_program(read_trace(source))
    by_id: pd.Series[int] = frame.dropna(subset="program_id").groupby("program_id")["cycles"].sum()
    return by_id


def _estimated(source: TableSource) -> pd.Series[int]:
    sets = compute_sets_frame(source).set_index("compute_set_id")["max_estimated_cycles"]
    rows = source.arrow("programs", ["program_id", "compute_set_id"]).to_pandas()
    computing = rows.set_index("program_id")["compute_set_id"].dropna().map(sets).dropna()
    exchanging = exchanges_frame(source).set_index("program_id")["max_estimated_cycles"]
    by_id: pd.Series[int] = pd.concat([computing, exchanging]).astype(np.int64).groupby(level=0).sum()
    return by_id
