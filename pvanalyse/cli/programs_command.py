"""``pvanalyse programs``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pvanalyse.cli.options import Output, report_options
from pvanalyse.cli.sections import regular_expression
from pvanalyse.cli.streams import write_file
from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    from pvanalyse.report import Report


@click.command("programs")
@report_options
@click.option("--kind", type=click.Choice(["control", "function", "other"]),
              help="Only control programs, or functions, or programs that neither lead to.")  # fmt: skip
@click.option("--root", type=int, metavar="ID", help="Only the tree that starts at this program.")
@click.option("--operation", metavar="REGEX", callback=regular_expression,
              help="Of these, only the trees of operations in whose name this regular expression is found; needs "
                   "debug.cbor.")  # fmt: skip
@click.option("--match", metavar="REGEX", callback=regular_expression,
              help="Only programs in whose name this regular expression is found, and those above them.")  # fmt: skip
@click.option("--depth", type=click.IntRange(0), metavar="N",
              help="Only so many levels below the roots. Default: in text and Markdown as many as make at most 60 "
                   "lines, in JSON 100, in CSV and --dot all.")  # fmt: skip
@click.option("--dot", "dot_file", metavar="FILE", help="Write the tree as a graph for Graphviz, too.")
def command(report: Report, output: Output, kind: str | None, root: int | None, operation: str | None,
            match: str | None, depth: int | None, dot_file: str | None) -> None:  # fmt: skip
    """Show the program tree, and what each program costs with everything below it.

    A program that occurs several times, as a function's body does, is shown where it comes first, and counted once in
    the figures of any program above it. Control and exchange code are sums over tiles. Executions are executed steps,
    cycles their sum over IPUs; both are of all runs. Live is what is not always live, at most.
    """
    if dot_file is not None:
        _check_dot_file(dot_file, output)

    from pvanalyse.analysis.programs import program_tree
    from pvanalyse.render.parts import together
    from pvanalyse.render.programs import dot, programs_part

    frame = program_tree(report, kind=kind, root=root, operation=operation, pattern=match, depth=depth)
    part = programs_part(frame, depth, [one.format for one in output.destinations])
    document = together([part], {"report": str(report.files.directory)}, {}, as_table=True)
    if dot_file is not None:
        write_file(Path(dot_file), dot(frame))
    output.write(document)


def _check_dot_file(name: str, output: Output) -> None:
    """Refuse, before any work, what cannot be the file for the graph."""
    if name == "-":
        raise UsageError("--dot needs the name of a file")
    output.refuse_to_overwrite(Path(name))
    if os.path.realpath(name) in [os.path.realpath(one.path) for one in output.destinations if one.path != "-"]:
        raise UsageError(f"two formats go to {name}")
