"""Markdown, judged by a parser that is not ours: tables keep their columns, and no name becomes markup."""

from __future__ import annotations

import re
from io import StringIO
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pvanalyse.names import printable
from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, formatter
from pvanalyse.render.markdown import render_markdown
from pvanalyse.units import format_bytes
from tests.render.hostile import NAMES, NUMBERS, document, offending, texts

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
BLOCKS = {"heading", "paragraph", "inline", "bullet_list", "list_item", "table", "thead", "tbody", "tr", "th", "td"}
INLINE = {"text", "text_special", "strong"}


def rendered(what: Document) -> str:
    out = StringIO()
    render_markdown(what, out, formatter("binary"))
    return out.getvalue()


def seen(name: str) -> str:
    """A name as a page shows it, where spaces run together."""
    return " ".join(printable(name).split())


def text_of(token: Token) -> str:
    return " ".join("".join(child.content for child in token.children or ()).split())


def tables(tokens: list[Token]) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for token, following in pairwise(tokens):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("th_open", "td_open"):
            found[-1][-1].append(text_of(following))
    return found


def texts_in(tokens: list[Token], opening: str) -> list[str]:
    """The texts of all headings, or of all paragraphs."""
    return [text_of(following) for token, following in pairwise(tokens) if token.type == opening]


@given(texts)
@settings(max_examples=500)
def test_names_are_inert(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_hostile_names_are_inert(name: str) -> None:
    check(name)


def check(name: str) -> None:
    # GIVEN a document full of a name; WHEN rendered, and parsed by another
    text = rendered(document(name))
    tokens = PARSER.parse(text)
    # THEN there are only the blocks that we made, with nothing in them but text and our bold verdict
    assert offending(text) == []
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= BLOCKS
    inline = [child.type for token in tokens for child in token.children or ()]
    assert {kind.removesuffix("_open").removesuffix("_close") for kind in inline} <= INLINE
    assert inline.count("strong_open") == 1
    assert [token.type for token in tokens].count("bullet_list_open") == 1
    # and every text stands where it was put
    shown = seen(name)
    facts, grid = tables(tokens)
    assert facts == [["", ""], [shown, shown], ["Count", f"{NUMBERS[0]:,}"], [shown, format_bytes(NUMBERS[1])]]
    some = any(printable(name))
    columns = [at for at in range(3) if at < 2 or some]
    rows = [[shown, f"{number:,}", shown] for number in NUMBERS]
    assert grid == [[row[at] for at in columns] for row in (["Name", "Cycles", "Other"], *rows)]
    assert texts_in(tokens, "heading_open") == [shown, seen(f"Section {name}")]
    expected = [f"Verdict: {name}", f"Table of {name}", name, f"A sentence on {name}."]
    assert texts_in(tokens, "paragraph_open") == [seen(one) for one in expected if seen(one)]


@given(texts)
def test_github_finds_no_addresses_and_no_formulas(name: str) -> None:
    # These are not of CommonMark, so the parser cannot tell: https://github.github.com/gfm/#autolinks-extension-
    text = rendered(document(name))
    assert not re.search(r"(?<!\\)://|www(?<!\\)\.|(?<!\\)\$|(?<!\\)~", text, re.IGNORECASE)


@given(st.lists(st.tuples(texts, st.integers(), texts), min_size=1, max_size=5))
def test_tables_keep_their_rows_and_columns(rows: list[tuple[str, int, str]]) -> None:
    fields = [Field("A", "a"), Field("B|C", "b", Unit.COUNT), Field("D", "d")]
    (table,) = tables(PARSER.parse(rendered(Document("t", [Section("s", grids=[Grid("", fields, rows)])], None))))
    expected = [["A", "B|C", "D"], *([seen(a), f"{b:,}", seen(c)] for a, b, c in rows)]
    if not any(row[2] for row in rows):
        expected = [row[:2] for row in expected]
    assert table == expected


def test_numbers_are_aligned_to_the_right_and_the_rest_reads_well() -> None:
    grid = Grid("Runs", [Field("Run", "run"), Field("Cycles", "cycles", Unit.CYCLES)], [("step_0", 1234)])
    what = Document(
        "my_report", [Section("Execution", [Fact("Runs", 1)], [grid], ["A note.", "Another."])], None, "Fits."
    )
    assert rendered(what) == (
        "# my\\_report\n\n**Fits.**\n\n## Execution\n\n|  |  |\n|---|---|\n| Runs | 1 |\n"
        "\nRuns\n\n| Run | Cycles |\n|---|---:|\n| step\\_0 | 1,234 |\n\n- A note.\n- Another.\n"
    )
