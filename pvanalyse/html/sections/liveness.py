"""When the bytes are live: the curve, and the intervals of the variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from pvanalyse.analysis import liveness
from pvanalyse.analysis.columns import Integers
from pvanalyse.errors import NotCaptured
from pvanalyse.html.pack import exact
from pvanalyse.html.sections.source import Making
from pvanalyse.render.document import Unit


def curve(making: Making) -> dict[str, Any]:
    """Return live bytes at each step with its program, the peaks, the intervals of variables, and what always lives."""
    source, pack = making.report, making.pack
    frame = liveness.curve(source)
    kept = _kept(frame["bytes"].to_numpy(), making.limits.steps)
    if len(kept) < len(frame):
        making.left_out.append(
            f"Of {len(frame):,} steps {len(kept):,} are in this page: the lowest and the highest of each stretch."
        )
    seen = frame.iloc[kept]
    peaks = liveness.peaks(source, 10)
    columns = [("step", "Step", Unit.COUNT), ("bytes", "Live bytes", Unit.BYTES), ("program_type", "Type", Unit.TEXT),
               ("program_name", "Program", Unit.TEXT), ("operation", "Operation", Unit.TEXT),
               ("location", "Source", Unit.TEXT)]  # fmt: skip
    return {
        "numSteps": len(frame),
        "step": pack.whole(seen["step"]),
        "bytes": pack.whole(seen["bytes"]),
        "type": pack.texts(seen["program_type"]),
        "program": pack.texts(seen["program_name"]),
        "peaks": making.table(peaks, columns),
        "intervals": _intervals(making),
        "alwaysLive": _always_live(making),
    }


def _kept(size: Integers, most: int) -> Integers:
    """Return the positions of the steps that are kept: of each stretch the first lowest and the first highest."""
    if len(size) <= most:
        return np.arange(len(size))
    edges = np.linspace(0, len(size), max(1, most // 2) + 1).astype(np.int64)
    stretches = [(low, high) for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True) if low < high]
    lowest = [low + int(size[low:high].argmin()) for low, high in stretches]
    highest = [low + int(size[low:high].argmax()) for low, high in stretches]
    return np.unique([*lowest, *highest])


def _intervals(making: Making) -> dict[str, Any]:
    try:
        frame = liveness.lifetimes_frame(making.report)
    except NotCaptured as error:
        making.left_out.append(str(error))
        return {"missing": str(error)}
    kept = making.first(frame, making.limits.lifetimes, "intervals of variables")
    pack = making.pack
    return {
        "complete": len(kept) == len(frame),
        "name": pack.texts(kept["name"]),
        "variable": pack.whole(kept["variable_id"].fillna(-1).astype("int64")),
        "bytes": pack.whole(kept["bytes"]),
        "begin": pack.whole(kept["step_begin"]),
        "end": pack.whole(kept["step_end"]),
    }


def _always_live(making: Making) -> dict[str, Any]:
    try:
        frame = liveness.always_live_frame(making.report)
    except NotCaptured as error:
        return {"missing": str(error)}
    total = exact(sum(frame["bytes"].tolist()))
    frame = making.first(frame, making.limits.rows, "variables that are always live")
    columns = [("name", "Variable", Unit.TEXT), ("bytes", "Bytes", Unit.BYTES)]
    return {"total": total, "table": making.table(frame, columns)}
