"""When the bytes are live, for people and programs: a part for each way to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pvanalyse.render.document import Section, Unit
from pvanalyse.render.parts import Part, Rows, Shown, bar, grid, largest, listed, listing, records
from pvanalyse.units import ByteUnits, format_bytes

if TYPE_CHECKING:
    import pandas as pd

_BAR = 20  # characters
_STRETCHES = 24

_PEAKS = (
    Shown("Step", "step", Unit.COUNT),
    Shown("Live", "bytes", Unit.BYTES),
    Shown("With always live", "with_always_live_bytes", Unit.BYTES),
    Shown("Program", "program_name"),
    Shown("Operation", "operation"),
    Shown("Source", "location"),
)
_LIVE = (
    Shown("Variable", "name"),
    Shown("Size", "bytes", Unit.BYTES),
    Shown("Type", "element_type"),
    Shown("Shape", "shape"),
    Shown("Live in steps", "steps"),
)
_ALWAYS_LIVE = (Shown("Variable", "name"), Shown("Size", "bytes", Unit.BYTES))
_TILES = (
    Shown("Tile", "tile", Unit.COUNT),
    Shown("IPU", "ipu", Unit.COUNT),
    Shown("Peak at step", "peak_step", Unit.COUNT),
    Shown("Live then", "peak_bytes", Unit.BYTES),
    Shown("Always live", "always_live_bytes", Unit.BYTES),
    Shown("Together", "peak_total_bytes", Unit.BYTES),
)
_CURVE = (
    Shown("Steps", "steps"),
    Shown("Most", "bytes", Unit.BYTES),
    Shown("", "bar", prose=True, drawing=True),
    Shown("At", "step", Unit.COUNT),
    Shown("In program", "program_name"),
)
_FP16 = (
    Shown("Variable", "name"),
    Shown("Size", "bytes", Unit.BYTES),
    Shown("Saving", "saving_bytes", Unit.BYTES),
    Shown("Tiles", "num_tiles", Unit.COUNT),
    Shown("Most on tile", "largest_tile", Unit.COUNT),
    Shown("Saving there", "largest_tile_saving_bytes", Unit.BYTES),
)
_LIFETIMES = (
    Shown("Variable", "name"),
    Shown("Size", "bytes", Unit.BYTES),
    Shown("Live in steps", "steps"),
)
_DIFFERENCE = (
    Shown("Variable", "name"),
    Shown("First", "first_bytes", Unit.BYTES),
    Shown("Second", "second_bytes", Unit.BYTES),
    Shown("Change", "change_bytes", Unit.BYTES),
)
_REDUCTION = (
    Shown("Variable", "name"),
    Shown("Size", "bytes", Unit.BYTES),
    Shown("Live at step", "at_step", Unit.COUNT),
    Shown("Peak then", "peak_after_bytes", Unit.BYTES),
    Shown("At step", "peak_after_step", Unit.COUNT),
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What the bytes are counted over.

    Attributes
    ----------
    num_tiles
        How many tiles were chosen, None for one replica.
    """

    num_tiles: int | None = None

    def __str__(self) -> str:
        if self.num_tiles is None:
            return "one replica"
        return "the tile chosen" if self.num_tiles == 1 else f"the {self.num_tiles:,} tiles chosen"


def verdict(peaks: pd.DataFrame, scope: Scope, byte_units: ByteUnits) -> str:
    """Say where the highest peak is and what runs there.

    Parameters
    ----------
    peaks
        Of :func:`pvanalyse.analysis.liveness.peaks`, perhaps with ``with_always_live_bytes``.
    scope
        What they are counted over.
    byte_units
        Units for the sizes in the sentence.
    """
    if not len(peaks):
        return f"Nothing but what is always live is ever live, over {scope}."
    top = records(peaks.head(1))[0]
    sentence = f"The peak is at step {top['step']:,}: {format_bytes(top['bytes'], byte_units)} not always live"
    if "with_always_live_bytes" in top:
        sentence += f", {format_bytes(top['with_always_live_bytes'], byte_units)} with what is"
    sentence += f", over {scope}"
    if top["program_type"] or top["program_name"]:
        sentence += f"; it is in {top['program_type']} {top['program_name'] or '(no name)'}"
    if top.get("location"):
        sentence += f", from {top['location']}"
    return f"{sentence}."


def peaks(frame: pd.DataFrame, scope: Scope, rows: Rows) -> Part:
    """Return the highest peaks."""
    return listing("peaks", f"Peaks over {scope}", frame, _PEAKS, rows, "Nothing is ever live but what always is.")


def at_peak(step: int, frame: pd.DataFrame, scope: Scope, rows: Rows) -> Part:
    """Return the variables that are live at the peak."""
    return _live("at_peak", f"Largest variables at the peak, step {step:,}, over {scope}", step, frame, rows)


def at_step(step: int, frame: pd.DataFrame, scope: Scope, rows: Rows) -> Part:
    """Return the variables that are live at a step."""
    return _live("at_step", f"Variables live at step {step:,}, over {scope}", step, frame, rows)


def _live(key: str, title: str, step: int, frame: pd.DataFrame, rows: Rows) -> Part:
    nothing = f"No variable is live at step {step:,}, but those that always are."
    chosen = rows.of(frame)
    data = {
        "step": step,
        "bytes": sum(frame["bytes"].tolist()),
        "num_variables": len(frame),
        "variables": records(chosen),
    }
    return Part(key, listed(title, _with_steps(frame), _LIVE, rows, nothing), data, chosen)


