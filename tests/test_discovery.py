"""Which directories are reports, what belongs to them, and what a path that a person names means."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import discovery
from pvanalyse.discovery import FileKind, ReportFiles, Skipped, find_reports, resolve_report, survey
from pvanalyse.errors import AmbiguousReport, PvanalyseError, ReportNotFound, UnreadableFile

SQLITE = b"SQLite format 3\0" + bytes(84)
OLD_GENERATION = (
    ": a profile of the old generation, which pvanalyse does not read yet; profile the program again with Poplar SDK 2 "
    "or newer, or use a version of the vendor's viewer before 3.7"
)
UNFINISHED = (
    " is the profile of a run that is still going, or that ended before its engine was destroyed, which is when the "
    "file becomes profile.pop; "
)
NOT_CLOSED = (
    "{0}{1} is not empty: {0} is still being written or was not closed, and what is read from it may be incomplete; "
    "let the program end, or open a copy of both files once with sqlite3, which completes it"
)
NOT_FOR_ROOT = pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="the superuser may read everything, so nothing can be forbidden"
)


def make(root: Path, *names: str) -> Path:
    """Write files below ``root``: databases and archives with their first bytes, others with a little text."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SQLITE if ".pop" in path.name else b"!<arch>\n" if path.suffix == ".a" else b"{}")
    return root


def names(report: ReportFiles) -> list[str]:
    return [file.name for file in report.files]


def relative(root: Path, reports: list[ReportFiles] | tuple[ReportFiles, ...]) -> list[str]:
    return [report.directory.relative_to(root).as_posix() for report in reports]


# ---------------------------------------------------------------------------------------- layouts of the frameworks


def test_a_report_of_an_engine_without_a_name(tmp_path: Path) -> None:
    # GIVEN everything that current SDKs write, and files that have nothing to do with it
    make(tmp_path, "debug.cbor", "app.json", "framework.json", "archive.a", "profile.pop_cache", "profile.pop")
    make(tmp_path, "vars.capnp", "serialized_graph.capnp", "notes.txt", "other.pop", "profile.html")
    # WHEN the directory is looked at
    (report,) = find_reports(tmp_path)
    # THEN what belongs to the report is there, the profile first, with kinds and sizes
    assert [(file.name, file.kind, file.bytes, file.note) for file in report.files] == [
        ("profile.pop", FileKind.PROFILE, 100, ""),
        ("archive.a", FileKind.ARCHIVE, 8, ""),
        ("debug.cbor", FileKind.DEBUG_INFO, 2, ""),
        ("framework.json", FileKind.FRAMEWORK, 2, ""),
        ("app.json", FileKind.APP, 2, ""),
        ("profile.pop_cache", FileKind.TRACE_CACHE, 100, ""),
        ("vars.capnp", FileKind.LOWERED_VARIABLES, 2, ""),
        ("serialized_graph.capnp", FileKind.SERIALISED_GRAPH, 2, ""),
    ]
    assert all(file.path == tmp_path / file.name for file in report.files)
    # AND nothing about it is unusual
    assert report == ReportFiles(tmp_path, report.files, debug_info=tmp_path / "debug.cbor", debug_info_origin="own")


def test_two_engines_that_share_debug_info(tmp_path: Path) -> None:
    # GIVEN what PopART and PyTorch write: one debug.cbor above the engines' directories
    make(tmp_path, "debug.cbor", "training/profile.pop", "inference/profile.pop", "my engine/profile.pop")
    # WHEN reports are looked for
    reports = find_reports(tmp_path)
    # THEN each engine is a report that knows its name and the shared file
    assert relative(tmp_path, reports) == ["inference", "my engine", "training"]
    for report in reports:
        assert report.engine == report.directory.name
        assert (report.debug_info, report.debug_info_origin) == (tmp_path / "debug.cbor", "parent")
        assert report.path_of("debug.cbor") == tmp_path / "debug.cbor"
        assert names(report) == ["profile.pop"]
        assert report.notes == (
            "debug.cbor is taken from the parent directory, where the engines of one program share it",
        )


