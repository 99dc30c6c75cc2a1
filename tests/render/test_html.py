"""HTML fragments, read back by the parser of the standard library: names are text, never tags."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given

from pvanalyse.names import printable
from pvanalyse.render.html import render_html
from tests.render.hostile import NAMES, NUMBERS, document, offending, texts

TAGS = {"div", "h3", "p", "details", "summary", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"style", "open"}


class Reader(HTMLParser):
    """Collects texts, and refuses what a fragment of ours never has."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1], data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def check(name: str) -> None:
    # GIVEN a document full of a name; WHEN rendered and read back
    html = render_html(document(name))
    reader = Reader()
    reader.feed(html)
    reader.close()
    # THEN tags are balanced and ours, and every text stands where it was put
    assert reader.open == []
    assert offending(html) == []
    shown = printable(name)
    cells = [(kind, text) for kind, text in reader.texts if kind in ("td", "th")]
    named = [shown] if shown else []
    facts = [*named, *named, "Count", f"{NUMBERS[0]:,}", *named, f"{NUMBERS[1]} B"]
    heads = ["Name", "Cycles", *(["Other"] if shown else [])]
    rows = [text for number in NUMBERS for text in (*named, f"{number:,}", *named)]
    assert [text for _, text in cells] == [*facts, *heads, *rows]
    assert [text for kind, text in reader.texts if kind not in ("td", "th") and text] == [
        *named,
        f"Verdict: {shown}",
        f"Section {shown}",
        f"Table of {shown}",
        *named,
        f"A sentence on {shown}.",
    ]


@given(texts)
def test_names_are_text(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_hostile_names_are_text(name: str) -> None:
    check(name)
