"""The tables of archive.a beside readelf, size and pyelftools, on real libraries and on archives made here."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pvanalyse.errors import UnreadableFile, UsageError
from pvanalyse.readers import archive as archive_module
from pvanalyse.readers.archive import Archive, tile_numbers
from pvanalyse.tables import TABLES
from tests.readers import binutils
from tests.readers.elf_builder import (
    LOAD,
    NOBITS,
    NOTE,
    SYMTAB,
    Elf,
    Section,
    Segment,
    Symbol,
    ar_member,
    ipu_executable,
    write_ar,
)

TABLE_NAMES = ("archive_tiles", "archive_segments", "archive_sections", "archive_symbols")
NOT_COUNTED_BY_SIZE = ("NULL", "SYMTAB", "STRTAB", "RELA", "REL", "SYMTAB SECTION INDICES")


def read(path: Path) -> dict[str, pa.Table]:
    with Archive(path) as archive:
        tables = (archive.tiles(), archive.segments(), archive.sections(), archive.symbols())
        found = dict(zip(TABLE_NAMES, tables, strict=True))
        for name, table in found.items():
            table.validate(full=True)
            assert table.schema == TABLES[name].arrow_schema()
            assert archive.count(name) == table.num_rows
    return found


def rows(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def problem(path: Path) -> str:
    with pytest.raises(UnreadableFile) as caught:
        read(path)
    assert caught.value.path == str(path)
    return caught.value.problem


def assert_as_readelf_says(path: Path) -> None:
    """Compare all tables, for an archive of ELF files only, whose tiles are numbered in order."""
    tables = read(path)
    tile_columns = ("elf_class", "byte_order", "flags", "num_segments", "num_sections")
    assert rows(tables["archive_tiles"], *tile_columns) == binutils.headers(path)
    segment_columns = ("tile", "type", "virtual_address", "file_bytes", "memory_bytes", "flags", "alignment")
    segments = binutils.segments(path)
    assert rows(tables["archive_segments"], *segment_columns) == segments
    section_columns = ("tile", "section", "name", "type", "address", "bytes", "flags")
    assert rows(tables["archive_sections"], *section_columns) == binutils.sections(path)
    symbol_columns = ("tile", "name", "address", "bytes", "type", "binding", "section")
    assert rows(tables["archive_symbols"], *symbol_columns) == binutils.symbols(path)

    loaded = [0] * tables["archive_tiles"].num_rows
    for tile, kind, _, _, memory_bytes, _, _ in segments:
        loaded[tile] += memory_bytes if kind == "LOAD" else 0
    assert tables["archive_tiles"]["loaded_bytes"].to_pylist() == loaded
    assert tables["archive_tiles"]["member"].to_pylist() == binutils.member_names(path)


# -------------------------------------------------------------------------------------------------- beside binutils
@pytest.mark.parametrize("library", binutils.static_libraries(), ids=str)
def test_real_libraries_are_read_as_readelf_reads_them(library: Path) -> None:
    binutils.tool("readelf")
    assert_as_readelf_says(library)


@pytest.mark.parametrize("library", binutils.static_libraries(), ids=str)
def test_sections_of_real_libraries_have_the_sizes_that_size_prints(library: Path) -> None:
    sections = rows(read(library)["archive_sections"], "tile", "name", "bytes", "address", "type")
    assert [row[:4] for row in sections if row[4] not in NOT_COUNTED_BY_SIZE] == binutils.section_sizes(library)


ASSEMBLY = """
    .globl _start
    .weak maybe
    .type _start, @function
_start: .byte 1, 2, 3
    .size _start, . - _start
    .section .rodata.text, "aMS", @progbits, 1
    .string "shared"
    .data
    .globl object
    .type object, @object
object: .long 7
    .size object, 4
    .comm common, 40, 8
    .bss
    .skip 1000 + {tile}
    .section .tdata, "awT", @progbits
    .globl thread
thread: .long 1
    .section .note.mine, "a", @note
    .long 0
    .equ absolute, 0x1234
