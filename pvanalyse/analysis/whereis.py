"""Where a name is in a report: in which layers, operations, programs, compute sets, vertices, variables, tiles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, integers
from pvanalyse.analysis.context_tree import Flags
from pvanalyse.analysis.ids import Ids
from pvanalyse.analysis.memory_details import compute_sets_frame, matching, per_tile, vertices_frame
from pvanalyse.analysis.operation_costs import OperationCosts
from pvanalyse.analysis.operation_groups import CONTEXT_COLUMNS, operation_groups
from pvanalyse.analysis.operations import by_operation
from pvanalyse.analysis.programs import find_programs
from pvanalyse.analysis.selection import number_of_tiles
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import TableSource, table

_NAMED = ("debug_contexts", "programs", "compute_sets", "vertex_types", "variables", "always_live_variables",
          "variable_liveness")  # fmt: skip
_NEAREST = 6
_MOST_COMPARED = 20_000  # names that a misspelt one is compared with


@dataclass(frozen=True)
class Whereis:
    """What has a name.

    Attributes
    ----------
    name
        What was looked for.
    pattern
        The regular expression it was looked for by.
    found
        Frames by what they are of: ``layers``, ``operations``, ``programs``, ``compute_sets``, ``vertex_types``,
        ``variables``, ``tiles``; one without rows where the name is in none.
    missing
        Of those, what was not captured, and why.
    nearest
        When nothing has the name, names that are like it, the likest first.
    """

    name: str
    pattern: str
    found: Mapping[str, pd.DataFrame]
    missing: Mapping[str, NotCaptured]
    nearest: Sequence[str]


def whereis(source: TableSource, name: str) -> Whereis:
    """Look for a name, or a part of one, in all that a report names.

    Parameters
    ----------
    source
        A report.
    name
        A part of the names that are meant, in upper and lower case as they are; what is part of no name is taken for
        a regular expression.

    Returns
    -------
    Whereis
        Its frames have these columns. ``layers``: ``layer``, ``num_contexts`` whose own name it is. ``operations``: of
        :func:`pvanalyse.analysis.operations.by_operation`. ``programs``: of
        :func:`pvanalyse.analysis.programs.find_programs`. ``compute_sets`` and ``vertex_types``: of
        :func:`pvanalyse.analysis.memory_details.compute_sets_frame` and ``vertices_frame``. ``variables``, allocations
        of declared variables, and of what the compiler made by name: ``name``, ``variable_id`` (null: made by the
        compiler), ``bytes``, ``always_live_bytes``, ``num_tiles``, ``largest_tile``, ``largest_tile_bytes``; the
        largest first. ``tiles``: ``tile``, ``bytes``, and what they are: ``variable_bytes``, ``vertex_code_bytes`` of
        the vertex types, ``exchange_code_bytes`` of the programs; the fullest first.

    Raises
    ------
    UsageError
        The name is part of none, and no regular expression either.
    NotCaptured
        The report names nothing.
    """
    if not any(map(source.captured, _NAMED)):
        raise NotCaptured("programs", table("programs").capture)
    literal = any(_has(names, name).any() for names in _all_names(source))
    pattern = re.escape(name) if literal else name
    matching(pd.Series([], dtype="str"), pattern)  # it must be a regular expression
    found: dict[str, pd.DataFrame] = {}
    missing: dict[str, NotCaptured] = {}
    for what, ask in _questions(source, pattern).items():
        try:
            found[what] = ask()
        except NotCaptured as error:
            missing[what] = error
    nothing = not any(map(len, found.values()))
    return Whereis(name, pattern, found, missing, nearest_names(source, name) if nothing else ())


def _questions(source: TableSource, pattern: str) -> dict[str, Callable[[], pd.DataFrame]]:
    allocations = cache(partial(_allocations, source, pattern))
    return {
        "layers": partial(_layers, source, pattern),
        "operations": lambda: by_operation(OperationCosts(source), operation_groups(source), pattern),
        "programs": partial(find_programs, source, pattern),
        "compute_sets": partial(compute_sets_frame, source, None, pattern),
        "vertex_types": partial(vertices_frame, source, None, pattern),
        "variables": lambda: _variables(allocations()),
        "tiles": lambda: _tiles(source, allocations, pattern),
    }


def nearest_names(source: TableSource, name: str) -> list[str]:
    """Return names of a report that are like one that it does not have, the likest first."""
    known = list(dict.fromkeys(one for names in _all_names(source) for one in pc.unique(names).to_pylist() if one))
    parts = list(dict.fromkeys(part for one in known for part in one.split("/") if part))
    inside = [one for one in [*parts, *known] if name.casefold() in one.casefold()] if name else []
    like = get_close_matches(name, [*parts[:_MOST_COMPARED], *known[:_MOST_COMPARED]], n=_NEAREST, cutoff=0.6)
    return list(dict.fromkeys([*sorted(inside, key=len)[:_NEAREST], *like]))[:_NEAREST]


def _all_names(source: TableSource) -> Iterator[pa.ChunkedArray]:
    for name in _NAMED:
        if source.captured(name):
            columns = CONTEXT_COLUMNS if name == "debug_contexts" else ["name"]
            yield source.arrow(name, columns).column("name")


def _has(names: pa.ChunkedArray, text: str) -> Flags:
    return np.asarray(pc.match_substring(names, text).fill_null(False).to_numpy(), bool)


def _found(names: pa.ChunkedArray, pattern: str) -> Flags:
    return matching(pd.Series([name or "" for name in names.to_pylist()], dtype="str"), pattern)


def _layers(source: TableSource, pattern: str) -> pd.DataFrame:
    if not source.captured("debug_contexts"):
        raise NotCaptured("debug_contexts", table("debug_contexts").capture)
    contexts = source.arrow("debug_contexts", CONTEXT_COLUMNS)
    layers = contexts.column("layer").cast(pa.string()).filter(pa.array(_found(contexts.column("name"), pattern)))
    counts = Counter(layer or "" for layer in layers.to_pylist())
    numbers = np.array([*counts.values()], np.int64)
    return pd.DataFrame({"layer": pd.array([*counts], "str"), "num_contexts": numbers})


# ------------------------------------------------------------------------------------------------ variables and tiles
_SIZES = ["bytes", "always_live_bytes"]


def _allocations(source: TableSource, pattern: str) -> pd.DataFrame:
    """Return ``name``, ``variable_id``, ``tile`` and sizes of allocations, together by variable and tile."""
    declared = _Declared(source, pattern)
    parts = [pd.DataFrame({name: np.zeros(0, np.int64) for name in ("variable", "tile", *_SIZES)})]
    for batch in source.batches("lowered_variables", ["variable_id", "name", "tile", "bytes", "always_live"]):
        variable = declared.variables(batch)
        chosen = variable != _OTHER
        size, live = integers(batch.column("bytes")), batch.column("always_live").fill_null(False)
        columns = {"variable": variable, "tile": integers(batch.column("tile")), "bytes": size,
                   "always_live_bytes": size * live.to_numpy(zero_copy_only=False)}  # fmt: skip
        part = pd.DataFrame({name: values[chosen] for name, values in columns.items()})
        parts.append(part.groupby(["variable", "tile"], as_index=False, sort=False).sum())
    rows = pd.concat(parts).groupby(["variable", "tile"], as_index=False, sort=False).sum()
    return declared.described(rows)


_OTHER = np.iinfo(np.int64).min


class _Declared:
    """Numbers of the variables that are looked for: the declared by row, what the compiler made by name, −1 and on."""

    def __init__(self, source: TableSource, pattern: str) -> None:
        empty = pa.table({"variable_id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
        self._table = source.arrow("variables", empty.column_names) if source.captured("variables") else empty
        self._ids = Ids(self._table.column("variable_id"))
        self._pattern = pattern
        wanted = _found(self._table.column("name"), pattern)
        self._number = np.append(np.where(wanted, np.arange(len(wanted)), _OTHER), _OTHER)
        self._made: dict[str, int] = {}

    def variables(self, batch: pa.RecordBatch) -> Integers:
        """Return the number of the variable of each allocation, _OTHER for one that is not looked for."""
        identity = batch.column("variable_id")
        numbers = self._number[self._ids.rows(identity)]
        without = np.flatnonzero(identity.is_null().to_numpy(zero_copy_only=False))
        if len(without):
            own = batch.column("name").take(pa.array(without)).fill_null("").dictionary_encode()
            names = own.dictionary.to_pylist()
            found = matching(pd.Series(names, dtype="str"), self._pattern)
            made = [self._made.setdefault(name, -1 - len(self._made)) if one else _OTHER
                    for name, one in zip(names, found.tolist(), strict=True)]  # fmt: skip
            numbers[without] = np.array(made)[own.indices.to_numpy()]
        return numbers

    def described(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with ``name`` and ``variable_id``."""
        number = rows["variable"].to_numpy(np.int64)
        made = {at: name for name, at in self._made.items()}
        own = self._table.take(pa.array(number, mask=number < 0))
        names = [
            made.get(at, name or "") for at, name in zip(number.tolist(), own.column("name").to_pylist(), strict=True)
        ]
        ids = pd.array(own.column("variable_id").to_pylist(), "Int64")
        return rows.assign(name=pd.array(names, "str"), variable_id=ids)


