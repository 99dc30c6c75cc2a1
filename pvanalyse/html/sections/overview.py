"""The summary, every metric, and the insights."""

from __future__ import annotations

from typing import Any

from pvanalyse.analysis.metrics import metric_spec
from pvanalyse.html.pack import exact
from pvanalyse.html.sections.source import Making, document
from pvanalyse.render.insights import insights_document
from pvanalyse.render.summary import summary_document

_UNITS = {"bytes": "bytes", "cycles": "cycles", "count": "count", "fraction": "fraction", "s": "s", "Hz": "Hz",
          "bytes/s": "bytes/s"}  # fmt: skip


def summary(making: Making) -> dict[str, Any]:
    """Return the summary as a document, and the metrics as rows of name, value, unit and meaning."""
    rows = []
    for name, value in making.report.metrics().items():
        spec = metric_spec(name)
        unit, doc = (spec.unit, spec.doc) if spec else ("", "")
        rows.append([exact(name), exact(value), _UNITS.get(unit, ""), exact(doc)])
    return {"document": document(summary_document(making.report.summary())), "metrics": rows}


def insights(making: Making) -> dict[str, Any]:
    """Return what stands out: each finding as a section of a document, with the tiles it is about."""
    found = making.report.insights()
    return {
        "document": document(insights_document("", found, making.units)),
        "tiles": [list(one.tiles) for one in found],
        "severities": [one.severity for one in found],
    }
