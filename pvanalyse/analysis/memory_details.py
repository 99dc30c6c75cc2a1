"""What the bytes of chosen tiles are: vertices, compute sets, exchanges, variables, and the map of one tile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, Keys, Sums, integers, only_row
from pvanalyse.analysis.selection import batches_on_tiles, number_of_tiles
from pvanalyse.errors import NotCaptured, PvanalyseError, UsageError
from pvanalyse.names import marked
from pvanalyse.tables import TABLES, TableSource, table


def per_tile(column: pa.Array | pa.ChunkedArray, num_tiles: int) -> npt.NDArray[np.uint32]:
    """Return a per-tile column as an array of shape (rows, tiles); a null is all zeros.

    Raises
    ------
    PvanalyseError
        The column is not for so many tiles, as it can be where the report has no target to check it against.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # too large for one chunk
        return np.concatenate([per_tile(chunk, num_tiles) for chunk in array.chunks])
    values = array.flatten().to_numpy(zero_copy_only=False)
    rows = len(array) - array.null_count
    if len(values) != rows * num_tiles:
        raise PvanalyseError(
            f"a table cannot be: {rows:,} rows of it have {len(values):,} values for {num_tiles:,} tiles"
        )
    if not array.null_count:
        return np.asarray(values).reshape(len(array), num_tiles)
    matrix = np.zeros((len(array), num_tiles), np.uint32)
    matrix[array.is_valid().to_numpy(zero_copy_only=False)] = values.reshape(-1, num_tiles)
    return matrix


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that a user wrote, ready to search with.

    Raises
    ------
    UsageError
        It is none; the mistake is marked.
    """
    try:
        return re.compile(pattern)
    except OverflowError as error:
        raise UsageError(f"not a regular expression: {error}") from None
    except re.error as error:
        raise UsageError(f"not a regular expression: {error.msg}\n{marked(pattern, error.pos or 0)}") from None
    except RecursionError:
        raise UsageError("not a regular expression that can be used: it nests too deep") from None


def matching(names: pd.Series[str], pattern: str | None) -> npt.NDArray[np.bool_]:
    """Tell which names a regular expression is found in; None is found in all.

    Raises
    ------
    UsageError
        The pattern is no regular expression; the mistake is marked.
    """
    if pattern is None:
        return np.ones(len(names), bool)
    found = compiled(pattern)
    return np.fromiter((found.search(name) is not None for name in names), bool, len(names))


def vertices_frame(source: TableSource, tiles: Integers | None = None, pattern: str | None = None) -> pd.DataFrame:
    """Return the vertex types on the tiles, those with most bytes first.

    Returns
    -------
    pandas.DataFrame
        ``vertex_type_id``, ``name``, ``code_bytes``, ``num_instances``, ``state_bytes`` (instances × the state of one)
        and ``num_tiles`` that hold its code.
    """
    types = _frame(source, "vertex_types", ["vertex_type_id", "name", "instance_bytes"])
    code, present = Sums(len(types)), np.zeros(len(types), np.int64)
    for batch in source.batches("tile_vertices"):
        tile = integers(batch.column("tile"))
        at = Keys(types["vertex_type_id"].to_numpy(np.int64)).positions(integers(batch.column("vertex_type_id")))
        chosen = (at >= 0) & (np.ones(len(tile), bool) if tiles is None else np.isin(tile, tiles))
        code.add(at[chosen], integers(batch.column("code_bytes"))[chosen])
        present += np.bincount(at[chosen], minlength=len(types))
    instances = np.zeros(len(types), np.int64)
    for _, type_ids, counts in _vertex_counts(source, tiles):
        at = Keys(types["vertex_type_id"].to_numpy(np.int64)).positions(type_ids)
        np.add.at(instances, at[at >= 0], counts.sum(axis=1, dtype=np.int64)[at >= 0])
    types["code_bytes"] = [code[at] for at in range(len(types))]
    types["num_instances"] = instances
    types["state_bytes"] = types.pop("instance_bytes") * instances
    types["num_tiles"] = present
    chosen = matching(types["name"], pattern) & ((types["num_tiles"] > 0) | (instances > 0))
    return _largest(types[chosen], types["code_bytes"] + types["state_bytes"])


def compute_sets_frame(source: TableSource, tiles: Integers | None = None, pattern: str | None = None) -> pd.DataFrame:
    """Return the compute sets with vertices on the tiles, those with most vertex state first.

    Returns
    -------
    pandas.DataFrame
        ``compute_set_id``, ``name``, ``num_vertices``, ``state_bytes``, ``num_vertex_types``, ``num_tiles``,
        ``max_estimated_cycles`` of a tile, and ``flops`` (of all tiles; null where there is no estimate).
    """
    sets = _frame(source, "compute_sets", ["compute_set_id", "name", "flops"])
    state_of_type = _state_of_type(source)
    sums = {name: np.zeros(len(sets), np.int64) for name in ("num_vertices", "state_bytes", "num_vertex_types")}
    on_tile = np.zeros((len(sets), _width(source, tiles)), bool)
    for set_ids, type_ids, counts in _vertex_counts(source, tiles):
        at = Keys(sets["compute_set_id"].to_numpy(np.int64)).positions(set_ids)
        number = counts.sum(axis=1, dtype=np.int64)
        state = number * np.array([state_of_type.get(one, 0) for one in type_ids.tolist()])
        for name, values in zip(sums, (number, state, number > 0), strict=True):
            np.add.at(sums[name], at[at >= 0], values[at >= 0])
        np.logical_or.at(on_tile, at[at >= 0], counts[at >= 0] > 0)
    for name, values in sums.items():
        sets[name] = values
    sets["num_tiles"] = on_tile.sum(axis=1)
    sets["max_estimated_cycles"] = _max_per_tile(source, "compute_sets", "estimated_cycles_by_tile", tiles)
    sets["flops"] = sets.pop("flops")
    return _largest(sets[matching(sets["name"], pattern) & (sets["num_vertices"] > 0)], sets["state_bytes"])


def exchanges_frame(source: TableSource, tiles: Integers | None = None, pattern: str | None = None) -> pd.DataFrame:
    """Return the programs with exchange code on the tiles, the largest first.

    Exchanges can share code, so the sum over programs may exceed what the storage categories say.

    Returns
    -------
    pandas.DataFrame
        ``program_id``, ``type``, ``name``, ``code_bytes``, the tile that holds most of it, and
        ``max_estimated_cycles`` of a tile.
    """
    chosen = np.arange(_num_tiles(source)) if tiles is None else tiles
    parts = []
    columns = ["program_id", "type", "name", "code_bytes_by_tile", "estimated_cycles_by_tile"]
    for batch in source.batches("programs", columns):
        code = per_tile(batch.column("code_bytes_by_tile"), _num_tiles(source))[:, chosen]
        part = pd.DataFrame({name: _texts(batch.column(name)) for name in ("type", "name")})
        part.insert(0, "program_id", integers(batch.column("program_id")))
        part["code_bytes"] = code.sum(axis=1, dtype=np.int64)
        part["largest_tile"] = chosen[code.argmax(axis=1)] if len(chosen) else 0
        part["largest_tile_bytes"] = code.max(axis=1, initial=0).astype(np.int64)
        cycles = per_tile(batch.column("estimated_cycles_by_tile"), _num_tiles(source))[:, chosen]
        part["max_estimated_cycles"] = cycles.max(axis=1, initial=0).astype(np.int64)
        parts.append(part[part["code_bytes"] > 0])
    programs = pd.concat(parts, ignore_index=True)
    return _largest(programs[matching(programs["name"], pattern)], programs["code_bytes"])


def variables_frame(source: TableSource, tiles: Integers | None = None, pattern: str | None = None) -> pd.DataFrame:
    """Return the variables that have allocations on the tiles, the largest first.

    Allocations are put together by the variable that the program declared; those that the compiler made, by name.

    Returns
    -------
    pandas.DataFrame
        ``name``, ``variable_id`` (null: made by the compiler), ``bytes``, ``num_allocations``, ``num_tiles``, the tile
        that holds most, and ``always_live_bytes``.
    """
    rows = _allocations(source, tiles, pattern)
    by_variable = rows.groupby("variable", sort=False)
    frame = by_variable.agg(
        name=("name", "first"),
        variable_id=("variable_id", "first"),
        bytes=("bytes", "sum"),
        num_allocations=("num_allocations", "sum"),
        num_tiles=("tile", "size"),
        always_live_bytes=("always_live_bytes", "sum"),
    )
    most = rows.sort_values(["bytes", "tile"], ascending=[False, True]).groupby("variable", sort=False)
    frame.insert(5, "largest_tile", most["tile"].first())
    frame.insert(6, "largest_tile_bytes", most["bytes"].first())
    return _largest(frame, frame["bytes"])


def variable_tiles(source: TableSource, pattern: str, tiles: Integers | None = None) -> pd.DataFrame:
    """Return ``name``, ``tile`` and ``bytes`` of the variables whose name the pattern is found in."""
    rows = _allocations(source, tiles, pattern)[["name", "tile", "bytes"]]
    return rows.groupby(["name", "tile"], as_index=False).sum().sort_values(["name", "tile"], ignore_index=True)


def memory_map(source: TableSource, tile: int) -> pd.DataFrame:
    """Return what lies where on a tile, by address; what found no place comes last.

    Returns
    -------
    pandas.DataFrame
        ``begin`` and ``end`` (tile addresses, null where not allocated), ``bytes``, ``kind`` (``allocation``, ``gap``
        or ``not allocated``), ``name``, ``category``, ``region``, ``always_live``, ``first_step`` and ``last_step``
        (the step after the last; null where always live) and ``overlaps``: how many other allocations share addresses
        with this one, at other times.
    """
    rows = _allocations_of(source, tile)
    placed = rows[rows["begin"].notna()].sort_values(["begin", "end", "name"], kind="stable")
    begin, end = (placed[name].to_numpy(np.int64) for name in ("begin", "end"))
    # Those that begin before this one ends, less those that end before it begins, less itself.
    real = end > begin
    before = np.searchsorted(np.sort(begin[real]), end, "left")
    over = np.searchsorted(np.sort(end[real]), begin, "right")
    placed = placed.assign(kind="allocation", overlaps=np.where(real, before - over - 1, 0))
    rest = rows[rows["begin"].isna()].assign(kind="not allocated", overlaps=0)
    rest = rest.sort_values(["bytes", "name"], ascending=[False, True])
    gaps = _gaps(begin, end, _region_begins(source))
    together = pd.concat([placed, gaps]).sort_values(["begin", "end"], kind="stable")
    return pd.concat([together, rest], ignore_index=True)[_MAP_COLUMNS]


_MAP_COLUMNS = ["begin", "end", "bytes", "kind", "name", "category", "region", "always_live", "first_step", "last_step",
                "overlaps"]  # fmt: skip


# ------------------------------------------------------------------------------------------------------ the parts


def _allocations_of(source: TableSource, tile: int) -> pd.DataFrame:
    columns = ["offset", "bytes", "variable_id", "name", "category", "region", "always_live", "equivalence_class_id"]
    rows = source.arrow("lowered_variables", columns, where={"tile": [tile]})
    frame = pd.DataFrame(
        {
            "begin": pd.array(rows.column("offset").to_pylist(), "Int64"),
            "bytes": integers(rows.column("bytes")),
            "name": declared_names(source, rows),
            "category": _texts(rows.column("category")),
            "region": _texts(rows.column("region")),
            "always_live": rows.column("always_live").fill_null(False).to_numpy(),
        }
    )
    frame.insert(1, "end", frame["begin"] + frame["bytes"])
    classes = rows.column("equivalence_class_id").to_pylist()
    classes = [None if always else one for always, one in zip(frame["always_live"], classes, strict=True)]
    first, last = _steps_of_classes(source, classes)
    frame["first_step"], frame["last_step"] = pd.array(first, "Int64"), pd.array(last, "Int64")
    return frame


def _steps_of_classes(source: TableSource, classes: list[int | None]) -> tuple[list[int | None], list[int | None]]:
    """Return the first step of each class, and the one after its last."""
    if not source.captured("equivalence_class_intervals"):
        return [None] * len(classes), [None] * len(classes)
    spans_of = source.arrow("equivalence_class_intervals").group_by("equivalence_class_id")
    spans = spans_of.aggregate([("step_begin", "min"), ("step_end", "max")]).to_pydict()
    ids = spans["equivalence_class_id"]
    first = dict(zip(ids, spans["step_begin_min"], strict=True))
    last = dict(zip(ids, spans["step_end_max"], strict=True))
    return [first.get(one) for one in classes], [last.get(one) for one in classes]


def declared_names(source: TableSource, rows: pa.Table) -> list[str]:
    """Return the names of the declared variables where there are any: a lowered name such as v12#3 says little."""
    own: list[str]
    own, ids = rows.column("name").to_pylist(), rows.column("variable_id").to_pylist()
    if not source.captured("variables"):
        return own
    declared = source.arrow("variables", ["variable_id", "name"]).to_pydict()
    names = dict(zip(declared["variable_id"], declared["name"], strict=True))
    return [names.get(identity) or name or "" for identity, name in zip(ids, own, strict=True)]


