"""Where a name is, for people and programs: a part for each kind of thing that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pvanalyse.render.document import Section, Unit
from pvanalyse.render.parts import Part, Rows, Shown, listing
from pvanalyse.units import ByteUnits, format_bytes, format_count

if TYPE_CHECKING:
    from pvanalyse.analysis.whereis import Whereis

_SHOWN: Mapping[str, tuple[str, Sequence[Shown]]] = {
    "layers": ("Layers of the debug information", (
        Shown("Layer", "layer"),
        Shown("Contexts", "num_contexts", Unit.COUNT),
    )),
    "operations": ("Operations", (
        Shown("Operation", "name"),
        Shown("Source", "location"),
        Shown("Code", "code_bytes", Unit.BYTES),
        Shown("Variables", "variable_bytes", Unit.BYTES),
        Shown("Cycles", "cycles", Unit.CYCLES),
    )),
    "programs": ("Programs, each by itself", (
        Shown("Id", "program_id", Unit.COUNT),
        Shown("Type", "type"),
        Shown("Program", "name"),
        Shown("Control code", "own_control_code_bytes", Unit.BYTES),
        Shown("Exchange code", "own_exchange_code_bytes", Unit.BYTES),
        Shown("Executions", "own_executions", Unit.COUNT),
        Shown("Cycles", "own_cycles", Unit.CYCLES),
    )),
    "compute_sets": ("Compute sets", (
        Shown("Compute set", "name"),
        Shown("Vertices", "num_vertices", Unit.COUNT),
        Shown("State", "state_bytes", Unit.BYTES),
        Shown("Tiles", "num_tiles", Unit.COUNT),
    )),
    "vertex_types": ("Vertex types", (
        Shown("Vertex type", "name"),
        Shown("Code", "code_bytes", Unit.BYTES),
        Shown("Instances", "num_instances", Unit.COUNT),
        Shown("State", "state_bytes", Unit.BYTES),
        Shown("Tiles", "num_tiles", Unit.COUNT),
    )),
    "variables": ("Variables", (
        Shown("Variable", "name"),
        Shown("Size", "bytes", Unit.BYTES),
        Shown("Always live", "always_live_bytes", Unit.BYTES),
        Shown("Tiles", "num_tiles", Unit.COUNT),
        Shown("Largest on tile", "largest_tile", Unit.COUNT),
        Shown("Size there", "largest_tile_bytes", Unit.BYTES),
    )),
    "tiles": ("Tiles, fullest of it first", (
        Shown("Tile", "tile", Unit.COUNT),
        Shown("Bytes", "bytes", Unit.BYTES),
        Shown("Of variables", "variable_bytes", Unit.BYTES),
        Shown("Of vertex code", "vertex_code_bytes", Unit.BYTES),
        Shown("Of exchange code", "exchange_code_bytes", Unit.BYTES),
    )),
}  # fmt: skip
KINDS = tuple(_SHOWN)
"""The kinds of things that can have a name, in the order of reading."""


def parts(answer: Whereis, kinds: Sequence[str], top: int | None) -> list[Part]:
    """Return what has the name, a part for each kind of thing.

    Parameters
    ----------
    answer
        Of :func:`pvanalyse.analysis.whereis.whereis`.
    kinds
        Of :data:`KINDS`: those that were asked for. When none was, there is a part of each that was captured, and
        people see those of which any has the name.
    top
        How many rows of each list, None for what is usual.

    Raises
    ------
    NotCaptured
        One that was asked for was not captured.
    """
    for kind in kinds:
        if kind in answer.missing:
            raise answer.missing[kind]
    found = []
    for name in kinds or [name for name in KINDS if name in answer.found]:
        title, columns = _SHOWN[name]
        part = listing(name, title, answer.found[name], columns, Rows(top), "There are none.")
        seen = kinds or len(answer.found[name])
        found.append(part if seen else Part(name, Section(title), part.data, part.frame))
    return found


def verdict(answer: Whereis, byte_units: ByteUnits) -> tuple[str, bool]:
    """Say what has the name, and whether that is bad news: that nothing has."""
    counts = [(name, len(answer.found.get(name, ()))) for name in KINDS if name not in ("layers", "tiles")]
    held = [f"{number:,} {_plural(name, number)}" for name, number in counts if number]
    if not held and not len(answer.found.get("layers", ())):
        near = f"; near are: {', '.join(answer.nearest)}" if answer.nearest else ""
        return f"Nothing has a name like '{answer.name}'{near}.", True
    return f"'{answer.name}' is in the names of {_listed(held) or 'debug contexts'}{_sizes(answer, byte_units)}.", False


def _sizes(answer: Whereis, byte_units: ByteUnits) -> str:
    said = []
    tiles, programs = answer.found.get("tiles"), answer.found.get("programs")
    if tiles is not None and len(tiles):
        size = format_bytes(sum(tiles["bytes"].tolist()), byte_units)
        said.append(f"{size} on {len(tiles):,} {_plural('tiles', len(tiles))}")
    cycles = 0 if programs is None else sum(programs["own_cycles"].dropna().tolist())
    if cycles:
        said.append(f"{format_count(cycles)} cycles")
    return f": {_listed(said)}" if said else ""


def _plural(name: str, number: int) -> str:
    words = name.replace("_", " ")
    return words.removesuffix("s") if number == 1 else words


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1] if words else ""]))
