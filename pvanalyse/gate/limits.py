"""Limits as people write them: ``memory.tile_max_including_gaps<=600KiB``, ``2%``, ``memory.category.*=64KiB``.

What cannot be read is a :class:`UsageError` with a caret under the mistake and, where a name is mistaken, the nearest
ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction

from pvanalyse.analysis.metrics import CATALOGUE, Number, metric_spec
from pvanalyse.analysis.rules import DEFAULT, AnyRule, Better, Increase, Limit, Rule, Sense, better, is_glob
from pvanalyse.errors import UsageError
from pvanalyse.names import marked, printable
from pvanalyse.units import parse_bytes

_COMPARISON = re.compile(r"[<>=!≤≥~]+")
_SIGNS = {"≤": "<=", "≥": ">="} | {sense.value: sense.value for sense in Sense}
_PLAIN = re.compile(r"(\d{1,3}(?:,\d{3}){1,9}|\d{1,30})(\.\d{1,30})?", re.ASCII)
_NUMBER = re.compile(r"(?P<number>[\d,]+(?:\.\d*)?|\.\d+)\s*(?P<unit>\S*)", re.ASCII)
_SECONDS = {"s": 1, "ms": 1000, "us": 1_000_000, "µs": 1_000_000, "μs": 1_000_000, "ns": 1_000_000_000}
_IS = {"count": "a count", "bytes": "in bytes", "cycles": "in cycles", "s": "in seconds", "Hz": "in hertz",
       "bytes/s": "in bytes per second", "fraction": "a share of one"}  # fmt: skip
_MANY = 5


Amount = str | int | float
LimitsLike = str | Limit | Iterable[str | Limit] | Mapping[str, Amount]
"""``"memory.gaps<=1MiB"``, several of these, or ``{"memory.gaps": "1 MiB"}``."""

IncreasesLike = str | Increase | Iterable[str | Increase] | Mapping[str, Amount]
"""``"2%"``, ``"memory.category.*=64KiB"``, several of these, or ``{"default": "2%", "memory.category.*": 65536}``."""


def read_limits(given: LimitsLike) -> tuple[Limit, ...]:
    """Return limits that were given in any of their ways.

    Raises
    ------
    UsageError
        One cannot be read.
    """
    if isinstance(given, Mapping):
        return tuple(_of_metric(name, parse_metric_limit, text, "limit") for name, text in given.items())
    if isinstance(given, (str, Limit)):
        given = [given]
    return tuple(one if isinstance(one, Limit) else parse_limit(one) for one in given)


def read_increases(given: IncreasesLike | None) -> tuple[Increase, ...]:
    """Return increases that were given in any of their ways; in a mapping, ``default`` is for all.

    Raises
    ------
    UsageError
        One cannot be read.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return tuple(_of_metric(name, parse_metric_increase, text, "increase") for name, text in given.items())
    if isinstance(given, (str, Increase)):
        given = [given]
    return tuple(one if isinstance(one, Increase) else parse_increase(one) for one in given)


def _of_metric(name: str, parse: Callable[[str, str, str], AnyRule], text: Amount, kind: str) -> AnyRule:
    if name == "default" and kind == "increase":
        return parse(DEFAULT, str(text), "the default increase")
    check_name(name)
    return parse(name, str(text), f"the {kind} of {name}")


def parse_limit(text: str, where: str = "--limit") -> Limit:
    """Read a limit, such as ``execution.tile_balance >= 0.7`` or ``memory.category.* <= 10 MiB``.

    Parameters
    ----------
    text
        A metric or a glob; one of ``<=``, ``<``, ``>=``, ``>`` and ``==``; a number, with a unit of bytes or seconds
        or with ``%`` where the metric has one.
    where
        Where it is written, for messages.

    Raises
    ------
    UsageError
        It is no limit; what is wrong with it is marked.
    """
    written = _Written(text, where)
    sign = _COMPARISON.search(text)
    name = text[: sign.start()] if sign else text
    pattern = name.strip()
    if not pattern:
        raise written.wrong(
            0, "a limit begins with the name of a metric, such as memory.tile_max_including_gaps<=600KiB"
        )
    if sign is None:
        raise written.wrong(len(name.rstrip()), "after the metric comes one of <=, <, >=, > and ==, and a number")
    sense = written.sense(sign)
    check_name(pattern, written, name.index(pattern))
    value, unit = written.quantity(sign.end(), pattern)
    return Limit(pattern, sense, value, unit, text, where)


def parse_metric_limit(pattern: str, text: str, where: str) -> Limit:
    """Read a limit whose metric stands elsewhere, such as ``<= 600 KiB``; without a comparison it is at most that.

    Raises
    ------
    UsageError
        It is no limit; what is wrong with it is marked.
    """
    written = _Written(text, where)
    sign = _COMPARISON.match(text.lstrip())
    start = len(text) - len(text.lstrip()) + (sign.end() if sign else 0)
    if sign is None and better(pattern) is Better.MORE:
        raise written.wrong(start, f"more of {pattern} is better, so say which is meant: >= or <=")
    sense = written.sense(_COMPARISON.search(text)) if sign else Sense.AT_MOST
    value, unit = written.quantity(start, pattern)
    return Limit(pattern, sense, value, unit, text, where)


