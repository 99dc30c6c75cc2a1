"""``pvanalyse open``."""

from __future__ import annotations

import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pvanalyse.cli.streams import say
from pvanalyse.errors import PvanalyseError, UsageError

if TYPE_CHECKING:
    from pvanalyse.html.serving import LivePage
    from pvanalyse.watching import Watcher


@click.command("open")
@click.argument("path", metavar="REPORT")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N",
              help="Port on the loopback (default: a free one).")  # fmt: skip
@click.option("--browser/--no-browser", default=True, show_default=True,
              help="Show the page in this machine's browser, or only print its address.")  # fmt: skip
@click.option("--interval", type=click.FloatRange(min=0.05), default=1.0, show_default=True, metavar="SECONDS",
              help="Time between two looks at the report's files.")  # fmt: skip
def command(path: str, port: int, browser: bool, interval: float) -> None:
    """Show a report in the browser, and again whenever its files change.

    The page is that of 'pvanalyse html'. It is served on this machine's loopback only, and only to those who know the
    token in its address. On a machine without a browser, forward the port: ssh -L 8000:localhost:8000 there 'pvanalyse
    open --port 8000 --no-browser my_report'.

    While a report is written again, the page stays what it was. Ctrl-C ends it.
    """
    from pvanalyse.html.serving import LivePage, served
    from pvanalyse.watching import Watcher

    watcher = Watcher(Path(path))
    watcher.know()
    page = LivePage(_page(path))
    try:
        with served(page, port) as address:
            click.echo(address)
            say("Ctrl-C ends it")
            if browser and not webbrowser.open(address):
                say("no browser was found; open the address yourself")
            while True:
                time.sleep(interval)
                _look(watcher, page, path)
    except OSError as error:
        raise UsageError(f"port {port} cannot be served: {error.strerror}") from None


def _look(watcher: Watcher, page: LivePage, path: str) -> None:
    from pvanalyse.watching import Event

    for change in watcher.look():
        if change.event in (Event.NEW, Event.CHANGED):
            try:
                page.replace(_page(path))
            except PvanalyseError as error:
                say(f"the page stays what it was: {error}")
                continue
            say("the report changed, and so did the page")
        elif change.event is Event.GONE:
            say("the report is gone; the page stays what it was until it comes back")
        elif change.event is Event.WAITING:
            say(f"waiting: {change.reason}")


def _page(path: str) -> str:
    from pvanalyse.html.page import page
    from pvanalyse.report import open_report

    with open_report(path) as report:
        return page([(str(report.files.directory), report)], live=True).text
