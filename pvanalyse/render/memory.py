"""Where the bytes are, for people and programs: a part for each way to look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pvanalyse.render.document import Fact, Section, Unit
from pvanalyse.render.parts import Part, Rows, Shown, bar, grid, largest, listing, records
from pvanalyse.units import ByteUnits, format_bytes, format_fraction

if TYPE_CHECKING:
    import pandas as pd

_BAR = 24  # characters
_FILLED_BY = 3  # categories

_TOTALS = (
    ("num_tiles", "Tiles", Unit.COUNT),
    ("capacity_bytes", "Their memory", Unit.BYTES),
    ("total_including_gaps", "Total including gaps", Unit.BYTES),
    ("total_excluding_gaps", "Total excluding gaps", Unit.BYTES),
    ("gaps_bytes", "Gaps", Unit.BYTES),
    ("used_fraction", "Used of their memory", Unit.FRACTION),
    ("fullest_tile", "Fullest tile", Unit.COUNT),
    ("fullest_tile_bytes", "Fullest tile uses", Unit.BYTES),
    ("always_live_bytes", "Always live", Unit.BYTES),
    ("not_always_live_bytes", "Not always live (each tile's own peak)", Unit.BYTES),
    ("non_interleaved_including_gaps", "Non-interleaved region", Unit.BYTES),
    ("interleaved_including_gaps", "Interleaved region", Unit.BYTES),
    ("overflowed_including_gaps", "Overflowed", Unit.BYTES),
    ("tiles_out_of_memory", "Tiles out of memory", Unit.COUNT),
    ("over_bytes", "Over, all of them", Unit.BYTES),
)
_IPUS = (
    Shown("IPU", "ipu", Unit.COUNT),
    Shown("Including gaps", "total_including_gaps", Unit.BYTES),
    Shown("Used", "used_fraction", Unit.FRACTION),
    Shown("Always live", "always_live_bytes", Unit.BYTES),
    Shown("Fullest tile", "fullest_tile", Unit.COUNT),
    Shown("It uses", "fullest_tile_bytes", Unit.BYTES),
    Shown("Tiles out of memory", "tiles_out_of_memory", Unit.COUNT),
)
_TILES = (
    Shown("Tile", "tile", Unit.COUNT),
    Shown("IPU", "ipu", Unit.COUNT),
    Shown("Including gaps", "total_including_gaps", Unit.BYTES),
    Shown("Free", "free_bytes", Unit.BYTES),
    Shown("Always live", "always_live_bytes", Unit.BYTES),
    Shown("Not always live", "not_always_live_bytes", Unit.BYTES),
    Shown("Filled by", "filled_by", prose=True, drawing=True),
)
_CATEGORIES = (
    Shown("Category", "category"),
    Shown("Not overlapped", "bytes", Unit.BYTES),
    Shown("Share", "fraction", Unit.FRACTION),
    Shown("Overlapped", "overlapped_bytes", Unit.BYTES),
    Shown("Tiles", "num_tiles", Unit.COUNT),
    Shown("Most on a tile", "largest_tile_bytes", Unit.BYTES),
)
_OUT_OF_MEMORY = (
    Shown("Tile", "tile", Unit.COUNT),
    Shown("IPU", "ipu", Unit.COUNT),
    Shown("Including gaps", "total_including_gaps", Unit.BYTES),
    Shown("Over", "over_bytes", Unit.BYTES),
    Shown("Overflowed", "overflowed_bytes", Unit.BYTES),
    Shown("Filled most by", "largest_category"),
    Shown("Which uses", "largest_category_bytes", Unit.BYTES),
)
_VERTICES = (
    Shown("Vertex type", "name"),
    Shown("Code", "code_bytes", Unit.BYTES),
    Shown("State", "state_bytes", Unit.BYTES),
    Shown("Instances", "num_instances", Unit.COUNT),
    Shown("Tiles", "num_tiles", Unit.COUNT),
)
_COMPUTE_SETS = (
    Shown("Compute set", "name"),
    Shown("State", "state_bytes", Unit.BYTES),
    Shown("Vertices", "num_vertices", Unit.COUNT),
    Shown("Types", "num_vertex_types", Unit.COUNT),
    Shown("Tiles", "num_tiles", Unit.COUNT),
    Shown("Estimated cycles", "max_estimated_cycles", Unit.CYCLES),
)
_EXCHANGES = (
    Shown("Exchange", "name"),
    Shown("Type", "type"),
    Shown("Code", "code_bytes", Unit.BYTES),
    Shown("Largest on tile", "largest_tile", Unit.COUNT),
    Shown("Code there", "largest_tile_bytes", Unit.BYTES),
)
_VARIABLES = (
    Shown("Variable", "name"),
    Shown("Size", "bytes", Unit.BYTES),
    Shown("Always live", "always_live_bytes", Unit.BYTES),
    Shown("Tiles", "num_tiles", Unit.COUNT),
    Shown("Largest on tile", "largest_tile", Unit.COUNT),
    Shown("Size there", "largest_tile_bytes", Unit.BYTES),
)
_QUANTILES = (Shown("Share of tiles", "quantile", Unit.FRACTION), Shown("Use at most", "bytes", Unit.BYTES))
_HISTOGRAM = (
    Shown("From", "from_bytes", Unit.BYTES),
    Shown("To", "to_bytes", Unit.BYTES),
    Shown("Tiles", "num_tiles", Unit.COUNT),
    Shown("", "bar", prose=True, drawing=True),
)
_MAP = (
    Shown("Address", "begin", Unit.ADDRESS),
    Shown("Size", "bytes", Unit.BYTES),
    Shown("What", "what"),
    Shown("Category", "category"),
    Shown("Live in steps", "steps"),
    Shown("Shares with", "overlaps", Unit.COUNT),
)


def verdict(tiles: pd.DataFrame, byte_units: ByteUnits) -> tuple[str, bool]:
    """Say whether tiles fit, and whether that is bad news.

    Parameters
    ----------
    tiles
        Of :func:`pvanalyse.analysis.memory.tiles_frame`, at least one.
    byte_units
        Units for the sizes in the sentence.
    """

    def size(value: int) -> str:
        return format_bytes(value, byte_units)

    over = tiles[tiles["over_bytes"] > 0]
    if len(over):
        worst = largest(over, "over_bytes")
        sentence = f"OUT OF MEMORY: {len(over):,} of {len(tiles):,} tiles do not fit"
        return f"{sentence}; tile {worst['tile']} is over by {size(worst['over_bytes'])}.", True
    top = largest(tiles, "total_including_gaps")
    tile, used = top["tile"], top["total_including_gaps"]
    if "free_bytes" not in tiles:
        sentence = f"No tile overflows; the fullest, {tile}, uses {size(used)}"
        return f"{sentence} (the size of a tile's memory was not captured).", False
    capacity = used + top["free_bytes"]
    share = f" ({format_fraction(used / capacity)})" if capacity else ""
    return f"Fits: the fullest tile, {tile}, uses {size(used)} of {size(capacity)}{share}.", False


def totals(tiles: pd.DataFrame) -> Part:
    """Return the sums over tiles."""
    import pandas as pd

    def total(column: str) -> int:
        return sum(tiles[column].tolist())  # Python's integers, which cannot overflow

    used = total("total_including_gaps")
    capacity = used + total("free_bytes") if "free_bytes" in tiles else None
    top = largest(tiles, "total_including_gaps")
    values: dict[str, Any] = {
        "num_tiles": len(tiles),
        "capacity_bytes": capacity,
        "gaps_bytes": used - total("total_excluding_gaps"),
        "used_fraction": used / capacity if capacity else None,
        "fullest_tile": top["tile"],
        "fullest_tile_bytes": top["total_including_gaps"],
        "tiles_out_of_memory": int((tiles["over_bytes"] > 0).sum()),
    }
    sums = {key: total(key) for key, _, _ in _TOTALS if key in tiles}
    data = {key: values.get(key, sums.get(key)) for key, _, _ in _TOTALS}
    facts = [Fact(label, data[key], unit) for key, label, unit in _TOTALS if data[key] is not None]
    return Part("totals", Section("Memory", facts), data, pd.DataFrame([data], dtype=object))


def ipus(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the memory of each IPU, over all of its tiles."""
    return listing("ipus", "By IPU, all of its tiles", frame, _IPUS, rows, "There are no IPUs.")


