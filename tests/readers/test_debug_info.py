"""debug.cbor against a whole decode resolved in plain Python; and damaged and hostile files."""

from __future__ import annotations

import gc
import io
import json
import math
import os
import random
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cbor2
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pvanalyse.errors import UnreadableFile, UsageError
from pvanalyse.readers import cbor_stream, debug_columns
from pvanalyse.readers.cbor_structure import Malformed, skip_item
from pvanalyse.readers.debug_info import count_contexts, describe_problems, find_cycles, read_debug_info
from pvanalyse.tables import TABLES

COLUMNS = TABLES["debug_contexts"].column_names
KNOWN = {"id", "parentId", "name", "layer", "location"}
Row = dict[str, Any]

# One file per test function serves all examples of hypothesis
several_examples = settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


# ------------------------------------------------------------------------------------------------ brute force
def plain(value: Any) -> Any:
    """What JSON holds for a decoded value."""
    if isinstance(value, cbor2.CBORTag):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {key.hex() if isinstance(key, bytes) else key: plain(content) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, cbor2.CBORSimpleValue):
        return value.value
    return None if value is cbor2.undefined else value


def untagged(value: Any) -> Any:
    return untagged(value.value) if isinstance(value, cbor2.CBORTag) else value


def number(value: Any) -> int | None:
    value = untagged(value)
    return value if type(value) is int and 0 <= value < 2**63 else None


def brute_force(data: bytes) -> list[Row]:
    document = cbor2.loads(data, str_errors="replace")
    strings = [untagged(string) for string in document.get("stringTable", [])]
    contexts = [untagged(context) for context in document["contexts"]]
    ids = {number(context.get("id")) for context in contexts}

    def text(value: Any) -> str | None:
        value = untagged(value)
        if type(value) is int and 0 <= value < len(strings):
            value = strings[value]
        return value if isinstance(value, str) else None

    def row(context: dict[Any, Any]) -> Row:
        parent = number(context.get("parentId"))
        location = untagged(context.get("location"))
        location = location if isinstance(location, Mapping) else {}
        fields = {key: value for key, value in context.items() if key not in KNOWN}
        return {
            "debug_context_id": number(context.get("id")),
            "parent_id": parent if parent and parent in ids else None,
            "name": text(context.get("name")),
            "layer": text(context.get("layer")),
            "file": text(location.get("fileName")),
            "function": text(location.get("functionName")),
            "line": number(location.get("lineNumber")),
            "fields": json.dumps(plain(fields), ensure_ascii=False, separators=(",", ":")) if fields else None,
        }

    return [row(context) for context in contexts]


# ------------------------------------------------------------------------------------------------ documents
class RawText(bytes):
    """Text that may not be UTF-8."""


