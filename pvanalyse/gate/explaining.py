"""Why a check failed: what a metric, or its growth over the baseline, is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pvanalyse.analysis.checks import Check, Status, Why
from pvanalyse.analysis.contributions import changes, explaining
from pvanalyse.analysis.rules import importance
from pvanalyse.gate.measured import Measurement

if TYPE_CHECKING:
    import pandas as pd

SHARE = 0.95
"""So much of a metric, or of its growth, is explained."""


def explained(checks: Iterable[Check], new: Measurement, old: Measurement | None) -> Iterator[Why]:
    """Yield what explains each failure that can be explained, the most telling metric first."""
    failed = {check.metric for check in checks if check.status is Status.FAILED}
    for metric in sorted(failed, key=importance):
        after = new.contributions(metric)
        if after is None:
            continue
        before = old.contributions(metric) if old else None
        if before is None or before.value == after.value:
            rows = largest(after.rows)
            yield Why(metric, after.value, None, rows, int(rows["value"].sum()))
        else:
            rows = explaining(changes(before, after), SHARE)
            yield Why(metric, after.value, before.value, rows, int(rows["change"].sum()))


def largest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the largest contributors that make up most of a metric, and those that count against it."""
    values = rows["value"]
    held = values.clip(lower=0)
    return rows[((values > 0) & (held.cumsum() - held < SHARE * held.sum())) | (values < 0)]