def tiles(frame: pd.DataFrame, categories: pd.DataFrame | None, rows: Rows) -> Part:
    """Return tiles, the fullest first, and what fills them.

    Parameters
    ----------
    frame
        Of :func:`pvanalyse.analysis.memory.tiles_frame`.
    categories
        Of :func:`pvanalyse.analysis.memory.tile_categories`, the same tiles; None when it was not captured. Programs
        get them beside the other numbers; in a table, a column ``category.<name>`` each.
    rows
        How many.
    """
    ordered = frame.sort_values(["total_including_gaps", "tile"], ascending=[False, True], ignore_index=True)
    chosen, seen = rows.of(ordered), rows.seen(ordered)
    data = records(chosen)
    if categories is not None:
        of_tile = categories.reindex(chosen["tile"], fill_value=0)
        data = [row | {"categories": held} for row, held in zip(data, records(of_tile), strict=True)]
        chosen = chosen.join(of_tile.add_prefix("category.").reset_index(drop=True))
        filled_by = [_filled_by(row) for row in records(categories.reindex(seen["tile"], fill_value=0))]
        ordered = ordered.assign(filled_by=[*filled_by, *[""] * (len(ordered) - len(filled_by))])
    part = listing("tiles", "Fullest tiles", ordered, _TILES, rows, "There are no tiles.")
    return Part("tiles", part.section, data, chosen)