def parse_increase(text: str, where: str = "--max-increase") -> Increase:
    """Read what a metric may grow by: ``2%`` for all, ``memory.category.*=64KiB`` for some.

    Raises
    ------
    UsageError
        It is neither; what is wrong with it is marked.
    """
    name, equals, _ = text.rpartition("=")
    if not equals:
        return parse_metric_increase(DEFAULT, text, where)
    written = _Written(text, where)
    pattern = name.strip()
    if not pattern:
        raise written.wrong(0, "before '=' comes the name of a metric or a glob, such as memory.category.*=64KiB")
    if sign := _COMPARISON.search(name):
        raise written.wrong(sign.start(), "an increase is written with '=', such as memory.category.*=64KiB")
    check_name(pattern, written, name.index(pattern))
    return written.increase(len(name) + 1, pattern)


def parse_metric_increase(pattern: str, text: str, where: str) -> Increase:
    """Read an increase whose metric stands elsewhere, such as ``2%``.

    Raises
    ------
    UsageError
        It is none; what is wrong with it is marked.
    """
    return _Written(text, where).increase(0, pattern)


def unknown_name(rule: Rule, names: Iterable[str]) -> UsageError:
    """Return the error for a rule that is for no metric of any report or baseline, with the nearest of ``names``."""
    if is_glob(rule.pattern):
        fits = "that such a limit could be for" if rule.unit else "at all"
        problem = f"'{rule.pattern}' matches no metric {fits}"
    else:
        problem = f"there is no metric '{rule.pattern}' in these reports and baselines"
    at = max(rule.written.find(rule.pattern), 0)
    shown = rule.written if rule.pattern in rule.written else rule.pattern
    return _Written(shown, rule.where).wrong(at, problem + _nearest(rule.pattern, names))


def check_name(pattern: str, written: _Written | None = None, at: int = 0) -> None:
    """Refuse a name that no report can have; globs and members of families are known only when reports are.

    Raises
    ------
    UsageError
        There is no such metric; the nearest names are named.
    """
    written = written or _Written(pattern, "")
    if not is_glob(pattern) and metric_spec(pattern) is None:
        raise written.wrong(at, f"there is no metric '{pattern}'{_nearest(pattern, ())}")


@dataclass(frozen=True, slots=True)
class _Written:
    """A text that a person wrote, and where."""

    text: str
    where: str

    def wrong(self, at: int, problem: str) -> UsageError:
        start = f"{self.where}: " if self.where else ""
        return UsageError(f"{start}{problem}\n{marked(self.text, at)}")

    def sense(self, sign: re.Match[str] | None) -> Sense:
        assert sign is not None
        meant = _SIGNS.get(sign[0])
        if meant is None:
            raise self.wrong(self.text.index(sign[0]), f"'{sign[0]}' is none of <=, <, >=, > and ==")
        return Sense(meant)

    def increase(self, start: int, pattern: str) -> Increase:
        body = self.text[start:].strip()
        at = self._begin(start)
        if not body:
            raise self.wrong(at, "an increase is a share or a size, such as 2% or 64KiB")
        if body.endswith("%"):
            share = Fraction(self._plain(body[:-1].rstrip(), at)) / 100
            return Increase(pattern, share=share, written=self.text, where=self.where)
        value, unit = self.quantity(start, pattern)
        if pattern == DEFAULT and unit == "s":
            raise self.wrong(at, "the increase of all metrics is a share or a size, such as 2% or 64KiB")
        return Increase(pattern, value, None, unit, self.text, self.where)

    def quantity(self, start: int, pattern: str) -> tuple[Number, str]:
        """Return the number from a position on, in the unit of the metric, and the unit that was written."""
        at, body = self._begin(start), self.text[start:].strip()
        match = _NUMBER.fullmatch(body)
        if match is None or not any(char.isdigit() for char in body):
            raise self.wrong(at, "here is a number needed, such as 614400, 600KiB or 0.7")
        unit_at = at + match.start("unit")
        value, unit = self._valued(match, at, unit_at)
        spec = None if is_glob(pattern) else metric_spec(pattern)
        if unit and spec and spec.unit != unit:
            raise self.wrong(unit_at, f"{pattern} is {_IS[spec.unit]}, so it is not measured in '{match['unit']}'")
        return value, unit

    def _valued(self, match: re.Match[str], at: int, unit_at: int) -> tuple[Number, str]:
        unit = match["unit"]
        if not unit:
            plain = self._plain(match["number"], at)
            return (int(plain) if plain.denominator == 1 else float(plain)), ""
        if unit == "%":
            return float(self._plain(match["number"], at) / 100), "fraction"
        if unit in _SECONDS:
            return float(self._plain(match["number"], at) / _SECONDS[unit]), "s"
        self._plain(match["number"], at)
        try:
            return parse_bytes(match[0]), "bytes"
        except ValueError:
            units = "B, KiB, MiB, GiB, kB, MB, GB, s, ms, µs, ns or %"
            raise self.wrong(unit_at, f"'{unit}' is no unit: {units}") from None

    def _plain(self, text: str, at: int) -> Fraction:
        if not _PLAIN.fullmatch(text):
            raise self.wrong(
                at, f"'{text}' is not a number such as 614400, 614,400 or 0.7" if text else "here is a number needed"
            )
        return Fraction(text.replace(",", ""))

    def _begin(self, start: int) -> int:
        rest = self.text[start:]
        return start + len(rest) - len(rest.lstrip()) if rest.strip() else len(self.text.rstrip())


def _nearest(pattern: str, names: Iterable[str]) -> str:
    known = [*dict.fromkeys([*names, *(spec.name for spec in CATALOGUE)])]
    near = get_close_matches(pattern, known, n=_MANY, cutoff=0.6)
    if not near:
        return "; 'pvanalyse metrics' lists those of a report"
    near.sort(key=lambda name: -_begin_alike(name, pattern))
    return f"; the nearest: {', '.join(map(printable, near))}"


def _begin_alike(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
