"""``pvanalyse ls``."""

from __future__ import annotations

import click

from pvanalyse.cli.options import Output, output_options
from pvanalyse.cli.progress import progress


@click.command("ls")
@click.argument("path", metavar="[PATH]", default=".")
@output_options
def command(path: str, output: Output) -> int:
    """List the reports at and below PATH (default: here).

    For each: its engine or TensorFlow cluster, its files with their sizes, and the debug.cbor that belongs to it. What
    crashed runs left and profiles of the old generation are pointed out, with what to do about them.

    The exit code is 3 when there is no report.
    """
    from pvanalyse.discovery import survey
    from pvanalyse.render.listing import survey_document

    with progress(output.quiet, path):
        found = survey(path)
    output.write(survey_document(found))
    return 0 if found.reports else 3
