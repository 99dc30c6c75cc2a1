"""``pvanalyse baseline``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.streams import standard_output, write_file

if TYPE_CHECKING:
    from pvanalyse.gate import Baseline
    from pvanalyse.render.document import Document
    from pvanalyse.report import Report


@click.command("baseline")
@report_options
@click.option("--output", "-o", "file", default="-", metavar="FILE",
              help="The file to write, or '-' for standard output, which is the default.")  # fmt: skip
@click.option("--contributors", type=click.IntRange(0), metavar="N",
              help="How many of each metric's contributors to keep. Default: 20.")  # fmt: skip
def command(report: Report, output: Output, file: str, contributors: int | None) -> None:
    """Write what a report measured as a small file to commit, for 'pvanalyse check' to compare with.

    It is JSON with sorted keys and exact numbers: target, SDK version, all metrics, and of each metric that has any the
    largest contributors, so that a check can say what grew. The same report gives the same bytes.
    """
    from pvanalyse.gate.baseline import CONTRIBUTORS, baseline_text, make_baseline
    from pvanalyse.gate.measured import Measured

    if file != "-":
        output.refuse_to_overwrite(Path(file))
    made = make_baseline(Measured(report), CONTRIBUTORS if contributors is None else contributors)
    text = baseline_text(made)
    if file == "-":
        output.settle()
        standard_output(exact=True).write(text)
    else:
        write_file(Path(file), text)
        output.write(_document(str(report.files.directory), file, made, len(text)))


def _document(report: str, file: str, made: Baseline, size: int) -> Document:
    from pvanalyse.render.document import Document, Fact, Section, Unit

    metrics, contributors = len(made.metrics), sum(map(len, made.contributors.values()))
    facts = [
        Fact("File", file),
        Fact("Size", size, Unit.BYTES),
        Fact("Metrics", metrics, Unit.COUNT),
        Fact("Contributors", contributors, Unit.COUNT),
    ]
    data = {"report": report, "file": file, "bytes": size, "metrics": metrics, "contributors": contributors}
    return Document(f"Baseline of {report}", [Section("Written", facts)], data)