def test_the_report_of_an_unnamed_engine_beside_a_named_one(tmp_path: Path) -> None:
    make(tmp_path, "profile.pop", "debug.cbor", "training/profile.pop")
    outer, inner = find_reports(tmp_path)
    assert (outer.directory, outer.engine, outer.debug_info_origin) == (tmp_path, "", "own")
    assert (inner.directory, inner.engine, inner.debug_info_origin) == (tmp_path / "training", "training", "parent")


def test_runs_side_by_side_are_not_engines(tmp_path: Path) -> None:
    # GIVEN directories that a person named, and the engines' usual names without a debug.cbor
    make(tmp_path, "batch 16/profile.pop", "batch 32/profile.pop", "batch 32/debug.cbor", "x/training/archive.a")
    # THEN only the usual name is taken for an engine's
    assert [(report.directory.name, report.engine) for report in find_reports(tmp_path)] == [
        ("batch 16", ""),
        ("batch 32", ""),
        ("training", "training"),
    ]


def test_tensorflow_directories(tmp_path: Path) -> None:
    # GIVEN a directory per cluster, with links to the one debug.cbor
    first, second = "tf_report__2021-10-06__02-24-24.631__70052", "tf_report__2021-10-06__02-25-01__70052"
    make(tmp_path, "debug.cbor", f"{first}/profile.pop", f"{second}/profile.pop")
    for name, cluster in ((first, "cluster_1"), (second, "cluster_2__XlaCompiledKernel")):
        framework = f'\ufeff{{"TensorFlow": {{"Version": "2.6.3", "Cluster": "{cluster}"}}}}'
        (tmp_path / name / "framework.json").write_text(framework, encoding="utf-8")
        (tmp_path / name / "debug.cbor").symlink_to("../debug.cbor")
    # WHEN reports are looked for, THEN clusters, times and processes are known, in the order of time
    reports = find_reports(tmp_path)
    assert [(report.cluster, report.created, report.process_id, report.engine) for report in reports] == [
        ("cluster_1", datetime(2021, 10, 6, 2, 24, 24, 631000), 70052, ""),
        ("cluster_2__XlaCompiledKernel", datetime(2021, 10, 6, 2, 25, 1), 70052, ""),
    ]
    for report in reports:
        assert names(report) == ["profile.pop", "debug.cbor", "framework.json"]
        assert (report.debug_info, report.debug_info_origin) == (report.directory / "debug.cbor", "symbolic link")
        assert report.notes == ()


@pytest.mark.parametrize(
    ("name", "created", "process_id"),
    [
        ("tf_report__2021-10-06T02:24:24.5__7", datetime(2021, 10, 6, 2, 24, 24, 500000), 7),
        ("tf_report__2021-13-06__02-24-24__7", None, 7),
        ("tf_report__2021-10-06__02-24-24", None, None),
        ("tf_report__yesterday__7", None, None),
        ("tf_report__2021-10-06__02-24-24.631__٧", None, None),
        ("xtf_report__2021-10-06__02-24-24__7", None, None),
        ("tf_report__2021-10-06__02-24-24__" + "9" * 200, None, None),
    ],
)
def test_other_names_like_tensorflows(
    tmp_path: Path, name: str, created: datetime | None, process_id: int | None
) -> None:
    (report,) = find_reports(make(tmp_path, f"{name}/profile.pop"))
    assert (report.created, report.process_id) == (created, process_id)


@pytest.mark.parametrize(
    ("content", "readable"),
    [
        (b'{"TensorFlow": {"Version": "1.15"}}', True),
        (b'{"TensorFlow": "2"}', True),
        (b'{"TensorFlow": {"Cluster": 7}}', True),
        (b"[1]", True),
        (b"null", True),
        (b"{", False),
        (b"", False),
        (b"\xff\xfe\xfa", False),
        (b"[" * 200_000, False),
        (b'{"a": ' + b"9" * 10_000 + b"}", False),
    ],
)
def test_framework_files_that_name_no_cluster(tmp_path: Path, content: bytes, readable: bool) -> None:
    make(tmp_path, "profile.pop", "framework.json")
    (tmp_path / "framework.json").write_bytes(content)
    (report,) = find_reports(tmp_path)
    assert report.cluster == ""
    told = "framework.json cannot be read, so the name of the cluster is not known" in report.notes
    assert told is not readable


