"""``pvanalyse html``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from pvanalyse.cli.options import Output
from pvanalyse.cli.progress import progress
from pvanalyse.cli.streams import write_file
from pvanalyse.units import BYTE_UNITS, ByteUnits


@click.command("html")
@click.argument("path", metavar="REPORT")
@click.argument("other", metavar="[B]", required=False)
@click.option("--output", "-o", "file", required=True, metavar="FILE", help="The page, such as report.html.")
@click.option("--format", "-f", "file_format", type=click.Choice(("page", "frame")), default="page", show_default=True,
              help="A page of its own, or an iframe element with it, to be put into another page.")  # fmt: skip
@click.option(
    "--tiles", metavar="LIST", help="Put the memory maps of these tiles into the page too, such as 0,5,100-120."
)
@click.option("--units", type=click.Choice(BYTE_UNITS), default="binary", show_default=True,
              help="Units of sizes at first; the page can change them.")  # fmt: skip
@click.option("--dialect", type=click.Path(), metavar="FILE", help="Read profile.pop through this dialect.")
@click.option("--debug-info", type=click.Path(), metavar="FILE", help="Use this debug.cbor for REPORT.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no remarks on standard error.")
def command(path: str, other: str | None, file: str, file_format: str, tiles: str | None, units: ByteUnits,
            dialect: str | None, debug_info: str | None, force: bool, quiet: bool) -> None:  # fmt: skip
    """Write a report as one HTML file that shows everything and needs no network: to open, attach, or archive.

    With a second report B everything is shown side by side, and what differs.

    What is beyond what a browser can hold is left out, which the page says. Every view has an address of its own, such
    as report.html#view=memory&tile=947.
    """
    target = Path(file)
    output = Output((), units, quiet, force)
    output.refuse_to_overwrite(target)
    from pvanalyse.html.page import page
    from pvanalyse.report import open_report

    with ExitStack() as stack:
        shown = stack.enter_context(progress(quiet))
        reports = [stack.enter_context(open_report(path, dialect, debug_info, shown.update))]
        if other is not None:
            reports.append(stack.enter_context(open_report(other, dialect, None, shown.update)))
        made = page([(str(report.files.directory), report) for report in reports], units=units, tiles=tiles)
        shown.stop()
        write_file(target, made.text if file_format == "page" else made.frame())
        output.note([warning for report in reports for warning in report.warnings])
