"""Plots of when the bytes are live: the curve over the steps, what makes its peak, and lifetimes of variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pvanalyse.analysis import liveness as analysis
from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.memory import tiles_frame
from pvanalyse.analysis.selection import select_tiles
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import (
    caption,
    label,
    legend,
    name_width,
    new_axes,
    pixel_columns,
    row_labels,
    titles,
)
from pvanalyse.plots.palette import ACCENT, INK, LIMIT, PARTS, REST
from pvanalyse.plots.scales import byte_axis, count_axis
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted, format_bytes, format_fraction


def liveness(
    source: TableSource,
    always_live: bool = False,
    tiles: str | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    worst: int | None = None,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw the live bytes at each step of the program, and what runs at the peak.

    With more steps than there are pixels, each column shows the most of its steps, which the caption says.

    Parameters
    ----------
    source
        A report.
    always_live
        Show what is always live below.
    tiles, ipu, worst
        Which tiles, see :func:`pvanalyse.analysis.selection.select_tiles`; by default those of one replica.
    units
        Of the ticks: ``binary``, ``si`` or ``bytes``.
    ax
        Axes to draw into; by default those of a new figure.

    Raises
    ------
    UsageError
        There is no such tile.
    NotCaptured
        The report has no liveness, or no lowered variables when tiles are chosen.
    """
    chosen = select_tiles(source, tiles, ipu, worst)
    curve = analysis.curve(source, tiles=chosen)
    live = curve["bytes"].to_numpy()
    base = _always_live_bytes(source, chosen, curve) if always_live else 0
    ax = new_axes(ax, KINDS["liveness"].size)
    starts = np.arange(0, len(live), -(-len(live) // pixel_columns(ax)))
    edges = np.append(starts, len(live)) + float(curve["step"].iloc[0])
    ax.stairs(
        np.maximum.reduceat(live, starts) + base, edges, fill=True, baseline=0, **PARTS["not_always_live"].patch()
    )
    handles = [Patch(label="not always live", **PARTS["not_always_live"].patch())]
    if always_live:
        ax.stairs(np.full(len(starts), base), edges, fill=True, baseline=0, **PARTS["always_live"].patch())
        handles.append(Patch(label="always live", **PARTS["always_live"].patch()))
    at = int(live.argmax())
    step, top = int(curve["step"].iloc[at]), int(live[at]) + base
    ax.plot([step + 0.5], [top], marker="v", color=INK, markersize=7, linestyle="none", clip_on=False, label="peak")
    ax.set_ylim(0, max(1, top) * 1.06)
    ax.set_xlim(edges[0], edges[-1])
    byte_axis(ax.yaxis, units)
    count_axis(ax.xaxis)
    ax.set_xlabel("step")
    most = int(starts[1]) if len(starts) > 1 else 1
    caption(ax, [f"each column shows the most of {most} steps" if most > 1 else ""])
    where = _where(chosen, tiles, ipu, worst)
    size = f"{format_bytes(top, units)}{' with what is always live' if always_live else ''}"
    program = _program(source, curve.iloc[at], everything=chosen is None)
    titles(ax, f"Live memory of {where}", f"peak: {size} at step {step:,}\n{program}")
    legend(ax, [*ax.get_legend_handles_labels()[0], *handles])
    return ax


def peak_variables(
    source: TableSource,
    step: int | None = None,
    count: int = 20,
    tiles: str | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    worst: int | None = None,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest not-always-live variables that are live at a step, the peak by default.

    Parameters
    ----------
    source
        A report.
    step
        Another step than the peak.
    count
        How many variables have a bar of their own; one more bar stands for the rest.
    tiles, ipu, worst, units, ax
        See :func:`liveness`.

    Raises
    ------
    UsageError
        There is no such step or tile, or nothing to count.
    NotCaptured
        The report has no liveness of variables, or no lowered variables when tiles are chosen.
    """
    _require_count(count)
    chosen = select_tiles(source, tiles, ipu, worst)
    at = _peak_step(source) if step is None and chosen is None else step
    if at is None:
        curve = analysis.curve(source, tiles=chosen)
        at = int(curve["step"].iloc[int(curve["bytes"].to_numpy().argmax())])
    live = analysis.live_at_frame(source, at, chosen)
    ax = new_axes(ax, KINDS["peak-variables"].size)
    shown, rest = live.iloc[:count], live.iloc[count:]
    names = [label(name or "(no name)", name_width(ax)) for name in shown["name"]]
    sizes = [int(size) for size in shown["bytes"]]
    kinds = [_type_and_shape(kind, shape) for kind, shape in zip(shown["element_type"], shown["shape"], strict=True)]
    if len(rest):
        names.append(counted(len(rest), "more variable"))
        sizes.append(int(rest["bytes"].sum()))
        kinds.append("")
    ax.barh(range(len(sizes)), sizes, height=0.75, color=[ACCENT] * len(shown) + [REST] * (len(sizes) - len(shown)))
    total = int(live["bytes"].sum())
    numbers = [
        f"{format_bytes(size, units)}  {format_fraction(size / max(1, total))}{f'  {kind}' if kind else ''}"
        for size, kind in zip(sizes, kinds, strict=True)
    ]
    row_labels(ax, names, numbers=numbers)
    byte_axis(ax.xaxis, units)
    ax.set_xlim(0, max([1, *sizes]) * 1.02)
    ax.set_xlabel("bytes")
    where = _where(chosen, tiles, ipu, worst)
    title = f"Largest variables at {'the peak, ' if step is None else ''}step {at:,}"
    titles(ax, title, f"{format_bytes(total, units)} not always live on {where}, in {counted(len(live), 'variable')}")
    return ax


def lifetimes(
    source: TableSource,
    pattern: str | None = None,
    count: int = 30,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw when the largest variables are live, on one replica, a row for each.

    Parameters
    ----------
    source
        A report.
    pattern
        Only variables whose name this regular expression is found in.
    count
        Number of variables.
    units, ax
        See :func:`liveness`.

    Raises
    ------
    UsageError
        No variable matches, or nothing to count.
    NotCaptured
        The report has no liveness of variables.
    """
    _require_count(count)
    frame = analysis.lifetimes_frame(source, pattern, count)
    if not len(frame):
        raise UsageError(f"no variable that is not always live has a name with '{pattern}' in it")
    peak = _peak_step(source) if source.captured("liveness_steps") else None
    ax = new_axes(ax, KINDS["lifetimes"].size)
    names = list(dict.fromkeys(frame["name"]))
    row = frame["name"].map({name: at for at, name in enumerate(names)}).to_numpy(np.int64)
    begin, end = frame["step_begin"].to_numpy(), frame["step_end"].to_numpy()
    at_peak = np.zeros(len(frame), bool) if peak is None else (begin <= peak) & (peak < end)
    colours = np.where(at_peak, ACCENT, "#7FB5D6")
    # The edge keeps a lifetime of one step among thousands visible.
    ax.barh(row, end - begin, left=begin, height=0.7, color=colours, edgecolor=colours, linewidth=0.6)
    sizes = frame.groupby("name")["bytes"].max()
    numbers = [format_bytes(int(sizes[name]), units) for name in names]
    row_labels(ax, [label(name or "(no name)", name_width(ax)) for name in names], numbers=numbers)
    ax.set_xlim(0, _num_steps(source, int(end.max())))
    count_axis(ax.xaxis)
    ax.set_xlabel("step")
    if peak is not None:
        line = ax.axvline(peak + 0.5, color=LIMIT, linewidth=1.0, linestyle="-.", label=f"peak, step {peak:,}")
        handles: list[Patch | Line2D] = [line, Patch(color=ACCENT, label="live then")]
        if not at_peak.all():
            handles.append(Patch(color="#7FB5D6", label="not then"))
        legend(ax, handles, loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=3)
    matching = f" with '{label(pattern, 24)}' in the name" if pattern else ""
    titles(ax, f"Lifetimes of the largest variables{matching}", " ")  # the legend takes the place of a remark
    return ax


# ------------------------------------------------------------------------------------------------------- the parts


def _always_live_bytes(source: TableSource, chosen: Integers | None, curve: pd.DataFrame) -> int:
    if chosen is not None:  # a second curve would read the lowered variables again
        return int(tiles_frame(source, chosen)["always_live_bytes"].sum())
    both = analysis.curve(source, always_live=True)
    return int(both["bytes"].iloc[0] - curve["bytes"].iloc[0])


def _where(
    chosen: Integers | None,
    tiles: str | Sequence[int] | None,
    ipu: int | Sequence[int] | None,
    worst: int | None,
) -> str:
    """Name the tiles that were asked for."""
    if chosen is None:
        return "one replica"
    ipus = [] if ipu is None else [ipu] if isinstance(ipu, int) else list(ipu)
    if len(ipus) == 1 and tiles is None and worst is None:
        return f"IPU {ipus[0]}"
    return f"tile {int(chosen[0]):,}" if len(chosen) == 1 else counted(len(chosen), "tile")


def _peak_step(source: TableSource) -> int:
    peak = analysis.liveness_peak(source)
    if peak is None:
        from pvanalyse.tables import table

        raise NotCaptured("liveness_steps", table("liveness_steps").capture)
    return peak.step


def _num_steps(source: TableSource, at_least: int) -> int:
    return max(source.count("liveness_steps"), at_least)


def _program(source: TableSource, step: pd.Series, *, everything: bool) -> str:
    """Say what runs at a step, and which operation it belongs to where the report knows."""
    text = f"{step['program_type']} {step['program_name']}".strip()
    parts = [label(text, 90)]
    if everything:
        peak = analysis.peaks(source)
        if len(peak) and int(peak["step"].iloc[0]) == int(step["step"]):
            found = [peak["operation"].iloc[0], peak["location"].iloc[0]]
            parts += [label(one, 50) for one in found if one]
    return " · ".join(part for part in parts if part)


def _type_and_shape(kind: object, shape: object) -> str:
    return label("".join(one for one in (kind, shape) if isinstance(one, str)), 24)


def _require_count(count: int) -> None:
    if count < 1:
        raise UsageError(f"the number of variables must be at least 1, not {count}")
