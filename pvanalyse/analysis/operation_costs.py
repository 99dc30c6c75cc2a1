"""What groups of programs and variables cost, whatever they were grouped by.

What a program or a variable costs alone is added up once; a group's costs are then sums over what is in it. Only the
code and the state of vertices are the group's own: see :data:`COSTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from pvanalyse.analysis.columns import Integers, Sums, integers
from pvanalyse.analysis.ids import Ids
from pvanalyse.analysis.liveness import liveness_peak
from pvanalyse.analysis.memory_details import per_tile
from pvanalyse.analysis.programs import program_tree
from pvanalyse.analysis.selection import number_of_tiles
from pvanalyse.tables import TableSource

COSTS: Mapping[str, str] = {
    "code_bytes": "the three that follow together, over all tiles",
    "vertex_code_bytes": "code of its vertices, once for each vertex type and tile on which one of its compute sets "
    "has a vertex of the type; groups that use one type on one tile each count its code",
    "exchange_code_bytes": "exchange code of its programs; exchanges can share code, so it may add up to more than "
    "there is",
    "control_code_bytes": "control code of its programs, each without that of its children",
    "vertex_state_bytes": "instances of the vertices of its compute sets × the state of one",
    "variable_bytes": "allocations of its variables, over all tiles",
    "always_live_bytes": "those of them that are always live",
    "peak_bytes": "its variables that are live at the peak, but not always, on one replica",
    "cycles": "of the executed steps of its programs, over IPUs",
    "flops": "estimate for one execution of each of its compute sets, over all tiles; those without an estimate are "
    "left out",
    "executions": "executed steps of its programs",
}
"""The costs of a group by column. The programs, compute sets, vertices and variables of a group are each counted once;
a compute set that programs of several groups run is in each of these groups. A cost is null where the report does not
hold what it takes, and ``flops`` where no compute set has an estimate."""

_CODE = ("exchange_code_bytes", "control_code_bytes")
_ROWS_AT_ONCE = 1024  # of vertex counts unpacked to a byte per tile


class OperationCosts:
    """What programs and variables cost; reads what it needs when it is first asked.

    Parameters
    ----------
    source
        A report.
    """

    def __init__(self, source: TableSource) -> None:
        self._source = source

    def of_groups(self, of_program: Integers, of_variable: Integers, number: int) -> pd.DataFrame:
        """Return what groups cost.

        Parameters
        ----------
        of_program, of_variable
            Group of each row of table ``programs`` and ``variables``, −1 for none; empty where it was not captured.
        number
            How many groups there are.

        Returns
        -------
        pandas.DataFrame
            A row per group and a last one for what is in none: allocations that the compiler made, compute sets that
            no program runs, steps of programs that the report does not describe. Columns :data:`COSTS`, Int64.
        """
        programs, variables = np.append(of_program, -1), np.append(of_variable, -1)
        found = {name: _added(programs, values, number) for name, values in self._programs.items()}
        found |= {name: _added(variables, values, number) for name, values in self._variables.items()}
        found |= self._of_compute_sets(programs, number)
        parts = [found.get(name) for name in ("vertex_code_bytes", "exchange_code_bytes", "control_code_bytes")]
        if all(part is not None for part in parts):
            found["code_bytes"] = [sum(values) for values in zip(*filter(None, parts), strict=True)]
        nothing = [None] * (number + 1)
        return pd.DataFrame({name: _whole(found.get(name, nothing)) for name in COSTS})

    @cached_property
    def _programs(self) -> dict[str, list[int]]:
        """Costs of each row of table programs, and of what it does not describe."""
        if not self._source.captured("programs"):
            return {}
        ids = self._source.arrow("programs", ["program_id"]).column(0)
        tree = program_tree(self._source).drop_duplicates("program_id")
        at = Ids(ids).rows(pa.array(tree["program_id"], pa.int64()))
        found = {name: _added(at, tree[f"own_{name}"].tolist(), len(ids)) for name in _CODE}
        return {**found, **self._executed(Ids(ids), len(ids))}

    def _executed(self, programs: Ids, number: int) -> dict[str, list[int]]:
        if not (self._source.captured("execution_steps") and self._source.captured("execution_step_ipus")):
            return {}
        steps = self._source.arrow("execution_steps", ["step_id", "program_id"])
        of_step = programs.rows(steps.column("program_id")) % (number + 1)
        executions, cycles = np.bincount(of_step, minlength=number + 1), Sums(number + 1)
        step_ids = Ids(steps.column("step_id"))
        for batch in self._source.batches("execution_step_ipus", ["step_id", "cycles"]):
            at = step_ids.rows(batch.column("step_id"))
            cycles.add(of_step[at[at >= 0]], integers(batch.column("cycles"))[at >= 0])
        return {"executions": executions.tolist(), "cycles": [cycles[at] for at in range(number + 1)]}

    @cached_property
    def _variables(self) -> dict[str, list[int]]:
        """Costs of each row of table variables, and of what it does not declare."""
        return {**self._allocations(), **self._at_peak()}

    def _allocations(self) -> dict[str, list[int]]:
        if not self._source.captured("lowered_variables"):
            return {}
        number = self._num_variables
        size, always = Sums(number + 1), Sums(number + 1)
        for batch in self._source.batches("lowered_variables", ["variable_id", "bytes", "always_live"]):
            at = self._variable_ids.rows(batch.column("variable_id")) % (number + 1)
            live = batch.column("always_live").fill_null(False).to_numpy(zero_copy_only=False)
            size.add(at, integers(batch.column("bytes")))
            always.add(at[live], integers(batch.column("bytes"))[live])
        return {name: [sums[at] for at in range(number + 1)]
                for name, sums in (("variable_bytes", size), ("always_live_bytes", always))}  # fmt: skip

    def _at_peak(self) -> dict[str, list[int]]:
        peak = liveness_peak(self._source)
        if peak is None or not self._source.captured("variable_liveness"):
            return {}
        rows = self._source.arrow("variable_liveness", ["variable_id", "step_begin", "step_end", "bytes"])
        live = (integers(rows.column("step_begin")) <= peak.step) & (peak.step < integers(rows.column("step_end")))
        at = self._variable_ids.rows(rows.column("variable_id"))
        return {"peak_bytes": _added(at[live], integers(rows.column("bytes"))[live].tolist(), self._num_variables)}

    @cached_property
    def _variable_ids(self) -> Ids:
        if not self._num_variables:
            return Ids(pa.chunked_array([[]], pa.int64()))
        return Ids(self._source.arrow("variables", ["variable_id"]).column(0))

    @property
    def _num_variables(self) -> int:
        return self._source.count("variables")

    # --------------------------------------------------------------------------------------------- compute sets
    def _of_compute_sets(self, of_program: Integers, number: int) -> dict[str, list[Any]]:
        if not (self._source.captured("programs") and self._source.captured("compute_sets")):
            return {}
        sets = self._source.arrow("compute_sets", ["compute_set_id", "flops"])
        pairs = self._pairs(of_program, number, sets.column("compute_set_id"))
        found: dict[str, list[Any]] = {"flops": _flops(pairs, sets.column("flops"), number)}
        if self._vertices is not None:
            rows = pairs.merge(self._vertices.rows, on="compute_set")
            found["vertex_state_bytes"] = _added(rows["group"].to_numpy(), rows["state"].tolist(), number)
            found["vertex_code_bytes"] = self._vertices.code(rows, number)
        return found

    def _pairs(self, of_program: Integers, number: int, sets: pa.ChunkedArray) -> pd.DataFrame:
        """Return each ``compute_set``, a row of its table, with each ``group`` that it is in."""
        at = Ids(sets).rows(self._source.arrow("programs", ["compute_set_id"]).column(0))
        group = of_program[:-1][at >= 0] % (number + 1)
        idle = np.setdiff1d(np.arange(len(sets)), at)
        pairs = pd.DataFrame({"group": group, "compute_set": at[at >= 0]}).drop_duplicates()
        return pd.concat([pairs, pd.DataFrame({"group": number, "compute_set": idle})], ignore_index=True)

    @cached_property
    def _vertices(self) -> _Vertices | None:
        names = ("target", "vertex_types", "tile_vertices", "compute_set_vertices")
        return _read_vertices(self._source) if all(map(self._source.captured, names)) else None


def _flops(pairs: pd.DataFrame, estimates: pa.ChunkedArray, number: int) -> list[int | None]:
    known = estimates.is_valid().to_numpy()[pairs["compute_set"].to_numpy()]
    held = pairs[known]
    group = held["group"].to_numpy()
    sums = _added(group, integers(estimates)[held["compute_set"].to_numpy()].tolist(), number)
    has = np.bincount(group, minlength=number + 1) > 0
    return [value if one else None for value, one in zip(sums, has.tolist(), strict=True)]


def _added(group: Integers, values: Sequence[int], number: int) -> list[int]:
    """Return the sum of each group's values, exact; what is in none comes last."""
    sums = [0] * (number + 1)
    for at, value in zip(group.tolist(), values, strict=True):
        sums[at] += value
    return sums


