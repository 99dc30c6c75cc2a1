"""``archive.a``: the executables of the tiles, as tables.

The archive is a Unix ``ar`` archive of ELF files, one for each tile. How its members are named is not published, see
:func:`tile_numbers`. Members that are not ELF files are left out and can be listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from pvanalyse.errors import UsageError
from pvanalyse.readers import elf_names, elf_tables
from pvanalyse.readers.ar import ArFile
from pvanalyse.readers.elf import ElfFile, Layout, read_header
from pvanalyse.readers.string_tables import Int64s, category, encoded
from pvanalyse.tables import TABLES

# As much of the members is looked at at a time; all that is copied of a member is smaller than the member.
_BATCH_BYTES = 64 * 2**20
_MOST_DIGITS = 18  # of a number that surely fits int64


class Executable(NamedTuple):
    """One ELF member.

    Attributes
    ----------
    tile
        The tile that it belongs to.
    name, size
        Of the member.
    elf
        Its header.
    """

    tile: int
    name: str
    size: int
    elf: ElfFile


class Archive:
    """The executables in an ``archive.a``, open for reading.

    Parameters
    ----------
    path
        The archive.
    members_below
        For a thin archive, the directory in which the files of its members must lie; by default the archive's own.

    Attributes
    ----------
    executables : list of Executable
        The ELF members, in the order of the archive.
    other_members : list of str
        Names of the members that are not ELF files.

    Raises
    ------
    UnreadableFile
        The file cannot be read, is not an ``ar`` archive, or it or the header of one of its executables is damaged.
        The tables raise it too, for damage that lies deeper.
    """

    def __init__(self, path: str | PathLike[str], *, members_below: str | PathLike[str] | None = None) -> None:
        self._file = ArFile(path, members_below=members_below)
        headers = [read_header(member) for member in self._file.members]
        found = [(m, h) for m, h in zip(self._file.members, headers, strict=True) if h is not None]
        tiles = tile_numbers([member.name for member, _ in found])
        self.executables = [Executable(tile, m.name, m.size, h) for tile, (m, h) in zip(tiles, found, strict=True)]
        self.other_members = [m.name for m, h in zip(self._file.members, headers, strict=True) if h is None]

    def close(self) -> None:
        """Let go of the file; tables that were read stay valid."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def count(self, name: str) -> int:
        """Return the number of rows of a table by its name, without reading more than headers."""
        match name:
            case "archive_tiles":
                return len(self.executables)
            case "archive_segments":
                return sum(executable.elf.num_segments for executable in self.executables)
            case "archive_sections":
                return sum(executable.elf.num_sections for executable in self.executables)
            case "archive_symbols":
                return sum(_count_symbols(self.executables, positions) for positions in _batches(self.executables))
        raise UsageError(f"an archive has no table '{name}'")

    def tiles(self) -> pa.Table:
        """Return table ``archive_tiles``: one row for each ELF member, in the order of the archive."""
        return _table("archive_tiles", self.executables, _read_tiles)

    def segments(self) -> pa.Table:
        """Return table ``archive_segments``: the program headers of all tiles."""
        return _table("archive_segments", self.executables, _read_segments)

    def sections(self) -> pa.Table:
        """Return table ``archive_sections``: the section headers of all tiles, section 0 included."""
        return _table("archive_sections", self.executables, _read_sections)

    def symbols(self, tiles: Iterable[int] | None = None) -> pa.Table:
        """Return table ``archive_symbols``: all entries of the symbol tables, as ``readelf -s`` lists them.

        Parameters
        ----------
        tiles
            Tiles whose symbols are wanted, in any order; by default, all. The rows are in the archive's order.

        Raises
        ------
        UsageError
            The archive has no such tile.
        """
        if tiles is None:
            return _table("archive_symbols", self.executables, _read_symbols)
        wanted = set(tiles)
        missing = wanted.difference(executable.tile for executable in self.executables)
        if missing:
            raise UsageError(f"the archive has no tile {min(missing)}; it has {len(self.executables):,} tiles")
        chosen = [executable for executable in self.executables if executable.tile in wanted]
        return _table("archive_symbols", chosen, _read_symbols)


def tile_numbers(names: Sequence[str]) -> list[int]:
    """Return the tile of each executable by the names of the members.

    It is the last number in the name when every name has one and they are all different, otherwise the order of the
    members. (How the members are named is not published.)
    """
    numbers = [re.findall("[0-9]+", name)[-1:] for name in names]
    tiles = [int(digits) for found in numbers for digits in found if len(digits.lstrip("0")) <= _MOST_DIGITS]
    return tiles if len(set(tiles)) == len(names) else list(range(len(names)))


