"""``pvanalyse execution``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import asked, regular_expression, show_option, top_option, usual
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.report import Report

_USUAL = ("runs", "kinds", "types", "operations", "imbalance", "overlap", "bandwidth", "pipeline")
_NAMED = ("programs", "compute-sets", "operations", "imbalance", "flops", "estimates", "steps")
_OTHERS = ("prefixes", "gaps", "waits", "path")
_PARTS = (*_USUAL, *(name for name in _NAMED if name not in _USUAL), *_OTHERS)


@click.command("execution")
@report_options
@click.option("--run", "runs", type=click.INT, multiple=True, metavar="RUN",
              help="Only this run, by its number. Repeatable.")  # fmt: skip
@click.option("--ipu", "ipus", type=click.IntRange(0), multiple=True, metavar="IPU",
              help="Only what ran on this IPU. Repeatable.")  # fmt: skip
@show_option(_PARTS)
@click.option("--match", metavar="REGEX", callback=regular_expression,
              help="Only programs, compute sets, operations and steps in whose name this regular expression is found; "
                   "shows programs and operations when --show does not choose.")  # fmt: skip
@click.option("--prefix", metavar="NAME", default=None,
              help="Show cycles by prefix of those names that begin with this one, such as model/encoder.")  # fmt: skip
@click.option("--depth", type=click.IntRange(1), metavar="N", default=None,
              help="Show cycles by prefix, telling apart N parts of names (after --prefix). Default: 1.")  # fmt: skip
@top_option
def command(report: Report, output: Output, runs: tuple[int, ...], ipus: tuple[int, ...], show: tuple[str, ...],
            match: str | None, prefix: str | None, depth: int | None, top: int | None) -> None:  # fmt: skip
    """Show where the cycles go: by run, type, operation and program, lost, moved, waited for.

    Without --show: runs, what their time went into on each IPU, program types, operations, where imbalance costs most,
    overlap of compute and I/O, bandwidth, and the bubbles of a pipeline.

    Steps count once for each IPU they ran on. Where steps were not recorded, the blocks of lightweight profiling or
    profile.pop_cache take their place. CSV is one table when one thing is asked for.
    """
    wanted = _wanted(show, match, prefix is not None or depth is not None)

    from pvanalyse.analysis.intervals import available_kinds
    from pvanalyse.cli.execution_parts import ExecutionQuestion
    from pvanalyse.render.parts import together

    question = ExecutionQuestion(report, runs or None, ipus or None, match, prefix or "", depth or 1, top)
    found, missing = asked(wanted, question.part) if wanted else usual(_USUAL, question.part)
    said = "" if wanted else question.verdict
    about = {
        "report": str(report.files.directory),
        "intervals": next(iter(available_kinds(report)), None),
        "runs_chosen": list(runs) or None,
        "ipus_chosen": list(ipus) or None,
    }
    output.write(together(found, about, missing, (said, False), as_table=bool(wanted)))


def _wanted(show: tuple[str, ...], match: str | None, by_prefix: bool) -> list[str]:
    """Return what was asked for by name, in order."""
    wanted = list(dict.fromkeys([*show, *(["prefixes"] if by_prefix else [])]))
    if match is None:
        return wanted
    if wanted and not set(wanted) & set(_NAMED):
        raise UsageError(f"--match is about {', '.join(_NAMED)}; --show one of them")
    return wanted or ["programs", "operations"]