def _region_begins(source: TableSource) -> list[int]:
    interleaved = only_row(source, "target").get("interleaved_begin")
    return [0] if interleaved is None else [0, int(interleaved)]


def _gaps(begin: Integers, end: Integers, region_begins: list[int]) -> pd.DataFrame:
    """Return the stretches that nothing uses, in each region from its begin to its highest used address."""
    gaps: list[tuple[int, int]] = []
    for at, low in enumerate(region_begins):
        high = region_begins[at + 1] if at + 1 < len(region_begins) else np.iinfo(np.int64).max
        mine = (begin < high) & (end > low) & (end > begin)  # what lies across a border is in both regions
        reach = np.concatenate(([low], np.maximum.accumulate(end[mine])))
        starts = np.flatnonzero(begin[mine] > reach[:-1])
        gaps += zip(reach[starts].tolist(), begin[mine][starts].tolist(), strict=True)
    frame = pd.DataFrame({"begin": [b for b, _ in gaps], "end": [e for _, e in gaps]}, dtype="Int64")
    frame["bytes"] = (frame["end"] - frame["begin"]).astype(np.int64)
    return frame.assign(kind="gap", name="", category="", region="", always_live=False, overlaps=0,
                        first_step=pd.array([pd.NA] * len(frame), "Int64"),
                        last_step=pd.array([pd.NA] * len(frame), "Int64"))  # fmt: skip


