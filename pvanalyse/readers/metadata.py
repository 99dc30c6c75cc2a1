"""Read framework.json and app.json: free-form JSON objects that a framework or a person put into a report.

TensorFlow writes, for example, ``{"TensorFlow": {"Version": "…", "Cluster": "…"}, "System Information": {…}}``. As a
table, the members of the outermost object are sections and those of an inner object are keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.files import regular_file
from pvanalyse.tables import table
from pvanalyse.units import format_bytes

MAX_BYTES = 64 * 1024 * 1024
"""Larger files are refused: nobody describes a run in so many words, and they would have to be held in memory."""

MAX_DEPTH = 100
"""Deeper nesting is refused, so that whoever walks the result cannot run out of stack."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class _Literal(str):
    """A number as the file spells it."""

    __slots__ = ()


class _TooDeepError(Exception):
    """An object is nested deeper than :data:`MAX_DEPTH`."""


def read_metadata(path: str | PathLike[str]) -> pa.Table:
    """Read a JSON object into the columns of the tables ``framework`` and ``app``.

    A member of the outermost object that is itself an object is a section; its members are rows, and what is nested
    deeper gets a dotted key: ``{"a": {"b": {"c": 1}}}`` is section ``a``, key ``b.c``. Other members are in section
    ``""``. A string is its own value; everything else is JSON text as compact as possible, where numbers keep the
    file's spelling (``1.10`` stays ``1.10``). An object without members is the value ``{}``.

    Returns
    -------
    pyarrow.Table
        Columns ``section``, ``key`` and ``value``, all text, in the order of the file.

    Raises
    ------
    UnreadableFile
        As for :func:`read_metadata_json`.
    """
    rows = list(_rows(_load(Path(path), number=_Literal)))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return pa.table(columns, schema=table("framework").arrow_schema())


def read_metadata_json(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a file that holds one JSON object in UTF-8, with or without a byte order mark.

    Of members with the same name the last one counts. ``NaN`` and ``Infinity``, which JSON does not know but many
    programs write, are taken as numbers. Half of a surrogate pair, which is no character, becomes U+FFFD.

    Raises
    ------
    UnreadableFile
        The file is missing, empty, not a regular file, larger than :data:`MAX_BYTES`, not UTF-8, not JSON, not an
        object, or nested deeper than :data:`MAX_DEPTH`.
    """
    return _load(Path(path), number=None)


def _load(path: Path, number: Callable[[str], object] | None) -> dict[str, Any]:
    text = _text(path)
    try:
        content = json.loads(text, parse_int=number, parse_float=number)
        cleaned = _cleaned(content, MAX_DEPTH)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UnreadableFile(path, f"is not JSON at {where}: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except ValueError:  # the interpreter refuses to convert integers of thousands of digits
        raise UnreadableFile(path, "holds an integer of too many digits") from None
    except (RecursionError, _TooDeepError):
        raise UnreadableFile(path, f"is nested more than {MAX_DEPTH} levels deep") from None
    if not isinstance(cleaned, dict):
        raise UnreadableFile(path, f"holds {_kind(cleaned)} where a JSON object is expected")
    return cleaned


def _text(path: Path) -> str:
    regular_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read ({error.strerror})") from None
    if len(content) > MAX_BYTES:
        raise UnreadableFile(path, f"is larger than the {format_bytes(MAX_BYTES)} that a file of its kind may have")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + len(content) - len(error.object)  # the codec does not count the byte order mark
        raise UnreadableFile(path, f"is not UTF-8 text: byte 0x{content[offset]:02x} at offset {offset}") from None


def _cleaned(value: object, levels: int) -> object:
    """Return a JSON value without lone surrogates, which cannot be written as UTF-8 again."""
    if isinstance(value, dict | list) and not levels:
        raise _TooDeepError
    if isinstance(value, dict):
        return {_characters(key): _cleaned(inner, levels - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner, levels - 1) for inner in value]
    if isinstance(value, str) and not isinstance(value, _Literal):
        return _characters(value)
    return value


def _characters(text: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", text)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return _compact(value)
    return "an array" if isinstance(value, list) else "a string" if type(value) is str else "a number"


def _rows(content: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for section, members in content.items():
        if isinstance(members, dict) and members:
            for key, value in _leaves(members, ""):
                yield section, key, value
        else:
            yield "", section, _value(members)


def _leaves(members: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in members.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _value(value)


def _value(value: object) -> str:
    return str(value) if isinstance(value, str) else _compact(value)


def _compact(value: object) -> str:
    """Write JSON without spaces, numbers as they were spelt."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_compact(key)}:{_compact(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_compact, value)) + "]"
    return str(value) if isinstance(value, _Literal) else json.dumps(value, ensure_ascii=False)
