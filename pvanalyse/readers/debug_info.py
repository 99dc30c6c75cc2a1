"""Reader of ``debug.cbor``: where every variable and program came from.

The file is one CBOR map with ``contexts``, an array of maps, and ``stringTable``, an array of texts, in either order.
A context has ``id``, ``parentId``, ``name``, ``layer`` and ``location`` (``functionName``, ``fileName``,
``lineNumber``); ``name``, ``functionName`` and ``fileName`` are indices into the string table. Beside these keys
stand, flat, those that the layer itself recorded. The format is not published; this is the description of the
vendor's own JSON writer, and what real files are known to hold.

What the table makes of doubtful contents:

* A text is an index into the string table or, as well, the text itself; an index that the string table does not
  have, or anything else, becomes null. Byte sequences that are not UTF-8 become U+FFFD.
* ``parent_id`` is null for roots: no parent, the parent 0, or a parent that is not in the file.
* Every context has its row, in the order of the file. One without a usable id has null there, and nothing can
  refer to it. Of several contexts with one id, the first is the one that the id refers to.
* Parents may form a cycle in a damaged file. The table shows it as it is; :func:`find_cycles` names the contexts.
* ``fields`` holds what the layer recorded as compact JSON. Byte strings are hexadecimal text there, tags are left
  out around their content, a float that JSON does not have is text (``"NaN"``, ``"Infinity"``, ``"-Infinity"``),
  ``undefined`` is null, and another simple value its number.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from cbor2 import CBORSimpleValue

from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.cbor_stream import CborFile, collector_paused
from pvanalyse.tables import table

_SCHEMA = table("debug_contexts")
_CONTEXTS = "contexts"
_STRINGS = "stringTable"
_STRINGS_KEY = b"\x6bstringTable"  # the key as CBOR
_NUMBERS = {"debug_context_id": "id", "parent_id": "parentId", "line": "lineNumber"}  # columns and their keys
_REFERENCES = {"name": "name", "layer": "layer", "file": "fileName", "function": "functionName"}

_INLINE = 1 << 32  # references from here on count the texts that stand in the contexts themselves
_CHUNK_BYTES = 8 << 20  # of text in a chunk of a column
_NAME_BYTES = 256 << 20  # names may take this much …
_NAME_GROWTH = 32  # … and this times the file's size; they share the strings, so a small file can ask for a lot

_Integers = npt.NDArray[np.int64]


def read_debug_info(
    path: str | PathLike[str],
    columns: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pa.Table:
    """Read the debug contexts of a ``debug.cbor``.

    The contexts are read as a stream, so memory holds little more than the table. Leaving out the column
    ``fields`` halves the time.

    Parameters
    ----------
    path
        The file.
    columns
        Names of the columns wanted, in this order; all when None.
    progress
        Called now and then with the bytes done and the bytes in all.

    Returns
    -------
    pa.Table
        Columns of ``debug_contexts``, one row per context in the order of the file. ``fields`` and ``name`` can
        have several chunks.

    Raises
    ------
    UnreadableFile
        The file is missing, damaged or no debug.cbor; the message names the byte where it goes wrong.
    UsageError
        There is no such column.
    """
    schema = _SCHEMA.arrow_schema(None if columns is None else list(columns))
    with CborFile(path, progress) as file, collector_paused():
        contexts = _Contexts(schema.names)
        strings = _read_map(file, contexts.add)
        return contexts.table(schema, strings, file)


def count_contexts(path: str | PathLike[str]) -> int:
    """Count the debug contexts of a ``debug.cbor``, without reading them where that is safe.

    It is when the file starts with the contexts, says how many there are, and ends with an intact string table:
    then its two ends are sound, and damage between them is left to :func:`read_debug_info` to find. Any other file
    is decoded as a whole.

    Raises
    ------
    UnreadableFile
        The file is missing, damaged or no debug.cbor.
    """
    with CborFile(path) as file, collector_paused():
        start = file.position
        count = _count_from_ends(file)
        if count is not None:
            return count
        file.position = start
        contexts = _Contexts([])
        _read_map(file, contexts.add)
        return contexts.rows


def find_cycles(contexts: pa.Table) -> list[list[int]]:
    """Find the contexts that are, through their parents, their own ancestors.

    Parameters
    ----------
    contexts
        A table with the columns ``debug_context_id`` and ``parent_id`` of ``debug_contexts``.

    Returns
    -------
    list of list of int
        The ids of each cycle, from child to parent, starting with its smallest; the cycles ordered by that.
    """
    ids, first_rows = _first_rows(contexts)
    parents: _Integers = pc.fill_null(contexts["parent_id"], -1).to_numpy()[first_rows]
    # Where each context's parent is among `ids`; roots lead to a place after the last, which leads to itself
    place = np.searchsorted(ids, parents)
    known = (parents >= 0) & (place < len(ids))
    known[known] = ids[place[known]] == parents[known]
    parent_of = np.append(np.where(known, place, len(ids)), len(ids))
    # After 2^k ≥ n steps everything has arrived either at the end of its chain or in a cycle, and fills the cycle
    arrived = parent_of
    for _ in range(len(ids).bit_length()):
        arrived = arrived[arrived]
    in_cycle = np.unique(arrived)[:-1]

    cycles: list[list[int]] = []
    seen: set[int] = set()
    for start in in_cycle.tolist():
        member, cycle = start, []
        while member not in seen:
            seen.add(member)
            cycle.append(int(ids[member]))
            member = int(parent_of[member])
        if cycle:
            cycles.append(cycle)
    return cycles


def describe_problems(contexts: pa.Table) -> list[str]:
    """Describe what is odd about the contexts, a sentence for each kind of problem; none when all is well.

    Parameters
    ----------
    contexts
        A table with the columns ``debug_context_id`` and ``parent_id`` of ``debug_contexts``.
    """
    problems = []
    if without_id := contexts["debug_context_id"].null_count:
        problems.append(f"{without_id:,} debug contexts have no id, so nothing can refer to them")
    duplicates = len(contexts) - without_id - len(_first_rows(contexts)[0])
    if duplicates:
        problems.append(f"{duplicates:,} debug contexts repeat the id of an earlier one, which is used instead")
    if cycles := find_cycles(contexts):
        shown = "; ".join(
            " → ".join(map(str, [*cycle[:5], "…" if len(cycle) > 5 else cycle[0]])) for cycle in cycles[:3]
        )
        more = "; …" if len(cycles) > 3 else ""
        problems.append(
            f"the parents of {sum(map(len, cycles)):,} debug contexts form a cycle and are not followed: {shown}{more}"
        )
    return problems


def _first_rows(contexts: pa.Table) -> tuple[_Integers, _Integers]:
    """Return the ids of the contexts, sorted, and the first row that has each."""
    ids = contexts["debug_context_id"]
    rows = np.flatnonzero(pc.is_valid(ids).to_numpy())
    unique, first = np.unique(ids.drop_null().to_numpy(), return_index=True)
    return unique, rows[first]


# ------------------------------------------------------------------------------------------------ the file


def _read_map(file: CborFile, add: Callable[[CborFile, int, list[Any]], None]) -> list[pa.Array]:
    """Read the map that is the file; give batches of contexts to `add`, and return the string table in pieces."""
    found: set[str] = set()
    strings: list[pa.Array] = []
    for key in file.keys("the file"):
        if key in found:
            file.fail(file.position, f"a second '{key}'")
        if key == _CONTEXTS:
            for start, batch in file.items(file.array_length(f"'{_CONTEXTS}'"), "a debug context"):
                add(file, start, batch)
        elif key == _STRINGS:
            for _, batch in file.items(file.array_length(f"'{_STRINGS}'"), "a string"):
                strings.append(_texts_or_null(batch))
        else:
            file.skip()
            continue
        found.add(key)
    file.expect_end()
    if _CONTEXTS not in found:
        raise UnreadableFile(file.path, f"this is CBOR without '{_CONTEXTS}', so not a debug.cbor")
    return strings


def _texts_or_null(values: Iterable[Any]) -> pa.Array:
    """Return texts as an Arrow array, with null for what is no text."""
    return pa.array([value if type(value) is str else None for value in values], pa.large_string())


def _count_from_ends(file: CborFile) -> int | None:
    """Count the contexts by the file's two ends, or return None when these do not tell."""
    keys = file.keys("the file")
    if next(keys, None) != _CONTEXTS:
        return None
    count = file.array_length(f"'{_CONTEXTS}'")
    start = file.position
    place = file.find_last(_STRINGS_KEY)
    if count is None or place - start < count:
        return None
    file.position = place
    try:
        if next(keys, None) != _STRINGS:
            return None
        for _, batch in file.items(file.array_length(f"'{_STRINGS}'"), "a string"):
            if set(map(type, batch)) != {str}:
                return None
        if next(keys, _STRINGS) != _STRINGS:
            return None
        file.expect_end()
    except UnreadableFile:
        return None
    return count