def _allocations(source: TableSource, tiles: Integers | None, pattern: str | None) -> pd.DataFrame:
    """Return allocations put together by variable and tile."""
    made: dict[str, int] = {}  # names of variables that the compiler made, and their numbers: −1, −2, …
    columns = ["variable_id", "name", "tile", "bytes", "always_live"]
    parts = [_grouped(batch, made) for batch in batches_on_tiles(source, "lowered_variables", columns, tiles)]
    rows = _added_up(pd.concat(parts, ignore_index=True))
    names: dict[int, str] = {}
    if source.captured("variables"):
        declared = source.arrow("variables", ["variable_id", "name"]).to_pydict()
        names = {key: name for key, name in zip(declared["variable_id"], declared["name"], strict=True) if name}
    names |= {number: name for name, number in made.items()}
    rows["name"] = [names.get(number, f"variable {number}") for number in rows["variable"]]
    rows["variable_id"] = rows["variable"].astype("Int64").where(rows["variable"] >= 0)
    return rows[matching(rows["name"], pattern)]


def _grouped(batch: pa.RecordBatch, made: dict[str, int]) -> pd.DataFrame:
    identity = batch.column("variable_id")
    # Only the names of what the compiler made are looked at; others are declared in a table of their own.
    name = batch.column("name").fill_null("")
    own = pc.if_else(identity.is_valid(), pa.scalar(None, pa.string()), name).dictionary_encode()
    numbers = np.array([made.setdefault(name, -1 - len(made)) for name in own.dictionary.to_pylist()] or [0])
    code = own.indices.fill_null(0).to_numpy(zero_copy_only=False)
    known = identity.is_valid().to_numpy(zero_copy_only=False)
    size = integers(batch.column("bytes"))
    live = batch.column("always_live").fill_null(False).to_numpy(zero_copy_only=False)
    frame = pd.DataFrame(
        {
            "variable": np.where(known, integers(identity), numbers[code]),
            "tile": integers(batch.column("tile")),
            "bytes": size,
            "always_live_bytes": np.where(live, size, 0),
            "num_allocations": 1,
        }
    )
    return _added_up(frame)


