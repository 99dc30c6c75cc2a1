"""ELF files and ar archives for tests, written field by field from the specifications."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

NULL, PROGBITS, SYMTAB, STRTAB, NOBITS, SYMTAB_SHNDX = 0, 1, 2, 3, 8, 18
LOAD, NOTE = 1, 4
IPU = 248
FITS_NOT = 0xFFFF  # SHN_XINDEX, PN_XNUM


class Segment(NamedTuple):
    kind: int = LOAD
    address: int = 0x4C000
    file_bytes: int = 0
    memory_bytes: int = 0
    flags: int = 5
    alignment: int = 4


class Section(NamedTuple):
    name: str
    kind: int = PROGBITS
    flags: int = 6
    address: int = 0
    data: bytes = b""
    num_bytes: int | None = None  # when it differs from the data's, as it does for NOBITS
    link: int = 0
    info: int = 0
    entry_bytes: int = 0


class Symbol(NamedTuple):
    name: str
    value: int = 0
    num_bytes: int = 0
    kind: int = 0
    binding: int = 0
    section: int = 0


@dataclass(frozen=True)
class Elf:
    """An ELF file; ``extended`` puts all numbers where those that do not fit go."""

    elf_class: int = 32
    byte_order: str = "little"
    machine: int = IPU
    flags: int = 0x02
    os_abi: int = 0
    segments: Sequence[Segment] = ()
    sections: Sequence[Section] = ()
    symbols: Sequence[Symbol] | None = None
    extended: bool = False

    def pack(self, narrow: str, wide: str, *values: int) -> bytes:
        order = "<" if self.byte_order == "little" else ">"
        return struct.pack(order + (narrow if self.elf_class == 32 else wide), *values)

    def build(self) -> bytes:
        sections = self._all_sections()
        header_size, segment_size, section_size = (52, 32, 40) if self.elf_class == 32 else (64, 56, 64)
        segments_offset = header_size if self.segments else 0
        body, offsets = bytearray(), []
        begin = header_size + segment_size * len(self.segments)
        for section in sections:
            offsets.append(begin + len(body))
            body += section.data
        sections_offset = begin + len(body) if sections else 0
        num_segments, num_sections, names_section = len(self.segments), len(sections), max(len(sections) - 1, 0)
        zero_extra = (0, 0, 0)
        if self.extended:
            zero_extra = (num_sections, names_section, num_segments)
            num_segments, num_sections, names_section = FITS_NOT, 0, FITS_NOT
        identity = bytes([0x7F, *b"ELF", self.elf_class // 32, 1 if self.byte_order == "little" else 2, 1, self.os_abi])
        header = self.pack(
            "HHIIIIIHHHHHH", "HHIQQQIHHHHHH",
            2, self.machine, 1, 0x4C000, segments_offset, sections_offset, self.flags, header_size,
            segment_size, num_segments, section_size, num_sections, names_section,
        )  # fmt: skip
        return b"".join(
            (identity.ljust(16, b"\0"), header, *(self._segment(s, begin) for s in self.segments), body,
             *self._section_headers(sections, offsets, zero_extra))
        )  # fmt: skip

    def _all_sections(self) -> list[Section]:
        if not self.sections and self.symbols is None and not self.extended:
            return []
        sections = [Section("", NULL, 0), *self.sections]
        if self.symbols is not None:
            strings, offsets = string_table(symbol.name for symbol in self.symbols)
            own = len(sections)
            is_wide = self.extended or any(
                s.section >= 0xFF00 and s.section not in (0xFFF1, 0xFFF2) for s in self.symbols
            )
            packed = b"".join(self._symbol(s, offsets[s.name], is_wide) for s in self.symbols)
            sections.append(Section(".symtab", SYMTAB, 0, data=packed, link=own + 1, info=len(self.symbols),
                                    entry_bytes=16 if self.elf_class == 32 else 24))  # fmt: skip
            sections.append(Section(".strtab", STRTAB, 0, data=strings))
            if is_wide:
                wide = b"".join(self.pack("I", "I", symbol.section) for symbol in self.symbols)
                sections.append(Section(".symtab_shndx", SYMTAB_SHNDX, 0, data=wide, link=own, entry_bytes=4))
        strings, _ = string_table([*(section.name for section in sections), ".shstrtab"])
        return [*sections, Section(".shstrtab", STRTAB, 0, data=strings)]

    def _segment(self, s: Segment, offset: int) -> bytes:
        if self.elf_class == 32:
            return self.pack(
                "8I", "", s.kind, offset, s.address, s.address, s.file_bytes, s.memory_bytes, s.flags, s.alignment
            )
        return self.pack(
            "", "IIQQQQQQ", s.kind, s.flags, offset, s.address, s.address, s.file_bytes, s.memory_bytes, s.alignment
        )

    def _section_headers(
        self, sections: Sequence[Section], offsets: Sequence[int], extra: tuple[int, int, int]
    ) -> list[bytes]:
        names = string_table(section.name for section in sections)[1] if sections else {}
        headers = []
        for index, (s, offset) in enumerate(zip(sections, offsets, strict=True)):
            size = len(s.data) if s.num_bytes is None else s.num_bytes
            size, link, info = extra if index == 0 else (size, s.link, s.info)
            packed = self.pack(
                "10I", "IIQQQQIIQQ",
                names[s.name], s.kind, s.flags, s.address, offset if index else 0, size, link, info, 1, s.entry_bytes,
            )  # fmt: skip
            headers.append(packed)
        return headers

    def _symbol(self, s: Symbol, name: int, is_wide: bool) -> bytes:
        info, section = s.binding << 4 | s.kind, FITS_NOT if is_wide else s.section
        if self.elf_class == 32:
            return self.pack("IIIBBH", "", name, s.value, s.num_bytes, info, 0, section)
        return self.pack("", "IBBHQQ", name, info, 0, section, s.value, s.num_bytes)


def string_table(names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """Lay out names as linkers do, those that end alike sharing their ends; return the table and each name's offset."""
    table, offsets = bytearray(1), {"": 0}
    for name in sorted(set(names), key=len, reverse=True):
        if name in offsets:
            continue
        found = table.find(name.encode() + b"\0")
        if found < 0:
            found = len(table)
            table += name.encode() + b"\0"
        offsets[name] = found
    return bytes(table), offsets


