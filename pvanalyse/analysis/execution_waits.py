"""Who waits for whom: idle gaps, the critical path across IPUs of a pipelined run, and its bubbles.

An IPU *works* in the union, over all of its tiles, of the steps that do not wait: all but SyncAns, external syncs and
StreamCopyBegin, see :func:`pvanalyse.analysis.execution_trace.waits`. IPUs of one replica make a pipeline, replicas
are looked at one by one, each from the first to the last cycle that any of its IPUs works. For this the clocks of the
IPUs have to agree, as they do in a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers, only_row
from pvanalyse.analysis.execution_trace import ANY, WORK, Trace
from pvanalyse.analysis.intervals import interval_batches
from pvanalyse.analysis.stretches import NO_STRETCHES, Stretches, complement, length, union

_Moment = tuple[int, int, int]  # run, IPU and cycle
_Program = tuple[str | None, str | None]  # type and name
_NEIGHBOUR = ("run_id", "ipu", "type", "name", "all_begin", "all_end")


@dataclass(frozen=True)
class _Pipeline:
    """The IPUs of one replica during one run, with the stretches in which each works."""

    run_id: int
    replica: int
    first: int
    last: int
    work: Mapping[int, Stretches]


def idle_gaps(trace: Trace, shortest: int = 1) -> pd.DataFrame:
    """Return when nothing went on on an IPU between the beginning and the end of a run, the longest first.

    Parameters
    ----------
    trace
        A trace.
    shortest
        Gaps of fewer cycles are left out.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``ipu``, ``begin``, ``end`` and ``cycles``: stretches of the run's span, from the first to the
        last cycle over its IPUs, in which no step was on any tile of this one but answers to syncs; ``before_type``
        and ``before`` (the name) of the step that ended where the gap begins, the last in order of several, and
        ``after_type`` and ``after`` of the one that began where it ends, the first of several. These are null at the
        beginning and the end of the run.
    """
    spans = trace.run_spans()
    rows = []
    for (run, ipu), unions in trace.stretches.items():
        gaps = complement(unions.get(ANY, NO_STRETCHES), *spans[run])
        rows.append(_frame({"run_id": run, "ipu": ipu}, gaps))
    frame = pd.concat(rows, ignore_index=True) if rows else _frame({"run_id": 0, "ipu": 0}, NO_STRETCHES)
    return _with_neighbours(trace, _longest_first(frame[frame["cycles"] >= max(1, shortest)]))


def _with_neighbours(trace: Trace, gaps: pd.DataFrame) -> pd.DataFrame:
    """Return the gaps with what was on before and after each."""
    before: dict[_Moment, _Program] = {}
    after: dict[_Moment, _Program] = {}
    begins, ends = gaps["begin"].unique(), gaps["end"].unique()
    batches = interval_batches(trace.source, trace.kind, trace.runs, trace.ipus, _NEIGHBOUR) if len(gaps) else ()
    for batch in batches:
        steps = batch[(batch["all_end"] > batch["all_begin"]) & (batch["type"] != "SyncAns")]
        for run, ipu, kind, name, _, at in steps[steps["all_end"].isin(begins)].itertuples(index=False):
            before[run, ipu, at] = kind, name
        for run, ipu, kind, name, at, _ in steps[steps["all_begin"].isin(ends)].itertuples(index=False):
            after.setdefault((run, ipu, at), (kind, name))
    for side, found, edge in (("before", before, "begin"), ("after", after, "end")):
        moments = zip(gaps["run_id"].tolist(), gaps["ipu"].tolist(), gaps[edge].tolist(), strict=True)
        programs = [found.get(moment, (None, None)) for moment in moments]
        gaps[f"{side}_type"] = pd.Series([kind for kind, _ in programs], dtype="str")
        gaps[side] = pd.Series([name for _, name in programs], dtype="str")
    return gaps


def waiting(trace: Trace) -> pd.DataFrame:
    """Return when each IPU of a pipeline waited, and for which other, the longest first.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``replica``, ``ipu``, ``begin``, ``end`` and ``cycles`` of a stretch in which the IPU does not work,
        and ``waited_for``: the other IPU that works until its end (the lowest of several), or null when none works in
        it, that is when all of them wait, for the host or to synchronise. A wait of which another IPU works for only a
        part is so many rows.
    """
    parts = []
    for one in _pipelines(trace):
        stalled = complement(union(list(one.work.values())), one.first, one.last)
        for ipu, work in one.work.items():
            keys = {"run_id": one.run_id, "replica": one.replica, "ipu": ipu}
            bubble = complement(union([work, stalled]), one.first, one.last)
            which = np.concatenate((_waited_for(one, ipu, *bubble)[0], np.full(len(stalled[0]), -1)))
            frame = pd.concat([_frame(keys, bubble), _frame(keys, stalled)], ignore_index=True)
            parts.append(frame.assign(waited_for=pd.arrays.IntegerArray(which, which < 0)))
    keys = {"run_id": 0, "replica": 0, "ipu": 0}
    empty = _frame(keys, NO_STRETCHES).assign(waited_for=pd.array([], "Int64"))
    return _longest_first(pd.concat(parts, ignore_index=True) if parts else empty)


def bubbles(trace: Trace) -> pd.DataFrame:
    """Return how much of its time each IPU of a pipeline is left without work.

    Returns
    -------
    pandas.DataFrame
        ``run_id``, ``replica``, ``ipu`` and ``span_cycles`` of the pipeline; ``work_cycles`` in which the IPU works;
        ``bubble_cycles`` in which it does not but another of its pipeline does, and ``bubble_fraction`` of the span;
        ``stalled_cycles`` in which none does. The three add up to the span. The bubble share of a pipeline is the
        mean of its IPUs' fractions.
    """
    rows = []
    for one in _pipelines(trace):
        span = one.last - one.first
        anyone = length(union(list(one.work.values())))
        for ipu, work in one.work.items():
            bubble = anyone - length(work)
            rows.append((one.run_id, one.replica, ipu, span, length(work), bubble, bubble / span, span - anyone))
    columns = ["run_id", "replica", "ipu", "span_cycles", "work_cycles", "bubble_cycles", "bubble_fraction",
               "stalled_cycles"]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({name: "float64" if name == "bubble_fraction" else "int64" for name in columns})


def critical_path(trace: Trace) -> pd.DataFrame:
    """Return which IPU decided how long each run took, and when.

    The path is followed back from the last work of a pipeline: along an IPU's work to where it began, and from there
    to the other IPU that worked last while this one did not (the lowest of several), from where that stopped working.
    Where no other IPU worked meanwhile, the path goes on at the same IPU's work before.

    Returns
    -------
    pandas.DataFrame
        In order of time: ``run_id``, ``replica``, ``ipu`` (null while the path waits for the host or to synchronise),
        ``begin``, ``end`` and ``cycles``. The stretches follow each other from the beginning to the end of the work of
        the pipeline in the run.
    """
    parts = []
    for one in _pipelines(trace):
        segments = list(_followed_back(one))[::-1]
        frame = _frame({"run_id": one.run_id, "replica": one.replica},
                       (np.array([begin for _, begin, _ in segments], np.int64),
                        np.array([end for _, _, end in segments], np.int64)))  # fmt: skip
        frame.insert(2, "ipu", pd.Series([ipu for ipu, _, _ in segments], dtype="Int64"))
        parts.append(frame)
    empty = _frame({"run_id": 0, "replica": 0}, NO_STRETCHES)
    empty.insert(2, "ipu", pd.Series([], dtype="Int64"))
    return pd.concat(parts, ignore_index=True) if parts else empty


def _pipelines(trace: Trace) -> Iterator[_Pipeline]:
    """Yield each run of each replica that works at all."""
    target = only_row(trace.source, "target")
    per_replica = int(target.get("num_ipus") or 0) // max(1, int(target.get("num_replicas") or 1))
    work: dict[tuple[int, int], dict[int, Stretches]] = {}
    for (run, ipu), unions in trace.stretches.items():
        replica = ipu // per_replica if per_replica > 0 else 0
        work.setdefault((run, replica), {})[ipu] = unions.get(WORK, NO_STRETCHES)
    for (run, replica), by_ipu in work.items():
        busy = [stretches for stretches in by_ipu.values() if len(stretches[0])]
        if busy:
            first, last = min(int(begin[0]) for begin, _ in busy), max(int(end[-1]) for _, end in busy)
            yield _Pipeline(run, replica, first, last, by_ipu)


def _waited_for(one: _Pipeline, ipu: int, begin: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Return for each wait of an IPU which other worked last in it, and until when.

    −1 and the wait's begin where none did.
    """
    reached, which = begin.copy(), np.full(len(begin), -1, np.int64)
    for other in sorted(set(one.work) - {ipu}):
        starts, ends = one.work[other]
        if len(starts):
            at = np.searchsorted(starts, end, "left") - 1
            until = np.where(at >= 0, np.minimum(ends[at], end), begin)
            later = until > reached
            reached, which = np.where(later, until, reached), np.where(later, other, which)
    return which, reached