"""


@pytest.fixture(scope="module")
def executables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of linked executables of both classes, and of objects in the other byte order."""
    directory = tmp_path_factory.mktemp("executables")
    for tile, (as_option, emulation, target) in enumerate(
        [("--32", "elf_i386", "elf32-big"), ("--64", "elf_x86_64", "elf64-big")]
    ):
        (directory / "source.s").write_text(ASSEMBLY.format(tile=tile))
        binutils.run("as", as_option, "source.s", "-o", "object.o", cwd=directory)
        binutils.run("ld", "-static", "-m", emulation, "object.o", "-o", f"tile_{2 * tile}.elf", cwd=directory)
        binutils.run("objcopy", "-I", "binary", "-O", target, "source.s", f"tile_{2 * tile + 1}.elf", cwd=directory)
    return directory


@pytest.mark.parametrize("options", ["qcS", "rcs", "qcST", "rcsT"])
def test_linked_executables_of_every_class_and_byte_order(executables: Path, options: str) -> None:
    # GIVEN executables of 32 and 64 bit and of both byte orders, which ar packs, also thinly
    path = executables / f"{options}.a"
    binutils.run("ar", options, path.name, *(f"tile_{tile}.elf" for tile in range(4)), cwd=executables)
    # THEN all tables agree with readelf
    assert rows(read(path)["archive_tiles"], "elf_class", "byte_order") == list(
        itertools.product((32, 64), ("little", "big"))
    )
    assert_as_readelf_says(path)


def test_objects_with_more_sections_than_fit_the_header(tmp_path: Path) -> None:
    # GIVEN an object with 66,000 functions, each in its own section, as an assembler writes it
    functions = (f'.section .text.f{i},"ax",@progbits\n.globl f{i}\nf{i}: .byte 0\n' for i in range(66_000))
    (tmp_path / "many.s").write_text("".join(functions))
    binutils.run("as", "many.s", "-o", "many.o", cwd=tmp_path)
    binutils.run("ar", "qcS", "many.a", "many.o", cwd=tmp_path)
    assert_as_readelf_says(tmp_path / "many.a")


SYMBOLS = (
    Symbol(""),
    Symbol("local", 1, 2, 1, 0, 1),
    Symbol("a.rather.long.name", 0x4C000, 64, 2, 1, 1),
    Symbol("long.name", 0x4C010, 0, 2, 2, 1),  # shares its end with the one before
    Symbol("name", 0x4C020, 0, 0, 1, 0),
    Symbol("absolute", 5, 0, 0, 1, 0xFFF1),
    Symbol("common", 8, 80, 1, 1, 0xFFF2),
    Symbol("file.cpp", 0, 0, 4, 0, 0xFFF1),
)
LAYOUTS = tuple(itertools.product((32, 64), ("little", "big")))


def built(elf_class: int, byte_order: str, **fields: Any) -> bytes:
    segments = (Segment(LOAD, 0x4C000, 8, 4096, 7, 8), Segment(NOTE, 0, 0, 100, 4), Segment(LOAD, 0x60000, 0, 256, 1))
    sections = (
        Section(".text.rather.long.name", data=b"12345678"),
        Section(".name"),
        Section(".bss", NOBITS, 3, 5, num_bytes=9),
    )
    return Elf(elf_class, byte_order, segments=segments, sections=sections, symbols=SYMBOLS, **fields).build()


def test_ipu_executables_of_every_layout_as_readelf_reads_them(tmp_path: Path) -> None:
    # GIVEN executables of all layouts in turn, twice, with and without sections and symbols
    members = [built(*layout) for layout in LAYOUTS * 2]
    members += [Elf(*layout, segments=[Segment()]).build() for layout in LAYOUTS]
    path = write_ar(tmp_path / "archive.a", (ar_member(b"%d/" % i, data) for i, data in enumerate(members)))
    assert_as_readelf_says(path)


