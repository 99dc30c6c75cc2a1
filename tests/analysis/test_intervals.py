"""The common table of intervals, against SQL and against rows that one can see through."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pvanalyse import NotCaptured, Report, UsageError, open_report
from pvanalyse.analysis.intervals import INTERVAL_COLUMNS, available_kinds, interval_batches
from tests.conftest import SAMPLES
from tests.plots.sources import Rows, target

TYPES = ["int64", "int64", "int64", "int64", "str", "str", "int64", "int64", "int64", "int64", "int64", "float64",
         "float64", "Int64", "Int64", "str"]  # fmt: skip
STEPS_SQL = """
    SELECT i.step_id, s.run_id, i.ipu, s.program_id, p.type, p.name, active_from_max, active_to_max, all_from_min,
           all_to_max, cycles, tile_balance, active_tile_balance, data_in, data_out, NULL
    FROM execution_step_ipus i JOIN execution_steps s USING (step_id) JOIN programs p USING (program_id)
    ORDER BY i.step_id, i.ipu
"""
BLOCKS_SQL = """
    SELECT block_id, -1, tile / (SELECT tiles_per_ipu FROM target), coalesce(program_id, -1),
           coalesce(p.type, kind), b.name, cycles_from, cycles_to, cycles_from, cycles_to, cycles_to - cycles_from,
           NULL, NULL, NULL, NULL, NULL
    FROM execution_blocks b LEFT JOIN programs p USING (program_id) ORDER BY block_id
"""


def collect(source: Any, *args: Any, **kwargs: Any) -> pd.DataFrame:
    return pd.concat(interval_batches(source, *args, **kwargs), ignore_index=True)


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Rows as SQL would give them."""
    unknown = frame.astype(object).where(frame.notna(), None)
    return list(unknown.itertuples(index=False, name=None))


def sql(report: Path, query: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(f"file:{report / 'profile.pop'}?mode=ro&immutable=1", uri=True)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


@pytest.mark.parametrize(
    ("sample", "kind", "query"),
    [
        ("pipelined/training", "steps", STEPS_SQL),
        ("replicated", "steps", STEPS_SQL),
        ("lightweight", "blocks", BLOCKS_SQL),
    ],
)
def test_a_sample_is_what_sql_finds(sample: str, kind: str, query: str) -> None:
    with open_report(SAMPLES / sample) as report:
        assert available_kinds(report) == (kind,)
        found = collect(report)
    assert [str(one) for one in found.dtypes] == TYPES
    assert tuple(found.columns) == INTERVAL_COLUMNS
    assert rows(found) == sql(SAMPLES / sample, query)


def test_the_cache_has_its_blocks_with_whole_names(real_cache: Path) -> None:
    with open_report(real_cache) as report:
        found = collect(report)
        stored = report.arrow("trace_blocks").to_pylist()
    blocks = {(min(row["step_ids"]), row["ipu"]): row for row in stored if row["tag"] != "FlameGraphNode"}
    # GIVEN the blocks that are no groups; THEN each is there, in the order of its first step
    assert [tuple(row) for row in found[["step_id", "ipu"]].to_numpy().tolist()] == sorted(blocks)
    assert [str(one) for one in found.dtypes] == TYPES
    for row in found.itertuples():
        block = blocks[row.step_id, row.ipu]
        assert (row.begin, row.end, row.cycles) == (
            block["cycles_from"], block["cycles_to"], block["cycles_to"] - block["cycles_from"]
        )  # fmt: skip
        assert row.type == {"StreamCopy": "StreamCopyMid"}.get(block["tag"], block["tag"])
        assert row.name.endswith(block["name"] or "")
        assert (None if pd.isna(row.destination) else row.destination) == block["stream_copy_destination"]
    # AND names have what their groups took of them, where groups take something
    names = set(found["name"])
    assert {"matmul/100/matmulGrouped/Conv_1/Reduce0", "StreamCopy/Begin", "adamupdater/380", "Internal Sync",
            "adamupdater/380/updateStep", "accumulate/187/Mean/AddTo"} <= names  # fmt: skip
    assert "" not in names
    assert {name.split("/")[0] for name in names if "Sync" in name} == {"Internal Sync", "External Sync", "SyncAns"}
    assert not any(re.search(r"/copy\d+_", name) for name in names if not name.startswith("copy"))
    # AND the trace is as long as it is
    assert int(found["end"].max() - found["begin"].min()) == 2_540_750


STEP = {"cycles": 4, "active_from_min": 0, "active_from_max": 1, "active_to_min": 4, "active_to_max": 5,
        "all_from_min": 0, "all_from_max": 2, "all_to_min": 5, "all_to_max": 7}  # fmt: skip


def small() -> Rows:
    """Two runs on two IPUs; a step that is in no run, and a program that is not described."""
    return Rows({
        "target": [target(4, 2)],
        "programs": [{"program_id": 8, "type": "DoExchange", "name": None}, {"program_id": 3, "type": None, "name": "x"}],
        "execution_steps": [{"step_id": 5, "run_id": 1, "program_id": 3}, {"step_id": 2, "run_id": 0, "program_id": 8},
                            {"step_id": 7, "run_id": 1, "program_id": 99}, {"step_id": 9, "run_id": None, "program_id": None}],
        "execution_step_ipus": [{"step_id": step, "ipu": ipu, **STEP} for step in (2, 3, 5, 7, 9) for ipu in (0, 1)],
    })  # fmt: skip


def test_what_is_not_known_is_said_so() -> None:
    found = collect(small())
    # GIVEN a step that is in no run; THEN it is left out; AND what is not described is unknown
    columns = ["step_id", "ipu", "run_id", "program_id", "type", "name"]
    assert rows(found[columns]) == [
        (2, 0, 0, 8, "DoExchange", ""), (2, 1, 0, 8, "DoExchange", ""),
        (5, 0, 1, 3, "Unknown", "x"), (5, 1, 1, 3, "Unknown", "x"),
        (7, 0, 1, 99, "Unknown", ""), (7, 1, 1, 99, "Unknown", ""),
        (9, 0, -1, -1, "Unknown", ""), (9, 1, -1, -1, "Unknown", ""),
    ]  # fmt: skip
    assert rows(found[["begin", "end", "all_begin", "all_end", "cycles", "data_in"]]) == [(1, 5, 0, 7, 4, None)] * 8
    assert found["tile_balance"].isna().all()


def test_without_programs_all_is_unknown() -> None:
    source = small()
    del source._tables["programs"]
    found = collect(source)
    assert (set(found["type"]), set(found["name"]), len(found)) == ({"Unknown"}, {""}, 8)


@pytest.mark.parametrize(
    ("chosen", "steps"),
    [
        ({"runs": [1]}, [(5, 0), (5, 1), (7, 0), (7, 1)]),
        ({"runs": [0, 1], "ipus": [1]}, [(2, 1), (5, 1), (7, 1)]),
        ({"ipus": [0]}, [(2, 0), (5, 0), (7, 0), (9, 0)]),
        ({"runs": []}, []),
    ],
)
def test_some_runs_and_ipus(chosen: dict[str, Any], steps: list[tuple[int, int]]) -> None:
    whole, found = collect(small()), collect(small(), **chosen)
    kept = [(row.step_id, row.ipu) in steps for row in whole.itertuples()]
    assert rows(found) == rows(whole[kept])
    assert [str(one) for one in found.dtypes] == TYPES


@pytest.mark.parametrize("columns", [["end", "type"], ["name"], ["run_id", "data_out"]])
def test_some_columns(columns: list[str]) -> None:
    found = collect(small(), columns=columns)
    assert list(found.columns) == columns
    assert rows(found) == rows(collect(small())[columns])


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"kind": "traces"}, "no kind of intervals 'traces'; there are: steps, blocks, cache"),
        ({"runs": [0, 4]}, "no run 4; runs are 0 to 1"),
        ({"ipus": [2]}, "no IPU 2; IPUs are 0 to 1"),
        ({"ipus": [-1]}, "no IPU -1"),
        ({"columns": ["begin", "tiles"]}, "no column 'tiles'"),
    ],
)
def test_questions_that_make_no_sense(question: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        interval_batches(small(), **question)


def test_blocks_do_not_know_runs() -> None:
    with open_report(SAMPLES / "lightweight") as report, pytest.raises(UsageError, match="do not say which run"):
        interval_batches(report, runs=[0])


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (None, "execution_steps"),
        ("steps", "execution_steps"),
        ("blocks", "execution_blocks"),
        ("cache", "trace_blocks"),
    ],
)
def test_nothing_captured(kind: Any, missing: str) -> None:
    with open_report(SAMPLES / "out_of_memory") as report:
        assert available_kinds(report) == ()
        with pytest.raises(NotCaptured) as refused:
            interval_batches(report, kind)
    assert refused.value.table == missing


