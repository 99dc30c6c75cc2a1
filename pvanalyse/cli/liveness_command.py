"""``pvanalyse liveness``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import asked, regular_expression, show_option, size, top_option, usual
from pvanalyse.cli.tiles import TileSelection, tile_options
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.report import Report

_OF_TILES = ("peaks", "at-peak", "always-live", "tiles", "curve")
_USUAL = (*_OF_TILES, "fp16")
_OPTIONS = {"step": "at-step", "pair": "difference", "pattern": "lifetimes", "reduce_by": "reduction"}
_OF_REPLICA = {"fp16": "--show fp16", "difference": "--diff", "lifetimes": "--variable", "reduction": "--reduce-by"}


@click.command("liveness")
@report_options
@tile_options
@show_option(_USUAL)
@click.option("--step", type=click.IntRange(0), metavar="STEP", help="Show the variables that are live at this step.")
@click.option("--diff", "pair", type=(click.IntRange(0), click.IntRange(0)), metavar="STEP STEP",
              help="Show what is live at one step and not, or less, at the other.")  # fmt: skip
@click.option("--variable", "pattern", metavar="REGEX", callback=regular_expression,
              help="Show when the variables are live in whose name this regular expression is found.")  # fmt: skip
@click.option("--reduce-by", metavar="SIZE", callback=size,
              help="Show variables without which the peak would be lower by SIZE, such as '2 MiB'.")  # fmt: skip
@click.option("--peaks", "num_peaks", type=click.IntRange(1), default=3, show_default=True, metavar="N",
              help="How many peaks.")  # fmt: skip
@click.option("--always-live", is_flag=True, help="Add what is always live to the curve and to the peaks.")
@top_option
def command(report: Report, output: Output, selection: TileSelection, show: tuple[str, ...],
            **options: Any) -> None:  # fmt: skip
    """Show when the bytes are live: the peaks over the steps, what makes them, and what would lower them.

    Without --show, --step, --diff, --variable or --reduce-by: the peaks with what runs there, the largest variables at
    the highest, those that are always live, the tiles with the highest peaks, the curve, and variables that could be in
    half precision.

    Numbers are of one replica; with tiles chosen, of these, which needs lowered variables. CSV is one table when one
    thing is asked for.
    """
    wanted = _wanted(show, options, selection)

    from pvanalyse.cli.liveness_parts import LivenessQuestion
    from pvanalyse.render.liveness import verdict
    from pvanalyse.render.parts import together

    question = LivenessQuestion(report, selection.of(report), byte_units=output.units, **options)
    if wanted:
        found, missing = asked(wanted, question.part)
    else:
        found, missing = usual(_OF_TILES if selection else _USUAL, question.part)
    has_peaks = not wanted and any(part.key == "peaks" for part in found)
    said = verdict(question.peaks, question.scope, output.units) if has_peaks else ""
    chosen = None if question.tiles is None else question.tiles.tolist()
    about = {"report": str(report.files.directory), "tiles_chosen": chosen}
    output.write(together(found, about, missing, (said, False), as_table=bool(wanted)))


def _wanted(show: tuple[str, ...], options: Mapping[str, Any], selection: TileSelection) -> list[str]:
    """Return what was asked for by name, in order."""
    wanted = list(dict.fromkeys([*show, *(part for name, part in _OPTIONS.items() if options[name] is not None)]))
    for part in wanted:
        if selection and part in _OF_REPLICA:
            raise UsageError(f"{_OF_REPLICA[part]} cannot be about chosen tiles; leave out {selection}")
    return wanted
