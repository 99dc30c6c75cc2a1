"""What several rules look at, computed once and only when a rule asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pvanalyse.analysis.columns import Integers, integers, key_values, only_row
from pvanalyse.analysis.insights.limits import Limits
from pvanalyse.analysis.liveness import Peak, always_live_frame, live_at_frame, liveness_peak
from pvanalyse.analysis.memory import TileMemory, categories_frame, required_tile_memory, tile_categories
from pvanalyse.analysis.memory_details import variables_frame
from pvanalyse.errors import NotCaptured
from pvanalyse.tables import TableSource, table

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.analysis.insights.model import Severity


@dataclass
class Facts:
    """A report as the rules see it; a property raises NotCaptured where its data was not captured.

    Attributes
    ----------
    source, limits
        The report, and the thresholds to keep to.
    profile_bytes
        Size of profile.pop, when known.
    """

    source: TableSource
    limits: Limits
    profile_bytes: int | None = None
    _variables_of_tile: dict[int, list[str]] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------------------- memory

    @cached_property
    def memory(self) -> TileMemory:
        """Memory of each tile."""
        return required_tile_memory(self.source)

    @cached_property
    def bytes_per_tile(self) -> int:
        """Memory of a tile."""
        if not self.memory.bytes_per_tile:
            raise NotCaptured("target", table("target").capture)
        return self.memory.bytes_per_tile

    @cached_property
    def tiles_per_ipu(self) -> int:
        """Tiles of an IPU."""
        if not self.memory.tiles_per_ipu:
            raise NotCaptured("target", table("target").capture)
        return self.memory.tiles_per_ipu

    @cached_property
    def fullest(self) -> int:
        """Position of the fullest tile, including gaps."""
        return int(self.memory.fullest(1)[0])

    @cached_property
    def total_bytes(self) -> int:
        """Bytes including gaps over all tiles; at least 1."""
        return max(1, self.memory.total("total_including_gaps"))

    @cached_property
    def categories(self) -> pd.DataFrame:
        """Bytes by storage category; see :func:`pvanalyse.analysis.memory.categories_frame`."""
        return categories_frame(self.source)

    @cached_property
    def tile_categories(self) -> pd.DataFrame:
        """Bytes by tile and storage category."""
        return tile_categories(self.source)

    @cached_property
    def short_of_memory(self) -> bool:
        """Whether the fullest tile is nearly full or over; True when the report does not say."""
        try:
            fullest = self.memory["total_including_gaps"][self.fullest]
            return bool(len(self.memory.out_of_memory)) or fullest >= self.limits.nearly_full * self.bytes_per_tile
        except NotCaptured:
            return True

    @property
    def saving_severity(self) -> Severity:
        """How much a possible saving matters: there is no need for it while there is room."""
        return "advice" if self.short_of_memory else "info"

    def fullest_tiles(self, count: int) -> list[int]:
        """Return the numbers of the fullest tiles, fullest first."""
        numbers: list[int] = self.memory["tile"][self.memory.fullest(count)].tolist()
        return numbers

    def category_bytes(self, names: tuple[str, ...]) -> int:
        """Return the not-overlapped bytes of some categories over all tiles."""
        frame = self.categories
        return int(frame.loc[frame["category"].isin(names), "bytes"].sum())

    def category_fraction(self, names: tuple[str, ...]) -> float:
        """Return the share of some categories in the bytes of all."""
        return self.category_bytes(names) / max(1, int(self.categories["bytes"].sum()))

    def largest_category(self, number: int) -> tuple[str, int]:
        """Return the category that takes most of a tile, and its bytes."""
        row = self.tile_categories.loc[number].to_numpy(np.int64)
        return str(self.tile_categories.columns[int(row.argmax())]), int(row.max())

    def category_above_mean(self, number: int) -> tuple[str, int]:
        """Return the category of which a tile has most more than the mean tile, and by how many bytes."""
        above = self.tile_categories.loc[number].to_numpy(np.int64) - self.tile_categories.to_numpy().mean(axis=0)
        return str(self.tile_categories.columns[int(above.argmax())]), int(above.max())

    # ----------------------------------------------------------------------------------------------- liveness

    @cached_property
    def replicas(self) -> int:
        """Replicas; 1 when the target was not captured."""
        return int(only_row(self.source, "target").get("num_replicas") or 1)

    @cached_property
    def peak(self) -> Peak:
        """The liveness peak of one replica."""
        peak = liveness_peak(self.source)
        if peak is None:
            raise NotCaptured("liveness_steps", table("liveness_steps").capture)
        return peak

    @cached_property
    def peak_bytes(self) -> int:
        """Bytes of the liveness peak of one replica; at least 1, to divide by."""
        return max(1, self.peak.not_always_live_bytes)

    @cached_property
    def live(self) -> pd.DataFrame:
        """Not-always-live variables at the peak, largest first; see ``live_at_frame``."""
        return live_at_frame(self.source, self.peak.step)

    @cached_property
    def activations(self) -> pd.DataFrame:
        """Rows of :attr:`live` that are taken to grow with the batch.

        These are the declared variables without the shape of an always-live one: weights are always live, and their
        gradients and updates have their shape.
        """
        declared = self.live["variable_id"].notna().to_numpy(bool)
        like_weights = self.live["shape"].isin(self._always_live_shapes).to_numpy(bool)
        return self.live[declared & ~like_weights]

    @cached_property
    def _always_live_shapes(self) -> set[str]:
        if not self.source.captured("always_live_variables"):
            raise NotCaptured("always_live_variables", table("always_live_variables").capture)
        if not self.source.captured("variables"):
            raise NotCaptured("variables", table("variables").capture)
        identities = always_live_frame(self.source)["variable_id"].dropna().to_numpy(np.int64)
        shapes = self.source.arrow("variables", ["variable_id", "shape"])
        known: npt.NDArray[np.bool_] = np.isin(integers(shapes.column(0)), identities)
        return {shape for shape in shapes.column(1).filter(known).to_pylist() if shape is not None}

    # ---------------------------------------------------------------------------------------------- variables

    def variables_of_tile(self, number: int) -> list[str]:
        """Return the variables that take most more on a tile than they take on the mean tile.

        Empty when lowered variables were not captured, or none takes more.
        """
        if number not in self._variables_of_tile:
            known = self.source.captured("lowered_variables")
            self._variables_of_tile[number] = self._above_mean(number) if known else []
        return self._variables_of_tile[number]

    def _above_mean(self, number: int) -> list[str]:
        here = variables_frame(self.source, np.array([number], np.int64)).groupby("name")["bytes"].sum()
        mean = self._variable_bytes.reindex(here.index, fill_value=0) / len(self.memory["tile"])
        more = (here - mean).sort_values(ascending=False, kind="stable")
        return [str(name) for name in more[more > 0].index[: self.limits.shown]]

    @cached_property
    def _variable_bytes(self) -> pd.Series[int]:
        return variables_frame(self.source).groupby("name")["bytes"].sum()

    # ----------------------------------------------------------------------------------------- about the report

    @cached_property
    def report_info(self) -> dict[str, str]:
        """Facts about the report by key; empty when not captured."""
        return key_values(self.source, "report_info")

    @cached_property
    def curve(self) -> Integers:
        """Not-always-live bytes of one replica at each step."""
        return integers(self.source.arrow("liveness_steps", ["not_always_live_bytes"]).column(0))
