"""Reports compared, for people and programs: a part for each way to look at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pvanalyse.analysis.contributions import explaining
from pvanalyse.analysis.memory_details import matching
from pvanalyse.analysis.side_by_side import LETTERS, change_of, changed_rows
from pvanalyse.errors import NotCaptured
from pvanalyse.render.document import Document, Fact, Grid, Section, Unit
from pvanalyse.render.metrics import unit_of
from pvanalyse.render.parts import Part, Rows, Shown, bar, grid, records, together
from pvanalyse.units import ByteUnits, format_bytes, format_count, format_fraction

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.analysis.comparison import Comparison

HEADLINES = {
    "memory.tile_max_including_gaps": ("the fullest tile uses", "more", "less"),
    "memory.total_including_gaps": ("all tiles together use", "more", "less"),
    "liveness.peak": ("the peak of live memory is", "higher", "lower"),
    "execution.cycles": ("the runs take", "longer", "less"),
}
"""The metrics that are spoken of first and explained, and how."""

USUAL = ("why", "metrics", "categories", "ipus", "tiles", "variables", "peak")
"""The parts that are shown when nothing else is asked for."""
_BAR = 24  # characters


@dataclass(frozen=True, slots=True)
class _List:
    """How a frame of a comparison is shown: its heading, what its rows are, its own columns, the unit of its values."""

    title: str
    noun: str
    columns: tuple[Shown, ...]
    unit: Unit = Unit.BYTES


_SOURCE = Shown("Source", "location")
_LISTS: Mapping[str, _List] = {
    "categories": _List("Storage categories, not overlapped", "categories", (Shown("Category", "category"),)),
    "ipus": _List("IPUs, including gaps", "IPUs", (Shown("IPU", "ipu", Unit.COUNT),)),
    "layers": _List("Layers, by size of their variables", "layers", (Shown("Layer", "layer"),)),
    "operations": _List(
        "Operations, by size of their variables", "operations", (Shown("Operation", "operation"), _SOURCE)
    ),
    "variables": _List("Variables", "variables", (Shown("Variable", "variable"), _SOURCE)),
    "peak": _List(
        "Variables at the peak of one replica, each report's own", "variables", (Shown("Variable", "variable"), _SOURCE)
    ),
    "vertices": _List("Vertex types, by code and state", "vertex types", (Shown("Vertex type", "vertex_type"),)),
    "compute-sets": _List("Compute sets, by vertex state", "compute sets", (Shown("Compute set", "compute_set"),)),
    "exchanges": _List("Exchanges, by code", "exchanges", (Shown("Exchange", "exchange"),)),
    "programs": _List(
        "Programs, by cycles of their steps",
        "programs",
        (Shown("Program", "program"), Shown("Type", "type"), _SOURCE),
        Unit.CYCLES,
    ),
}


@dataclass(frozen=True)
class View:
    """How a comparison is looked at.

    Attributes
    ----------
    comparison
        The reports.
    match
        A regular expression that names must match, None for all.
    rows
        How many rows of each list.
    explained
        The metrics whose change is explained; empty for those of :data:`HEADLINES` that changed.
    units
        Of sizes in sentences and titles.
    """

    comparison: Comparison
    match: str | None = None
    rows: Rows = field(default_factory=Rows)
    explained: tuple[str, ...] = ()
    units: ByteUnits = "binary"

    def part(self, name: str) -> Callable[[], Part]:
        """Return what makes the part of that name."""
        special = {"metrics": self._metrics, "why": self._why, "tiles": self._tiles}
        return special.get(name) or partial(self._list, name)

    def document(
        self, found: Sequence[Part], missing: Mapping[str, NotCaptured] | None = None, as_table: bool = False
    ) -> Document:
        """Return parts as one document, with what is compared and how comparable it is before them."""
        names = {LETTERS[at].upper(): name for at, name in enumerate(self.comparison.names)}
        about = {"report": self.comparison.names[0], "reports": names, "notes": self.comparison.notes}
        said = ("", False) if as_table else self.verdict()
        made = together(found, about, missing or {}, said, as_table=as_table)
        data = {key: value for key, value in made.data.items() if key != "report"}
        reports = Section("Reports", [Fact(letter, name) for letter, name in names.items()], (), self.comparison.notes)
        return replace(made, title="Comparison", sections=[reports, *made.sections], data=data)

    # ---------------------------------------------------------------------------------------------------- in a sentence

    def verdict(self) -> tuple[str, bool]:
        """Say what changed most, and whether more tiles are out of memory."""
        values = self.comparison.metric_values
        out = [one.get("memory.tiles_out_of_memory", 0) for one in values]
        said = [self._said(at) for at in self._others]
        if len(values) > 2:
            said = [f"{LETTERS[at].upper()}: {sentence}" for at, sentence in zip(self._others, said, strict=True)]
        elif values[1] != values[0]:
            said = [f"From A to B: {said[0]}"]
        return " ".join(one[0].upper() + one[1:] for one in said), max(out) > out[0]

    def _said(self, report: int) -> str:
        """Say how a report differs from A."""
        before, after = (self.comparison.metric_values[at] for at in (0, report))
        if before == after:
            return "no metric differs."
        said = [text for text in (self._over(report), *(self._headline(name, report) for name in HEADLINES)) if text]
        differing = sum(after[name] != value for name, value in before.items() if name in after)
        if not differing:
            said.append("no metric that both have differs")
        elif not said:
            metrics = "metrics differ" if differing > 1 else "metric differs"
            said.append(f"{differing:,} {metrics}, but not in memory or cycles")
        alone = len(before.keys() ^ after.keys())
        if alone:
            said.append(f"{alone:,} metric{'s are' if alone > 1 else ' is'} in one of them only")
        return f"{'; '.join(said)}."

    def _over(self, report: int) -> str:
        name = "memory.tiles_out_of_memory"
        before, after = (self.comparison.metric_values[at].get(name) for at in (0, report))
        if before is None or after is None or before == after:
            return ""
        number = abs(after - before)
        tiles = "tiles are" if number != 1 else "tile is"
        return f"{number:,} {'more' if after > before else 'fewer'} {tiles} out of memory"

    def _headline(self, metric: str, report: int) -> str:
        before, after = (self.comparison.metric_values[at].get(metric) for at in (0, report))
        if before is None or after is None or before == after:
            return ""
        subject, more, less = HEADLINES[metric]
        size = self._size(metric, abs(after - before))
        share = f" ({format_fraction(after / before - 1)})" if before else ""
        return f"{subject} {size} {more if after > before else less}{share}"

    def _size(self, metric: str, value: float) -> str:
        unit = unit_of(metric)
        return format_bytes(value, self.units) if unit is Unit.BYTES else f"{format_count(value)} {unit.value}"

    # ------------------------------------------------------------------------------------------------------- the parts

    def _metrics(self) -> Part:
        frame = self._matching(self.comparison.metrics)
        differing = changed_rows(frame)
        relative = [Shown("Relative", "b_relative", Unit.FRACTION)] if len(self._others) == 1 else []
        grids = []
        for unit in dict.fromkeys(differing["unit"]):
            chosen = differing[differing["unit"] == unit]
            columns = [Shown("Metric", "metric"), *self._values(Unit(unit)), *relative, _ONLY_IN]
            grids.append(grid("", chosen, columns))
        section = Section("Metrics", (), grids, self._counted("metrics", frame, differing, len(differing)))
        return Part("metrics", section, records(frame), frame)

    def _why(self) -> Part:
        metrics = self.explained or tuple(name for name in HEADLINES if self._changed(name))
        questions = [(metric, at) for metric in metrics for at in self._others]
        if not self.explained:  # what cannot be explained is left out, unless it was asked for
            questions = [(metric, at) for metric, at in questions if self._made_of_parts(metric, at)]
        grids, data, frames, sentences = [], [], [], []
        for metric, at in questions:
            changed = self.comparison.contributions(metric, at)
            frame = explaining(changed)
            total, listed = (sum(one["change"].tolist()) for one in (changed, frame))
            if total:
                grids.append(self._explanation(metric, at, total, frame))
            else:
                sentences.append(f"Nothing changed {metric} {self._way(at)}.")
            frames.append(self.rows.of(frame))
            about = {"metric": metric, "report": LETTERS[at].upper(), "change": total, "explained": listed}
            data.append({**about, "contributors": records(frames[-1])})
        sentences += [said for metric in dict(questions) if (said := self._which_tiles(metric))]
        section = Section("What made the difference", (), grids, sentences)
        return Part("why", section, data, frames[0] if len(frames) == 1 else None)

    def _which_tiles(self, metric: str) -> str:
        """Say which tile is the fullest, where that is what a metric is about."""
        kind = metric.removeprefix("memory.tile_max_").removesuffix("_gaps")
        if kind not in ("including", "excluding"):
            return ""
        tiles = [part.fullest_tile(kind) for part in self.comparison.breakdowns]
        each = [f"{tile:,} in {LETTERS[at].upper()}" for at, tile in enumerate(tiles) if tile is not None]
        return f"The fullest tile {kind} gaps is {', '.join(each)}."

    def _explanation(self, metric: str, report: int, total: int, frame: pd.DataFrame) -> Grid:
        shown = self.rows.seen(frame)
        more = f", the first {len(shown):,} of {len(frame):,}" if len(shown) < len(frame) else ""
        shown = shown.assign(
            what=shown["variable"].where(shown["variable"] != "", shown["category"]),
            share=[change / total for change in shown["change"].tolist()],
        )
        unit = unit_of(metric)
        columns = [Shown("Contributor", "what"), _SOURCE, Shown("A", "before", unit),
                   Shown(LETTERS[report].upper(), "after", unit), Shown("Change", "change", unit),
                   Shown("Share", "share", Unit.FRACTION)]  # fmt: skip
        return grid(f"{metric} {self._way(report)}: {self._signed(metric, total)}{more}", shown, columns)

    def _tiles(self) -> Part:
        if not self.comparison.same_tiles:
            frame = self.comparison.tile_quantiles
            columns = [Shown("Share of tiles", "quantile", Unit.FRACTION), *self._values(Unit.BYTES)]
            said = ["The reports have different tiles: what so many of them use at most is compared."]
            return Part("tile_quantiles", Section("Tiles, including gaps", (), [grid("", frame, columns)], said),
                        records(frame), frame)  # fmt: skip
        frame = changed_rows(self.comparison.tiles)
        grids = [grid("", self.rows.seen(frame), [Shown("Tile", "tile", Unit.COUNT), *self._values(Unit.BYTES)])]
        distributions = {LETTERS[at]: self.comparison.tile_changes(at) for at in self._others}
        for letter, bins in distributions.items() if len(frame) else ():
            most = int(bins["num_tiles"].max())
            drawn = bins.assign(bar=[bar(one, most, _BAR) for one in bins["num_tiles"].tolist()])
            grids.append(grid(f"How many tiles change by how much {self._way(LETTERS.index(letter))}", drawn, _BINS))
        section = Section("Tiles, including gaps", (), grids, self._counted("tiles", self.comparison.tiles, frame))
        data = {"changed": records(self.rows.of(frame)), **{
            f"{letter}_distribution": records(bins) for letter, bins in distributions.items()}}  # fmt: skip
        return Part("tiles", section, data, self.rows.of(frame))

    def _list(self, name: str) -> Part:
        what = _LISTS[name]
        key = name.replace("-", "_")
        frame = self._matching(getattr(self.comparison, key))
        differing = changed_rows(frame)
        events = [Shown("It" if len(self._others) == 1 else f"In {LETTERS[at].upper()} it", f"{LETTERS[at]}_event")
                  for at in self._others]  # fmt: skip
        columns = [*what.columns, *self._values(what.unit), *events, _ONLY_IN]
        section = Section(what.title, (), [grid("", self.rows.seen(differing), columns)],
                          self._counted(what.noun, frame, differing))  # fmt: skip
        return Part(key, section, records(self.rows.of(differing)), self.rows.of(differing))

    # ------------------------------------------------------------------------------------------------------ their parts

    @property
    def _others(self) -> range:
        return range(1, len(self.comparison.sources))

    def _values(self, unit: Unit) -> list[Shown]:
        values = [Shown(LETTERS[at].upper(), LETTERS[at], unit) for at in (0, *self._others)]
        if len(self._others) == 1:
            return [*values, Shown("Change", change_of(1), unit)]
        return [*values, *(Shown(f"{LETTERS[at].upper()} − A", change_of(at), unit) for at in self._others)]

    def _matching(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows whose name matches; IPUs have none."""
        name = str(frame.columns[0])
        return frame if name == "ipu" else frame[matching(frame[name], self.match)].reset_index(drop=True)

    def _counted(self, what: str, frame: pd.DataFrame, differing: pd.DataFrame, shown: int | None = None) -> list[str]:
        """Say how many rows differ, how many only some reports have, and how many of them are shown."""
        if not len(frame):
            return [f"There are no {what}."]
        if not len(differing):
            return [f"None of {len(frame):,} {what} differs."]
        shown = len(self.rows.seen(differing)) if shown is None else shown
        said = f"{len(differing):,} of {len(frame):,} {what} differ{'s' if len(differing) == 1 else ''}"
        alone = differing["only_in"].value_counts()
        said += "".join(
            f", {number:,} only in {' and '.join(str(where).split(', '))}"
            for where, number in sorted(alone.items())
            if where
        )
        return [f"{said}; the first {shown:,} are shown, --top shows more." if shown < len(differing) else f"{said}."]

    def _changed(self, metric: str) -> bool:
        return len({values.get(metric) for values in self.comparison.metric_values}) > 1

    def _made_of_parts(self, metric: str, report: int) -> bool:
        return all(self.comparison.breakdowns[at].of(metric) is not None for at in (0, report))

    def _way(self, report: int) -> str:
        return f"from A to {LETTERS[report].upper()}"

    def _signed(self, metric: str, change: int) -> str:
        return f"{'+' if change > 0 else ''}{self._size(metric, change)}"


_ONLY_IN = Shown("Only in", "only_in")
_BINS = (
    Shown("From", "from_bytes", Unit.BYTES),
    Shown("To", "to_bytes", Unit.BYTES),
    Shown("Tiles", "num_tiles", Unit.COUNT),
    Shown("", "bar", prose=True, drawing=True),
)


def overview(comparison: Comparison) -> Document:
    """Return what is shown when nothing else is asked for, as far as the reports captured it."""
    view = View(comparison)
    found: list[Part] = []
    missing: dict[str, NotCaptured] = {}
    for name in USUAL:
        try:
            found.append(view.part(name)())
        except NotCaptured as error:
            missing[name] = error
    return view.document(found, missing)
