"""The command line: parse, call, render; one module per command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

import click

from pvanalyse import __version__
from pvanalyse.errors import PvanalyseError

_COMMANDS = {
    "ls": "List the reports below a path, what is in them, and what crashed runs left.",
    "summary": "Show what was compiled, what fits and what does not, and what ran.",
    "memory": "Show where the bytes are: IPUs, tiles, categories, variables, and what does not fit.",
    "liveness": "Show when the bytes are live: peaks, what makes them, and what would lower them.",
    "programs": "Show the program tree, and what each program costs with everything below it.",
    "execution": "Show where the cycles go: runs, types, operations, imbalance, bandwidth, bubbles.",
    "operations": "Show what operations cost: code, variables, memory at the peak, cycles, FLOPs.",
    "whereis": "Show where a name is: layers, programs, compute sets, vertices, variables, tiles.",
    "insights": "Judge a report by rules: what does not fit, what wastes memory, and what to do about it.",
    "split": "Propose where to split a program for one IPU into the stages of a pipeline.",
    "metrics": "Print every metric of a report by name.",
    "compare": "Compare reports: what grew, what came and went, and what made each metric change.",
    "baseline": "Write what a report measured as a small file to commit and compare with.",
    "check": "Hold reports against budgets and baselines; fail when one is over, and say why.",
    "plot": "Draw memory, liveness and execution: PNG, SVG or PDF.",
    "html": "Write a report, or two side by side, as one HTML file that needs no network.",
    "open": "Show a report in the browser, and again whenever its files change.",
    "export": "Write the execution as a Perfetto, speedscope or Chrome trace, or tables as CSV, Parquet or SQLite.",
    "watch": "Run a command on a report again whenever it changes and is complete.",
    "capture": "On a machine with the Poplar SDK: write a report down so that pvanalyse reads it anywhere.",
    "inspect": "Describe any SQLite file, and draft a dialect for it.",
}
"""Each command by name with its short help, so that --help need not import them."""

_INTERRUPTED = 130  # as shells say it: 128 + SIGINT


class _LazyGroup(click.Group):
    """Imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"pvanalyse.cli.{cmd_name}_command").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(_COMMANDS)}"
            ctx.fail(f"no such command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)


_EPILOG = (
    "Exit codes: 0 fine, 1 a check failed, 2 wrong usage, 3 the report cannot be read, 4 what was asked for was not "
    "captured."
)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, "-V", "--version", prog_name="pvanalyse")
def cli() -> None:
    """Read the reports that the Poplar SDK writes when a program for a Graphcore IPU is profiled.

    A REPORT is a report directory (with profile.pop, archive.a ...), a file in one, or a directory with exactly one
    report below it.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        Without the program's name; by default those of the process.
    """
    from pvanalyse.cli.streams import abandon_standard_output

    try:
        code = run(arguments)
        _flush()
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", _INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # whoever read the answer has seen enough; click exits with 1 then
        abandon_standard_output()
        return 0
    except OSError as error:  # the answer's, such as a full disk: what reads a report says what is wrong with it
        abandon_standard_output()
        place = error.filename or "the answer cannot be written"
        return _fail(f"{place}: {error.strerror or error}", PvanalyseError.exit_code)
    return code


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; say what is wrong with its usage or its report, and return its exit code.

    Raises
    ------
    KeyboardInterrupt, click.Abort, OSError
        What is wrong is not the command's, and ends the program; see :func:`main`.
    """
    try:
        code = cli.main(None if arguments is None else list(arguments), prog_name="pvanalyse", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except PvanalyseError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError:
        return _fail("there is not enough memory for this", PvanalyseError.exit_code)
    return int(code or 0)


def _flush() -> None:
    out: TextIO | None = sys.stdout
    if out is not None:  # it is when it was closed
        out.flush()


def _fail(sentence: str, code: int) -> int:
    from pvanalyse.cli.streams import say

    say(sentence)
    return code
