"""The page itself: its frame, its program, its style, the charting library and the reports, in one file."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from os import PathLike, fspath
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from pvanalyse import __version__
from pvanalyse.errors import UsageError
from pvanalyse.html.limits import Limits
from pvanalyse.html.pack import Packer
from pvanalyse.html.payload import payload
from pvanalyse.html.sections.comparison import comparison
from pvanalyse.html.sections.source import Reported
from pvanalyse.names import printable
from pvanalyse.units import ByteUnits

_ASSETS = Path(__file__).parent / "assets"
_TWO = 2
_CORE = ("decode", "format", "dom", "table", "app", "chart", "canvas", "live")
VIEWS = ("summary", "compare", "insights", "memory", "tile_map", "tile", "liveness", "lifetimes", "programs",
         "operations", "timeline", "statistics")  # fmt: skip
"""The views in the order in which the page lists them, each a file of ``assets/views``."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes
    ----------
    text
        The whole file.
    height
        Pixels of it that a notebook shows at a time.
    """

    text: str
    height: int = 800

    def frame(self) -> str:
        """Return an element that shows the page inside another one, such as a notebook's."""
        return (
            f'<iframe srcdoc="{escape(self.text)}" sandbox="allow-scripts allow-downloads allow-modals" '
            f'style="width:100%;height:{self.height}px;border:0" title="pvanalyse"></iframe>'
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file that is not there yet.

        Raises
        ------
        UsageError
            The file is there already.
        """
        try:
            with Path(path).open("x", encoding="utf-8", newline="") as file:
                file.write(self.text)
        except FileExistsError:
            raise UsageError(f"{fspath(path)}: exists already") from None

    def _repr_html_(self) -> str:
        return self.frame()


def page(
    reports: Sequence[tuple[str, Reported]],
    limits: Limits | None = None,
    units: ByteUnits = "binary",
    tiles: str | Sequence[int] | None = None,
    live: bool = False,
) -> Page:
    """Return the page of a report, or of two beside each other.

    Parameters
    ----------
    reports
        What the page calls each report, and the report.
    limits
        How much of each goes into the page.
    units
        How sizes are written at first.
    tiles
        Tiles whose memory maps go into the page besides the most telling ones: text such as ``"0,5,100-120"``, or
        numbers; of each report.
    live
        Whether the page loads itself again when its server says that there is another, see
        :mod:`pvanalyse.html.serving`.

    Raises
    ------
    UnreadableFile
        A file of a report is damaged.
    UsageError
        A report has no such tile.
    """
    packed = [_base64(payload(report, name, limits or Limits(), units, tiles)) for name, report in reports]
    program, plotly = _program(), _plotly()
    compared = comparison(reports, units) if len(reports) == _TWO else None
    environment = Environment(
        loader=FileSystemLoader(_ASSETS), autoescape=select_autoescape(default=True), undefined=StrictUndefined
    )
    text = environment.get_template("page.html.j2").render(
        units=units,
        version=__version__,
        title=" and ".join(printable(name) for name, _ in reports),
        policy=_policy(program, plotly, connect="'self'" if live else "'none'"),
        live=live,
        style=Markup((_ASSETS / "style.css").read_text("utf-8")),  # noqa: S704  (ours)
        reports=packed,
        comparison=None if compared is None else _base64(Packer().finish(compared)),
        plotly=_packed_plotly(),
        program=Markup(program),  # noqa: S704  (ours)
    )
    return Page(text)


def _policy(*scripts: str, connect: str) -> str:
    """Return a content-security policy that allows these scripts, styles, pictures in the page, and nothing else."""
    allowed = " ".join(f"'sha256-{base64.b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; connect-src {connect}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@cache
def _program() -> str:
    """Return the program of the page: its files as one module."""
    names = [f"core/{name}.js" for name in _CORE] + [f"views/{name}.js" for name in VIEWS] + ["core/start.js"]
    return "\n".join((_ASSETS / name).read_text("utf-8") for name in names)


@cache
def _plotly() -> str:
    """Return plotly.js, as the package plotly brings it."""
    return (files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


@cache
def _packed_plotly() -> str:
    return _base64(gzip.compress(_plotly().encode(), compresslevel=9, mtime=0))


def _base64(contents: bytes) -> str:
    return base64.b64encode(contents).decode("ascii")
