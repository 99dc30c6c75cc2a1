"""``pvanalyse operations``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import regular_expression, top_option
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.report import Report

_GROUPS = ("operation", "layer", "module", "source", "file")
_COSTS = ("summary", "code", "memory", "execution")
_SORTED_BY = ("order", "name", "cycles", "executions", "flops", "code", "vertex-code", "exchange-code", "control-code",
              "vertex-state", "variables", "always-live", "peak")  # fmt: skip


@click.command("operations")
@report_options
@click.option("--by", type=click.Choice(_GROUPS), metavar="WHAT",
              help=f"A row for each of these: {', '.join(_GROUPS)}; source is each line. "
                   "Default: operation.")  # fmt: skip
@click.option("--layer", metavar="LAYER",
              help="Operations of this layer of the debug information, such as poplibs; '--by layer' lists them. "
                   "Default: the outermost of a framework.")  # fmt: skip
@click.option("--depth", type=click.IntRange(1), metavar="N",
              help="How many parts of names make a module. Default: 1.")  # fmt: skip
@click.option("--match", metavar="REGEX", callback=regular_expression,
              help="Only operations in whose name this regular expression is found; with '--by module', what it finds "
                   "(its first group) is the module.")  # fmt: skip
@click.option("--show", type=click.Choice([*_COSTS, "tensors"]), metavar="WHAT",
              help=f"Which costs text and Markdown show: {', '.join(_COSTS)}; or tensors, with their shapes. "
                   "JSON and CSV have all costs. Default: summary.")  # fmt: skip
@click.option("--sort", type=click.Choice(_SORTED_BY), metavar="WHAT",
              help=f"Most of this first: {', '.join(_SORTED_BY[2:])}; or by name, or in the order of execution. "
                   "Default: cycles, or memory where nothing ran.")  # fmt: skip
@top_option
@click.option("--discarded", is_flag=True, help="With the operations that PopART discarded, too.")
def command(report: Report, output: Output, by: str | None, layer: str | None, depth: int | None, match: str | None,
            show: str | None, sort: str | None, top: int | None, discarded: bool) -> None:  # fmt: skip
    """Show what operations cost: code, variables, memory at the peak, cycles, FLOPs, executions.

    An operation is what was written in the framework; all that was made of it, as debug.cbor tells, belongs to it.
    Without debug.cbor, operations are what names begin with.

    Operations that use the same vertex code each count it, so theirs adds up to more than there is. At the peak is
    what is live but not always live, on one replica. Cycles are those of all runs, over IPUs.
    """
    _check(by, depth, show, sort)

    from pvanalyse.cli.operations_parts import OperationsQuestion
    from pvanalyse.render.parts import exact_grid, together

    asked = OperationsQuestion(report, by or "operation", layer, depth or 1, match, show or "summary", sort, top,
                               discarded)  # fmt: skip
    parts = asked.parts()
    about = {"report": str(report.files.directory), "grouped_by": asked.groups.grouped_by, "layer": layer}
    document = together(parts, about, {}, (asked.verdict, False))
    output.write(document if parts[0].frame is None else replace(document, grid=exact_grid(parts[0].frame)))


def _check(by: str | None, depth: int | None, show: str | None, sort: str | None) -> None:
    """Refuse options that say nothing together."""
    if depth is not None and by != "module":
        raise UsageError("--depth says what a module is: use it with '--by module'")
    if show == "tensors" and by not in (None, "operation"):
        raise UsageError("--show tensors is by operation")
    if by == "layer" and (show is not None or sort is not None):
        raise UsageError("--by layer only counts: --show and --sort do not go with it")
