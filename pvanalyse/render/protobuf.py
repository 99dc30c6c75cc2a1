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
    """Bytes of n messages.

    Attributes
    ----------
    data
        uint8[n, width].
    kept
        bool[n, width]: which of these bytes a message has; the others are nothing.
    """

    data: npt.NDArray[np.uint8]
    kept: Mask

    def __len__(self) -> int:
        return len(self.data)

    def lengths(self) -> npt.NDArray[np.int64]:
        """Return the number of bytes of each message."""
        return np.asarray(self.kept.sum(axis=1), np.int64)

    def to_bytes(self) -> bytes:
        """Return the messages one after the other."""
        return self.data[self.kept].tobytes()


def join(parts: Sequence[Rows]) -> Rows:
    """Return messages of which each has the bytes of its parts, in order."""
    return Rows(np.concatenate([part.data for part in parts], axis=1),
                np.concatenate([part.kept for part in parts], axis=1))  # fmt: skip


def merge(first: Rows, at_first: Mask, second: Rows) -> Rows:
    """Return the messages of both in one order: where ``at_first``, the next one of the first, else of the second."""
    shape = (len(at_first), max(first.data.shape[1], second.data.shape[1]))
    merged = Rows(np.zeros(shape, np.uint8), np.zeros(shape, bool))
    for rows, chosen in ((first, at_first), (second, ~at_first)):
        width = rows.data.shape[1]
        merged.data[chosen, :width] = rows.data
        merged.kept[chosen, :width] = rows.kept
    return merged


def integer_fields(number: int, values: npt.NDArray[np.int64], present: Mask | None = None) -> Rows:
    """Return a field with an integer of each row, or nothing where it is not ``present``."""
    return _present(join([_constant(len(values), encode_varint(number << 3 | _VARINT)), _varints(values)]), present)


def double_fields(number: int, values: npt.NDArray[np.float64], present: Mask | None = None) -> Rows:
    """Return a field with a double of each row, or nothing where it is not ``present``."""
    data = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(len(values), 8)
    tag = _constant(len(values), encode_varint(number << 3 | _FIXED64))
    return _present(join([tag, Rows(data, np.ones_like(data, bool))]), present)


def message_fields(number: int, parts: Sequence[Rows], present: Mask | None = None) -> Rows:
    """Return a field with a message of each row, made of its parts, or nothing where it is not ``present``."""
    body = join(parts)
    tag = _constant(len(body), encode_varint(number << 3 | _BYTES))
    return _present(join([tag, _varints(body.lengths()), body]), present)


def constant_fields(count: int, number: int, value: int | str | bytes) -> Rows:
    """Return ``count`` times the same field."""
    return _constant(count, encode_field(number, value))


def _constant(count: int, data: bytes) -> Rows:
    rows = np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))
    return Rows(rows, np.broadcast_to(np.True_, rows.shape))


def _varints(values: npt.NDArray[np.int64]) -> Rows:
    unsigned = np.ascontiguousarray(values, np.int64).view(np.uint64)
    width = max(1, -(-int(unsigned.max(initial=0)).bit_length() // 7))
    rest = unsigned[:, None] >> (7 * np.arange(width, dtype=np.uint64))
    data = (rest & np.uint64(0x7F)).astype(np.uint8)
    kept = rest != 0
    kept[:, 0] = True
    data[:, :-1] |= kept[:, 1:].astype(np.uint8) << 7  # more follows
    return Rows(data, kept)


def _present(rows: Rows, present: Mask | None) -> Rows:
    return rows if present is None else Rows(rows.data, rows.kept & present[:, None])
