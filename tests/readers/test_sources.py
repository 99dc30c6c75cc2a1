"""Every file of a report through the one way to ask for tables."""

from __future__ import annotations

from pathlib import Path

import cbor2
import pytest

from pvanalyse import open_report
from pvanalyse.errors import UsageError
from pvanalyse.tables import TABLES, Kind
from tests.conftest import SAMPLES

TRAINING = SAMPLES / "pipelined" / "training"


@pytest.mark.parametrize("name", TABLES)
def test_count_captured_and_rows_agree_and_columns_are_those_of_the_model(name: str) -> None:
    with open_report(TRAINING) as report:
        if not report.captured(name):
            assert report.count(name) == 0
            return
        whole = report.arrow(name)
        assert whole.schema == TABLES[name].arrow_schema()
        assert report.count(name) == whole.num_rows > 0
        last = TABLES[name].column_names[-1]
        assert sum(batch.num_rows for batch in report.batches(name, [last])) == whole.num_rows


@pytest.mark.parametrize("name", TABLES)
def test_each_column_alone_is_the_column_of_the_whole(name: str) -> None:
    with open_report(TRAINING) as report:
        if report.captured(name):
            whole = report.arrow(name)
    with open_report(TRAINING) as report:
        if report.captured(name):
            for column in TABLES[name].column_names:
                assert report.arrow(name, [column]).column(0).to_pylist() == whole.column(column).to_pylist()


def test_cycles_of_debug_contexts_are_reported_and_not_followed(tmp_path: Path) -> None:
    # GIVEN two contexts that are each other's parent
    (tmp_path / "archive.a").write_bytes(b"!<arch>\n")
    contexts = [{"id": 1, "parentId": 2, "name": 0, "layer": "x"}, {"id": 2, "parentId": 1, "name": 0, "layer": "x"}]
    (tmp_path / "debug.cbor").write_bytes(cbor2.dumps({"contexts": contexts, "stringTable": ["a"]}))

    # WHEN they are read
    with open_report(tmp_path) as report:
        frame = report.tables.debug_contexts
        warnings = report.warnings

    # THEN the table shows them and a warning names them
    assert frame[["debug_context_id", "parent_id"]].to_numpy().tolist() == [[1, 2], [2, 1]]
    assert len(warnings) == 1
    assert "form a cycle and are not followed: 1 → 2 → 1" in warnings[0]


@pytest.mark.parametrize(
    "name", [name for name, schema in TABLES.items() if any(c.kind is Kind.INTEGER for c in schema.columns)]
)
def test_chosen_rows_are_those_of_the_whole(name: str, real_cache: Path) -> None:
    # GIVEN a table, read whole, and some of the numbers in its first integer column, with one that is not there
    directory = real_cache.parent if name == "trace_blocks" else SAMPLES / "transformer_after"
    with open_report(directory) as report:
        if not report.captured(name):
            pytest.skip(f"the sample has no table {name}")
        key = next(column.name for column in TABLES[name].columns if column.kind is Kind.INTEGER)
        whole = report.arrow(name)
        numbers = sorted({value for value in whole.column(key).to_pylist() if value is not None})
        wanted = [*numbers[1:8:2], -12345]

        # WHEN only their rows are asked for, without the column itself
        columns = [column for column in whole.column_names if column != key] or whole.column_names
        chosen = report.arrow(name, columns, where={key: wanted})

        # THEN they are those of the whole, in its order
        expected = [row for row in whole.to_pylist() if row[key] in wanted]
        assert chosen.to_pylist() == [{column: row[column] for column in columns} for row in expected]
        assert report.arrow(name, columns, where={key: []}).num_rows == 0


def test_rows_are_chosen_by_integers_only() -> None:
    with open_report(SAMPLES / "transformer_after") as report:
        with pytest.raises(UsageError, match="rows of table 'variables' cannot be chosen by 'name'"):
            report.arrow("variables", where={"name": [1]})
        with pytest.raises(UsageError, match="has no column 'nope'"):
            report.arrow("variables", where={"nope": [1]})
