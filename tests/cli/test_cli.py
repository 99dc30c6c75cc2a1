"""Commands called in process: exit codes, formats, files, and what they refuse."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pvanalyse import open_report
from pvanalyse.cli import main
from tests.conftest import SAMPLES

REPORT = str(SAMPLES / "pipelined" / "training")
PROFILE = f"{REPORT}/profile.pop"
CALLS = {"ls": ["ls", str(SAMPLES)], "summary": ["summary", REPORT], "metrics": ["metrics", REPORT],
         "inspect": ["inspect", PROFILE]}  # fmt: skip
ON_REPORTS = ("summary", "metrics")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a machine is slow, commands would speak of their progress."""
    monkeypatch.setattr("pvanalyse.cli.progress._SLOW_SECONDS", 1e9)


def answer(capsys: Capture, *argv: str) -> str:
    """Run a command that must succeed and say nothing else; return its answer."""
    code = main(argv)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def refusal(capsys: Capture, code: int, *argv: str) -> str:
    """Run a command that must be refused with this code; return what it says about it."""
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


# ---------------------------------------------------------------------------------------------------------- formats
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_json_is_valid_and_whole_numbers_are_whole(capsys: Capture, call: list[str]) -> None:
    text = answer(capsys, *call, "--format", "json")
    data = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert isinstance(data, dict)
    abbreviated = re.compile(r"\d [kKMGT]?i?B\b")
    assert abbreviated.findall(text) == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_csv_is_a_table(capsys: Capture, call: list[str]) -> None:
    # GIVEN any command; WHEN asked for CSV; THEN each row has as many cells as the heading, and no abbreviations
    text = answer(capsys, *call, "--format", "csv")
    rows = list(csv.reader(StringIO(text, newline=""), strict=True))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) > 5
    assert re.findall(r"\d [kKMGT]?i?B\b| %", text) == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_markdown_is_headings_and_tables(capsys: Capture, call: list[str]) -> None:
    text = answer(capsys, *call, "--format", "markdown")
    tokens = [token.type for token in MarkdownIt("commonmark").enable("table").parse(text)]
    assert tokens[0] == "heading_open"
    assert "table_open" in tokens
    assert text.count("\n## ") == tokens.count("heading_open") - 1


@pytest.mark.parametrize("format_", ["text", "json", "csv", "markdown"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_file_gets_what_standard_output_would(capsys: Capture, tmp_path: Path, call: list[str], format_: str) -> None:
    # GIVEN the answer of a command; WHEN it goes to a file; THEN the file has the same, and nothing is printed
    printed = answer(capsys, *call, "--format", format_)
    file = tmp_path / "answer"
    assert answer(capsys, *call, "--format", f"{format_}:{file}") == ""
    assert file.read_bytes().decode() == printed
    assert answer(capsys, *call, "--format", f"{format_}:-") == printed
    assert list(tmp_path.iterdir()) == [file]


def test_several_formats_in_one_go(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN every format by itself
    alone = {one: answer(capsys, *CALLS["metrics"], "-f", one) for one in ("text", "json", "csv", "markdown")}
    # WHEN all are asked for at once; THEN each goes to its place, also where a path has a colon
    files = {one: tmp_path / f"a:b.{one}" for one in ("json", "csv", "markdown")}
    formats = [f"--format={one}:{file}" for one, file in files.items()]
    assert answer(capsys, *CALLS["metrics"], *formats, "--format=text") == alone["text"]
    assert {one: file.read_bytes().decode() for one, file in files.items()} == {
        one: text for one, text in alone.items() if one != "text"
    }


def test_text_is_the_format_when_none_is_named(capsys: Capture) -> None:
    assert answer(capsys, *CALLS["summary"]) == answer(capsys, *CALLS["summary"], "--format", "text")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_units_change_text_only(capsys: Capture, call: list[str]) -> None:
    shown = {units: answer(capsys, *call, "--units", units) for units in ("binary", "si", "bytes")}
    assert re.search(r"\d [KM]iB", shown["binary"])
    assert not re.search(r"\d [kM]B", shown["binary"])
    assert re.search(r"\d [kM]B", shown["si"])
    assert not re.search(r"\d [KMGT]i?B", shown["bytes"])
    for format_ in ("json", "csv"):
        assert len({answer(capsys, *call, "-f", format_, "--units", units) for units in shown}) == 1


# ---------------------------------------------------------------------------------------------------------- metrics
def test_metrics_are_one_flat_object_of_numbers(capsys: Capture) -> None:
    # GIVEN a report; WHEN its metrics are asked for as JSON
    data = json.loads(answer(capsys, "metrics", REPORT, "--format", "json"))
    # THEN they are those of the API, of the same types
    with open_report(REPORT) as report:
        expected = report.metrics()
    assert {name: (value, type(value)) for name, value in data.items()} == {
        name: (value, type(value)) for name, value in expected.items()
    }


def test_metrics_as_csv_are_exact(capsys: Capture) -> None:
    rows = list(csv.reader(StringIO(answer(capsys, "metrics", REPORT, "-f", "csv"), newline="")))
    with open_report(REPORT) as report:
        assert rows == [["metric", "value"], *([name, repr(value)] for name, value in report.metrics().items())]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["liveness.peak"], ["liveness.peak"]),
        (["target.num_*", "archive.num_tiles"],
         ["target.num_ipus", "target.num_replicas", "target.num_tiles", "archive.num_tiles"]),
        (["execution.*.in"], ["execution.stream_bytes.in"]),
        (["*.peak_step", "nothing"], ["liveness.peak_step"]),
    ],
)  # fmt: skip
def test_metrics_that_match(capsys: Capture, patterns: list[str], names: list[str]) -> None:
    words = [word for pattern in patterns for word in ("--match", pattern)]
    assert list(json.loads(answer(capsys, "metrics", REPORT, "-f", "json", *words))) == names


