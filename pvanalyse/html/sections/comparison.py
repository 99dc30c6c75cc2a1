"""What differs between the two reports of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pvanalyse.analysis.comparison import Comparison
from pvanalyse.errors import NotCaptured
from pvanalyse.html.sections.source import Reported, document
from pvanalyse.render.comparison import View
from pvanalyse.render.parts import Part, Rows
from pvanalyse.units import ByteUnits

_PARTS = ("why", "categories", "ipus", "tiles", "variables", "peak", "operations", "programs", "vertices")
"""The parts that are shown; the page has the metrics anyway."""


def comparison(reports: Sequence[tuple[str, Reported]], units: ByteUnits) -> dict[str, Any]:
    """Return a document on what differs, as far as both reports captured it."""
    compared = Comparison([report for _, report in reports], [name for name, _ in reports])
    view = View(compared, rows=Rows(usual=50), units=units)
    found: list[Part] = []
    missing: dict[str, NotCaptured] = {}
    for name in _PARTS:
        try:
            found.append(view.part(name)())
        except NotCaptured as error:
            missing[name] = error
    return document(view.document(found, missing))
