"""Plots of where the cycles go: cycles by type of program, imbalance, and bandwidth over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from pvanalyse.analysis import execution_efficiency
from pvanalyse.analysis.columns import only_row
from pvanalyse.analysis.execution_trace import KINDS, Trace, copy_paths, read_trace
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.errors import UsageError
from pvanalyse.plots import KINDS as PLOTS
from pvanalyse.plots.figures import caption, label, legend, name_width, new_axes, row_labels, titles
from pvanalyse.plots.palette import ACCENT, INK, REST, Style
from pvanalyse.plots.scales import byte_axis, count_axis
from pvanalyse.plots.time_axis import Window, several, spread
from pvanalyse.plots.timeline import COLOURS
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted, format_bytes, format_count, format_fraction

_HATCHES = {"StreamCopyBegin": "////", "StreamCopyEnd": "....", "SyncAns": "////", "ExternalSync": "...."}
_LINES = {"host in": "#009E73", "host out": "#56B4E9", "remote in": "#CC79A7", "remote out": "#E69F00",
          "inter-IPU out": "#D55E00"}  # fmt: skip


def cycles_by_type(
    source: TableSource,
    run: int | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    units: ByteUnits = "binary",  # noqa: ARG001
    ax: Axes | None = None,
) -> Axes:
    """Draw the cycles of each IPU's steps, stacked by type of program.

    Steps of different tiles run at the same time, so they add up to more than the time that passed.

    Parameters
    ----------
    source
        A report.
    run, ipu, units, ax
        See :func:`pvanalyse.plots.timeline.timeline`.

    Raises
    ------
    UsageError
        There is no such run or IPU.
    NotCaptured
        The report has no execution.
    """
    cells = _trace(source, run, ipu).cells
    ipus = sorted(set(cells["ipu"]))
    by_type = cells.groupby(["kind", "type"])
    cycles = {(str(kind), str(name)): part.groupby("ipu")["cycles"].sum() for (kind, name), part in by_type}
    order = sorted(cycles, key=lambda key: (KINDS.index(key[0]), -int(cycles[key].sum()), key[1]))
    ax = new_axes(ax, PLOTS["cycles-by-type"].size)
    left = np.zeros(len(ipus), np.int64)
    handles = []
    total = max(1, int(cells["cycles"].sum()))
    for kind, name in order:
        width = cycles[kind, name].reindex(ipus, fill_value=0).to_numpy(np.int64)
        style = Style(COLOURS[kind], _HATCHES.get(name, "")).patch()
        ax.barh(range(len(ipus)), width, left=left, height=0.75, **style)
        left = left + width
        handles.append(Patch(label=f"{label(name, 32)}  {format_fraction(int(width.sum()) / total)}", **style))
    row_labels(ax, [f"IPU {number}" for number in ipus], numbers=[format_count(int(one)) for one in left])
    ax.set_xlim(0, max([1, *left.tolist()]) * 1.02)
    count_axis(ax.xaxis)
    ax.set_xlabel("cycles of all steps")
    legend(ax, handles, bbox_to_anchor=(1.12, 1.0))
    titles(
        ax, "Cycles by type of program", "steps of different tiles run at the same time: the sum is not the duration"
    )
    return ax


def imbalance(
    source: TableSource,
    count: int = 20,
    run: int | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    units: ByteUnits = "binary",  # noqa: ARG001
    ax: Axes | None = None,
) -> Axes:
    """Draw the programs whose tiles wait the most for the slowest of them.

    Parameters
    ----------
    source
        A report.
    count
        How many programs have a bar of their own; one more bar stands for the rest.
    run, ipu, units, ax
        See :func:`pvanalyse.plots.timeline.timeline`.

    Raises
    ------
    UsageError
        There is no such run or IPU, or nothing to count.
    NotCaptured
        The report has no execution.
    """
    if count < 1:
        raise UsageError(f"the number of programs must be at least 1, not {count}")
    lost = execution_efficiency.imbalance(_trace(source, run, ipu))
    ax = new_axes(ax, PLOTS["imbalance"].size)
    shown, rest = lost[lost["lost_cycles"] > 0].iloc[:count], lost[lost["lost_cycles"] > 0].iloc[count:]
    names = [
        label(name or kind or "(no name)", name_width(ax))
        for name, kind in zip(shown["name"], shown["type"], strict=True)
    ]
    bars = shown["lost_cycles"].tolist()
    numbers = [f"{one:,.0f}  {format_fraction(part)}" for one, part in zip(bars, shown["lost_fraction"], strict=True)]
    if len(rest):
        names.append(counted(len(rest), "more program"))
        bars.append(float(rest["lost_cycles"].sum()))
        numbers.append(f"{bars[-1]:,.0f}")
    ax.barh(range(len(bars)), bars, height=0.75, color=[ACCENT] * len(shown) + [REST] * (len(bars) - len(shown)))
    row_labels(ax, names, numbers=numbers)
    count_axis(ax.xaxis)
    ax.set_xlim(0, max([1.0, *bars]) * 1.02)
    ax.set_xlabel("cycles lost waiting for the slowest tile: max − mean over the tiles, all steps")
    unknown = int(lost["num_unknown"].sum())
    caption(ax, [f"of {counted(unknown, 'step')} the balance is not known" if unknown else ""])
    total = format_count(round(float(lost["lost_cycles"].sum())))
    titles(ax, "Where tiles wait for each other", f"{total} cycles; on the right, the share of the program's own")
    return ax


def bandwidth(
    source: TableSource,
    run: int | Sequence[int] | None = None,
    ipu: int | Sequence[int] | None = None,
    begin: int | None = None,
    end: int | None = None,
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw the bytes that move to and from the host, remote buffers and other IPUs, over time.

    The bytes of a step are spread evenly over it, and all IPUs are added up.

    Parameters
    ----------
    source
        A report.
    run, ipu, begin, end, ax
        See :func:`pvanalyse.plots.timeline.timeline`.
    units
        Of the ticks: ``binary``, ``si`` or ``bytes``.

    Raises
    ------
    UsageError
        There is no such run or IPU, or the window is empty.
    NotCaptured
        The report has no execution steps, which alone say how many bytes they moved.
    """
    columns = ["ipu", "program_id", "type", "begin", "end", "data_in", "data_out"]
    frame = pd.concat(interval_batches(source, "steps", several(run), several(ipu), columns))
    window = Window(frame, begin, end)
    ax = new_axes(ax, PLOTS["bandwidth"].size)
    edges = window.edges(ax, pixels=3)
    clock = only_row(source, "target").get("clock_frequency") or 0
    for name, moved in _series(source, window.frame):
        first, last, size = (moved[column].to_numpy(np.int64) for column in ("begin", "end", "bytes"))
        rates = spread(first, last, size, edges) * (clock or 1)
        total = f"{name}, {format_bytes(int(size.sum()), units)}"
        ax.stairs(rates, edges, baseline=None, color=_LINES.get(name, INK), linewidth=1.2, label=total)
    ax.set_ylim(0, None)
    if clock:
        byte_axis(ax.yaxis, units)
    ax.set_ylabel("bytes per second" if clock else "bytes per cycle")
    window.label(ax, edges, "its mean")
    titles(ax, "Bandwidth of stream copies and exchanges between IPUs", window.duration(source))
    legend(ax, ax.get_legend_handles_labels()[0])
    return ax


# ---------------------------------------------------------------------------------------------------------- the parts


def _trace(source: TableSource, run: int | Sequence[int] | None, ipu: int | Sequence[int] | None) -> Trace:
    return read_trace(source, several(run), several(ipu))


def _series(source: TableSource, frame: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Return what moved bytes where to, for each that moved any."""
    copies = frame[frame["type"] == "StreamCopyMid"]
    paths = copy_paths(source)
    path = np.array([paths.get(program, "host") for program in copies["program_id"]], object)
    for name in dict.fromkeys(["host", *path]):
        for way in ("in", "out"):
            yield from _moved(f"{name} {way}", copies[path == name], f"data_{way}")
    yield from _moved("inter-IPU out", frame[frame["type"] == "GlobalExchange"], "data_out")


def _moved(name: str, frame: pd.DataFrame, column: str) -> Iterable[tuple[str, pd.DataFrame]]:
    frame = frame.rename(columns={column: "bytes"})[["begin", "end", "bytes"]].dropna()
    if (frame["bytes"] > 0).any():
        yield name, frame