def test_metrics_of_which_none_match_were_not_captured(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    err = refusal(capsys, 4, "metrics", REPORT, "--match", "execution.nope", "--format", f"json:{file}")
    assert err.startswith("pvanalyse: 'execution.nope' was not captured in this report; to capture it: engine option ")
    assert not file.exists()


def test_a_report_without_any_metric_says_so(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    err = refusal(capsys, 4, "metrics", str(make_profile({"report_info": [("layout", "pvanalyse-1")]})))
    assert err == (
        "pvanalyse: 'metrics' was not captured in this report; to capture it: engine option "
        '"autoReport.all": "true"\n'
    )


# ------------------------------------------------------------------------------------------------- files as targets
def test_files_are_kept_unless_forced(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN a file
    file = tmp_path / "answer.json"
    file.write_text("precious", encoding="utf-8")
    # WHEN an answer goes there; THEN it is refused before any work, until forced
    err = refusal(capsys, 2, "metrics", str(tmp_path / "no_report"), "--format", f"json:{file}")
    assert err == f"pvanalyse: {file}: exists already; --force overwrites it\n"
    assert file.read_text("utf-8") == "precious"
    assert answer(capsys, "metrics", REPORT, "--format", f"json:{file}", "--force") == ""
    assert json.loads(file.read_text("utf-8"))["target.num_ipus"] == 2


def test_a_drafted_dialect_is_kept_unless_forced(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("precious", encoding="utf-8")
    assert "exists already" in refusal(capsys, 2, "inspect", PROFILE, "--suggest-dialect", str(file))
    assert file.read_text("utf-8") == "precious"
    printed = answer(capsys, "inspect", PROFILE, "--suggest-dialect", "-")
    assert main(["inspect", PROFILE, "--suggest-dialect", str(file), "--force"]) == 0
    assert capsys.readouterr().err.startswith(f"pvanalyse: wrote {file}; ")
    assert file.read_text("utf-8") == printed != ""


def test_a_refused_report_leaves_files_as_they_were(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN a damaged report and a file
    (tmp_path / "profile.pop").write_bytes(b"SQLite format 3\0" + bytes(100))
    file = tmp_path / "answer.json"
    file.write_text("precious", encoding="utf-8")
    # WHEN the answer would go there, forced; THEN the file is as it was, and nothing lies beside it
    refusal(capsys, 3, "metrics", str(tmp_path), "--format", f"json:{file}", "--force")
    assert file.read_text("utf-8") == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.json", "profile.pop"]


def test_a_link_is_written_where_it_leads(capsys: Capture, tmp_path: Path) -> None:
    file, link = tmp_path / "real.json", tmp_path / "link.json"
    file.write_text("old", encoding="utf-8")
    link.symlink_to(file)
    answer(capsys, "metrics", REPORT, "--format", f"json:{link}", "--force")
    assert link.is_symlink()
    assert "target.num_ipus" in file.read_text("utf-8")


def test_a_device_is_written_and_not_replaced(capsys: Capture) -> None:
    answer(capsys, "metrics", REPORT, "--format", f"json:{os.devnull}")
    assert not Path(os.devnull).is_file()
    assert main(["metrics", REPORT, "--format", f"json:{os.devnull}", "--force"]) == 0
    assert not Path(os.devnull).is_file()


def test_a_full_device_is_an_error_in_one_sentence(capsys: Capture) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("this system has no /dev/full")
    err = refusal(capsys, 3, "metrics", REPORT, "--format", "json:/dev/full")
    assert err == "pvanalyse: /dev/full: cannot be written (No space left on device)\n"


@pytest.mark.parametrize(
    ("formats", "problem"),
    [
        (["json:{0}"], "is a directory, name a file to write"),
        (["json:{0}/no/such/file"], "there is no directory"),
        (["json:{0}/a", "csv:{0}/a"], "two formats go to"),
        (["json:{0}/a", "csv:{0}/./b/../a"], "two formats go to"),
        (["json", "csv"], "two formats go to standard output"),
        (["json:-", "text"], "two formats go to standard output"),
        (["json:"], "names no file after the colon"),
        (["yaml"], "'yaml' is none of text, json, csv, markdown"),
        ([""], "'' is none of text, json, csv, markdown"),
        (["JSON"], "'JSON' is none of text, json, csv, markdown"),
    ],
)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_formats_that_cannot_be_are_refused(
    capsys: Capture, tmp_path: Path, call: list[str], formats: list[str], problem: str
) -> None:
    (tmp_path / "b").mkdir()
    words = [f"--format={one.format(tmp_path)}" for one in formats]
    assert problem in refusal(capsys, 2, *call, *words)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_names_may_be_as_long_as_the_file_system_takes(capsys: Capture, tmp_path: Path) -> None:
    answer(capsys, "metrics", REPORT, "--format", f"json:{tmp_path}/{'a' * 255}")
    assert [len(path.name) for path in tmp_path.iterdir()] == [255]


def test_a_name_that_is_too_long_is_an_error_in_one_sentence(capsys: Capture, tmp_path: Path) -> None:
    err = refusal(capsys, 3, "metrics", REPORT, "--format", f"json:{tmp_path}/{'a' * 300}")
    assert "cannot be written (File name too long)" in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    "argv",
    [
        ["summary"],
        ["metrics"],
        ["inspect"],
        ["summary", REPORT, REPORT],
        ["summary", REPORT, "--units", "kb"],
        ["summary", REPORT, "--nope"],
        ["metrics", REPORT, "--match"],
        ["inspect", PROFILE, "--rows", "0"],
        ["inspect", PROFILE, "--rows", "many"],
        ["summary", str(SAMPLES)],
        ["metrics", str(SAMPLES / "pipelined")],
    ],
    ids=lambda argv: " ".join(Path(word).name for word in argv),
)
def test_wrong_usage_ends_with_2(capsys: Capture, argv: list[str]) -> None:
    refusal(capsys, 2, *argv)


def test_a_bare_call_shows_the_help(capsys: Capture) -> None:
    assert main([]) == 2
    assert "Usage: pvanalyse" in capsys.readouterr().err


def test_an_ambiguous_path_lists_its_reports(capsys: Capture) -> None:
    err = refusal(capsys, 2, "summary", str(SAMPLES / "pipelined"))
    assert [line.strip() for line in err.splitlines()[1:]] == [
        str(SAMPLES / "pipelined" / engine) for engine in ("inference", "training")
    ]


@pytest.mark.parametrize("command", ON_REPORTS)
@pytest.mark.parametrize("place", ["missing", "empty", "text.txt", "a\x1b[31m\nb", "caf\udce9"])
def test_no_report_ends_with_3(capsys: Capture, tmp_path: Path, command: str, place: str) -> None:
    # GIVEN a path without a report, of whatever name; WHEN asked; THEN it is named, and its name not obeyed
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("no report", encoding="utf-8")
    err = refusal(capsys, 3, command, str(tmp_path / place))
    assert err.startswith("pvanalyse: ")
    assert "\x1b" not in err
    err.encode()


def test_ls_ends_with_3_where_there_is_no_report(capsys: Capture, tmp_path: Path) -> None:
    assert main(["ls", str(tmp_path)]) == 3
    assert capsys.readouterr().out == f"{tmp_path}: no reports\n"


def test_ls_lists_here_by_default(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SAMPLES / "pipelined")
    data = json.loads(answer(capsys, "ls", "--format", "json"))
    assert [report["directory"] for report in data["reports"]] == ["inference", "training"]


@pytest.mark.parametrize("command", ON_REPORTS)
@pytest.mark.parametrize("option", ["--dialect", "--debug-info"])
@pytest.mark.parametrize("kind", ["missing", "directory", "nonsense"])
def test_files_that_options_name_are_looked_at(
    capsys: Capture, tmp_path: Path, command: str, option: str, kind: str
) -> None:
    # GIVEN a path that is no dialect and no debug.cbor; WHEN named; THEN the command says so, naming it
    path = tmp_path / "named"
    if kind == "directory":
        path.mkdir()
    if kind == "nonsense":
        path.write_bytes(b"\xff\x00 nonsense [[[")
    assert main([command, REPORT, option, str(path)]) in (2, 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert str(path) in err
    assert len(err.splitlines()) == 1


def test_another_debug_cbor_is_taken(capsys: Capture) -> None:
    # GIVEN the debug.cbor of another report; WHEN named; THEN its contexts are counted, and the summary lists it
    other = SAMPLES / "replicated" / "debug.cbor"
    own = json.loads(answer(capsys, "metrics", REPORT, "-f", "json"))["debug.num_contexts"]
    theirs = json.loads(answer(capsys, "metrics", str(other.parent), "-f", "json"))["debug.num_contexts"]
    taken = json.loads(answer(capsys, "metrics", REPORT, "-f", "json", "--debug-info", str(other)))
    assert taken["debug.num_contexts"] == theirs != own
    files = json.loads(answer(capsys, "summary", REPORT, "-f", "json", "--debug-info", str(other)))["files"]
    assert {"name": str(other), "bytes": other.stat().st_size, "note": ""} in files


# ---------------------------------------------------------------------------------------------------- partial reports
def test_a_report_of_an_archive_only(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "archive.a").write_bytes((SAMPLES / "pipelined" / "training" / "archive.a").read_bytes())
    data = json.loads(answer(capsys, "metrics", str(tmp_path), "-f", "json"))
    assert {name.partition(".")[0] for name in data} == {"archive"}
    assert "Executables (archive.a)" in answer(capsys, "summary", str(tmp_path))


def test_a_report_of_a_trace_cache_only(capsys: Capture, real_cache: Path) -> None:
    # GIVEN a real directory with nothing but the viewer's cache
    out = answer(capsys, "summary", str(real_cache))
    # THEN the summary shows the trace and lists what is missing; there is no metric
    assert "Execution trace, as the vendor's viewer cached it" in out
    assert "compilation profile" in out
    assert "was not captured" in refusal(capsys, 4, "metrics", str(real_cache))


# ------------------------------------------------------------------------------------------------------------- inspect
def test_inspect_counts_in_csv_what_sqlite_counts(capsys: Capture, tmp_path: Path) -> None:
    # GIVEN a table of mixed storage classes under a hostile name
    import sqlite3

    path = tmp_path / "odd.db"
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE "a|b\n<i>" (x INTEGER, "=y()" BLOB)')
        database.executemany(
            'INSERT INTO "a|b\n<i>" VALUES (?, ?)', [(1, b"abcd" * 4), (2.5, None), ("t", b"efgh" * 4)]
        )
        database.execute("CREATE VIEW v AS SELECT 1 AS one")
    database.close()
    # WHEN described as CSV; THEN the numbers are those that were put in, the names as they are
    rows = list(csv.DictReader(StringIO(answer(capsys, "inspect", str(path), "-f", "csv"), newline="")))
    table = {"table": "a|b\n<i>", "kind": "table", "rows": "3", "sampled": "3"}
    no_blobs = {"smallest_blob_bytes": "", "largest_blob_bytes": "", "packed": "", "values": ""}
    assert rows == [
        {**table, "column": "x", "declared": "INTEGER", "integer": "1", "real": "1", "text": "1", "blob": "0",
         "null": "0", **no_blobs},
        {**table, "column": "=y()", "declared": "BLOB", "integer": "0", "real": "0", "text": "0", "blob": "2",
         "null": "1", "smallest_blob_bytes": "16", "largest_blob_bytes": "16", "packed": "u32", "values": "4"},
        {"table": "v", "kind": "view", "rows": "", "sampled": "", "column": "one", "declared": "", "integer": "",
         "real": "", "text": "", "blob": "", "null": "", **no_blobs},
    ]  # fmt: skip
    assert "table a|b\\n<i>: 3 rows" in answer(capsys, "inspect", str(path))
    assert "view v: not run" in answer(capsys, "inspect", str(path))


def test_inspect_says_how_much_it_looked_at(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    path = make_profile({"runs": [(run, "r", 0, 1) for run in range(1500)], "report_info": [("a", "b")]})
    out = answer(capsys, "inspect", str(path), "--rows", "1000")
    assert "table runs: 1,500 rows, of which 1,000 were looked at" in out
    assert "table report_info: 1 row\n" in out
