"""Debug contexts on their way from Python dictionaries to the columns of the table ``debug_contexts``."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.cbor_stream import CborFile
from pvanalyse.readers.debug_fields import json_texts

_NUMBERS = {"debug_context_id": "id", "parent_id": "parentId", "line": "lineNumber"}  # columns and their keys
_REFERENCES = {"name": "name", "layer": "layer", "file": "fileName", "function": "functionName"}

_INLINE = 1 << 32  # references from here on count the texts that stand in the contexts themselves
_CHUNK_BYTES = 8 << 20  # of text in a chunk of a column
_NAME_BYTES = 256 << 20  # names may take this much …
_NAME_GROWTH = 32  # … and this times the file's size; they share the strings, so a small file can ask for a lot

_Integers = npt.NDArray[np.int64]


def texts_or_null(values: Iterable[Any]) -> pa.Array:
    """Return texts as an Arrow array, with null for what is no text."""
    return pa.array([value if type(value) is str else None for value in values], pa.large_string())


class _Numbers:
    """Integers on their way to numpy; a negative one stands for what is not an integer of 0 … 2⁶³ − 1."""

    def __init__(self) -> None:
        self._values = array("q")

    def extend(self, values: list[Any]) -> None:
        try:
            # An array takes booleans as integers
            if set(map(type, values)) == {int}:
                self._values.fromlist(values)
                return
        except OverflowError:
            pass
        self._values.extend(v if type(v) is int and 0 <= v < 1 << 63 else -1 for v in values)

    def finish(self) -> _Integers:
        """Return all integers, −1 for each that is missing."""
        return np.maximum(np.frombuffer(self._values, np.int64), -1)


class _References:
    """References to texts: an index into the string table, or one above ``_INLINE`` for a text of its own.

    Parameters
    ----------
    inline
        Every text that stood in a context instead of an index, and its reference. Columns share it.
    """

    def __init__(self, inline: dict[str, int]) -> None:
        self._numbers = _Numbers()
        self._inline = inline

    def extend(self, values: list[Any]) -> None:
        kinds = set(map(type, values))
        if kinds == {str}:
            references = list(map(self._inline.get, values))
            if None in references:
                references = list(map(self._reference, values))
        elif kinds == {int} and max(values) < _INLINE:
            references = values
        else:
            references = list(map(self._reference, values))
        self._numbers.extend(references)

    def _reference(self, value: Any) -> int:
        if type(value) is str:
            return self._inline.setdefault(value, _INLINE + len(self._inline))
        return value if type(value) is int and value < _INLINE else -1

    def finish(self, num_strings: int) -> _Integers:
        """Return for every row where its text is: in the string table, or after it among the inline texts; or −1."""
        references = self._numbers.finish()
        inline = references >= _INLINE
        references[inline] -= _INLINE - num_strings
        references[~inline & (references >= num_strings)] = -1
        return references


class _Fields:
    """JSON texts on their way to Arrow."""

    def __init__(self) -> None:
        self._pending: list[pa.Array] = []
        self._pending_bytes = 0
        self._chunks: list[pa.Array] = []

    def extend(self, contexts: list[dict[Any, Any]]) -> None:
        """Add the JSON text of each dictionary, null for an empty one."""
        texts = json_texts(contexts)
        self._pending.append(texts)
        self._pending_bytes += texts.nbytes
        if self._pending_bytes >= _CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        texts = pa.concat_arrays(self._pending)
        self._chunks.append(pc.if_else(pc.equal(texts, "{}"), pa.scalar(None, pa.string()), texts))
        self._pending.clear()
        self._pending_bytes = 0

    def finish(self) -> pa.ChunkedArray:
        """Return all texts."""
        if self._pending:
            self._flush()
        return pa.chunked_array(self._chunks, pa.string())


class ContextColumns:
    """The columns of the contexts while they are read.

    Parameters
    ----------
    columns
        Names of the columns that will be asked for.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        wanted = {*columns, "debug_context_id"} if "parent_id" in columns else {*columns}
        inline: dict[str, int] = {}
        self._numbers = {key: _Numbers() for name, key in _NUMBERS.items() if name in wanted}
        self._references = {key: _References(inline) for name, key in _REFERENCES.items() if name in wanted}
        self._columns: dict[str, _Numbers | _References] = {**self._numbers, **self._references}
        self._fields = _Fields() if "fields" in wanted else None
        self._inline = inline
        self.rows = 0

    def add(self, file: CborFile, start: int, batch: list[Any]) -> None:
        """Add a batch of contexts, whose first is at offset `start`; they are changed."""
        if set(map(type, batch)) != {dict}:
            index = next(index for index, context in enumerate(batch) if type(context) is not dict)
            file.fail_item(start, index, "a debug context that is not a map")
        self.rows += len(batch)
        # With fields wanted the other keys are taken out, because what remains in the end are the fields
        take: Callable[[dict[Any, Any], str, None], Any] = dict.get if self._fields is None else dict.pop
        for key in ("id", "parentId", "name", "layer"):
            if key in self._columns:
                self._columns[key].extend(list(map(take, batch, repeat(key), repeat(None))))
            elif self._fields is not None:
                for context in batch:
                    context.pop(key, None)
        locations = list(map(take, batch, repeat("location"), repeat(None)))
        if set(map(type, locations)) != {dict}:
            locations = [location if type(location) is dict else {} for location in locations]
        for key in ("functionName", "fileName", "lineNumber"):
            if key in self._columns:
                self._columns[key].extend(list(map(dict.get, locations, repeat(key))))
        if self._fields is not None:
            self._fields.extend(batch)

    def table(self, schema: pa.Schema, strings: list[pa.Array], file: CborFile) -> pa.Table:
        """Return the table, once everything has been added."""
        numbers = {key: column.finish() for key, column in self._numbers.items()}
        if "parentId" in numbers:
            parents = numbers["parentId"]
            parents[(parents == 0) | ~np.isin(parents, numbers["id"])] = -1
        num_strings = sum(map(len, strings))
        texts = pa.concat_arrays([*strings, texts_or_null(self._inline)])
        strings.clear()
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name in schema.names:
            if name in _NUMBERS:
                columns[name] = _with_nulls(numbers[_NUMBERS[name]])
            elif name in _REFERENCES and name not in columns:
                places = self._references[_REFERENCES[name]].finish(num_strings)
                columns[name] = _names(texts, places, file) if name == "name" else _category(texts, places)
            elif self._fields is not None and name not in columns:
                columns[name] = self._fields.finish()
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _with_nulls(values: _Integers) -> pa.Array:
    """Return integers as an Arrow array, with null for −1."""
    return pa.array(values, mask=values < 0)


