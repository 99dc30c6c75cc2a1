"""Rules for metrics: which there are, and which of them holds for a metric.

A *limit* bounds a metric itself; an *increase* bounds its growth over a baseline. Both are for metrics by name or glob;
of several that fit a metric, the most specific holds. Everything is exact: integers are compared as integers, shares
as fractions, and nothing is rounded before it is judged.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import chain
from math import inf, isfinite
from typing import TypeVar

from pvanalyse.analysis.metrics import CATALOGUE, Number, metric_spec
from pvanalyse.tables import table

DEFAULT = ""
"""The pattern of an increase that is for every metric of memory whose bytes are better fewer."""


class Better(Enum):
    """What of a metric is better."""

    LESS = "less"
    MORE = "more"
    NEITHER = "neither"


_BETTER = {
    "": Better.LESS,
    "target.": Better.NEITHER,
    "graph.": Better.NEITHER,
    "variables.": Better.NEITHER,
    "debug.": Better.NEITHER,
    "archive.num_tiles": Better.NEITHER,
    "liveness.num_steps": Better.NEITHER,
    "liveness.peak_step": Better.NEITHER,
    "memory.tile_balance": Better.MORE,
    "execution.num_": Better.NEITHER,
    "execution.fraction.": Better.NEITHER,
    "execution.stream_bytes.": Better.NEITHER,
    "execution.tile_balance": Better.MORE,
    "execution.active_tile_balance": Better.MORE,
    "execution.compute_io_overlap": Better.MORE,
    "execution.host_bandwidth": Better.MORE,
}
"""By how a metric's name begins; the longest beginning counts."""

_BY_DEFAULT = ("memory.", "liveness.", "archive.")
FAMILIES = tuple(spec.name.partition("<")[0] for spec in CATALOGUE if "<" in spec.name)
"""How the names of metrics begin that end in what a report names, such as ``memory.category.``."""

_PLAIN = tuple(spec.name for spec in CATALOGUE if "<" not in spec.name)
_POSITION = {spec.name.partition("<")[0]: position for position, spec in enumerate(CATALOGUE)}


_TELLING = (
    "memory.tile_max_including_gaps",
    "liveness.peak",
    "memory.total_including_gaps",
    "memory.tile_max",
    "memory.",
    "liveness.",
)
"""How the names of metrics begin that tell most, first; those that decide whether a program fits."""


def catalogue_order(metric: str) -> tuple[int, str]:
    """Return a key that sorts metrics as the catalogue does."""
    return _POSITION.get(family(metric) or metric, len(_POSITION)), metric


def finite(value: Number) -> bool:
    """Tell whether a number is one; an integer is, however large."""
    return isinstance(value, int) or isfinite(value)


def importance(metric: str) -> tuple[int, tuple[int, str]]:
    """Return a key that sorts metrics by what people want to know first."""
    telling = next((at for at, start in enumerate(_TELLING) if metric.startswith(start)), len(_TELLING))
    return telling, catalogue_order(metric)


def better(metric: str) -> Better:
    """Return what of a metric is better."""
    return _BETTER[max((start for start in _BETTER if metric.startswith(start)), key=len)]


_TABLES = {
    "target.": "target",
    "graph.": "graph",
    "memory.": "tile_memory",
    "memory.category.": "tile_memory_category",
    "variables.num_lowered": "lowered_variables",
    "variables.num_unlowered": "variables",
    "liveness.": "liveness_steps",
    "execution.": "execution_steps",
    "execution.host_": "runs",
    "archive.": "archive_tiles",
    "debug.": "debug_contexts",
}
"""The table that metrics come from, by how their names begin; the longest beginning counts."""


def captured_by(metric: str) -> str:
    """Return how to have captured what a metric is computed from, nothing when that is not known."""
    starts = [start for start in _TABLES if metric.startswith(start)]
    return table(_TABLES[max(starts, key=len)]).capture if starts else ""


def family(metric: str) -> str:
    """Return the one of FAMILIES that a metric's name begins with, or nothing."""
    return next((start for start in FAMILIES if metric.startswith(start)), "")


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern is more than a name."""
    return any(char in pattern for char in "*?[")


# --------------------------------------------------------------------------------------------------------------- rules
class Sense(StrEnum):
    """How a metric must compare with its limit."""

    AT_MOST = "<="
    BELOW = "<"
    AT_LEAST = ">="
    ABOVE = ">"
    EQUAL = "=="

    @property
    def side(self) -> str:
        """``<``, ``>`` or ``=``: limits of different sides do not replace each other."""
        return self.value[0]

    def holds(self, value: Number, limit: Number) -> bool:
        """Tell whether a value keeps a limit; Python compares integers and floats exactly."""
        compare: dict[Sense, Callable[[Number, Number], bool]] = {
            Sense.AT_MOST: operator.le,
            Sense.BELOW: operator.lt,
            Sense.AT_LEAST: operator.ge,
            Sense.ABOVE: operator.gt,
            Sense.EQUAL: operator.eq,
        }
        return compare[self](value, limit)


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of a metric.

    Attributes
    ----------
    pattern
        A metric, or a glob of metrics.
    sense, value
        What must hold, in the unit of the metric.
    unit
        The unit that was written, which a metric must have for a glob to mean it; empty for a plain number.
    written, where
        The rule as a person wrote it, and the place, for messages.
    """

    pattern: str
    sense: Sense
    value: Number
    unit: str = ""
    written: str = field(default="", compare=False)
    where: str = field(default="", compare=False)

    @property
    def replaces(self) -> tuple[str, str]:
        """What a later rule has in common with this one when it takes its place."""
        return self.pattern, self.sense.side

    def fits(self, metric: str) -> bool:
        """Tell whether the limit is for a metric."""
        return _named(self.pattern, metric) and self.unit in ("", _unit(metric))


