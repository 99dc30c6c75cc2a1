"""Limits as people write them: all that is meant is read, and all else is refused with the mistake marked."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pvanalyse.analysis.metrics import CATALOGUE
from pvanalyse.analysis.rules import DEFAULT, Increase, Limit, Rule, Sense
from pvanalyse.errors import UsageError
from pvanalyse.gate.limits import (
    parse_increase,
    parse_limit,
    parse_metric_limit,
    read_increases,
    read_limits,
    unknown_name,
)

LIMITS = {
    "memory.tile_max_including_gaps<=600KiB": ("memory.tile_max_including_gaps", "<=", 614_400, "bytes"),
    "  memory.gaps  <  1.5 MB  ": ("memory.gaps", "<", 1_500_000, "bytes"),
    "memory.gaps<=614,400": ("memory.gaps", "<=", 614_400, ""),
    "memory.gaps<=0": ("memory.gaps", "<=", 0, ""),
    "execution.tile_balance>=0.7": ("execution.tile_balance", ">=", 0.7, ""),
    "execution.tile_balance > 70 %": ("execution.tile_balance", ">", 0.7, "fraction"),
    "memory.tiles_out_of_memory==0": ("memory.tiles_out_of_memory", "==", 0, ""),
    "execution.seconds<1.5ms": ("execution.seconds", "<", 0.0015, "s"),
    "memory.category.*<=10MiB": ("memory.category.*", "<=", 10 << 20, "bytes"),
    "memory.category.my stack ≤ 1": ("memory.category.my stack", "<=", 1, ""),
}
INCREASES = {
    "2%": (DEFAULT, 0, Fraction(1, 50), ""),
    " 0.5 % ": (DEFAULT, 0, Fraction(1, 200), ""),
    "64KiB": (DEFAULT, 65_536, None, "bytes"),
    "0": (DEFAULT, 0, None, ""),
    "memory.category.*=64KiB": ("memory.category.*", 65_536, None, "bytes"),
    "execution.cycles = 1,000": ("execution.cycles", 1000, None, ""),
    "liveness.peak=150%": ("liveness.peak", 0, Fraction(3, 2), ""),
}
WRONG_LIMITS = {
    "": ("", "begins with the name"),
    "   ": ("", "begins with the name"),
    "<=600KiB": ("^", "begins with the name"),
    "memory.tile_maxx<=600KiB": ("^", "no metric 'memory.tile_maxx'; the nearest: memory.tile_max_"),
    "memory.gaps": ("           ^", "comes one of <=, <, >=, > and =="),
    "memory.gaps =< 3": ("            ^", "'=<' is none of"),
    "memory.gaps=3": ("           ^", "'=' is none of"),
    "memory.gaps!=3": ("           ^", "'!=' is none of"),
    "memory.gaps<=": ("             ^", "a number"),
    "memory.gaps<=-3": ("             ^", "a number"),
    "memory.gaps<=lots": ("             ^", "a number"),
    "memory.gaps<=1,0 MiB": ("             ^", "'1,0' is not a number"),
    "memory.gaps<=600 XB": ("                 ^", "'XB' is no unit"),
    "memory.gaps<=1e3": ("              ^", "'e3' is no unit"),
    "memory.gaps<=70%": ("               ^", "memory.gaps is in bytes"),
    "execution.cycles<=3KiB": ("                   ^", "execution.cycles is in cycles"),
    "memory.tile_balance>=1ms": ("                      ^", "a share of one"),
    "漢字<=3": ("^", "no metric '漢字'"),
    "memory.category.漢<=x": ("                    ^", "a number"),
}
WRONG_INCREASES = {
    "": ("", "a share or a size"),
    "%": ("^", "a number"),
    "=2%": ("^", "before '='"),
    "memory.gap=2%": ("^", "no metric 'memory.gap'; the nearest: memory.gaps"),
    "memory.gaps=": ("            ^", "a share or a size"),
    "memory.gaps<=2%": ("           ^", "written with '='"),
    "memory.gaps=-2%": ("            ^", "'-2' is not a number"),
    "two": ("^", "a number"),
    "5ms": ("^", "the increase of all metrics"),
}


@pytest.mark.parametrize("text", LIMITS)
def test_limits_are_read(text: str) -> None:
    pattern, sense, value, unit = LIMITS[text]
    found = parse_limit(text)
    assert found == Limit(pattern, Sense(sense), value, unit)
    assert (type(found.value), found.written, found.where) == (type(value), text, "--limit")


@pytest.mark.parametrize("text", INCREASES)
def test_increases_are_read(text: str) -> None:
    assert parse_increase(text) == Increase(*INCREASES[text])


def refusal(text: str, *, limit: bool) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse_limit(text) if limit else parse_increase(text)
    return str(caught.value).split("\n")


@pytest.mark.parametrize("text", WRONG_LIMITS)
def test_what_is_no_limit_is_marked(text: str) -> None:
    caret, problem = WRONG_LIMITS[text]
    sentence, shown, mark = refusal(text, limit=True)
    assert sentence.startswith("--limit: ")
    assert problem in sentence
    assert (shown, mark) == (f"  {text}", f"  {caret.rstrip('^')}^")


@pytest.mark.parametrize("text", WRONG_INCREASES)
def test_what_is_no_increase_is_marked(text: str) -> None:
    caret, problem = WRONG_INCREASES[text]
    sentence, shown, mark = refusal(text, limit=False)
    assert problem in sentence
    assert (shown, mark) == (f"  {text}", f"  {caret.rstrip('^')}^")


@given(st.one_of(st.text(max_size=40), st.text("memory.gaps<=> 0123456789KiB%,*", max_size=30)), st.booleans())
@example("memory.gaps<=\x1b[31m", True)
@example("memory.gaps<=1\n::error::x", True)
@example("memory.gaps<=" + "9" * 5000, True)
def test_any_text_is_read_or_refused_in_three_lines(text: str, limit: bool) -> None:
    # GIVEN any text; WHEN parsed; THEN it is a rule, or an error whose caret is below the text or just behind it
    try:
        parse_limit(text) if limit else parse_increase(text)
    except UsageError as error:
        sentence, shown, mark = str(error).split("\n")
        assert sentence.startswith("--limit: " if limit else "--max-increase: ")
        assert all(line.isprintable() for line in (shown, mark))
        assert mark.strip() == "^"
        assert 2 <= mark.index("^") <= 2 + 2 * len(shown)


names = st.sampled_from([spec.name for spec in CATALOGUE if "<" not in spec.name and spec.unit == "bytes"])


@given(names, st.sampled_from(list(Sense)), st.integers(0, 10**18), st.sampled_from(["", " ", "  "]))
def test_what_is_written_is_read(name: str, sense: Sense, value: int, space: str) -> None:
    for unit, factor in (("", 1), ("B", 1), ("KiB", 1024), ("kB", 1000), ("GiB", 1024**3)):
        found = parse_limit(f"{name}{space}{sense}{space}{value}{space}{unit}")
        assert (found.pattern, found.sense, found.value) == (name, sense, value * factor)
    assert parse_limit(f"{name}{sense}{value:,}").value == value


def test_a_limit_without_a_comparison_is_one_from_above() -> None:
    assert parse_metric_limit("memory.gaps", "1 KiB", "here") == Limit("memory.gaps", Sense.AT_MOST, 1024, "bytes")
    assert parse_metric_limit("memory.gaps", ">= 1 KiB", "here") == Limit("memory.gaps", Sense.AT_LEAST, 1024, "bytes")
    with pytest.raises(UsageError, match="here: more of execution.tile_balance is better"):
        parse_metric_limit("execution.tile_balance", "0.7", "here")


def test_all_ways_to_give_rules() -> None:
    limit, increase = parse_limit("memory.gaps<=1024"), parse_increase("memory.gaps=1%")
    ways = [
        limit,
        "memory.gaps<=1024",
        [limit],
        ["memory.gaps<=1024"],
        {"memory.gaps": 1024},
        {"memory.gaps": "<= 1024"},
    ]
    assert [read_limits(way) for way in ways] == [(limit,)] * len(ways)
    grown = [increase, "memory.gaps=1%", [increase], ["memory.gaps=1%"], {"memory.gaps": "1%"}]
    assert [read_increases(way) for way in grown] == [(increase,)] * len(grown)
    assert read_increases({"default": "1%"}) == (parse_increase("1%"),)
    assert (read_limits(()), read_increases(None)) == ((), ())
    with pytest.raises(UsageError, match="memory.gap'; the nearest: memory.gaps"):
        read_limits({"memory.gap": 1})


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (
            parse_limit("memory.category.stak<=1"),
            "no metric 'memory.category.stak' .*; the nearest: memory.category.stack",
        ),
        (parse_limit("mem*gops<=1"), r"'mem\*gops' matches no metric at all"),
        (parse_limit("memory.*<=1s"), "matches no metric that such a limit could be for"),
        (parse_increase("memory.category.stak=1%"), "nearest: memory.category.stack"),
    ],
)
def test_rules_for_nothing_are_told_the_nearest(rule: Rule, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        raise unknown_name(rule, ["memory.category.stack", "memory.gaps"])