@pytest.mark.parametrize(("elf_class", "byte_order"), LAYOUTS)
def test_numbers_that_do_not_fit_are_found_in_section_0(tmp_path: Path, elf_class: int, byte_order: str) -> None:
    # GIVEN an executable which keeps its three numbers and all its symbols' sections where large ones go
    plain = write_ar(tmp_path / "plain.a", [ar_member(b"a/", built(elf_class, byte_order))])
    member = ar_member(b"a/", built(elf_class, byte_order, extended=True))
    extended = write_ar(tmp_path / "extended.a", [member])
    expected, found = read(plain), read(extended)
    # THEN readelf agrees on the headers, and symbols are those of the plain one
    assert rows(found["archive_tiles"], "elf_class", "byte_order", "flags", "num_segments", "num_sections") == (
        binutils.headers(extended)
    )
    assert found["archive_segments"] == expected["archive_segments"]
    assert found["archive_symbols"].to_pylist() == expected["archive_symbols"].to_pylist()
    names = [name for (name,) in rows(found["archive_sections"], "name")]
    assert names[:-2] + names[-1:] == expected["archive_sections"]["name"].to_pylist()
    assert names[-2] == ".symtab_shndx"


# ------------------------------------------------------------------------------------------------ beside pyelftools
def test_pyelftools_reads_the_same(tmp_path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    # GIVEN executables like those of tiles, and all layouts
    members = [ipu_executable(tile, 12, 30) for tile in range(5)] + [built(*layout) for layout in LAYOUTS]
    tables = read(write_ar(tmp_path / "archive.a", (ar_member(b"%d/" % i, data) for i, data in enumerate(members))))
    # WHEN pyelftools reads each of them
    segments, sections, symbols = [], [], []
    for tile, data in enumerate(members):
        file = elffile.ELFFile(io.BytesIO(data))
        for s in file.iter_segments():
            segments.append((tile, s["p_vaddr"], s["p_filesz"], s["p_memsz"], s["p_align"]))
        for s in file.iter_sections():
            sections.append((tile, s.name, s["sh_addr"], s["sh_size"]))
        symbols += [
            (tile, s.name, s["st_value"], s["st_size"]) for s in file.get_section_by_name(".symtab").iter_symbols()
        ]
    # THEN names and numbers are the same
    segment_columns = ("tile", "virtual_address", "file_bytes", "memory_bytes", "alignment")
    assert rows(tables["archive_segments"], *segment_columns) == segments
    assert rows(tables["archive_sections"], "tile", "name", "address", "bytes") == sections
    assert rows(tables["archive_symbols"], "tile", "name", "address", "bytes") == symbols


# ---------------------------------------------------------------------------------------------------------- meaning
def test_tiles_of_ipus(tmp_path: Path) -> None:
    # GIVEN tiles of three generations and two other machines, out of order, and members that are no executables
    machines = ((248, 0x01), (248, 0x02), (248, 0x7721), (248, 0x05), (62, 0x02))
    elves = [Elf(machine=m, flags=f, segments=[Segment(memory_bytes=10 + f % 7)]).build() for m, f in machines]
    members = [ar_member(b"tile_%d.elf/" % (9 - i), data) for i, data in enumerate(elves)]
    path = write_ar(tmp_path / "archive.a", [ar_member(b"notes7.txt/", b"text"), *members, ar_member(b"empty/", b"")])
    size = len(elves[0])
    # THEN every executable is a row, and the others are listed
    with Archive(path) as archive:
        assert archive.other_members == ["notes7.txt", "empty"]
        assert [tuple(row.values()) for row in archive.tiles().to_pylist()] == [
            (9, "tile_9.elf", "Ipu1", 32, "little", 248, 0x01, 1, 0, size, 11),
            (8, "tile_8.elf", "Ipu2", 32, "little", 248, 0x02, 1, 0, size, 12),
            (7, "tile_7.elf", "Ipu21", 32, "little", 248, 0x7721, 1, 0, size, 10 + 0x7721 % 7),
            (6, "tile_6.elf", "machine 248", 32, "little", 248, 0x05, 1, 0, size, 15),
            (5, "tile_5.elf", "machine 62", 32, "little", 62, 0x02, 1, 0, size, 12),
        ]


@pytest.mark.parametrize(
    ("names", "tiles"),
    [
        (["tile_3.elf", "tile_1.elf"], [3, 1]),
        (["ipu0_tile_1471", "ipu1_tile_0"], [1471, 0]),
        (["0", "00001", "2.9"], [0, 1, 9]),
        (["a1", "b1"], [0, 1]),  # not distinct
        (["a1", "b"], [0, 1]),  # not every name has a number
        (["t5.elf32", "t6.elf32"], [0, 1]),  # the last number is that of the format
        (["a1", "a" + "9" * 30], [0, 1]),  # no tile has that number
        (["a1", "a٢"], [0, 1]),  # not an ASCII digit
        ([], []),
    ],
)
def test_tile_numbers(names: list[str], tiles: list[int]) -> None:
    assert tile_numbers(names) == tiles


def test_symbols_of_chosen_tiles(tmp_path: Path) -> None:
    # GIVEN tiles 4, 3, 2, 1, 0 of different layouts
    members = [ipu_executable(0, 3, 8), *(built(*layout) for layout in LAYOUTS)]
    path = write_ar(tmp_path / "archive.a", (ar_member(b"%d/" % (4 - i), data) for i, data in enumerate(members)))
    with Archive(path) as archive:
        everything = archive.symbols().to_pylist()
        # THEN any choice is that part of all rows
        for chosen in ([], [2], (0, 4, 4), range(5), iter([1, 3])):
            wanted = list(chosen)
            expected = [row for row in everything if row["tile"] in wanted]
            assert archive.symbols(wanted).to_pylist() == expected
            assert archive.symbols(wanted).schema == TABLES["archive_symbols"].arrow_schema()
        # and a tile that does not exist is the user's mistake
        with pytest.raises(UsageError, match="the archive has no tile 5; it has 5 tiles"):
            archive.symbols([0, 5])
        with pytest.raises(UsageError, match="no table 'tiles'"):
            archive.count("tiles")


def test_tables_do_not_depend_on_how_much_is_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = [ipu_executable(tile, 5, 12) for tile in range(3)] + [built(*layout) for layout in LAYOUTS * 2]
    path = write_ar(tmp_path / "archive.a", (ar_member(b"%d/" % i, data) for i, data in enumerate(members)))
    expected = {name: table.to_pylist() for name, table in read(path).items()}
    for batch_bytes in (1, 3000, 10_000):
        monkeypatch.setattr(archive_module, "_BATCH_BYTES", batch_bytes)
        found = read(path)
        assert {name: table.to_pylist() for name, table in found.items()} == expected
        # a pandas category must not occur twice
        names = found["archive_symbols"]["name"].combine_chunks().dictionary.to_pylist()
        assert len(names) == len(set(names))


def test_an_archive_without_executables_has_empty_tables(tmp_path: Path) -> None:
    for content in ([], [ar_member(b"a/", b"text")]):
        assert {table.num_rows for table in read(write_ar(tmp_path / "archive.a", content)).values()} == {0}


def test_tables_outlive_the_archive(tmp_path: Path) -> None:
    path = write_ar(tmp_path / "archive.a", [ar_member(b"0/", ipu_executable(0, 3, 8))])
    with Archive(path) as archive:
        table = archive.symbols()
    path.unlink()
    assert table["name"][1].as_py() == "__runCodelet_Reduce__0___half_float"


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    # GIVEN a section name that is not UTF-8, and one that reads as its escaped form
    data = Elf(sections=[Section(".x"), Section(".\\xff")]).build().replace(b".x\0", b".\xff\0")
    table = read(write_ar(tmp_path / "archive.a", [ar_member(b"0/", data)]))["archive_sections"]
    assert table["name"].to_pylist() == ["", ".\\xff", ".\\xff", ".shstrtab"]
    assert table["name"].combine_chunks().dictionary.to_pylist() == ["", ".\\xff", ".shstrtab"]


# ----------------------------------------------------------------------------------------------------------- damage
def patched(offset: int, value: int, size: int = 4) -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + value.to_bytes(size, "little") + data[offset + size :]


def last_section_field(index_from_end: int, field: int, value: int) -> Callable[[bytes], bytes]:
    """Change a field (4 bytes each) of a section header, counted from the last."""
    return lambda data: patched(len(data) - 40 * index_from_end + 4 * field, value)(data)


STRINGS_OFFSET, STRINGS_SIZE, LINK, ENTRY = 4, 5, 6, 9  # fields of a section header
SECTIONS = 7  # null, .text, .name, .bss, .symtab, .strtab, .shstrtab


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda data: data[:4], "an ELF file with an impossible header (7f 45 4c 46)"),
        (patched(4, 3, 1), "an ELF file with an impossible header (7f 45 4c 46 03 01 01 00 00 00 00 00 00 00 00 00)"),
        (patched(5, 0, 1), "an ELF file with an impossible header (7f 45 4c 46 01 00 01 00 00 00 00 00 00 00 00 00)"),
        (lambda data: data[:51], "its ELF header of 36 bytes at byte 16 does not lie within its 51 bytes"),
        (patched(28, 0xFFFFFFFF), "its program header table of 96 bytes at byte 4,294,967,295 OUTSIDE"),
        (patched(42, 31, 2), "each program header takes up 31 bytes instead of 32"),
        (patched(46, 64, 2), "each section header takes up 64 bytes instead of 40"),
        (patched(44, 5000, 2), "its program header table of 160,000 bytes at byte 52 OUTSIDE"),
        (patched(50, 7, 2), "section 7 should hold the sections' names, but there are 7 sections"),
        (lambda data: data[:-1], "its section header table of 280 bytes at byte BEGIN OUTSIDE"),
        (patched(48, 0, 2), None),  # no sections: the number is read from section 0, which says 0
        (last_section_field(6, 0, 10_000), "a name begins at byte 10,000 of a string table of 55 bytes"),
        (last_section_field(1, STRINGS_SIZE, 54), "the last name of a string table does not end"),
        (last_section_field(1, STRINGS_OFFSET, 1 << 31), "its string table of 55 bytes at byte 2,147,483,648 OUTSIDE"),
        (last_section_field(3, ENTRY, 0), "its symbol table of 128 bytes has symbols of 0 bytes"),
        (last_section_field(3, STRINGS_SIZE, 127), "its symbol table of 127 bytes has symbols of 16 bytes"),
        (last_section_field(3, STRINGS_OFFSET, 1 << 20), "its symbol table of 128 bytes at byte 1,048,576 OUTSIDE"),
        (last_section_field(3, LINK, 7), "its symbols' names are in section 7, which does not exist"),
        (last_section_field(4, 1, SYMTAB), "its symbol table of 9 bytes has symbols of 0 bytes"),
    ],
)  # fmt: skip
def test_damage_is_an_error_that_says_where(
    tmp_path: Path, damage: Callable[[bytes], bytes], expected: str | None
) -> None:
    # GIVEN an archive whose second executable is damaged in one place
    whole = built(32, "little")
    data = damage(whole)
    first = ar_member(b"0/", ipu_executable(0, 3, 8))
    path = write_ar(tmp_path / "archive.a", [first, ar_member(b"1/", data)])
    if expected is None:
        assert problem(path).endswith("section 6 should hold the sections' names, but there are 0 sections")
        return
    # THEN the error names the member, the place, and what is wrong there
    expected = expected.replace("OUTSIDE", f"does not lie within its {len(data):,} bytes")
    expected = expected.replace("BEGIN", f"{len(whole) - SECTIONS * 40:,}")
    assert problem(path) == f"member '1' at byte {8 + len(first):,}: {expected}"


