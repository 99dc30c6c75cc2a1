"""Text for people: nothing obeyed, no number cut, columns in line."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, formatter
from pvanalyse.render.text import render_text
from tests.render.hostile import NAMES, NUMBERS, document, offending, texts

SHOWN = [f"{number:,}" for number in NUMBERS]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def rendered(what: Document, columns: str = "") -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", columns)
        out = StringIO()
        render_text(what, out, formatter("binary"))
    return out.getvalue()


@given(name=texts, columns=st.sampled_from(["", "40", "60", "300"]))
@settings(max_examples=300)
def test_no_name_is_obeyed_and_no_number_cut(name: str, columns: str) -> None:
    # GIVEN a document full of a name; WHEN rendered
    text = rendered(document(name), columns)
    # THEN nothing in it is for the terminal, and each row of the table is one line with its whole number
    assert offending(text) == []
    rule = next(at for at, line in enumerate(text.splitlines()) if set(line.strip()) == {"─"})
    rows = text.splitlines()[rule + 1 : rule + 1 + len(NUMBERS)]
    for row, number in zip(rows, SHOWN, strict=True):
        assert re.search(rf"(^|\s){number}(\s|$)", row), row


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("columns", ["", "40", "70"])
def test_columns_are_in_line(name: str, columns: str) -> None:
    # GIVEN rows of names of different lengths
    fields = [Field("Name", "name"), Field("Cycles", "cycles", Unit.CYCLES)]
    names = ["short", name, "x" * 33, "字" * 40]
    grid = Grid("", fields, [(one, 10**at) for at, one in enumerate(names)])
    # WHEN rendered
    lines = rendered(Document("t", [Section("s", grids=[grid])], None), columns).splitlines()
    # THEN every number ends in the same column of the terminal, under its heading, as wide as the rule
    rows = lines[lines.index("s") + 1 :]
    assert {cell_len(line) for line in rows} == {cell_len(rows[1])}
    assert [line.split()[-1] for line in rows[2:]] == ["1", "10", "100", "1,000"]
    assert set(rows[1].strip()) == {"─"}


def test_width_is_that_of_the_pipe_or_of_columns() -> None:
    words = Document("t", [Section("s", sentences=["word " * 100])], None)
    widths = {columns: max(map(len, rendered(words, columns).splitlines())) for columns in ("", "60", "200")}
    assert {columns: width for columns, width in widths.items() if width > int(columns or 120)} == {}
    assert widths["60"] < widths[""] < widths["200"]


@pytest.mark.parametrize("columns", ["", "wide", "0", "-5", "1", "1e3", "²", " ", "9" * 30, "9" * 5000])
def test_odd_columns_do_no_harm(columns: str) -> None:
    assert "1,234,567,890,123" in rendered(document("name"), columns)


def test_words_that_are_longer_than_a_line_stay_whole() -> None:
    path = "/" + "/".join(["directory"] * 40)
    facts = Section("s", [Fact("Debug info", path)], sentences=[f"It is in {path} now."])
    text = rendered(Document(path, [facts], None), "40")
    assert text.count(path) == 3


def test_long_labels_have_their_values_below_them() -> None:
    facts = [Fact("Tiles", 12, Unit.COUNT), Fact("Not always live (each tile's own peak)", 2048, Unit.BYTES)]
    text = rendered(Document("t", [Section("s", facts)], None), "40")
    assert text.splitlines()[1:] == [
        "",
        "s",
        "  Tiles  12",
        "  Not always live (each tile's own peak)",
        "         2.00 KiB",
    ]


def test_only_what_says_something_is_shown() -> None:
    fields = [Field("Name", "name"), Field("Note", "note"), Field("Size", "bytes", Unit.BYTES)]
    grid = Grid("", fields, [("a", "", 0), ("b", None, None)])
    what = Document(
        "t", [Section("empty"), Section("rowless", grids=[Grid("x", fields, [])]), Section("s", grids=[grid])], 0
    )
    assert rendered(what).splitlines() == ["t", "", "s", "  Name   Size", "  ───────────", "  a       0 B", "  b"]


def test_names_lose_their_middle_and_prose_its_end() -> None:
    fields = [Field("Name", "name"), Field("Note", "note", prose=True)]
    grid = Grid("", fields, [("Gradient___layer_0/attention/MatMul", "variable 94.9 %, vertexCode 2.4 %")])
    row = rendered(Document("t", [Section("s", grids=[grid])], None), "50").splitlines()[-1]
    assert row == "  Gradient_…ention/MatMul   variable 94.9 %, vert…"


@pytest.mark.parametrize(
    ("environment", "escapes"),
    [
        ({"TERM": "xterm"}, {"\x1b[1m", "\x1b[1;31m", "\x1b[1;36m", "\x1b[3m", "\x1b[0m"}),
        ({"TERM": "xterm", "NO_COLOR": "1"}, {"\x1b[1m", "\x1b[3m", "\x1b[0m"}),
        ({"TERM": "dumb"}, set()),
    ],
    ids=["terminal", "no colour", "dumb"],
)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_terminal_gets_our_colours_only(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], escapes: set[str], name: str
) -> None:
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in {**environment, "COLUMNS": "100"}.items():
        monkeypatch.setenv(variable, value)
    # GIVEN a terminal; WHEN a document full of a name is rendered
    out = Terminal()
    render_text(document(name), out, formatter("binary"))
    # THEN no escape sequences but those of our styles are in it, and the rest is what a pipe gets
    assert set(re.findall(r"\x1b\[[\d;]*m", out.getvalue())) <= escapes
    plain = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == rendered(document(name), "100").splitlines()


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"])
def test_what_is_no_terminal_gets_no_colours(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    assert "\x1b" not in rendered(document("name"))
