"""What all objects of the façade are: views on columns, sequences of views, and small plain values.

A view knows the store of its report and a row there. It is made when it is asked for and costs next to nothing, so it
is not kept; two views of the same thing are equal, and usable as keys of a dict.
"""

# ruff: noqa: N815  (libpva's names)

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn, TypeVar, overload

from pvanalyse.errors import PvanalyseError

if TYPE_CHECKING:
    from pvanalyse.libpva.store import Store

Item = TypeVar("Item", covariant=True)


class GapBytes(NamedTuple):
    """Bytes of a part of a tile's memory, with the unused bytes between allocations and without."""

    includingGaps: int
    excludingGaps: int


class CycleRange(NamedTuple):
    """The smallest and the largest of the cycles of several tiles."""

    min: int
    max: int


class CycleSpan(NamedTuple):
    """When something begins and ends on several tiles, in cycles."""

    cyclesFrom: CycleRange
    cyclesTo: CycleRange


class Microseconds(NamedTuple):
    """Host time of a run."""

    start: int
    end: int


class TotalCycles(NamedTuple):
    """Cycles of the whole execution."""

    total: int


class StepInterval(NamedTuple):
    """Half-open interval of indices into ``livenessProgramSteps``."""

    start: int
    end: int


class SourceLocation(NamedTuple):
    """Where in a source file something was written."""

    fileName: str
    lineNumber: int


class View:
    """An object of libpva; its attributes are read-only properties."""

    __slots__ = ("_row", "_store")

    _not_known: ClassVar[Mapping[str, str]] = {}
    """Names that libpva may have under this or another spelling, and the table of pvanalyse that holds the data."""

    def __init__(self, store: Store, row: int = 0) -> None:
        self._store = store
        self._row = row

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._row == self._row and other._store is self._store

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._row))

    def __getattr__(self, name: str) -> NoReturn:
        if name in self._not_known:
            raise AttributeError(
                f"libpva's spelling of '{type(self).__name__}.{name}' is not known, so it is not answered; "
                f"pvanalyse has the data in {self._not_known[name]}"
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def _shown(self) -> Iterator[str]:
        """Yield the attributes that are plain values."""
        for name in dir(type(self)):
            if isinstance(getattr(type(self), name), property):
                try:
                    value = getattr(self, name)
                except PvanalyseError:
                    continue
                if isinstance(value, (int, float, str, tuple, Enum)):
                    yield f"{name}={value!r}"


class Items(Sequence[Item]):
    """A sequence whose items are made when they are asked for.

    Parameters
    ----------
    store
        Of the report.
    length
        Number of items.
    make
        Makes the item with an index from 0 to ``length`` − 1.
    """

    __slots__ = ("_length", "_make", "_store")

    def __init__(self, store: Store, length: int, make: Callable[[int], Item]) -> None:
        self._store = store
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, range(self._length))

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        places = range(self._length)[index]  # raises IndexError as a list does
        return list(map(self._make, places)) if isinstance(places, range) else self._make(places)

    def __repr__(self) -> str:
        shown = [repr(item) for item in islice(self, self._store.list_length)]
        more = [f"… and {self._length - len(shown):,} more"] if self._length > len(shown) else []
        return f"[{', '.join(shown + more)}]"


def listed(store: Store, items: Sequence[Item]) -> Items[Item]:
    """Return items that are made already as one of libpva's sequences."""
    return Items(store, len(items), items.__getitem__)