def test_a_link_to_debug_info_elsewhere_makes_no_engine(tmp_path: Path) -> None:
    # GIVEN links to debug.cbor: one to the parent's, one to a place that is not above
    make(tmp_path, "debug.cbor", "mine/profile.pop", "other/profile.pop", "store/debug.cbor")
    (tmp_path / "mine/debug.cbor").symlink_to(tmp_path / "debug.cbor")
    (tmp_path / "other/debug.cbor").symlink_to(tmp_path / "store/debug.cbor")
    # THEN only the first directory is an engine's
    assert [(report.engine, report.debug_info_origin) for report in find_reports(tmp_path)] == [
        ("mine", "symbolic link"),
        ("", "symbolic link"),
    ]


# ------------------------------------------------------------------------------------------ what is unusual, in words


def notes(root: Path) -> tuple[str, ...]:
    (report,) = find_reports(root)
    return report.notes


def test_a_link_to_debug_info_that_leads_nowhere(tmp_path: Path) -> None:
    # GIVEN a report copied without what its link led to
    make(tmp_path, "run/profile.pop")
    (tmp_path / "run/debug.cbor").symlink_to("../debug.cbor")
    # THEN it has no debug.cbor, and says so
    (report,) = find_reports(tmp_path)
    assert (report.debug_info, report.debug_info_origin, names(report)) == (None, "", ["profile.pop"])
    assert report.notes == ("debug.cbor is a symbolic link to '../debug.cbor', which does not exist",)
    # AND WHEN the parent has one although the link is wrong, THEN that one is taken
    (tmp_path / "run/debug.cbor").unlink()
    (tmp_path / "run/debug.cbor").symlink_to("gone")
    make(tmp_path, "debug.cbor")
    (report,) = find_reports(tmp_path)
    assert (report.debug_info, report.debug_info_origin) == (tmp_path / "debug.cbor", "parent")
    assert len(report.notes) == 2


def test_an_empty_profile(tmp_path: Path) -> None:
    (tmp_path / "profile.pop").touch()
    assert notes(tmp_path) == ("profile.pop is empty",)


def test_a_profile_that_is_a_symbolic_link(tmp_path: Path) -> None:
    # GIVEN a link to a database that was not closed: SQLite's journal is beside the database, not beside the link
    make(tmp_path, "view/app.json", "data/profile.pop", "data/profile.pop-wal")
    (tmp_path / "view/profile.pop").symlink_to("../data/profile.pop")
    # WHEN the link's directory is looked at
    (report,) = find_reports(tmp_path / "view")
    # THEN the size is the database's, and both facts are told
    assert (report.files[0].bytes, report.files[0].note) == (100, "a symbolic link to '../data/profile.pop'")
    assert [file.name for file in report.leftovers] == ["profile.pop-wal"]
    assert report.notes == (
        "profile.pop is a symbolic link to '../data/profile.pop'",
        NOT_CLOSED.format("profile.pop", "-wal"),
    )


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_profile_that_was_not_closed(tmp_path: Path, suffix: str) -> None:
    # GIVEN a journal with something in it
    make(tmp_path, "profile.pop", f"profile.pop{suffix}")
    assert notes(tmp_path) == (NOT_CLOSED.format("profile.pop", suffix),)
    # AND WHEN the journal is empty, THEN there is nothing to worry about
    (tmp_path / f"profile.pop{suffix}").write_bytes(b"")
    (report,) = find_reports(tmp_path)
    assert report.notes == ()
    assert [(file.name, file.note) for file in report.leftovers] == [
        (f"profile.pop{suffix}", f"profile.pop{suffix} is a side file of SQLite that holds nothing of its own")
    ]


