"""What ``pvanalyse liveness`` can show: each part analysed and made ready to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pvanalyse.analysis import liveness, peak_reduction
from pvanalyse.analysis.memory_details import variables_frame
from pvanalyse.render import liveness as view
from pvanalyse.render.liveness import Scope
from pvanalyse.render.parts import Part, Rows, largest
from pvanalyse.units import ByteUnits

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.analysis.columns import Integers
    from pvanalyse.tables import TableSource

_TILES = 5


@dataclass(frozen=True)
class LivenessQuestion:
    """What was asked.

    Attributes
    ----------
    source
        A report.
    tiles
        The tiles it is about, None for one replica.
    always_live
        Whether the curve has what is always live, too.
    num_peaks
        How many peaks.
    top
        How many rows of each list, None for what is usual.
    step, pair, pattern, reduce_by
        What ``--step``, ``--diff``, ``--variable`` and ``--reduce-by`` say, None when they were not given.
    byte_units
        Units for the sizes in sentences.
    """

    source: TableSource
    tiles: Integers | None
    always_live: bool
    num_peaks: int
    top: int | None
    step: int | None
    pair: tuple[int, int] | None
    pattern: str | None
    reduce_by: int | None
    byte_units: ByteUnits

    @property
    def scope(self) -> Scope:
        """What the bytes are counted over."""
        return Scope(None if self.tiles is None else len(self.tiles))

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Live bytes at each step, of what is not always live."""
        return liveness.curve(self.source, tiles=self.tiles)

    @cached_property
    def always_live_bytes(self) -> int:
        """Bytes that are always live, of the same tiles."""
        with_them = liveness.curve(self.source, tiles=self.tiles, always_live=True)
        return int(with_them["bytes"].iloc[0] - self.curve["bytes"].iloc[0]) if len(with_them) else 0

    @cached_property
    def peaks(self) -> pd.DataFrame:
        """The highest peaks."""
        frame = liveness.peaks(self.source, self.num_peaks, self.tiles)
        if self.always_live:
            frame = frame.assign(with_always_live_bytes=frame["bytes"] + self.always_live_bytes)
        return frame

    @cached_property
    def tile_peaks(self) -> pd.DataFrame:
        """Every tile's own peak."""
        return liveness.tile_peaks(self.source)

    def part(self, name: str) -> Callable[[], Part]:
        """Return what makes the part of that name."""
        return partial(_PARTS[name], self)


def _peaks(asked: LivenessQuestion) -> Part:
    return view.peaks(asked.peaks, asked.scope, Rows(None, None))


def _at_peak(asked: LivenessQuestion) -> Part:
    step = int(largest(asked.curve, "bytes")["step"])
    frame = liveness.live_at_frame(asked.source, step, asked.tiles)
    return view.at_peak(step, frame, asked.scope, Rows(asked.top))


def _always_live(asked: LivenessQuestion) -> Part:
    if asked.tiles is None:
        return view.always_live(liveness.always_live_frame(asked.source), "the report", Rows(asked.top))
    held = variables_frame(asked.source, asked.tiles)[["name", "variable_id", "always_live_bytes"]]
    frame = held[held["always_live_bytes"] > 0].rename(columns={"always_live_bytes": "bytes"})
    ordered = frame.sort_values(["bytes", "name"], ascending=[False, True], ignore_index=True)
    return view.always_live(ordered, str(asked.scope), Rows(asked.top))


def _tiles(asked: LivenessQuestion) -> Part:
    frame = asked.tile_peaks
    chosen = frame if asked.tiles is None else frame[frame["tile"].isin(asked.tiles)]
    return view.tiles(chosen, Rows(asked.top, _TILES))


def _curve(asked: LivenessQuestion) -> Part:
    if not asked.always_live:
        return view.curve(asked.curve, asked.scope, "without", Rows(asked.top))
    frame = asked.curve.assign(bytes=asked.curve["bytes"] + asked.always_live_bytes)
    return view.curve(frame, asked.scope, "with", Rows(asked.top))


def _fp16(asked: LivenessQuestion) -> Part:
    lowered = asked.source.captured("lowered_variables") and asked.source.captured("equivalence_class_intervals")
    known = asked.tile_peaks if lowered else None
    return view.fp16(peak_reduction.fp16_candidates(asked.source, peaks_of_tiles=known), Rows(asked.top))


def _at_step(asked: LivenessQuestion) -> Part:
    assert asked.step is not None
    frame = liveness.live_at_frame(asked.source, asked.step, asked.tiles)
    return view.at_step(asked.step, frame, asked.scope, Rows(asked.top))


def _difference(asked: LivenessQuestion) -> Part:
    assert asked.pair is not None
    return view.difference(*asked.pair, liveness.difference(asked.source, *asked.pair), Rows(asked.top))


def _lifetimes(asked: LivenessQuestion) -> Part:
    assert asked.pattern is not None
    frame = liveness.lifetimes_frame(asked.source, asked.pattern)
    return view.lifetimes(frame, asked.pattern, Rows(asked.top))


def _reduction(asked: LivenessQuestion) -> Part:
    assert asked.reduce_by is not None
    frame = peak_reduction.explain_peak(asked.source, asked.reduce_by)
    return view.reduction(asked.reduce_by, asked.curve, frame, asked.byte_units, Rows(asked.top, None))


_PARTS: Mapping[str, Callable[[LivenessQuestion], Part]] = {
    "peaks": _peaks,
    "at-peak": _at_peak,
    "always-live": _always_live,
    "tiles": _tiles,
    "curve": _curve,
    "fp16": _fp16,
    "at-step": _at_step,
    "difference": _difference,
    "lifetimes": _lifetimes,
    "reduction": _reduction,
}
