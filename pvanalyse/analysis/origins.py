"""Where a program or variable came from: the chain of its debug contexts, up to the line that a user wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pvanalyse.tables import TableSource

_COLUMNS = ["debug_context_id", "parent_id", "name", "layer", "file", "line"]


@dataclass(frozen=True, slots=True)
class Context:
    """A debug context; what it does not say is None."""

    debug_context_id: int
    name: str | None
    layer: str | None
    file: str | None
    line: int | None


class Origins:
    """Answers where things came from; reads debug.cbor when it is first asked. Without one, every answer is empty."""

    def __init__(self, source: TableSource) -> None:
        self._source = source

    @cached_property
    def _rows(self) -> dict[int, tuple[int | None, Context]]:
        if not self._source.captured("debug_contexts"):
            return {}
        columns = self._source.arrow("debug_contexts", _COLUMNS).to_pydict()
        rows: dict[int, tuple[int | None, Context]] = {}
        for identity, parent, name, layer, file, line in zip(*columns.values(), strict=True):
            if identity is not None:
                # Of several contexts with one id, the first is the one that the id refers to.
                rows.setdefault(identity, (parent, Context(identity, name, layer, file, line)))
        return rows

    def chain(self, debug_context_id: int | None) -> list[Context]:
        """Return a context and its ancestors, innermost first; a cycle of parents is not followed round."""
        return list(self._walk(debug_context_id))

    def location(self, debug_context_id: int | None) -> str:
        """Return ``file:line`` of the outermost context that has one, which is the closest to what a user wrote."""
        located = [context for context in self._walk(debug_context_id) if context.file]
        if not located:
            return ""
        last = located[-1]
        return f"{last.file}:{last.line}" if last.line is not None else str(last.file)

    def operation(self, debug_context_id: int | None) -> str:
        """Return the name of the outermost context that has one: the user's own operation."""
        return next((context.name for context in reversed(self.chain(debug_context_id)) if context.name), "")

    def _walk(self, debug_context_id: int | None) -> Iterator[Context]:
        seen: set[int] = set()
        at = debug_context_id
        while at is not None and at not in seen and at in self._rows:
            seen.add(at)
            parent, context = self._rows[at]
            yield context
            at = parent
