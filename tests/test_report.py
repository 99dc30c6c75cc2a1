"""A report as the API shows it: opening, tables, what is read and what is kept, and what it says of itself."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import pvanalyse
from pvanalyse import AmbiguousReport, NotCaptured, Report, ReportNotFound, UnreadableFile, UsageError, open_report
from pvanalyse.readers import sources
from pvanalyse.tables import PROFILE, TABLES, TRACE_CACHE, Kind, Where
from tests.conftest import SAMPLES

TRAINING = SAMPLES / "pipelined" / "training"
TARGET = ("Ipu", "Ipu2", 1, 1, 2, 2, 1000, 1e9, None, None, None)
DATABASES = (PROFILE, TRACE_CACHE)


@pytest.fixture(scope="module")
def training() -> Iterator[Report]:
    with open_report(TRAINING) as report:
        yield report


def rows_of(path: Path, table: str) -> int:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    database.close()
    return int(count)


# ---------------------------------------------------------------------------------------------------------- opening
@pytest.mark.parametrize("name", ["", "profile.pop", "archive.a", "framework.json", "app.json"])
def test_a_directory_or_any_file_in_it_opens_the_report(name: str) -> None:
    with open_report(TRAINING / name) as report:
        assert report.files.directory == TRAINING
        assert len(report.tables.programs) == rows_of(TRAINING / "profile.pop", "programs")


def test_a_path_may_be_text() -> None:
    with open_report(str(TRAINING)) as report:
        assert report.files.directory == TRAINING


def test_a_directory_with_one_report_below_it_opens_that(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "lightweight", tmp_path / "deep" / "down" / "report")
    with open_report(tmp_path) as report:
        assert report.files.directory == tmp_path / "deep" / "down" / "report"


def test_a_directory_with_several_is_ambiguous() -> None:
    with pytest.raises(AmbiguousReport) as caught:
        open_report(SAMPLES / "pipelined")
    assert caught.value.candidates == [str(SAMPLES / "pipelined" / name) for name in ("inference", "training")]
    assert caught.value.exit_code == 2
    assert all(candidate in str(caught.value) for candidate in caught.value.candidates)


@pytest.mark.parametrize("name", ["", "nothing", "notes.txt"])
def test_no_report_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("no report", encoding="utf-8")
    with pytest.raises((ReportNotFound, UnreadableFile), match=re.escape(str(tmp_path / name))) as caught:
        open_report(tmp_path / name)
    assert caught.value.exit_code == 3


def test_opening_reads_nothing(tmp_path: Path) -> None:
    # GIVEN a directory whose profile is damaged; WHEN opened; THEN only asking for a table tells
    (tmp_path / "profile.pop").write_bytes(b"not SQLite at all, " * 100)
    report = open_report(tmp_path)
    with pytest.raises(UnreadableFile, match=re.escape(str(tmp_path / "profile.pop"))):
        report.captured("programs")


# ----------------------------------------------------------------------------------------------------------- tables
def test_tables_are_a_mapping_of_what_was_captured(training: Report) -> None:
    # GIVEN a report; WHEN its tables are gone through
    names = list(training.tables)
    # THEN they are those with rows, in the order of the model
    counted = {name: training.count(name) for name in TABLES}
    assert names == [name for name in TABLES if counted[name]]
    assert (len(training.tables), list(training.tables.keys())) == (len(names), names)
    assert [name for name in TABLES if name in training.tables] == names
    assert "execution_blocks" not in names
    assert {name: len(frame) for name, frame in training.tables.items()} == {name: counted[name] for name in names}
    assert isinstance(training.tables, Mapping)


def test_counts_are_those_of_the_database(training: Report) -> None:
    tables = [name for name, schema in TABLES.items() if schema.source == PROFILE]
    assert {name: training.count(name) for name in tables} == {
        name: rows_of(TRAINING / "profile.pop", name) for name in tables
    }


def test_tables_go_by_name_and_by_attribute(training: Report) -> None:
    for frame in (training.tables["runs"], training.tables.runs, training.table("runs")):
        assert list(frame["name"]) == ["step_0", "step_1", "step_2", "weightsToHost"]
    assert set(dir(training.tables)) >= set(TABLES)


@pytest.mark.parametrize("unknown", [17, None, "", "Programs", "programs "])
def test_what_is_no_table_is_not_in_it(training: Report, unknown: object) -> None:
    assert unknown not in training.tables


def test_an_unknown_table_is_a_usage_error_with_near_names(training: Report) -> None:
    for ask in (training.tables.__getitem__, training.table, training.arrow, training.batches, training.captured,
                training.count):  # fmt: skip
        with pytest.raises(UsageError, match=r"there is no table 'progams'; did you mean programs"):
            ask("progams")
    with pytest.raises(AttributeError, match="progams"):
        _ = training.tables.progams
    assert not hasattr(training.tables, "_repr_png_")


@pytest.mark.parametrize("name", ["execution_blocks", "trace_blocks"])
def test_a_table_that_was_not_captured_says_what_captures_it(training: Report, name: str) -> None:
    for ask in (training.tables.__getitem__, training.table, training.arrow, training.batches):
        with pytest.raises(NotCaptured) as caught:
            ask(name)
        assert str(caught.value) == f"'{name}' was not captured in this report; to capture it: {TABLES[name].capture}"
        assert (caught.value.table, caught.value.exit_code) == (name, 4)
    with pytest.raises(NotCaptured):
        training.arrow(name, [])
    assert (training.captured(name), training.count(name)) == (False, 0)
    assert training.tables.get(name) is None
    assert training.tables.get(name, "default") == "default"
    assert training.tables.get("no table", "default") == "default"


@pytest.mark.parametrize("drop", [(), ("runs",)], ids=["empty", "missing"])
def test_an_empty_table_is_as_good_as_none(make_profile: Callable[..., Path], drop: Sequence[str]) -> None:
    path = make_profile({"target": [TARGET]}, drop=drop)
    with open_report(path) as report:
        assert list(report.tables) == ["target"]
        with pytest.raises(NotCaptured, match="autoReport.outputExecutionProfile"):
            report.table("runs")


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("execution_blocks", "trace_blocks")])
def test_every_column_has_the_type_of_the_model(training: Report, name: str) -> None:
    # GIVEN a table; WHEN read as Arrow and as a DataFrame
    arrow, frame = training.arrow(name), training.table(name)
    # THEN its types are those of the model, in the frame backed by Arrow or categories
    assert arrow.schema == TABLES[name].arrow_schema()
    assert list(frame.columns) == list(TABLES[name].column_names)
    for column in TABLES[name].columns:
        dtype = frame[column.name].dtype
        if column.kind is Kind.CATEGORY:
            assert isinstance(dtype, pd.CategoricalDtype)
        else:
            assert dtype == pd.ArrowDtype(column.arrow_type())
    assert frame.shape == (training.count(name), len(TABLES[name].columns))


def test_columns_come_as_they_are_asked_for(training: Report) -> None:
    frame = training.table("runs", ["end_us", "name"])
    assert list(frame.columns) == ["end_us", "name"]
    pd.testing.assert_frame_equal(frame, training.table("runs")[["end_us", "name"]])


@pytest.mark.parametrize("name", ["runs", "archive_tiles", "debug_contexts", "framework"])
def test_an_unknown_column_is_a_usage_error(training: Report, name: str) -> None:
    for ask in (training.arrow, training.batches, training.table):
        with pytest.raises(UsageError, match=f"table '{name}' has no column 'nope'; it has: "):
            ask(name, ["nope"])


# ------------------------------------------------------------------------------------------- what is read, and kept
class Recorder:
    """A source that tells which columns were read of it."""

    def __init__(self, source: sources.Source, reads: list[tuple[str, tuple[str, ...]]]) -> None:
        self._source = source
        self._reads = reads
        self.closed = False

    def captured(self, name: str) -> bool:
        return self._source.captured(name)

    def count(self, name: str) -> int:
        return self._source.count(name)

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        self._reads.append((name, tuple(columns or TABLES[name].column_names)))
        return self._source.batches(name, columns, where)

    def close(self) -> None:
        self.closed = True
        self._source.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """Every read of a source from now on: table and columns."""
    seen: list[tuple[str, tuple[str, ...]]] = []
    real = sources.open_source
    monkeypatch.setattr(sources, "open_source", lambda *what: Recorder(real(*what), seen))
    return seen


def test_each_column_is_read_once(reads: list[tuple[str, tuple[str, ...]]]) -> None:
    with open_report(TRAINING) as report:
        # WHEN columns are asked for again and again, some of them new
        for columns in (["name"], ["name"], ["run_id", "name"], None, ["end_us"]):
            report.arrow("runs", columns)
            report.table("runs", columns)
        # THEN only what is new is read
        assert reads == [("runs", ("name",)), ("runs", ("run_id",)), ("runs", ("start_us", "end_us"))]
        # and columns read apart belong together
        whole = open_report(TRAINING)
        assert report.arrow("runs").equals(whole.arrow("runs"))
        whole.close()


def test_asking_what_there_is_reads_nothing(reads: list[tuple[str, tuple[str, ...]]]) -> None:
    with open_report(TRAINING) as report:
        assert len(report.tables) > 20
        assert len(report.tables.listing()) == len(TABLES)
        repr(report.tables)
    assert reads == []


def test_batches_are_streamed_and_not_kept(reads: list[tuple[str, tuple[str, ...]]]) -> None:
    with open_report(TRAINING) as report:
        # WHEN a table is streamed twice; THEN it is read twice, and the batches are the table
        for _ in range(2):
            batches = list(report.batches("lowered_variables", ["tile", "bytes"]))
            table = pa.Table.from_batches(batches)
        assert reads == [("lowered_variables", ("tile", "bytes"))] * 2
        assert table.equals(report.arrow("lowered_variables", ["tile", "bytes"]))
        assert table.num_rows == report.count("lowered_variables")


def test_a_stream_need_not_be_read_to_its_end(tmp_path: Path) -> None:
    with open_report(TRAINING) as report:
        first = next(iter(report.batches("lowered_variables", ["tile"])))
        assert first.num_rows > 0
        assert report.arrow("lowered_variables", ["tile"]).num_rows == report.count("lowered_variables")


def test_a_metrics_call_reads_no_column_twice(reads: list[tuple[str, tuple[str, ...]]]) -> None:
    with open_report(TRAINING) as report:
        first = report.metrics()
        before = list(reads)
        assert report.metrics() == first
    twice = [table for table in {name for name, _ in before} if _read_twice(before, table)]
    assert twice == []


def _read_twice(reads: list[tuple[str, tuple[str, ...]]], table: str) -> bool:
    columns = [column for name, some in reads if name == table for column in some]
    return len(columns) != len(set(columns))


def test_progress_is_told_of_every_table() -> None:
    told: list[tuple[str, int]] = []
    with open_report(TRAINING, progress=lambda table, rows: told.append((table, rows))) as report:
        report.arrow("lowered_variables", ["tile"])
        assert told[-1] == ("lowered_variables", report.count("lowered_variables"))
        report.arrow("debug_contexts", ["name"])
        assert told[-1][0] == "debug_contexts"
        before = len(told)
        report.arrow("lowered_variables", ["tile"])
        assert len(told) == before


def test_what_was_read_stays_after_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Recorder] = []
    real = sources.open_source

    def open_source(*what: Any) -> Recorder:
        opened.append(Recorder(real(*what), []))
        return opened[-1]

    monkeypatch.setattr(sources, "open_source", open_source)
    with open_report(TRAINING) as report:
        runs, tiles = report.table("runs"), report.table("archive_tiles")
    assert [one.closed for one in opened] == [True, True]
    pd.testing.assert_frame_equal(report.table("runs"), runs)
    pd.testing.assert_frame_equal(report.table("archive_tiles"), tiles)
    assert len(opened) == 2
    report.close()


def test_files_are_closed_when_the_block_fails() -> None:
    report = open_report(TRAINING)
    with pytest.raises(UsageError), report:
        report.table("runs", ["no column"])
    assert report._readers == {}


# -------------------------------------------------------------------------------------------------------------- sql
def test_sql_asks_the_file_itself(training: Report) -> None:
    frame = training.sql("SELECT type, count(*) AS n FROM programs GROUP BY type ORDER BY n DESC, type")
    counts = training.tables.programs["type"].value_counts()
    assert dict(zip(frame["type"], frame["n"], strict=True)) == dict(counts[counts > 0])


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM runs",
        "INSERT INTO runs VALUES (9, '', 0, 0)",
        "UPDATE runs SET name = ''",
        "DROP TABLE runs",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x (y)",
        "PRAGMA user_version = 7",
        "PRAGMA writable_schema = 1",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'other.db'",
        "SELECT 1; DELETE FROM runs",
        "SELECT load_extension('x')",
        "BEGIN",
        "nonsense",
        "",
        ";",
        "SELECT * FROM no_such_table",
        "SELECT 1 FROM runs\x00",
    ],
)
def test_sql_only_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    # GIVEN a copy of a report; WHEN asked for more than reading, or for nonsense
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "report"
    shutil.copytree(TRAINING, copy)
    before = (copy / "profile.pop").read_bytes()
    with open_report(copy) as report, pytest.raises(pvanalyse.PvanalyseError):
        report.sql(query)
    # THEN it is refused, and nothing has changed
    assert (copy / "profile.pop").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report"]
    assert sorted(path.name for path in copy.iterdir()) == sorted(path.name for path in TRAINING.iterdir())


def test_sql_needs_a_profile(tmp_path: Path) -> None:
    shutil.copy(TRAINING / "archive.a", tmp_path)
    with open_report(tmp_path) as report, pytest.raises(NotCaptured, match=r"profile\.pop"):
        report.sql("SELECT 1")


# ---------------------------------------------------------------------------------------------------- partial reports
def test_only_an_archive(tmp_path: Path) -> None:
    shutil.copy(TRAINING / "archive.a", tmp_path)
    with open_report(tmp_path) as report:
        assert list(report.tables) == [name for name, schema in TABLES.items() if schema.source == "archive.a"]
        assert {name.partition(".")[0] for name in report.metrics()} == {"archive"}
        summary = report.summary()
        assert (summary.memory, summary.liveness, summary.execution) == (None, None, None)
        assert summary.archive is not None
        assert "128 archive tiles" in repr(report)


def test_only_a_trace_cache(real_cache: Path) -> None:
    with open_report(real_cache) as report:
        assert list(report.tables) == ["trace_blocks"]
        assert report.metrics() == {}
        assert report.trace_cache_is_fresh() is None
        assert report.summary().trace is not None
        assert "trace blocks" in repr(report)


def make_cache(directory: Path, change_counter: int) -> None:
    with sqlite3.connect(directory / TRACE_CACHE) as database:
        database.executescript(
            "CREATE TABLE cache_info (id INTEGER, profile_pop_fcc INTEGER);"
            "CREATE TABLE execution_trace_blocks_v1_x (id INTEGER PRIMARY KEY, parent_id INTEGER, tag TEXT, ipu INTEGER,"
            " graph INTEGER, row INTEGER, name TEXT, cycles_from INTEGER, cycles_to INTEGER, step_ids BLOB,"
            " tile_balance REAL, stream_copy_destination TEXT);"
            "INSERT INTO execution_trace_blocks_v1_x VALUES (1, NULL, 'Sync', 0, 0, 0, 's', 0, 9, x'80', 0.5, NULL);"
        )
        database.execute("INSERT INTO cache_info VALUES (0, ?)", (change_counter,))
    database.close()


@pytest.mark.parametrize("drift", [0, 1])
def test_a_trace_cache_is_fresh_when_it_was_made_from_this_profile(
    make_profile: Callable[..., Path], drift: int
) -> None:
    # GIVEN a cache that was made from the profile's present state, or from another
    path = make_profile({"target": [TARGET]})
    counter = int.from_bytes(path.read_bytes()[24:28], "big")
    make_cache(path.parent, counter + drift)
    # THEN the report knows, and the summary says so
    with open_report(path) as report:
        assert report.trace_cache_is_fresh() is (drift == 0)
        assert any("stale" in note for note in report.summary().notes) is (drift == 1)


def test_no_cache_is_neither_fresh_nor_stale(training: Report) -> None:
    assert training.trace_cache_is_fresh() is None


# -------------------------------------------------------------------------------------------------------- overrides
def test_another_debug_cbor_is_read() -> None:
    other = SAMPLES / "replicated" / "debug.cbor"
    with open_report(TRAINING, debug_info=other) as report, open_report(other.parent) as theirs:
        assert report.arrow("debug_contexts").equals(theirs.arrow("debug_contexts"))
        assert {"name": str(other), "bytes": other.stat().st_size, "note": ""} in report.summary().files


@pytest.mark.parametrize("kind", ["missing", "directory", "empty"])
def test_another_debug_cbor_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "other.cbor"
    if kind == "directory":
        path.mkdir()
    if kind == "empty":
        path.touch()
    with open_report(TRAINING, debug_info=path) as report, pytest.raises(UnreadableFile, match=re.escape(str(path))):
        report.table("debug_contexts")


def test_another_dialect_is_used(tmp_path: Path) -> None:
    # GIVEN a database of another layout, and a dialect for its one table
    with sqlite3.connect(tmp_path / "profile.pop") as database:
        database.execute("CREATE TABLE laeufe (nummer INTEGER PRIMARY KEY, titel TEXT, von INTEGER, bis INTEGER)")
        database.execute("INSERT INTO laeufe VALUES (3, 'erster', 10, 30)")
    database.close()
    dialect = tmp_path / "german.toml"
    dialect.write_text(
        'name = "german"\n[tables.runs]\norder = "run_id"\n'
        'query = "SELECT nummer AS run_id, titel AS name, von AS start_us, bis AS end_us FROM laeufe"\n',
        encoding="utf-8",
    )
    with open_report(tmp_path) as report, pytest.raises(pvanalyse.UnknownLayout, match="laeufe"):
        report.captured("runs")
    # WHEN read with it; THEN the table is there
    with open_report(tmp_path, dialect=dialect) as report:
        assert report.arrow("runs").to_pylist() == [{"run_id": 3, "name": "erster", "start_us": 10, "end_us": 30}]
        assert list(report.tables) == ["runs"]


@pytest.mark.parametrize("content", [None, "", "name = 1", "[[[", 'name = "x"\n[tables.nope]\nsql = "SELECT 1"'])
def test_a_dialect_that_cannot_be_used_is_a_usage_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(str(path))):
        open_report(TRAINING, dialect=path)


# ---------------------------------------------------------------------------------------------------------- display
def test_a_report_says_what_it_is(training: Report) -> None:
    text = repr(training)
    assert text.startswith(f"<Report {str(TRAINING)!r}: 2 IPU(s) of 64 tiles, ")
    assert f"{rows_of(TRAINING / 'profile.pop', 'execution_steps'):,} execution steps" in text
    assert "<h3>" in training._repr_html_()
    assert "Fits: " in training._repr_html_()


def test_tables_say_what_they_are(training: Report) -> None:
    listing = training.tables.listing()
    assert list(listing["table"]) == list(TABLES)
    assert dict(zip(listing["table"], listing["rows"], strict=True)) == {name: training.count(name) for name in TABLES}
    assert len(repr(training.tables).splitlines()) == 1 + len(TABLES)
    assert training.tables._repr_html_().count("<tr") == 1 + len(TABLES)


@pytest.mark.parametrize("name", ["profile.pop", "archive.a", "debug.cbor", "framework.json", "profile.pop_cache"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 5000, b"SQLite format 3\0" + b"\xff" * 5000], ids=len)
def test_a_damaged_report_can_still_be_looked_at(tmp_path: Path, name: str, content: bytes) -> None:
    # GIVEN a report one of whose files is damaged
    for file in ("profile.pop", "archive.a", "framework.json"):
        shutil.copy(TRAINING / file, tmp_path)
    (tmp_path / name).write_bytes(content)
    # WHEN shown in a notebook or a debugger; THEN nothing is raised, and what is wrong is said where it matters
    with open_report(tmp_path) as report:
        for shown in (repr(report), repr(report.tables), report._repr_html_(), report.tables._repr_html_()):
            assert shown
        assert name in report._repr_html_()
        assert "Report that cannot be read" in report._repr_html_()


def test_what_is_shown_of_a_damaged_report_is_escaped(tmp_path: Path) -> None:
    directory = tmp_path / "<script>alert(1)<"
    directory.mkdir()
    (directory / "profile.pop").write_bytes(b"damaged")
    with open_report(directory) as report:
        for shown in (report._repr_html_(), report.tables._repr_html_()):
            assert "<script" not in shown
            assert "&lt;script&gt;" in shown


def test_summaries_and_insights_show_themselves_in_notebooks(training: Report) -> None:
    summary, insights = training.summary()._repr_html_(), training.insights()._repr_html_()
    assert summary is not None
    assert insights is not None
    assert "Info: fit" in insights
    assert "IPU" in summary


def test_a_report_shows_itself_in_notebooks_as_its_summary_with_pictures(training: Report) -> None:
    shown = training._repr_html_()
    assert shown.startswith(str(training.summary()._repr_html_()))
    assert re.findall(r'<img alt="([^"]*)" src="data:image/png;base64,iVBOR', shown) == [
        "Memory of each tile by category", "Live memory of one replica"
    ]  # fmt: skip
    assert len(shown) < 300_000
