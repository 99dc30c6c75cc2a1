"""What an insight is, and the registry of the rules that find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args, overload

from pvanalyse.analysis.insights.facts import Facts
from pvanalyse.analysis.shown import Shown
from pvanalyse.errors import UsageError

Severity = Literal["info", "advice", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From the mildest to the most severe."""

EvidenceUnit = Literal["", "bytes", "count", "fraction", "step", "tile"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A named value that an insight rests on; ``unit`` is empty for a text; a ``tile`` or ``step`` is its number."""

    name: str
    value: int | float | str
    unit: EvidenceUnit = ""


@dataclass(frozen=True, slots=True)
class Insight:
    """Something about a report that is worth knowing.

    Attributes
    ----------
    rule
        The rule that found it.
    severity
        ``info``, ``advice``, ``warning`` or ``critical``.
    title
        One sentence, sizes in plain bytes.
    template
        The same sentence with the names of evidence in braces, for :meth:`written`.
    evidence
        The values that the sentence and the advice rest on.
    advice
        What can be done; may be empty.
    options
        Options of the SDK that the advice is about: of the engine by their full name, of a framework with its name.
    saving_bytes
        An estimate of what following the advice saves, over the tiles of all replicas; None when there is none.
    tiles, variables
        Those concerned, the worst first.
    """

    rule: str
    severity: Severity
    title: str
    template: str
    evidence: tuple[Evidence, ...]
    advice: str
    options: tuple[str, ...] = ()
    saving_bytes: int | None = None
    tiles: tuple[int, ...] = ()
    variables: tuple[str, ...] = ()

    def written(self, write: Callable[[Evidence], str]) -> str:
        """Return the title with each value as ``write`` writes it."""
        return _fill(self.template, self.evidence, write)


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that could not look, what it needs for that, and how to come by it."""

    rule: str
    needs: str
    how: str


@dataclass(frozen=True, slots=True)
class Insights(Shown, Sequence[Insight]):
    """What the rules found, most severe first; a sequence of insights.

    Attributes
    ----------
    found
        The insights.
    not_evaluated
        Rules whose data was not captured.
    nothing_found
        Names of the rules that looked and had nothing to say.
    milder
        Names of the rules whose insights :meth:`at_least` left out.
    """

    found: tuple[Insight, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    nothing_found: tuple[str, ...] = ()
    milder: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Insight: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Insight, ...]: ...
    def __getitem__(self, index: int | slice) -> Insight | tuple[Insight, ...]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Insight]:
        return iter(self.found)

    def at_least(self, severity: Severity) -> Insights:
        """Return only the insights of a severity or worse, the rules of the others as :attr:`milder`.

        Raises
        ------
        UsageError
            There is no such severity.
        """
        if severity not in SEVERITIES:
            raise UsageError(f"'{severity}' is none of {', '.join(SEVERITIES)}")
        least = SEVERITIES.index(severity)
        kept = tuple(one for one in self.found if SEVERITIES.index(one.severity) >= least)
        milder = tuple(one.rule for one in self.found if SEVERITIES.index(one.severity) < least)
        return replace(self, found=kept, milder=(*self.milder, *milder))


Check = Callable[[Facts], Insight | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name, what it looks at, and the function that returns what it found, or None."""

    name: str
    doc: str
    check: Check


_RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Check], Check]:
    """Register a function as the rule of a name; the first line of its docstring says what it looks at."""

    def register(check: Check) -> Check:
        assert name not in _RULES, name
        _RULES[name] = Rule(name, (check.__doc__ or "").partition("\n")[0], check)
        return check

    return register


def registered() -> list[Rule]:
    """Return the rules of the modules that have been imported, in the order of their definition."""
    return list(_RULES.values())


# ---------------------------------------------------------------------------------------------- to make an insight


def insight(
    severity: Severity,
    template: str,
    *evidence: Evidence,
    advice: str,
    options: Sequence[str] = (),
    saving_bytes: float | None = None,
    tiles: Sequence[int] = (),
    variables: Sequence[str] = (),
) -> Insight:
    """Return an insight of the rule that is being evaluated, whose title is the template filled with evidence."""
    return Insight(
        rule="",
        severity=severity,
        title=_fill(template, evidence, plain),
        template=template,
        evidence=evidence,
        advice=advice,
        options=tuple(options),
        saving_bytes=None if saving_bytes is None else round(saving_bytes),
        tiles=tuple(int(tile) for tile in tiles),
        variables=tuple(str(name) for name in variables),
    )


def size(name: str, value: float) -> Evidence:
    """Return a number of bytes as evidence."""
    return Evidence(name, round(value), "bytes")


def count(name: str, value: float) -> Evidence:
    """Return a number of things as evidence."""
    return Evidence(name, int(value), "count")


def share(name: str, value: float) -> Evidence:
    """Return a share of one as evidence."""
    return Evidence(name, float(value), "fraction")


def tile(name: str, value: float) -> Evidence:
    """Return the number of a tile as evidence."""
    return Evidence(name, int(value), "tile")


def step(name: str, value: float) -> Evidence:
    """Return the number of a liveness step as evidence."""
    return Evidence(name, int(value), "step")


def text(name: str, value: object) -> Evidence:
    """Return a text as evidence."""
    return Evidence(name, str(value))


def plain(evidence: Evidence) -> str:
    """Write a value exactly: sizes as whole bytes, shares in per cent."""
    if isinstance(evidence.value, str):
        return evidence.value
    if evidence.unit == "fraction":
        return f"{evidence.value * 100:.1f} per cent"
    return f"{evidence.value:,} bytes" if evidence.unit == "bytes" else f"{evidence.value:,}"


def _fill(template: str, evidence: Sequence[Evidence], write: Callable[[Evidence], str]) -> str:
    return template.format_map({one.name: write(one) for one in evidence})
