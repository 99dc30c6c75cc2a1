"""``pvanalyse summary``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options

if TYPE_CHECKING:
    from pvanalyse.report import Report


@click.command("summary")
@report_options
@click.option("--options", default="*", metavar="PATTERN", show_default=True,
              help="Show only engine options that match, such as 'debug.*' or '*instrument*'.")  # fmt: skip
def command(report: Report, output: Output, options: str) -> None:
    """Show what was compiled, what fits and what does not, and what ran.

    Target, graph, instrumentation, memory (total, fullest tiles, by category), the liveness peak, execution,
    executables, engine options and files; and what was not captured, with what captures it.

    A report with only archive.a, or only profile.pop_cache, is shown as far as it goes.
    """
    from pvanalyse.render.summary import summary_document

    output.write(summary_document(report.summary(), output.units, options))