def _variables(rows: pd.DataFrame) -> pd.DataFrame:
    by_variable = rows.groupby("variable", sort=False)
    frame = by_variable.agg(
        name=("name", "first"),
        variable_id=("variable_id", "first"),
        bytes=("bytes", "sum"),
        always_live_bytes=("always_live_bytes", "sum"),
        num_tiles=("tile", "size"),
    )
    most = rows.sort_values(["bytes", "tile"], ascending=[False, True]).groupby("variable", sort=False)
    frame["largest_tile"], frame["largest_tile_bytes"] = most["tile"].first(), most["bytes"].first()
    return frame.sort_values(["bytes", "name"], ascending=[False, True], ignore_index=True)


def _tiles(source: TableSource, allocations: Callable[[], pd.DataFrame], pattern: str) -> pd.DataFrame:
    number = number_of_tiles(source)
    sizes: dict[str, Integers | None] = {
        "variable_bytes": _per_tile(allocations, number) if source.captured("lowered_variables") else None,
        "vertex_code_bytes": _vertex_code(source, pattern, number),
        "exchange_code_bytes": _exchange_code(source, pattern, number),
    }
    known = {name: values for name, values in sizes.items() if values is not None}
    if not known:
        raise NotCaptured("programs", table("programs").capture)
    frame = pd.DataFrame({"tile": np.arange(number), "bytes": sum(known.values()), **known})
    frame = frame.reindex(columns=["tile", "bytes", *sizes])
    return frame[frame["bytes"] > 0].sort_values(["bytes", "tile"], ascending=[False, True], ignore_index=True)