def _filled_by(categories: dict[str, int]) -> str:
    total = sum(categories.values())
    largest = sorted(categories.items(), key=lambda item: (-item[1], item[0]))[:_FILLED_BY]
    return ", ".join(f"{name} {format_fraction(size / total)}" for name, size in largest if size)


def categories(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return bytes by storage category."""
    return listing("categories", "By category", frame, _CATEGORIES, rows, "No category has any bytes.")


def distribution(quantiles: pd.DataFrame, histogram: pd.DataFrame) -> Part:
    """Return how full the tiles are: quantiles, and a histogram with bars."""
    most = int(histogram["num_tiles"].max())
    drawn = histogram.assign(bar=[bar(count, most, _BAR) for count in histogram["num_tiles"].tolist()])
    grids = [grid("", quantiles, _QUANTILES), grid("Histogram of tiles by bytes including gaps", drawn, _HISTOGRAM)]
    data = {"quantiles": records(quantiles), "histogram": records(histogram)}
    return Part("distribution", Section("Distribution over the tiles, including gaps", grids=grids), data)


def out_of_memory(frame: pd.DataFrame, rows: Rows) -> Part:
    """Return the tiles that do not fit, the worst first."""
    return listing("out_of_memory", "Out of memory", frame, _OUT_OF_MEMORY, rows, "Every tile fits.")


def vertices(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return vertex types with their code and state."""
    return _named("vertices", "Vertex types, most code and state first", frame, _VERTICES, match, rows)


def compute_sets(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return compute sets with their vertices."""
    return _named("compute_sets", "Compute sets, most vertex state first", frame, _COMPUTE_SETS, match, rows)


def exchanges(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return exchanges with their code."""
    return _named("exchanges", "Exchanges, most code first", frame, _EXCHANGES, match, rows)


def variables(frame: pd.DataFrame, match: str | None, rows: Rows) -> Part:
    """Return variables with where they are."""
    return _named("variables", "Largest variables", frame, _VARIABLES, match, rows)


def _named(key: str, title: str, frame: pd.DataFrame, columns: Sequence[Shown], match: str | None, rows: Rows) -> Part:
    what = key.replace("_", " ")
    nothing = f"There are no {what}." if match is None else f"There are no {what} whose name matches '{match}'."
    heading = title if match is None else f"{title}, matching '{match}'"
    return listing(key, heading, frame, columns, rows, nothing)


def memory_map(tile: int, frame: pd.DataFrame, rows: Rows) -> Part:
    """Return what lies where on a tile."""
    people = frame.assign(
        what=[row["name"] or f"({row['kind']})" for row in records(frame[["name", "kind"]])],
        steps=[_steps(row) for row in records(frame[["kind", "always_live", "first_step", "last_step"]])],
    )
    title = f"Memory map of tile {tile:,}"
    part = listing("map", title, people, _MAP, Rows(rows.top, None), "Nothing is on this tile.")
    chosen = rows.of(frame)
    return Part("map", part.section, {"tile": tile, "rows": records(chosen)}, chosen)


def _steps(row: dict[str, Any]) -> str:
    if row["always_live"]:
        return "always"
    if row["first_step"] is None or row["last_step"] is None:
        return ""
    return f"{row['first_step']}-{row['last_step'] - 1}"
