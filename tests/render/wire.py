"""The wire format of Protocol Buffers, read by as little as it takes: fields by number become values by name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

ENTRY = {1: ("iid", int), 2: ("name", str)}
ANNOTATION = {1: ("name_iid", int), 4: ("int_value", int), 5: ("double_value", float)}
EVENT = {
    3: ("category_iids", [int]),
    4: ("debug_annotations", [ANNOTATION]),
    9: ("type", int),
    10: ("name_iid", int),
    11: ("track_uuid", int),
    30: ("counter_value", int),
}
DESCRIPTOR = {
    1: ("uuid", int),
    2: ("name", str),
    3: ("process", {1: ("pid", int), 6: ("process_name", str), 8: ("process_labels", [str])}),
    5: ("parent_uuid", int),
    8: ("counter", {3: ("unit", int)}),
    11: ("child_ordering", int),
    12: ("sibling_order_rank", int),
}
PACKET = {
    8: ("timestamp", int),
    10: ("trusted_packet_sequence_id", int),
    11: ("track_event", EVENT),
    12: (
        "interned_data",
        {1: ("event_categories", [ENTRY]), 2: ("event_names", [ENTRY]), 3: ("debug_annotation_names", [ENTRY])},
    ),
    13: ("sequence_flags", int),
    60: ("track_descriptor", DESCRIPTOR),
}
TRACE = {1: ("packet", [PACKET])}


def decode(data: bytes, message: dict[int, Any] = TRACE) -> dict[str, Any]:
    """The fields of a message by name; fails for a field that the message does not have."""
    found: dict[str, Any] = {}
    for number, value in fields(data):
        name, kind = message[number]
        if isinstance(kind, list):
            found.setdefault(name, []).append(_value(value, kind[0]))
        else:
            assert name not in found
            found[name] = _value(value, kind)
    return found


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of each field: a varint's number, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        assert key & 7 in (1, 2)
        size, at = (8, at) if key & 7 == 1 else _varint(data, at)
        assert at + size <= len(data)
        yield key >> 3, data[at : at + size]
        at += size


def _value(value: int | bytes, kind: Any) -> Any:
    if kind is int:
        assert isinstance(value, int)
        return value - (1 << 64) if value >> 63 else value
    assert isinstance(value, bytes)
    if kind is str:
        return value.decode("utf-8")
    return struct.unpack("<d", value)[0] if kind is float else decode(value, kind)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        assert shift <= 70
        if byte < 0x80:
            return value, at
