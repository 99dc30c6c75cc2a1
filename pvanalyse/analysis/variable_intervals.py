"""When variables are live, as the report has it for a replica or as its allocations tell for chosen tiles."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, integers
from pvanalyse.analysis.memory_details import declared_names
from pvanalyse.analysis.selection import batches_on_tiles
from pvanalyse.errors import UsageError
from pvanalyse.tables import TableSource


def variable_intervals(source: TableSource) -> pd.DataFrame:
    """Return ``name``, ``variable_id`` (null: made by the compiler), ``bytes``, ``step_begin`` and ``step_end``.

    These are the rows of ``variable_liveness``: the intervals of each variable that is not always live, on a replica.
    """
    rows = source.arrow("variable_liveness")
    return pd.DataFrame(
        {
            "name": [name or "" for name in rows.column("name").to_pylist()],
            "variable_id": pd.array(rows.column("variable_id").to_pylist(), "Int64"),
            "bytes": integers(rows.column("bytes")),
            "step_begin": integers(rows.column("step_begin")),
            "step_end": integers(rows.column("step_end")),
        }
    )


def intervals_on(source: TableSource, tiles: Integers) -> pd.DataFrame:
    """Return the same and ``tile`` for chosen tiles, from the lowered variables, a row per allocation and interval."""
    columns = ["variable_id", "name", "tile", "bytes", "always_live", "equivalence_class_id"]
    parts = []
    for batch in batches_on_tiles(source, "lowered_variables", columns, tiles):
        live = ~batch.column("always_live").fill_null(False).to_numpy(zero_copy_only=False)
        live &= batch.column("equivalence_class_id").is_valid().to_numpy(zero_copy_only=False)
        parts.append(batch.filter(pa.array(live)))
    rows = pa.Table.from_batches(parts)
    frame = pd.DataFrame({name: integers(rows.column(name)) for name in ("tile", "bytes", "equivalence_class_id")})
    frame["name"] = pd.Series(declared_names(source, rows), dtype=str)
    frame["variable_id"] = pd.array(rows.column("variable_id").to_pylist(), "Int64")
    spans = source.arrow("equivalence_class_intervals")
    spans = spans.filter(spans.column("equivalence_class_id").is_valid())
    frame = frame.merge(
        pd.DataFrame({name: integers(spans.column(name)) for name in spans.column_names}), on="equivalence_class_id"
    )
    return frame[["name", "variable_id", "tile", "bytes", "step_begin", "step_end"]]


def declared_variables(source: TableSource) -> pd.DataFrame:
    """Return ``variable_id``, ``declared_name``, ``element_type`` and ``shape`` of the declared variables."""
    columns = {"variable_id": "variable_id", "declared_name": "name", "element_type": "element_type", "shape": "shape"}
    if not source.captured("variables"):
        return pd.DataFrame({name: pd.Series(dtype=object) for name in columns}).astype({"variable_id": "Int64"})
    rows = source.arrow("variables", list(columns.values()))
    frame = pd.DataFrame({ours: rows.column(theirs).to_pylist() for ours, theirs in columns.items()})
    return frame.astype({"variable_id": "Int64"})


def require_count(count: int, what: str) -> None:
    """Raise UsageError unless a number of things is at least 1."""
    if count < 1:
        raise UsageError(f"the number of {what} must be at least 1, not {count:,}")