def _whole(values: Sequence[int | None]) -> Any:
    """Return whole numbers as an array that has nulls; as Python's integers where 64 bits do not do."""
    try:
        return pd.array(values, "Int64")
    except OverflowError:
        return np.array([pd.NA if value is None else value for value in values], object)


# ------------------------------------------------------------------------------------------------------------ vertices
@dataclass(frozen=True)
class _Vertices:
    """Where compute sets have vertices.

    ``rows`` has a row per compute set and vertex type: ``compute_set`` and ``type``, rows of their tables, and bytes
    of ``state``. ``present`` tells for each of them on which tiles there are any, a bit per tile. ``code`` of a type is
    on ``tile[type]``, of so many ``bytes[type]`` each.
    """

    rows: pd.DataFrame
    present: npt.NDArray[np.uint8]
    tile: list[Integers]
    bytes: list[Integers]

    def code(self, rows: pd.DataFrame, number: int) -> list[int]:
        """Return the bytes of code that each group's vertices have; groups and rows are those of a merge."""
        sums = [0] * (number + 1)
        ordered = rows.sort_values(["type", "group"])
        kinds, groups, at = (ordered[name].to_numpy(np.int64) for name in ("type", "group", "at"))
        for kind in range(len(self.tile)):
            begin, end = np.searchsorted(kinds, [kind, kind + 1])
            mine, starts = np.unique(groups[begin:end], return_index=True)
            cuts = np.append(starts + begin, end)
            for first in range(0, len(mine), _ROWS_AT_ONCE):
                part = cuts[first : first + _ROWS_AT_ONCE + 1]
                size = self._code_of(kind, at[part[0] : part[-1]], part[:-1] - part[0])
                for group, value in zip(mine[first : first + _ROWS_AT_ONCE].tolist(), size.tolist(), strict=True):
                    sums[group] += value
        return sums

    def _code_of(self, kind: int, rows: Integers, starts: Integers) -> Integers:
        somewhere = np.bitwise_or.reduceat(self.present[rows], starts, axis=0)
        tile = self.tile[kind]
        bits = (somewhere[:, tile >> 3] >> (tile & 7).astype(np.uint8)) & 1
        return np.asarray(bits.astype(np.int64) @ self.bytes[kind])


