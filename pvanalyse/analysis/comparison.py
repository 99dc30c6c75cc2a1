"""Two or more reports compared, each with the first, and matched by stable names.

Identifiers, and much of the numbering in names, differ from one compile to the next, so rows are matched by
:mod:`pvanalyse.analysis.stable_names`; what has the same stable name is added up. Nothing is dropped for want of a
partner: a row that not every report has says which have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import pandas as pd

from pvanalyse.analysis import liveness, memory, memory_details
from pvanalyse.analysis.breakdowns import Breakdowns, is_broken_down
from pvanalyse.analysis.columns import only_row
from pvanalyse.analysis.contributions import Contributions, Key, Shares, changes
from pvanalyse.analysis.metrics import CATALOGUE, Metrics, Number, metric_spec, metrics
from pvanalyse.analysis.side_by_side import LETTERS, Values, change_of, numbers, side_by_side
from pvanalyse.analysis.stable_names import stable_name
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

_TARGET = {
    "type": "type",
    "architecture": "architecture",
    "num_ipus": "IPUs",
    "num_replicas": "replicas",
    "num_tiles": "tiles",
    "bytes_per_tile": "bytes per tile",
    "clock_frequency": "clock in Hz",
}
_OPTIONAL = ("lowered_variables", "liveness_steps", "execution_steps", "debug_contexts")
_QUANTILES = (0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1)
_BINS = 12
_UNKNOWN = "(unknown)"
_TOP_LEVEL = "(top level)"


class Comparison:
    """What differs between reports A, B, C …: each is compared with A.

    Frames have a row for each thing that any report has, see
    :func:`pvanalyse.analysis.side_by_side.side_by_side` for their columns; they also hold what did not change,
    :func:`pvanalyse.analysis.side_by_side.changed_rows` leaves it out. A frame raises NotCaptured when one of the
    reports lacks what it is about.

    Attributes
    ----------
    sources
        The reports; at least two.
    names
        What each is called, in the same order.
    """

    def __init__(self, sources: Sequence[TableSource], names: Sequence[str] | None = None) -> None:
        if not 2 <= len(sources) <= len(LETTERS):
            raise UsageError(f"2 to {len(LETTERS)} reports can be compared, not {len(sources)}")
        self.sources = tuple(sources)
        self.names = tuple(names or (LETTERS[at].upper() for at in range(len(sources))))

    # ------------------------------------------------------------------------------------------------- what is compared

    @cached_property
    def metric_values(self) -> list[Metrics]:
        """The metrics of each report."""
        return [metrics(source) for source in self.sources]

    @cached_property
    def breakdowns(self) -> list[Breakdowns]:
        """What the metrics of each report are made of."""
        return [Breakdowns(source) for source in self.sources]

    @cached_property
    def same_tiles(self) -> bool:
        """Whether tiles can be compared one by one: the reports have the same ones."""
        tiles = [memory.required_tile_memory(source)["tile"] for source in self.sources]
        return all(np.array_equal(np.sort(one), np.sort(tiles[0])) for one in tiles)

    @cached_property
    def notes(self) -> list[str]:
        """What makes the reports less alike than numbers show, a sentence each."""
        targets = [only_row(source, "target") for source in self.sources]
        said = []
        for name, what in _TARGET.items():
            values = [target.get(name) for target in targets]
            if len({value for value in values if value is not None}) > 1:
                said.append(f"The targets differ in {what}: {self._each([_plain(value) for value in values])}.")
        if any((target.get("num_replicas") or 1) > 1 for target in targets):
            said.append("Sizes of variables are those of all replicas together.")
        for name in _OPTIONAL:
            have = [LETTERS[at].upper() for at, source in enumerate(self.sources) if source.captured(name)]
            if 0 < len(have) < len(self.sources):
                said.append(f"Only {' and '.join(have)} captured {table(name).part.name}.")
        return said

    def _each(self, texts: Sequence[str]) -> str:
        return ", ".join(f"{LETTERS[at].upper()} {text}" for at, text in enumerate(texts))

    # -------------------------------------------------------------------------------------------------------- metrics

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Every metric, as they are listed: ``metric``, ``unit``, and ``b_relative`` …, which is null from 0.

        A metric that is missing was not captured, which is not 0, so there is no change from or to it.
        """
        names = sorted(dict.fromkeys(name for values in self.metric_values for name in values), key=_place)
        sides: list[Values] = [{(name,): value for name, value in values.items()} for values in self.metric_values]
        units = {(name,): _unit(name) for name in names}
        frame = side_by_side(["metric"], sides, {"unit": units}).set_index("metric").loc[names].reset_index()
        for at in range(1, len(sides)):
            pairs = [(self.metric_values[0].get(name), self.metric_values[at].get(name)) for name in names]
            frame[change_of(at)] = numbers([_difference(*pair) for pair in pairs])
            frame[f"{LETTERS[at]}_relative"] = [_relative(*pair) for pair in pairs]
        return frame

    def contributions(self, metric: str, report: int = 1) -> pd.DataFrame:
        """Return what changed a metric from A to another report, see :func:`pvanalyse.analysis.contributions.changes`.

        Parameters
        ----------
        metric
            Such as ``memory.tile_max_including_gaps``.
        report
            1 for B, 2 for C.

        Raises
        ------
        UsageError
            There is no such metric or report, or the metric is not made of parts.
        NotCaptured
            A report lacks what the metric is made of.
        """
        if not 1 <= report < len(self.sources):
            raise UsageError(f"there is no report {report} besides A; there are 1 to {len(self.sources) - 1}")
        if not is_broken_down(metric):
            raise self._no_parts(metric)
        made = [self.breakdown(metric, at) for at in (0, report)]
        return changes(*made)

    def breakdown(self, metric: str, report: int) -> Contributions:
        """Return what a metric of a report (0 for A) is made of; raises as :meth:`contributions` does."""
        found = self.breakdowns[report].of(metric)
        if found is None:
            name = f"{metric} of {LETTERS[report].upper()}"
            raise NotCaptured(name, table(_needed(metric)).capture)
        return found

    def _no_parts(self, metric: str) -> UsageError:
        known = dict.fromkeys(name for values in self.metric_values for name in values)
        if metric in known:
            return UsageError(f"metric '{metric}' is not made of parts")
        near = get_close_matches(metric, known, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; 'pvanalyse metrics' lists them"
        return UsageError(f"there is no metric '{metric}'{hint}")

    # --------------------------------------------------------------------------------------------------------- memory

    @cached_property
    def categories(self) -> pd.DataFrame:
        """Bytes of each storage category, over all tiles: ``category``, not overlapped."""
        self._require("tile_memory_category")
        found = [memory.category_bytes(source).non_overlapped for source in self.sources]
        return side_by_side(["category"], [{(name,): size for name, size in one.items()} for one in found])

    @cached_property
    def ipus(self) -> pd.DataFrame:
        """Bytes including gaps of each IPU: ``ipu``."""
        self._require("target")
        found = [memory.required_tile_memory(source).bytes_by_ipu for source in self.sources]
        return side_by_side(["ipu"], [{(ipu,): size for ipu, size in one.items()} for one in found])

    @cached_property
    def tiles(self) -> pd.DataFrame:
        """Bytes including gaps of each tile: ``tile``.

        Raises
        ------
        UsageError
            The reports have different tiles.
        """
        if not self.same_tiles:
            counts = [f"{source.count('tile_memory'):,}" for source in self.sources]
            raise UsageError(f"the reports have different tiles, which cannot be compared one by one: "
                             f"{self._each(counts)}")  # fmt: skip
        found = [memory.required_tile_memory(source) for source in self.sources]
        pairs = [zip(one["tile"].tolist(), one["total_including_gaps"].tolist(), strict=True) for one in found]
        return side_by_side(["tile"], [{(tile,): size for tile, size in one} for one in pairs])

    @cached_property
    def tile_quantiles(self) -> pd.DataFrame:
        """How full the tiles are, whichever they are: ``quantile`` (0 to 1), bytes by linear interpolation."""
        found = [memory.required_tile_memory(source)["total_including_gaps"] for source in self.sources]
        sides = [dict(zip(_QUANTILES, np.quantile(one, _QUANTILES).tolist(), strict=True)) for one in found]
        columns = {LETTERS[at]: [side[one] for one in _QUANTILES] for at, side in enumerate(sides)}
        frame = pd.DataFrame({"quantile": _QUANTILES, **columns})
        for at in range(1, len(sides)):
            frame[change_of(at)] = frame[LETTERS[at]] - frame["a"]
        return frame

    def tile_changes(self, report: int = 1) -> pd.DataFrame:
        """Return how the changes of the tiles are distributed: ``from_bytes``, ``to_bytes`` and ``num_tiles``.

        Equally wide bins from the smallest change to the largest, the last bin's end included; a bin of its own from
        0 to 0 for tiles that did not change.
        """
        change = self.tiles[change_of(report)].to_numpy(np.int64)
        moved = change[change != 0]
        rows = [(0, 0, len(change) - len(moved))] if len(moved) < len(change) else []
        if len(moved):
            low = int(moved.min())
            counts, edges = np.histogram(moved - low, min(_BINS, len(np.unique(moved))))
            edges = np.ceil(edges).astype(np.int64) + low
            rows += list(zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))
        return pd.DataFrame(rows, columns=["from_bytes", "to_bytes", "num_tiles"], dtype="int64")

    @cached_property
    def variables(self) -> pd.DataFrame:
        """Size of each variable: ``variable``, and ``category``, ``operation`` and ``location``."""
        return _added_up(self._sizes, {"variable": lambda key: key.variable})

    @cached_property
    def layers(self) -> pd.DataFrame:
        """Size of the variables of each layer, which is the path of their names: ``layer``."""
        return _added_up(self._sizes, {"layer": lambda key: key.layer or _TOP_LEVEL}, ())

    @cached_property
    def operations(self) -> pd.DataFrame:
        """Size of the variables of each operation of the user's: ``operation`` and ``location``."""
        self._require("debug_contexts")
        return _added_up(self._sizes, {"operation": lambda key: key.operation or _UNKNOWN}, ("location",))

    @cached_property
    def peak(self) -> pd.DataFrame:
        """Variables live at the peak, that of each report: ``variable`` …, and ``b_event`` … what became of each.

        An event is ``entered``, ``left``, ``grew`` or ``shrank``, or empty.
        """
        self._require("liveness_steps", "variable_liveness")
        sides = [part.live_at_peak or {} for part in self.breakdowns]
        frame = _added_up(sides, {"variable": lambda key: key.variable or key.category})
        for letter in LETTERS[1 : len(sides)]:
            pairs = zip(frame["a"].isna(), frame[letter].isna(), frame[f"{letter}_change"], strict=True)
            frame[f"{letter}_event"] = pd.Series([_event(*pair) for pair in pairs], dtype="str")
        return frame

    @cached_property
    def vertices(self) -> pd.DataFrame:
        """Bytes of code and state of each type of vertices: ``vertex_type``."""
        self._require("vertex_types", "tile_vertices", "compute_set_vertices")
        frames = [memory_details.vertices_frame(source) for source in self.sources]
        return _by_name("vertex_type", frames, lambda frame: frame["code_bytes"] + frame["state_bytes"])

    @cached_property
    def compute_sets(self) -> pd.DataFrame:
        """Bytes of vertex state of each compute set: ``compute_set``."""
        self._require("compute_sets", "compute_set_vertices", "vertex_types")
        frames = [memory_details.compute_sets_frame(source) for source in self.sources]
        return _by_name("compute_set", frames, lambda frame: frame["state_bytes"])

    @cached_property
    def exchanges(self) -> pd.DataFrame:
        """Bytes of exchange code of each exchange: ``exchange``."""
        self._require("programs")
        frames = [memory_details.exchanges_frame(source) for source in self.sources]
        return _by_name("exchange", frames, lambda frame: frame["code_bytes"])

    # ------------------------------------------------------------------------------------------------------- execution

    @cached_property
    def programs(self) -> pd.DataFrame:
        """Cycles of each program's steps, over all runs and IPUs: ``program`` and ``type``."""
        self._require("execution_steps", "execution_step_ipus")
        sides = [part.programs or {} for part in self.breakdowns]
        return _added_up(sides, {"program": lambda key: key.variable, "type": lambda key: key.category})

    def curve(self, report: int) -> pd.DataFrame:
        """Return the liveness curve of a report (0 for A), see :func:`pvanalyse.analysis.liveness.curve`."""
        return liveness.curve(self.sources[report])

    # ------------------------------------------------------------------------------------------------------- the parts

    def _require(self, *names: str) -> None:
        for name in names:
            if not all(source.captured(name) for source in self.sources):
                raise NotCaptured(name, table(name).capture)

    @property
    def _sizes(self) -> list[Shares]:
        """The variables of each report: what the compiler made of each category is none."""
        self._require("always_live_variables", "variable_liveness")
        return [{key: share for key, share in (part.sizes or {}).items() if key.variable} for part in self.breakdowns]


