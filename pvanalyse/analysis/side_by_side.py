"""Values of several reports put side by side: a row for each thing that any of them has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import pandas as pd

LETTERS = ascii_lowercase
"""Columns of the values, one for each report."""

RowKey = tuple[Any, ...]
Values = Mapping[RowKey, Any]
"""A report's number for each row."""


def side_by_side(
    keys: Sequence[str], sides: Sequence[Values], texts: Mapping[str, Mapping[RowKey, str]] | None = None
) -> pd.DataFrame:
    """Return a row for each key that any side has, with the changes from the first side.

    Parameters
    ----------
    keys
        Names of the columns that make up a key.
    sides
        The value of each key, for each report.
    texts
        Further columns that say something about a key.

    Returns
    -------
    pandas.DataFrame
        The key's columns; those of ``texts``; ``only_in``, the reports that have the row ("A", "A, C") or empty when
        all have; the values in ``a``, ``b``, ``c`` …, null where a report does not have the row; and their changes
        from the first in ``b_change``, ``c_change`` …, where what is missing counts as 0. The largest change of any
        report first, equals by key.
    """
    found = {key: [side.get(key) for side in sides] for key in dict.fromkeys(key for side in sides for key in side)}
    changed = {key: [(one or 0) - (values[0] or 0) for one in values[1:]] for key, values in found.items()}
    order = sorted(found, key=lambda key: (-max(map(abs, changed[key])), *_as_people_sort(key)))
    columns: dict[str, Any] = {name: _keys([key[at] for key in order]) for at, name in enumerate(keys)}
    columns |= {name: _texts(of.get(key, "") for key in order) for name, of in (texts or {}).items()}
    columns["only_in"] = _texts(only_in(found[key]) for key in order)
    columns |= {LETTERS[at]: numbers([found[key][at] for key in order]) for at in range(len(sides))}
    columns |= {change_of(at): numbers([changed[key][at - 1] for key in order]) for at in range(1, len(sides))}
    return pd.DataFrame(columns)


def change_of(report: int) -> str:
    """Return the name of the column with a report's change from the first."""
    return f"{LETTERS[report]}_change"


def changed_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in which a report differs from the first, or that not all reports have."""
    differs = frame["only_in"] != ""
    for column in frame.columns:
        if str(column).endswith("_change"):
            differs |= frame[column].fillna(0) != 0
    return frame[differs].reset_index(drop=True)


def only_in(values: Sequence[object]) -> str:
    """Return which reports have a value, empty when all do."""
    have = [LETTERS[at].upper() for at, value in enumerate(values) if value is not None]
    return "" if len(have) == len(values) else ", ".join(have)


def numbers(values: Sequence[Any]) -> Any:
    """Return numbers as a column that keeps them exact: Int64, or objects where they are real or too large."""
    if all(value is None or (isinstance(value, int) and abs(value) < 1 << 63) for value in values):
        return pd.array(values, "Int64")
    return pd.Series(values, dtype=object)


def _as_people_sort(key: RowKey) -> tuple[Any, ...]:
    return (*(part.casefold() if isinstance(part, str) else part for part in key), *key)


def _keys(values: list[Any]) -> Any:
    return pd.array(values, "int64") if values and isinstance(values[0], int) else _texts(values)


def _texts(values: Iterable[str]) -> pd.Series[str]:
    return pd.Series(list(values), dtype="str")
