"""Everything that a page knows of a report, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pvanalyse.analysis.selection import select_tiles
from pvanalyse.errors import PvanalyseError, UnreadableFile
from pvanalyse.html.limits import Limits
from pvanalyse.html.pack import Packer, exact
from pvanalyse.html.sections import execution, liveness, memory, overview, programs
from pvanalyse.html.sections.source import Making, Reported
from pvanalyse.units import ByteUnits

SECTIONS: Mapping[str, Callable[[Making], dict[str, Any]]] = {
    "summary": overview.summary,
    "insights": overview.insights,
    "memory": memory.by_tile,
    "tiles": memory.tiles,
    "liveness": liveness.curve,
    "programs": programs.tree,
    "operations": programs.operations,
    "timeline": execution.timeline,
    "statistics": execution.statistics,
}
"""What makes each section of a page, by the name that its program knows it by."""


def payload(
    report: Reported, name: str, limits: Limits, units: ByteUnits, tiles: str | Sequence[int] | None = None
) -> bytes:
    """Return what a page holds of a report, see :mod:`pvanalyse.html.pack`.

    A section whose data was not captured, or cannot be, is a sentence that says so.

    Parameters
    ----------
    report
        The report.
    name
        What the page calls it.
    limits
        How much of it.
    units
        Of sizes within sentences.
    tiles
        Tiles whose memory maps are wanted besides the most telling ones.

    Raises
    ------
    UnreadableFile
        A file of the report is damaged.
    UsageError
        The report has no such tile.
    """
    packer = Packer()
    making = Making(report, packer, limits, units)
    if tiles is not None:
        chosen = select_tiles(report, tiles)
        making.tiles = [] if chosen is None else chosen.tolist()
    sections: dict[str, Any] = {}
    for key, make in SECTIONS.items():
        making.left_out = []
        try:
            sections[key] = {**make(making), "leftOut": [exact(sentence) for sentence in making.left_out]}
        except UnreadableFile:
            raise
        except PvanalyseError as error:
            sections[key] = {"missing": exact(str(error))}
    return packer.finish({"name": exact(name), "sections": sections})
