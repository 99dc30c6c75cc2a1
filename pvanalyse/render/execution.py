"""Where the cycles go, for people and programs: a part for each way to look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pvanalyse.render.document import Section, Unit
from pvanalyse.render.parts import Part, Rows, Shown, listed, listing, records
from pvanalyse.units import format_count, format_fraction, format_seconds

if TYPE_CHECKING:
    import pandas as pd

_RUN = (Shown("Run", "run_id", Unit.COUNT), Shown("IPU", "ipu", Unit.COUNT))
_COST = (
    Shown("Steps", "num_steps", Unit.COUNT),
    Shown("Cycles", "cycles", Unit.CYCLES),
    Shown("Share", "fraction", Unit.FRACTION),
)
_STRETCH = (
    Shown("Begin", "begin", Unit.CYCLES),
    Shown("End", "end", Unit.CYCLES),
    Shown("Cycles", "cycles", Unit.CYCLES),
)
_PROGRAM = (Shown("Program", "name"), Shown("Type", "type"))
_RUNS = (
    Shown("Run", "run_id", Unit.COUNT),
    Shown("Name", "name"),
    Shown("Steps", "num_steps", Unit.COUNT),
    Shown("Cycles", "cycles", Unit.CYCLES),
    Shown("Time", "seconds", Unit.SECONDS),
    Shown("On the host", "host_seconds", Unit.SECONDS),
    Shown("Longest wait for the host", "host_wait_cycles", Unit.CYCLES),
)
_KINDS = (
    *_RUN,
    *(Shown(kind, kind, Unit.FRACTION) for kind in ("compute", "exchange", "inter-IPU", "host", "sync", "other")),
)
_IMBALANCE = (
    *_PROGRAM,
    Shown("Steps", "num_steps", Unit.COUNT),
    Shown("Cycles", "cycles", Unit.CYCLES),
    Shown("Lost", "lost_cycles", Unit.CYCLES),
    Shown("Of its cycles", "lost_fraction", Unit.FRACTION),
    Shown("Of all that is lost", "share", Unit.FRACTION),
)
_OVERLAP = (
    *_RUN,
    Shown("Compute", "compute_cycles", Unit.CYCLES),
    Shown("I/O", "io_cycles", Unit.CYCLES),
    Shown("Both", "both_cycles", Unit.CYCLES),
    Shown("Overlap", "overlap", Unit.FRACTION),
)
_BANDWIDTH = (
    *_RUN,
    Shown("Path", "path"),
    Shown("In", "bytes_in", Unit.BYTES),
    Shown("Out", "bytes_out", Unit.BYTES),
    Shown("Cycles", "covered_cycles", Unit.CYCLES),
    Shown("Bytes per cycle", "bytes_per_cycle_shown"),
    Shown("Bandwidth", "bytes_per_second", Unit.RATE),
)
_PIPELINE = (
    Shown("Run", "run_id", Unit.COUNT),
    Shown("Replica", "replica", Unit.COUNT),
    Shown("IPU", "ipu", Unit.COUNT),
    Shown("Cycles", "span_cycles", Unit.CYCLES),
    Shown("Works", "work_cycles", Unit.CYCLES),
    Shown("Bubble", "bubble_cycles", Unit.CYCLES),
    Shown("Bubble share", "bubble_fraction", Unit.FRACTION),
    Shown("Stalled with all", "stalled_cycles", Unit.CYCLES),
)
_FLOPS = (
    Shown("Compute set", "name"),
    Shown("FLOPs", "flops", Unit.COUNT),
    Shown("Executions", "executions", Unit.COUNT),
    Shown("Cycles", "cycles", Unit.CYCLES),
    Shown("GFLOPS", "gflops", Unit.COUNT),
    Shown("Of FP16 peak", "utilisation", Unit.FRACTION),
)
_ESTIMATES = (
    *_PROGRAM,
    Shown("IPU", "ipu", Unit.COUNT),
    Shown("Steps", "num_steps", Unit.COUNT),
    Shown("Estimated", "estimated_cycles", Unit.CYCLES),
    Shown("Measured", "measured_cycles", Unit.CYCLES),
    Shown("Ratio", "ratio_shown"),
    Shown("Far apart", "far_apart"),
)
_BY_NAME = "Without debug contexts, operations are told by the paths that names begin with."


def verdict(runs: pd.DataFrame, shares: pd.DataFrame | None) -> str:
    """Say how long the runs took, how much of it was computing, and whether the first is to be trusted.

    Parameters
    ----------
    runs
        Of :func:`pvanalyse.analysis.execution_details.runs_frame`.
    shares
        Of :func:`pvanalyse.analysis.execution_details.shares`, None when no intervals were captured.
    """
    number = f"{len(runs):,} run{'' if len(runs) == 1 else 's'}"
    took = runs["cycles"].dropna()
    if not len(took):
        return f"{number}, without steps."
    sentence = f"{number} took {format_count(sum(took.tolist()))} cycles"
    seconds = runs["seconds"].dropna()
    if len(seconds):
        sentence += f", {format_seconds(float(seconds.sum()))}"
    busiest = _busiest(runs, shares)
    return f"{sentence}{busiest}.{_distortion(runs)}"


def _busiest(runs: pd.DataFrame, shares: pd.DataFrame | None) -> str:
    """Say which IPU computes most of the time, and how much of it."""
    elapsed = sum(runs["cycles"].dropna().tolist())
    compute = None if shares is None else shares[shares["kind"] == "compute"].groupby("ipu")["covered_cycles"].sum()
    if compute is None or not len(compute) or elapsed <= 0:
        return ""
    share = int(compute.max()) / elapsed
    return f"; the busiest IPU, {compute.idxmax()}, computes in {format_fraction(share)} of them"


def _distortion(runs: pd.DataFrame) -> str:
    first = records(runs[runs["distorted"]].head(1))
    if not first:
        return ""
    run = first[0]
    return (f" Run {run['run_id']} is distorted: one StreamCopyBegin waited {run['host_wait_cycles']:,} cycles for the "
            "host, so judge by the others.")  # fmt: skip


def runs(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the runs."""
    people = frame.assign(host_seconds=frame["host_us"] / 1e6)
    section = listed("Runs", people, _RUNS, rows, "There are no runs.")
    chosen = rows.of(frame)
    said = [*section.sentences, *filter(None, [_distortion(frame).strip()])]
    return Part("runs", Section(section.title, section.facts, section.grids, said), records(chosen), chosen)


