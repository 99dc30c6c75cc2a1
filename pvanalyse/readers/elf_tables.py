"""Segments, sections and symbols of many ELF files at once.

The tables are gathered from many files and read as one array, so that the cost per row is that of a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers import elf_names
from pvanalyse.readers.elf import EXTENDED, ElfFile
from pvanalyse.readers.string_tables import Int64s, StringTables

Rows = npt.NDArray[Any]  # structured


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
    extended = indices == EXTENDED
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
    return np.frombuffer(raw, file.layout.word())
