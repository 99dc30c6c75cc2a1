"""profile.pop through dialects: the built-in layout, hand-written ones, and files that are neither."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pvanalyse import open_report
from pvanalyse.errors import NotCaptured, UnknownLayout, UnreadableFile, UsageError
from pvanalyse.readers.dialect import builtin_dialects, load_dialect, parse_dialect
from pvanalyse.readers.profile import Profile
from pvanalyse.tables import PROFILE, TABLES, tables_of

MakeProfile = Callable[..., Path]
TARGET = ("Ipu", "Ipu2", 1, 1, 4, 4, 638976, 1.33e9, None, None, None)


def u32(*values: int, kind: str = "<u4") -> bytes:
    return np.array(values, kind).tobytes()


class TestBuiltInLayout:
    """The layout pvanalyse-1."""

    def test_every_table_of_the_model_has_a_query(self) -> None:
        (dialect,) = (one for one in builtin_dialects() if one.name == "pvanalyse-1")
        assert set(dialect.queries) == {schema.name for schema in tables_of(PROFILE)}

    def test_every_table_reads_back_with_its_types(self, make_profile: MakeProfile) -> None:
        # GIVEN a row in every table of the layout
        path = make_profile({"target": [TARGET]})
        with sqlite3.connect(path) as database:
            for schema in tables_of(PROFILE):
                if schema.name != "target":
                    columns = [row[1:3] for row in database.execute(f"PRAGMA table_info({schema.name})")]
                    values = [
                        {"INTEGER": 7, "TEXT": "x", "REAL": 0.5, "BLOB": u32(1, 2, 3, 4)}[kind] for _, kind in columns
                    ]
                    database.execute(f"INSERT INTO {schema.name} VALUES ({', '.join('?' * len(values))})", values)
        database.close()

        # WHEN each is read
        with Profile(path) as profile:
            read = {schema.name: profile.read(schema.name) for schema in tables_of(PROFILE)}

        # THEN it has the columns and Arrow types of the model, and the values
        assert {name: table.schema for name, table in read.items()} == {
            name: TABLES[name].arrow_schema() for name in read
        }
        assert read["programs"].to_pylist() == [
            {"program_id": 7, "type": "x", "name": "x", "repeat_count": 7, "compute_set_id": 7,
             "control_code_by_tile": [1, 2, 3, 4], "code_bytes_by_tile": [1, 2, 3, 4],
             "estimated_cycles_by_tile": [1, 2, 3, 4], "debug_context_id": 7}
        ]  # fmt: skip
        assert read["lowered_variables"].to_pylist()[0]["always_live"] is True
        assert read["target"].to_pylist()[0]["clock_frequency"] == 1.33e9

    def test_per_tile_columns_of_many_rows_and_batches(self, make_profile: MakeProfile) -> None:
        # GIVEN more programs than a batch holds, every third without control code
        blobs = [None if at % 3 == 0 else u32(at, at + 1, at + 2, 2**32 - 1) for at in range(1000)]
        programs = [(at, "Sequence", "", None, None, blobs[at], None, None, None) for at in range(1000)]
        path = make_profile({"target": [TARGET], "programs": programs})

        # WHEN the column is read
        with Profile(path) as profile:
            got = profile.read("programs", ["control_code_by_tile"]).column(0).to_pylist()

        # THEN it is what was packed, as struct would say
        assert got == [None if blob is None else np.frombuffer(blob, "<u4").tolist() for blob in blobs]

    @pytest.mark.parametrize(
        ("blob", "problem"),
        [
            (u32(1, 2, 3), r"programs\.control_code_by_tile, row 2: 3 values for 4 tiles"),
            (b"\1\2\3", r"programs\.control_code_by_tile, row 2: 3 bytes are no whole number"),
            (b"", r"row 2: 0 values for 4 tiles"),
        ],
    )
    def test_a_blob_of_the_wrong_size_is_an_error_that_says_where(
        self, make_profile: MakeProfile, blob: bytes, problem: str
    ) -> None:
        programs = [(at, "Sequence", "", None, None, one, None, None, None) for at, one in enumerate([None, blob])]
        path = make_profile({"target": [TARGET], "programs": programs})
        with Profile(path) as profile, pytest.raises(UnreadableFile, match=problem):
            profile.read("programs")

    def test_missing_and_empty_tables_are_not_captured(self, make_profile: MakeProfile) -> None:
        path = make_profile({"target": [TARGET]}, drop=["runs"])
        with Profile(path) as profile:
            assert (profile.captured("target"), profile.captured("runs"), profile.captured("graph")) == (
                True,
                False,
                False,
            )
            assert (profile.count("runs"), profile.count("graph"), profile.count("target")) == (0, 0, 1)
            with pytest.raises(NotCaptured, match=r"'runs' was not captured.*autoReport\.outputExecutionProfile"):
                profile.read("runs")

    def test_a_layout_without_an_optional_column_is_read(self, make_profile: MakeProfile) -> None:
        path = make_profile({"compute_sets": [(1, "a", None, None, None)]})
        with sqlite3.connect(path) as database:
            database.execute("ALTER TABLE compute_sets DROP COLUMN flops")
        database.close()
        with Profile(path) as profile:
            assert profile.read("compute_sets", ["name", "flops"]).to_pylist() == [{"name": "a", "flops": None}]
            assert profile.read("compute_sets", ["flops"]).to_pylist() == [{"flops": None}]

    def test_a_layout_without_a_needed_column_is_an_error(self, make_profile: MakeProfile) -> None:
        path = make_profile({"compute_sets": [(1, "a", None, None, None)]})
        with sqlite3.connect(path) as database:
            database.execute("ALTER TABLE compute_sets RENAME COLUMN name TO title")
        database.close()
        with (
            Profile(path) as profile,
            pytest.raises(UnreadableFile, match="table 'compute_sets' lacks the column 'name'"),
        ):
            profile.read("compute_sets")

    def test_nothing_is_written(self, make_profile: MakeProfile) -> None:
        path = make_profile({"target": [TARGET]})
        before = path.read_bytes()
        path.chmod(0o444)
        with Profile(path) as profile:
            profile.read("target")
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == ["profile.pop"]

    def test_it_is_recognised_without_its_application_id(self, make_profile: MakeProfile) -> None:
        path = make_profile({"report_info": [("layout", "pvanalyse-1")]})
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA application_id = 0")
        database.close()
        with Profile(path) as profile:
            assert profile.dialect.name == "pvanalyse-1"


def test_an_unknown_layout_names_its_tables_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "profile.pop"
    with sqlite3.connect(path) as database:
        for name in ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "StringIds"):
            database.execute(f"CREATE TABLE {name} (id INTEGER)")
    database.close()
    with pytest.raises(
        UnknownLayout, match=r"NVTX_EVENTS, CUPTI_ACTIVITY_KIND_KERNEL, StringIds.*pvanalyse inspect.*--dialect"
    ):
        Profile(path)


OTHER = """
CREATE TABLE tile (ix INTEGER, kib INTEGER, used INTEGER, ni INTEGER, il INTEGER, of INTEGER, al INTEGER, nal INTEGER);
INSERT INTO tile VALUES (1, 20, 20000, 1, 2, 0, 3, 4), (0, 10, 10000, 1, 2, 0, 3, 4);
CREATE TABLE hw (kind INTEGER, chips INTEGER, tiles INTEGER, mem INTEGER, mhz REAL);
INSERT INTO hw VALUES (2, 1, 2, 638976, 1330);
CREATE TABLE prog (num INTEGER PRIMARY KEY, sort INTEGER, label TEXT, code BLOB, big BLOB, txt TEXT);
"""
DIALECT = '''
name = "other"
description = "another layout"
[[recognise]]
tables = { prog = ["num", "sort"], hw = ["chips"] }

[tables.target]
query = """
SELECT 'Ipu' AS type, kind AS architecture, chips AS num_ipus, 1 AS num_replicas, tiles AS tiles_per_ipu,
       chips * tiles AS num_tiles, mem AS bytes_per_tile, mhz * 1e6 AS clock_frequency FROM hw -- one row
