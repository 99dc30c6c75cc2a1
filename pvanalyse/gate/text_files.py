"""Files that people write and that are read whole: budgets and baselines."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.files import regular_file

_MOST_BYTES = 64 << 20


def read_text_file(path: str | PathLike[str]) -> str:
    """Return the text of a regular file in UTF-8, its line ends as they are.

    Raises
    ------
    UnreadableFile
        There is none, it is empty, larger than such a file is, or not UTF-8.
    """
    size, _ = regular_file(Path(path))
    if size > _MOST_BYTES:
        raise UnreadableFile(path, f"has {size:,} bytes, far more than a file of this kind")
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile(path, f"is not text in UTF-8: byte {error.start} is not") from None
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read ({error.strerror or error})") from None
