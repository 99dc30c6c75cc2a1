"""Messages written in columns, read back one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.render.protobuf import (
    constant_fields,
    double_fields,
    encode_field,
    encode_varint,
    integer_fields,
    join,
    merged,
    message_fields,
)
from tests.render.wire import decode

INT64 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(INT64, st.floats(allow_nan=False), st.booleans(), st.booleans()), max_size=20)
INNER = {1: ("integer", int), 2: ("double", float), 3: ("text", str)}
MESSAGE = {7: ("message", [{**INNER, 300: ("inner", INNER)}])}


@given(ROWS)
def test_columns_are_messages(rows: list[tuple[int, float, bool, bool]]) -> None:
    # GIVEN fields of which some are there in some messages; WHEN written at once
    integers, doubles, first, second = (
        np.array([row[at] for row in rows], kind) for at, kind in enumerate((np.int64, float, bool, bool))
    )
    inner = [integer_fields(1, integers, first), double_fields(2, doubles, second), constant_fields(len(rows), 3, "é")]
    data = message_fields(7, [*inner, message_fields(300, inner, second)]).to_bytes()
    # THEN each reads as it would alone
    wanted = []
    for integer, double, has_integer, has_double in rows:
        one = {**({"integer": integer} if has_integer else {}), **({"double": double} if has_double else {}),
               "text": "é"}  # fmt: skip
        wanted.append({**one, **({"inner": one} if has_double else {})})
    assert decode(data, MESSAGE).get("message", []) == wanted


@given(st.lists(st.tuples(st.booleans(), INT64), max_size=20))
def test_two_kinds_of_messages_in_one_order(rows: list[tuple[bool, int]]) -> None:
    def messages(which: bool, *more: str) -> object:
        values = np.array([value for kind, value in rows if kind is which], np.int64)
        return message_fields(7, [integer_fields(1, values), *(constant_fields(len(values), 3, one) for one in more)])

    at_first = np.array([kind for kind, _ in rows], bool)
    data = merged(messages(True, "first"), at_first, messages(False))  # type: ignore[arg-type]
    wanted = [{"integer": value, **({"text": "first"} if kind else {})} for kind, value in rows]
    assert decode(data, MESSAGE).get("message", []) == wanted


@given(INT64)
def test_a_column_of_one_is_a_message(value: int) -> None:
    single = encode_field(7, encode_field(1, value) + encode_field(3, "é"))
    columns = [integer_fields(1, np.array([value])), constant_fields(1, 3, "é")]
    assert message_fields(7, columns).to_bytes() == single
    assert join(columns).lengths.tolist() == [len(single) - 2]
    assert decode(single, MESSAGE) == {"message": [{"integer": value, "text": "é"}]}


def test_the_examples_of_the_specification() -> None:
    assert encode_varint(150) == b"\x96\x01"
    assert encode_field(1, 150) == b"\x08\x96\x01"
    assert encode_field(2, "testing") == b"\x12\x07testing"
    assert encode_varint(-2) == b"\xfe" + b"\xff" * 8 + b"\x01"
