"""Where the cycles go: by type, program, compute set, operation and name, in elapsed time, and in moving bytes.

Each function takes the :class:`~pvanalyse.analysis.execution_trace.Trace` of one pass over the intervals, for the runs
and IPUs that were chosen when it was read. Steps are counted once for each IPU they ran on, and the cycles of steps
of different tiles may pass at the same time, so they add up to more than the time that passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.execution_trace import HOST_WAIT, KINDS, PATHS, Trace
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.analysis.memory_details import matching
from pvanalyse.analysis.origins import Origins
from pvanalyse.analysis.stretches import NO_STRETCHES, Stretches, length, union
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

DISTORTED = 10
"""The first run is distorted when it waited so many times longer for the host than any later run."""

PROGRAM = ["program_id", "type", "name"]
"""The columns that tell one program from another."""
_KEYS = {"run": "run_id", "ipu": "ipu"}


def runs_frame(source: TableSource, trace: Trace | None) -> pd.DataFrame:
    """Return the runs.

    Parameters
    ----------
    source
        A report.
    trace
        Its trace, None when no intervals were captured.

    Returns
    -------
    pandas.DataFrame
        ``run_id`` (−1 unknown), ``name``, ``start_us``, ``end_us`` and ``host_us`` (null where ``runs`` does not hold
        the run), ``num_steps`` (null unknown), ``cycles`` from its first to its last over all tiles and IPUs, the
        ``seconds`` they took, ``host_wait_cycles`` (the longest StreamCopyBegin), and ``distorted``: whether it is the
        first and waited at least :data:`DISTORTED` times longer for the host than any later one, for more than a
        tenth of its cycles. That is seen where the host still processes what instrumentation sent it, and says
        nothing about the program.

    Raises
    ------
    NotCaptured
        The report holds neither runs nor intervals.
    """
    known = _known_runs(source)
    if not known and trace is None:
        raise NotCaptured("runs", table("runs").capture)
    spans = trace.run_spans() if trace else {}
    chosen = sorted({*known, *spans}) if trace is None or trace.runs is None else sorted(set(trace.runs))
    host = None if trace is None else trace.cells[trace.cells["type"] == HOST_WAIT]
    waited = {} if host is None else host.groupby("run_id")["longest_cycles"].max().to_dict()
    clock = clock_frequency(source)
    rows = []
    for run in chosen:
        name, start, end = known.get(run, ("", None, None))
        cycles = int(spans[run][1]) - int(spans[run][0]) if run in spans else None
        seconds = cycles / clock if cycles is not None and clock else None
        host_us = end - start if start is not None and end is not None else None
        steps = trace.steps_of_run.get(run, 0 if trace.kind == "steps" else None) if trace else None
        rows.append((run, name, start, end, host_us, steps, cycles, seconds, waited.get(run)))
    columns = ["run_id", "name", "start_us", "end_us", "host_us", "num_steps", "cycles", "seconds", "host_wait_cycles"]
    kinds = dict.fromkeys(["start_us", "end_us", "host_us", "num_steps", "cycles", "host_wait_cycles"], "Int64")
    frame = pd.DataFrame(rows, columns=columns).astype(kinds | {"run_id": "int64", "seconds": "float64", "name": "str"})
    frame["distorted"] = [at == 0 and _is_distorted(rows) for at in range(len(rows))]
    return frame


def _known_runs(source: TableSource) -> dict[int, tuple[str, int | None, int | None]]:
    if not source.captured("runs"):
        return {}
    columns = source.arrow("runs", ["run_id", "name", "start_us", "end_us"]).to_pydict()
    rows = zip(*columns.values(), strict=True)
    return {run: (name or "", start, end) for run, name, start, end in rows if run is not None}


def _is_distorted(rows: Sequence[tuple[object, ...]]) -> bool:
    waited = [int(str(row[8])) if row[8] is not None else 0 for row in rows]
    cycles = int(str(rows[0][6])) if rows[0][6] is not None else 0
    return len(rows) > 1 and waited[0] * 10 > cycles > 0 and waited[0] >= DISTORTED * max(1, *waited[1:])


def clock_frequency(source: TableSource) -> float | None:
    """Return the target's clock in Hz, None when it is not known."""
    clock = only_row(source, "target").get("clock_frequency")
    return float(clock) if clock and clock > 0 else None


