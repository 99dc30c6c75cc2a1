"""Baselines: what a report measured once, as a small file to be committed and reviewed.

It is JSON with sorted keys, exact numbers, and a line for each metric and contributor, so that its difference reads
well; it says nothing of when, where or by whom it was made. The same report gives the same bytes.

::

    {
      "contributors": {"memory.gaps": [{"category": "", …, "value": 1024}, …], …},
      "metrics": {"memory.gaps": 1024, …},
      "schema": 1,
      "sdk_version": "3.3.0",
      "target": {"num_ipus": 1, …}
    }
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from pvanalyse.analysis.contributions import COLUMNS, Contributions, from_rows
from pvanalyse.analysis.metrics import Metrics
from pvanalyse.analysis.rules import finite
from pvanalyse.errors import NotCaptured, UnreadableFile, UsageError
from pvanalyse.gate.measured import Measurement, Target
from pvanalyse.gate.text_files import read_text_file
from pvanalyse.names import printable
from pvanalyse.tables import table

SCHEMA = 1
CONTRIBUTORS = 20
"""As many of a metric's contributors are kept; the rest is one row."""

_BEYOND = 1 << 127
"""No number of a baseline reaches this, so that all can be put into words."""

_KEYS = ("contributors", "metrics", "schema", "sdk_version", "target")

Row = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a report measured.

    Attributes
    ----------
    metrics
        All of them, exact.
    contributors
        By metric, rows of its largest contributors and one for the others; see
        :meth:`pvanalyse.analysis.contributions.Contributions.largest`.
    target
        What was compiled for, as far as known.
    sdk_version
        Of the compiler; empty when it is not known.
    """

    metrics: Metrics
    contributors: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    target: Target = field(default_factory=dict)
    sdk_version: str = ""

    def contributions(self, metric: str) -> Contributions | None:
        """Return what a metric is made of as far as it was kept, None when it was not."""
        value = self.metrics.get(metric)
        if metric not in self.contributors or not isinstance(value, int):
            return None
        return from_rows(metric, value, self.contributors[metric])


def make_baseline(measured: Measurement, contributors: int = CONTRIBUTORS) -> Baseline:
    """Return the baseline of a report.

    Parameters
    ----------
    measured
        The report, see :class:`pvanalyse.gate.measured.Measured`.
    contributors
        How many of each metric's contributors are kept.

    Raises
    ------
    UnreadableFile
        A file of the report is damaged.
    NotCaptured
        The report has no metric at all, so that everything would pass that is compared with it.
    """
    if not measured.metrics:
        raise NotCaptured("tile_memory", table("tile_memory").capture)
    made = {name: measured.contributions(name) for name, value in measured.metrics.items() if value}
    return Baseline(
        metrics=measured.metrics,
        contributors={name: tuple(one.largest(contributors)) for name, one in made.items() if one is not None},
        target=measured.target,
        sdk_version=measured.sdk_version,
    )


def baseline_text(baseline: Baseline) -> str:
    """Return a baseline as the text of its file."""
    data = {
        "contributors": baseline.contributors,
        "metrics": baseline.metrics,
        "schema": SCHEMA,
        "sdk_version": baseline.sdk_version,
        "target": baseline.target,
    }
    return _indented(data, "") + "\n"


def read_baseline(path: str | PathLike[str]) -> Baseline:
    """Read a baseline file.

    Raises
    ------
    UnreadableFile
        There is none, or it is damaged, or of another schema; what is wrong is named with its place.
    """
    try:
        return parse_baseline(read_text_file(path))
    except UsageError as error:
        raise UnreadableFile(path, str(error)) from None


def parse_baseline(text: str) -> Baseline:
    """Return the baseline that a text holds; the inverse of :func:`baseline_text`, byte for byte.

    Raises
    ------
    UsageError
        It is no baseline; what is wrong is named with its place.
    """
    try:
        data = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise UsageError(f"is not a baseline: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except (ValueError, RecursionError):
        raise UsageError("is not a baseline: a number or the nesting in it is not of this world") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise UsageError("is not a baseline: it says no schema; 'pvanalyse baseline REPORT -o FILE' makes one")
    if data["schema"] != SCHEMA or isinstance(data["schema"], bool):
        shown = printable(json.dumps(data["schema"]))[:40]
        raise UsageError(f"is a baseline of schema {shown}, and only {SCHEMA} is known; another version of pvanalyse "
                         "made it, make it again with this one")  # fmt: skip
    if unknown := [key for key in data if key not in _KEYS]:
        raise UsageError(f"is not a baseline: there is no '{printable(unknown[0])}' in one")
    found = Baseline(
        metrics=_table(data, "metrics", _is_number, "a number"),
        contributors={
            name: _rows(name, rows) for name, rows in _table(data, "contributors", _is_list, "a list").items()
        },
        target=_table(data, "target", lambda value: isinstance(value, str) or _is_number(value), "a number or a text"),
        sdk_version=data.get("sdk_version", ""),
    )
    if not isinstance(found.sdk_version, str):
        raise UsageError("is not a baseline: its sdk_version is not a text")
    for name in found.contributors:
        if not isinstance(found.metrics.get(name), int):
            raise UsageError(f"is not a baseline: '{printable(name)}' has contributors, but is no whole number")
        found.contributions(name)
    return found


def _table(data: Mapping[str, Any], key: str, good: Any, what: str) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"is not a baseline: its {key} are not a table")
    for name, value in table.items():
        if not good(value):
            raise UsageError(f"is not a baseline: '{printable(name)}' in its {key} is not {what}")
    return table


def _rows(name: str, rows: list[Any]) -> tuple[Row, ...]:
    for row in rows:
        if not isinstance(row, dict) or set(row) != {*COLUMNS, "value"}:
            raise UsageError(f"is not a baseline: a contributor to '{printable(name)}' has not the columns of one")
        if any(isinstance(value, str) and not _is_unicode(value) for value in row.values()):
            raise UsageError(f"is not a baseline: a contributor to '{printable(name)}' has a name that is no text")
    return tuple(rows)


def _is_unicode(text: str) -> bool:
    """Tell whether a text has no half of a pair of surrogates, which JSON can say and no report can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and finite(value) and abs(value) < _BEYOND


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _refuse(constant: str) -> None:
    raise json.JSONDecodeError(f"{constant} is no number", constant, 0)


def _indented(value: Any, indent: str) -> str:
    """Return JSON of sorted tables, a line for each member of a table and of a list."""
    deeper = f"{indent}  "
    if isinstance(value, Mapping) and value:
        lines = [f"{deeper}{json.dumps(key)}: {_indented(value[key], deeper)}" for key in sorted(value)]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, (list, tuple)) and value:
        lines = [f"{deeper}{json.dumps(row, sort_keys=True)}" for row in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return json.dumps(value, sort_keys=True)