def _added_up(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby(["variable", "tile"], as_index=False, sort=False).sum()


def _vertex_counts(
    source: TableSource, tiles: Integers | None
) -> Iterator[tuple[Integers, Integers, npt.NDArray[Any]]]:
    """Yield compute set, vertex type and the counts of shape (rows, chosen tiles)."""
    num_tiles = _num_tiles(source)
    for batch in source.batches("compute_set_vertices"):
        counts = per_tile(batch.column("count_by_tile"), num_tiles)
        counts = counts if tiles is None else counts[:, tiles]
        yield integers(batch.column("compute_set_id")), integers(batch.column("vertex_type_id")), counts


def _state_of_type(source: TableSource) -> dict[int, int]:
    types = source.arrow("vertex_types", ["vertex_type_id", "instance_bytes"]).to_pydict()
    return {kind: size or 0 for kind, size in zip(types["vertex_type_id"], types["instance_bytes"], strict=True)}


def _max_per_tile(source: TableSource, name: str, column: str, tiles: Integers | None) -> Integers:
    parts = []
    for batch in source.batches(name, [column]):
        values = per_tile(batch.column(column), _num_tiles(source))
        parts.append((values if tiles is None else values[:, tiles]).max(axis=1, initial=0).astype(np.int64))
    return np.concatenate(parts)


def _num_tiles(source: TableSource) -> int:
    """Return the length of per-tile columns."""
    if not only_row(source, "target").get("num_tiles"):
        raise NotCaptured("target", table("target").capture)
    return number_of_tiles(source)


def _width(source: TableSource, tiles: Integers | None) -> int:
    return _num_tiles(source) if tiles is None else len(tiles)


def _frame(source: TableSource, name: str, columns: list[str]) -> pd.DataFrame:
    """Return columns of a table, ordered by the first, its id."""
    rows = source.arrow(name, columns)
    frame = pd.DataFrame({columns[0]: integers(rows.column(0))})
    for column in columns[1:]:
        values = rows.column(column)
        if pa.types.is_string(values.type):
            frame[column] = _texts(values)
        elif values.null_count and TABLES[name].by_name[column].nullable:
            frame[column] = pd.array(values.to_pylist(), "Int64")
        else:
            frame[column] = integers(values)
    return frame.sort_values(columns[0], kind="stable", ignore_index=True)


def _texts(column: pa.Array | pa.ChunkedArray) -> list[str]:
    return [text or "" for text in column.to_pylist()]


def _largest(frame: pd.DataFrame, size: pd.Series[int]) -> pd.DataFrame:
    order = np.lexsort((frame["name"].to_numpy(str), -size.loc[frame.index].to_numpy(np.int64)))
    return frame.iloc[order].reset_index(drop=True)
