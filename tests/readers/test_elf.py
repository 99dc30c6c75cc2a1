"""Names of the numbers in ELF files beside readelf, and headers read one by one."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers import elf, elf_names
from pvanalyse.readers.string_tables import StringTables
from tests.readers import binutils
from tests.readers.elf_builder import Elf, Section, Segment, Symbol, ar_member, write_ar

# numbers that readelf has named, or not, for many versions
SECTION_TYPES = (
    *range(12), *range(14, 20), 20, 21, 0x60000000, 0x6FFFFFF5, 0x6FFFFFF6, 0x6FFFFFF7, 0x6FFFFFFB, 0x6FFFFFFD,
    0x6FFFFFFE, 0x6FFFFFFF, 0x70000000, 0x70000001, 0x70000055, 0x80000000, 0xFFFFFFFF,
)  # fmt: skip
ENTRY_BYTES = {2: 16, 4: 12, 9: 8, 11: 16, 17: 4, 19: 4}  # without which readelf complains
SEGMENT_TYPES = (0, 1, 4, 5, 7, 8, 0x60000000, 0x6474E550, 0x6474E551, 0x6474E552, 0x6474E553, 0x6FFFFFFF, 0x70000000)
MACHINES_AND_ABIS = tuple(itertools.product((elf_names.MACHINE_IPU, elf_names.MACHINE_X86_64), (0, 3, 9, 77)))


class Bytes:
    """An ELF file in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def data(self) -> memoryview:
        return memoryview(self.content)

    def damaged(self, problem: str) -> UnreadableFile:
        return UnreadableFile("in memory", problem)


def named(theirs: str, number: int) -> str:
    """Return what readelf calls a number, or the number in hexadecimal when readelf only says what range it is in."""
    return hex(number) if "unknown" in theirs or "specific" in theirs or "+0" in theirs else theirs


@pytest.mark.parametrize(("machine", "os_abi"), MACHINES_AND_ABIS)
def test_section_types_and_flags_have_the_names_of_readelf(tmp_path: Path, machine: int, os_abi: int) -> None:
    # GIVEN a section of each type, and sections with each flag, with pairs of them, and with all
    flags = [1 << bit for bit in range(32)]
    flags += [a | b for a, b in itertools.pairwise(flags)] + [0x0FF00000, 0xF0000000, 0xFFFFFFFF, 0]
    sections = [Section(f"t{i}", kind, 0, entry_bytes=ENTRY_BYTES.get(kind, 0)) for i, kind in enumerate(SECTION_TYPES)]
    # (compressed sections would have to begin with a header, and no more than a size of zero is asked of others)
    sections += [Section(f"f{i}", 1, bits) for i, bits in enumerate(flags)]
    data = Elf(machine=machine, os_abi=os_abi, sections=sections).build()
    theirs = binutils.sections(write_ar(tmp_path / "a.a", [ar_member(b"0/", data)]))
    # THEN type and flags are called what readelf calls them
    machine, os_abi = elf_names.naming(machine, os_abi)
    by_name = {row[2]: row for row in theirs}
    assert [elf_names.section_type(kind, machine) for kind in SECTION_TYPES] == [
        named(by_name[f"t{i}"][3], kind) for i, kind in enumerate(SECTION_TYPES)
    ]
    assert [elf_names.section_flags(bits, machine, os_abi) for bits in flags] == [
        by_name[f"f{i}"][6] for i in range(len(flags))
    ]


def test_segment_types_and_flags_have_the_names_of_readelf(tmp_path: Path) -> None:
    segments = [Segment(kind, flags=i % 8) for i, kind in enumerate(SEGMENT_TYPES)]
    theirs = binutils.segments(write_ar(tmp_path / "a.a", [ar_member(b"0/", Elf(segments=segments).build())]))
    assert [(elf_names.segment_type(s.kind), elf_names.segment_flags(s.flags)) for s in segments] == [
        (named(row[1], s.kind), row[5]) for s, row in zip(segments, theirs, strict=True)
    ]


@pytest.mark.parametrize("os_abi", [0, 3, 9, 77])
def test_symbol_types_and_bindings_have_the_names_of_readelf(tmp_path: Path, os_abi: int) -> None:
    # GIVEN a symbol of each type and binding
    _, abi = elf_names.naming(elf_names.MACHINE_IPU, os_abi)
    pairs = list(itertools.product(range(16), range(16)))
    symbols = [Symbol("", kind=kind, binding=binding) for binding, kind in pairs]
    data = Elf(os_abi=os_abi, symbols=symbols).build()
    lines = binutils.run("readelf", "-sW", write_ar(tmp_path / "a.a", [ar_member(b"0/", data)])).splitlines()
    begin = next(i for i, line in enumerate(lines) if "Num:" in line) + 1
    for (binding, kind), line in zip(pairs, lines[begin : begin + 256], strict=True):
        # THEN type and binding are what stands between size and visibility
        theirs = line.split(maxsplit=3)[3].partition(" DEFAULT")[0]
        theirs = (
            theirs.replace("<OS specific>: ", "#").replace("<processor specific>: ", "#").replace("<unknown>: ", "#")
        )
        expected = [hex(int(word[1:])) if word.startswith("#") else word for word in theirs.split()]
        assert [elf_names.symbol_type(kind, abi), elf_names.symbol_binding(binding, abi)] == expected


