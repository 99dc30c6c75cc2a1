"""The header of an ELF file of 32 or 64 bit and either byte order, and the layout of what it points to.

The format is that of the System V ABI, chapters 4 and 5 (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html),
including its extended numbering for more than 65,279 sections and 65,534 segments. Whatever the file says of its own
sizes is checked before it is believed. :mod:`pvanalyse.readers.elf_tables` reads the tables.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers import elf_names

MAGIC = b"\x7fELF"
EXTENDED = 0xFFFF  # PN_XNUM and SHN_XINDEX: the number did not fit and stands elsewhere

_CLASSES = {1: 32, 2: 64}
_BYTE_ORDERS = {1: "little", 2: "big"}
_PREFIX = {"little": "<", "big": ">"}

_HEADER = {32: "HHIIIIIHHHHHH", 64: "HHIQQQIHHHHHH"}
_IDENT_SIZE = 16

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

    def word(self) -> np.dtype[np.uint32]:
        """Return the dtype of a 32-bit number."""
        return np.dtype(_PREFIX[self.byte_order] + "u4")


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
    is_extended = num_segments == EXTENDED or names == EXTENDED or num_sections == 0
    if not is_extended or not header.sections:
        return num_segments, num_sections, names if num_sections else 0
    dtype = layout.section()
    _check_within(source, "section header 0", header.sections, dtype.itemsize, len(view))
    zero = np.frombuffer(view, dtype, 1, header.sections)[0]
    return (
        int(zero["info"]) if num_segments == EXTENDED else num_segments,
        int(zero["bytes"]) if num_sections == 0 else num_sections,
        int(zero["link"]) if names == EXTENDED else names,
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