def kinds(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return what the time of each run went into on each IPU; people see the shares of the run's span side by side."""
    wide = frame.pivot_table(index=["run_id", "ipu"], columns="kind", values="covered_fraction", aggfunc="first")
    people = wide.reset_index()
    section = listed("Share of the run in which an IPU does ...", people, _KINDS, rows, "Nothing ran.")
    chosen = rows.of(frame)
    return Part("kinds", section, records(chosen), chosen)


def types(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the cycles of each program type."""
    return listing("types", "Cycles by program type", frame, (Shown("Type", "type"), *_COST), rows, "Nothing ran.")


def programs(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return the cycles of each program."""
    return _named("programs", "Programs by cycles", frame, (*_PROGRAM, *_COST), match, rows)


def compute_sets(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return the cycles of each compute set."""
    columns = (Shown("Compute set", "name"), *_COST)
    return _named("compute_sets", "Compute sets by cycles", frame, columns, match, rows)


def operations(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return the cycles of each operation."""
    columns = (Shown("Operation", "operation"), Shown("Source", "location"), *_COST)
    part = _named("operations", "Operations by cycles", frame, columns, match, rows)
    if not len(frame) or (frame["origin"] == "debug.cbor").any():
        return part
    section = part.section
    said = [*section.sentences, _BY_NAME]
    return Part(part.key, Section(section.title, section.facts, section.grids, said), part.data, part.frame)


def prefixes(frame: pd.DataFrame, depth: int, prefix: str, rows: Rows) -> Part:
    """Return the cycles of programs whose names begin alike."""
    within = f" within '{prefix}'" if prefix else ""
    title = f"Cycles by the first {depth} part{'' if depth == 1 else 's'} of names{within}"
    columns = (Shown("Names begin with", "prefix"), Shown("Programs", "num_programs", Unit.COUNT), *_COST)
    return listing("prefixes", title, frame, columns, rows, "There are no such names.")


def imbalance(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return the programs whose tiles lose most cycles waiting for the slowest."""
    people = frame[frame["lost_cycles"] > 0]
    return _renamed("imbalance", "Cycles lost to imbalance, by program", frame, people, _IMBALANCE, match, rows)


def overlap(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return how much compute and I/O go on at the same time."""
    return listing("overlap", "Overlap of compute and I/O", frame, _OVERLAP, rows, "Nothing ran.")


def bandwidth(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return how fast bytes moved."""
    people = frame.assign(bytes_per_cycle_shown=[_decimal(value) for value in _values(frame["bytes_per_cycle"])])
    section = listed("Bandwidth while bytes move", people, _BANDWIDTH, rows, "No bytes moved.")
    chosen = rows.of(frame)
    return Part("bandwidth", section, records(chosen), chosen)


def gaps(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return when nothing went on."""
    people = frame.assign(**{f"{side}_shown": frame[side].where(frame[side] != "", frame[f"{side}_type"])
                             for side in ("before", "after")})  # fmt: skip
    columns = (*_RUN, *_STRETCH, Shown("After", "before_shown"), Shown("Until", "after_shown"))
    section = listed("Longest idle gaps", people, columns, rows, "No IPU was idle during a run.")
    chosen = rows.of(frame)
    return Part("gaps", section, records(chosen), chosen)


def pipeline(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return how much of its time each IPU of a pipeline is left without work."""
    return listing("pipeline", "Pipeline: work and bubbles", frame, _PIPELINE, rows, "Nothing ran.")


def waits(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return when IPUs waited, and for which."""
    columns = (*_RUN, *_STRETCH, Shown("For IPU", "waited_for", Unit.COUNT))
    return listing("waits", "Longest waits", frame, columns, rows, "No IPU waited.")


def path(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the critical path across IPUs."""
    columns = (Shown("Run", "run_id", Unit.COUNT), Shown("Replica", "replica", Unit.COUNT),
               Shown("IPU", "ipu", Unit.COUNT), *_STRETCH)  # fmt: skip
    return listing("path", "Critical path across IPUs, in order of time", frame, columns, rows, "Nothing ran.")


def flops(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return how fast compute sets compute."""
    people = frame.assign(gflops=frame["flops_per_second"] / 1e9)
    return _renamed("flops", "Compute sets by estimated FLOPs", frame, people, _FLOPS, match, rows)


def estimates(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return measured beside estimated cycles."""
    people = frame.assign(ratio_shown=[_decimal(value) for value in _values(frame["ratio"])])
    title = "Measured against estimated cycles, largest differences first"
    return _renamed("estimates", title, frame, people, _ESTIMATES, match, rows)


def steps(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return the intervals themselves."""
    columns = (Shown("Step", "step_id", Unit.COUNT), *_RUN, *_PROGRAM, *_STRETCH,
               Shown("Balance", "tile_balance", Unit.FRACTION), Shown("In", "data_in", Unit.BYTES),
               Shown("Out", "data_out", Unit.BYTES))  # fmt: skip
    return _named("steps", "Steps", frame, columns, match, rows)


def _named(key: str, title: str, frame: pd.DataFrame, columns: Sequence[Shown], match: str | None, rows: Rows) -> Part:
    return _renamed(key, title, frame, frame, columns, match, rows)


def _renamed(
    key: str, title: str, frame: pd.DataFrame, people: pd.DataFrame, columns: Sequence[Shown], match: str | None,
    rows: Rows,
) -> Part:  # fmt: skip
    """Return a part of which people see another frame than programs."""
    nothing = "There are none." if match is None else f"There are none whose name matches '{match}'."
    heading = title if match is None else f"{title}, matching '{match}'"
    chosen = rows.of(frame)
    return Part(key, listed(heading, people, columns, rows, nothing), records(chosen), chosen)


def _values(column: pd.Series[float]) -> list[float | None]:
    return [row["value"] for row in records(column.to_frame("value"))]


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"
