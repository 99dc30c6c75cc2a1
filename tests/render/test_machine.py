"""JSON and CSV: what goes in is what a reader gets back, to the last digit."""

from __future__ import annotations

import csv
import json
import math
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, Value, formatter
from pvanalyse.render.machine import render_csv, render_json
from tests.render.hostile import NAMES, document, texts

numbers = st.one_of(st.integers(-(2**80), 2**80), st.floats())
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
trees = st.recursive(leaves, lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4))


def rendered_json(data: Any) -> str:
    out = StringIO()
    render_json(Document("t", [], data), out, formatter("binary"))
    return out.getvalue()


def rendered_csv(what: Document) -> list[list[str]]:
    out = StringIO(newline="")
    render_csv(what, out, formatter("binary"))
    out.seek(0)
    return list(csv.reader(out, strict=True))


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def finite(data: Any) -> Any:
    """What JSON can say: it has no infinity and no NaN."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


@given(trees)
def test_json_is_valid_and_exact(data: Any) -> None:
    # GIVEN any values; WHEN written and read back; THEN they are the same, whole numbers whole
    text = rendered_json(data)
    text.encode()
    back = json.loads(text, parse_constant=refuse)
    assert back == finite(data)
    assert repr(back) == repr(finite(data))  # 1 is not 1.0 and not True, -0.0 is not 0.0


def test_json_shows_names_as_they_are() -> None:
    assert rendered_json({"größe µ": 1}) == '{\n  "größe µ": 1\n}\n'


def test_a_name_that_is_not_utf_8_is_escaped_in_json() -> None:
    assert rendered_json({"caf\udce9": 1}) == '{\n  "caf\\udce9": 1\n}\n'


def cell(value: Value) -> str:
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()


rows_of_three = st.lists(st.tuples(texts, st.none() | numbers, texts | st.booleans() | st.none()), max_size=6)


@given(rows_of_three)
def test_csv_of_a_table_is_exact(rows: list[tuple[str, Any, Any]]) -> None:
    # GIVEN a document that is a table; WHEN written and read back
    fields = [Field("Name", "name"), Field("Size", "bytes", Unit.BYTES), Field("Else", "else")]
    back = rendered_csv(Document("t", [], None, grid=Grid("", fields, rows)))
    # THEN each cell is what it was: "=cmd()" too, and numbers neither rounded nor abbreviated
    assert back == [["name", "bytes", "else"], *([cell(value) for value in row] for row in rows)]


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_csv_has_a_row_for_every_value(name: str) -> None:
    # GIVEN a document of several tables, full of a name; WHEN written and read back
    back = rendered_csv(document(name))
    # THEN every value has one row that says what it is and is of
    n = cell(name)
    section = f"Section {n}"
    assert back == [
        ["section", "by", "item", "field", "value", "unit"],
        [section, "", n, "", n, ""],
        [section, "", "Count", "", "1234567890123", "count"],
        [section, "", n, "", "7", "bytes"],
        [section, "name", n, "cycles", "1234567890123", "cycles"],
        [section, "name", n, "other", n, ""],
        [section, "name", n, "cycles", "7", "cycles"],
        [section, "name", n, "other", n, ""],
        [section, "name", n, "cycles", "0", "cycles"],
        [section, "name", n, "other", n, ""],
        [section, "", "", "", n, ""],
        [section, "", "", "", f"A sentence on {n}.", ""],
    ]


def test_what_is_for_people_only_is_not_in_csv() -> None:
    fields = [Field("Tile", "tile", Unit.COUNT), Field("Filled by", ""), Field("Size", "bytes", Unit.BYTES)]
    section = Section("Memory", [Fact("Fits", True)], [Grid("Fullest", fields, [(8, "variable 69.4 %", 318464)])])
    assert rendered_csv(Document("t", [section], None))[1:] == [
        ["Memory", "", "Fits", "", "True", ""],
        ["Memory", "tile", "8", "bytes", "318464", "bytes"],
    ]
