"""Names written so that nothing obeys what is in them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.names import printable, printable_lines, shorten
from tests.render.hostile import NAMES, offending, texts


@given(texts)
def test_nothing_to_obey_is_left(name: str) -> None:
    written = printable(name)
    assert offending(written) == []
    assert "\n" not in written
    written.encode()


@given(st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" ")))
def test_ordinary_names_are_left_as_they_are(name: str) -> None:
    assert printable(name) == name


@given(st.text(st.characters(exclude_characters="\\'", exclude_categories=["Cs"])))
def test_an_escape_says_which_character_it_was(name: str) -> None:
    # GIVEN a name without a backslash; WHEN what is written is read as Python would read it; THEN it is the name
    assert ast.literal_eval(f"'{printable(name)}'") == name


def test_bytes_of_file_names_that_are_not_utf_8_are_shown() -> None:
    assert printable("caf\udce9") == "caf\\xe9"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_lines_are_kept_where_they_are_wanted(name: str) -> None:
    written = printable_lines(name)
    assert written.split("\n") == [printable(line) for line in name.split("\n")]


@given(name=st.text(max_size=60), width=st.integers(5, 80))
def test_shortened_names_keep_both_ends(name: str, width: int) -> None:
    written = shorten(name, width)
    if len(name) <= width:
        assert written == name
    else:
        head, _, tail = written.partition("…") if "…" not in name else (written[:1], "…", written[-1:])
        assert len(written) == width
        assert name.startswith(head)
        assert name.endswith(tail)