def steps_frame(
    source: TableSource,
    runs: Sequence[int] | None = None,
    ipus: Sequence[int] | None = None,
    types: Sequence[str] | None = None,
    pattern: str | None = None,
) -> pd.DataFrame:
    """Return the intervals themselves; see :func:`pvanalyse.analysis.intervals.interval_batches` for the columns.

    Parameters
    ----------
    source
        A report.
    runs, ipus, types
        Only these, None for all.
    pattern
        Only programs in whose name this regular expression is found.
    """
    names: dict[str, bool] = {}
    parts = []
    for batch in interval_batches(source, None, runs, ipus):
        chosen = np.ones(len(batch), bool) if types is None else batch["type"].isin(list(types)).to_numpy()
        if pattern is not None:
            fresh = pd.Series([name for name in batch["name"].unique() if name not in names], dtype="str")
            names.update(zip(fresh.tolist(), matching(fresh, pattern).tolist(), strict=True))
            chosen = chosen & batch["name"].map(names).to_numpy(bool)
        parts.append(batch[chosen])
    return pd.concat(parts, ignore_index=True)


# ------------------------------------------------------------------------------------------------------- by what it is
def by_type(trace: Trace, per: Sequence[str] = ()) -> pd.DataFrame:
    """Return the cycles of each program type.

    Parameters
    ----------
    trace
        A trace.
    per
        Of ``run`` and ``ipu``: a row for each of these too, and fractions of what it took.

    Returns
    -------
    pandas.DataFrame
        ``run_id`` and ``ipu`` as asked, ``type``, ``kind`` of :data:`~pvanalyse.analysis.execution_trace.KINDS`,
        ``num_steps``, ``cycles`` and ``fraction`` of all steps' cycles; those with most cycles first.
    """
    return _summed(trace.cells, ["type", "kind"], per)


def by_program(trace: Trace, pattern: str | None = None) -> pd.DataFrame:
    """Return the cycles of each program, those with most first.

    Returns
    -------
    pandas.DataFrame
        ``program_id`` (null unknown), ``type``, ``name``, ``num_steps``, ``cycles``, ``fraction`` of the cycles of
        all programs, ``longest_cycles`` of a step, and ``compute_set_id`` (null for what runs none).
    """
    frame = _summed(trace.cells, PROGRAM)
    longest = trace.cells.groupby(PROGRAM, sort=False)["longest_cycles"].max()
    frame["longest_cycles"] = longest.loc[pd.MultiIndex.from_frame(frame[PROGRAM])].to_numpy(np.int64)
    sets = {program: one[0] for program, one in descriptions(trace.source).items()}
    frame["compute_set_id"] = pd.array([sets.get(one) for one in frame["program_id"].tolist()], "Int64")
    frame["program_id"] = frame["program_id"].astype("Int64").where(frame["program_id"] >= 0)
    return matched(frame, pattern)


def by_compute_set(trace: Trace, pattern: str | None = None) -> pd.DataFrame:
    """Return the cycles of each compute set that ran, those with most first.

    Returns
    -------
    pandas.DataFrame
        ``compute_set_id``, ``name``, ``num_programs`` that run it, ``num_steps``, ``cycles``, ``fraction`` of the
        cycles of all programs.

    Raises
    ------
    NotCaptured
        The report does not describe its compute sets.
    """
    names = compute_set_names(trace.source)
    cells = trace.cells.assign(compute_set_id=compute_set_of_cell(trace))
    frame = _summed(cells, ["compute_set_id"])
    programs = cells.groupby("compute_set_id")["program_id"].nunique()
    frame.insert(1, "name", pd.Series([names.get(one, "") for one in frame["compute_set_id"].tolist()], dtype="str"))
    frame.insert(2, "num_programs", programs.loc[frame["compute_set_id"]].to_numpy(np.int64))
    return matched(frame[frame["compute_set_id"] >= 0], pattern)


