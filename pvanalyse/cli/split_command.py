"""``pvanalyse split``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import regular_expression, show_option, size, top_option

if TYPE_CHECKING:
    from pvanalyse.report import Report

_SHOWN = ("stages", "layers", "traffic", "shared")


@click.command("split")
@report_options
@click.option("--ipus", "num_ipus", type=click.IntRange(1), required=True, metavar="N",
              help="How many IPUs the pipeline may have, one for each stage.")  # fmt: skip
@click.option("--layer-regex", metavar="REGEX", callback=regular_expression,
              help="What tells layers apart: found in an operation's name, what its first group matched, or all of it "
                   "without groups, is the layer. Operations without one are left out. Default: as much of the path "
                   "of the name as it takes.")  # fmt: skip
@click.option("--method", type=click.Choice(["exact", "greedy"]), default="exact", show_default=True,
              help="exact: the fullest tile is the least full that is possible; greedy: stages are filled one after "
                   "another, as published splitters do.")  # fmt: skip
@click.option("--limit", metavar="SIZE", callback=size,
              help="What a tile may hold, such as '500 KiB'; default: its memory.")  # fmt: skip
@show_option(_SHOWN)
@top_option
def command(report: Report, output: Output, num_ipus: int, layer_regex: str | None, method: str, limit: int | None,
            show: tuple[str, ...], top: int | None) -> None:  # fmt: skip
    """Propose where to split a program for one IPU into the stages of a pipeline.

    REPORT is of a program that was compiled for one IPU, most often one that does not fit; it need not have run. Layers
    stay whole and in order. Without --show: the stages with what their fullest tiles hold, the layers, what stages send
    each other, and the variables that several stages use.

    The numbers are an estimate of the code, vertex state and variables of each stage, from how they were laid out on
    one IPU. It needs lowered variables.
    """
    from pvanalyse.analysis.splitting.pipeline_split import pipeline_split
    from pvanalyse.render.parts import Rows, together
    from pvanalyse.render.split import PARTS, about, verdict

    split = pipeline_split(report, num_ipus, layer_regex, method, limit)
    wanted = list(dict.fromkeys(show)) or list(_SHOWN)
    parts = [PARTS[name](split, Rows(top, None) if name == "stages" else Rows(top)) for name in wanted]
    said = about(split, str(report.files.directory), layer_regex)
    output.write(together(parts, said, {}, verdict(split, output.units), as_table=bool(show)))
