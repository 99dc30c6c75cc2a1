"""Standard output and files, as commands write them."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from pvanalyse.cli.whole_files import whole_file
from pvanalyse.errors import PvanalyseError
from pvanalyse.names import printable_lines

_LOOKALIKES = {"─": "-", "…": "~", "×": "x", "–": "-", "µ": "u"} | dict(zip("█▉▊▋▌▍▎▏", "####=--.", strict=True))
_ERRORS = "pvanalyse-lookalikes"


def say(sentence: str) -> None:
    """Say something to the person at the terminal, on standard error; no terminal obeys what is in it."""
    click.echo(f"pvanalyse: {printable_lines(sentence)}", err=True)


def standard_output(*, exact: bool) -> TextIO:
    """Return standard output, able to write every character.

    Parameters
    ----------
    exact
        For programs: UTF-8 whatever the locale, and line ends as they are given. Otherwise, for people: in the
        locale's encoding, and a character that it lacks becomes one alike or an escape.

    Raises
    ------
    PvanalyseError
        Standard output was closed before the program began.
    """
    out: TextIO | None = sys.stdout
    if out is None:
        raise PvanalyseError("standard output is closed")
    if hasattr(out, "reconfigure"):
        if exact:
            out.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")
        else:
            codecs.register_error(_ERRORS, _lookalikes)
            out.reconfigure(errors=_ERRORS)
    return out


def _lookalikes(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    alike = "".join(_LOOKALIKES.get(char, char) for char in error.object[error.start : error.end])
    return alike.encode("ascii", "backslashreplace").decode("ascii"), error.end


def abandon_standard_output() -> None:
    """Keep Python from complaining at its end about what could not be written."""
    with suppress(OSError, ValueError, AttributeError):  # not a file, or none
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_file(path: Path, contents: str | bytes) -> None:
    """Write a regular file whole or not at all; through a link, to where it leads; a pipe or device directly.

    Text is written as UTF-8.

    Raises
    ------
    UnreadableFile
        It cannot be written.
    """
    with whole_file(path) as target:
        target.write_bytes(contents.encode("utf-8", "backslashreplace") if isinstance(contents, str) else contents)
