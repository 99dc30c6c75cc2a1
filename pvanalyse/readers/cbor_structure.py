"""The structure of CBOR (RFC 8949 section 3): headers, and where a data item ends, without decoding it.

Used where the decoder is of no help: to skip what is not wanted, and to say at which byte a file stops making sense.
Lengths and counts are checked against the data that is left before anything relies on them.
"""

from __future__ import annotations

import mmap

MAX_DEPTH = 100
"""Containers and tags within one another; real files have about ten."""

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
"""Major types of data items."""
KINDS = ("an integer", "an integer", "a byte string", "a text string", "an array", "a map", "a tag", "a simple value")
"""What the major types are called in messages."""

# States of a container of indefinite length; one of definite length has the number of items still to come
_ENDLESS, _AT_KEY, _AT_VALUE = -1, -2, -3
_STATE_AFTER = {_ENDLESS: _ENDLESS, _AT_KEY: _AT_VALUE, _AT_VALUE: _AT_KEY}


class Malformed(Exception):
    """The bytes are not well-formed CBOR.

    Attributes
    ----------
    offset
        Where, in bytes from the start of the buffer.
    problem
        What is wrong there.
    """

    def __init__(self, offset: int, problem: str) -> None:
        self.offset = offset
        self.problem = problem
        super().__init__(f"{problem} at byte {offset:,}")


def read_header(data: bytes | mmap.mmap, offset: int) -> tuple[int, int | None, int]:
    """Read the header of one data item (RFC 8949 section 3).

    Returns
    -------
    major, argument, end
        The major type; the value, length or count, None for an indefinite length (for major type 7: the break
        code); and the offset after the header.

    Raises
    ------
    Malformed
        The data ends, the header is of a reserved form, or its kind cannot have an indefinite length.
    """
    if offset >= len(data):
        raise Malformed(len(data), "the file ends where a data item should begin")
    major, low = data[offset] >> 5, data[offset] & 31
    if low < 24:
        return major, low, offset + 1
    if low == 31:
        if major in (UNSIGNED, NEGATIVE, TAG):
            raise Malformed(offset, f"{KINDS[major]} of indefinite length")
        return major, None, offset + 1
    if low > 27:
        raise Malformed(offset, f"a reserved header (0x{data[offset]:02x})")
    end = offset + 1 + (1 << (low - 24))
    if end > len(data):
        raise Malformed(len(data), "the file ends within a header")
    argument = int.from_bytes(data[offset + 1 : end], "big")
    if major == SIMPLE and low == 24 and argument < 32:
        raise Malformed(offset, "a simple value in two bytes that needs one")
    return major, argument, end


def _check_fits(claim: int, offset: int, end: int, size: int, major: int) -> None:
    if claim > size - end:
        what = "bytes" if major in (BYTES, TEXT) else "items"
        problem = f"{KINDS[major]} of {claim:,} {what}, but the file has {size - end:,} bytes left"
        raise Malformed(offset, problem)


def _end_of_string(data: bytes | mmap.mmap, offset: int, major: int, length: int | None, end: int) -> int:
    """Return the offset after a string; an indefinite one consists of definite chunks of its own kind."""
    if length is not None:
        _check_fits(length, offset, end, len(data), major)
        return end + length
    while True:
        chunk_major, chunk_length, chunk_end = read_header(data, end)
        if chunk_major == SIMPLE and chunk_length is None:
            return chunk_end
        if chunk_major != major or chunk_length is None:
            raise Malformed(end, f"{KINDS[chunk_major]} as a part of {KINDS[major]}")
        _check_fits(chunk_length, end, chunk_end, len(data), major)
        end = chunk_end + chunk_length


def _items_to_come(data: bytes | mmap.mmap, offset: int, major: int, argument: int | None, end: int) -> int:
    """Return how many items a header makes follow within its own: a number, or one of the states of "endless"."""
    if argument is None:
        return _AT_KEY if major == MAP else _ENDLESS
    if major == TAG:
        return 1
    count = argument * {ARRAY: 1, MAP: 2}.get(major, 0)
    _check_fits(count, offset, end, len(data), major)
    return count


def _close_endless(state: int, offset: int) -> None:
    """Check that a break code may stand at an offset, where the innermost container is in a state."""
    if state >= 0:
        raise Malformed(offset, "a break code outside a container of indefinite length")
    if state == _AT_VALUE:
        raise Malformed(offset, "a map that ends after a key")


def skip_item(data: bytes | mmap.mmap, offset: int) -> int:
    """Return the offset after the data item that starts at `offset`, without decoding it.

    Raises
    ------
    Malformed
        The item is not well-formed, ends after the data, or is nested more than :data:`MAX_DEPTH` deep.
    """
    open_containers: list[int] = []  # for each the items still to come, or a state of an endless one
    while True:
        start = offset
        major, argument, offset = read_header(data, start)
        if major == SIMPLE and argument is None:
            _close_endless(open_containers.pop() if open_containers else 0, start)
        elif major in (BYTES, TEXT):
            offset = _end_of_string(data, start, major, argument, offset)
        elif to_come := _items_to_come(data, start, major, argument, offset):
            if len(open_containers) == MAX_DEPTH:
                raise Malformed(start, f"data nested more than {MAX_DEPTH} deep")
            open_containers.append(to_come)
            continue
        # An item is complete, and with it may be the containers around it
        while open_containers:
            state = open_containers[-1]
            open_containers[-1] = _STATE_AFTER.get(state, state - 1)
            if open_containers[-1] != 0:
                break
            open_containers.pop()
        if not open_containers:
            return offset
