"""``pvanalyse inspect``."""

from __future__ import annotations

from pathlib import Path

import click

from pvanalyse.cli.options import Output, output_options
from pvanalyse.cli.progress import progress
from pvanalyse.cli.streams import standard_output, write_file


@click.command("inspect")
@click.argument("path", metavar="FILE")
@output_options
@click.option("--suggest-dialect", "draft", metavar="FILE",
              help="Write a dialect to start from ('-' is standard output), from names that are alike.")  # fmt: skip
@click.option("--rows", default=10_000, show_default=True, type=click.IntRange(1), metavar="N",
              help="Rows of each table to look at.")  # fmt: skip
def command(path: str, output: Output, draft: str | None, rows: int) -> None:
    """Describe any SQLite file, such as a profile.pop of a layout that no dialect knows yet.

    Shows tables, columns with their declared and actual types, row counts, sizes of BLOBs, and whether a BLOB looks
    like one 32-bit or 64-bit number per tile.

    With --suggest-dialect it writes a dialect file instead; complete it, then use it with --dialect.
    """
    from pvanalyse.readers.inspection import inspect_database
    from pvanalyse.render.inspection import inspection_document

    if draft is not None and draft != "-":
        output.refuse_to_overwrite(Path(draft))
    with progress(output.quiet, path):
        facts = inspect_database(Path(path), rows)
    if draft is None:
        output.write(inspection_document(facts))
        return
    from pvanalyse.readers.suggestion import suggest_dialect

    text = suggest_dialect(facts, Path(path).stem)
    if draft == "-":
        standard_output(exact=True).write(text)
    else:
        write_file(Path(draft), text)
        output.note([f"wrote {draft}; complete it and read the report with --dialect {draft}"])