def test_a_crashed_run_beside_an_earlier_report(tmp_path: Path) -> None:
    make(tmp_path, "profile.pop", "profile_8f3a.pop", "profile_8f3a.pop-journal", "profile_8f3a.pop-shm")
    (report,) = find_reports(tmp_path)
    assert names(report) == ["profile.pop"]
    assert [(file.name, file.kind) for file in report.leftovers] == [
        ("profile_8f3a.pop", FileKind.UNFINISHED),
        ("profile_8f3a.pop-journal", FileKind.JOURNAL),
        ("profile_8f3a.pop-shm", FileKind.JOURNAL),
    ]
    assert report.leftovers[2].note == "profile_8f3a.pop-shm is a side file of SQLite that holds nothing of its own"
    assert report.notes == (
        f"profile_8f3a.pop{UNFINISHED}name the file itself to read what it holds",
        NOT_CLOSED.format("profile_8f3a.pop", "-journal"),
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("archive.a", "there is no profile.pop, only archive.a, the code of each tile"),
        ("profile.pop_cache", "there is no profile.pop, only profile.pop_cache"),
    ],
)
def test_half_a_report(tmp_path: Path, name: str, said: str) -> None:
    assert notes(make(tmp_path, name, "framework.json")) == (said,)


def test_old_files_in_a_report(tmp_path: Path) -> None:
    make(tmp_path, "profile.pop", "graph.json", "execution.cbor", "serialized_graph.capnp")
    (report,) = find_reports(tmp_path)
    assert names(report) == ["profile.pop", "serialized_graph.capnp", "execution.cbor", "graph.json"]
    assert report.notes == (f"execution.cbor, graph.json{OLD_GENERATION}",)


def test_special_files_are_not_taken_for_a_report(tmp_path: Path) -> None:
    # GIVEN a pipe, a directory and a link to nowhere under the names of a report's files
    (tmp_path / "profile.pop").mkdir()
    os.mkfifo(tmp_path / "archive.a")
    (tmp_path / "profile.pop_cache").symlink_to("profile.pop_cache")
    os.mkfifo(tmp_path / "debug.cbor")
    # WHEN the directory is looked at, THEN it is no report, and the reasons are told
    found = survey(tmp_path)
    assert found.reports == ()
    (left,) = found.remains
    assert (left.directory, left.files) == (tmp_path, ())
    assert left.notes == (
        "profile.pop is a directory, not a file",
        "archive.a is a pipe, not a file",
        f"profile.pop_cache cannot be opened ({os.strerror(errno.ELOOP)})",
    )
    with pytest.raises(ReportNotFound, match=r"profile\.pop is a directory, not a file"):
        resolve_report(tmp_path)


@NOT_FOR_ROOT
def test_a_profile_without_permission(tmp_path: Path) -> None:
    make(tmp_path, "profile.pop")
    (tmp_path / "profile.pop").chmod(0)
    assert notes(tmp_path) == ("profile.pop is closed to you",)
    with pytest.raises(UnreadableFile, match="no permission to read it"):
        resolve_report(tmp_path / "profile.pop")


# ------------------------------------------------------------------------------------------------- what is no report


def test_what_crashed_runs_and_old_sdks_leave(tmp_path: Path) -> None:
    # GIVEN a report, leftovers, an old profile, and files of other programs under the same names
    make(tmp_path, "good/profile.pop", "crashed/profile_x.pop", "crashed/debug.cbor", "old/execution.json")
    (tmp_path / "crashed/profile_y.pop").touch()
    (tmp_path / "old/graph.json").write_text('{"target": {"bytesPerTile": 262144}}')
    make(tmp_path, "app/app.json", "app/graph.json", "app/execution.json", "app/debug.cbor", "flow/profile_info.json")
    (tmp_path / "flow/execution.json").symlink_to("nowhere")
    make(tmp_path, "capnp/graph.json", "capnp/vars.capnp", "cbor/graph.cbor")
    # WHEN the tree is surveyed
    found = survey(tmp_path)
    # THEN reports and remains are apart, and what is not Poplar's is not there
    assert relative(tmp_path, found.reports) == ["good"]
    assert [(left.directory.name, [(file.name, file.kind) for file in left.files]) for left in found.remains] == [
        ("capnp", [("graph.json", FileKind.OLD_PROFILE)]),
        ("cbor", [("graph.cbor", FileKind.OLD_PROFILE)]),
        ("crashed", [("profile_x.pop", FileKind.UNFINISHED), ("profile_y.pop", FileKind.UNFINISHED)]),
        ("old", [("graph.json", FileKind.OLD_PROFILE), ("execution.json", FileKind.OLD_PROFILE)]),
    ]
    assert [left.notes for left in found.remains] == [
        (f"graph.json{OLD_GENERATION}",),
        (f"graph.cbor{OLD_GENERATION}",),
        (
            f"profile_x.pop{UNFINISHED}name the file itself to read what it holds",
            f"profile_y.pop{UNFINISHED}it is empty",
        ),
        (f"graph.json, execution.json{OLD_GENERATION}",),
    ]
    assert (found.path, found.skipped) == (tmp_path, ())


