"""Headers, segments, sections and symbols of many ELF files at once.

32 and 64 bit, either byte order. A header is read by itself; the tables it points to are gathered from many files and
read as one array, so that the cost per row is that of a copy. The format is that of the System V ABI, chapters 4 and 5
(https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html), including its extended numbering for more than 65,279
sections and 65,534 segments. Whatever the file says of its own sizes is checked before it is believed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers import elf_names
from pvanalyse.readers.string_tables import Int64s, StringTables

MAGIC = b"\x7fELF"
Rows = npt.NDArray[Any]  # structured

_CLASSES = {1: 32, 2: 64}
_BYTE_ORDERS = {1: "little", 2: "big"}
_PREFIX = {"little": "<", "big": ">"}

_HEADER = {32: "HHIIIIIHHHHHH", 64: "HHIQQQIHHHHHH"}
_IDENT_SIZE = 16
_EXTENDED = 0xFFFF  # PN_XNUM and SHN_XINDEX: the number did not fit and stands elsewhere

_SEGMENT = {
    32: "type:u4 offset:u4 address:u4 physical:u4 file_bytes:u4 memory_bytes:u4 flags:u4 alignment:u4",
    64: "type:u4 flags:u4 offset:u8 address:u8 physical:u8 file_bytes:u8 memory_bytes:u8 alignment:u8",
}
_SECTION = {
    32: "name:u4 type:u4 flags:u4 address:u4 offset:u4 bytes:u4 link:u4 info:u4 alignment:u4 entry_bytes:u4",
    64: "name:u4 type:u4 flags:u8 address:u8 offset:u8 bytes:u8 link:u4 info:u4 alignment:u8 entry_bytes:u8",
}
_SYMBOL = {
    32: "name:u4 value:u4 bytes:u4 info:u1 other:u1 section:u2",
    64: "name:u4 info:u1 other:u1 section:u2 value:u8 bytes:u8",
}


class Source(Protocol):
    """Where the bytes of an ELF file come from."""

    def data(self) -> memoryview:
        """Return all bytes."""

    def damaged(self, problem: str) -> UnreadableFile:
        """Return the error which says what is wrong in this file."""


class Layout(NamedTuple):
    """What decides how an ELF file's bytes are read (class and byte order) and named (machine and ABI).

    Machines and ABIs without names of their own are all :data:`elf_names.OTHER`, so that there are few layouts.
    """

    elf_class: int
    byte_order: str
    machine: int
    os_abi: int

    def segment(self) -> np.dtype[np.void]:
        """Return the dtype of a program header."""
        return _dtype(_SEGMENT[self.elf_class], self.byte_order)

    def section(self) -> np.dtype[np.void]:
        """Return the dtype of a section header."""
        return _dtype(_SECTION[self.elf_class], self.byte_order)

    def symbol(self) -> np.dtype[np.void]:
        """Return the dtype of a symbol."""
        return _dtype(_SYMBOL[self.elf_class], self.byte_order)


@cache
def _header(elf_class: int, byte_order: str) -> struct.Struct:
    return struct.Struct(_PREFIX[byte_order] + _HEADER[elf_class])


@cache
def _dtype(fields: str, byte_order: str) -> np.dtype[np.void]:
    pairs = (field.split(":") for field in fields.split())
    return np.dtype([(name, _PREFIX[byte_order] + kind) for name, kind in pairs])


class _Header(NamedTuple):
    """The header after ``e_ident``, as it stands in the file."""

    kind: int
    machine: int
    version: int
    entry: int
    segments: int  # e_phoff
    sections: int  # e_shoff
    flags: int
    size: int
    segment_size: int
    num_segments: int
    section_size: int
    num_sections: int
    names_section: int


class ElfFile(NamedTuple):
    """The header of one ELF file, with the extended numbers resolved.

    The program and section header tables are known to lie within the file.
    """

    source: Source
    layout: Layout
    machine: int
    flags: int
    segments_offset: int
    num_segments: int
    sections_offset: int
    num_sections: int
    names_section: int

    def append(self, what: str, offset: int, size: int, target: bytearray) -> None:
        """Append a part of the file to ``target``.

        Raises
        ------
        UnreadableFile
            The part does not lie within the file.
        """
        with self.source.data() as view:
            _check_within(self.source, what, offset, size, len(view))
            target += view[offset : offset + size]


def read_header(source: Source) -> ElfFile | None:
    """Read the header of an ELF file; None when the file does not begin like one.

    Raises
    ------
    UnreadableFile
        The file is cut off, has a class or byte order that does not exist, or tables that lie outside it.
    """
    with source.data() as view:
        if view[:4] != MAGIC:
            return None
        if len(view) < _IDENT_SIZE or view[4] not in _CLASSES or view[5] not in _BYTE_ORDERS:
            raise source.damaged(f"an ELF file with an impossible header ({bytes(view[:_IDENT_SIZE]).hex(' ')})")
        elf_class, byte_order = _CLASSES[view[4]], _BYTE_ORDERS[view[5]]
        packed = _header(elf_class, byte_order)
        _check_within(source, "ELF header", _IDENT_SIZE, packed.size, len(view))
        header = _Header._make(packed.unpack_from(view, _IDENT_SIZE))
        layout = Layout(elf_class, byte_order, *elf_names.naming(header.machine, view[7]))
        num_segments, num_sections, names = _resolve_numbers(source, view, layout, header)
        _check_table(
            source, "program header", header.segments, num_segments, header.segment_size, layout.segment(), len(view)
        )
        _check_table(
            source, "section header", header.sections, num_sections, header.section_size, layout.section(), len(view)
        )
    if names >= max(num_sections, 1):
        raise source.damaged(
            f"section {names:,} should hold the sections' names, but there are {num_sections:,} sections"
        )
    return ElfFile(
        source,
        layout,
        header.machine,
        header.flags,
        header.segments,
        num_segments,
        header.sections,
        num_sections,
        names,
    )


def _resolve_numbers(source: Source, view: memoryview, layout: Layout, header: _Header) -> tuple[int, int, int]:
    """Return the numbers of segments and sections and the names' section; those that did not fit are in section 0."""
    num_segments, num_sections, names = header.num_segments, header.num_sections, header.names_section
    is_extended = num_segments == _EXTENDED or names == _EXTENDED or num_sections == 0
    if not is_extended or not header.sections:
        return num_segments, num_sections, names if num_sections else 0
    dtype = layout.section()
    _check_within(source, "section header 0", header.sections, dtype.itemsize, len(view))
    zero = np.frombuffer(view, dtype, 1, header.sections)[0]
    return (
        int(zero["info"]) if num_segments == _EXTENDED else num_segments,
        int(zero["bytes"]) if num_sections == 0 else num_sections,
        int(zero["link"]) if names == _EXTENDED else names,
    )