def wide(*values: int) -> bytes:
    """An ELF64 executable whose one segment and symbol have these sizes."""
    return Elf(
        64, segments=[Segment(memory_bytes=value) for value in values], symbols=[Symbol(""), Symbol("x", values[0])]
    ).build()


def test_numbers_beyond_int64_are_refused(tmp_path: Path) -> None:
    path = write_ar(tmp_path / "archive.a", [ar_member(b"0/", wide(2**63))])
    message = "member '0' at byte 8: entry 0 of a table has the memory_bytes 0x8000000000000000, 2^63 or more"
    assert problem(path) == message
    with Archive(path) as archive, pytest.raises(UnreadableFile, match="entry 1 of a table has the value 0x8"):
        archive.symbols()
    path = write_ar(tmp_path / "archive.a", [ar_member(b"0/", wide(*[2**62 - 1] * 4))])
    assert problem(path) == "member '0' at byte 8: its segments take up an impossible amount of memory"


def test_several_symbol_tables_are_refused(tmp_path: Path) -> None:
    data = Elf(sections=[Section(".more", SYMTAB, entry_bytes=16)], symbols=[Symbol("")]).build()
    path = write_ar(tmp_path / "archive.a", [ar_member(b"0/", data)])
    assert problem(path) == "member '0' at byte 8: it has more than one symbol table"