def _with_steps(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the steps as people count them: to the last one."""
    steps = zip(frame["step_begin"].tolist(), frame["step_end"].tolist(), strict=True)
    return frame.assign(steps=[f"{begin}-{end - 1}" for begin, end in steps])


def always_live(frame: pd.DataFrame, scope: str, rows: Rows) -> Part:
    """Return what is live all the time."""
    title = f"Largest always-live variables, over {scope}"
    return listing("always_live", title, frame, _ALWAYS_LIVE, rows, "Nothing is always live.")


def tiles(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the tiles whose own peak, with what is always live, is highest."""
    ordered = frame.sort_values(["peak_total_bytes", "tile"], ascending=[False, True], ignore_index=True)
    return listing("tiles", "Tiles with the highest peaks of their own", ordered, _TILES, rows, "There are no tiles.")


def curve(frame: pd.DataFrame, scope: Scope, always_live: str, rows: Rows) -> Part:
    """Return the live bytes at each step; people see the most of each stretch of steps, with bars.

    Parameters
    ----------
    frame
        Of :func:`pvanalyse.analysis.liveness.curve`.
    scope, always_live
        What they are counted over, and whether what is always live is among it: "with" or "without".
    rows
        How many stretches.
    """
    stretches = np.array_split(np.arange(len(frame)), min(len(frame), rows.top or _STRETCHES))
    size, step = frame["bytes"].to_numpy(), frame["step"].to_numpy()
    tops = [int(one[size[one].argmax()]) for one in stretches]
    most = max(size[tops].tolist(), default=0)
    shown = frame.iloc[tops].assign(
        steps=[f"{step[one[0]]}-{step[one[-1]]}" for one in stretches],
        bar=[bar(value, most, _BAR) for value in size[tops].tolist()],
    )
    title = f"Curve over {len(frame):,} steps, {always_live} what is always live, over {scope}"
    sentences = [] if len(frame) == len(stretches) else ["Each row is the highest of its steps; JSON and CSV have all."]
    section = Section(title, grids=[grid("", shown, _CURVE)], sentences=sentences)
    return Part("curve", section, records(frame), frame)


def fp16(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return single-precision variables that half precision would make smaller where memory is tightest."""
    on_tiles = frame["largest_tile"].notna().any()
    where = "on the fullest tiles, each at its peak" if on_tiles or not len(frame) else "at the peak, over one replica"
    title = f"FP16 candidates: float variables {where}"
    return listing("fp16", title, frame, _FP16, rows, "No single-precision variable is live there.")


def lifetimes(frame: pd.DataFrame, pattern: str, rows: Rows) -> Part:
    """Return when the variables that match a pattern are live."""
    nothing = f"No variable that is not always live has a name that matches '{pattern}'."
    section = listed(f"Lifetimes of variables that match '{pattern}'", _with_steps(frame), _LIFETIMES, rows, nothing)
    chosen = rows.of(frame)
    return Part("lifetimes", section, records(chosen), chosen)


def difference(first: int, second: int, frame: pd.DataFrame, rows: Rows) -> Part:
    """Return what is live at one step and not, or less, at another."""
    nothing = f"The same variables are live at steps {first:,} and {second:,}."
    section = listed(f"Changes from step {first:,} to step {second:,}", frame, _DIFFERENCE, rows, nothing)
    chosen = rows.of(frame)
    data = {
        "first_step": first,
        "second_step": second,
        "change_bytes": sum(frame["change_bytes"].tolist()),
        "variables": records(chosen),
    }
    return Part("difference", section, data, chosen)


def reduction(reduce_by: int, steps: pd.DataFrame, frame: pd.DataFrame, byte_units: ByteUnits, rows: Rows) -> Part:
    """Return variables without which the peak would be lower.

    Parameters
    ----------
    reduce_by
        Bytes that it should be lower by.
    steps
        The curve, without what is always live.
    frame
        Of :func:`pvanalyse.analysis.peak_reduction.explain_peak`.
    byte_units
        Units for the sizes in sentences.
    rows
        How many.
    """

    def size(value: int) -> str:
        return format_bytes(value, byte_units)

    before = largest(steps, "bytes")["bytes"] if len(steps) else 0
    after = int(frame["peak_after_bytes"].iloc[-1]) if len(frame) else before
    reached = before - after >= reduce_by
    title = f"What to free or shrink to lower the peak by {size(reduce_by)}, one after the other"
    listed_ = listed(title, frame, _REDUCTION, rows, "Nothing can be freed.")
    these = "it" if len(frame) == 1 else f"these {len(frame):,}"
    change = f"Without {these} the peak is {size(after)} instead of {size(before)}"
    outcome = f"{change}." if reached else f"{change}: it cannot be {size(reduce_by)} lower."
    section = Section(listed_.title, (), listed_.grids, [*listed_.sentences, outcome])
    chosen = rows.of(frame)
    data = {
        "reduce_by_bytes": reduce_by,
        "peak_bytes": before,
        "peak_after_bytes": after,
        "reached": reached,
        "variables": records(chosen),
    }
    return Part("reduction", section, data, chosen)
