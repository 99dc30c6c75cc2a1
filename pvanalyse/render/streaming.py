"""Streams that end where their reader does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def ended(stream: Iterator[T]) -> Iterator[Iterator[T]]:
    """Yield a stream and end it with the block, so that nothing stays open when the block fails half-way."""
    try:
        yield stream
    finally:
        close = getattr(stream, "close", None)  # generators have one
        if close is not None:
            close()
