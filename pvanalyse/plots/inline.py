"""Pictures within a piece of HTML, for what notebooks show of a report."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape

from pvanalyse.errors import PvanalyseError
from pvanalyse.names import printable
from pvanalyse.plots import Kind
from pvanalyse.plots.figures import figure_axes, picture

_DPI = 72  # small: a notebook keeps what it shows


def pictures(kinds: Iterable[Kind], about: object) -> str:
    """Return plots of a report, or of a comparison, as images; those that cannot be drawn of it are left out."""
    return "".join(_picture(kind, about) for kind in kinds)


def _picture(kind: Kind, about: object) -> str:
    try:
        axes = kind.load()(about, ax=figure_axes(kind.size, _DPI))
    except PvanalyseError:  # not captured, or cannot be
        return ""
    contents = b64encode(picture(axes, "png", _DPI)).decode("ascii")
    return f'<img alt="{escape(printable(axes.get_title(loc="left").strip()))}" src="data:image/png;base64,{contents}">'
