"""What ``pvanalyse operations`` can show, analysed and made ready to be written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pvanalyse.analysis import operations
from pvanalyse.analysis.operation_costs import OperationCosts
from pvanalyse.analysis.operation_groups import OperationGroups, operation_groups
from pvanalyse.render import operations as view
from pvanalyse.render.parts import Part, Rows

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.tables import TableSource


@dataclass(frozen=True)
class OperationsQuestion:
    """What was asked.

    Attributes
    ----------
    source
        A report.
    by
        What there is a row for: ``operation``, ``layer``, ``module``, ``source`` or ``file``.
    layer
        The layer whose contexts are operations, None for the outermost of a framework.
    depth
        How many parts of names make a module.
    match
        A regular expression that names must match, None for all.
    show
        Which costs people see, or ``tensors``.
    sort
        What comes first, None for what is usual.
    top
        How many rows of a list, None for what is usual.
    discarded
        Whether discarded operations count.
    """

    source: TableSource
    by: str
    layer: str | None
    depth: int
    match: str | None
    show: str
    sort: str | None
    top: int | None
    discarded: bool

    @cached_property
    def groups(self) -> OperationGroups:
        """The operations."""
        return operation_groups(self.source, self.layer, self.discarded)

    @cached_property
    def costs(self) -> OperationCosts:
        """What programs and variables cost."""
        return OperationCosts(self.source)

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        return view.verdict(self.groups.frame, self.groups.grouped_by)

    def parts(self) -> list[Part]:
        """Return the parts of the answer."""
        rows = Rows(self.top)
        if self.by == "layer":
            return [view.layers(operations.layers_frame(self.source), Rows(self.top, None))]
        if self.show == "tensors":
            return [view.tensors(operations.tensors_frame(self.source, self.groups, self.match), self.match, rows)]
        frame = view.ordered(self._frame(), self.sort)
        part = view.costs(self.by, frame, self.show, self.match, rows)
        whole = self.match is None and self.by == "operation"
        return [part, view.outside(operations.outside(self.costs, self.groups))] if whole else [part]

    def _frame(self) -> pd.DataFrame:
        asked = self.costs, self.groups
        if self.by == "module":
            return operations.by_module(*asked, self.depth, self.match)
        if self.by in ("source", "file"):
            return operations.by_source(*asked, "line" if self.by == "source" else "file", self.match)
        return operations.by_operation(*asked, self.match)
