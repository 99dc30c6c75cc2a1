"""Names that try to be more than names, and documents full of one."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit

NAMES = {
    "terminal": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J",
    "lines": "one\ntwo\r\nthree\rfour\u2028five\x85six\x0bseven",
    "bidirectional": "user\u202egnp.exe\u2066\u2069\u200f",
    "invisible": "a\u200bb\ufeffc\xadd\x00e\x7ff",
    "surrogate": "caf\udce9 \ud800",
    "pipes": "a|b||c \\| d\\",
    "html": "<script>alert('x')</script><img src=x onerror=\"y()\">&amp;<!-- ",
    "rich_markup": "[red]not red[/red] [link=https://example.invalid]x[/link] :smile: [/]",
    "markdown": "*a* _b_ `c` ~~d~~ ![e](f) [g](h) # i\\",
    "address": "see https://example.invalid or WWW.example.invalid",
    "list": "- one",
    "numbered": "12) one",
    "heading": "# one",
    "underline": "===",
    "rule": "---",
    "code": "      indented",
    "formula": "=cmd|'/c calc'!A0",
    "table_row": "|---|---|",
    "quotes": "a \"b\", 'c'; d,e",
    "wide": "漢字" * 9 + "e\u0301\u0302 🙂",
    "long": "Gradient___bert/encoder/" * 400,
    "empty": "",
    "spaces": "   ",
}

texts = st.one_of(
    st.sampled_from(list(NAMES.values())),
    st.text(max_size=60),
    st.text(st.sampled_from("|\\`*_[]()<>#~&!-+=.:/0123456789 \t\nw@$漢\x1b\u202e"), max_size=30),
)

ROWS = 3
NUMBERS = (1_234_567_890_123, 7, 0)


def document(name: str) -> Document:
    """A document with the name in every place where a report's text can come to stand."""
    fields = [Field("Name", "name"), Field("Cycles", "cycles", Unit.CYCLES), Field("Other", "other", prose=True)]
    grid = Grid(f"Table of {name}", fields, [(name, number, name) for number in NUMBERS])
    facts = [Fact(name, name), Fact("Count", NUMBERS[0], Unit.COUNT), Fact(name, NUMBERS[1], Unit.BYTES)]
    section = Section(f"Section {name}", facts, [grid], [f"{name}", f"A sentence on {name}."])
    data = {"name": name, name: NUMBERS[0]}
    return Document(f"{name}", [section], data, verdict=f"Verdict: {name}", alarming=True)


def offending(text: str) -> list[str]:
    """Characters that a terminal or a page could obey, or that cannot be seen."""
    return [char for char in text if char not in "\n " and unicodedata.category(char)[0] in "CZ"]