def _per_tile(allocations: Callable[[], pd.DataFrame], number: int) -> Integers:
    rows = allocations()
    return _summed(rows["tile"].to_numpy(np.int64), rows["bytes"].to_numpy(np.int64), number)


def _vertex_code(source: TableSource, pattern: str, number: int) -> Integers | None:
    if not (source.captured("vertex_types") and source.captured("tile_vertices")):
        return None
    types, code = source.arrow("vertex_types", ["vertex_type_id", "name"]), source.arrow("tile_vertices")
    chosen = np.append(_found(types.column("name"), pattern), False)
    mine = chosen[Ids(types.column("vertex_type_id")).rows(code.column("vertex_type_id"))]
    return _summed(integers(code.column("tile"))[mine], integers(code.column("code_bytes"))[mine], number)


def _exchange_code(source: TableSource, pattern: str, number: int) -> Integers | None:
    if not source.captured("programs"):
        return None
    total = np.zeros(number, np.int64)
    for batch in source.batches("programs", ["name", "code_bytes_by_tile"]):
        named = batch.filter(pa.array(_found(batch.column("name"), pattern)))
        total += per_tile(named.column("code_bytes_by_tile"), number).sum(axis=0, dtype=np.int64)
    return total


def _summed(tile: Integers, size: Integers, number: int) -> Integers:
    known = (tile >= 0) & (tile < number)
    sums = np.zeros(number, np.int64)
    np.add.at(sums, tile[known], size[known])
    return sums
