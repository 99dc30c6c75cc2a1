"""Frames as parts of an answer: what people see of them, what programs get, and the drawings."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.cli import main
from pvanalyse.errors import NotCaptured
from pvanalyse.render import liveness, memory
from pvanalyse.render.document import Unit, formatter
from pvanalyse.render.machine import render_csv, render_json
from pvanalyse.render.parts import Rows, Shown, bar, exact_grid, grid, listing, records, together
from tests.render.hostile import NAMES, offending

FRAME = pd.DataFrame({"name": [f"v{at}" for at in range(30)], "bytes": range(30)})
COLUMNS = (Shown("Name", "name"), Shown("Size", "bytes", Unit.BYTES), Shown("Not there", "nothing"))


# ----------------------------------------------------------------------------------------------------------- values
def test_records_are_plain_values() -> None:
    # GIVEN every kind of column that a frame may have, with holes
    frame = pd.DataFrame(
        {
            "int": np.array([1, 2]),
            "small": np.array([1, 2], np.int32),
            "nullable": pd.array([1, None], "Int64"),
            "arrow": pd.array([2**62 + 1, None], dtype=pd.ArrowDtype(pa.int64())),
            "huge": pd.Series([2**70, 1], dtype=object),
            "real": [1.5, np.nan],
            "flag": [True, False],
            "text": ["a", None],
            "category": pd.Categorical(["x", None]),
        }
    )
    # WHEN taken apart; THEN values and types are Python's, and None where there is none
    expected = [
        {"int": 1, "small": 1, "nullable": 1, "arrow": 2**62 + 1, "huge": 2**70, "real": 1.5, "flag": True,
         "text": "a", "category": "x"},
        {"int": 2, "small": 2, "nullable": None, "arrow": None, "huge": 1, "real": None, "flag": False, "text": None,
         "category": None},
    ]  # fmt: skip
    found = records(frame)
    assert found == expected
    assert [[type(value) for value in row.values()] for row in found] == [
        [type(value) for value in row.values()] for row in expected
    ]
    assert json.loads(json.dumps(found)) == expected
    assert [list(row) for row in exact_grid(frame).rows] == [list(row.values()) for row in expected]


def test_a_column_that_a_frame_lacks_is_left_out_and_a_drawing_has_no_key() -> None:
    frame = pd.DataFrame({"a": [1], "drawn": ["##"]})
    made = grid("T", frame, [Shown("A", "a", Unit.COUNT), Shown("B", "b"), Shown("", "drawn", drawing=True)])
    assert [(field.label, field.key) for field in made.fields] == [("A", "a"), ("", "")]
    assert made.rows == [(1, "##")]


# ------------------------------------------------------------------------------------------------------------- rows
@pytest.mark.parametrize(
    ("rows", "seen", "got"),
    [(Rows(), 10, 30), (Rows(3), 3, 3), (Rows(100), 30, 30), (Rows(None, 5), 5, 30), (Rows(None, None), 30, 30),
     (Rows(7, None), 7, 7)],
)  # fmt: skip
def test_how_many_rows(rows: Rows, seen: int, got: int) -> None:
    part = listing("key", "Title", FRAME, COLUMNS, rows, "nothing")
    assert [row[0] for row in part.section.grids[0].rows] == [f"v{at}" for at in range(seen)]
    assert part.data == records(FRAME)[:got]
    assert part.frame is not None
    assert records(part.frame) == part.data
    said = [f"The first {seen} of 30; --top shows more."] if seen < 30 else []
    assert list(part.section.sentences) == said


def test_nothing_is_said() -> None:
    part = listing("key", "Title", FRAME.head(0), COLUMNS, Rows(), "Nothing there.")
    assert (part.data, list(part.section.sentences), bool(part.section)) == ([], ["Nothing there."], True)


def test_parts_become_a_document() -> None:
    # GIVEN two parts, and one that was not captured
    parts = [listing(key, key, FRAME.head(size), COLUMNS, Rows(), "none") for key, size in (("a", 1), ("b", 2))]
    missing = {"out_of_memory": NotCaptured("tile_memory", "do this")}
    document = together(parts, {"report": "r", "tiles_chosen": None}, missing, ("Bad.", True), as_table=True)
    # WHEN written; THEN JSON has all by key, and CSV a row per value because there are two tables
    out = StringIO()
    render_json(document, out, formatter("binary"))
    assert json.loads(out.getvalue()) == {
        "report": "r", "tiles_chosen": None, "a": [{"name": "v0", "bytes": 0}],
        "b": [{"name": "v0", "bytes": 0}, {"name": "v1", "bytes": 1}],
        "not_captured": [{"part": "out_of_memory", "table": "tile_memory", "how": "do this"}],
    }  # fmt: skip
    assert (document.verdict, document.alarming, document.grid) == ("Bad.", True, None)
    # WHEN only one part was asked for; THEN CSV is its table
    out = StringIO(newline="")
    render_csv(together(parts[1:], {"report": "r"}, {}, as_table=True), out, formatter("binary"))
    assert out.getvalue() == "name,bytes\r\nv0,0\r\nv1,1\r\n"
    assert together(parts[1:], {"report": "r"}, {}).grid is None


# -------------------------------------------------------------------------------------------------------------- bars
@pytest.mark.parametrize(
    ("value", "drawn"),
    [(0, ""), (1, "▏"), (80, "█" * 8), (40, "█" * 4), (45, "█" * 4 + "▌"), (79, "█" * 7 + "▉"), (0.01, "▏")],
)
def test_bars(value: float, drawn: str) -> None:
    assert bar(value, 80, 8) == drawn


def test_a_bar_of_nothing() -> None:
    assert bar(0, 0, 8) == ""


@given(value=st.integers(0, 2**60), most=st.integers(1, 2**60), width=st.integers(1, 60))
def test_bars_are_to_scale(value: int, most: int, width: int) -> None:
    drawn = bar(min(value, most), most, width)
    eighths = sum(8 if char == "█" else " ▏▎▍▌▋▊▉".index(char) for char in drawn)
    exact = 8 * width * min(value, most) / most
    assert abs(eighths - exact) <= 0.5 + 1e-6 or (eighths == 1 and 0 < exact < 1)
    assert (drawn == "") == (min(value, most) == 0)
    assert len(drawn) <= width


# -------------------------------------------------------------------------------------------------------------- text
def tiles(**columns: list[int]) -> pd.DataFrame:
    size = len(columns["total_including_gaps"])
    rest = ("total_excluding_gaps", "always_live_bytes", "not_always_live_bytes", "non_interleaved_including_gaps",
            "interleaved_including_gaps", "overflowed_including_gaps", "over_bytes")  # fmt: skip
    return pd.DataFrame({"tile": range(size), **{name: [0] * size for name in rest}} | columns)


def test_totals_do_not_overflow() -> None:
    # GIVEN sizes whose sum needs more than 64 bits; WHEN added up; THEN the sum is exact
    frame = tiles(total_including_gaps=[2**62] * 4, free_bytes=[-(2**61)] * 4, over_bytes=[2**62] * 4)
    part = memory.totals(frame)
    assert part.data["total_including_gaps"] == 2**64
    assert part.data["capacity_bytes"] == 2**63
    assert part.data["over_bytes"] == 2**64
    assert part.frame is not None
    assert records(part.frame) == [part.data]


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ({"total_including_gaps": [5, 9, 9], "free_bytes": [5, 1, 1]},
         ("Fits: the fullest tile, 1, uses 9 B of 10 B (90.0 %).", False)),
        ({"total_including_gaps": [0], "free_bytes": [0]}, ("Fits: the fullest tile, 0, uses 0 B of 0 B.", False)),
        ({"total_including_gaps": [5, 3]},
         ("No tile overflows; the fullest, 0, uses 5 B (the size of a tile's memory was not captured).", False)),
        ({"total_including_gaps": [5, 12, 11], "free_bytes": [5, -2, -1], "over_bytes": [0, 2, 3]},
         ("OUT OF MEMORY: 2 of 3 tiles do not fit; tile 2 is over by 3 B.", True)),
    ],
)  # fmt: skip
def test_the_verdict_on_memory(columns: dict[str, list[int]], verdict: tuple[str, bool]) -> None:
    assert memory.verdict(tiles(**columns), "binary") == verdict


def test_the_verdict_on_a_peak() -> None:
    row = {"step": 1234, "bytes": 2048, "program_type": "OnTileExecute", "program_name": "a/b", "location": "m.py:3"}
    scope = liveness.Scope()
    assert liveness.verdict(pd.DataFrame([row]), scope, "binary") == (
        "The peak is at step 1,234: 2.00 KiB not always live, over one replica; it is in OnTileExecute a/b, from "
        "m.py:3."
    )
    bare = {**row, "program_name": "", "location": "", "with_always_live_bytes": 4096}
    assert liveness.verdict(pd.DataFrame([bare]), liveness.Scope(7), "bytes") == (
        "The peak is at step 1,234: 2,048 B not always live, 4,096 B with what is, over the 7 tiles chosen; it is in "
        "OnTileExecute (no name)."
    )
    nothing = liveness.verdict(pd.DataFrame([row]).head(0), liveness.Scope(1), "binary")
    assert nothing == "Nothing but what is always live is ever live, over the tile chosen."


def test_a_map_says_what_is_where() -> None:
    frame = pd.DataFrame(
        {
            "begin": pd.array([0, 8, 12, None], "Int64"), "end": pd.array([8, 12, 20, None], "Int64"),
            "bytes": [8, 4, 8, 6], "kind": ["allocation", "gap", "allocation", "not allocated"],
            "name": ["code", "", "v", "w"], "category": ["vertexCode", "", "variable", "variable"],
            "region": ["nonInterleaved", "", "interleaved", "overflowed"], "always_live": [True, False, False, False],
            "first_step": pd.array([None, None, 3, 5], "Int64"), "last_step": pd.array([None, None, 9, 6], "Int64"),
            "overlaps": [0, 0, 2, 0],
        }
    )  # fmt: skip
    part = memory.memory_map(4, frame, Rows())
    assert part.section.grids[0].rows == [
        (0, 8, "code", "vertexCode", "always", 0),
        (8, 4, "(gap)", "", "", 0),
        (12, 8, "v", "variable", "3-8", 2),
        (None, 6, "w", "variable", "5-5", 0),
    ]
    assert part.data == {"tile": 4, "rows": records(frame)}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("call", [["memory", "--match", "(?s)."], ["liveness"]], ids=lambda call: call[0])
def test_names_are_not_obeyed(
    capsys: pytest.CaptureFixture[str], make_profile: Callable[..., Path], name: str, call: list[str]
) -> None:
    # GIVEN a report full of one name, as far as SQLite takes it; WHEN shown; THEN no terminal obeys it
    name = name.encode("utf-8", "replace").decode()
    counts = np.array([3, 4], "<u4").tobytes()
    path = make_profile(
        {
            "target": [("Ipu", "Ipu2", 1, 1, 2, 2, 1000, 1e9, None, None, None)],
            "tile_memory": [(0, 9, 8, 9, 8, 0, 0, 0, 0, 3, 4), (1, 9, 8, 9, 8, 0, 0, 0, 0, 3, 4)],
            "vertex_types": [(0, name, 2)], "tile_vertices": [(0, 0, 5)], "compute_sets": [(0, name, None, None, None)],
            "compute_set_vertices": [(0, 0, counts)],
            "programs": [(0, name, name, None, None, None, counts, None, None)],
            "liveness_steps": [(0, 0, 4)], "always_live_variables": [(name, None, 3)],
            "variable_liveness": [(None, name, 0, 1, 4)],
        }
    )  # fmt: skip
    assert main([call[0], str(path), *call[1:]]) == 0
    out, err = capsys.readouterr()
    assert offending(out) == []
    assert err == ""