def _read_vertices(source: TableSource) -> _Vertices:
    types = source.arrow("vertex_types", ["vertex_type_id", "instance_bytes"])
    type_ids, set_ids = Ids(types.column(0)), Ids(source.arrow("compute_sets", ["compute_set_id"]).column(0))
    state_of = np.append(integers(types.column(1)), 0)
    num_tiles = number_of_tiles(source)
    parts, present = [], [np.zeros((0, (num_tiles + 7) // 8), np.uint8)]
    for batch in source.batches("compute_set_vertices"):
        counts = per_tile(batch.column("count_by_tile"), num_tiles)
        kind = type_ids.rows(batch.column("vertex_type_id"))
        number = counts.sum(axis=1, dtype=np.int64)
        part = {"compute_set": set_ids.rows(batch.column("compute_set_id")), "type": kind}
        parts.append(pd.DataFrame({**part, "state": number * state_of[kind]}))
        present.append(np.packbits(counts > 0, axis=1, bitorder="little"))
    rows = pd.concat(parts, ignore_index=True)
    return _Vertices(
        rows.assign(at=np.arange(len(rows))), np.concatenate(present), *_code(source, type_ids, len(types), num_tiles)
    )


def _code(source: TableSource, types: Ids, number: int, num_tiles: int) -> tuple[list[Integers], list[Integers]]:
    """Return on which tiles there is code of each vertex type, and how many bytes."""
    table = source.arrow("tile_vertices")
    kind, tile = types.rows(table.column("vertex_type_id")), integers(table.column("tile"))
    known = np.flatnonzero((kind >= 0) & (tile >= 0) & (tile < num_tiles))
    known = known[np.argsort(kind[known], kind="stable")]
    cuts = np.searchsorted(kind[known], np.arange(1, number))
    size = integers(table.column("code_bytes"))
    return np.split(tile[known], cuts), np.split(size[known], cuts)