def by_operation(trace: Trace, pattern: str | None = None) -> pd.DataFrame:
    """Return the cycles of each operation of the user's, those with most first.

    The operation of a program is the name of the outermost of its debug contexts, or of those of its compute set; of
    a program without any, the path that its name begins with.

    Returns
    -------
    pandas.DataFrame
        ``operation``, ``location`` (``file:line``, empty unknown), ``origin`` (``debug.cbor``, or ``name`` for the
        path of a name), ``num_steps``, ``cycles``, ``fraction`` of the cycles of all programs, and ``compute``,
        ``exchange``, ``inter_ipu``, ``host``, ``sync`` and ``other`` with the cycles of each kind.
    """
    origins, described = Origins(trace.source), descriptions(trace.source)
    known: dict[tuple[int, str], tuple[str, str, str]] = {}
    for program, name in zip(trace.cells["program_id"].tolist(), trace.cells["name"].tolist(), strict=True):
        if (program, name) not in known:
            context = described.get(program, (None, None))[1]
            operation = origins.operation(context)
            known[program, name] = (
                (operation, origins.location(context), "debug.cbor")
                if operation
                else (name.rpartition("/")[0] or name, "", "name")
            )
    found = [known[key] for key in zip(trace.cells["program_id"].tolist(), trace.cells["name"].tolist(), strict=True)]
    texts = pd.DataFrame(found, columns=["operation", "location", "origin"], dtype="str")
    cells = pd.concat([trace.cells[["kind", "num_steps", "cycles"]], texts], axis=1)
    keys = ["operation", "location", "origin"]
    frame = _summed(cells, keys)
    index = pd.MultiIndex.from_frame(frame[keys])
    for kind in KINDS:
        of_kind = cells[cells["kind"] == kind].groupby(keys, sort=False)["cycles"].sum()
        frame[kind.lower().replace("-", "_")] = of_kind.reindex(index, fill_value=0).to_numpy(np.int64)
    return matched(frame, pattern, "operation")


def by_prefix(trace: Trace, depth: int = 1, prefix: str = "") -> pd.DataFrame:
    """Return the cycles of programs whose names begin alike, those with most first.

    Parameters
    ----------
    trace
        A trace.
    depth
        How many parts of a name, between slashes, must be alike; after those of ``prefix`` when there is one.
    prefix
        Only names that begin with these parts, such as ``model/encoder``.

    Returns
    -------
    pandas.DataFrame
        ``prefix`` (shorter where names are), ``num_programs``, ``num_steps``, ``cycles`` and ``fraction`` of the
        cycles of all programs.

    Raises
    ------
    UsageError
        The depth is less than 1.
    """
    if depth < 1:
        raise UsageError(f"the depth of a prefix must be at least 1, not {depth}")
    start = prefix.strip("/").split("/") if prefix.strip("/") else []
    parts = [name.split("/") for name in trace.cells["name"].tolist()]
    cells = trace.cells.assign(
        prefix=pd.Series(["/".join(one[: len(start) + depth]) for one in parts], dtype="str"),
        under=[one[: len(start)] == start for one in parts],
    )
    frame = _summed(cells, ["prefix", "under"])
    programs = cells.drop_duplicates([*PROGRAM, "prefix"]).groupby("prefix").size()
    frame.insert(2, "num_programs", programs.loc[frame["prefix"]].to_numpy(np.int64))
    return frame[frame["under"]].drop(columns="under").reset_index(drop=True)