def ar_member(name_field: bytes, data: bytes, *, size: int | None = None) -> bytes:
    """Return one member with its header and padding; ``size`` when the header shall give another one."""
    header = name_field.ljust(16) + b"0".ljust(12) + b"0".ljust(6) * 2 + b"644".ljust(8)
    return (
        header + str(len(data) if size is None else size).encode().ljust(10) + b"`\n" + data + b"\n" * (len(data) % 2)
    )


def bsd_member(name: bytes, data: bytes) -> bytes:
    """Return a member whose name stands before its data, as BSD and macOS write it."""
    padded = name.ljust(-(-len(name) // 4) * 4, b"\0")
    return ar_member(b"#1/%d" % len(padded), padded + data)


def write_ar(path: Path, members: Iterable[bytes], magic: bytes = b"!<arch>\n") -> Path:
    """Write an archive of members that are already laid out."""
    path.write_bytes(magic + b"".join(members))
    return path


def ipu_executable(tile: int, num_functions: int = 50, num_symbols: int = 200) -> bytes:
    """Return something like a tile's executable: a section for each function, and symbols of vertices."""
    vertices = ("Reduce", "popops__BinaryOp1D", "poplin__ConvPartial1x1Out", "popops__Fill", "poplin__WgdKernel")
    functions = [
        f"__runCodelet_{vertices[(tile + i) % 5]}__{(tile * 7 + i) % 400}___half_float" for i in range(num_functions)
    ]
    text = [Section(f".text.{name}", address=0x4C000 + 64 * i, data=bytes(64)) for i, name in enumerate(functions)]
    others = [
        Section(".rodata", PROGBITS, 2, 0x50000, bytes(256)),
        Section(".data", PROGBITS, 3, 0x51000, bytes(128)),
        Section(".bss", NOBITS, 3, 0x52000, num_bytes=4096 + tile),
        Section(".stack_sizes", PROGBITS, 0x80, data=bytes(4 * num_functions)),
    ]
    symbols = [Symbol(""), *(Symbol(name, 0x4C000 + 64 * i, 64, 2, 1, i + 1) for i, name in enumerate(functions))]
    symbols += [
        Symbol(f".L{tile}_{i}", 0x50000 + i, 4, 1, 0, num_functions + 1) for i in range(num_symbols - len(symbols))
    ]
    segments = [
        Segment(LOAD, 0x4C000, 64 * num_functions, 64 * num_functions),
        Segment(LOAD, 0x50000, 384, 384 + 4096 + tile, 6),
        Segment(NOTE, 0, 0, 0, 4),
    ]
    return Elf(segments=segments, sections=[*text, *others], symbols=symbols).build()
