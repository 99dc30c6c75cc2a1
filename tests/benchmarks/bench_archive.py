"""How fast archive.a is read, beside pyelftools on the same bytes: ``python tests/benchmarks/bench_archive.py``.

An archive of 1,472 executables (the tiles of one IPU) is made in a temporary directory. pyelftools cannot read ``ar``
archives, so it is given each member's bytes. The last lines are for 23,552 members, the tiles of 16 IPUs.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from pvanalyse.readers.ar import ArFile
from pvanalyse.readers.archive import Archive
from tests.readers.elf_builder import ar_member, ipu_executable, write_ar

TILES = 1472
IPUS = 16


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        members = [ipu_executable(tile) for tile in range(TILES)]
        one = write_ar(Path(directory, "one.a"), (named(tile, data) for tile, data in enumerate(members)))
        compare("header and segments", best(lambda: ours(one, "tiles", "segments")), best(lambda: headers(one), 1))
        compare(
            "+ section headers",
            best(lambda: ours(one, "tiles", "segments", "sections")),
            best(lambda: sections(one), 1),
        )
        compare("symbols", best(lambda: ours(one, "symbols")), best(lambda: symbols(one), 1))

        many = (named(tile, members[tile % TILES]) for tile in range(TILES * IPUS))
        sixteen = write_ar(Path(directory, "sixteen.a"), many)
        print(f"{TILES * IPUS:,} members, {sixteen.stat().st_size / 2**20:,.0f} MiB:")
        print(f"  open only          {best(lambda: ours(sixteen), 1):8.2f} s")
        for table in ("tiles", "segments", "sections", "symbols"):
            print(f"  open and {table:<10}{best(lambda table=table: ours(sixteen, table), 1):8.2f} s")


def named(tile: int, data: bytes) -> bytes:
    return ar_member(b"tile%d.elf/" % tile, data)


def ours(path: Path, *tables: str) -> None:
    with Archive(path) as archive:
        for table in tables:
            getattr(archive, table)()


def elf_files(path: Path) -> list[ELFFile]:
    with ArFile(path) as archive:
        return [ELFFile(io.BytesIO(member.data())) for member in archive.members]


def headers(path: Path) -> None:
    for file in elf_files(path):
        _ = file.header, [segment.header for segment in file.iter_segments()]


def sections(path: Path) -> None:
    for file in elf_files(path):
        _ = file.header, [segment.header for segment in file.iter_segments()]
        _ = [(section.name, section.header) for section in file.iter_sections()]


def symbols(path: Path) -> None:
    for file in elf_files(path):
        for section in file.iter_sections():
            if isinstance(section, SymbolTableSection):
                _ = [(symbol.name, symbol.entry) for symbol in section.iter_symbols()]


def best(action: Callable[[], None], repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def compare(what: str, ours: float, theirs: float) -> None:
    print(f"{what:<20} pvanalyse {ours:7.3f} s   pyelftools {theirs:7.3f} s   {theirs / ours:6.0f} ×")


if __name__ == "__main__":
    main()
