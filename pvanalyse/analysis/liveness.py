"""When the bytes are live: the curve over the compile-time steps, its peaks, and what makes them.

``liveness_steps`` and ``variable_liveness`` speak of one replica, and are there without lowered variables. What is
asked of chosen tiles or IPUs is computed from the lowered variables, see :mod:`pvanalyse.analysis.lifetimes`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers, integers, only_row
from pvanalyse.analysis.lifetimes import number_of_steps, read_lifetimes
from pvanalyse.analysis.memory import required_tile_memory, tiles_frame
from pvanalyse.analysis.memory_details import matching
from pvanalyse.analysis.origins import Origins
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.analysis.variable_intervals import declared_variables, intervals_on, require_count, variable_intervals
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table


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
    steps = source.arrow("liveness_steps")
    size = integers(steps.column("not_always_live_bytes"))
    at = int(np.argmax(size))  # the first of equals; the table is ordered by step
    step, program = (int(integers(steps.column(name))[at]) for name in ("step", "program_id"))
    return Peak(len(size), step, int(size[at]), program)


def live_at(source: TableSource, step: int) -> list[LiveVariable]:
    """Return the not-always-live variables that are live at a step, largest first; empty when not captured."""
    if not source.captured("variable_liveness"):
        return []
    rows = variable_intervals(source)
    sizes = rows[(rows["step_begin"] <= step) & (step < rows["step_end"])].groupby("name")["bytes"].sum()
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    return [LiveVariable(str(name), int(size)) for name, size in ordered]


def live_bytes_of_programs(source: TableSource) -> tuple[Integers, Integers]:
    """Return the programs of the liveness steps, ascending, and the bytes that are live when each runs.

    These are the ``not_always_live_bytes`` of its step, over the tiles of one replica; of a program with several
    steps, those of the largest, since an execution does not say which of them it is at. Both are empty when liveness
    was not captured.
    """
    if not source.captured("liveness_steps"):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    steps = source.arrow("liveness_steps", ["program_id", "not_always_live_bytes"])
    program, size = (integers(steps.column(name)) for name in steps.column_names)
    order = np.lexsort((size, program))
    last = np.append(np.flatnonzero(np.diff(program[order])), len(order) - 1)
    return program[order][last], size[order][last]


# --------------------------------------------------------------------------------------------- the curve, its peaks


def curve(
    source: TableSource,
    ipu: int | None = None,
    tiles: Integers | None = None,
    always_live: bool = False,
) -> pd.DataFrame:
    """Return the live bytes at each step.

    Parameters
    ----------
    source
        A report.
    ipu, tiles
        Only these tiles, computed from the lowered variables; by default one replica, as the report has it.
    always_live
        Add the always-live bytes of the same tiles.

    Returns
    -------
    pandas.DataFrame
        ``step``, ``program_id``, ``program_type``, ``program_name`` and ``bytes``.

    Raises
    ------
    NotCaptured
        The report has no liveness, or no lowered variables where they are needed.
    """
    steps = source.arrow("liveness_steps")
    frame = pd.DataFrame({name: integers(steps.column(name)) for name in ("step", "program_id")})
    frame = frame.join(_programs(source), on="program_id")[["step", "program_id", "program_type", "program_name"]]
    frame[["program_type", "program_name"]] = frame[["program_type", "program_name"]].fillna("")
    chosen = _tiles_of(source, ipu, tiles)
    if chosen is None:
        frame["bytes"] = integers(steps.column("not_always_live_bytes"))
    else:
        live = read_lifetimes(source)
        group = np.where(np.isin(live.tile, chosen), 0, -1)
        frame["bytes"] = live.curves(group, 1)[0][frame["step"].to_numpy()]
    if always_live:
        frame["bytes"] += _always_live_bytes(source, chosen)
    return frame


def peaks(source: TableSource, count: int = 1, tiles: Integers | None = None) -> pd.DataFrame:
    """Return the largest local peaks of the curve, largest first; a plateau counts once, at its first step.

    Parameters
    ----------
    source
        A report.
    count
        How many peaks.
    tiles
        The curve of these tiles, from the lowered variables; by default that of one replica.

    Returns
    -------
    pandas.DataFrame
        ``step``, ``bytes`` (not always live), ``program_id``, ``program_type``, ``program_name``,
        ``operation`` (the name of the program's outermost debug context) and ``location`` (``file:line``).
    """
    require_count(count, "peaks")
    steps = curve(source, tiles=tiles)
    size = steps["bytes"].to_numpy()
    starts = np.flatnonzero(np.diff(size, prepend=-1) != 0)
    level = np.concatenate(([-1], size[starts], [-1]))
    tops = starts[(level[1:-1] > level[:-2]) & (level[1:-1] > level[2:])]
    order = np.lexsort((tops, -size[tops]))[:count]
    found = steps.iloc[tops[order]].reset_index(drop=True)[
        ["step", "bytes", "program_id", "program_type", "program_name"]
    ]
    origins, contexts = Origins(source), _contexts_of_programs(source)
    of_program = [contexts.get(program) for program in found["program_id"].tolist()]
    found["operation"] = [origins.operation(context) for context in of_program]
    found["location"] = [origins.location(context) for context in of_program]
    return found


def tile_peaks(source: TableSource) -> pd.DataFrame:
    """Return every tile's own peak, all tiles at once.

    Returns
    -------
    pandas.DataFrame
        ``tile``, ``ipu``, ``peak_step`` (the first that reaches it), ``peak_bytes`` (not always live), the tile's
        ``always_live_bytes``, ``peak_total_bytes`` (both), and ``stored_bytes``: the peak that the report itself
        gives for the tile.

    Raises
    ------
    NotCaptured
        The report has no lowered variables.
    """
    live = read_lifetimes(source)
    memory = required_tile_memory(source)
    tiles = tiles_frame(source)
    frame = tiles[["tile", "ipu"]].copy()
    frame["peak_bytes"], frame["peak_step"] = live.peaks(live.group_of(memory["tile"]), len(frame))
    frame = frame[["tile", "ipu", "peak_step", "peak_bytes"]]
    frame["always_live_bytes"] = tiles["always_live_bytes"]
    frame["peak_total_bytes"] = frame["peak_bytes"] + frame["always_live_bytes"]
    frame["stored_bytes"] = tiles["not_always_live_bytes"]
    return frame


def headroom(source: TableSource, tiles: Integers) -> pd.DataFrame:
    """Return the bytes that are still free on chosen tiles at each step.

    Returns
    -------
    pandas.DataFrame
        Index ``step``, a column per tile: the tile's memory less always-live and live bytes. Gaps, which depend on
        addresses and not on steps, are left out.
    """
    memory = required_tile_memory(source)
    if memory.bytes_per_tile is None:
        raise NotCaptured("target", table("target").capture)
    live = read_lifetimes(source)
    free = memory.bytes_per_tile - tiles_frame(source, tiles)["always_live_bytes"].to_numpy()
    frame = pd.DataFrame(free - live.curves(live.group_of(tiles), len(tiles)).T, columns=tiles)
    return frame.rename_axis(index="step")


# ---------------------------------------------------------------------------------------------------- the variables


def live_at_frame(source: TableSource, step: int, tiles: Integers | None = None) -> pd.DataFrame:
    """Return the variables that are live at a step, largest first.

    Parameters
    ----------
    source
        A report.
    step
        The step.
    tiles
        Count only bytes on these tiles, from the lowered variables; by default those of one replica.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``variable_id`` (null: made by the compiler), ``bytes``, ``element_type``, ``shape``, and the
        ``step_begin`` and ``step_end`` of the interval that holds the step.

    Raises
    ------
    UsageError
        There is no such step.
    """
    _require_step(source, step)
    rows = variable_intervals(source) if tiles is None else intervals_on(source, tiles)
    live = rows[(rows["step_begin"] <= step) & (step < rows["step_end"])]
    key = live["variable_id"].fillna(-1)
    together = live.groupby([key.rename("key"), "name"], sort=False, as_index=False).agg(
        variable_id=("variable_id", "first"),
        bytes=("bytes", "sum"),
        step_begin=("step_begin", "min"),
        step_end=("step_end", "max"),
    )
    together = together.merge(declared_variables(source), on="variable_id", how="left")
    columns = ["name", "variable_id", "bytes", "element_type", "shape", "step_begin", "step_end"]
    return together[columns].sort_values(["bytes", "name"], ascending=[False, True], ignore_index=True)


def lifetimes_frame(source: TableSource, pattern: str | None = None, count: int | None = None) -> pd.DataFrame:
    """Return when variables are live, on one replica, the largest variables first.

    Parameters
    ----------
    source
        A report.
    pattern
        Only variables whose name this regular expression is found in.
    count
        Only the largest so many variables.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``variable_id``, ``bytes``, ``step_begin`` and ``step_end``, a row per interval.
    """
    if count is not None:
        require_count(count, "variables")
    rows = variable_intervals(source)
    rows = rows[matching(rows["name"], pattern)]
    largest = rows.groupby(["name", "variable_id"], dropna=False)["bytes"].transform("max")
    order = [-largest, rows["name"], rows["variable_id"]]
    rows = rows.assign(rank=pd.concat(order, axis=1, keys=[0, 1, 2]).groupby([0, 1, 2], dropna=False).ngroup())
    if count is not None:
        rows = rows[rows["rank"] < count]
    return rows.sort_values(["rank", "step_begin"], ignore_index=True)[
        ["name", "variable_id", "bytes", "step_begin", "step_end"]
    ]


def difference(source: TableSource, first: int, second: int) -> pd.DataFrame:
    """Return what is live at one step and not, or less, at another.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``first_bytes``, ``second_bytes`` and ``change_bytes`` of the variables that differ, most first.
    """
    sizes = [live_at_frame(source, step).groupby("name")["bytes"].sum() for step in (first, second)]
    names = sizes[0].index.union(sizes[1].index)
    columns = zip(("first_bytes", "second_bytes"), sizes, strict=True)
    frame = pd.DataFrame({column: size.reindex(names, fill_value=0) for column, size in columns})
    frame["change_bytes"] = frame["second_bytes"] - frame["first_bytes"]
    frame = frame[frame["change_bytes"] != 0].rename_axis("name").reset_index()
    order = np.lexsort((frame["name"].to_numpy(str), -frame["change_bytes"].abs()))
    return frame.iloc[order].reset_index(drop=True)


def always_live_frame(source: TableSource) -> pd.DataFrame:
    """Return what is live all the time: ``name``, ``variable_id``, ``bytes``; code and state under their category."""
    rows = source.arrow("always_live_variables")
    frame = pd.DataFrame(
        {
            "name": [name or "" for name in rows.column("name").to_pylist()],
            "variable_id": pd.array(rows.column("variable_id").to_pylist(), "Int64"),
            "bytes": integers(rows.column("bytes")),
        }
    )
    return frame.sort_values(["bytes", "name"], ascending=[False, True], ignore_index=True)


# -------------------------------------------------------------------------------------------------------- the parts


def _require_step(source: TableSource, step: int) -> None:
    last = number_of_steps(source) - 1
    if not 0 <= step <= last:
        raise UsageError(f"there is no step {step:,}; the report has steps 0 to {last:,}")


def _tiles_of(source: TableSource, ipu: int | None, tiles: Integers | None) -> Integers | None:
    if ipu is None:
        return tiles
    return select_tiles(source, None if tiles is None else tiles.tolist(), ipu)


def _always_live_bytes(source: TableSource, tiles: Integers | None) -> int:
    frame = tiles_frame(source, tiles)
    if tiles is None:  # one replica
        frame = frame.iloc[: len(frame) // max(1, int(only_row(source, "target").get("num_replicas", 1)))]
    return int(frame["always_live_bytes"].sum())


def _programs(source: TableSource) -> pd.DataFrame:
    """Return ``program_type`` and ``program_name`` by program id."""
    names = {"program_type": "type", "program_name": "name"}
    if not source.captured("programs"):
        return pd.DataFrame({name: pd.Series(dtype=str) for name in names})
    programs = source.arrow("programs", ["program_id", "type", "name"])
    texts = {ours: [text or "" for text in programs.column(theirs).to_pylist()] for ours, theirs in names.items()}
    return pd.DataFrame(texts, index=integers(programs.column("program_id")))


def _contexts_of_programs(source: TableSource) -> dict[int, int | None]:
    if not source.captured("programs"):
        return {}
    columns = source.arrow("programs", ["program_id", "debug_context_id"]).to_pydict()
    return dict(zip(columns["program_id"], columns["debug_context_id"], strict=True))
