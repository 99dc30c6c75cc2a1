"""One table of intervals, whatever recorded them: executed steps, lightweight profiling, or the viewer's cache.

Each interval is something that one IPU did from one cycle to another. The three sources differ in what they know, not
in what a reader of the table has to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pvanalyse.analysis.columns import Integers, Keys, integers, only_row, reals
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

IntervalKind = Literal["steps", "blocks", "cache"]
"""Where intervals come from: executed steps of profile.pop, its lightweight-profiling blocks, profile.pop_cache."""

UNKNOWN = "Unknown"
"""The type of an interval whose program the report does not describe."""
GROUP = "FlameGraphNode"
"""The tag of a group of blocks in the cache, which is not an interval of its own."""
COMPILER_COPY = re.compile(r"copy\d+_")
"""How the names of copies start that the compiler made; what they copy follows, with a path of its own."""

INTERVAL_COLUMNS = ("step_id", "run_id", "ipu", "program_id", "type", "name", "begin", "end", "all_begin", "all_end",
                    "cycles", "tile_balance", "active_tile_balance", "data_in", "data_out", "destination")  # fmt: skip
"""The columns of the table, see :func:`interval_batches`."""

_TABLES: Mapping[IntervalKind, tuple[str, ...]] = {
    "steps": ("execution_steps", "execution_step_ipus"),
    "blocks": ("execution_blocks",),
    "cache": ("trace_blocks",),
}
_STEP_COLUMNS = {
    "begin": "active_from_max", "end": "active_to_max", "all_begin": "all_from_min", "all_end": "all_to_max",
    "cycles": "cycles", "tile_balance": "tile_balance", "active_tile_balance": "active_tile_balance",
    "data_in": "data_in", "data_out": "data_out",
}  # fmt: skip
_REALS = ("tile_balance", "active_tile_balance")
_BYTES = ("data_in", "data_out")
_DEEPEST = 64  # groups in groups; real ones are three deep


def available_kinds(source: TableSource) -> tuple[IntervalKind, ...]:
    """Return the kinds of intervals that a report holds, the best first."""
    return tuple(kind for kind in get_args(IntervalKind) if all(source.captured(name) for name in _TABLES[kind]))


def interval_batches(
    source: TableSource,
    kind: IntervalKind | None = None,
    runs: Sequence[int] | None = None,
    ipus: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pd.DataFrame]:
    """Stream the intervals of a report, ordered by ``step_id`` and ``ipu``.

    Parameters
    ----------
    source
        A report.
    kind
        What recorded them; by default the best that there is: steps, else blocks, else the cache.
    runs, ipus
        Only these runs and IPUs. Blocks and the cache do not say which run they belong to.
    columns
        Only these of :data:`INTERVAL_COLUMNS`, in this order; names are what costs most.

    Yields
    ------
    pandas.DataFrame
        ``step_id`` (a block's id; of a cached block, which may be several steps merged, the first of them);
        ``run_id`` and ``program_id`` (−1 unknown); ``ipu``; ``type`` (the program's; a block without a program has its
        kind, a cached block its tag) and ``name``; the half-open interval ``begin`` to ``end`` in cycles of that IPU
        (``active_from_max``, ``active_to_max``), the one over all tiles ``all_begin`` to ``all_end`` (the same where
        it is unknown); ``cycles``; ``tile_balance`` and ``active_tile_balance`` (NaN unknown); ``data_in`` and
        ``data_out`` in bytes (null unknown); and ``destination``, what a stream copy in the cache moves bytes to or
        from: ``Host`` or remote buffers (null elsewhere: ``stream_copies`` says it by program). Rows of a step that
        ``execution_steps`` does not have belong to no run and are left out. At least one batch comes, if an empty one.

    Raises
    ------
    NotCaptured
        The report holds no intervals, or none of the kind.
    UsageError
        There is no such kind, column, run or IPU, or runs are asked of a kind that does not know them.
    """
    chosen = _choose(source, kind)
    wanted = INTERVAL_COLUMNS if columns is None else tuple(columns)
    unknown = [name for name in wanted if name not in INTERVAL_COLUMNS]
    if unknown:
        raise UsageError(f"intervals have no column '{unknown[0]}'; they have: {', '.join(INTERVAL_COLUMNS)}")
    if runs is not None:
        _require_runs(source, chosen, runs)
    if ipus is not None:
        _require_ipus(source, ipus)
    reader = {"steps": _steps, "blocks": _blocks, "cache": _cache}[chosen]
    return _some(reader(source, runs, ipus, wanted), wanted)


def _choose(source: TableSource, kind: str | None) -> IntervalKind:
    known = get_args(IntervalKind)
    if kind is not None and kind not in known:
        raise UsageError(f"there is no kind of intervals '{kind}'; there are: {', '.join(known)}")
    for one in available_kinds(source):
        if kind in (None, one):
            return one
    missing = next(name for one in known if kind in (None, one) for name in _TABLES[one] if not source.captured(name))
    raise NotCaptured(missing, table(missing).capture)


def _require_runs(source: TableSource, kind: IntervalKind, runs: Sequence[int]) -> None:
    if kind != "steps":
        raise UsageError(f"the intervals of kind '{kind}' do not say which run they belong to")
    known = set(integers(source.arrow("execution_steps", ["run_id"]).column(0)).tolist())
    if source.captured("runs"):
        known |= set(integers(source.arrow("runs", ["run_id"]).column(0)).tolist())
    for run in runs:
        if run not in known:
            raise UsageError(f"there is no run {run}; runs are {min(known)} to {max(known)}")


def _require_ipus(source: TableSource, ipus: Sequence[int]) -> None:
    num_ipus = only_row(source, "target").get("num_ipus")
    for ipu in ipus:
        if ipu < 0 or (num_ipus is not None and ipu >= num_ipus):
            between = f"; IPUs are 0 to {num_ipus - 1}" if num_ipus else ""
            raise UsageError(f"there is no IPU {ipu}{between}")


# --------------------------------------------------------------------------------------------------- the three sources
def _steps(
    source: TableSource, runs: Sequence[int] | None, ipus: Sequence[int] | None, wanted: Sequence[str]
) -> Iterator[pd.DataFrame]:
    step_table = source.arrow("execution_steps", ["step_id", "run_id", "program_id"])
    steps = Keys(integers(step_table.column(0)))
    run_of_step, program_of_step = _identities(step_table.column(1)), _identities(step_table.column(2))
    programs = _Programs(source, wanted)
    program_at = programs.positions(program_of_step)
    stored = [_STEP_COLUMNS[name] for name in wanted if name in _STEP_COLUMNS]
    for batch in source.batches("execution_step_ipus", ["step_id", "ipu", *stored]):
        at = steps.positions(integers(batch.column("step_id")))
        chosen = at >= 0
        if runs is not None:
            chosen &= np.isin(run_of_step[at], list(runs))
        rows, at = _only(batch, chosen, ipus), at[_mask(batch, chosen, ipus)]
        found: dict[str, Any] = {name: _values(name, rows.column(_STEP_COLUMNS[name])) for name in wanted
                                 if name in _STEP_COLUMNS}  # fmt: skip
        found |= {"step_id": integers(rows.column("step_id")), "ipu": integers(rows.column("ipu")),
                  "run_id": run_of_step[at], "program_id": program_of_step[at]}  # fmt: skip
        if "destination" in wanted:
            found["destination"] = pa.nulls(len(rows), pa.string())
        yield _frame(found | programs.texts(program_at[at]), wanted)


def _blocks(
    source: TableSource, _runs: Sequence[int] | None, ipus: Sequence[int] | None, wanted: Sequence[str]
) -> Iterator[pd.DataFrame]:
    tiles_per_ipu = max(1, int(only_row(source, "target").get("tiles_per_ipu", np.iinfo(np.int64).max)))
    programs = _Programs(source, wanted)
    for batch in source.batches("execution_blocks"):
        ipu = integers(batch.column("tile")) // tiles_per_ipu
        batch = batch.append_column("ipu", pa.array(ipu))
        rows = _only(batch, np.ones(len(ipu), bool), ipus)
        program_id = _identities(rows.column("program_id"))
        found = _interval(rows) | {"step_id": integers(rows.column("block_id")), "program_id": program_id}
        if "type" in wanted:
            known = programs.positions(program_id)
            kind = rows.column("kind").cast(pa.string()).fill_null(UNKNOWN)
            found["type"] = pc.if_else(pa.array(known >= 0), programs.texts(known)["type"], kind)
        found["name"] = rows.column("name").fill_null("")
        yield _frame(found, wanted)


def _cache(
    source: TableSource, _runs: Sequence[int] | None, ipus: Sequence[int] | None, wanted: Sequence[str]
) -> Iterator[pd.DataFrame]:
    groups = _Groups(source) if "name" in wanted else None
    parts = []
    for batch in source.batches("trace_blocks"):
        rows = _only(batch, ~_is_group(batch), ipus)
        found = _interval(rows) | {
            "step_id": _first(rows.column("step_ids")),
            "tile_balance": reals(rows.column("tile_balance")),
            "destination": rows.column("stream_copy_destination").cast(pa.string()),
        }
        types = rows.column("tag").cast(pa.string()).fill_null(UNKNOWN)
        found["type"] = pc.if_else(pc.equal(types, "StreamCopy"), "StreamCopyMid", types)
        if groups is not None:
            found["name"] = pa.array(groups.names(rows), pa.string())
        parts.append(_frame(found, [*wanted, *{"step_id", "ipu"}.difference(wanted)]))
    # The file's order is that of the picture; a cache is small enough to be sorted.
    if parts:
        whole = pd.concat(parts).sort_values(["step_id", "ipu"], kind="stable", ignore_index=True)
        yield whole[list(wanted)]


class _Groups:
    """Groups of the cache, which took the first parts of the names of what is in them."""

    def __init__(self, source: TableSource) -> None:
        self._own: dict[int, tuple[int, str]] = {}
        self._of_steps: dict[tuple[int, ...], int] = {}
        for batch in source.batches("trace_blocks", ["block_id", "parent_id", "tag", "ipu", "name", "step_ids"]):
            for row in batch.filter(pa.array(_is_group(batch))).to_pylist():
                self._own[row["block_id"]] = row["parent_id"], row["name"] or ""
                if row["step_ids"]:
                    self._of_steps[(row["ipu"], *row["step_ids"])] = row["block_id"]
        self._paths = {group: self._path(group) for group in self._own}

    def names(self, rows: pa.RecordBatch) -> list[str]:
        """Return whole names. Synchronisation and copies that the compiler made kept theirs."""
        names = rows.select(["parent_id", "tag", "ipu", "name", "step_ids"]).to_pylist()
        return [self._name(**row) for row in names]

    def _name(self, parent_id: int | None, tag: str | None, ipu: int, name: str | None, step_ids: list[int]) -> str:
        if not name:  # a step whose whole name is that of a group: the group has its steps
            group = self._of_steps.get((ipu, *(step_ids or ())))
            return self._paths.get(group, "") if group is not None else ""
        if parent_id not in self._paths or "Sync" in (tag or "") or COMPILER_COPY.match(name):
            return name
        return f"{self._paths[parent_id]}/{name}"

    def _path(self, group: int) -> str:
        parts: list[str] = []
        at: int | None = group
        while at in self._own and len(parts) < _DEEPEST:  # a damaged cache may go round in circles
            at, name = self._own[at]
            parts.append(name)
        return "/".join(reversed(parts))


def _is_group(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    tag = batch.column("tag").cast(pa.string()).fill_null("")
    return np.asarray(pc.equal(tag, GROUP).to_numpy(zero_copy_only=False), bool)


def _first(step_ids: pa.ListArray) -> Integers:
    """Return the first of the steps in each list, −1 for none."""
    lengths = pc.list_value_length(step_ids).fill_null(0).to_numpy(zero_copy_only=False)
    first = np.full(len(lengths), -1)
    if lengths.any():
        starts = np.cumsum(lengths) - lengths
        first[lengths > 0] = np.minimum.reduceat(integers(step_ids.flatten()), starts[lengths > 0])
    return first


# ----------------------------------------------------------------------------------------------------------- the parts
class _Programs:
    """Type and name of programs; those that are not described have the type :data:`UNKNOWN` and no name."""

    def __init__(self, source: TableSource, wanted: Sequence[str]) -> None:
        self._wanted = [name for name in ("type", "name") if name in wanted]
        self._texts = {"type": pa.array([UNKNOWN]), "name": pa.array([""])}
        self._keys = Keys(np.empty(0, np.int64))
        if self._wanted and source.captured("programs"):
            table = source.arrow("programs", ["program_id", *self._wanted])
            self._keys = Keys(integers(table.column("program_id")))
            for name in self._wanted:
                last = self._texts[name]
                column = table.column(name).cast(pa.string()).fill_null(last[0])
                self._texts[name] = pa.concat_arrays([*column.chunks, last])

    def positions(self, program_id: Integers) -> Integers:
        """Return where each program is, −1 for one that is not described."""
        return self._keys.positions(program_id)

    def texts(self, at: Integers) -> dict[str, pa.Array]:
        """Return the wanted texts of the programs at positions."""
        return {name: self._texts[name].take(pa.array(np.where(at < 0, len(self._texts[name]) - 1, at)))
                for name in self._wanted}  # fmt: skip


def _interval(rows: pa.RecordBatch) -> dict[str, Any]:
    """Return the columns of blocks, which have one interval and know no more."""
    begin, end = integers(rows.column("cycles_from")), integers(rows.column("cycles_to"))
    none = np.full(len(begin), -1)
    unknown = np.full(len(begin), np.nan)
    return {
        "ipu": integers(rows.column("ipu")), "run_id": none, "program_id": none, "begin": begin, "end": end,
        "all_begin": begin, "all_end": end, "cycles": end - begin,
        **dict.fromkeys(_REALS, unknown), **dict.fromkeys(_BYTES, pa.nulls(len(begin), pa.int64())),
        "destination": pa.nulls(len(begin), pa.string()),
    }  # fmt: skip


def _mask(batch: pa.RecordBatch, chosen: npt.NDArray[np.bool_], ipus: Sequence[int] | None) -> npt.NDArray[np.bool_]:
    return chosen if ipus is None else chosen & np.isin(integers(batch.column("ipu")), list(ipus))


def _only(batch: pa.RecordBatch, chosen: npt.NDArray[np.bool_], ipus: Sequence[int] | None) -> pa.RecordBatch:
    mask = _mask(batch, chosen, ipus)
    return batch if mask.all() else batch.filter(pa.array(mask))


def _identities(column: pa.Array | pa.ChunkedArray) -> Integers:
    return integers(column.fill_null(-1))


def _values(name: str, column: pa.Array) -> Any:
    if name in _REALS:
        return reals(column)
    return column if name in _BYTES else integers(column)


def _frame(found: Mapping[str, Any], wanted: Sequence[str]) -> pd.DataFrame:
    columns = {name: found[name] for name in wanted}
    for name, values in columns.items():
        if name in _BYTES:
            known = values.is_valid().to_numpy(zero_copy_only=False)
            columns[name] = pd.arrays.IntegerArray(integers(values), ~known)
        elif isinstance(values, pa.Array):
            columns[name] = values.to_pandas()
    return pd.DataFrame(columns, copy=False)


def _some(frames: Iterator[pd.DataFrame], wanted: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Pass on the frames that have rows, or one without."""
    empty = True
    for frame in frames:
        if len(frame):
            empty = False
            yield frame
    if empty:
        none = np.empty(0, np.int64)
        found = {**dict.fromkeys(INTERVAL_COLUMNS, none), **dict.fromkeys(_REALS, np.empty(0)),
                 **dict.fromkeys(_BYTES, pa.array([], pa.int64())),
                 **dict.fromkeys(("type", "name", "destination"), pa.array([], pa.string()))}  # fmt: skip
        yield _frame(found, wanted)
