"""The columns behind libpva's objects: each read when first asked for, held once, shared by all objects of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Reals, codes, key_values, only_row
from pvanalyse.analysis.selection import number_of_tiles
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import Kind, TableSource, Where, table

NONE = int(np.iinfo(np.int64).min)
"""Stands for a null among ids."""

_NUMBERS: Mapping[Kind, tuple[type, Any]] = {
    Kind.INTEGER: (np.int64, NONE),
    Kind.REAL: (np.float64, 0.0),
    Kind.BOOLEAN: (np.bool_, False),
}
"""How a column of numbers is held, and what stands for a null in it."""

Made = TypeVar("Made")
_PAGE = 64  # rows of per-tile columns read at once; a row of 16 IPUs has 94 kB
_PAGES = 4


class Columns:
    """Columns of a table, or of some of its rows; a table that was not captured has no rows.

    Parameters
    ----------
    source
        The report.
    name
        The table.
    where
        Only these rows.
    """

    def __init__(self, source: TableSource, name: str, where: Where | None = None) -> None:
        self._source, self._name, self._where = source, name, where
        self._held: dict[str, Any] = {}
        self._filled: dict[str, Integers] = {}

    @cached_property
    def count(self) -> int:
        """Number of rows."""
        if self._where is None or not self._source.captured(self._name):
            return self._source.count(self._name)
        chosen = next(iter(self._where))
        return int(self._source.arrow(self._name, [chosen], self._where).num_rows)

    def load(self, *columns: str) -> None:
        """Read columns of numbers in one pass over the file, which for wide tables is much less than one for each."""
        fresh = [column for column in columns if column not in self._held]
        if not fresh:
            return
        kinds = [table(self._name).by_name[column].kind for column in fresh]
        arrays: list[npt.NDArray[Any]] = [np.empty(self.count, _NUMBERS[kind][0]) for kind in kinds]
        at = 0
        for batch in self.read(*fresh):
            part = slice(at, at := at + batch.num_rows)
            for values, kind, column in zip(arrays, kinds, batch.columns, strict=True):
                values[part] = column.fill_null(_NUMBERS[kind][1]).to_numpy(zero_copy_only=False)
        self._held.update(zip(fresh, arrays, strict=True))

    def ids(self, column: str) -> Integers:
        """Return an integer column, nulls as :data:`NONE`; of shape (rows,)."""
        self.load(column)
        ids: Integers = self._held[column]
        return ids

    def integers(self, column: str) -> Integers:
        """Return an integer column, nulls as 0; of shape (rows,)."""
        if column not in self._filled:
            ids = self.ids(column)
            unknown = ids == NONE
            self._filled[column] = np.where(unknown, 0, ids) if unknown.any() else ids
        return self._filled[column]

    def reals(self, column: str) -> Reals:
        """Return a column of reals, nulls as 0; of shape (rows,)."""
        self.load(column)
        reals: Reals = self._held[column]
        return reals

    def flags(self, column: str) -> npt.NDArray[np.bool_]:
        """Return a column of truth values, nulls as false; of shape (rows,)."""
        self.load(column)
        flags: npt.NDArray[np.bool_] = self._held[column]
        return flags

    def texts(self, column: str) -> list[str]:
        """Return a column of text, nulls as no text."""
        if column not in self._held:
            self._held[column] = [text or "" for batch in self.read(column) for text in batch.column(0).to_pylist()]
        texts: list[str] = self._held[column]
        return texts

    def coded(self, column: str) -> tuple[Integers, dict[str, int]]:
        """Return a category column as numbers, and the number of each category; see :func:`codes` on nulls."""
        known: dict[str, int] = {}
        parts = [codes(part.column(0), known) for part in self.read(column)]
        return np.concatenate([np.empty(0, np.int64), *parts]), known

    def arrow(self, column: str) -> pa.ChunkedArray:
        """Return a column as Arrow holds it, for text in millions of rows."""
        if column not in self._held:
            captured = self._source.captured(self._name)
            nothing = pa.chunked_array([], table(self._name).by_name[column].arrow_type())
            self._held[column] = (
                self._source.arrow(self._name, [column], self._where).column(0) if captured else nothing
            )
        return self._held[column]

    def read(self, *columns: str) -> Iterable[pa.RecordBatch]:
        """Stream some columns without keeping them."""
        return self._source.batches(self._name, columns, self._where) if self._source.captured(self._name) else ()


class PerTile:
    """A column with one number per tile and row, of which a few rows at a time are held.

    Parameters
    ----------
    source, name, column
        The report, the table, the column.
    keys
        The columns that tell its rows apart.
    order
        Values of the first of these in the order in which they will be asked for.
    """

    def __init__(self, source: TableSource, name: str, column: str, keys: Sequence[str], order: Integers) -> None:
        self._source, self._name, self._column, self._keys, self._order = source, name, column, keys, order
        self._pages: dict[int, dict[tuple[int, ...], pa.ListScalar]] = {}

    def row(self, at: int, *key: int) -> list[int] | None:
        """Return a row's numbers; None when the report has none.

        Parameters
        ----------
        at
            Place of the first key in ``order``.
        key
            The other keys.
        """
        page = self._pages.get(at // _PAGE)
        if page is None:
            if len(self._pages) >= _PAGES:
                del self._pages[next(iter(self._pages))]
            page = self._pages[at // _PAGE] = self._read_page(at // _PAGE)
        found = page.get((int(self._order[at]), *key))
        numbers: list[int] | None = found.values.to_numpy().tolist() if found is not None and found.is_valid else None
        return numbers

    def _read_page(self, page: int) -> dict[tuple[int, ...], pa.ListScalar]:
        wanted = self._order[page * _PAGE : (page + 1) * _PAGE].tolist()
        rows = self._source.arrow(self._name, [*self._keys, self._column], {self._keys[0]: wanted})
        keys = zip(*(rows.column(key).to_pylist() for key in self._keys), strict=True)
        return dict(zip(keys, rows.column(self._column), strict=True))


class Groups:
    """The rows that have each of several ids, in the order of the table.

    Parameters
    ----------
    ids
        The id of each row; :data:`NONE` for rows that are nobody's.
    """

    def __init__(self, ids: Integers) -> None:
        in_order = not (ids[1:] < ids[:-1]).any()
        self._order = None if in_order else np.argsort(ids, kind="stable")
        ordered = ids if self._order is None else ids[self._order]
        starts = np.flatnonzero(np.diff(ordered, prepend=NONE))  # those of NONE are before the first start
        self._bounds: list[int] = [*starts.tolist(), len(ids)]
        self._place: dict[int, int] = {one: at for at, one in enumerate(ordered[starts].tolist())}

    def rows(self, one: int) -> Integers:
        """Return the rows with an id."""
        at = self._place.get(one)
        first, last = (0, 0) if at is None else (self._bounds[at], self._bounds[at + 1])
        return np.arange(first, last) if self._order is None else self._order[first:last]


class Store:
    """What a report's objects share: its tables, and what is made from them once.

    Attributes
    ----------
    source
        The report.
    list_length
        How many items the ``repr`` of a list shows.
    """

    def __init__(self, source: TableSource) -> None:
        self.source = source
        self.list_length = 10
        self._tables: dict[str, Columns] = {}
        self._made: dict[type, Any] = {}

    def columns(self, name: str) -> Columns:
        """Return the columns of a table."""
        if name not in self._tables:
            self._tables[name] = Columns(self.source, name)
        return self._tables[name]

    def made(self, kind: type[Made]) -> Made:
        """Return the one object of a kind that is made from this store."""
        if kind not in self._made:
            self._made[kind] = kind(self)  # type: ignore[call-arg]
        made: Made = self._made[kind]
        return made

    def require(self, name: str) -> None:
        """Raise :class:`~pvanalyse.errors.NotCaptured` when a table was not captured."""
        if not self.source.captured(name):
            raise NotCaptured(name, table(name).capture)

    @cached_property
    def _target(self) -> Mapping[str, Any]:
        return only_row(self.source, "target")

    def of_target(self, column: str) -> Any:
        """Return what ``target`` says; raises NotCaptured when it does not."""
        if column not in self._target:
            raise NotCaptured(f"target: {column}", table("target").capture)
        return self._target[column]

    @cached_property
    def info(self) -> Mapping[str, str]:
        """The keys and values of ``report_info``."""
        return key_values(self.source, "report_info")

    @cached_property
    def num_tiles(self) -> int:
        """Number of tiles: of the target, else of those whose memory was captured."""
        return number_of_tiles(self.source)


def first_rows(ids: Integers) -> dict[int, int]:
    """Return the row of each id; of rows with one id, the first."""
    return dict(zip(ids[::-1].tolist(), range(len(ids) - 1, -1, -1), strict=True))
