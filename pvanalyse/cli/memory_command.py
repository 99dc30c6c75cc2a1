"""``pvanalyse memory``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import asked, regular_expression, show_option, top_option, usual
from pvanalyse.cli.tiles import TileSelection, tile_options
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.report import Report

_USUAL = ("totals", "ipus", "tiles", "categories", "distribution", "out-of-memory")
_NAMED = ("vertices", "compute-sets", "exchanges", "variables")


@click.command("memory")
@report_options
@tile_options
@show_option((*_USUAL, *_NAMED, "map"))
@click.option("--match", metavar="REGEX", callback=regular_expression,
              help="Only vertices, compute sets, exchanges and variables in whose name this regular expression is "
                   "found; shows these four when --show does not choose among them.")  # fmt: skip
@top_option
@click.option("--map", "tile", type=click.IntRange(0), metavar="TILE",
              help="Show what lies where on this tile. '--show map' alone does so for the fullest.")  # fmt: skip
def command(report: Report, output: Output, selection: TileSelection, show: tuple[str, ...], match: str | None,
            top: int | None, tile: int | None) -> None:  # fmt: skip
    """Show where the bytes are: on which IPUs and tiles, and what they are.

    Without --show: totals, IPUs, the fullest tiles, storage categories, the distribution over the tiles, and the tiles
    that are out of memory with what fills them. With tiles chosen, all but the IPUs are about these only.

    CSV is one table when one thing is asked for. Variables and maps need lowered variables.
    """
    wanted = _wanted(show, match, tile)

    from pvanalyse.cli.memory_parts import MemoryQuestion
    from pvanalyse.render.memory import verdict
    from pvanalyse.render.parts import together

    question = MemoryQuestion(report, selection.of(report), match, top, tile)
    if wanted:
        found, missing = asked(wanted, question.part)
    else:
        found, missing = usual(_USUAL if match is None else _NAMED, question.part)
    has_totals = not wanted and any(part.key == "totals" for part in found)
    said = verdict(question.tile_memory, output.units) if has_totals else ("", False)
    chosen = None if question.tiles is None else question.tiles.tolist()
    about = {"report": str(report.files.directory), "tiles_chosen": chosen}
    output.write(together(found, about, missing, said, as_table=bool(wanted)))


def _wanted(show: tuple[str, ...], match: str | None, tile: int | None) -> list[str]:
    """Return what was asked for by name, in order."""
    wanted = list(dict.fromkeys([*show, *(["map"] if tile is not None else [])]))
    if match is not None and wanted and not set(wanted) & set(_NAMED):
        raise UsageError(f"--match is about {', '.join(_NAMED)}; --show one of them")
    return wanted
