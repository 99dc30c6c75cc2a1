"""Reader of ``debug.cbor``: where every variable and program came from.

The file is one CBOR map with ``contexts``, an array of maps, and ``stringTable``, an array of texts, in either order.
A context has ``id``, ``parentId``, ``name``, ``layer`` and ``location`` (``functionName``, ``fileName``,
``lineNumber``); ``name``, ``functionName`` and ``fileName`` are indices into the string table. Beside these keys
stand, flat, those that the layer itself recorded. The format is not published; its keys are those that the
frameworks' own open sources write into the JSON twin of the file.

What the table makes of doubtful contents:

* A text is an index into the string table or, as well, the text itself; an index that the string table does not
  have, or anything else, becomes null. Byte sequences that are not UTF-8 become U+FFFD.
* ``parent_id`` is null for roots: no parent, the parent 0, or a parent that is not in the file.
* Every context has its row, in the order of the file. One without a usable id has null there, and nothing can
  refer to it. Of several contexts with one id, the first is the one that the id refers to.
* Parents may form a cycle in a damaged file. The table shows it as it is; :func:`find_cycles` names the contexts.
* ``fields`` holds what the layer recorded as compact JSON. Byte strings are hexadecimal text there, tags are left
  out around their content, ``undefined`` and a float that JSON does not have (not a number, an infinity) are null,
  and another simple value is its number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.collector import collector_paused
from pvanalyse.errors import UnreadableFile
from pvanalyse.readers.cbor_stream import CborFile
from pvanalyse.readers.debug_columns import ContextColumns, texts_or_null
from pvanalyse.tables import table

_SCHEMA = table("debug_contexts")
_CONTEXTS = "contexts"
_STRINGS = "stringTable"
_STRINGS_KEY = b"\x6bstringTable"  # the key as CBOR

_Integers = npt.NDArray[np.int64]


def read_debug_info(
    path: str | PathLike[str],
    columns: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pa.Table:
    """Read the debug contexts of a ``debug.cbor``.

    The contexts are read as a stream, so memory holds little more than the table. Leaving out the column
    ``fields`` saves almost half of the time.

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
        contexts = ContextColumns(schema.names)
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
        contexts = ContextColumns([])
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
                strings.append(texts_or_null(batch))
        else:
            file.skip()
            continue
        found.add(key)
    file.expect_end()
    if _CONTEXTS not in found:
        raise UnreadableFile(file.path, f"this is CBOR without '{_CONTEXTS}', so not a debug.cbor")
    return strings


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
        if any(True for _ in keys):
            return None
        file.expect_end()
    except UnreadableFile:
        return None
    return count
