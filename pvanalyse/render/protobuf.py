"""Protocol Buffers, written: single messages from plain values, and many alike ones at once from numpy columns.

The wire format is that of https://protobuf.dev/programming-guides/encoding/. Writing a message per row in Python takes
microseconds a field; here the bytes of a field are a matrix with a row per message, of which a mask says what counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_MASK = (1 << 64) - 1

Mask = npt.NDArray[np.bool_]


# ---------------------------------------------------------------------------------------------------- a single message
def encode_varint(value: int) -> bytes:
    """Return an integer of 64 bits as a varint; a negative one as its two's complement."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_field(number: int, value: int | str | bytes) -> bytes:
    """Return one field: an integer as a varint, a text or a message (``bytes``) with its length.

    A half of a surrogate pair, which UTF-8 lacks, is written as an escape.
    """
    if isinstance(value, int):
        return encode_varint(number << 3 | _VARINT) + encode_varint(value)
    data = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(data)) + data


# ----------------------------------------------------------------------------------------------------- many of a kind
@dataclass(frozen=True, slots=True)
class Rows:
    """Bytes of n messages, as columns that nothing copies until they are written.

    Attributes
    ----------
    columns
        Of which a message has some bytes one after the other: pairs of uint8[n, width] and bool[n, width], which tells
        which of these bytes a message has; the others are nothing.
    lengths
        int64[n]: how many bytes that are, for :func:`message_fields` without counting.
    """

    columns: tuple[tuple[npt.NDArray[np.uint8], Mask], ...]
    lengths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def flat(self) -> npt.NDArray[np.uint8]:
        """Return the messages one after the other."""
        data, kept = (np.concatenate(matrices, axis=1) for matrices in zip(*self.columns, strict=True))
        return np.asarray(data[kept])

    def to_bytes(self) -> bytes:
        """Return the messages one after the other."""
        return self.flat().tobytes()


def join(parts: Sequence[Rows]) -> Rows:
    """Return messages of which each has the bytes of its parts, in order."""
    columns = tuple(column for part in parts for column in part.columns)
    return Rows(columns, np.sum([part.lengths for part in parts], axis=0))


def merged(first: Rows, at_first: Mask, second: Rows) -> bytes:
    """Return the messages of both in one order: where ``at_first``, the next one of the first, else of the second."""
    lengths = np.empty(len(at_first), np.int64)
    lengths[at_first], lengths[~at_first] = first.lengths, second.lengths
    of_first = np.repeat(at_first, lengths)
    data = np.empty(len(of_first), np.uint8)
    data[of_first], data[~of_first] = first.flat(), second.flat()
    return data.tobytes()


def integer_fields(number: int, values: npt.NDArray[np.int64], present: Mask | None = None) -> Rows:
    """Return a field with an integer of each row, or nothing where it is not ``present``."""
    return _present(join([_constant(len(values), encode_varint(number << 3 | _VARINT)), _varints(values)]), present)


def double_fields(number: int, values: npt.NDArray[np.float64], present: Mask | None = None) -> Rows:
    """Return a field with a double of each row, or nothing where it is not ``present``."""
    data = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(len(values), 8)
    tag = _constant(len(values), encode_varint(number << 3 | _FIXED64))
    return _present(join([tag, Rows(((data, np.ones_like(data, bool)),), np.full(len(data), 8))]), present)


def message_fields(number: int, parts: Sequence[Rows], present: Mask | None = None) -> Rows:
    """Return a field with a message of each row, made of its parts, or nothing where it is not ``present``."""
    body = join(parts)
    tag = _constant(len(body), encode_varint(number << 3 | _BYTES))
    return _present(join([tag, _varints(body.lengths), body]), present)


def constant_fields(count: int, number: int, value: int | str | bytes) -> Rows:
    """Return ``count`` times the same field."""
    return _constant(count, encode_field(number, value))


def _constant(count: int, data: bytes) -> Rows:
    rows = np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))
    return Rows(((rows, np.broadcast_to(np.True_, rows.shape)),), np.broadcast_to(np.int64(len(data)), count))


def _varints(values: npt.NDArray[np.int64]) -> Rows:
    unsigned = np.ascontiguousarray(values, np.int64).view(np.uint64)
    width = max(1, -(-int(unsigned.max(initial=0)).bit_length() // 7))
    rest = unsigned[:, None] >> (7 * np.arange(width, dtype=np.uint64))
    data = (rest & np.uint64(0x7F)).astype(np.uint8)
    kept = rest != 0
    kept[:, 0] = True
    data[:, :-1] |= kept[:, 1:].astype(np.uint8) << 7  # more follows
    return Rows(((data, kept),), kept.sum(axis=1))


def _present(rows: Rows, present: Mask | None) -> Rows:
    if present is None:
        return rows
    there = present[:, None]
    return Rows(tuple((data, kept & there) for data, kept in rows.columns), rows.lengths * present)
