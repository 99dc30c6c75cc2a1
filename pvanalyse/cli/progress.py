"""What is said on standard error while a command works for more than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from pvanalyse.names import printable

_SLOW_SECONDS = 1.0


@contextmanager
def progress(quiet: bool, what: str = "the report") -> Iterator[Progress]:
    """Yield a :class:`Progress` on standard error that ends with the block; when ``quiet``, one that says nothing."""
    shown = Progress(None if quiet else sys.stderr, what)
    try:
        yield shown
    finally:
        shown.stop()


class Progress:
    """Shows what is being read and how far, when that takes over a second.

    On a terminal it is one line that is rewritten and goes away; elsewhere a line for each table that takes so long,
    so that a log stays readable.

    Parameters
    ----------
    out
        Where to; None (which a closed standard error is) for nowhere.
    what
        What is being read until :meth:`update` says more.
    """

    def __init__(self, out: TextIO | None, what: str = "the report") -> None:
        self._out = out
        self._current = what
        self._since = time.monotonic()
        self._told = False
        self._lock = threading.Lock()
        self._status: Any = None
        # A terminal shows that something is going on even while the first batch is being read.
        self._timer = threading.Timer(_SLOW_SECONDS, self._start) if out is not None and out.isatty() else None
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def update(self, table: str, rows: int) -> None:
        """Take the table that is being read, and its rows, or bytes of its file, so far."""
        with self._lock:
            if table != self._current:
                self._current, self._since, self._told = table, time.monotonic(), False
            if self._status is not None:
                self._status.update(_message(f"{table}: {rows:,}"))
            elif self._timer is None and not self._told and time.monotonic() - self._since > _SLOW_SECONDS:
                self._told = True
                self._say()

    def stop(self) -> None:
        """Show nothing more, and take away what is shown on a terminal."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._out = None
            if self._status is not None:
                self._status.stop()
                self._status = None

    def _start(self) -> None:
        from rich.console import Console

        with self._lock:
            if self._out is None:  # stopped while this waited for the lock
                return
            self._status = Console(file=self._out).status(_message(self._current))
            self._status.start()

    def _say(self) -> None:
        if self._out is not None:
            with suppress(OSError):  # nobody reads it
                self._out.write(f"pvanalyse: reading {printable(self._current)}\n")
                self._out.flush()


def _message(what: str) -> Any:
    from rich.text import Text

    return Text(f"reading {printable(what)}")
