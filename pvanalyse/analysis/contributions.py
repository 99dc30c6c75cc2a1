"""What a metric is made of, and what made it change: rows by category, layer, operation and variable.

A breakdown is exact: its rows add up to the metric, and the changes between two breakdowns add up to the metric's
change. What belongs to nobody has a row of its own, with a name in round brackets and no category: ``(gaps)``,
``(addresses shared over time)`` (negative: the sizes of variables add up to more than the memory they share),
``(others)`` for rows that a file left out.

Names are those of :mod:`pvanalyse.analysis.stable_names`. The source line is shown and not compared: it moves with
every edit of the file. Which table each metric is broken down from is said in :mod:`pvanalyse.analysis.breakdowns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from pvanalyse.errors import UsageError

OTHERS = "(others)"
GAPS = "(gaps)"
SHARED = "(addresses shared over time)"
MOST = 1 << 62
"""No value of a row reaches this, so that differences stay within 64 bits."""


class Key(NamedTuple):
    """What tells one row from another; each may be empty where it is not known."""

    category: str
    layer: str
    operation: str
    variable: str

    @property
    def belongs_to_nobody(self) -> bool:
        """Whether this is a row such as ``(gaps)``."""
        return not self.category

    @property
    def order(self) -> tuple[str, ...]:
        """What keys are sorted by: as people sort, case only deciding between equals."""
        return (*(text.casefold() for text in self), *self)


class Share(NamedTuple):
    """The value of a row, and where in the source it comes from (``file:line``, empty unknown)."""

    value: int
    location: str = ""


Shares = dict[Key, Share]
COLUMNS = ("category", "layer", "operation", "variable", "location")


@dataclass(frozen=True)
class Contributions:
    """What a metric is made of.

    Attributes
    ----------
    metric
        Its name.
    value
        Its value, an exact integer.
    rows
        Columns ``category``, ``layer``, ``operation``, ``variable``, ``location`` (str, empty when unknown) and
        ``value`` (int64), which sums to the metric's value; the largest first, a row per distinct key.
    """

    metric: str
    value: int
    rows: pd.DataFrame

    def largest(self, count: int) -> list[dict[str, str | int]]:
        """Return the rows that are largest either way, and the rest as one row ``(others)``, for a file."""
        rows = _records(self.rows)
        order = sorted(rows, key=lambda row: (-abs(int(row["value"])), _key(row).order))
        kept = [row for row in order if row["variable"] != OTHERS][:count]
        if len(kept) < len(rows):
            rest = self.value - sum(int(row["value"]) for row in kept)
            kept.append({**dict.fromkeys(COLUMNS, ""), "variable": OTHERS, "value": rest})
        return kept


def from_shares(metric: str, value: int, shares: Mapping[Key, Share]) -> Contributions | None:
    """Return a breakdown from its rows; None when one does not fit into 64 bits."""
    if any(abs(share.value) >= MOST for share in shares.values()):
        return None
    order = sorted(shares, key=lambda key: (-shares[key].value, key.order))
    frame = pd.DataFrame([(*key, shares[key].location) for key in order], columns=list(COLUMNS), dtype="str")
    frame["value"] = pd.Series([shares[key].value for key in order], dtype="int64")
    return Contributions(metric, value, frame)


def from_rows(metric: str, value: int, rows: Iterable[Mapping[str, object]]) -> Contributions:
    """Return a breakdown from rows that :meth:`Contributions.largest` gave; what they lack is ``(others)``.

    Raises
    ------
    UsageError
        A row lacks a column, or one is of a wrong type or size.
    """
    shares: Shares = {}
    for row in rows:
        texts = [row.get(name, "") for name in COLUMNS]
        size = row.get("value")
        if not isinstance(size, int) or isinstance(size, bool) or abs(size) >= MOST:
            raise UsageError(f"a contributor to '{metric}' has no whole number as its value")
        if not all(isinstance(text, str) for text in texts):
            raise UsageError(f"a contributor to '{metric}' has something else than text as its name")
        *key, location = (str(text) for text in texts)
        add(shares, Key(*key), Share(size, location))
    rest = value - sum(share.value for share in shares.values())
    if rest:
        add(shares, Key("", "", "", OTHERS), Share(rest))
    made = from_shares(metric, value, shares)
    if made is None:
        raise UsageError(f"the contributors to '{metric}' do not add up to its value")
    return made


def add(shares: Shares, key: Key, share: Share) -> None:
    """Add to the row of a key, whose location is that of its largest part, by name where they are equal."""
    old = shares.get(key)
    if old is None:
        shares[key] = share
        return
    best = max(old, share, key=lambda one: (bool(one.location), abs(one.value), one.location))
    shares[key] = Share(old.value + share.value, best.location)


# ------------------------------------------------------------------------------------------------------- the change


def changes(before: Contributions, after: Contributions) -> pd.DataFrame:
    """Return what each contributor did to the change of a metric.

    Rows are matched by category, layer, operation and variable. Then, among those that found no partner, without
    the operation: it is not known without debug information, and a variable that another operation makes is still
    that variable. Where one side knows variables and the other only categories, both are compared by category. A row
    that was too small for a side which kept only its largest rows is part of the other side's ``(others)`` too.

    Returns
    -------
    pandas.DataFrame
        ``category``, ``layer``, ``operation``, ``variable``, ``location`` (after, or before where it is gone),
        ``before``, ``after`` and ``change`` (int64). ``change`` sums to ``after.value - before.value``. Largest
        change first, equals by name.
    """
    rows = [
        (*key, (new or old).location, old.value if old else 0, new.value if new else 0)  # type: ignore[union-attr]
        for key, (old, new) in matched(_shares(before), _shares(after)).items()
    ]
    rows.sort(key=lambda row: (-abs(row[6] - row[5]), Key(*row[:4]).order))
    frame = pd.DataFrame([row[:5] for row in rows], columns=list(COLUMNS), dtype="str")
    frame["before"] = pd.Series([row[5] for row in rows], dtype="int64")
    frame["after"] = pd.Series([row[6] for row in rows], dtype="int64")
    frame["change"] = frame["after"] - frame["before"]
    return frame


def explaining(changed: pd.DataFrame, share: float = 0.95) -> pd.DataFrame:
    """Return the fewest contributors that explain a share of the change, largest first.

    Those *against* the change are listed when they matter: when one of them alone is more than what may be left
    unexplained, ``(1 - share)`` of the change. Of those *with* the change, which made it, the largest are listed until
    everything listed adds up to at least ``share`` of it. Nothing is listed when the sum did not change.

    Parameters
    ----------
    changed
        From :func:`changes`.
    share
        From 0 to 1.
    """
    change = changed["change"].astype(object)  # sums of Python integers are exact
    total = int(sum(change))
    direction = (total > 0) - (total < 0)
    with_it = (change * direction).astype(object)
    matters = [-one > (1 - share) * abs(total) for one in with_it] if total else [False] * len(changed)
    explained = sum(one for one, listed in zip(with_it, matters, strict=True) if listed)
    for at, one in enumerate(with_it):
        if explained >= share * abs(total):
            break
        if one > 0:
            matters[at] = True
            explained += one
    return changed[np.array(matters, bool)].reset_index(drop=True)


Pairs = dict[Key, tuple[Share | None, Share | None]]


def matched(old: Shares, new: Shares) -> Pairs:
    """Return the two shares of each row, None where one side has none; see :func:`changes` for what matches."""
    if _knows_variables(old) != _knows_variables(new):
        old, new = _by_category(old), _by_category(new)
    pairs: Pairs = {key: (share, new[key]) for key, share in old.items() if key in new}
    alone = [{key: share for key, share in side.items() if key not in pairs} for side in (old, new)]
    loose = [_by_variable(side) for side in alone]
    for variable in loose[0].keys() & loose[1].keys():
        (_, first), (named, second) = loose[0][variable], loose[1][variable]
        pairs[named] = (first, second)
    pairs |= {key: (share, None) for key, share in alone[0].items() if _any_operation(key) not in loose[1]}
    pairs |= {key: (None, share) for key, share in alone[1].items() if _any_operation(key) not in loose[0]}
    return _with_small_ones_in_others(pairs, old, new)


def _any_operation(key: Key) -> Key:
    return key._replace(operation="")


def _by_variable(shares: Shares) -> dict[Key, tuple[Key, Share]]:
    """Return for each variable, whatever its operations, the key of the largest row, and the sum."""
    sums: Shares = {}
    largest: dict[Key, Key] = {}
    for key, share in shares.items():
        if key.variable:
            loose = _any_operation(key)
            add(sums, loose, share)
            best = largest.setdefault(loose, key)
            largest[loose] = max(best, key, key=lambda one: (abs(shares[one].value), one))
    return {loose: (largest[loose], share) for loose, share in sums.items()}


def _by_category(shares: Shares) -> Shares:
    sums: Shares = {}
    for key, share in shares.items():
        whole = key if key.belongs_to_nobody else Key(key.category, "", "", "")
        add(sums, whole, Share(share.value))
    return sums


def _knows_variables(shares: Shares) -> bool:
    return any(key.variable and not key.belongs_to_nobody for key in shares)


def _with_small_ones_in_others(pairs: Pairs, old: Shares, new: Shares) -> Pairs:
    """Move rows that only one side has to ``(others)`` where the other side may have left them out as too small."""
    least = [_least(side) for side in (old, new)]
    result: Pairs = {}
    hidden: list[Shares] = [{}, {}]
    for key, pair in pairs.items():
        for at, share in enumerate(pair):
            if share is not None and pair[1 - at] is None and abs(share.value) <= least[1 - at] and key.category:
                add(hidden[at], _OTHERS, Share(share.value))
                break
        else:
            result[key] = pair
    if any(hidden):
        for side, at in zip(pairs.get(_OTHERS, (None, None)), (0, 1), strict=True):
            if side is not None:
                add(hidden[at], _OTHERS, side)
        result[_OTHERS] = (hidden[0].get(_OTHERS), hidden[1].get(_OTHERS))
    return result


def _least(shares: Shares) -> int:
    """Return up to which size a row may be among the others; -1 when all rows are there."""
    if _OTHERS not in shares:
        return -1
    return min((abs(share.value) for key, share in shares.items() if key.category), default=MOST)


_OTHERS = Key("", "", "", OTHERS)


def _records(rows: pd.DataFrame) -> list[dict[str, str | int]]:
    columns = [*COLUMNS, "value"]
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*(rows[name].tolist() for name in columns), strict=True)
    ]


def _key(row: Mapping[str, str | int]) -> Key:
    return Key(*(str(row[name]) for name in COLUMNS[:-1]))


def _shares(made: Contributions) -> Shares:
    return {_key(row): Share(int(row["value"]), str(row["location"])) for row in _records(made.rows)}