def cached(*blocks: tuple[Any, ...]) -> Rows:
    names = ("block_id", "parent_id", "tag", "name", "step_ids")
    return Rows({"trace_blocks": [{**dict(zip(names, block, strict=True)), "ipu": 0, "graph": 0, "depth": 0,
                                   "cycles_from": 0, "cycles_to": 1} for block in blocks]})  # fmt: skip


def test_a_damaged_cache_goes_round_in_circles() -> None:
    # GIVEN groups that are in each other, a group that is not there, and blocks without steps or a name
    found = collect(cached(
        (0, 1, "FlameGraphNode", "a", []), (1, 0, "FlameGraphNode", "b", []), (2, 0, "OnTileExecute", "c", [4]),
        (3, 77, "OnTileExecute", "d", [3]), (4, None, None, None, None),
    ))  # fmt: skip
    # THEN it ends, and what is known is there
    assert found["step_id"].tolist() == [-1, 3, 4]
    assert found["name"].tolist()[:2] == ["", "d"]
    assert found["name"].tolist()[2].endswith("b/a/c")
    assert found["type"].tolist() == ["Unknown", "OnTileExecute", "OnTileExecute"]


def test_a_report_with_no_rows_gives_one_empty_batch(make_profile: Callable[..., Path]) -> None:
    # GIVEN steps that no IPU took part in
    source = Rows({"execution_steps": [{"step_id": 1, "run_id": 0, "program_id": 0}], "execution_step_ipus": []})
    batches = list(interval_batches(source))
    assert [len(batch) for batch in batches] == [0]
    assert [str(one) for one in batches[0].dtypes] == TYPES
    # AND a profile without the table is not asked for it
    path = make_profile({}, drop=["execution_step_ipus"])
    with open_report(path.parent) as report:
        assert available_kinds(report) == ()
        assert isinstance(report, Report)
