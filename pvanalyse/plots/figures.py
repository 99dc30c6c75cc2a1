"""Figures: where they come from, the texts on them, and how they become files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from pvanalyse.errors import UsageError
from pvanalyse.names import printable, shorten
from pvanalyse.plots import FORMATS

_SHOWING = ("inline", "ipympl", "nbagg", "widget", "notebook")
_MOST_PIXELS = 100_000_000  # 400 MB while it is drawn
_SMALL = 8.0


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the Axes to draw into: those given, or those of a new figure.

    A new figure belongs to pyplot only where pyplot shows figures by itself, which is in a notebook and with an
    interactive backend that is in use already; there it is shown like any other. Elsewhere nothing but the Axes holds
    it, so a program that makes thousands leaks none.

    Parameters
    ----------
    ax
        Axes to draw into, or None.
    size
        Width and height of a new figure, in inches.
    """
    if ax is not None:
        return ax
    if _shows_figures():
        from matplotlib import pyplot as plt

        return plt.figure(figsize=size, layout="constrained").add_subplot()
    return figure_axes(size)


@contextmanager
def plain_style() -> Iterator[None]:
    """Draw alike on every machine within the block, whatever a user's matplotlibrc says."""
    from matplotlib import style

    with style.context("default"):
        yield


def figure_axes(size: tuple[float, float], dpi: float = 100) -> Axes:
    """Return the Axes of a new figure that pyplot does not know.

    Parameters
    ----------
    size
        Width and height in inches.
    dpi
        Pixels per inch that it will be drawn with: how many columns of data there is room for depends on it.
    """
    return Figure(figsize=size, dpi=dpi, layout="constrained").add_subplot()


def _shows_figures() -> bool:
    from matplotlib.backends.registry import BackendFilter, backend_registry

    chosen = mpl.get_backend(auto_select=False)
    if chosen is None:
        return False
    name = str(chosen).lower()
    interactive = {one.lower() for one in backend_registry.list_builtin(BackendFilter.INTERACTIVE)}  # type: ignore[no-untyped-call]
    return name in interactive or any(part in name for part in _SHOWING)


def picture(axes: Axes, file_format: str, dpi: float = 150) -> bytes:
    """Return the figure of some Axes as the contents of a file, the same whenever it is made.

    Parameters
    ----------
    axes
        Any Axes of the figure.
    file_format
        ``png``, ``svg`` or ``pdf``.
    dpi
        Pixels per inch, of a PNG.

    Raises
    ------
    UsageError
        There is no such format, or the picture would have more pixels than can be drawn.
    """
    if file_format not in FORMATS:
        raise UsageError(f"a picture is {', '.join(FORMATS)}, not '{printable(file_format)}'")
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = (round(inches * dpi) for inches in figure.get_size_inches())
    if file_format == "png" and (max(width, height) >= 1 << 16 or width * height > _MOST_PIXELS):
        raise UsageError(f"a picture of {width:,} × {height:,} pixels is too large")
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    out = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "pvanalyse"}), warnings.catch_warnings():
        # Too small a figure for its texts is still a picture.
        warnings.filterwarnings("ignore", message=".*(constrained_layout|tight_layout) not applied")
        figure.savefig(out, format=file_format, dpi=dpi, metadata=metadata[file_format])
    return out.getvalue()


# ----------------------------------------------------------------------------------------------------------- texts


def label(name: str, width: int = 60) -> str:
    """Return a name from a report for a picture: on one line, not too long, of characters that the font has."""
    return "".join(char if _has(ord(char), _font()) else _escape(char) for char in shorten(printable(name), width))


def _font() -> str:
    return str(findfont(FontProperties(family=mpl.rcParams["font.family"])))


@lru_cache(maxsize=4096)
def _has(code: int, font: str) -> bool:
    return code < 0x7F or get_font(font).get_char_index(code) != 0


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def titles(ax: Axes, title: str, remark: str = "") -> None:
    """Set the title, and below it a remark in smaller type; both are taken as they are, without TeX."""
    below = "\n" * (remark.count("\n") + 1) if remark else ""
    ax.set_title(title + below, loc="left", fontsize="large", parse_math=False, pad=8)
    if remark:
        ax.annotate(remark, (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", ha="left",
                    va="bottom", fontsize="small", color="#444444", parse_math=False)  # fmt: skip


def caption(ax: Axes, sentences: Sequence[str]) -> None:
    """Write below the Axes what has to be known to read them right."""
    text = "\n".join(sentence for sentence in sentences if sentence)
    if text and ax.get_xlabel():
        ax.annotate(text, (0.5, 0), (0, -3), xycoords=ax.xaxis.label, textcoords="offset points", ha="center",
                    va="top", fontsize="small", color="#444444", parse_math=False, linespacing=1.4)  # fmt: skip
    elif text:
        ax.set_xlabel(text, fontsize="small", color="#444444", parse_math=False, linespacing=1.4)


def legend(ax: Axes, handles: Sequence[Artist], **options: Any) -> None:
    """Place a legend to the right of the data; labels are taken as they are, without TeX."""
    placed = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "frameon": False}
    # Matplotlib leaves out labels that begin with an underscore, so names come afterwards.
    shown = ax.legend(list(handles), ["name"] * len(handles), fontsize="small", **{**placed, **options})
    for text, handle in zip(shown.get_texts(), handles, strict=True):
        text.set_parse_math(False)
        text.set_text(str(handle.get_label()))


def row_labels(ax: Axes, names: Sequence[str], *, numbers: Sequence[str] = ()) -> None:
    """Label rows 0, 1, … from the top with names on the left, and numbers on the right when there are any.

    Type shrinks with the rows; where it would become unreadable, only every second (third, …) row is labelled.
    """
    points = ax.get_window_extent().height / _dpi(ax) * 72 / max(1, len(names))
    every = max(1, int(-(-_SMALL * 0.75 // max(points, 0.01))))
    size = min(9.0, max(_SMALL * 0.6, points * every * 0.8))
    rows = range(0, len(names), every)
    ax.set_yticks(list(rows), [names[row] for row in rows], fontsize=size, parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    for row in rows if numbers else ():
        ax.annotate(numbers[row], (1, row), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    va="center", ha="left", fontsize=size, color="#444444", parse_math=False)  # fmt: skip


def name_width(ax: Axes) -> int:
    """Return how many characters of a name leave at least half of the Axes to the data."""
    return min(80, max(16, int(ax.get_window_extent().width / _dpi(ax) * 6.5)))


def pixel_columns(ax: Axes) -> int:
    """Return how many columns of data can be told apart in the Axes once labels and legend took their share."""
    return max(50, int(ax.get_window_extent().width * 0.8))


def pixel_rows(ax: Axes) -> int:
    """Return how many rows of data can be told apart in the Axes."""
    return max(50, int(ax.get_window_extent().height * 0.9))


def _dpi(ax: Axes) -> float:
    figure = ax.get_figure(root=True)
    return figure.dpi if figure is not None else 100.0
