"""``pvanalyse plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pvanalyse.cli.options import Output
from pvanalyse.cli.progress import progress
from pvanalyse.cli.streams import write_file
from pvanalyse.errors import UsageError
from pvanalyse.plots import FORMATS, KINDS, Kind
from pvanalyse.units import BYTE_UNITS, ByteUnits

_LIST = "\n".join(f"  {name:<16}{kind.doc}" for name, kind in KINDS.items())


@click.command(
    "plot", help=f"Draw a report into a PNG, SVG or PDF file.\n\nKIND is one of:\n\n\b\n{_LIST}\n\n"
    "An option that a kind has no use for is refused.",
)  # fmt: skip
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument("path", metavar="REPORT")
@click.option("--output", "-o", "file", required=True, metavar="FILE", help="The picture; its suffix says the format.")
@click.option("--format", "-f", "file_format", type=click.Choice(FORMATS),
              help="The format, whatever the suffix.")  # fmt: skip
@click.option("--by", type=click.Choice(["category", "region", "liveness"]),
              help="What memory-by-tile stacks: category (default), region or liveness.")  # fmt: skip
@click.option("--column", metavar="NAME",
              help="What tile-map and tile-histogram show: a column of bytes of the table tile_memory, such as "
                   "always_live_bytes. Default: total_including_gaps.")  # fmt: skip
@click.option("--tiles", metavar="LIST", help="Only these tiles, such as 0,5,100-200.")
@click.option("--ipu", type=int, multiple=True, metavar="N", help="Only this IPU, or its tiles. Repeatable.")
@click.option("--worst", type=click.IntRange(1), metavar="N", help="Only the N fullest tiles.")
@click.option("--tile", type=click.IntRange(0), metavar="N",
              help="The tile that memory-map shows. Default: the fullest.")  # fmt: skip
@click.option("--always-live", is_flag=True, default=None, help="Show what is always live below the liveness.")
@click.option("--step", type=click.IntRange(0), metavar="N",
              help="The step whose variables peak-variables shows. Default: the peak.")  # fmt: skip
@click.option("--count", type=click.IntRange(1, 1000), metavar="N", help="How many variables or programs to show.")
@click.option("--pattern", metavar="REGEX", help="Only variables with this regular expression in their name.")
@click.option("--view", type=click.Choice(["flat", "flame"]),
              help="What timeline shows: a row per kind (default), or nested groups.")  # fmt: skip
@click.option("--run", type=int, multiple=True, metavar="ID", help="Only this run of the execution. Repeatable.")
@click.option("--begin", type=click.IntRange(0), metavar="CYCLE", help="The window's first cycle.")
@click.option("--end", type=click.IntRange(0), metavar="CYCLE", help="The cycle after the window's last.")
@click.option("--width", type=click.FloatRange(2, 200), metavar="INCHES", help="Width of the picture.")
@click.option("--height", type=click.FloatRange(1, 200), metavar="INCHES", help="Height of the picture.")
@click.option("--dpi", type=click.FloatRange(20, 2400), default=150, show_default=True, metavar="N",
              help="Pixels per inch of a PNG.")  # fmt: skip
@click.option("--units", type=click.Choice(BYTE_UNITS), default="binary", show_default=True, help="Units of sizes.")
@click.option("--dialect", type=click.Path(), metavar="FILE", help="Read profile.pop through this dialect.")
@click.option("--debug-info", type=click.Path(), metavar="FILE", help="Use this debug.cbor.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks on standard error.")
def command(kind: str, path: str, file: str, file_format: str | None, width: float | None, height: float | None,
            dpi: float, units: ByteUnits, dialect: str | None, debug_info: str | None, force: bool, quiet: bool,
            **options: Any) -> None:  # fmt: skip
    """Check what was asked for, draw, and write the file whole or not at all."""
    drawn = KINDS[kind]
    given = _given(kind, drawn, options)
    target = Path(file)
    file_format = file_format or _format_of(target)
    output = Output((), units, quiet, force)
    output.refuse_to_overwrite(target)
    from pvanalyse.plots.figures import figure_axes, picture, plain_style
    from pvanalyse.report import open_report

    with progress(quiet) as shown, open_report(path, dialect, debug_info, shown.update) as report, plain_style():
        size = (width or drawn.size[0], height or drawn.size[1])
        axes = drawn.load()(report, **given, units=units, ax=figure_axes(size, dpi))
        contents = picture(axes, file_format, dpi)
        shown.stop()
        write_file(target, contents)
        output.note(report.warnings)


def _given(kind: str, drawn: Kind, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given.

    Raises
    ------
    UsageError
        One of them is not for this kind of plot.
    """
    given = {name: value for name, value in options.items() if value is not None and value != ()}
    for name in given:
        if name not in drawn.options:
            usable = ", ".join(_flag(one) for one in drawn.options)
            raise UsageError(f"{_flag(name)} is not for {kind}, which has: {usable}")
    return given


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _format_of(path: Path) -> str:
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise UsageError(f"{path}: a picture's name ends in {', '.join('.' + one for one in FORMATS)}; or use --format")
    return suffix
