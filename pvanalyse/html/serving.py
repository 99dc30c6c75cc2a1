"""The page of a report on this machine's loopback, which its readers' browsers load again when it was made anew.

Who does not know the token in the address, or reaches the server under another name than the loopback's (as a web page
elsewhere can, by letting its own name lead here), is told that there is nothing.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_PATIENCE_SECONDS = 15  # after which a silent connection is looked at: is anybody still there?


class LivePage:
    """A page that can be replaced while it is read.

    Parameters
    ----------
    text
        The page at first.

    Attributes
    ----------
    token
        What the address must contain; new for each.
    """

    def __init__(self, text: str) -> None:
        self.token = secrets.token_urlsafe(16)
        self._changed = threading.Condition()
        self._contents = text.encode("utf-8", "backslashreplace")
        self._number = 0

    @property
    def contents(self) -> bytes:
        """The page as it is now, in which ``data-live`` has become the version that it is."""
        with self._changed:
            return self._contents.replace(b" data-live>", f' data-live="{self.version}">'.encode(), 1)

    @property
    def version(self) -> str:
        """What tells this state of the page from every other one, of other servers too."""
        with self._changed:
            return f"{self.token}-{self._number}"

    def replace(self, text: str) -> None:
        """Put another page in its place, and tell those who wait."""
        with self._changed:
            self._contents = text.encode("utf-8", "backslashreplace")
            self._number += 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Return when the page is replaced, or after so many seconds."""
        with self._changed:
            self._changed.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, page: LivePage) -> None:
        self.page = page
        super().__init__((LOOPBACK, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away."""


class _Handler(BaseHTTPRequestHandler):
    server_version = "pvanalyse"
    sys_version = ""

    def do_GET(self) -> None:
        page = cast("_Server", self.server).page
        start = f"/{page.token}/"
        path = urlsplit(self.path).path
        if not self._from_here() or not secrets.compare_digest(path[: len(start)].encode(), start.encode()):
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"There is nothing here.\n")
        elif path == start:
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.contents)
        elif path == f"{start}events":
            self._tell(page)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"There is nothing here.\n")

    def _from_here(self) -> bool:
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname in _LOOPBACK_NAMES
        except ValueError:
            return False

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")

    def _answer(self, status: HTTPStatus, kind: str, contents: bytes) -> None:
        self._head(status, kind)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        self.wfile.write(contents)

    def _tell(self, page: LivePage) -> None:
        """Send the page's version, now and whenever it changes, as server-sent events."""
        self._head(HTTPStatus.OK, "text/event-stream")
        self.end_headers()
        with suppress(OSError):  # the reader went
            while True:
                self.wfile.write(f"data: {page.version}\n\n".encode())
                self.wfile.flush()
                page.wait(_PATIENCE_SECONDS)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name of the standard library)
        """Keep the terminal for what the command has to say."""


@contextmanager
def served(page: LivePage, port: int = 0) -> Iterator[str]:
    """Serve a page on the loopback while the block runs; the value is its address, with the token.

    Raises
    ------
    OSError
        The port is taken, or may not be used.
    """
    with _Server(port, page) as server:
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}/{page.token}/"
        finally:
            server.shutdown()
