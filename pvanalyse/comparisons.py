"""``pvanalyse.compare``: reports compared, in Python and in notebooks."""

from __future__ import annotations

from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from pvanalyse.analysis.comparison import Comparison
from pvanalyse.errors import PvanalyseError
from pvanalyse.report import Report, StrPath, open_report

if TYPE_CHECKING:
    from pvanalyse.plots.comparison import ComparisonPlots


def compare(*reports: Report | StrPath) -> ReportComparison:
    """Compare reports, each with the first.

    Parameters
    ----------
    reports
        Two or more: open reports, or paths as :func:`pvanalyse.open_report` takes them.

    Raises
    ------
    UsageError
        There are too few or too many reports.
    ReportNotFound
        There is no report at a path.
    """
    opened = [one if isinstance(one, Report) else open_report(one) for one in reports]
    return ReportComparison(opened, [one for one, given in zip(opened, reports, strict=True) if one is not given])


class ReportComparison(Comparison):
    """What differs between reports; in a notebook it shows itself. A context manager; :func:`compare` makes one.

    See :class:`pvanalyse.analysis.comparison.Comparison` for the frames: ``metrics``, ``categories``, ``variables`` …
    """

    def __init__(self, reports: list[Report], owned: list[Report] | None = None) -> None:
        super().__init__(reports, [str(report.files.directory) for report in reports])
        self._owned = owned or []

    def __enter__(self) -> ReportComparison:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the reports that :func:`compare` opened; what was read already stays."""
        for report in self._owned:
            report.close()

    @cached_property
    def plot(self) -> ComparisonPlots:
        """The plots: ``comparison.plot.tiles()``, ``.liveness()`` and ``.contributions(metric)``, which return Axes."""
        from pvanalyse.plots.comparison import ComparisonPlots

        return ComparisonPlots(self)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(map(repr, self.names))}>"

    def _repr_html_(self) -> str:
        from pvanalyse.plots import COMPARISON_KINDS
        from pvanalyse.plots.inline import pictures
        from pvanalyse.render.comparison import overview
        from pvanalyse.render.html import render_html

        try:
            return render_html(overview(self)) + pictures(COMPARISON_KINDS.values(), self)
        except PvanalyseError as error:
            return f"<p>Reports that cannot be compared: {escape(str(error))}</p>"
