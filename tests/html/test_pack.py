"""What is packed comes out again: read here by a reader of its own, written from the description of the format."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.html.pack import Packer, exact
from pvanalyse.names import printable

CODES = {"u1": "B", "u2": "H", "u4": "I", "i4": "i", "f4": "f", "f8": "d"}


def unpacked(contents: bytes) -> Any:
    plain = gzip.decompress(contents)
    (size,) = struct.unpack_from("<I", plain)
    header = json.loads(plain[4 : 4 + size])
    assert (4 + size) % 8 == 0

    def array(number: int) -> list[float]:
        kind, offset, length, differences = header["arrays"][number]
        assert offset % 8 == 0
        values = list(struct.unpack_from(f"<{length}{CODES[kind]}", plain, 4 + size + offset))
        return list(np.cumsum(values, dtype=object)) if differences else values

    def resolve(value: Any) -> Any:
        if isinstance(value, list):
            return [resolve(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$" in value:
            return array(value["$"])
        if "$text" in value:
            return [header["strings"][int(at)] for at in array(value["$text"])]
        return {key: resolve(one) for key, one in value.items()}

    return resolve(header["root"])


SAFE = st.integers(-(2**53), 2**53)


@given(st.lists(st.lists(SAFE, max_size=20), max_size=6), st.lists(st.text(max_size=30), max_size=20))
def test_everything_comes_out_again(arrays: list[list[int]], names: list[str]) -> None:
    packer = Packer()
    root = {
        "arrays": [packer.whole(np.array(values, np.int64)) for values in arrays],
        "ascending": [packer.whole(np.array(sorted(values), np.int64)) for values in arrays],
        "names": packer.texts(names),
        "again": packer.texts(reversed(names)),
    }
    assert unpacked(packer.finish(root)) == {
        "arrays": arrays,
        "ascending": [sorted(values) for values in arrays],
        "names": [printable(name) for name in names],
        "again": [printable(name) for name in reversed(names)],
    }


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_reals_come_out_again(values: Sequence[float]) -> None:
    packer = Packer()
    root = {"short": packer.real(values), "exact": packer.real(np.array(values) / 3, exactly=True)}
    assert unpacked(packer.finish(root)) == {"short": list(values), "exact": [value / 3 for value in values]}


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [([0, 255], 1), ([0, 256], 2), ([65536, 0], 4), ([-1, 0], 4), ([2**32, 0], 8), ([2**40 + at for at in range(100)], 8),
     ([10 * at for at in range(100)], 1)],
)  # fmt: skip
def test_numbers_take_as_few_bytes_as_they_need(values: list[int], bytes_each: int) -> None:
    packer = Packer()
    reference = packer.whole(values)
    plain = gzip.decompress(packer.finish({"values": reference}))
    header = json.loads(plain[4 : 4 + int.from_bytes(plain[:4], "little")])
    assert int(header["arrays"][0][0][1:]) == bytes_each


def test_the_same_content_gives_the_same_bytes() -> None:
    def packed() -> bytes:
        packer = Packer()
        return packer.finish({"a": packer.whole([1, 2]), "b": packer.texts(["x", "caf\udce9"])})

    assert packed() == packed()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), (True, True), (2**53, 2**53), (2**53 + 1, "9,007,199,254,740,993"), (np.int64(7), 7), (0.5, 0.5),
     (float("nan"), None), (float("inf"), None), ("a\x00b", "a\\x00b")],
)  # fmt: skip
def test_values_are_as_json_and_javascript_can_carry_them(value: Any, expected: Any) -> None:
    assert exact(value) == expected
    assert json.loads(json.dumps(exact(value))) == expected
