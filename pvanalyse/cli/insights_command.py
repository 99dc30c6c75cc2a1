"""``pvanalyse insights``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.errors import NotCaptured, UsageError

if TYPE_CHECKING:
    from pvanalyse.analysis.insights import Severity
    from pvanalyse.report import Report


def _limits(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    limits = {}
    for value in values:
        name, equals, number = value.partition("=")
        try:
            limits[name] = float(number)
        except ValueError:
            raise UsageError(f"--limit: '{value}' is not NAME=NUMBER" if equals else
                             f"--limit: '{value}' lacks a number, as in gaps=0.1") from None  # fmt: skip
    return limits


@click.command("insights")
@report_options
@click.option("--min-severity", type=click.Choice(("info", "advice", "warning", "critical")), default="info",
              show_default=True, help="Leave out what is milder.")  # fmt: skip
@click.option("--rule", "only", multiple=True, metavar="RULE",
              help="Evaluate only this rule. Repeatable. Without it, the answer names every rule.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER", callback=_limits,
              help="From where on something is worth saying, such as gaps=0.1. Repeatable.")  # fmt: skip
def command(report: Report, output: Output, min_severity: Severity, only: tuple[str, ...],
            limits: dict[str, float]) -> int:  # fmt: skip
    """Judge a report by rules: what does not fit, what wastes memory, and what to do about it.

    Each finding has a severity, its evidence, advice, options of the SDK, and where possible an estimate of what
    following it saves. Memory that is saved is advice when memory is short, and otherwise only a remark.

    Rules whose data was not captured are listed with what captures it. Exit code 4 says that no rule could be
    evaluated.
    """
    from pvanalyse.analysis.insights import limits_with
    from pvanalyse.render.insights import insights_document

    found = report.insights(limits_with(limits), only)
    shown = found.at_least(min_severity)
    output.write(insights_document(str(report.files.directory), shown, output.units))
    return 0 if found or found.nothing_found else NotCaptured.exit_code