def _summed(cells: pd.DataFrame, keys: Sequence[str], per: Sequence[str] = ()) -> pd.DataFrame:
    """Return steps, cycles and their fraction by keys, those with most cycles first."""
    outer = _outer(per)
    frame = cells.groupby([*outer, *keys], sort=True, as_index=False)[["num_steps", "cycles"]].sum()
    totals = frame.groupby(outer)["cycles"].transform("sum") if outer else frame["cycles"].sum()
    frame["fraction"] = ratio(frame["cycles"], totals)
    order = [*outer, "cycles", *keys]
    return frame.sort_values(order, ascending=[name != "cycles" for name in order], kind="stable", ignore_index=True)


def _outer(per: Sequence[str]) -> list[str]:
    unknown = [name for name in per if name not in _KEYS]
    if unknown:
        raise UsageError(f"cycles are per {' and '.join(_KEYS)}, not per '{unknown[0]}'")
    return [_KEYS[name] for name in _KEYS if name in per]


def ratio(part: pd.Series[Any], whole: pd.Series[Any] | float) -> npt.NDArray[np.float64]:
    """Divide; NaN where it is by 0."""
    below = np.broadcast_to(np.asarray(whole, np.float64), len(part))
    above = part.to_numpy(np.float64)
    return np.asarray(np.divide(above, below, out=np.full(len(part), np.nan), where=below != 0))


def matched(frame: pd.DataFrame, pattern: str | None, column: str = "name") -> pd.DataFrame:
    """Return the rows in whose name a regular expression is found."""
    return frame[matching(frame[column], pattern)].reset_index(drop=True)


def descriptions(source: TableSource) -> dict[int, tuple[int | None, int | None]]:
    """Return compute set and debug context by program; its compute set's where a program has no context."""
    if not source.captured("programs"):
        return {}
    contexts: dict[int, int | None] = {}
    if source.captured("compute_sets"):
        columns = source.arrow("compute_sets", ["compute_set_id", "debug_context_id"]).to_pydict()
        contexts = dict(zip(*columns.values(), strict=True))
    rows = source.arrow("programs", ["program_id", "compute_set_id", "debug_context_id"]).to_pydict()
    return {
        program: (compute_set, context if context is not None or compute_set is None else contexts.get(compute_set))
        for program, compute_set, context in zip(*rows.values(), strict=True)
    }


def compute_set_of_cell(trace: Trace) -> Integers:
    """Return the compute set of each cell's program, −1 for none."""
    sets = {program: one[0] for program, one in descriptions(trace.source).items()}
    found = [sets.get(program) for program in trace.cells["program_id"].tolist()]
    return np.array([-1 if one is None else one for one in found], np.int64)


def compute_set_names(source: TableSource) -> dict[int, str]:
    """Return the names of the compute sets; raises NotCaptured without them or the programs that run them."""
    if not source.captured("programs"):
        raise NotCaptured("programs", table("programs").capture)
    columns = source.arrow("compute_sets", ["compute_set_id", "name"]).to_pydict()
    return {one: name or "" for one, name in zip(*columns.values(), strict=True)}


# ------------------------------------------------------------------------------------------------------ in elapsed time
def shares(trace: Trace) -> pd.DataFrame:
    """Return what each run's time went into on each IPU.

    ``compute`` is OnTileExecute, ``exchange`` DoExchange, ``inter-IPU`` GlobalExchange, ``host`` the three parts of a
    stream copy, ``sync`` Sync and SyncAns (and InternalSync and ExternalSync), ``other`` everything else.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``ipu``, ``kind``, ``num_steps``, their ``cycles`` and ``fraction`` of the cycles of all steps
        there, ``covered_cycles`` (in which at least one such step runs: the union of [begin, end)) and
        ``covered_fraction`` of the run's span. Kinds overlap, so these may add up to more than 1.
    """
    spans = trace.run_spans()
    frame = _summed(trace.cells, ["kind"], ("run", "ipu"))
    covered, share = [], []
    for run, ipu, kind in zip(frame["run_id"].tolist(), frame["ipu"].tolist(), frame["kind"].tolist(), strict=True):
        cycles, elapsed = length(_stretches(trace, run, ipu, kind)), spans[run][1] - spans[run][0]
        covered.append(cycles)
        share.append(cycles / elapsed if elapsed > 0 else np.nan)
    frame["covered_cycles"] = np.array(covered, np.int64)
    frame["covered_fraction"] = np.array(share, np.float64)
    return frame


