"""The ar reader beside binutils and llvm-ar, and with archives written by hand where those write none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.ar import ArFile
from tests.readers import binutils
from tests.readers.elf_builder import ar_member, bsd_member, write_ar

# names that each format writes in another way: short, just too long, with spaces, without a letter, with other letters
FILES = {
    "a.o": b"odd",
    "exactly15chars0": b"even",
    "exactly16chars00": b"",
    "a name that is much longer than sixteen characters.elf": b"12345",
    "with space.o": b"spaced",
    "0": b"x" * 1001,
    "tile_7.élf": b"accent",
}


def contents(path: Path, **options: object) -> list[tuple[str, bytes]]:
    with ArFile(path, **options) as archive:
        return [(member.name, bytes(member.data())) for member in archive.members]


def problem(path: Path, **options: object) -> str:
    with pytest.raises(UnreadableFile) as caught:
        contents(path, **options)
    assert caught.value.path == str(path)
    return caught.value.problem


@pytest.fixture
def files(tmp_path: Path) -> Path:
    directory = tmp_path / "files"
    directory.mkdir()
    for name, data in FILES.items():
        (directory / name).write_bytes(data)
    return directory


# ------------------------------------------------------------------------------------------------ beside other tools
@pytest.mark.parametrize("library", binutils.static_libraries(), ids=str)
def test_members_of_real_libraries_are_those_that_ar_lists(library: Path) -> None:
    # GIVEN a static library of this machine THEN names and sizes are those of `ar tv`
    listed = re.findall(r"^\S+ +\S+ +(\d+) +\S+ +\d+ \S+ \d+ (.*)$", binutils.run("ar", "tv", library), re.MULTILINE)
    with ArFile(library) as archive:
        assert [(str(member.size), member.name) for member in archive.members] == listed


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("ar", ["qcS"]),
        ("llvm-ar", ["--format=gnu", "qcS"]),
        ("llvm-ar", ["--format=bsd", "qcS"]),
        ("llvm-ar", ["--format=darwin", "qcS"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_members_are_the_files_that_an_archiver_packed(
    files: Path, tmp_path: Path, program: str, options: list[str]
) -> None:
    # GIVEN files of even and odd size with names of all kinds, one of them twice
    path = tmp_path / "packed.a"
    # WHEN an archiver packs them
    binutils.run(program, *options, path, *FILES, "a.o", cwd=files)
    # THEN names and bytes come back, in order; the padding of the darwin format counts as data
    padding = b"\n" if "--format=darwin" in options else b""
    found = [(name, data.rstrip(padding) if padding else data) for name, data in contents(path)]
    assert found == [*FILES.items(), ("a.o", FILES["a.o"])]


@pytest.mark.parametrize(
    ("program", "options"), [("ar", []), ("llvm-ar", ["--format=bsd"]), ("llvm-ar", ["--format=darwin"])]
)
def test_symbol_tables_are_no_members(tmp_path: Path, program: str, options: list[str]) -> None:
    # GIVEN two objects with symbols, in an archive with a symbol table
    for name in ("one", "two"):
        (tmp_path / f"{name}.s").write_text(f".globl {name}\n{name}: .byte 1\n")
        binutils.run("as", f"{name}.s", "-o", f"{name}.o", cwd=tmp_path)
    binutils.run(program, *options, "rcs", "packed.a", "one.o", "two.o", cwd=tmp_path)
    raw = (tmp_path / "packed.a").read_bytes()
    assert re.search(rb"!<arch>\n(/ |#1/\d+ .*__.SYMDEF|__.SYMDEF)", raw, re.DOTALL)
    # THEN only the objects are members
    assert contents(tmp_path / "packed.a") == [(name, (tmp_path / name).read_bytes()) for name in ("one.o", "two.o")]


def test_long_bsd_names_written_by_hand_are_read_as_ar_reads_them(tmp_path: Path) -> None:
    # GIVEN an archive with long and short BSD names, odd sizes, and a name that is no UTF-8
    path = write_ar(
        tmp_path / "bsd.a",
        [
            bsd_member(b"a name of more than sixteen characters", b"odd"),
            ar_member(b"short.o", b"even"),
            bsd_member(b"short", b""),
            bsd_member(b"latin-\xe9", b"22"),
        ],
    )
    # THEN names are those that binutils lists, and the names are no part of the data
    assert [name for name, _ in contents(path)] == binutils.member_names(path)
    assert [data for _, data in contents(path)] == [b"odd", b"even", b"", b"22"]


@pytest.mark.parametrize(
    "table",
    [
        ar_member(b"/", bytes(4)),
        ar_member(b"/SYM64/", bytes(8)),
        ar_member(b"__.SYMDEF", bytes(8)),
        ar_member(b"__.SYMDEF SORTED", bytes(8)),
        ar_member(b"__.SYMDEF/", bytes(8)),
        bsd_member(b"__.SYMDEF", bytes(8)),
        bsd_member(b"__.SYMDEF SORTED", bytes(8)),
        bsd_member(b"__.SYMDEF_64", bytes(16)),
        bsd_member(b"__.SYMDEF_64 SORTED", bytes(16)),
    ],
)
def test_every_kind_of_symbol_table_is_left_out(tmp_path: Path, table: bytes) -> None:
    path = write_ar(
        tmp_path / "a.a", [table, ar_member(b"//", b"a long name of a member.o/\n"), ar_member(b"/0", b"x")]
    )
    assert contents(path) == [("a long name of a member.o", b"x")]


def test_names_that_end_with_nul_are_read(tmp_path: Path) -> None:
    # GIVEN a name table as Microsoft's tools write it
    path = write_ar(
        tmp_path / "a.a", [ar_member(b"//", b"first\0second\0"), ar_member(b"/6", b"2"), ar_member(b"/0", b"1")]
    )
    assert contents(path) == [("second", b"2"), ("first", b"1")]


def test_padding_may_be_missing_at_the_end(tmp_path: Path) -> None:
    path = write_ar(tmp_path / "a.a", [ar_member(b"a/", b"odd")[:-1]])
    assert contents(path) == [("a", b"odd")]


def test_an_archive_may_be_empty(tmp_path: Path) -> None:
    assert contents(write_ar(tmp_path / "a.a", [])) == []


# --------------------------------------------------------------------------------------------------- thin archives
@pytest.fixture
def thin(files: Path) -> Path:
    """A thin archive whose members lie beside it and in a directory below."""
    (files / "below").mkdir()
    (files / "below" / "deep.o").write_bytes(b"deep down")
    binutils.run("ar", "qcST", "thin.a", *FILES, "below/deep.o", cwd=files)
    return files / "thin.a"


def test_thin_archives_are_read(thin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [*FILES.items(), ("below/deep.o", b"deep down")]
    # GIVEN a thin archive, seen from its own directory and from elsewhere
    assert [name for name, _ in expected] == binutils.run("ar", "t", "thin.a", cwd=thin.parent).splitlines()
    # THEN the members' files are found beside the archive
    assert contents(thin) == expected
    monkeypatch.chdir(thin.parent)
    assert contents(Path("thin.a")) == expected


def test_thin_archives_with_a_symbol_table_are_read(tmp_path: Path) -> None:
    (tmp_path / "one.s").write_text(".globl one\none: .byte 1\n")
    binutils.run("as", "one.s", "-o", "one.o", cwd=tmp_path)
    binutils.run("ar", "rcsT", "thin.a", "one.o", cwd=tmp_path)
    assert contents(tmp_path / "thin.a") == [("one.o", (tmp_path / "one.o").read_bytes())]


def test_a_missing_file_of_a_thin_archive_is_named(thin: Path) -> None:
    (thin.parent / "below" / "deep.o").unlink()
    assert re.fullmatch(
        r"member 'below/deep.o' at byte [\d,]+: its file '.*/below/deep.o': no such file", problem(thin)
    )


def test_a_changed_file_of_a_thin_archive_is_refused(thin: Path) -> None:
    (thin.parent / "a.o").write_bytes(b"now longer")
    assert "has 10 bytes where the archive says 3; it was changed after" in problem(thin)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_a_thin_archive_is_not_waited_for(thin: Path) -> None:
    (thin.parent / "a.o").unlink()
    os.mkfifo(thin.parent / "a.o")
    assert problem(thin).endswith("is a named pipe, not a file")


@pytest.mark.parametrize("spelling", ["../secret", "{absolute}", "link", "below/../../secret"])
def test_a_thin_archive_reaches_no_file_outside_its_directory(tmp_path: Path, spelling: str) -> None:
    # GIVEN a file outside the report, and a thin archive which names it in some way
    (tmp_path / "secret").write_bytes(b"secret")
    report = tmp_path / "report"
    (report / "below").mkdir(parents=True)
    (report / "link").symlink_to(tmp_path / "secret")
    name = spelling.format(absolute=tmp_path / "secret").encode()
    members = [ar_member(b"//", name + b"/\n"), ar_member(b"/0", b"", size=6)]
    path = write_ar(report / "archive.a", members, b"!<thin>\n")
    # THEN it is not opened
    assert f"is not below '{report.resolve()}', where the members of a thin archive must be" in problem(path)
    # but it can be, when the caller says so
    assert contents(path, members_below=tmp_path) == [(name.decode(), b"secret")]


def test_a_loop_of_links_in_a_thin_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    path = write_ar(tmp_path / "a.a", [ar_member(b"loop/", b"", size=6)], b"!<thin>\n")
    assert problem(path).startswith("member 'loop' at byte 8: its file ")


def test_nested_thin_archives_are_said_not_to_be_supported(tmp_path: Path) -> None:
    members = [ar_member(b"//", b"inner.a/\n"), ar_member(b"/0:68", b"", size=6)]
    path = write_ar(tmp_path / "a.a", members, b"!<thin>\n")
    assert problem(path) == "at byte 78: a thin archive within a thin archive is not supported"


# ------------------------------------------------------------------------------------------------------ bad archives
HEADER = ar_member(b"a/", b"")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"SQLite format 3\0" + bytes(100), "is not an ar archive but a SQLite database"),
        (b"\x7fELF" + bytes(100), "is not an ar archive but an ELF file"),
        (b'{"a": 1}', "is not an ar archive but JSON text"),
        (b"Hello, world.\n", "is not an ar archive but text"),
        (b"!<arc", "is not an ar archive but one cut off after 5 bytes"),
        (b"!<arch>\n" + HEADER[:30], "at byte 8: 30 bytes are left where a member's header needs 60"),
        (b"!<arch>\n" + HEADER + b"\n", "at byte 68: 1 bytes are left where a member's header needs 60"),
        (b"!<arch>\n" + bytes(60), "at byte 8: there is no member's header where one must be"),
        (b"!<arch>\n" + HEADER.replace(b"`\n", b"``"), "at byte 8: there is no member's header where one must be"),
        (
            b"!<arch>\n" + ar_member(b"a/", b"1234", size=5),
            "at byte 8: a member of 5 bytes runs past the end of the file (72)",
        ),
        (
            b"!<arch>\n" + ar_member(b"/0", b""),
            "at byte 8: a member's name refers to byte b'0' of a name table of 0 bytes",
        ),
        (
            b"!<arch>\n" + ar_member(b"/x", b""),
            "at byte 8: a member's name refers to byte b'x' of a name table of 0 bytes",
        ),
        (b"!<arch>\n" + ar_member(b"#1/5", b"1234"), "at byte 8: the length of a member's name is not possible: b'5'"),
        (
            b"!<arch>\n" + ar_member(b"#1/-1", b"1234"),
            "at byte 8: the length of a member's name is not possible: b'-1'",
        ),
        (
            b"!<arch>\n" + ar_member(b"//", b"n" * 5000) + ar_member(b"/0", b""),
            "at byte 5,068: a member's name is longer than 4,096 bytes",
        ),
        *(
            (
                b"!<arch>\n" + HEADER[:48] + size.ljust(10) + b"`\n",
                "at byte 8: there is no member's header where one must be",
            )
            for size in (b"", b"-1", b"+1", b"1_0", b"0x1", b"1 1", "١".encode())
        ),
    ],
)
def test_what_is_no_archive_is_said_to_be_what_it_is(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "archive.a").write_bytes(content)
    assert problem(tmp_path / "archive.a") == expected


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("empty", "dangling", "missing", ".", "empty/below", "n" * 300, "nul\0"):
        assert problem(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "archive.a")
    assert problem(tmp_path / "archive.a") == "is a named pipe, not a file"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_device_is_not_read() -> None:
    assert problem(Path("/dev/zero")) == "is a character device, not a file"


def test_a_truncated_archive_is_an_error_unless_it_ends_between_members(tmp_path: Path) -> None:
    # GIVEN an archive of three members
    parts = [b"!<arch>\n", ar_member(b"a/", b"odd"), ar_member(b"b/", b"even"), bsd_member(b"a longer name of c", b"")]
    whole = b"".join(parts)
    complete = {sum(map(len, parts[:count])): count - 1 for count in range(1, 5)}
    complete[sum(map(len, parts[:2])) - 1] = 1  # only the padding is missing
    path = tmp_path / "archive.a"
    for size in range(1, len(whole) + 1):
        # WHEN it is cut off at any byte
        path.write_bytes(whole[:size])
        # THEN the members before the cut are read, or the error says where it is
        if size in complete:
            assert [name for name, _ in contents(path)] == ["a", "b", "a longer name of c"][: complete[size]]
        else:
            assert re.search(r"^at byte [\d,]+: |cut off after", problem(path))