"""
[tables.target.columns.architecture]
map = { 1 = "Ipu1", 2 = "Ipu2" }

[tables.tile_memory]
query = """
SELECT ix AS tile, kib AS total_including_gaps, used AS total_excluding_gaps,
  ni AS non_interleaved_including_gaps, ni AS non_interleaved_excluding_gaps,
  il AS interleaved_including_gaps, il AS interleaved_excluding_gaps,
  of AS overflowed_including_gaps, of AS overflowed_excluding_gaps,
  al AS always_live_bytes, nal AS not_always_live_bytes FROM tile
"""
order = "ix"
[tables.tile_memory.columns.total_including_gaps]
scale = 1024

[tables.programs]
query = "SELECT num AS program_id, sort AS type, label AS name, code AS control_code_by_tile, big AS code_bytes_by_tile, txt AS estimated_cycles_by_tile FROM prog"
order = "num"
[tables.programs.columns.type]
map = { 0 = "Sequence", 7 = "OnTileExecute" }
[tables.programs.columns.control_code_by_tile]
packed = "u64"
compression = "zlib"
[tables.programs.columns.code_bytes_by_tile]
packed = "u16be"
[tables.programs.columns.estimated_cycles_by_tile]
json = true
'''


class TestHandWrittenDialect:
    """A dialect file for a database with other tables, names, units and encodings."""

    @pytest.fixture
    def report(self, tmp_path: Path) -> Path:
        with sqlite3.connect(tmp_path / "profile.pop") as database:
            database.executescript(OTHER)
            row = (1, 7, "run", zlib.compress(u32(5, 6, kind="<u8")), u32(258, 3, kind=">u2"), json.dumps([8, 9]))
            database.execute("INSERT INTO prog VALUES (?, ?, ?, ?, ?, ?)", row)
            database.execute("INSERT INTO prog VALUES (0, 0, 'all', NULL, NULL, NULL)")
        database.close()
        (tmp_path / "other.toml").write_text(DIALECT)
        return tmp_path

    def test_it_gives_the_same_tables_as_the_built_in_layout(self, report: Path, make_profile: MakeProfile) -> None:
        # GIVEN the same facts in the built-in layout
        same = make_profile(
            {
                "target": [("Ipu", "Ipu2", 1, 1, 2, 2, 638976, 1.33e9, None, None, None)],
                "tile_memory": [(0, 10240, 10000, 1, 1, 2, 2, 0, 0, 3, 4), (1, 20480, 20000, 1, 1, 2, 2, 0, 0, 3, 4)],
                "programs": [
                    (0, "Sequence", "all", None, None, None, None, None, None),
                    (1, "OnTileExecute", "run", None, None, u32(5, 6), u32(258, 3), u32(8, 9), None),
                ],
            },
            report / "same",
        )

        # WHEN both are read
        with open_report(report / "profile.pop", dialect=report / "other.toml") as theirs, open_report(same) as ours:
            read = {name: (theirs.arrow(name), ours.arrow(name)) for name in ("target", "tile_memory", "programs")}
            metrics = theirs.metrics(), ours.metrics()

        # THEN tables and metrics are equal
        for their_table, our_table in read.values():
            assert their_table.to_pylist() == our_table.to_pylist()
            assert their_table.schema == our_table.schema
        assert metrics[0] == metrics[1]
        assert metrics[0]["memory.total_including_gaps"] == 30 * 1024

    def test_rows_are_chosen_by_the_numbers_of_the_model(self, report: Path) -> None:
        # GIVEN a column that the file keeps in KiB
        with open_report(report, dialect=report / "other.toml") as opened:
            chosen = opened.arrow("tile_memory", ["tile"], where={"total_including_gaps": [20480, 20]})
            both = opened.arrow("tile_memory", ["tile"], where={"total_including_gaps": [20480], "tile": [0]})
        assert (chosen.to_pylist(), both.to_pylist()) == ([{"tile": 1}], [])

    def test_it_recognises_its_database_and_no_other(self, report: Path, make_profile: MakeProfile) -> None:
        dialect = load_dialect(report / "other.toml")
        with Profile(report / "profile.pop", dialect) as profile:
            assert dialect.recognises(profile.database)
        with Profile(make_profile({}, report / "same")) as profile:
            assert not dialect.recognises(profile.database)

    def test_a_table_without_a_query_is_not_captured(self, report: Path) -> None:
        with open_report(report, dialect=report / "other.toml") as opened:
            with pytest.raises(NotCaptured, match="'runs' was not captured"):
                opened.arrow("runs")

    @pytest.mark.parametrize(
        ("column", "value", "problem"),
        [
            ("code", b"not zlib", "cannot be decompressed"),
            ("code", zlib.compress(u32(2**40, 1, kind="<u8")), "does not fit into 32 bits"),
            ("code", zlib.compress(bytes(2**27)), "decompresses to more than"),
            ("txt", "[1, -2]", "not a JSON array"),
            ("txt", "[1]", "1 values for 2 tiles"),
            ("txt", "[" * 100_000, "not a JSON array"),
        ],
    )
    def test_values_that_cannot_be_decoded_say_so(self, report: Path, column: str, value: object, problem: str) -> None:
        with sqlite3.connect(report / "profile.pop") as database:
            database.execute(f"UPDATE prog SET {column} = ? WHERE num = 1", (value,))
        database.close()
        with open_report(report, dialect=report / "other.toml") as opened, pytest.raises(UnreadableFile, match=problem):
            opened.arrow("programs")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = ", "not valid TOML: "),
        ("", "'name' is missing"),
        ("name = 1", "'name' must be a str"),
        ('name = "x"', "'tables' is missing"),
        ('name = "x"\ncolour = 1\n[tables]', "unknown key 'colour'"),
        ('name = "x"\n[tables.tile]\nquery = "SELECT 1"', r"unknown key 'tables\.tile'.*tile_memory"),
        ('name = "x"\n[tables.runs]', r"'tables\.runs\.query' is missing"),
        ('name = "x"\n[tables.runs]\nquery = "SELECT 1"\nsort = "a"', r"unknown key 'tables\.runs\.sort'"),
        ('name = "x"\n[tables.runs]\nquery = "SELECT 1"\ncolumns = { nix = {} }', r"unknown key 'tables\.runs\.columns\.nix'"),
        ('name = "x"\n[tables.runs]\nquery = "S"\ncolumns = { name = { packed = "u32" } }', ".*column 'name' is not per tile"),
        ('name = "x"\n[tables.runs]\nquery = "S"\ncolumns = { name = { scale = 2 } }', ".*column 'name' is not an integer"),
        ('name = "x"\n[tables.runs]\nquery = "S"\ncolumns = { run_id = { map = {} } }', ".*column 'run_id' is not text"),
        ('name = "x"\n[tables.target]\nquery = "S"\ncolumns = { relative_sync_delay_by_tile = { packed = "i8" } }',
         r".*relative_sync_delay_by_tile\.packed: 'i8' is none of u8"),
        ('name = "x"\nrecognise = [{ table = 1 }]\n[tables]', r"unknown key 'recognise\.table'"),
    ],
)  # fmt: skip
def test_a_wrong_dialect_file_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=rf"dialect my\.toml: {problem}"):
        parse_dialect(text, "my.toml")


def test_a_dialect_may_only_read(make_profile: MakeProfile) -> None:
    path = make_profile({"runs": [(0, "a", 0, 1)]})
    dialect = parse_dialect('name = "x"\n[tables.runs]\nquery = "DELETE FROM runs RETURNING *"', "x.toml")
    with Profile(path, dialect) as profile, pytest.raises(UsageError, match="may only read"):
        profile.captured("runs")
