"""archive.a: one executable per tile, headers only.

Each member is an ELF32 little-endian executable of a Mk2 tile. Its PT_LOAD segments cover the tile's memory from the
region's begin to its highest used address: code, other non-interleaved data, interleaved data. Only a stub of code
is in the file; the rest of the memory is NOBITS.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .machine import INTERLEAVED_BEGIN, MEMORY_BASE

_MACHINE_IPU = 248
_FLAGS_MK2 = 0x02
_STUB = bytes(range(32))
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_ALLOC_WRITE, _ALLOC_EXEC = 0x3, 0x6
_GLOBAL_FUNCTION = 0x12
_EXECUTE_READ, _READ_WRITE = 5, 6


@dataclass
class TileImage:
    """What an executable loads.

    Attributes
    ----------
    code, data
        Bytes of code, and of what follows it up to the highest used non-interleaved address.
    interleaved
        Bytes from the begin of the interleaved memory to its highest used address.
    functions
        Symbols with their sizes, from the begin of the code; empty for a stripped executable.
    """

    code: int
    data: int
    interleaved: int
    functions: list[tuple[str, int]] = field(default_factory=list)


@dataclass
class _Section:
    name: str
    type: int
    flags: int
    address: int
    size: int
    content: bytes = b""
    link: int = 0
    info: int = 0
    entry_size: int = 0


def write_archive(path: Path, images: Iterable[TileImage]) -> None:
    """Write an archive with a member per tile, named after it; numbers start at 0."""
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for tile, image in enumerate(images):
            member = _executable(image)
            file.write(_member_header(f"tile_{tile}.elf/", len(member)))
            file.write(member + b"\n" * (len(member) % 2))


def _member_header(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{size:<10}`\n".encode("ascii")


def _executable(image: TileImage) -> bytes:
    segments = list(_segments(image))
    sections = list(_sections(image))
    names = b"\0" + b"".join(section.name.encode() + b"\0" for section in sections) + b".shstrtab\0"
    sections.append(_Section(".shstrtab", _STRTAB, 0, 0, len(names), names))
    body_begin = 52 + 32 * len(segments)
    body, headers = b"", struct.pack("<10I", *[0] * 10)
    name_at = 1
    for section in sections:
        headers += struct.pack(
            "<10I",
            name_at,
            section.type,
            section.flags,
            section.address,
            body_begin + len(body),
            section.size,
            section.link,
            section.info,
            4,
            section.entry_size,
        )
        body += section.content + b"\0" * (-len(section.content) % 4)
        name_at += len(section.name) + 1
    identity = b"\x7fELF\x01\x01\x01" + b"\0" * 9
    header = identity + struct.pack(
        "<HHIIIIIHHHHHH",
        2,
        _MACHINE_IPU,
        1,
        MEMORY_BASE,
        52,
        body_begin + len(body),
        _FLAGS_MK2,
        52,
        32,
        len(segments),
        40,
        len(sections) + 1,
        len(sections),
    )
    return header + b"".join(segments) + body + headers


def _segments(image: TileImage) -> Iterator[bytes]:
    stub = min(len(_STUB), image.code)
    begin = 52 + 32 * sum(1 for size in (image.code, image.data, image.interleaved) if size)
    spans = (
        (MEMORY_BASE, stub, image.code, _EXECUTE_READ),
        (MEMORY_BASE + image.code, 0, image.data, _READ_WRITE),
        (MEMORY_BASE + INTERLEAVED_BEGIN, 0, image.interleaved, _READ_WRITE),
    )
    for address, in_file, size, flags in spans:
        if size:
            yield struct.pack("<8I", 1, begin, address, address, in_file, size, flags, 4)


def _sections(image: TileImage) -> Iterator[_Section]:
    stub = _STUB[: image.code]
    yield _Section(".text", _PROGBITS, _ALLOC_EXEC, MEMORY_BASE, len(stub), stub)
    address, index = MEMORY_BASE + len(stub), 2
    symbols, strings, sizes = b"\0" * 16, b"\0", b""
    for name, size in image.functions:
        yield _Section(f".text.{name}", _NOBITS, _ALLOC_EXEC, address, size)
        symbols += struct.pack("<IIIBBH", len(strings), address, size, _GLOBAL_FUNCTION, 0, index)
        strings += name.encode() + b"\0"
        sizes += struct.pack("<IB", address, 16 + len(name) % 8 * 8)
        address, index = address + size, index + 1
    rest = MEMORY_BASE + image.code - address
    for name, flags, begin, size in (
        (".text.rest", _ALLOC_EXEC, address, rest),
        (".bss", _ALLOC_WRITE, MEMORY_BASE + image.code, image.data),
        (".bss.interleaved", _ALLOC_WRITE, MEMORY_BASE + INTERLEAVED_BEGIN, image.interleaved),
    ):
        if size:
            yield _Section(name, _NOBITS, flags, begin, size)
            index += 1
    if image.functions:
        yield _Section(".stack_sizes", _PROGBITS, 0, 0, len(sizes), sizes)
        yield _Section(".symtab", _SYMTAB, 0, 0, len(symbols), symbols, index + 2, 1, 16)
        yield _Section(".strtab", _STRTAB, 0, 0, len(strings), strings)