def _followed_back(one: _Pipeline) -> Iterator[tuple[int | None, int, int]]:
    """Yield the stretches of the critical path, the last first: its IPU, begin and end."""
    before = {}
    for ipu, work in one.work.items():
        # What came before each stretch of work: a wait, and perhaps none before the first.
        begin = np.concatenate(([one.first], work[1][:-1]))[: len(work[0])]
        which, reached = _waited_for(one, ipu, begin, work[0])
        before[ipu] = (work[0].tolist(), which.tolist(), reached.tolist(), begin.tolist())
    at = one.last
    ipu = min(ipu for ipu, work in one.work.items() if len(work[1]) and int(work[1][-1]) == one.last)
    while at > one.first:
        starts, which, reached, ended = before[ipu]
        nth = int(np.searchsorted(one.work[ipu][0], at, "left")) - 1
        yield ipu, starts[nth], at
        at = starts[nth]
        until = reached[nth] if which[nth] >= 0 else ended[nth]
        ipu = which[nth] if which[nth] >= 0 else ipu
        if until < at:
            yield None, until, at
        at = until


def _frame(keys: Mapping[str, int], stretches: Stretches) -> pd.DataFrame:
    begin, end = stretches
    found = {name: np.full(len(begin), value, np.int64) for name, value in keys.items()}
    return pd.DataFrame({**found, "begin": begin, "end": end, "cycles": end - begin})


def _longest_first(frame: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in ("run_id", "replica", "ipu", "begin") if name in frame]
    order = ["cycles", *keys]
    return frame.sort_values(order, ascending=[False] + [True] * len(keys), kind="stable", ignore_index=True)
