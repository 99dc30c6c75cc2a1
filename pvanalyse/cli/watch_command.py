"""``pvanalyse watch``."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pvanalyse.cli.streams import say
from pvanalyse.errors import UsageError
from pvanalyse.names import printable

if TYPE_CHECKING:
    from pvanalyse.watching import Change

_HERE = "{}"
_WITHOUT_A_REPORT = ("ls", "inspect", "watch", "open")
_NOTHING_CAME = 3  # as for a report that is not there


@click.command("watch", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("path", metavar="DIR")
@click.argument("call", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND [ARGS]...]")
@click.option("--interval", type=click.FloatRange(min=0.05), default=1.0, show_default=True, metavar="SECONDS",
              help="Time between two looks; a report is complete when two of them find it the same.")  # fmt: skip
@click.option("--once", is_flag=True, help="End after the first complete report, with the exit code of COMMAND.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS",
              help="With --once: end with exit code 3 when no report is complete by then.")  # fmt: skip
def command(path: str, call: tuple[str, ...], interval: float, once: bool, timeout: float | None) -> int:
    """Run COMMAND (default: summary) on every report at or below DIR, and again whenever one changes.

    COMMAND is any command of pvanalyse that is about a REPORT, with its options; the report's directory is put at
    their end, or where '{}' stands. Options of watch itself go before DIR:

    \b
      pvanalyse watch runs
      pvanalyse watch runs check --budget budget.toml
      pvanalyse watch --once --timeout 600 runs check --baseline baseline.json
      pvanalyse watch runs plot liveness {} -o liveness.png --force

    A report is shown once it is complete: renamed from its temporary name, no journal beside it, and not changing any
    more. DIR and its reports may go and come back. Ctrl-C ends it.
    """  # noqa: D301  (click's mark for lines that are kept)
    _check(path, call, once, timeout)
    from pvanalyse.watching import Event, Watcher

    watcher = Watcher(Path(path))
    give_up = None if timeout is None else time.monotonic() + timeout
    waiting = False
    while True:
        changes = watcher.look()
        for change in changes:
            _tell(change)
            if change.event in (Event.NEW, Event.CHANGED):
                code = _run(call, change.directory)
                sys.stdout.flush()  # whoever reads a pipe or a log waits for it
                if once:
                    return code
        if not changes and not waiting:
            waiting = True
            say(f"{printable(path)}: waiting for a complete report; Ctrl-C ends it")
        waiting = waiting or bool(changes)
        if give_up is not None and time.monotonic() >= give_up:
            say(f"{printable(path)}: no report was complete within {timeout:g} s")
            return _NOTHING_CAME
        time.sleep(interval)


def _check(path: str, call: tuple[str, ...], once: bool, timeout: float | None) -> None:
    from pvanalyse.cli import cli

    if timeout is not None and not once:
        raise UsageError("--timeout is about --once: without it, watch does not end by itself")
    if not os.path.isdir(Path(path).parent):  # noqa: PTH112  (raises no error where one may not look)
        raise UsageError(f"{path}: there is no directory '{Path(path).parent}' in which it could appear")
    name = call[0] if call else "summary"
    context = click.Context(cli)
    possible = [one for one in cli.list_commands(context) if one not in _WITHOUT_A_REPORT]
    if name not in possible:
        raise UsageError(f"watch cannot run '{name}'; it runs: {', '.join(possible)}")


def _run(call: tuple[str, ...], directory: Path) -> int:
    from pvanalyse.cli import run

    words = list(call) or ["summary"]
    report = os.fspath(directory)
    return run([report if word == _HERE else word for word in words] + ([] if _HERE in words else [report]))


def _tell(change: Change) -> None:
    directory = printable(os.fspath(change.directory))
    happened = {
        "new": "a complete report",
        "changed": "changed",
        "gone": "is gone; waiting for it to come back",
        "waiting": f"waiting: {change.reason}",
    }[change.event]
    say(f"{datetime.now():%H:%M:%S} {directory}: {happened}")
