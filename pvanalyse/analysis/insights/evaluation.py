"""The rules at work on a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from pvanalyse.analysis.insights import capture, contents, fit, peak
from pvanalyse.analysis.insights.facts import Facts
from pvanalyse.analysis.insights.limits import Limits
from pvanalyse.analysis.insights.model import SEVERITIES, Insight, Insights, NotEvaluated, Rule, registered
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource

_MODULES = [module.__name__ for module in (fit, contents, peak, capture)]


def rules() -> Mapping[str, Rule]:
    """Return every rule by name, in the order in which they are evaluated."""
    ordered = sorted(registered(), key=lambda one: _MODULES.index(one.check.__module__))
    return {one.name: one for one in ordered}


def insights(
    source: TableSource,
    limits: Limits | None = None,
    *,
    profile_bytes: int | None = None,
    only: Sequence[str] = (),
) -> Insights:
    """Return what the rules find in a report, most severe first.

    Parameters
    ----------
    source
        A report.
    limits
        From where on something is worth saying; by default those of :class:`Limits` itself.
    profile_bytes
        Size of profile.pop, for the rule that is about it.
    only
        Evaluate only these rules; all when there are none.

    Raises
    ------
    UsageError
        There is no rule of a name in ``only``.
    UnreadableFile
        A file of the report is damaged.
    """
    facts = Facts(source, limits or Limits(), profile_bytes)
    found: list[Insight] = []
    not_evaluated: list[NotEvaluated] = []
    nothing: list[str] = []
    for one in _chosen(only):
        try:
            insight = one.check(facts)
        except NotCaptured as missing:
            not_evaluated.append(NotEvaluated(one.name, missing.table, missing.how))
            continue
        if insight is None:
            nothing.append(one.name)
        else:
            found.append(replace(insight, rule=one.name))
    found.sort(key=lambda insight: -SEVERITIES.index(insight.severity))  # rules keep their order among equals
    return Insights(tuple(found), tuple(not_evaluated), tuple(nothing))


def _chosen(only: Sequence[str]) -> list[Rule]:
    known = rules()
    for name in only:
        if name not in known:
            raise UsageError(f"there is no rule '{name}'; there are: {', '.join(known)}")
    return [one for name, one in known.items() if not only or name in only]


def limits_with(changes: Mapping[str, float]) -> Limits:
    """Return the default limits with some changed.

    Raises
    ------
    UsageError
        There is no limit of that name, or a value is not one that it can have.
    """
    whole = {field.name: field.type == "int" for field in fields(Limits)}
    for name, value in changes.items():
        if name not in whole:
            raise UsageError(f"there is no limit '{name}'; there are: {', '.join(whole)}")
        least = 1 if whole[name] else 0
        if not least <= value < float("inf") or (whole[name] and value != int(value)):
            kind = "a whole number" if whole[name] else "a number"
            raise UsageError(f"limit '{name}' is {kind} of at least {least}, not {value:g}")
    values: dict[str, Any] = {name: int(value) if whole[name] else value for name, value in changes.items()}
    return replace(Limits(), **values)
