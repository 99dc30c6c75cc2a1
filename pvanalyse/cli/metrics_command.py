"""``pvanalyse metrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.errors import NotCaptured

if TYPE_CHECKING:
    from pvanalyse.report import Report


@click.command("metrics")
@report_options
@click.option("--match", "-m", "patterns", multiple=True, metavar="PATTERN",
              help="Only metrics that match, such as 'memory.*'. Repeatable.")  # fmt: skip
def command(report: Report, output: Output, patterns: tuple[str, ...]) -> None:
    """Print every metric of a report by name.

    With --format json it is one flat object {metric: number}: sizes in bytes, times in seconds, shares from 0 to 1.
    A metric whose data was not captured is absent. With --match, exit code 4 says that nothing matched.
    """
    from fnmatch import fnmatchcase

    from pvanalyse.render.metrics import metrics_document

    metrics = report.metrics()
    if patterns:
        metrics = {name: value for name, value in metrics.items() if any(fnmatchcase(name, p) for p in patterns)}
    if not metrics:
        how = 'engine option "autoReport.all": "true"'
        if patterns:
            raise NotCaptured(" or ".join(patterns), f"{how}, if there are metrics of that name")
        raise NotCaptured("metrics", how)
    output.write(metrics_document(str(report.files.directory), metrics))