@pytest.mark.parametrize(
    ("machine", "flags", "name"),
    [
        (248, 0x01, "Ipu1"),
        (248, 0x02, "Ipu2"),
        (248, 0x21, "Ipu21"),
        (248, 0xABCD21, "Ipu21"),
        (248, 0x00, "machine 248"),
        (62, 0x21, "machine 62"),
        (0, 0, "machine 0"),
    ],
)
def test_architectures(machine: int, flags: int, name: str) -> None:
    assert elf_names.architecture(machine, flags) == name


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"ELF\x7f" + bytes(100), b"text"])
def test_what_does_not_begin_like_an_elf_file_has_no_header(content: bytes) -> None:
    assert elf.read_header(Bytes(content)) is None


def test_a_header_says_where_everything_is() -> None:
    data = Elf(64, "big", flags=7, os_abi=3, segments=[Segment()], sections=[Section(".text", data=b"123")]).build()
    source = Bytes(data)
    layout = elf.Layout(64, "big", elf_names.OTHER, 3)
    assert elf.read_header(source) == elf.ElfFile(source, layout, 248, 7, 64, 1, len(data) - 3 * 64, 3, 2)


def test_large_numbers_without_section_headers_are_as_they_stand() -> None:
    # GIVEN 65,535 segments, which is the mark of a number that stands in section 0, but no sections
    header = bytearray(Elf(segments=[Segment()]).build())
    header[44:46] = b"\xff\xff"
    content = bytes(header).ljust(52 + 32 * 0xFFFF, b"\0")
    # THEN there are 65,535 segments
    found = elf.read_header(Bytes(content))
    assert found is not None
    assert found.num_segments == 0xFFFF


# --------------------------------------------------------------------------------------------------- string tables
def test_names_are_those_that_a_plain_search_finds() -> None:
    # GIVEN tables whose names are equal, share ends, or are empty, and every offset into each of them
    contents = [b"\0.text\0text\0", b"", b"\0", b"\0.rela.text\0ext\0t\0\0", b"\0\xff\0", b"\0.text\0text\0"]
    tables = StringTables()
    for content in contents:
        tables.add(lambda target, content=content: target.extend(content))
    places = [(table, offset) for table, content in enumerate(contents) for offset in range(max(len(content), 1))]
    places = places[::2] + places[1::2]
    # WHEN the names at all of them are read
    where = np.array(places, np.int64)
    names = tables.names(where[:, 0], where[:, 1], lambda table, problem: UnreadableFile(str(table), problem))
    # THEN each runs to the next NUL
    expected = [contents[t][o:].partition(b"\0")[0].decode("utf-8", "backslashreplace") for t, o in places]
    assert names.to_pylist() == expected
    assert names.dictionary.to_pylist() == list(dict.fromkeys(expected))


def test_no_names_at_all() -> None:
    none = np.array([], np.int64)
    tables = StringTables()
    assert tables.names(none, none, lambda table, problem: UnreadableFile(str(table), problem)).to_pylist() == []


@pytest.mark.parametrize(
    ("content", "offset", "problem"),
    [
        (b"\0abc\0", 5, "1: a name begins at byte 5 of a string table of 5 bytes"),
        (b"\0abc\0", 2**32 - 1, "1: a name begins at byte 4,294,967,295 of a string table of 5 bytes"),
        (b"", 1, "1: a name begins at byte 1 of a string table of 0 bytes"),
        (b"\0abc", 2, "1: the last name of a string table does not end"),
    ],
)
def test_names_that_are_not_in_their_table(content: bytes, offset: int, problem: str) -> None:
    tables = StringTables()
    for each in (b"\0before\0", content, b"\0after\0"):
        tables.add(lambda target, each=each: target.extend(each))
    which, offsets = np.array([0, 1, 2], np.int64), np.array([1, offset, 1], np.int64)
    with pytest.raises(UnreadableFile) as caught:
        tables.names(which, offsets, lambda table, problem: UnreadableFile(str(table), problem))
    assert str(caught.value) == problem
