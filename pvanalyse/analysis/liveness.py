"""When the bytes are live: the peak over the compile-time steps, and what makes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pvanalyse.analysis.columns import integers
from pvanalyse.tables import TableSource


@dataclass(frozen=True, slots=True)
class Peak:
    """The step at which the most not-always-live memory is in use, on one replica.

    Attributes
    ----------
    num_steps
        Compile-time steps.
    step
        The first step that reaches the peak.
    not_always_live_bytes
        Bytes at that step, over the tiles of one replica.
    program_id
        The program of that step.
    """

    num_steps: int
    step: int
    not_always_live_bytes: int
    program_id: int


@dataclass(frozen=True, slots=True)
class LiveVariable:
    """A variable and its bytes over the tiles of one replica."""

    name: str
    bytes: int


def liveness_peak(source: TableSource) -> Peak | None:
    """Return the liveness peak, None when liveness was not captured."""
    if not source.captured("liveness_steps"):
        return None
    table = source.arrow("liveness_steps")
    size = integers(table.column("not_always_live_bytes"))
    at = int(np.argmax(size))  # the first of equals; the table is ordered by step
    step, program = (int(integers(table.column(name))[at]) for name in ("step", "program_id"))
    return Peak(len(size), step, int(size[at]), program)


def live_at(source: TableSource, step: int) -> list[LiveVariable]:
    """Return the not-always-live variables that are live at a step, largest first; empty when not captured."""
    if not source.captured("variable_liveness"):
        return []
    sizes: dict[str, int] = {}
    for batch in source.batches("variable_liveness", ["name", "step_begin", "step_end", "bytes"]):
        begin, end = integers(batch.column("step_begin")), integers(batch.column("step_end"))
        rows = np.flatnonzero((begin <= step) & (step < end))
        live = batch.take(rows)
        for name, size in zip(live.column("name").to_pylist(), integers(live.column("bytes")).tolist(), strict=True):
            sizes[name] = sizes.get(name, 0) + size
    return [LiveVariable(name, size) for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))]