def _added_up(
    sides: Sequence[Shares],
    columns: Mapping[str, Callable[[Key], str]],
    described: Sequence[str] = ("operation", "location"),
) -> pd.DataFrame:
    """Return shares added up by what the columns are; what else is known of a row is that of its largest share."""
    sums: list[dict[tuple[str, ...], int]] = [{} for _ in sides]
    texts: dict[str, dict[tuple[str, ...], str]] = {name: {} for name in described}
    for side, summed in zip(sides, sums, strict=True):
        for key, share in sorted(side.items(), key=lambda item: (abs(item[1].value), item[0])):
            row = tuple(of(key) for of in columns.values())
            summed[row] = summed.get(row, 0) + share.value
            for name, known in texts.items():
                known[row] = (share.location if name == "location" else key.operation) or known.get(row, "")
    return side_by_side(list(columns), sums, texts)


def _by_name(
    column: str, frames: Sequence[pd.DataFrame], value: Callable[[pd.DataFrame], pd.Series[int]]
) -> pd.DataFrame:
    sums: list[dict[tuple[str, ...], int]] = []
    for frame in frames:
        summed: dict[tuple[str, ...], int] = {}
        for name, size in zip(frame["name"].tolist(), value(frame).tolist(), strict=True):
            row = (stable_name(name),)
            summed[row] = summed.get(row, 0) + size
        sums.append(summed)
    return side_by_side([column], sums)


def _event(new: bool, gone: bool, change: int) -> str:
    if new and not gone:
        return "entered"
    if gone and not new:
        return "left"
    return "grew" if change > 0 else "shrank" if change < 0 else ""


def _difference(before: Number | None, after: Number | None) -> Number | None:
    return None if before is None or after is None else after - before


def _relative(before: Number | None, after: Number | None) -> float | None:
    return None if after is None or not before else after / before - 1


_PLACES = {spec.name: at for at, spec in enumerate(CATALOGUE)}


def _place(metric: str) -> tuple[int, str]:
    """Return where a metric is listed."""
    spec = metric_spec(metric)
    return (_PLACES[spec.name] if spec else len(_PLACES)), metric


def _unit(metric: str) -> str:
    spec = metric_spec(metric)
    return spec.unit if spec else ""


def _needed(metric: str) -> str:
    """Return the table that a metric cannot be broken down without."""
    if metric.startswith("execution."):
        return "execution_step_ipus"
    if metric.startswith("liveness.") or metric == "memory.not_always_live":
        return "variable_liveness"
    return "always_live_variables" if metric == "memory.always_live" else "tile_memory_category"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:,}"
    return f"{value:,}" if isinstance(value, int) else "unknown" if value is None else str(value)
