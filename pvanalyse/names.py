"""Names from reports and file systems, written so that no terminal, log or page obeys what is in them."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Return a text on one line: control characters, bidirectional marks and lone surrogates become escapes."""
    if text.isprintable():
        return text
    return "".join(char if unicodedata.category(char)[0] not in "CZ" or char == " " else _escape(char) for char in text)


def printable_lines(text: str) -> str:
    """Return :func:`printable` text that keeps its line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def shorten(text: str, width: int) -> str:
    """Cut a long name in the middle, where names of programs say least."""
    if len(text) <= width or width < 5:
        return text
    tail = (width - 1) * 3 // 5
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte of a file name that is not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def marked(text: str, at: int) -> str:
    """Return a text on a line with a caret below one of its characters."""
    return f"  {printable(text)}\n  {' ' * sum(map(_columns, printable(text[:at])))}^"


def _columns(char: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
