"""What a report measures, as the gate needs it: computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from pvanalyse.analysis.breakdowns import Breakdowns, is_broken_down
from pvanalyse.analysis.columns import key_values, only_row
from pvanalyse.analysis.contributions import Contributions
from pvanalyse.analysis.metrics import Metrics, Number, metrics
from pvanalyse.analysis.rules import finite
from pvanalyse.tables import TableSource

Target = Mapping[str, str | Number]

_TARGET = ("type", "architecture", "num_ipus", "num_replicas", "tiles_per_ipu", "num_tiles", "bytes_per_tile",
           "clock_frequency")  # fmt: skip


class Measurement(Protocol):
    """Metrics and what they are made of: of a report, or of a baseline file."""

    @property
    def metrics(self) -> Metrics:
        """All metrics, exact."""

    @property
    def target(self) -> Target:
        """What was compiled for, as far as known."""

    @property
    def sdk_version(self) -> str:
        """Version of the compiler; empty when it is not known."""

    def contributions(self, metric: str) -> Contributions | None:
        """Return what a metric is made of, None when that is not known."""


class Measured:
    """The measurement of an open report."""

    def __init__(self, source: TableSource) -> None:
        self._source = source

    @cached_property
    def metrics(self) -> Metrics:
        """All metrics; one that is no finite number counts as not captured."""
        return {name: value for name, value in metrics(self._source).items() if finite(value)}

    @cached_property
    def target(self) -> Target:
        """What was compiled for, as far as known."""
        row = only_row(self._source, "target")
        return {name: row[name] for name in _TARGET if name in row}

    @cached_property
    def sdk_version(self) -> str:
        """Version of the compiler; empty when it is not known."""
        return key_values(self._source, "report_info").get("poplar_version") or ""

    @cached_property
    def _breakdowns(self) -> Breakdowns:
        return Breakdowns(self._source)

    def contributions(self, metric: str) -> Contributions | None:
        """Return what a metric is made of, None when that is not known or says no more than the metric."""
        made = self._breakdowns.of(metric) if is_broken_down(metric) else None
        says_more = made is not None and (len(made.rows) > 1 or made.rows["variable"].any())
        return made if says_more else None