class Writer:
    """Encodes as CBOR with every freedom the format leaves: widths of headers, indefinite lengths, tags."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose

    def header(self, major: int, argument: int) -> bytes:
        widths = [(bits, 2**bits) for bits in (8, 16, 32, 64)]
        forms = [bytes([major << 5 | argument])] if argument < 24 else []
        forms += [
            bytes([major << 5 | 24 + i]) + argument.to_bytes(bits // 8, "big")
            for i, (bits, limit) in enumerate(widths)
            if argument < limit
        ]
        return forms[0] if self.choose.random() < 0.7 else self.choose.choice(forms)

    def __call__(self, value: Any) -> bytes:
        tag = self.header(6, self.choose.choice((23, 4000, 2**40))) if self.choose.random() < 0.03 else b""
        return tag + self.untagged(value)

    def untagged(self, value: Any) -> bytes:
        if isinstance(value, str):
            return self.string(3, value.encode())
        if isinstance(value, bytes):
            return self.string(3 if isinstance(value, RawText) else 2, value)
        if isinstance(value, dict):
            return self.container(5, [self.key(key) + self(content) for key, content in value.items()])
        if isinstance(value, list):
            return self.container(4, list(map(self, value)))
        if type(value) is int:
            return self.header(0, value) if value >= 0 else self.header(1, -1 - value)
        return cbor2.dumps(value)

    def key(self, key: Any) -> bytes:
        return self.string(3, key.encode()) if isinstance(key, str) else self.string(2, key)

    def string(self, major: int, data: bytes) -> bytes:
        if self.choose.random() < 0.8:
            return self.header(major, len(data)) + data
        parts = [data] if major == 3 else [data[: len(data) // 2], data[len(data) // 2 :]]
        return bytes([major << 5 | 31]) + b"".join(self.header(major, len(part)) + part for part in parts) + b"\xff"

    def container(self, major: int, items: list[bytes]) -> bytes:
        if self.choose.random() < 0.7:
            return self.header(major, len(items)) + b"".join(items)
        return bytes([major << 5 | 31]) + b"".join(items) + b"\xff"


texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["\0", "stringTable", '"\\/', "é\u2028"])
raw_texts = st.binary(max_size=5).map(RawText) | st.just(RawText("\ud800".encode("utf-8", "surrogatepass")))
integers = st.integers(-(2**64), 2**64 - 1) | st.integers(-2, 6)
scalars = st.one_of(
    texts, raw_texts, integers, st.floats(), st.booleans(), st.none(), st.binary(max_size=4),
    st.just(cbor2.undefined), st.sampled_from([cbor2.CBORSimpleValue(7), cbor2.CBORSimpleValue(200)]),
)  # fmt: skip
keys = texts | texts | texts | st.binary(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
references = st.integers(0, 4) | texts | values
locations = st.fixed_dictionaries(
    {}, optional={"functionName": references, "fileName": references, "lineNumber": integers | values}
)
contexts = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(0, 6) | integers | values,
        "parentId": st.integers(0, 6) | integers | values,
        "name": references,
        "layer": st.sampled_from(["poplar", "popart"]) | references,
        "location": locations | values,
        "args": values,
        "\0": values,
        "é": values,
    },
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    write = Writer(draw(st.randoms(use_true_random=False)))
    entries = [("contexts", draw(st.lists(contexts, max_size=8)))]
    if draw(st.booleans()) or draw(st.booleans()):
        entries.append(("stringTable", draw(st.lists(texts | texts | raw_texts | values, max_size=5))))
    entries += [(f"other {key}", value) for key, value in draw(st.dictionaries(texts, values, max_size=2)).items()]
    write_top = draw(st.booleans())
    parts = []
    for key, value in draw(st.permutations(entries)):
        encoded = write.untagged(value) if write_top or key in ("contexts", "stringTable") else write(value)
        parts.append(write.key(key) + encoded)
    return draw(st.sampled_from([b"", b"\xd9\xd9\xf7"])) + write.container(5, parts)


def rows(table: pa.Table) -> list[Row]:
    table.validate(full=True)
    assert table.schema == TABLES["debug_contexts"].arrow_schema(list(table.column_names))
    found: list[Row] = table.to_pylist()
    return found


def write(path: Path, document: Any) -> Path:
    path.write_bytes(cbor2.dumps(document))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debug.cbor"


@several_examples
@given(data=documents())
def test_any_document_agrees_with_a_whole_decode(path: Path, data: bytes) -> None:
    # GIVEN a document of any form, WHEN it is read, THEN the rows are those that a whole decode gives
    path.write_bytes(data)
    expected = brute_force(data)
    assert rows(read_debug_info(path)) == expected
    assert count_contexts(path) == len(expected)


@several_examples
@given(data=documents(), columns=st.lists(st.sampled_from(COLUMNS), unique=True, min_size=1))
def test_columns_asked_for_are_those_of_the_whole(path: Path, data: bytes, columns: list[str]) -> None:
    path.write_bytes(data)
    expected = [{column: row[column] for column in columns} for row in brute_force(data)]
    assert rows(read_debug_info(path, columns)) == expected


def test_a_document_as_it_is_written(path: Path) -> None:
    # GIVEN a child before its parent, the string table at the end, and what layers record
    location = {"functionName": 2, "fileName": 3, "lineNumber": 17}
    write(path, {
        "contexts": [
            {"id": 7, "parentId": 5, "name": 0, "layer": "poplibs", "location": location, "api": "popops::map",
             "args": {"ts": [{"shape": [2, 3], "type": "half"}], "inPlace": True, "scale": 0.5}},
            {"id": 5, "parentId": 0, "name": 1, "layer": "xla_op"},
            {"id": 9, "parentId": 404, "name": 99, "layer": "poplar", "location": {"fileName": 3}},
        ],
        "stringTable": ["add/leaf", "add", "popops::map", "a.cpp"],
    })  # fmt: skip
    # WHEN it is read
    table = read_debug_info(path)
    # THEN every index is resolved, and a parent that is not there is none
    fields = '{"api":"popops::map","args":{"ts":[{"shape":[2,3],"type":"half"}],"inPlace":true,"scale":0.5}}'
    expected = [
        (7, 5, "add/leaf", "poplibs", "a.cpp", "popops::map", 17, fields),
        (5, None, "add", "xla_op", None, None, None, None),
        (9, None, None, "poplar", "a.cpp", None, None, None),
    ]
    assert rows(table) == [dict(zip(COLUMNS, values, strict=True)) for values in expected]
    # AND the dictionaries hold what is used, once
    assert table["file"].combine_chunks().dictionary.to_pylist() == ["a.cpp"]


def test_equal_strings_of_the_table_are_one_category(path: Path) -> None:
    document = {"contexts": [{"id": i, "location": {"fileName": i}} for i in range(3)], "stringTable": ["a", "b", "a"]}
    column = read_debug_info(write(path, document))["file"].combine_chunks()
    assert (column.to_pylist(), sorted(column.dictionary.to_pylist())) == (["a", "b", "a"], ["a", "b"])


def test_nothing_in_it(path: Path) -> None:
    assert rows(read_debug_info(write(path, {"stringTable": [], "contexts": []}))) == []
    assert count_contexts(path) == 0


def test_unknown_column_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="no column 'colour'"):
        read_debug_info(write(path, {"contexts": []}), ["colour"])


# ------------------------------------------------------------------------------------------------ large files
def many_contexts(count: int) -> list[Row]:
    choose = random.Random(count)
    return [
        {"id": i, "parentId": choose.randrange(1, count), "name": choose.randrange(900), "layer": "poplibs"}
        | ({} if i % 3 else {"args": {"shape": [i, i + 1], "text": "é" * choose.randrange(60), "x": [None, i / 7]}})
        for i in range(1, count + 1)
    ]


@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize("strings_first", [False, True])
def test_many_batches(path: Path, endless: bool, strings_first: bool) -> None:
    # GIVEN far more contexts and strings than are decoded at a time
    def array(items: list[Any]) -> bytes:
        return b"\x9f" + b"".join(map(cbor2.dumps, items)) + b"\xff" if endless else cbor2.dumps(items)

    parts = [
        cbor2.dumps("contexts") + array(many_contexts(9000)),
        cbor2.dumps("stringTable") + array([f"name/{i}" * 9 for i in range(900)]),
    ]
    data = b"\xa2" + b"".join(reversed(parts) if strings_first else parts)
    path.write_bytes(data)
    # WHEN they are read
    calls: list[tuple[int, int]] = []
    table = read_debug_info(path, progress=lambda done, total: calls.append((done, total)))
    # THEN none is lost, and the progress goes forward to the end
    assert rows(table) == brute_force(data)
    assert count_contexts(path) == 9000
    assert calls == sorted(calls)
    assert {total for _, total in calls} == {len(data)}
    assert (len(calls) > 10, calls[-1][0]) == (True, len(data))


def test_contexts_larger_than_a_batch_may_be(path: Path) -> None:
    # GIVEN small contexts around some of several megabytes
    large = {"id": 3, "parentId": 1, "debug_string": "x" * (5 << 20), "users": list(range(1000))}
    document = {"contexts": [*many_contexts(50), large, large, *many_contexts(50)], "stringTable": ["a"] * 900}
    # WHEN they are read; THEN all come out
    assert rows(read_debug_info(write(path, document))) == brute_force(path.read_bytes())


def test_text_that_is_not_utf8_among_much_that_is(path: Path) -> None:
    document = {"contexts": [*many_contexts(3000), {"id": 1, "text": "wrong"}, *many_contexts(3000)]}
    path.write_bytes(cbor2.dumps(document).replace(b"wrong", b"wr\xffng"))
    found = read_debug_info(path)
    assert found["fields"][3000].as_py() == '{"text":"wr\ufffdng"}'
    assert rows(found) == brute_force(path.read_bytes())


def test_names_in_several_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN chunks so small that names, and fields, need many; and a name larger than a chunk
    monkeypatch.setattr(debug_columns, "_CHUNK_BYTES", 500)
    strings = [f"name/{i}" for i in range(900)] + ["n" * 2000]
    contexts = [*many_contexts(2000), {"id": 1, "name": 900}, {"id": 2}, {"id": 1, "name": 900}]
    # WHEN they are read; THEN the chunks make up the whole
    table = read_debug_info(write(path, {"contexts": contexts, "stringTable": strings}))
    assert rows(table) == brute_force(path.read_bytes())
    assert min(table["name"].num_chunks, table["fields"].num_chunks) > 5


# ------------------------------------------------------------------------------------------------ counting
def test_count_does_not_fall_for_a_table_within_a_context(path: Path) -> None:
    # GIVEN contexts that hold the key of the string table, and the string table before them
    contexts = [{"id": 1, "stringTable": ["a"]}, {"id": 2, "x": "stringTable"}, {"id": 3, "stringTable": ["b"]}]
    for document in (
        {"stringTable": ["z"], "contexts": contexts},
        {"contexts": contexts, "stringTable": ["stringTable", "z"]},
        {"contexts": contexts, "stringTable": ["z"], "more": {"stringTable": ["z"]}},
        {"contexts": contexts, "more": {"stringTable": ["z"]}},
        {"contexts": contexts},
    ):
        assert count_contexts(write(path, document)) == 3


def test_count_refuses_damage_where_it_looks(path: Path) -> None:
    data = cbor2.dumps({"contexts": many_contexts(100), "stringTable": ["first", "second"]})
    for damaged in (
        data[:-1],
        data + b"\x01",
        data.replace(b"\x66second", b"\x67second"),
        data.replace(b"\x98\x64", b"\x98\x65", 1),
        b"\xa3" + data[1:],
        b"\xbf" + data[1:],
    ):
        assert damaged != data
        path.write_bytes(damaged)
        if damaged[11] == 0x65:
            # One context more than there are: the ends do not show it, a read does
            with pytest.raises(UnreadableFile):
                read_debug_info(path)
        else:
            with pytest.raises(UnreadableFile):
                count_contexts(path)


# ------------------------------------------------------------------------------------------------ damaged files
CONTEXTS = b"\x68contexts"
STRINGS = b"\x6bstringTable"
REFUSED: dict[str, tuple[bytes, str]] = {
    "zeros": (bytes(100), "this is zero bytes only, not a CBOR map"),
    "SQLite": (b"SQLite format 3\0" + bytes(100), "this is a SQLite database, not a CBOR map"),
    "ar": (b"!<arch>\n", "this is an ar archive, not a CBOR map"),
    "JSON": (b'{"contexts": [], "stringTable": []}', "this is JSON text, not a CBOR map"),
    "CBOR of another kind": (cbor2.dumps({"a": [1]}), "this is CBOR without 'contexts', so not a debug.cbor"),
    "no map after the tag": (b"\xd9\xd9\xf7\x80", "the file is an array instead of a map at byte 3"),
    "contexts no array": (b"\xa1" + CONTEXTS + b"\x00", "'contexts' is an integer instead of an array at byte 10"),
    "strings no array": (
        b"\xa2" + CONTEXTS + b"\x80" + STRINGS + b"\x61x",
        "'stringTable' is a text string instead of an array at byte 23",
    ),
    "context no map": (
        b"\xa1" + CONTEXTS + b"\x83\xa1\x62id\x01\x07\xa0",
        "a debug context that is not a map at byte 16",
    ),
    "contexts twice": (b"\xa2" + (CONTEXTS + b"\x80") * 2, "a second 'contexts' at byte 20"),
    "2**60 pairs": (
        b"\xbb" + struct.pack(">Q", 2**60),
        "the file claims 1,152,921,504,606,846,976 items, but the file has 0 bytes left at byte 0",
    ),
    "2**60 contexts": (
        b"\xa1" + CONTEXTS + b"\x9b" + struct.pack(">Q", 2**60),
        "'contexts' claims 1,152,921,504,606,846,976 items, but the file has 0 bytes left at byte 10",
    ),
    "2**60 bytes of key": (
        b"\xa1\x7b" + struct.pack(">Q", 2**60),
        "a text string of 1,152,921,504,606,846,976 bytes, but the file has 0 bytes left at byte 1",
    ),
    "2**60 bytes of text": (
        b"\xa1" + CONTEXTS + b"\x81\xa1\x61x\x7b" + struct.pack(">Q", 2**60),
        "a text string of 1,152,921,504,606,846,976 bytes, but the file has 0 bytes left at byte 14",
    ),
    "2**60 bytes in a chunk": (
        b"\xa1" + CONTEXTS + b"\x81\xa1\x61x\x5f\x41a\x5b" + struct.pack(">Q", 2**60),
        "a byte string of 1,152,921,504,606,846,976 bytes, but the file has 0 bytes left at byte 17",
    ),
    "2**63 items of a field": (
        b"\xa1" + CONTEXTS + b"\x81\xa1\x61x\x9b" + struct.pack(">Q", 2**63) + b"\0" * 20,
        "an array of 9,223,372,036,854,775,808 items, but the file has 20 bytes left at byte 14",
    ),
    "2**60 pairs of something else": (
        b"\xa2\x61x\xbb" + struct.pack(">Q", 2**60) + CONTEXTS + b"\x80",
        "a map of 2,305,843,009,213,693,952 items, but the file has 10 bytes left at byte 3",
    ),
    "nested contexts": (b"\xa1" + CONTEXTS + b"\x81" * 200_000 + b"\0", "data nested more than 100 deep at byte 111"),
    "nested maps": (
        b"\xa1" + CONTEXTS + b"\x81" + b"\xa1\x61x" * 200_000 + b"\0",
        "data nested more than 100 deep at byte 311",
    ),
    "nested tags": (
        b"\xa1" + CONTEXTS + b"\x81" + b"\xc6" * 200_000 + b"\xa0",
        "data nested more than 100 deep at byte 111",
    ),
    "nested in something else": (b"\xa2\x61x" + b"\x9f" * 200_000, "data nested more than 100 deep at byte 103"),
    "list that holds itself": (
        b"\xa1" + CONTEXTS + b"\xd8\x1c\x81\xd8\x1d\x00",
        "'contexts' is a tag instead of an array at byte 10",
    ),
    "ends within contexts": (
        b"\xa1" + CONTEXTS + b"\x83\xa0\xa0",
        "'contexts' claims 3 items, but the file has 2 bytes left at byte 10",
    ),
    "ends within a context": (
        b"\xa1" + CONTEXTS + b"\x82\xa0\xa1\x62a",
        "a text string of 2 bytes, but the file has 1 bytes left at byte 13",
    ),
    "ends without a break": (
        b"\xbf" + CONTEXTS + b"\x80",
        "the file ends where a data item should begin at byte 11",
    ),
    "reserved header": (b"\xa1" + CONTEXTS + b"\x82\xa0\x1c", "a reserved header (0x1c) at byte 12"),
    "break among contexts": (
        b"\xa1" + CONTEXTS + b"\x82\xa0\xff",
        "a break code outside a container of indefinite length at byte 12",
    ),
    "map that ends after a key": (
        b"\xa1" + CONTEXTS + b"\x81\xbf\x61x\xff",
        "a map that ends after a key at byte 14",
    ),
    "integer of indefinite length": (b"\xa1" + CONTEXTS + b"\x81\x1f", "an integer of indefinite length at byte 11"),
    "text with a part that is none": (
        b"\xa1" + CONTEXTS + b"\x81\xa1\x61x\x7f\x01\xff",
        "an integer as a part of a text string at byte 15",
    ),
    "two-byte simple value": (
        b"\xa1" + CONTEXTS + b"\x81\xa1\x61x\xf8\x07",
        "a simple value in two bytes that needs one at byte 14",
    ),
    "key that is an array": (b"\xa1" + CONTEXTS + b"\x81\xa1\x80\x00", "a debug context cannot be decoded"),
    "more after the end": (
        cbor2.dumps({"contexts": []}) + bytes(5000) + b"\x01",
        "there is more after the end of the data at byte 5,011",
    ),
}


@pytest.mark.parametrize(("data", "problem"), REFUSED.values(), ids=REFUSED)
def test_damage_is_named(path: Path, data: bytes, problem: str) -> None:
    # GIVEN a file that is no sound debug.cbor; WHEN it is read or counted; THEN one sentence says what and where
    path.write_bytes(data)
    for read in (read_debug_info, count_contexts):
        with pytest.raises(UnreadableFile) as error:
            read(path)
        assert str(error.value).startswith(f"{path}: {problem}")
        assert "\n" not in str(error.value)


def test_tags_are_not_followed(path: Path) -> None:
    # GIVEN references to shared values and strings, a regular expression, a decimal with a huge exponent
    fields = {
        "a": b"\xd8\x1c\x81\xd8\x1d\x00",  # an array that would hold itself
        "b": b"\xd9\x01\x00\x82\x63abc\xd8\x19\x00",  # a string reference
        "c": b"\xd8\x23\x68(a+)+(b)",
        "d": b"\xc5\x82\x1b\x0f\xff\xff\xff\xff\xff\xff\xff\x01",
        "e": b"\xc2\x42\x01\x00",
    }
    encoded = b"".join(cbor2.dumps(key) + value for key, value in fields.items())
    path.write_bytes(b"\xa1" + CONTEXTS + b"\x81\xa5" + encoded)
    # WHEN it is read; THEN the contents stand for themselves
    expected = '{"a":[0],"b":["abc",0],"c":"(a+)+(b)","d":[1152921504606846975,1],"e":"0100"}'
    assert read_debug_info(path)["fields"].to_pylist() == [expected]


def test_zeros_after_the_end_are_fine(path: Path) -> None:
    path.write_bytes(cbor2.dumps({"contexts": [{"id": 4}], "stringTable": ["a"]}) + bytes(3 << 20))
    assert read_debug_info(path, ["debug_context_id"]).to_pylist() == [{"debug_context_id": 4}]
    assert count_contexts(path) == 1


def test_context_that_is_too_large(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a limit below the size of one context
    monkeypatch.setattr(cbor_stream, "MAX_ITEM_BYTES", 5 << 20)
    data = b"\xa1" + CONTEXTS + b"\x82" + cbor2.dumps({"id": 1}) + cbor2.dumps({"x": [b"y" * 1000] * 6000})
    path.write_bytes(data)
    # WHEN it is read; THEN the context is named
    with pytest.raises(UnreadableFile, match="a debug context of more than 5 MiB at byte 16"):
        read_debug_info(path)


def test_names_that_would_take_far_more_memory_than_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debug_columns, "_NAME_BYTES", 50_000)
    document = {"contexts": [{"id": i, "name": 0} for i in range(1000)], "stringTable": ["n" * 5000]}
    with pytest.raises(UnreadableFile, match="the names of the debug contexts would take 5,000,000 bytes"):
        read_debug_info(write(path, document))
    assert read_debug_info(path, ["debug_context_id"]).num_rows == 1000


@several_examples
@given(data=documents(), cut=st.integers(1, 10**6))
def test_truncated_files_are_refused(path: Path, data: bytes, cut: int) -> None:
    path.write_bytes(data[: len(data) - 1 - cut % len(data)])
    for read in (read_debug_info, count_contexts):
        with pytest.raises(UnreadableFile):
            read(path)


@several_examples
@given(data=documents(), choose=st.randoms(use_true_random=False))
def test_flipped_bits_are_refused_or_read(path: Path, data: bytes, choose: random.Random) -> None:
    # GIVEN a document with a few bits flipped
    damaged = bytearray(data)
    for _ in range(choose.randint(1, 4)):
        damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
    path.write_bytes(damaged)
    # WHEN it is read
    try:
        table = read_debug_info(path)
    except UnreadableFile:
        return  # THEN it is refused
    # or read, and no context is lost
    document = cbor2.load(io.BytesIO(damaged), semantic_decoders=Untagged(), str_errors="replace")
    assert len(rows(table)) == count_contexts(path) == len(document["contexts"])


class Untagged(dict[int, Callable[[Any, bool], Any]]):
    def __missing__(self, tag: int) -> Callable[[Any, bool], Any]:
        return lambda value, immutable: value


@several_examples
@given(data=documents(), choose=st.randoms(use_true_random=False))
def test_skipping_ends_where_decoding_does(data: bytes, choose: random.Random) -> None:
    # GIVEN CBOR, sound or with a byte changed
    assert skip_item(data, 0) == len(data)
    damaged = bytearray(data)
    damaged[choose.randrange(len(data))] = choose.randrange(256)
    stream = io.BytesIO(damaged)
    # WHEN it is decoded and skipped
    try:
        cbor2.load(stream, semantic_decoders=Untagged(), str_errors="replace")
    except cbor2.CBORDecodeError:
        # THEN what cannot be decoded cannot be skipped either
        with pytest.raises(Malformed):
            skip_item(bytes(damaged), 0)
    else:
        # or both end at the same place
        assert skip_item(bytes(damaged), 0) == stream.tell()


# ------------------------------------------------------------------------------------------------ what is no file
def test_what_is_no_readable_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("missing", "empty", "pipe", "link", ".", "a\0b"):
        for read in (read_debug_info, count_contexts):
            with pytest.raises(UnreadableFile):
                read(tmp_path / name)
    with pytest.raises(UnreadableFile):
        read_debug_info("/dev/null")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission(path: Path) -> None:
    write(path, {"contexts": []}).chmod(0)
    with pytest.raises(UnreadableFile, match="permission"):
        read_debug_info(path)


# ------------------------------------------------------------------------------------------------ the collector
@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_left_as_it_was(path: Path, enabled: bool) -> None:
    def stop(done: int, total: int) -> None:
        assert not gc.isenabled()
        raise KeyboardInterrupt

    sound = cbor2.dumps({"contexts": many_contexts(100)})
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        # GIVEN a sound file; WHEN it is read, and read by somebody who gives up
        path.write_bytes(sound)
        read_debug_info(path)
        assert gc.isenabled() == enabled
        with pytest.raises(KeyboardInterrupt):
            read_debug_info(path, progress=stop)
        assert gc.isenabled() == enabled
        # GIVEN a damaged one; WHEN it is read or counted; THEN the collector is in every case as it was
        path.write_bytes(sound[:-3])
        for read in (read_debug_info, count_contexts):
            with pytest.raises(UnreadableFile):
                read(path)
            assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


# ------------------------------------------------------------------------------------------------ cycles
def context_table(ids: list[int | None], parents: list[int | None]) -> pa.Table:
    columns = {"debug_context_id": pa.array(ids, pa.int64()), "parent_id": pa.array(parents, pa.int64())}
    return pa.table(columns)


def brute_force_cycles(ids: list[int | None], parents: list[int | None]) -> list[list[int]]:
    parent_of: dict[int, int | None] = {}
    for number, parent in zip(ids, parents, strict=True):
        if number is not None:
            parent_of.setdefault(number, parent)
    cycles = []
    for start in sorted(parent_of):
        chain = [start]
        while (parent := parent_of.get(chain[-1])) is not None and parent not in chain:
            chain.append(parent)
        if parent == start and min(chain) == start:
            cycles.append(chain)
    return cycles


@given(st.lists(st.tuples(st.none() | st.integers(0, 12), st.none() | st.integers(0, 12)), max_size=14))
def test_cycles_agree_with_following_every_chain(pairs: list[tuple[int | None, int | None]]) -> None:
    ids, parents = [number for number, _ in pairs], [parent for _, parent in pairs]
    assert find_cycles(context_table(ids, parents)) == brute_force_cycles(ids, parents)


def test_a_long_chain_and_a_long_cycle() -> None:
    # GIVEN a chain of 70,000 contexts that ends at a root, and a cycle of 70,000 with a context leading into it
    chain = list(range(1, 70_001))
    cycle = list(range(100_000, 170_000))
    ids = [*chain, *cycle, 999_999]
    parents = [*chain[1:], None, *cycle[1:], cycle[0], cycle[7]]
    # WHEN cycles are looked for; THEN only the second is one
    assert find_cycles(context_table(ids, parents)) == [cycle]


def test_problems_are_described(path: Path) -> None:
    # GIVEN contexts of which two are each other's parents, one is its own, one has no id, and one id comes twice
    contexts = [{"id": 1, "parentId": 2}, {"id": 2, "parentId": 1}, {"id": 3, "parentId": 3}, {"parentId": 1},
                {"id": 4, "parentId": 0}, {"id": 4, "parentId": 4}]  # fmt: skip
    table = read_debug_info(write(path, {"contexts": contexts}))
    # WHEN their problems are asked for; THEN each kind has its sentence, and the table shows them as they are
    assert describe_problems(table) == [
        "1 debug contexts have no id, so nothing can refer to them",
        "1 debug contexts repeat the id of an earlier one, which is used instead",
        "the parents of 3 debug contexts form a cycle and are not followed: 1 → 2 → 1; 3 → 3",
    ]
    assert table["parent_id"].to_pylist() == [2, 1, 3, 1, None, 4]
    assert describe_problems(table.slice(4, 1)) == []


def test_a_float_that_json_does_not_have_is_null_however_it_is_encoded(tmp_path: Path) -> None:
    # GIVEN such floats beside values of both ways of encoding: the usual, and the one for keys that are not text
    contexts = [{"id": 1, "a": math.nan, "b": [math.inf, 1.5]}, {"id": 2, "c": -math.inf, b"\x01": 7}]
    path = tmp_path / "debug.cbor"
    for part in (contexts[:1], contexts):
        path.write_bytes(cbor2.dumps({"contexts": part, "stringTable": []}))

        # WHEN they are read THEN each is null
        expected = ['{"a":null,"b":[null,1.5]}', '{"c":null,"01":7}'][: len(part)]
        assert read_debug_info(path, ["fields"]).column(0).to_pylist() == expected
