"""What sections are made from, and how tables get into them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from pvanalyse.analysis.execution_trace import Trace, read_trace
from pvanalyse.analysis.insights import Insights
from pvanalyse.analysis.metrics import Metrics
from pvanalyse.analysis.summary import Summary
from pvanalyse.html.pack import Packer, exact, exact_rows
from pvanalyse.render.document import Document, Section, Unit
from pvanalyse.tables import TableSource

if TYPE_CHECKING:
    from pvanalyse.html.limits import Limits
    from pvanalyse.units import ByteUnits


_HINT = re.compile("[,;] --top shows more")
"""What a sentence says about an option that a page does not have."""


class Reported(TableSource, Protocol):
    """A source of tables that also knows its directory: what :class:`pvanalyse.Report` is."""

    def summary(self) -> Summary:
        """Return the report in brief."""

    def metrics(self) -> Metrics:
        """Return every metric."""

    def insights(self) -> Insights:
        """Return what stands out."""


class Making:
    """A page in the making: the report, where values are packed, how much of them, and what was left out.

    Attributes
    ----------
    tiles
        Tiles whose memory maps are wanted besides the most telling ones.
    left_out
        Sentences on what of the section that is being made is not in the page.
    """

    def __init__(self, report: Reported, packer: Packer, limits: Limits, units: ByteUnits) -> None:
        self.report, self.pack, self.limits, self.units = report, packer, limits, units
        self.tiles: list[int] = []
        self.left_out: list[str] = []

    @cached_property
    def trace(self) -> Trace:
        """One pass over the execution, for all sections that ask what its cycles went into."""
        return read_trace(self.report)

    def first(self, frame: pd.DataFrame, most: int, what: str, order: str = "largest") -> pd.DataFrame:
        """Return the first rows of a frame, and say so where there are more; ``order`` says what is first."""
        if len(frame) <= most:
            return frame
        self.left_out.append(f"Only the {most:,} {order} of {len(frame):,} {what} are in this page.")
        return frame.head(most)

    def table(self, frame: pd.DataFrame, columns: Sequence[tuple[str, str, Unit]]) -> dict[str, Any]:
        """Return columns of a frame, given as name, heading and unit, as a packed table; one it lacks is left out."""
        held = [one for one in columns if one[0] in frame]
        return {
            "length": len(frame),
            "columns": [
                {"key": name, "label": label, "unit": unit.value, "values": self.column(frame[name])}
                for name, label, unit in held
            ],
        }

    def column(self, values: pd.Series[Any]) -> dict[str, int]:
        """Return a column packed: whole numbers and reals as numbers, with NaN for what is missing, others as texts."""
        if pd.api.types.is_bool_dtype(values):
            return self.pack.texts(["yes" if one is True else "no" for one in values.astype(object)])
        if pd.api.types.is_integer_dtype(values):
            if not values.isna().any():
                return self.pack.whole(values.to_numpy(np.int64))
            return self.pack.real(values.to_numpy(np.float64, na_value=np.nan), exactly=True)
        if pd.api.types.is_float_dtype(values):
            return self.pack.real(values.to_numpy(np.float64))
        return self.pack.texts("" if missing else str(one) for one, missing in zip(values, values.isna(), strict=True))


def document(one: Document) -> dict[str, Any]:
    """Return a document as plain values, for the page to write."""
    return {"title": exact(one.title), "verdict": exact(one.verdict), "alarming": one.alarming,
            "sections": [section(part) for part in one.sections if part]}  # fmt: skip


def section(one: Section) -> dict[str, Any]:
    """Return a section of a document as plain values."""
    return {
        "title": exact(one.title),
        "facts": [[exact(fact.label), exact(fact.value), fact.unit.value] for fact in one.facts],
        "grids": [
            {
                "title": exact(grid.title),
                "fields": [[exact(field.label), field.unit.value] for field in grid.fields],
                "rows": exact_rows(grid.rows),
            }
            for grid in (grid.for_people() for grid in one.grids if grid.rows)
        ],
        "sentences": [exact(_HINT.sub("", sentence)) for sentence in one.sentences],
    }