@NOT_FOR_ROOT
def test_directories_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    make(tmp_path, "a/profile.pop", "closed/profile.pop", "z/profile.pop")
    (tmp_path / "closed").chmod(0)
    try:
        found = survey(tmp_path)
        assert relative(tmp_path, found.reports) == ["a", "z"]
        assert found.skipped == (Skipped(tmp_path / "closed", "no permission to read it"),)
        for ask in (find_reports, survey, resolve_report):
            with pytest.raises(UnreadableFile) as caught:
                ask(tmp_path / "closed")
            assert caught.value.problem == "no permission to read it"
            with pytest.raises(UnreadableFile):
                ask(tmp_path / "closed/profile.pop")
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_a_directory_that_vanishes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a directory that is gone when its turn comes
    make(tmp_path, "a/profile.pop", "b/profile.pop")
    scandir = os.scandir

    def vanishing(path: str) -> object:
        if str(path).endswith("/b"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return scandir(path)

    monkeypatch.setattr(discovery.os, "scandir", vanishing)
    found = survey(tmp_path)
    assert relative(tmp_path, found.reports) == ["a"]
    assert found.skipped == (Skipped(tmp_path / "b", f"cannot be opened ({os.strerror(errno.ENOENT)})"),)
    # AND WHEN it is the very directory asked about, THEN that is an error
    with pytest.raises(UnreadableFile) as caught:
        survey(tmp_path / "b")
    assert caught.value.path == os.fspath(tmp_path / "b")


# -------------------------------------------------------------------------------------------------- walking the tree


PART = st.sampled_from(["a", "B", "é", "run 1", "run 10", "training", "tf_report__x", "profile.pop", ".hidden"])
FILE = st.sampled_from(["profile.pop", "archive.a", "profile.pop_cache", "debug.cbor", "x.pop", "app.json", "graph"])


@given(st.lists(st.tuples(st.lists(PART, max_size=4), FILE), max_size=12))
def test_the_walk_finds_what_a_plain_search_finds(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[list[str], str]]
) -> None:
    # GIVEN any tree
    root = tmp_path_factory.mktemp("tree")
    for parts, name in files:
        directory = root.joinpath(*parts)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(b"x")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # the name is already that of a file, or of a directory
    # WHEN it is walked, THEN the reports are those that a search for the names finds, parents first
    expected = {
        path.parent
        for name in ("profile.pop", "archive.a", "profile.pop_cache")
        for path in root.rglob(name)
        if path.is_file()
    }
    assert [report.directory for report in find_reports(root)] == sorted(expected, key=lambda path: path.parts)


def test_links_to_directories_are_not_followed_but_the_start_is(tmp_path: Path) -> None:
    # GIVEN a link to a run, and a loop
    make(tmp_path, "runs/1/profile.pop")
    (tmp_path / "runs/latest").symlink_to("1")
    (tmp_path / "runs/1/up").symlink_to("../..")
    (tmp_path / "start").symlink_to("runs")
    # THEN every report is found once, also from a link
    assert relative(tmp_path, find_reports(tmp_path)) == ["runs/1"]
    assert relative(tmp_path, find_reports(tmp_path / "start")) == ["start/1"]
    assert resolve_report(tmp_path / "runs/latest").directory == tmp_path / "runs/latest"


def test_a_link_to_an_engines_directory_keeps_its_debug_info(tmp_path: Path) -> None:
    # GIVEN a link to a report directory, from a place with another debug.cbor
    make(tmp_path, "run/debug.cbor", "run/decoder/profile.pop", "home/debug.cbor")
    (tmp_path / "home/latest").symlink_to("../run/decoder")
    # THEN engine and debug.cbor are those of the directory, not of the link
    report = resolve_report(tmp_path / "home/latest")
    assert (report.engine, report.debug_info) == ("decoder", tmp_path / "run/debug.cbor")


