"""Members of a Unix ``ar`` archive, found over a memory map and never copied.

Understood are the GNU (System V) and BSD ways of writing long names, symbol tables of both, and GNU thin archives.
The format has no standard; it is described in ``ar(5)`` of the BSDs and in ``include/ar.h`` and ``bfd/archive.c`` of
GNU binutils.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.files import describe, regular_file

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"

# ar_name[16] ar_date[12] ar_uid[6] ar_gid[6] ar_mode[8] ar_size[10] ar_fmag[2]; all text, padded with spaces
_HEADER = struct.Struct("16s32x10s2s")
_HEADER_END = b"`\n"
_LONGEST_NAME = 4096  # PATH_MAX; bounds the search for the end of a name, whatever a damaged table holds

_SYMBOL_TABLES = frozenset(
    (b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF/", b"__.SYMDEF SORTED", b"__.SYMDEF_64", b"__.SYMDEF_64 SORTED")
)
_NAME_TABLE = b"//"


@dataclass(frozen=True, slots=True)
class Member:
    r"""One member of an archive; its bytes are only looked at through :meth:`data`.

    Attributes
    ----------
    name
        As ``ar t`` shows it; bytes that are not UTF-8 appear as ``\xff``.
    size
        Bytes of the member's own data.
    header_offset
        Where its header begins in the archive.
    data_offset
        Where its data begin in the archive; of no meaning when the data lie in a file outside.
    outside
        In a thin archive, the path of that file as the archive spells it.
    """

    name: str
    size: int
    header_offset: int
    data_offset: int
    outside: bytes | None
    _archive: ArFile = field(repr=False, compare=False)

    def data(self) -> memoryview:
        """Return a view of the member's bytes; use it in a ``with`` statement, which releases it.

        Raises
        ------
        UnreadableFile
            The member of a thin archive is missing, is not a regular file, has another size than the archive says,
            or lies outside the directory that members may lie in.
        """
        return self._archive.data(self)

    def damaged(self, problem: str) -> UnreadableFile:
        """Return the error which says that something is wrong in this member."""
        return UnreadableFile(self._archive.path, f"member {self.name!r} at byte {self.header_offset:,}: {problem}")


class ArFile:
    """An ``ar`` archive, open for reading.

    Parameters
    ----------
    path
        The archive; a regular file, which must not be truncated while it is open.
    members_below
        Directory in which the files of a thin archive must lie, symbolic links resolved; by default, the archive's
        own. An archive may name any path, so one that came from somewhere else could point at files of this machine.

    Attributes
    ----------
    members : list of Member
        In the order of the archive, without symbol and name tables.
    is_thin : bool
        Whether the members' data lie in files of their own.

    Raises
    ------
    UnreadableFile
        The file cannot be read, is no archive (the text says what it seems to be), or is damaged.
    """

    def __init__(self, path: str | PathLike[str], *, members_below: str | PathLike[str] | None = None) -> None:
        self.path = Path(path)
        self._members_below = self.path.parent if members_below is None else Path(members_below)
        self._view = _map_file(self.path)
        magic = bytes(self._view[: len(MAGIC)])
        if magic not in (MAGIC, THIN_MAGIC):
            raise UnreadableFile(self.path, f"is not an ar archive but {_resemblance(bytes(self._view[:64]))}")
        self.is_thin = magic == THIN_MAGIC
        self.members = list(self._walk())

    def close(self) -> None:
        """Let go of the file; members can no longer be read."""
        self._view.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def data(self, member: Member) -> memoryview:
        """Return the bytes of a member of this archive, see :meth:`Member.data`."""
        if member.outside is None:
            return self._view[member.data_offset : member.data_offset + member.size]
        path = self._path_outside(member)
        if not member.size:
            return memoryview(b"")
        try:
            view = _map_file(path)
        except UnreadableFile as error:
            raise member.damaged(f"its file '{path}': {error.problem}") from error
        if len(view) != member.size:
            raise member.damaged(
                f"its file '{path}' has {len(view):,} bytes where the archive says {member.size:,}; "
                "it was changed after the archive was written"
            )
        return view

    def _path_outside(self, member: Member) -> Path:
        """Return the resolved path of a thin archive's member, if it is one that may be opened."""
        spelled = self.path.parent / os.fsdecode(member.outside or b"")
        try:
            path, root = spelled.resolve(), self._members_below.resolve()
        except (OSError, RuntimeError) as error:  # a loop of symbolic links, a name that is too long
            raise member.damaged(f"its file cannot be found: {error}") from error
        if not path.is_relative_to(root):
            raise member.damaged(
                f"its file '{path}' is not below '{root}', where the members of a thin archive must be"
            )
        return path

    def _walk(self) -> Iterator[Member]:
        """Yield the members; follow the headers from one to the next to the end of the file."""
        view, position, long_names = self._view, len(MAGIC), b""
        while position < len(view):
            raw_name, size = self._header(position)
            data = position + _HEADER.size
            is_table = raw_name in _SYMBOL_TABLES or raw_name == _NAME_TABLE
            is_outside = self.is_thin and not is_table
            end = data if is_outside else data + size
            if end > len(view):
                raise self._damaged(
                    position, f"a member of {size:,} bytes runs past the end of the file ({len(view):,})"
                )
            if raw_name == _NAME_TABLE:
                long_names = bytes(view[data:end])
            elif not is_table:
                name, prefix = self._name(position, raw_name, size, long_names)
                if name not in _SYMBOL_TABLES:
                    text = name.decode("utf-8", "backslashreplace")
                    yield Member(text, size - prefix, position, data + prefix, name if is_outside else None, self)
            position = end + (end & 1)  # the last member may lack its padding

    def _header(self, position: int) -> tuple[bytes, int]:
        """Return the name field without its padding, and the size of the data that follow."""
        if len(self._view) - position < _HEADER.size:
            left = len(self._view) - position
            raise self._damaged(position, f"{left:,} bytes are left where a member's header needs {_HEADER.size}")
        name, digits, end = _HEADER.unpack_from(self._view, position)
        digits = digits.rstrip(b" ")
        if end != _HEADER_END or not digits.isdigit():
            raise self._damaged(position, "there is no member's header where one must be")
        return name.rstrip(b" "), int(digits)

    def _name(self, position: int, raw: bytes, size: int, long_names: bytes) -> tuple[bytes, int]:
        """Return a member's whole name, and how many bytes of its data the name takes up (BSD)."""
        if raw.startswith(b"#1/"):
            return self._bsd_name(position, raw[3:], size)
        if raw.startswith(b"/"):
            # GNU ar leaves a slash at the end of the field when a thin archive's name has 15 characters
            return self._long_name(position, raw[1:].partition(b" ")[0], long_names), 0
        # a GNU name ends with a slash, so that it may hold spaces; a BSD name ends where its padding begins
        return raw.partition(b"\0")[0].partition(b"/")[0], 0

    def _bsd_name(self, position: int, digits: bytes, size: int) -> tuple[bytes, int]:
        if not digits.isdigit() or (length := int(digits)) > min(size, _LONGEST_NAME) or self.is_thin:
            raise self._damaged(position, f"the length of a member's name is not possible: {digits!r}")
        begin = position + _HEADER.size
        return bytes(self._view[begin : begin + length]).rstrip(b"\0"), length

    def _long_name(self, position: int, digits: bytes, long_names: bytes) -> bytes:
        """Return the name at an offset of the name table, where it ends with a slash and a newline, or with a NUL."""
        offset, colon, _ = digits.partition(b":")
        if colon and self.is_thin:
            raise self._damaged(position, "a thin archive within a thin archive is not supported")
        if not offset.isdigit() or colon or int(offset) >= len(long_names):
            raise self._damaged(
                position, f"a member's name refers to byte {offset!r} of a name table of {len(long_names):,} bytes"
            )
        begin = int(offset)
        window = long_names[begin : begin + _LONGEST_NAME]
        name = window.partition(b"\n")[0].partition(b"\0")[0]
        if len(name) == _LONGEST_NAME:
            raise self._damaged(position, f"a member's name is longer than {_LONGEST_NAME:,} bytes")
        return name.removesuffix(b"/")

    def _damaged(self, position: int, problem: str) -> UnreadableFile:
        return UnreadableFile(self.path, f"at byte {position:,}: {problem}")


def _map_file(path: Path) -> memoryview:
    """Map a regular file that is not empty, read-only."""
    regular_file(path)
    try:
        with path.open("rb") as file:
            # the map is kept alive by the views of it, and unmapped when the last of them is released
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise UnreadableFile(path, f"cannot be mapped into memory ({error})") from error


def _resemblance(head: bytes) -> str:
    """Say what a file that is no archive seems to be."""
    if MAGIC.startswith(head) or THIN_MAGIC.startswith(head):
        return f"one cut off after {len(head)} bytes"
    return describe(head)