def _stretches(trace: Trace, run: int, ipu: int, name: str) -> Stretches:
    return trace.stretches.get((run, ipu), {}).get(name, NO_STRETCHES)


def _copies(trace: Trace, run: int, ipu: int) -> Stretches:
    return union([_stretches(trace, run, ipu, f"copy:{path}") for path in PATHS])


def compute_io_overlap(trace: Trace) -> pd.DataFrame:
    """Return how much computing and moving bytes to and from the host go on at the same time.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``ipu``, ``compute_cycles`` and ``io_cycles`` (the unions of OnTileExecute and of StreamCopyMid),
        ``both_cycles`` in which both go on, and ``overlap``: these divided by the smaller, NaN when that is 0.
    """
    rows = []
    for run, ipu in trace.stretches:
        compute, copies = _stretches(trace, run, ipu, "compute"), _copies(trace, run, ipu)
        sizes = length(compute), length(copies)
        both = sum(sizes) - length(union([compute, copies]))
        rows.append((run, ipu, *sizes, both, both / min(sizes) if min(sizes) else np.nan))
    columns = ["run_id", "ipu", "compute_cycles", "io_cycles", "both_cycles", "overlap"]
    return pd.DataFrame(rows, columns=columns).astype({**dict.fromkeys(columns[:-1], "int64"), "overlap": "float64"})


def bandwidth(trace: Trace) -> pd.DataFrame:
    """Return how fast bytes moved.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``ipu``, ``path`` (``host``, ``remote`` for remote buffers, ``mixed`` for a copy of both and
        ``unknown`` for one that ``stream_copies`` does not have, all of StreamCopyMid; ``inter-IPU`` of
        GlobalExchange), ``num_steps``, ``bytes_in`` and ``bytes_out`` of that IPU (null unknown), ``covered_cycles``
        in which at least one such step runs, ``bytes_per_cycle`` both ways over these, and ``bytes_per_second`` at
        the target's clock (NaN unknown).
    """
    cells = trace.cells.assign(path=trace.cells["path"].mask(trace.cells["kind"] == "inter-IPU", "inter-IPU"))
    groups = cells[cells["path"] != ""].groupby(["run_id", "ipu", "path"], sort=True)
    frame = groups["num_steps"].sum().reset_index()
    for ours, theirs in (("bytes_in", "data_in"), ("bytes_out", "data_out")):
        frame[ours] = groups[theirs].sum(min_count=1).to_numpy()
        frame[ours] = frame[ours].astype("Int64")
    keys = zip(frame["run_id"].tolist(), frame["ipu"].tolist(), frame["path"].tolist(), strict=True)
    covered = [length(_stretches(trace, run, ipu, path if path == "inter-IPU" else f"copy:{path}"))
               for run, ipu, path in keys]  # fmt: skip
    frame["covered_cycles"] = np.array(covered, np.int64)
    known = frame["bytes_in"].notna() | frame["bytes_out"].notna()
    moved = (frame["bytes_in"].fillna(0) + frame["bytes_out"].fillna(0)).astype(np.int64)
    frame["bytes_per_cycle"] = np.where(known, ratio(moved, frame["covered_cycles"]), np.nan)
    frame["bytes_per_second"] = frame["bytes_per_cycle"] * (clock_frequency(trace.source) or np.nan)
    return frame
