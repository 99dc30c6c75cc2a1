"""``pvanalyse check``."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pvanalyse.cli.options import Output, Renderer, output_options_with, reading_options
from pvanalyse.cli.streams import write_file
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.analysis.checks import CheckResult
    from pvanalyse.render.document import Document, Formatter


@click.command("check")
@click.argument("paths", nargs=-1, required=True, metavar="REPORT...")
@reading_options
@click.option("--budget", metavar="FILE", help="Limits for engines and reports, a TOML file.")
@click.option("--baseline", "baselines", multiple=True, metavar="FILE|REPORT",
              help="What to compare with: a file of 'pvanalyse baseline', or a report. Once for all reports, or for "
                   "each in their order.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="LIMIT",
              help="A bound of a metric, such as 'memory.tile_max_including_gaps<=600KiB' or "
                   "'execution.tile_balance>=0.7'. Repeatable.")  # fmt: skip
@click.option("--max-increase", "increases", multiple=True, metavar="INCREASE",
              help="What memory may grow by over the baseline, such as 2% or 64KiB, or some metrics, such as "
                   "'memory.category.*=64KiB'. Repeatable. Default: nothing at all.")  # fmt: skip
@click.option("--update-baseline", is_flag=True, help="Accept what there is now: replace the baseline file by it.")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, metavar="N",
              help="Rows of each explanation in text.")  # fmt: skip
@output_options_with(("junit", "github"))
def command(paths: tuple[str, ...], output: Output, dialect: str | None, debug_info: str | None, budget: str | None,
            baselines: tuple[str, ...], limits: tuple[str, ...], increases: tuple[str, ...], update_baseline: bool,
            top: int) -> int:  # fmt: skip
    """Hold reports against limits, a budget or a baseline; fail when one is over, and say why.

    A REPORT may be a directory with several reports below it. Limits of the command line take the place of those of the
    budget for the same metrics; of several that fit a metric, the most specific holds. With a baseline and nothing said
    of increases, no bytes of memory may grow: what is compiled is deterministic.

    \b
    Formats besides the usual:
      junit     JUnit XML, which CI servers show as tests
      github    annotations for GitHub Actions; the step's summary too, where GITHUB_STEP_SUMMARY names it
    Markdown is at most 65,536 characters long, as much as a comment on GitHub takes.

    Exit codes: 0 all passed, 1 something is over its limit; and, before these, 4 something limited was not captured,
    3 a report cannot be read. Everything is written before.
    """  # noqa: D301  (a backspace tells click to leave the list as it is)
    from pvanalyse.cli.progress import progress
    from pvanalyse.gate import make_gate
    from pvanalyse.render.checks import Detail, check_document
    from pvanalyse.report import open_report

    gate = make_gate(limits, budget, baselines, increases or None)
    with progress(output.quiet) as shown:
        opening = partial(open_report, dialect=dialect, debug_info=debug_info, progress=shown.update)
        if update_baseline:
            result, written = gate.accept(paths, opening)
        else:
            result, written = gate.check(paths, opening), {}
    output.write(check_document(result, output.units, Detail(top)), _renderers(result, output))
    _append_summary(result, output)
    if written:
        from pvanalyse.gate import baseline_text

        for path, baseline in written.items():
            write_file(path, baseline_text(baseline))
            output.note([f"{path} is the baseline now"])
    return result.exit_code


def _renderers(result: CheckResult, output: Output) -> dict[str, Renderer]:
    """Return what writes a result in the formats of this command; they have more to say than a document holds."""

    def markdown(_document: Document, out: TextIO, _write: Formatter) -> None:
        from pvanalyse.render.checks import markdown_text

        out.write(markdown_text(result, output.units))

    def junit(_document: Document, out: TextIO, write: Formatter) -> None:
        from pvanalyse.render.junit import render_junit

        render_junit(result, out, write)

    def github(_document: Document, out: TextIO, write: Formatter) -> None:
        from pvanalyse.render.github import render_github

        render_github(result, out, write, os.environ.get("GITHUB_WORKSPACE", ""))

    return {"markdown": markdown, "junit": junit, "github": github}


def _append_summary(result: CheckResult, output: Output) -> None:
    """Append the result to the summary of the step of a workflow when GitHub's format was asked for.

    Raises
    ------
    UsageError
        The file that the environment names cannot be written.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path or all(one.format != "github" for one in output.destinations):
        return
    from pvanalyse.render.checks import markdown_text

    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as summary:
            summary.write(f"{markdown_text(result, output.units)}\n")
    except (OSError, ValueError) as error:
        raise UsageError(f"GITHUB_STEP_SUMMARY: {path} cannot be written ({error})") from None