def test_paths_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN that the current directory is an engine's
    make(tmp_path, "debug.cbor", "decoder/profile.pop", "decoder/sub/app.json")
    monkeypatch.chdir(tmp_path / "decoder")
    # THEN its name and what lies above it are found all the same, and paths are spelt as they were asked for
    for spelling in (".", "", "./", "sub/..", "../decoder"):
        if not spelling:
            continue
        report = resolve_report(spelling)
        assert (report.engine, report.debug_info_origin) == ("decoder", "parent")
        assert report.debug_info is not None
        assert report.debug_info.samefile(tmp_path / "debug.cbor")
        assert report.directory == Path(spelling)
    assert resolve_report("profile.pop").engine == "decoder"
    monkeypatch.chdir(tmp_path)
    assert [report.directory for report in find_reports(".")] == [Path("decoder")]


AWKWARD = [
    "new\nline",
    "tab\t",
    "\u202eevil",
    "\x1b[31mred",
    "back\\slash",
    os.fsdecode(b"bytes\xff"),
    "-rf",
    "%2e",
    "*",
]


def test_awkward_names(tmp_path: Path) -> None:
    # GIVEN names with control characters, bytes that are no UTF-8, and directions of writing
    for name in AWKWARD:
        make(
            tmp_path, f"good/{name}/profile.pop", f"bad/{name}/profile_{name}.pop", f"bad/{name}/profile_{name}.pop-wal"
        )
    # WHEN they are looked at, THEN paths are exact
    reports = find_reports(tmp_path / "good")
    assert [report.directory.name for report in reports] == sorted(AWKWARD)
    for report in reports:
        assert resolve_report(report.directory) == report
        assert resolve_report(os.fspath(report.directory / "profile.pop")) == report
    # AND sentences stay on their line, can be printed, and obey nobody
    found = survey(tmp_path / "bad")
    assert [left.directory.name for left in found.remains] == sorted(AWKWARD)
    for left in found.remains:
        assert [file.name for file in left.files] == [f"profile_{left.directory.name}.pop{end}" for end in ("", "-wal")]
        for note in left.notes:
            assert note.isprintable()
            note.encode()
    with pytest.raises(ReportNotFound) as caught:
        resolve_report(tmp_path / "bad")
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
    assert "profile_bytes\\xff.pop" in " ".join(note for left in found.remains for note in left.notes)


def test_a_very_deep_tree(tmp_path: Path) -> None:
    # GIVEN directories nested deeper than Python recurses and than a path may be long
    top = os.open(tmp_path, os.O_RDONLY)
    levels = 2_500
    try:
        for _ in range(levels):
            os.mkdir("d", dir_fd=top)
            below = os.open("d", os.O_RDONLY, dir_fd=top)
            os.close(top)
            top = below
    finally:
        os.close(top)
    make(tmp_path, "e/profile.pop")
    # WHEN it is walked, THEN what the system lets nobody reach is told, and the rest is found
    found = survey(tmp_path)
    assert relative(tmp_path, found.reports) == ["e"]
    assert [skipped.problem for skipped in found.skipped] == [f"cannot be opened ({os.strerror(errno.ENAMETOOLONG)})"]
    remove_chain(tmp_path, levels)


def remove_chain(top: Path, levels: int) -> None:
    """Remove directories ``d/d/d/…``, which no path can reach, from the top: move each one's child up."""
    for _ in range(levels):
        inner = top / "d/d"
        if inner.exists():
            inner.rename(top / "next")
        (top / "d").rmdir()
        if (top / "next").exists():
            (top / "next").rename(top / "d")


# ---------------------------------------------------------------------------------------------- what a path may mean


def test_every_file_of_a_report_means_the_report(tmp_path: Path) -> None:
    make(tmp_path, "training/profile.pop", "training/archive.a", "training/framework.json", "training/app.json")
    make(tmp_path, "training/profile.pop_cache", "training/vars.capnp", "debug.cbor")
    expected = find_reports(tmp_path)
    assert len(expected) == 1
    for path in (tmp_path, tmp_path / "debug.cbor", tmp_path / "training", *(tmp_path / "training").iterdir()):
        assert [resolve_report(path)] == find_reports(path) == list(survey(os.fspath(path)).reports) == expected