def _category(texts: pa.Array, places: _Integers) -> pa.Array:
    """Return the texts at these places as a dictionary array; its dictionary has no text twice and none unused."""
    used = np.zeros(len(texts) + 1, np.bool_)  # place −1 is the last
    used[places] = True
    entries = _with_nulls(np.flatnonzero(used[:-1]))
    dictionary = texts.take(entries).cast(pa.string()).dictionary_encode()
    place_in_dictionary = np.where(used, np.cumsum(used) - 1, -1)
    place_in_dictionary[-1] = -1
    return dictionary.take(_with_nulls(place_in_dictionary[places]))


def _names(texts: pa.Array, places: _Integers, file: CborFile) -> pa.ChunkedArray:
    """Return the texts at these places as strings.

    Raises
    ------
    UnreadableFile
        They would take far more memory than the file.
    """
    sizes = np.append(pc.fill_null(pc.binary_length(texts), 0).to_numpy(), 0)[places]
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    if total > _NAME_BYTES + _NAME_GROWTH * file.size:
        raise UnreadableFile(file.path, f"the names of the debug contexts would take {total:,} bytes")
    cuts = np.unique(np.searchsorted(ends, np.arange(_CHUNK_BYTES, total, _CHUNK_BYTES))).tolist()
    chunks = [texts.take(_with_nulls(part)).cast(pa.string()) for part in np.split(places, cuts)]
    return pa.chunked_array(chunks, pa.string())