@dataclass(frozen=True, slots=True)
class Increase:
    """A bound of a metric's growth over the baseline.

    Attributes
    ----------
    pattern
        A metric, a glob, or :data:`DEFAULT`. A glob is not for metrics that are better when there is more of them.
    amount
        The most that may be added, in the unit of the metric.
    share
        The most that may be added as a share of the baseline; in place of ``amount``.
    unit, written, where
        As for :class:`Limit`.
    """

    pattern: str
    amount: Number = 0
    share: Fraction | None = None
    unit: str = ""
    written: str = field(default="", compare=False)
    where: str = field(default="", compare=False)

    @property
    def replaces(self) -> tuple[str, str]:
        """What a later rule has in common with this one when it takes its place."""
        return self.pattern, ""

    def fits(self, metric: str) -> bool:
        """Tell whether the bound is for a metric."""
        if self.unit not in ("", _unit(metric)):
            return False
        if self.pattern == DEFAULT:
            return metric.startswith(_BY_DEFAULT) and better(metric) is Better.LESS
        return metric == self.pattern or (_named(self.pattern, metric) and better(metric) is not Better.MORE)

    def bound(self, baseline: Number) -> Fraction:
        """Return the largest value that may follow a baseline, exactly."""
        if self.share is None:
            return Fraction(baseline) + Fraction(self.amount)
        return Fraction(baseline) + self.share * abs(Fraction(baseline))


Rule = Limit | Increase
AnyRule = TypeVar("AnyRule", Limit, Increase)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a report is held against."""

    limits: tuple[Limit, ...] = ()
    increases: tuple[Increase, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.limits or self.increases)

    def __iter__(self) -> Iterator[Rule]:
        yield from self.limits
        yield from self.increases

    def with_later(self, later: Rules) -> Rules:
        """Return these rules and later ones, which take the place of those for the same pattern and side."""
        return Rules(_replaced(self.limits, later.limits), _replaced(self.increases, later.increases))


NO_GROWTH = Rules(increases=(Increase(DEFAULT, share=Fraction(0), written="0%", where="the baseline"),))
"""What a baseline means when nothing is said: what compilers allocate is deterministic, so nothing may grow."""


def _replaced(earlier: Sequence[AnyRule], later: Sequence[AnyRule]) -> tuple[AnyRule, ...]:
    gone: set[tuple[str, str]] = {rule.replaces for rule in later}
    return tuple(chain((rule for rule in earlier if rule.replaces not in gone), later))


def most_specific(rules: Sequence[AnyRule], metric: str) -> AnyRule | None:
    """Return the rule that holds for a metric: its name before globs, longer globs before shorter, later ones last."""
    fitting = [(_specificity(rule.pattern, metric), at) for at, rule in enumerate(rules) if rule.fits(metric)]
    return rules[max(fitting)[1]] if fitting else None


def _specificity(pattern: str, metric: str) -> float:
    if pattern == DEFAULT:
        return -1
    return inf if pattern == metric else sum(char not in "*?[]" for char in pattern)


def _named(pattern: str, metric: str) -> bool:
    return metric == pattern or fnmatchcase(metric, pattern)


def _unit(metric: str) -> str:
    spec = metric_spec(metric)
    return spec.unit if spec else ""


def unmatched(rules: Iterable[Rule], names: Iterable[str]) -> list[Rule]:
    """Return the rules that are for nothing.

    Parameters
    ----------
    rules
        Any.
    names
        The metrics of all the reports and baselines concerned.

    Returns
    -------
    list
        Those that fit none of these metrics, no other of the catalogue, and no name that a report in which a family
        of metrics was captured could have had.
    """
    known = {*names, *_PLAIN}
    unseen = [start for start in FAMILIES if not any(name.startswith(start) for name in known)]
    return [
        rule
        for rule in rules
        if rule.pattern != DEFAULT
        and not any(rule.fits(name) for name in known)
        and not any(_literal(rule.pattern).startswith(start) for start in unseen)
    ]


def _literal(pattern: str) -> str:
    """Return a pattern up to its first sign that is not meant literally."""
    return pattern[: next((at for at, char in enumerate(pattern) if char in "*?["), len(pattern))]
