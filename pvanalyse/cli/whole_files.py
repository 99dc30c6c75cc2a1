"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pvanalyse.errors import UnreadableFile


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that becomes the file at ``path`` when the block ends without an error.

    Through a link, it is where the link leads; where a pipe or device is, it is that one itself.

    Raises
    ------
    UnreadableFile
        It cannot be written.
    """
    place = Path(os.path.realpath(path))
    direct = is_special(place)
    target = place if direct else place.with_name(f".pvanalyse-{os.getpid()}.part")
    try:
        if not direct:
            target.unlink(missing_ok=True)
        yield target
        if not direct:
            target.replace(place)
    except OSError as error:
        raise UnreadableFile(path, f"cannot be written ({error.strerror or error})") from None
    finally:
        if not direct:
            with suppress(OSError):
                target.unlink(missing_ok=True)


def is_special(path: Path) -> bool:
    """Tell whether a pipe, device or the like is at a path, which is written to as it is."""
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113  (they raise no errors)