# Of a batch: for each row, the position of its executable in the batch; and the columns in the schema's order.
Rows = tuple[Int64s, list[Int64s | list[str] | pa.Array]]


def _table(name: str, executables: Sequence[Executable], read: Callable[[Sequence[Executable]], Rows]) -> pa.Table:
    """Read a table batch by batch, and put the rows into the order of the executables."""
    schema = TABLES[name].arrow_schema()
    parts, orders = [], []
    for positions in _batches(executables):
        owners, columns = read([executables[position] for position in positions])
        parts.append(pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema))
        orders.append(positions[owners])
    if not parts:
        return schema.empty_table()
    table = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    order = np.concatenate(orders)
    return table if np.all(order[:-1] <= order[1:]) else table.take(np.argsort(order, kind="stable"))


def _batches(executables: Sequence[Executable]) -> Iterator[Int64s]:
    """Yield the positions of executables of one layout that may be looked at together."""
    by_layout: dict[Layout, list[int]] = {}
    for position, executable in enumerate(executables):
        by_layout.setdefault(executable.elf.layout, []).append(position)
    for positions in by_layout.values():
        numbers = np.cumsum([executables[position].size for position in positions]) // _BATCH_BYTES
        yield from np.split(np.array(positions, np.int64), np.flatnonzero(np.diff(numbers)) + 1)


def _read_tiles(batch: Sequence[Executable]) -> Rows:
    files = [executable.elf for executable in batch]
    layout = files[0].layout
    machines = np.array([file.machine for file in files], np.int64)
    flags = np.array([file.flags for file in files], np.int64)
    columns = [
        _tiles_of(batch),
        [executable.name for executable in batch],
        category(machines << 32 | flags, lambda both: elf_names.architecture(both >> 32, both & 0xFFFFFFFF)),
        np.full(len(batch), layout.elf_class),
        encoded(np.zeros(len(batch), np.int32), [layout.byte_order]),
        machines,
        flags,
        np.array([file.num_segments for file in files], np.int64),
        np.array([file.num_sections for file in files], np.int64),
        np.array([executable.size for executable in batch], np.int64),
        elf_tables.loaded_bytes(elf_tables.read_segments(files)),
    ]
    return np.arange(len(batch)), columns


def _read_segments(batch: Sequence[Executable]) -> Rows:
    segments = elf_tables.read_segments([executable.elf for executable in batch])
    columns = [
        _tiles_of(batch)[segments.file_of_row],
        segments.index,
        category(segments.rows["type"], elf_names.segment_type),
        segments.int64("address"),
        segments.int64("file_bytes"),
        segments.int64("memory_bytes"),
        category(segments.rows["flags"], elf_names.segment_flags),
        segments.int64("alignment"),
    ]
    return segments.file_of_row, columns


def _read_sections(batch: Sequence[Executable]) -> Rows:
    layout = batch[0].elf.layout
    sections = elf_tables.read_sections([executable.elf for executable in batch])
    columns = [
        _tiles_of(batch)[sections.file_of_row],
        sections.index,
        elf_tables.section_names(sections),
        category(sections.rows["type"], partial(elf_names.section_type, machine=layout.machine)),
        sections.int64("address"),
        sections.int64("bytes"),
        category(
            sections.rows["flags"],
            partial(elf_names.section_flags, machine=layout.machine, os_abi=layout.os_abi),
        ),
    ]
    return sections.file_of_row, columns


def _read_symbols(batch: Sequence[Executable]) -> Rows:
    os_abi = batch[0].elf.layout.os_abi
    symbols = elf_tables.read_symbols([executable.elf for executable in batch])
    info = symbols.rows["info"]
    columns = [
        _tiles_of(batch)[symbols.file_of_row],
        symbols.names,
        symbols.int64("value"),
        symbols.int64("bytes"),
        category(info & 0xF, partial(elf_names.symbol_type, os_abi=os_abi)),
        category(info >> 4, partial(elf_names.symbol_binding, os_abi=os_abi)),
        symbols.section_indices,
    ]
    return symbols.file_of_row, columns


def _count_symbols(executables: Sequence[Executable], positions: Int64s) -> int:
    sections = elf_tables.read_sections([executables[position].elf for position in positions])
    return sum(found.num_symbols for found in elf_tables.symbol_tables(sections) if found)


def _tiles_of(batch: Sequence[Executable]) -> Int64s:
    return np.array([executable.tile for executable in batch], np.int64)