def test_a_report_with_others_below_means_itself(tmp_path: Path) -> None:
    make(tmp_path, "profile.pop", "training/profile.pop")
    assert resolve_report(tmp_path).directory == tmp_path


def test_several_reports_below(tmp_path: Path) -> None:
    make(tmp_path, "debug.cbor", "training/profile.pop", "inference/profile.pop")
    for path in (tmp_path, tmp_path / "debug.cbor"):
        with pytest.raises(AmbiguousReport) as caught:
            resolve_report(path)
        assert caught.value.candidates == [os.fspath(tmp_path / name) for name in ("inference", "training")]
        assert caught.value.path == os.fspath(tmp_path)


@pytest.mark.parametrize("name", ["before.pop", "profile_8f3a.pop", "profile", "run.db"])
def test_a_profile_of_another_name(tmp_path: Path, name: str) -> None:
    # GIVEN a profile that was renamed, or is of a crashed run, in a directory without a profile.pop
    make(tmp_path, "archive.a", "debug.cbor", "framework.json")
    (tmp_path / name).write_bytes(SQLITE)
    (tmp_path / f"{name}-wal").write_bytes(b"wal")
    # WHEN it is named, THEN it is the profile of a report to which its neighbours belong
    report = resolve_report(tmp_path / name)
    assert names(report) == [name, "archive.a", "debug.cbor", "framework.json"]
    assert report.path_of("profile.pop") == tmp_path / name
    assert report.path_of("archive.a") == tmp_path / "archive.a"
    assert report.path_of("app.json") is None
    assert report.debug_info == tmp_path / "debug.cbor"
    assert [file.name for file in report.leftovers] == [f"{name}-wal"]
    assert report.notes == (NOT_CLOSED.format(name, "-wal"),)


def test_a_copy_beside_a_profile(tmp_path: Path) -> None:
    # GIVEN a copy in the directory of a report, to whose profile.pop the neighbours belong
    make(tmp_path, "profile.pop", "archive.a", "debug.cbor", "profile.pop_cache", "before.pop", "profile_8f3a.pop")
    report = resolve_report(tmp_path / "before.pop")
    # THEN the copy has nothing of what can only be the other's
    assert names(report) == ["before.pop", "debug.cbor"]
    assert report.leftovers == ()
    assert report.notes == ("before.pop lies beside a profile.pop, to which debug.cbor and framework.json may belong",)
    assert names(resolve_report(tmp_path / "profile.pop"))[0] == "profile.pop"


@pytest.mark.parametrize(
    ("name", "kind", "source"),
    [
        ("tiles.a", FileKind.ARCHIVE, "archive.a"),
        ("tiles", FileKind.ARCHIVE, "archive.a"),
        ("old.pop_cache", FileKind.TRACE_CACHE, "profile.pop_cache"),
    ],
)
def test_other_files_of_another_name(tmp_path: Path, name: str, kind: FileKind, source: str) -> None:
    # GIVEN a renamed file beside one that has its usual name, WHEN it is named, THEN it stands in for that one
    make(tmp_path, source, "app.json")
    (tmp_path / name).write_bytes(b"!<arch>\n")
    report = resolve_report(tmp_path / name)
    assert [(file.name, file.kind) for file in report.files] == [(name, kind), ("app.json", FileKind.APP)]
    assert report.path_of(source) == tmp_path / name


def test_a_link_to_a_profile_means_the_profiles_report(tmp_path: Path) -> None:
    make(tmp_path, "run/profile.pop", "run/debug.cbor", "copies/before.pop")
    (tmp_path / "latest.pop").symlink_to("run/profile.pop")
    (tmp_path / "previous").symlink_to("copies/before.pop")
    assert resolve_report(tmp_path / "latest.pop") == resolve_report(tmp_path / "run")
    assert resolve_report(tmp_path / "previous") == resolve_report(tmp_path / "copies/before.pop")


def refusal(path: Path | str) -> str:
    with pytest.raises(ReportNotFound) as caught:
        resolve_report(path)
    return str(caught.value)