# ------------------------------------------------------------------------------------------------ columns


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
        texts = _json_texts(contexts)
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


class _Contexts:
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
        texts = pa.concat_arrays([*strings, _texts_or_null(self._inline)])
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
    cuts = np.searchsorted(ends, range(_CHUNK_BYTES, total, _CHUNK_BYTES)).tolist()
    chunks = [texts.take(_with_nulls(part)).cast(pa.string()) for part in np.split(places, cuts)]
    return pa.chunked_array(chunks, pa.string())


# ------------------------------------------------------------------------------------------------ JSON


def _beyond_json(value: Any) -> Any:
    """Return what stands in JSON for a value of CBOR that JSON does not know."""
    if isinstance(value, bytes):
        return value.hex()
    return value.value if isinstance(value, CBORSimpleValue) else None  # the other one is `undefined`


_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_beyond_json
).encode
_MARK = "\0"
_MARK_BETWEEN = f",{_encode(_MARK)},"


def _json_texts(values: list[dict[Any, Any]]) -> pa.StringArray:
    """Return the JSON text of each dictionary."""
    # One call with marks between the dictionaries, because a call for each takes a third longer. A mark is told from
    # the same text within a dictionary by their number: if there are more, the dictionaries are encoded one by one.
    marked: list[Any] = [_MARK] * max(0, 2 * len(values) - 1)
    marked[::2] = values
    try:
        text = _encode(marked).encode()
    except (TypeError, ValueError):
        text = b"[]"
    inside = np.array([1, len(text) - 1], np.int32)  # the brackets left out
    whole = pa.StringArray.from_buffers(1, pa.py_buffer(inside), pa.py_buffer(text))
    texts = pc.split_pattern(whole, _MARK_BETWEEN).flatten()
    return texts if len(texts) == len(values) else pa.array(map(_json_text, values), pa.string())


def _json_text(value: Any) -> str:
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return _encode(_for_json(value))


def _for_json(value: Any) -> Any:
    """Return the value with keys that are text and floats that JSON has."""
    if isinstance(value, dict):
        return {key.hex() if isinstance(key, bytes) else key: _for_json(content) for key, content in value.items()}
    if isinstance(value, list):
        return [_for_json(content) for content in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