def test_section_indices_without_their_table_are_refused(tmp_path: Path) -> None:
    data = Elf(symbols=[Symbol(""), Symbol("x", section=70_000)]).build().replace(b"\x12\0\0\0", b"\x13\0\0\0")
    path = write_ar(tmp_path / "archive.a", [ar_member(b"0/", data)])
    assert problem(path).endswith("its symbols have section indices in a table that is missing or too short")


def test_names_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    # GIVEN a name of a million letters, and symbols that are named by each of its ends: 500 GB when written out
    text = b"\0" + b"x" * 1_000_000 + b"\0"
    elf = Elf(symbols=[])
    symbols = b"".join(elf.pack("IIIBBH", "", offset, 0, 0, 0, 0, 0) for offset in range(1_000_000))
    sections = [
        Section(".symtab", SYMTAB, 0, data=symbols, link=2, entry_bytes=16),
        Section(".strtab", 3, 0, data=text),
    ]
    path = write_ar(tmp_path / "archive.a", [ar_member(b"0/", Elf(sections=sections).build())])
    size = sum(range(2, 1_000_001))
    assert problem(path) == f"member '0' at byte 8: the names of its sections or symbols would take up {size:,} bytes"


SEED = [
    *(ar_member(b"tile%d.elf/" % i, data) for i, data in enumerate([built(32, "little"), ipu_executable(1, 2, 5)])),
    ar_member(b"//", b"a long name of a member.elf/\n"),
    ar_member(b"/0", built(64, "big", extended=True)),
    ar_member(b"#1/12", b"bsd name.elf" + built(64, "little")),
    ar_member(b"text/", b"text"),
]
WHOLE = b"!<arch>\n" + b"".join(SEED)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=6),
    size=st.just(len(WHOLE)) | st.integers(0, len(WHOLE)),
)
def test_damaged_archives_give_tables_or_an_error(
    tmp_path: Path, changes: Iterable[tuple[int, int]], size: int
) -> None:
    # GIVEN an archive with some bytes changed, and perhaps cut off
    damaged = bytearray(WHOLE)
    for position, value in changes:
        damaged[position] = value
    assert_read_or_refused(tmp_path / "archive.a", bytes(damaged[:size]))