def test_nothing_at_the_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone\n")
    make(tmp_path, "file")
    for path in (tmp_path / "x\ny", tmp_path / "file/below", "", "nul\0byte"):
        shown = os.fspath(path).replace("\n", "\\n").replace("\0", "\\x00")
        assert refusal(path) == f"{shown}: no such file or directory"
        for ask in (find_reports, survey):
            with pytest.raises(ReportNotFound):
                ask(path)
    assert refusal(tmp_path / "link") == f"{tmp_path}/link: is a symbolic link to 'gone\\n', which does not exist"


def test_no_report_at_the_path(tmp_path: Path) -> None:
    head = f"{tmp_path}: no graph profile found: no profile.pop or archive.a at or below it"
    # GIVEN an empty directory, THEN there is no more to say
    assert refusal(tmp_path) == head
    assert find_reports(tmp_path) == []
    # GIVEN files that make no report alone, what a crash left, and an old profile
    make(tmp_path, "debug.cbor", "app.json", "crash/profile_1.pop", "old/graph.cbor")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/profile.pop").symlink_to("/nowhere/profile.pop")
    # THEN they are told
    lines = refusal(tmp_path).split("\n  ")
    assert lines[:3] == [
        head,
        "it holds only debug.cbor, app.json",
        f"{tmp_path}/broken: profile.pop is a symbolic link to '/nowhere/profile.pop', which does not exist",
    ]
    assert lines[3:] == [
        f"{tmp_path}/crash: profile_1.pop{UNFINISHED}name the file itself to read what it holds",
        f"{tmp_path}/old: graph.cbor{OLD_GENERATION}",
    ]


def test_an_old_profile_is_told_once(tmp_path: Path) -> None:
    head = f"{tmp_path}: no graph profile found: no profile.pop or archive.a at or below it"
    make(tmp_path, "graph.cbor")
    assert refusal(tmp_path) == f"{head}\n  {tmp_path}: graph.cbor{OLD_GENERATION}"


def test_a_long_refusal_is_cut(tmp_path: Path) -> None:
    make(tmp_path, *(f"{run:02}/profile_1.pop" for run in range(30)))
    lines = refusal(tmp_path).split("\n  ")
    assert len(lines) == 13
    assert lines[-1] == "… and 19 more"


@pytest.mark.parametrize("name", ["graph.json", "execution.cbor", "profile_info.json"])
def test_an_old_file_at_the_path(tmp_path: Path, name: str) -> None:
    assert refusal(make(tmp_path, name) / name) == f"{tmp_path}: {name}{OLD_GENERATION}"


def test_other_files_at_the_path(tmp_path: Path) -> None:
    make(tmp_path, "readme.txt", "profile.pop")
    (tmp_path / "empty").touch()
    for name in ("readme.txt", "empty"):
        assert (
            refusal(tmp_path / name) == f"{tmp_path}/{name}: not a file of a report: neither a profile nor an archive"
        )


def test_paths_that_are_neither_files_nor_directories(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "profile.pop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    problems = []
    for path in (tmp_path / "profile.pop", tmp_path / "pipe", Path("/dev/null"), tmp_path / "loop", "x" * 5000):
        with pytest.raises(UnreadableFile) as caught:
            resolve_report(path)
        problems.append(caught.value.problem)
    assert problems == [
        "is a pipe, not a file",
        "is a pipe, not a file",
        "is a device, not a file",
        f"cannot be opened ({os.strerror(errno.ELOOP)})",
        f"cannot be opened ({os.strerror(errno.ENAMETOOLONG)})",
    ]


@given(st.text(max_size=40))
def test_any_text_as_a_path_is_answered_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    with pytest.raises(PvanalyseError) as caught:
        resolve_report(f"{tmp_path_factory.getbasetemp()}/missing/{text}")
    assert isinstance(caught.value, ReportNotFound | UnreadableFile)


def test_importing_discovery_is_light() -> None:
    # GIVEN a fresh interpreter, WHEN discovery is imported, THEN nothing heavy comes with it
    program = "import sys, pvanalyse.discovery; print([m for m in ('numpy', 'pandas', 'pyarrow') if m in sys.modules])"
    root = Path(discovery.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout == "[]\n"
