"""How much of a report goes into a page; what is left out is said in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a page holds less than the report.

    Attributes
    ----------
    memory_cells
        Numbers by tile and storage category: with more tiles fewer categories are told apart.
    tiles
        Tiles whose memory map is in the page.
    allocations
        Rows of each of these maps, the largest first.
    steps
        Liveness steps: beyond, the lowest and the highest of each stretch.
    lifetimes
        Intervals in which variables are live, the largest first.
    programs
        Rows of the program tree: beyond, what lies deep is left out.
    intervals
        Executed steps and IPUs that the timeline is made of, the first ones.
    blocks
        Blocks of the timeline: beyond, neighbours that are short become one.
    rows
        Rows of other tables, the largest first.
    """

    memory_cells: int = 1_500_000
    tiles: int = 96
    allocations: int = 4_000
    steps: int = 60_000
    lifetimes: int = 60_000
    programs: int = 40_000
    intervals: int = 1_000_000
    blocks: int = 250_000
    rows: int = 5_000
