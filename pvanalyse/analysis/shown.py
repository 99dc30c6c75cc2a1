"""Answers that a notebook shows as HTML, though the rooms of analysis know nothing of HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Shown:
    """An answer that shows itself as whatever renders it has registered; plain where nothing has."""

    __slots__ = ()
    _as_html: ClassVar[Callable[[Any], str] | None] = None

    @classmethod
    def show_with(cls, render: Callable[[Any], str]) -> None:
        """Register what renders answers of this class: from an answer to a piece of HTML."""
        cls._as_html = staticmethod(render)

    def _repr_html_(self) -> str | None:
        render = type(self)._as_html
        return None if render is None else render(self)
