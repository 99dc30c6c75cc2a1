"""Where the cycles go, against brute force cycle by cycle: small random reports, the samples, and cases by hand."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pvanalyse import open_report
from pvanalyse.accessors import ExecutionAccessor
from pvanalyse.analysis import execution_details as details
from pvanalyse.analysis import execution_efficiency as efficiency
from pvanalyse.analysis import execution_waits as waits
from pvanalyse.analysis import stretches
from pvanalyse.analysis.execution_trace import Trace, read_trace
from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from tests.conftest import SAMPLES
from tests.oracle import execution as oracle
from tests.oracle.execution import Execution
from tests.oracle.execution_reports import make_execution_report
from tests.oracle.frames import Captured, Missing, assert_same, outcome, plain
from tests.plots.sources import Rows

Question = tuple[Callable[[Trace], pd.DataFrame], Callable[[Execution], Any]]
QUESTIONS: dict[str, Question] = {
    "runs": (lambda trace: details.runs_frame(trace.source, trace), oracle.runs_frame),
    "type": (details.by_type, oracle.by_type),
    "type per run and ipu": (partial(details.by_type, per=("run", "ipu")), oracle.by_type_per_run_and_ipu),
    "program": (details.by_program, oracle.by_program),
    "compute set": (details.by_compute_set, oracle.by_compute_set),
    "operation": (details.by_operation, oracle.by_operation),
    "prefix": (details.by_prefix, partial(oracle.by_prefix, depth=1, prefix="")),
    "prefix deep": (partial(details.by_prefix, depth=3), partial(oracle.by_prefix, depth=3, prefix="")),
    "prefix under": (
        partial(details.by_prefix, depth=1, prefix="model/encoder"),
        partial(oracle.by_prefix, depth=1, prefix="model/encoder"),
    ),
    "shares": (details.shares, oracle.shares),
    "overlap": (details.compute_io_overlap, oracle.overlap),
    "bandwidth": (details.bandwidth, oracle.bandwidth),
    "imbalance": (efficiency.imbalance, oracle.imbalance),
    "flops": (efficiency.flops, oracle.flops),
    "estimates": (efficiency.against_estimates, oracle.against_estimates),
    "gaps": (waits.idle_gaps, oracle.idle_gaps),
    "bubbles": (waits.bubbles, oracle.bubbles),
    "waiting": (waits.waiting, oracle.waiting),
    "path": (waits.critical_path, oracle.critical_path),
}
SHORT = [
    name for name in QUESTIONS if name not in ("shares", "overlap", "bandwidth", "gaps", "bubbles", "waiting", "path")
]
"""What can be asked of long runs by brute force: nothing that looks at every cycle."""


def assert_answers(report: Path, questions: Iterable[str], **chosen: Any) -> int:
    """Hold our answers against those by brute force; return how many there were."""
    try:
        expected: Execution | None = Execution(Captured(report / "profile.pop"), **chosen)
    except Missing:
        expected = None
    captured = 0
    with open_report(report) as opened:
        if expected is None:
            with pytest.raises(NotCaptured):
                read_trace(opened, **chosen)
            return 0
        trace = read_trace(opened, **chosen)
        for question in questions:
            ours, theirs = QUESTIONS[question]
            found = outcome(ours, trace)
            assert_same(found, outcome(theirs, expected), (question, report.name, chosen))
            captured += found != "not captured"
    return captured


@pytest.mark.parametrize("seed", range(40))
def test_random_reports(seed: int, tmp_path: Path) -> None:
    # GIVEN small reports of every kind; WHEN asked; THEN each whole answer is that of the definition
    report = make_execution_report(tmp_path / f"{seed}", seed).parent
    assert_answers(report, QUESTIONS)


@pytest.mark.parametrize("seed", range(40, 60))
def test_chosen_runs_and_ipus(seed: int, tmp_path: Path) -> None:
    # GIVEN reports of several runs or IPUs; WHEN asked about some; THEN nothing of the others is in the answer
    report = make_execution_report(tmp_path / f"{seed}", seed).parent
    captured = Captured(report / "profile.pop")
    if {"execution_steps", "execution_step_ipus"} <= set(captured):
        one = random.Random(seed).choice(Execution(captured).rows)
        run, ipu = {"runs": [one["run_id"]]}, {"ipus": [one["ipu"]]}
        for chosen in (run, ipu, run | ipu):
            assert_answers(report, QUESTIONS, **chosen)


@pytest.mark.parametrize("sample", ["pipelined/training", "replicated"])
def test_samples(sample: str) -> None:
    assert assert_answers(SAMPLES / sample, SHORT) == len(SHORT)


# ------------------------------------------------------------------------------------------------- unions of intervals
def test_unions_are_those_of_their_cycles() -> None:
    rng = random.Random(5)
    for _ in range(500):
        pairs = [[(rng.randint(0, 25), rng.randint(0, 25)) for _ in range(rng.randint(0, 8))] for _ in range(2)]
        parts = [stretches.merged(*np.array(one, np.int64).reshape(-1, 2).T) for one in pairs]
        cycles = {cycle for one in pairs for begin, end in one for cycle in range(begin, end)}
        begin, end = both = stretches.union(parts)
        assert list(zip(begin.tolist(), end.tolist(), strict=True)) == oracle.stretches(cycles)
        assert stretches.length(both) == len(cycles)
        first, last = sorted((rng.randint(0, 25), rng.randint(0, 25)))
        begin, end = stretches.complement(both, first, last)
        assert list(zip(begin.tolist(), end.tolist(), strict=True)) == oracle.stretches(
            set(range(first, last)) - cycles
        )


# -------------------------------------------------------------------------------------------------------- by hand
Make = Callable[..., Path]


def step_row(step: int, ipu: int, begin: int, end: int, cycles: int | None = None) -> tuple[Any, ...]:
    return (step, ipu, end - begin if cycles is None else cycles, begin, begin, end, end, begin, begin, end, end,
            0.5, 1.0, None, None)  # fmt: skip


def program(number: int, kind: str, name: str) -> tuple[Any, ...]:
    return (number, kind, name, None, None, None, None, None, None)


PIPELINE = {
    "target": [("Ipu", "Ipu2", 2, 1, 1, 2, 1, 100.0, None, None, None)],
    "programs": [program(0, "OnTileExecute", "stage"), program(1, "Sync", "External Sync")],
    "runs": [(0, "first", 0, 1)],
    "execution_steps": [(step, 0, step % 2, None) for step in range(5)],
    # IPU 0 works in 0-10, IPU 1 in 10-30, both from 35, IPU 0 until 45 and IPU 1 until 40
    "execution_step_ipus": [
        *(step_row(0, 0, 0, 10), step_row(1, 0, 10, 35), step_row(1, 1, 0, 10), step_row(2, 1, 10, 30)),
        *(step_row(3, 1, 30, 35), step_row(4, 0, 35, 45), step_row(4, 1, 35, 40)),
    ],
}


def test_a_pipeline_of_two(make_profile: Make) -> None:
    # GIVEN two IPUs that work in turn, and then at once; THEN who waits for whom is as drawn above
    with open_report(make_profile(PIPELINE).parent) as report:
        trace = read_trace(report)
        assert plain(waits.waiting(trace))[1] == [
            (0, 0, 0, 10, 30, 20, 1), (0, 0, 1, 0, 10, 10, 0), (0, 0, 0, 30, 35, 5, None), (0, 0, 1, 30, 35, 5, None),
            (0, 0, 1, 40, 45, 5, 0),
        ]  # fmt: skip
        assert plain(waits.bubbles(trace))[1] == [
            (0, 0, 0, 45, 20, 20, 20 / 45, 5),
            (0, 0, 1, 45, 25, 15, 15 / 45, 5),
        ]
        assert plain(waits.critical_path(trace))[1] == [
            (0, 0, 0, 0, 10, 10), (0, 0, 1, 10, 30, 20), (0, 0, None, 30, 35, 5), (0, 0, 0, 35, 45, 10),
        ]  # fmt: skip


def test_no_execution_part(make_profile: Make) -> None:
    with open_report(make_profile({"target": PIPELINE["target"]}).parent) as report:
        with pytest.raises(NotCaptured):
            read_trace(report)
        with pytest.raises(NotCaptured):
            details.runs_frame(report, None)


def test_runs_without_steps(make_profile: Make) -> None:
    rows = {name: PIPELINE[name] for name in ("target", "runs")}
    with open_report(make_profile(rows).parent) as report:
        assert plain(ExecutionAccessor(report).runs())[1] == [(0, "first", 0, 1, 1, None, None, None, None, False)]


def test_steps_of_no_cycles(make_profile: Make) -> None:
    # GIVEN nothing but steps that take no time; THEN nothing is divided by it
    rows = PIPELINE | {"execution_step_ipus": [step_row(0, 0, 7, 7), step_row(2, 1, 7, 7)]}
    with open_report(make_profile(rows).parent) as report:
        trace = read_trace(report)
        assert plain(details.by_type(trace))[1] == [("OnTileExecute", "compute", 2, 0, None)]
        kinds = [(0, 0, "compute", 1, 0, None, 0, None), (0, 1, "compute", 1, 0, None, 0, None)]
        assert plain(details.shares(trace))[1] == kinds
        assert plain(efficiency.imbalance(trace))[1] == [(0, "OnTileExecute", "stage", 2, 0, 0.0, None, None, 0)]
        for empty in (waits.idle_gaps, waits.waiting, waits.bubbles, waits.critical_path):
            assert len(empty(trace)) == 0


def test_the_first_run_is_distorted(make_profile: Make) -> None:
    # GIVEN three runs, the first of which waits long for the host; WHEN it is among those asked for, it is pointed out
    rows = {
        "target": PIPELINE["target"], "programs": [program(0, "StreamCopyBegin", "in")],
        "runs": [(run, f"step {run}", 0, 1) for run in range(3)],
        "execution_steps": [(run, run, 0, None) for run in range(3)],
        "execution_step_ipus": [step_row(0, 0, 0, 1000), step_row(1, 0, 1000, 1090), step_row(2, 0, 1090, 1190)],
    }  # fmt: skip
    with open_report(make_profile(rows).parent) as report:
        asked = ExecutionAccessor(report)
        assert asked.runs()["distorted"].tolist() == [True, False, False]
        assert asked.runs(run=[1, 2])["distorted"].tolist() == [False, False]
        assert asked.runs()["host_wait_cycles"].tolist() == [1000, 90, 100]


def test_sums_beyond_64_bits_are_refused(make_profile: Make) -> None:
    rows = PIPELINE | {"execution_step_ipus": [step_row(step, 0, 0, 1, 2**62) for step in range(4)]}
    with open_report(make_profile(rows).parent) as report:
        with pytest.raises(PvanalyseError, match="add up to more"):
            read_trace(report)


def test_what_makes_no_sense_is_refused(make_profile: Make) -> None:
    with open_report(make_profile(PIPELINE).parent) as report:
        asked = ExecutionAccessor(report)
        for question in (
            lambda: asked.by_type(run=9), lambda: asked.by_type(ipu=9), lambda: asked.by_type(per=["tile"]),
            lambda: asked.by_prefix(depth=0), lambda: asked.by_program(pattern="("), lambda: asked.steps(pattern="("),
        ):  # fmt: skip
            with pytest.raises(UsageError):
                question()


# ------------------------------------------------------------------------------------------------- steps, and accessor
def test_steps_are_chosen() -> None:
    # GIVEN a sample; WHEN asked for steps of a type and name; THEN they are those of the file, in order
    report = SAMPLES / "pipelined" / "training"
    database = sqlite3.connect(f"file:{report / 'profile.pop'}?mode=ro", uri=True)
    query = """SELECT step_id, ipu, name, active_from_max, active_to_max FROM execution_step_ipus
        JOIN execution_steps USING (step_id) JOIN programs USING (program_id)
        WHERE type = 'OnTileExecute' AND name LIKE '%/Softmax%' AND run_id = 1 AND ipu = 1 ORDER BY step_id, ipu"""
    expected = database.execute(query).fetchall()
    database.close()
    with open_report(report) as opened:
        frame = ExecutionAccessor(opened).steps(run=1, ipu=1, types=["OnTileExecute"], pattern="/Softmax")
    assert plain(frame[["step_id", "ipu", "name", "begin", "end"]])[1] == expected
    assert expected


def test_the_accessor_asks_the_same() -> None:
    asked = {"type": "by_type", "program": "by_program", "compute set": "by_compute_set", "operation": "by_operation",
             "prefix": "by_prefix", "shares": "shares", "overlap": "overlap", "bandwidth": "bandwidth",
             "imbalance": "imbalance", "flops": "flops", "estimates": "against_estimates", "gaps": "idle_gaps",
             "bubbles": "bubbles", "waiting": "waiting", "path": "critical_path"}  # fmt: skip
    with open_report(SAMPLES / "replicated") as report:
        trace, accessor = read_trace(report, [1]), ExecutionAccessor(report)
        for question, name in asked.items():
            assert_same(plain(getattr(accessor, name)(run=1)), plain(QUESTIONS[question][0](trace)), name)


@pytest.mark.parametrize("sample", ["pipelined/training", "replicated"])
def test_parts_of_a_pipeline_add_up(sample: str) -> None:
    # GIVEN runs too long to go through cycle by cycle; THEN what each IPU works and waits makes up the whole
    with open_report(SAMPLES / sample) as report:
        trace = read_trace(report)
        bubbles, waiting, path = waits.bubbles(trace), waits.waiting(trace), waits.critical_path(trace)
    for row in bubbles.to_dict("records"):
        assert row["work_cycles"] + row["bubble_cycles"] + row["stalled_cycles"] == row["span_cycles"]
        mine = waiting[(waiting["run_id"] == row["run_id"]) & (waiting["ipu"] == row["ipu"])]
        assert mine.loc[mine["waited_for"].notna(), "cycles"].sum() == row["bubble_cycles"]
        assert mine.loc[mine["waited_for"].isna(), "cycles"].sum() == row["stalled_cycles"]
        steps = path[path["run_id"] == row["run_id"]]
        assert (steps["begin"].to_numpy()[1:] == steps["end"].to_numpy()[:-1]).all()
        assert steps["cycles"].sum() == row["span_cycles"]


def test_lightweight_blocks() -> None:
    # GIVEN no steps but blocks; THEN they answer, of no run, and the runs are still listed
    with open_report(SAMPLES / "lightweight") as report:
        rows = plain(report.table("execution_blocks"))[1]
        trace = read_trace(report)
        assert trace.kind == "blocks"
        assert details.by_program(trace)["cycles"].sum() == sum(row[6] - row[5] for row in rows)
        runs = details.runs_frame(report, trace)
        assert runs["run_id"].tolist() == [-1, 0, 1, 2, 3]
        assert plain(runs[["num_steps", "cycles"]])[1] == [
            (len(rows), max(row[6] for row in rows) - min(row[5] for row in rows)), *[(None, None)] * 4,
        ]  # fmt: skip


def test_the_real_cache(real_cache: Path) -> None:
    # GIVEN the viewer's cache of a run; THEN its cycles by tag and the elapsed cycles are those of its rows
    database = sqlite3.connect(f"file:{real_cache / 'profile.pop_cache'}?mode=ro&immutable=1", uri=True)
    (table,) = next(iter(database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'execution_trace_blocks%'")))
    leaves = database.execute(
        f"SELECT tag, COUNT(*), SUM(cycles_to - cycles_from) FROM {table} WHERE tag != 'FlameGraphNode' GROUP BY tag"
    ).fetchall()
    database.close()
    with open_report(real_cache) as report:
        trace = read_trace(report)
        found = details.by_type(trace)
        assert details.runs_frame(report, trace)["cycles"].tolist() == [2_540_750]
    named = {tag.replace("StreamCopy", "StreamCopyMid") if tag == "StreamCopy" else tag: rest for tag, *rest in leaves}
    assert {row["type"]: [row["num_steps"], row["cycles"]] for row in found.to_dict("records")} == named


@pytest.mark.parametrize(
    ("destination", "path"),
    [("Host", "host"), ("weights", "remote"), ("Host, weights", "mixed"), ("Hostess", "remote"), (None, "unknown")],
)
def test_the_cache_says_where_bytes_go(destination: str | None, path: str) -> None:
    # GIVEN a stream copy of the viewer's cache; THEN its bandwidth goes by its destination; AND nothing else's does
    block = {"parent_id": None, "ipu": 0, "graph": 0, "depth": 0, "name": "x", "cycles_from": 0, "cycles_to": 5}
    source = Rows({"trace_blocks": [
        {**block, "block_id": 0, "tag": "StreamCopy", "step_ids": [1], "stream_copy_destination": destination},
        {**block, "block_id": 1, "tag": "StreamCopyEnd", "step_ids": [2]},
    ]})  # fmt: skip
    found = details.bandwidth(read_trace(source))
    assert found[["path", "num_steps", "covered_cycles"]].to_numpy().tolist() == [[path, 1, 5]]


def test_the_real_cache_moves_bytes_to_and_from_the_host(real_cache: Path) -> None:
    with open_report(real_cache) as report:
        found = details.bandwidth(read_trace(report))
        copies = sum(row["tag"] == "StreamCopy" for row in report.arrow("trace_blocks", ["tag"]).to_pylist())
    assert found[found["path"] != "inter-IPU"].groupby("path")["num_steps"].sum().to_dict() == {"host": copies}
