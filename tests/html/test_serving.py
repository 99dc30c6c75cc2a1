"""The page on the loopback: who gets it, and how its readers hear that it was made anew."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from pvanalyse.html.serving import LOOPBACK, LivePage, served

PATIENCE_SECONDS = 30


@pytest.fixture
def page() -> LivePage:
    return LivePage("<p>first \N{WATCH}</p>")


@pytest.fixture
def address(page: LivePage) -> Iterator[str]:
    with served(page) as address:
        yield address


def asked(
    address: str, path: str | None = None, method: str = "GET", **headers: str
) -> tuple[int, str, dict[str, str]]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_SECONDS)
    connection.request(method, parts.path if path is None else path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, dict(answer.getheaders())


def test_the_address_is_on_the_loopback_and_gives_the_page(address: str) -> None:
    status, text, headers = asked(address)
    assert (status, text) == (200, "<p>first \N{WATCH}</p>")
    assert urlsplit(address).hostname == LOOPBACK
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"


def test_the_page_knows_which_one_it_is(page: LivePage) -> None:
    # GIVEN a page that was replaced before its reader could listen
    page.replace("<html data-units='si' data-live><p>text data-live></p>")
    # THEN it says which one it is, and only where it was asked
    assert page.contents.decode() == f"<html data-units='si' data-live=\"{page.version}\"><p>text data-live></p>"


def test_it_listens_on_the_loopback_only(address: str) -> None:
    port = urlsplit(address).port
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {LOOPBACK}
    others.add("127.0.0.2")
    for other in others:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((str(other), port), PATIENCE_SECONDS)


def test_without_the_token_there_is_nothing(address: str, page: LivePage) -> None:
    guessed = "x" * len(page.token)
    for path in (
        "/",
        "",
        f"/{guessed}/",
        f"/{page.token}",
        f"/{page.token}/other",
        f"/{page.token}/../",
        "//",
        "/%C3%A9",
    ):
        assert asked(address, path)[0] == 404


def test_tokens_differ() -> None:
    assert len({LivePage("").token for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[", "10.0.0.1"]
)
def test_a_page_elsewhere_whose_name_leads_here_gets_nothing(address: str, host: str) -> None:
    assert asked(address, Host=host)[0] == 404


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:80"])
def test_a_forwarded_port_is_fine(address: str, host: str) -> None:
    assert asked(address, Host=host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_only_answers_questions(address: str, method: str) -> None:
    assert asked(address, method=method)[0] == 501


def test_readers_hear_of_every_replacement(address: str, page: LivePage) -> None:
    # GIVEN a reader that listens
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE_SECONDS)
    connection.request("GET", f"{parts.path}events")
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "text/event-stream"
    versions = [next_event(answer)]

    # WHEN the page is replaced twice
    for text in ("second", "third"):
        page.replace(text)
        versions.append(next_event(answer))
        assert asked(address)[1] == text
    connection.close()
    answer.close()

    # THEN each has a version of its own
    assert versions == [f"data: {page.token}-{number}" for number in range(3)]


def next_event(answer: http.client.HTTPResponse) -> str:
    line = answer.readline().decode().strip()
    assert answer.readline() == b"\n"
    return line


def test_a_port_that_is_taken_is_an_error(address: str) -> None:
    with pytest.raises(OSError, match="in use"):
        with served(LivePage(""), int(urlsplit(address).port or 0)):
            pass


def test_it_ends_with_its_block(page: LivePage) -> None:
    with served(page) as address:
        pass
    with pytest.raises(OSError, match="refused"):
        asked(address)
