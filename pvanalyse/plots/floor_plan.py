"""The map of tiles: a grid for each IPU, in the order of tile numbers."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.patches import Patch

from pvanalyse.analysis.columns import Integers, Reals, only_row
from pvanalyse.analysis.memory import tiles_frame
from pvanalyse.plots import KINDS
from pvanalyse.plots.figures import caption, legend, new_axes, titles
from pvanalyse.plots.memory import require_tile_column
from pvanalyse.plots.palette import INK
from pvanalyse.plots.scales import ByteFormatter, ByteLocator
from pvanalyse.tables import TableSource
from pvanalyse.units import ByteUnits, counted, format_bytes, format_count

_COLOURS = "cividis"  # even in brightness, and the same to the colour-blind
_OVER = "#E6007E"  # not on that scale
_FEW = 0.2  # of all tiles


@dataclass(frozen=True)
class FloorPlan:
    """Where each tile is drawn.

    Attributes
    ----------
    row, column
        Of each tile, shape (tiles,), counted from the top left.
    panel_row, panel_column
        Top left of each IPU's panel, shape (ipus,).
    panel_rows, panel_columns
        Size of a panel in tiles.
    """

    row: Integers
    column: Integers
    panel_row: Integers
    panel_column: Integers
    panel_rows: int
    panel_columns: int


def floor_plan(num_tiles: int, tiles_per_ipu: int, aspect: float = 1.6) -> FloorPlan:
    """Lay out tiles row by row, an IPU a panel, panels row by row; about ``aspect`` times as wide as high."""
    width = _columns_of(tiles_per_ipu)
    height = -(-tiles_per_ipu // width)
    num_ipus = -(-num_tiles // tiles_per_ipu)
    across = max(1, min(num_ipus, round((num_ipus * aspect * height / width) ** 0.5)))
    across = -(-num_ipus // -(-num_ipus // across))  # no half-empty last row where fewer across fill all
    ipu = np.arange(num_ipus)
    gap = max(1, round(height * -(-num_ipus // across) / 20))
    panel_row, panel_column = (ipu // across) * (height + gap), (ipu % across) * (width + gap)
    tile = np.arange(num_tiles)
    of_ipu, within = tile // tiles_per_ipu, tile % tiles_per_ipu
    return FloorPlan(panel_row[of_ipu] + within // width, panel_column[of_ipu] + within % width,
                     panel_row, panel_column, height, width)  # fmt: skip


def _columns_of(tiles_per_ipu: int) -> int:
    """Return the smallest divisor that makes a panel wider than high but at most twice so, or else a square."""
    root = int(np.ceil(tiles_per_ipu**0.5))
    fitting = (width for width in range(root, int(root * 1.5) + 1) if tiles_per_ipu % width == 0)
    return next(fitting, root)


def tile_map(
    source: TableSource,
    column: str = "total_including_gaps",
    units: ByteUnits = "binary",
    ax: Axes | None = None,
) -> Axes:
    """Draw every tile as a cell whose colour says how full it is, a panel for each IPU.

    The position of a cell is the tile's number, row by row; reports do not say where a tile is on the chip. Tiles that
    do not fit are in a colour of their own (with ``total_including_gaps``).

    Parameters
    ----------
    source
        A report.
    column
        Of the table ``tile_memory``.
    units, ax
        See :func:`pvanalyse.plots.memory.memory_by_tile`.

    Raises
    ------
    UsageError
        There is no such column.
    NotCaptured
        The report has no memory of tiles.
    """
    require_tile_column(column)
    frame = tiles_frame(source)
    target = only_row(source, "target")
    tiles, values = frame["tile"].to_numpy(), frame[column].to_numpy()
    num_tiles = int(tiles.max()) + 1
    plan = floor_plan(num_tiles, int(target.get("tiles_per_ipu") or num_tiles))
    ax = new_axes(ax, KINDS["tile-map"].size)
    cells = np.full((int(plan.row.max()) + 1, int(plan.column.max()) + 1), np.nan)
    cells[plan.row[tiles], plan.column[tiles]] = values
    few = _nearly_empty(values)
    lowest = int(values[~few].min())
    scale = Normalize(lowest, max(int(values.max()), lowest + 1))
    remarks = ["positions are tile numbers, row by row from the top left; they are not places on the chip"]
    if few.any():
        most = format_bytes(int(values[few].max()), units)
        remarks.append(f"black: {counted(int(few.sum()), 'tile')} with at most {most}")
    _draw(ax, cells, scale, column, units)
    ax.set_ylim(cells.shape[0] - 0.5, -0.5 - cells.shape[0] / 20)
    for ipu, (row, left) in enumerate(zip(plan.panel_row, plan.panel_column, strict=True)):
        ax.annotate(f"IPU {ipu}", (left - 0.5, row - 0.5), (0, 2), textcoords="offset points", ha="left", va="bottom",
                    fontsize="small", color=INK)  # fmt: skip
    caption(ax, remarks)
    if column == "total_including_gaps":
        _mark(ax, cells.shape, plan, tiles[(frame["over_bytes"] > 0).to_numpy()])
    fullest = int(values.argmax())
    most = f"most: tile {int(tiles[fullest]):,} with {format_bytes(int(values[fullest]), units)}"
    titles(ax, f"Tiles by {column.replace('_', ' ')}", most)
    return ax


def _nearly_empty(values: Integers) -> npt.NDArray[np.bool_]:
    """Tell which few tiles hold less than half the median, such as I/O tiles: they would use up the scale."""
    few = values < np.median(values) / 2
    return few if few.mean() <= _FEW else np.zeros(len(values), bool)


def _draw(ax: Axes, cells: Reals, scale: Normalize, column: str, units: ByteUnits) -> None:
    colours = mpl.colormaps[_COLOURS].with_extremes(under="black", bad="none")
    image = ax.imshow(cells, cmap=colours, norm=scale, interpolation="nearest", aspect="auto")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    figure = ax.get_figure(root=True)
    assert figure is not None
    extend = "min" if np.nanmin(cells) < (scale.vmin or 0) else "neither"
    bar = figure.colorbar(image, ax=ax, ticks=ByteLocator(units), format=ByteFormatter(units), shrink=0.8, pad=0.02,
                          extend=extend)  # fmt: skip
    bar.set_label(column.replace("_", " "))
    bar.outline.set_visible(False)


def _mark(ax: Axes, shape: tuple[int, ...], plan: FloorPlan, tiles: Integers) -> None:
    """Colour tiles that do not fit."""
    if not len(tiles):
        return
    over = np.full(shape, np.nan)
    over[plan.row[tiles], plan.column[tiles]] = 1
    ax.imshow(over, cmap=ListedColormap([_OVER]), interpolation="nearest", aspect="auto")
    text = "1 tile does not fit" if len(tiles) == 1 else f"{format_count(len(tiles))} tiles do not fit"
    legend(ax, [Patch(facecolor=_OVER, label=text)], loc="lower right", bbox_to_anchor=(1.0, 1.0))