def test_every_byte_of_the_headers_may_be_damaged(tmp_path: Path) -> None:
    # GIVEN a small executable, and every byte of its header and section headers inverted
    for elf_class, byte_order in ((32, "little"), (64, "big")):
        data = built(elf_class, byte_order, extended=True)
        header_size, section_size = (52, 40) if elf_class == 32 else (64, 64)
        for position in (*range(header_size), *range(len(data) - 8 * section_size, len(data))):
            changed = data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]
            assert_read_or_refused(tmp_path / "archive.a", b"!<arch>\n" + ar_member(b"0/", changed))


def test_random_bytes_after_a_valid_start(tmp_path: Path) -> None:
    random_source = random.Random(248)
    for elf_class, order in itertools.product((1, 2), (1, 2)):
        for _ in range(200):
            noise = bytes([0x7F, *b"ELF", elf_class, order]) + random_source.randbytes(
                random_source.choice((20, 200, 2000))
            )
            assert_read_or_refused(tmp_path / "archive.a", b"!<arch>\n" + ar_member(b"0/", noise))


def assert_read_or_refused(path: Path, content: bytes) -> None:
    """Whatever the bytes: each table is whole and of its schema, or the error is the one for a file that is damaged."""
    path.write_bytes(content)
    try:
        archive = Archive(path)
    except UnreadableFile:
        return
    with archive:
        for name, table in zip(
            TABLE_NAMES, (archive.tiles, archive.segments, archive.sections, archive.symbols), strict=True
        ):
            try:
                found = table()
            except UnreadableFile:
                continue
            found.validate(full=True)
            assert found.schema == TABLES[name].arrow_schema()
            assert found.num_rows == archive.count(name)
            assert all(column.null_count == 0 for column in found.columns)