def _check_table(
    source: Source, what: str, offset: int, count: int, entry_size: int, dtype: np.dtype[np.void], size: int
) -> None:
    if count and entry_size != dtype.itemsize:
        raise source.damaged(f"each {what} takes up {entry_size:,} bytes instead of {dtype.itemsize}")
    _check_within(source, f"{what} table", offset if count else 0, count * dtype.itemsize, size)


def _check_within(source: Source, what: str, offset: int, size: int, available: int) -> None:
    if offset + size > available:
        raise source.damaged(
            f"its {what} of {size:,} bytes at byte {offset:,} does not lie within its {available:,} bytes"
        )


@dataclass(frozen=True)
class Table:
    """Rows of one kind from several files of one layout.

    Attributes
    ----------
    files
        The files.
    counts
        How many rows each file has.
    rows
        Structured, in the byte order of this machine; the files' rows one after the other.
    """

    files: Sequence[ElfFile]
    counts: Int64s
    rows: Rows

    @cached_property
    def firsts(self) -> Int64s:
        """For each file, the position of its first row."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def file_of_row(self) -> Int64s:
        """For each row, the position of its file."""
        return np.repeat(np.arange(len(self.files)), self.counts)

    @cached_property
    def index(self) -> Int64s:
        """For each row, its index within its file."""
        return np.arange(len(self.rows)) - np.repeat(self.firsts, self.counts)

    def int64(self, column: str) -> Int64s:
        """Return a column as int64.

        Raises
        ------
        UnreadableFile
            A value is 2^63 or more, which no tile's address or size can be.
        """
        values = self.rows[column]
        if values.dtype.itemsize == 8 and len(too_large := np.flatnonzero(values > np.iinfo(np.int64).max)):
            row = too_large[0]
            source = self.files[self.file_of_row[row]].source
            raise source.damaged(
                f"entry {self.index[row]:,} of a table has the {column} {values[row]:#x}, 2^63 or more"
            )
        return values.astype(np.int64)


def read_segments(files: Sequence[ElfFile]) -> Table:
    """Read the program headers of files that have one layout."""
    extents = [(file.segments_offset, file.num_segments) for file in files]
    return _gather(files, "program header table", extents, files[0].layout.segment())


def read_sections(files: Sequence[ElfFile]) -> Table:
    """Read the section headers of files that have one layout."""
    extents = [(file.sections_offset, file.num_sections) for file in files]
    return _gather(files, "section header table", extents, files[0].layout.section())


def _gather(files: Sequence[ElfFile], what: str, extents: Sequence[tuple[int, int]], dtype: np.dtype[np.void]) -> Table:
    """Read from each file the rows at an offset, of which there are so many."""
    raw = bytearray()
    for file, (offset, count) in zip(files, extents, strict=True):
        if count:
            file.append(what, offset, count * dtype.itemsize, raw)
    rows = np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="), copy=False)
    return Table(files, np.array([count for _, count in extents], np.int64), rows)


def loaded_bytes(segments: Table) -> Int64s:
    """Return for each file what it takes up in memory: Σ ``p_memsz`` over the ``PT_LOAD`` segments.

    Raises
    ------
    UnreadableFile
        A file would take up more than any machine has.
    """
    sizes = np.where(segments.rows["type"] == elf_names.LOAD, segments.int64("memory_bytes"), 0)
    if sizes.sum(dtype=np.float64) >= 2.0**62:
        largest = segments.file_of_row[np.argmax(sizes)]
        raise segments.files[largest].source.damaged("its segments take up an impossible amount of memory")
    totals = np.concatenate(([0], np.cumsum(sizes)))
    loaded: Int64s = totals[segments.firsts + segments.counts] - totals[segments.firsts]
    return loaded


def section_names(sections: Table) -> pa.DictionaryArray:
    """Return the name of each section; all are empty in a file without a section of names."""
    tables = StringTables()
    has_names = np.array([file.names_section > 0 for file in sections.files])
    name_rows = sections.firsts + [file.names_section for file in sections.files]
    for file, has, row in zip(sections.files, has_names.tolist(), name_rows.tolist(), strict=True):
        tables.add(_string_table(file, sections.rows, row) if has else _nothing)
    offsets = np.where(has_names[sections.file_of_row], sections.int64("name"), 0)
    return tables.names(sections.file_of_row, offsets, partial(_damaged, sections.files))


def _nothing(_: bytearray) -> None:
    """Append nothing."""


def _string_table(file: ElfFile, rows: Rows, row: int) -> partial[None]:
    """Return what appends the contents of the section described in a row."""
    return partial(file.append, "string table", int(rows["offset"][row]), int(rows["bytes"][row]))


def _damaged(files: Sequence[ElfFile], which: int, problem: str) -> UnreadableFile:
    return files[which].source.damaged(problem)


class SymbolTable(NamedTuple):
    """Where a file's symbols are: the offset and number of the symbols, and two rows of the section headers."""

    offset: int
    num_symbols: int
    row: int
    names_row: int


