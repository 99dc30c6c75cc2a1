"""``pvanalyse compare``."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, output_options
from pvanalyse.cli.progress import progress
from pvanalyse.cli.sections import asked, regular_expression, show_option, top_option, usual
from pvanalyse.cli.streams import write_file
from pvanalyse.errors import UsageError
from pvanalyse.plots import COMPARISON_KINDS, FORMATS

if TYPE_CHECKING:
    from pvanalyse.comparisons import ReportComparison

_PARTS = ("why", "metrics", "categories", "ipus", "tiles", "variables", "peak", "layers", "operations", "vertices",
          "compute-sets", "exchanges", "programs")  # fmt: skip
_DPI = 150


@click.command("compare")
@click.argument("paths", metavar="A B [C ...]", nargs=-1, required=True)
@click.option("--dialect", type=click.Path(), metavar="FILE", help="Read each profile.pop through this dialect.")
@show_option(_PARTS)
@click.option("--why", "explained", multiple=True, metavar="METRIC",
              help="Say what changed this metric. Repeatable. Default: the fullest tile, the total, the liveness peak "
                   "and the cycles, where they differ.")  # fmt: skip
@click.option("--match", metavar="REGEX", callback=regular_expression,
              help="Only metrics, variables, programs and so on in whose name this regular expression is "
                   "found.")  # fmt: skip
@top_option
@click.option("--plot", "plots", multiple=True, metavar="KIND:FILE",
              help=f"Draw into a PNG, SVG or PDF file: {', '.join(COMPARISON_KINDS)}; the last is of the metric that "
                   "--why names first. Repeatable.")  # fmt: skip
@output_options
def command(paths: tuple[str, ...], dialect: str | None, show: tuple[str, ...], explained: tuple[str, ...],
            match: str | None, top: int | None, plots: tuple[str, ...], output: Output) -> None:  # fmt: skip
    """Compare reports, each with the first: metric by metric, what changed them, and what grew, came and went.

    Rows are matched by names from which the compiler's numbering is taken away; those that not all reports have are
    listed as such. Reports of different targets are compared as far as that makes sense.

    CSV is one table when one thing is asked for.
    """
    pictures = [_picture(one, output) for one in plots]
    wanted = list(dict.fromkeys([*show, *(["why"] if explained and show else [])]))

    from pvanalyse.comparisons import compare
    from pvanalyse.render.comparison import USUAL, View
    from pvanalyse.render.parts import Rows
    from pvanalyse.report import open_report

    with progress(output.quiet) as shown, ExitStack() as stack:
        reports = [stack.enter_context(open_report(path, dialect, None, shown.update)) for path in paths]
        compared = compare(*reports)
        view = View(compared, match, Rows(top), explained, output.units)
        found, missing = asked(wanted, view.part) if wanted else usual(USUAL, view.part)
        document = view.document(found, missing, as_table=bool(wanted))
        drawn = [(target, _drawn(compared, kind, target, explained, output)) for kind, target in pictures]
        replace(output, settle=shown.stop).write(document)
        for target, contents in drawn:
            write_file(target, contents)
        output.note([warning for report in reports for warning in report.warnings])


def _picture(text: str, output: Output) -> tuple[str, Path]:
    """Return the kind and the file of a picture.

    Raises
    ------
    UsageError
        There is no such kind of plot or of file, or the file cannot be written.
    """
    kind, _, path = text.partition(":")
    if kind not in COMPARISON_KINDS:
        raise UsageError(f"--plot: '{kind}' is none of {', '.join(COMPARISON_KINDS)}")
    target = Path(path)
    if target.suffix.removeprefix(".") not in FORMATS:
        raise UsageError(f"--plot: '{text}' names no file that ends in {', '.join('.' + one for one in FORMATS)}")
    output.refuse_to_overwrite(target)
    return kind, target


def _drawn(compared: ReportComparison, kind: str, target: Path, explained: tuple[str, ...], output: Output) -> bytes:
    from pvanalyse.plots.figures import figure_axes, picture, plain_style

    metric = {"metric": explained[0]} if explained and "metric" in COMPARISON_KINDS[kind].options else {}
    with plain_style():
        axes = figure_axes(COMPARISON_KINDS[kind].size, _DPI)
        COMPARISON_KINDS[kind].load()(compared, **metric, units=output.units, ax=axes)
        return picture(axes, target.suffix.removeprefix("."), _DPI)
