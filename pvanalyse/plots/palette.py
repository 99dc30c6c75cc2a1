"""Colours: one for each thing, the same in every plot, and told apart without seeing red and green.

The hues of what is known are those of Okabe and Ito, "Color Universal Design" (2008); those of unknown categories are
from Paul Tol's "muted" scheme (SRON/EPS/TN/09-002, 2021). There are more categories than colours that anyone can tell
apart, so a hatch makes the rarer ones: kin share a hue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

_BLUE, _SKY, _GREEN, _YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
_ORANGE, _VERMILION, _PURPLE, _GREY = "#E69F00", "#D55E00", "#CC79A7", "#555555"

LIMIT = "#B00020"
"""Lines that must not be crossed, and what is beyond them."""
INK = "#333333"
"""Lines and text on the data."""
ACCENT = _BLUE
"""Bars and areas of plots with one series."""
REST = "#BBBBBB"
"""What was put together because there was too much of it."""

_DARK = 0.45


@dataclass(frozen=True, slots=True)
class Style:
    """How an area is filled."""

    colour: str
    hatch: str = ""

    def patch(self) -> dict[str, Any]:
        """Return keyword arguments of a matplotlib patch or collection."""
        # Matplotlib draws a hatch in the colour of the edge, and an edge of no width not at all.
        filled: dict[str, Any] = {"facecolor": self.colour, "linewidth": 0.0}
        ink = "#FFFFFFA0" if _brightness(self.colour) < _DARK else "#000000A0"
        return {**filled, "hatch": self.hatch, "edgecolor": ink} if self.hatch else filled


def _brightness(colour: str) -> float:
    """Return the luma of ITU-R BT.601, 0 to 1."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


CATEGORIES = {
    "variable": Style(_SKY),
    "vertexInstanceState": Style(_ORANGE),
    "internalExchangeCode": Style(_GREEN),
    "controlCode": Style(_VERMILION),
    "vertexCode": Style(_BLUE),
    "vertexFieldData": Style(_PURPLE),
    "stack": Style(_YELLOW),
    "instrumentationResults": Style(_GREY),
    "message": Style(_SKY, "////"),
    "hostMessage": Style(_SKY, "...."),
    "globalMessage": Style(_SKY, "xxxx"),
    "constant": Style(_BLUE, "////"),
    "sharedCodeStorage": Style(_BLUE, "...."),
    "sharedDataStorage": Style(_PURPLE, "...."),
    "vectorListDescriptor": Style(_PURPLE, "////"),
    "copyDescriptor": Style(_ORANGE, "////"),
    "globalExchangeCode": Style(_GREEN, "////"),
    "hostExchangeCode": Style(_GREEN, "...."),
    "internalExchangePacketHeader": Style(_YELLOW, "xxxx"),
    "globalExchangePacketHeader": Style(_YELLOW, "////"),
    "hostExchangePacketHeader": Style(_YELLOW, "...."),
    "controlId": Style(_VERMILION, "////"),
    "controlTable": Style(_VERMILION, "...."),
}
"""Storage categories that Poplar's documents, or programs that read its profiles, name."""

PARTS = {
    "non_interleaved": Style(_BLUE),
    "interleaved": Style(_SKY),
    "overflowed": Style(_VERMILION),
    "always_live": Style(_BLUE),
    "not_always_live": Style(_ORANGE),
    "shared": Style("#C9E4F6"),
    "gaps": Style("#ECECEC"),
    "rest": Style(REST),
}
"""Parts of a tile's memory that are not categories."""

_UNKNOWN = tuple(
    Style(colour, hatch)
    for hatch in ("\\\\\\\\", "++++", "oo", "||||")
    for colour in ("#332288", "#88CCEE", "#44AA99", "#999933", "#DDCC77", "#882255", "#AA4499")
)


def category_styles(names: Iterable[str]) -> dict[str, Style]:
    """Return the style of each category.

    A category that is not known gets one that no known one has, chosen by its name; when two of a plot would get the
    same, the later by name gets the next that is free.
    """
    wanted = set(names)
    styles = {name: CATEGORIES[name] for name in wanted & CATEGORIES.keys()}
    taken: set[int] = set()
    for name in sorted(wanted - CATEGORIES.keys()):
        digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest()
        at = int.from_bytes(digest) % len(_UNKNOWN)
        while at in taken and len(taken) < len(_UNKNOWN):
            at = (at + 1) % len(_UNKNOWN)
        taken.add(at)
        styles[name] = _UNKNOWN[at]
    return styles
