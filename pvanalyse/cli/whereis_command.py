"""``pvanalyse whereis``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import top_option

if TYPE_CHECKING:
    from pvanalyse.report import Report

_KINDS = ("layers", "operations", "programs", "compute-sets", "vertex-types", "variables", "tiles")


@click.command("whereis")
@report_options
@click.argument("name")
@click.option("--show", type=click.Choice(_KINDS), multiple=True, metavar="WHAT",
              help=f"Show only these: {', '.join(_KINDS)}. Repeatable.")  # fmt: skip
@top_option
def command(report: Report, output: Output, name: str, show: tuple[str, ...], top: int | None) -> None:
    """Show where a name is: which layers, programs, compute sets, vertices, variables, tiles, and what they cost.

    NAME is a part of the names that are meant, such as layer_0/attention; what is part of no name is taken for a
    regular expression. When nothing has it, the nearest names are shown.

    A program's costs are its own, without those of programs below it. The bytes of a tile are allocations of the
    variables, and code of the vertex types and of the exchanges. CSV is one table when one thing is asked for.
    """
    from pvanalyse.analysis.whereis import whereis
    from pvanalyse.render import whereis as view
    from pvanalyse.render.parts import together

    kinds = [kind.replace("-", "_") for kind in dict.fromkeys(show)]
    answer = whereis(report, name)
    about = {"report": str(report.files.directory), "name": name, "pattern": answer.pattern,
             "nearest": list(answer.nearest)}  # fmt: skip
    said = view.verdict(answer, output.units)
    missing = {} if kinds else answer.missing
    output.write(together(view.parts(answer, kinds, top), about, missing, said, as_table=bool(kinds)))