def symbol_tables(sections: Table) -> list[SymbolTable | None]:
    """Find the symbol table (``SHT_SYMTAB``) of each file; None where it was stripped.

    Raises
    ------
    UnreadableFile
        A file has more than one, or one whose header is not possible.
    """
    found: list[SymbolTable | None] = [None] * len(sections.files)
    for row in np.flatnonzero(sections.rows["type"] == elf_names.SYMBOL_TABLE).tolist():
        which = int(sections.file_of_row[row])
        file = sections.files[which]
        offset, size, link, entry_size = (
            int(sections.rows[key][row]) for key in ("offset", "bytes", "link", "entry_bytes")
        )
        if found[which] is not None:
            # the ABI allows one; taking them all would let a small file ask for endless work
            raise file.source.damaged("it has more than one symbol table")
        if entry_size != file.layout.symbol().itemsize or size % entry_size:
            raise file.source.damaged(f"its symbol table of {size:,} bytes has symbols of {entry_size:,} bytes")
        if link >= file.num_sections:
            raise file.source.damaged(f"its symbols' names are in section {link:,}, which does not exist")
        found[which] = SymbolTable(offset, size // entry_size, row, int(sections.firsts[which]) + link)
    return found


@dataclass(frozen=True)
class Symbols(Table):
    """Symbols of several files of one layout.

    Attributes
    ----------
    names
        ``dictionary<int32, string>``, one for each row.
    section_indices
        For each row its section's index; 0xfff1 for absolute symbols, 0xfff2 for common ones, 0 for undefined ones.
    """

    names: pa.DictionaryArray
    section_indices: Int64s


def read_symbols(files: Sequence[ElfFile]) -> Symbols:
    """Read the symbols of files that have one layout; a file may have none.

    Raises
    ------
    UnreadableFile
        A file's symbol table, or one of the tables that it refers to, is damaged.
    """
    sections = read_sections(files)
    tables = symbol_tables(sections)
    strings = StringTables()
    for file, found in zip(files, tables, strict=True):
        strings.add(_string_table(file, sections.rows, found.names_row) if found else _nothing)
    extents = [(found.offset, found.num_symbols) if found else (0, 0) for found in tables]
    symbols = _gather(files, "symbol table", extents, files[0].layout.symbol())
    names = strings.names(symbols.file_of_row, symbols.int64("name"), partial(_damaged, files))
    return Symbols(files, symbols.counts, symbols.rows, names, _section_indices(symbols, sections, tables))


def _section_indices(symbols: Table, sections: Table, tables: Sequence[SymbolTable | None]) -> Int64s:
    """Return the symbols' section indices; those that do not fit 16 bits stand in a table of their own."""
    indices = symbols.int64("section")
    extended = indices == _EXTENDED
    for which in np.unique(symbols.file_of_row[extended]).tolist():
        found = tables[which]
        assert found is not None
        wide = _wide_section_indices(sections, which, found)
        of_file = slice(symbols.firsts[which], symbols.firsts[which] + found.num_symbols)
        indices[of_file] = np.where(extended[of_file], wide, indices[of_file])
    return indices


def _wide_section_indices(sections: Table, which: int, symbols: SymbolTable) -> npt.NDArray[np.uint32]:
    """Return the 32-bit section index of each of a file's symbols, which matters where the 16-bit one is 0xffff."""
    file, first = sections.files[which], int(sections.firsts[which])
    own = sections.rows[first : first + file.num_sections]
    is_theirs = (own["type"] == elf_names.SYMBOL_SECTION_INDICES) & (own["link"] == symbols.row - first)
    found = own[is_theirs][:1]
    size = 4 * symbols.num_symbols
    if not len(found) or found["bytes"][0] < size:
        raise file.source.damaged("its symbols have section indices in a table that is missing or too short")
    raw = bytearray()
    file.append("table of section indices", int(found["offset"][0]), size, raw)
    return np.frombuffer(raw, _PREFIX[file.layout.byte_order] + "u4")
