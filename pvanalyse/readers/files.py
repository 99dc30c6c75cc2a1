"""Look at a file before opening it, and say what it seems to be when it is not what was expected."""

from __future__ import annotations

import stat
from pathlib import Path

from pvanalyse.errors import UnreadableFile

_MAGIC = (
    (b"SQLite format 3\0", "a SQLite database"),
    (b"!<arch>\n", "an ar archive"),
    (b"!<thin>\n", "a thin ar archive"),
    (b"\x7fELF", "an ELF file"),
    (b"PK\x03\x04", "a zip file"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"PAR1", "a Parquet file"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
)
_KINDS = (
    (stat.S_ISDIR, "is a directory, not a file"),
    (stat.S_ISFIFO, "is a named pipe, not a file"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (stat.S_ISCHR, "is a character device, not a file"),
    (stat.S_ISBLK, "is a block device, not a file"),
)


def describe(head: bytes) -> str:
    """Name the kind of file that begins with ``head``, such as "a SQLite database"."""
    if not head:
        return "empty"
    if not head.strip(b"\0"):
        return "zero bytes only"
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head.lstrip()[:1] in (b"{", b"["):
        return "JSON text"
    if all(byte >= 32 or byte in b"\t\r\n\f" for byte in head):
        return "text"
    return "data of an unknown kind"


def regular_file(path: Path, head_bytes: int = 64) -> tuple[int, bytes]:
    """Return the size and the first bytes of a regular file, without ever waiting on a pipe or a device.

    Raises
    ------
    UnreadableFile
        There is no such file, it is something else than a regular file, it may not be read, or it is empty.
    """
    try:
        status = path.stat()
        for is_kind, problem in _KINDS:
            if is_kind(status.st_mode):
                raise UnreadableFile(path, problem)
        with path.open("rb") as file:
            head = file.read(head_bytes)
    except FileNotFoundError:
        problem = "the symbolic link points to nothing" if path.is_symlink() else "no such file"
        raise UnreadableFile(path, problem) from None
    except PermissionError:
        raise UnreadableFile(path, "no permission to read it") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(path, f"cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if not status.st_size:
        raise UnreadableFile(path, "the file is empty")
    return status.st_size, head
