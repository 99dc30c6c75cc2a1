"""A proposed split into the stages of a pipeline, for people and programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pvanalyse.render.document import Fact, Section, Unit
from pvanalyse.render.parts import Part, Rows, Shown, grid, largest, listing, records
from pvanalyse.units import ByteUnits, format_bytes, format_fraction

if TYPE_CHECKING:
    from pvanalyse.analysis.splitting.pipeline_split import PipelineSplit

ESTIMATE = (
    "An estimate, from how the program was laid out on one IPU: for each tile the code, vertex state and variables of "
    "the programs of a stage. The compiler will lay out the stages anew. Not counted: what is in no layer, stacks, "
    "descriptors, code for copies from and to the host, gaps, and what a pipeline adds to pass on variables."
)
_STAGES = (
    Shown("Stage", "stage", Unit.COUNT),
    Shown("First layer", "first_layer"),
    Shown("Last layer", "last_layer"),
    Shown("Fullest tile", "fullest_tile", Unit.COUNT),
    Shown("It uses", "fullest_tile_bytes", Unit.BYTES),
    Shown("Of limit", "used_fraction", Unit.FRACTION),
    Shown("Tiles over", "tiles_over", Unit.COUNT),
)
_KINDS = {
    "variables": "Variables",
    "vertex_code": "Vertex code",
    "vertex_state": "Vertex state",
    "exchange_code": "Exchange code",
    "control_code": "Control code",
}
_FILLED = (
    Shown("Stage", "stage", Unit.COUNT),
    *(Shown(label, f"fullest_{kind}_bytes", Unit.BYTES) for kind, label in _KINDS.items()),
)
_WORK = (
    Shown("Stage", "stage", Unit.COUNT),
    Shown("Executed cycles", "cycles", Unit.CYCLES),
    Shown("Estimated cycles", "estimated_cycles", Unit.CYCLES),
    Shown("Receives", "received_bytes", Unit.BYTES),
    Shown("Sends", "sent_bytes", Unit.BYTES),
    Shown("Shares", "shared_bytes", Unit.BYTES),
)
_LAYERS = (
    Shown("Layer", "layer"),
    Shown("Stage", "stage", Unit.COUNT),
    Shown("Operations", "num_operations", Unit.COUNT),
    Shown("From step", "step_begin", Unit.COUNT),
    Shown("To step", "step_end", Unit.COUNT),
    Shown("Alone, its fullest tile", "fullest_tile_bytes", Unit.BYTES),
)
_TRAFFIC = (
    Shown("From stage", "from_stage", Unit.COUNT),
    Shown("To stage", "to_stage", Unit.COUNT),
    Shown("Bytes in a pass", "bytes", Unit.BYTES),
    Shown("Variables", "num_variables", Unit.COUNT),
)
_SHARED = (
    Shown("Variable", "name"),
    Shown("In each stage", "bytes", Unit.BYTES),
    Shown("Always live", "always_live_bytes", Unit.BYTES),
    Shown("Stages", "stages"),
)
_MADE_BY_COMPILER = "(made by the compiler)"


def verdict(split: PipelineSplit, byte_units: ByteUnits) -> tuple[str, bool]:
    """Say whether the stages fit, and whether that is bad news."""

    def size(value: int) -> str:
        return format_bytes(value, byte_units)

    worst = largest(split.stages, "fullest_tile_bytes")
    used, limit = worst["fullest_tile_bytes"], split.limit_bytes
    place = f"tile {worst['fullest_tile']:,} of stage {worst['stage']}"
    if split.fits:
        fewer = f"{len(split.stages)} of the {split.num_ipus}" if len(split.stages) < split.num_ipus else split.num_ipus
        share = format_fraction(used / limit)
        return (
            f"Should fit on {fewer} IPUs: the fullest, {place}, needs {size(used)} of {size(limit)} ({share}).",
            False,
        )
    over = f"DOES NOT FIT on {_ipus(split.num_ipus)}: {place} needs {size(used)}, over by {size(used - limit)}"
    return f"{over}; {_advice(split, byte_units)}.", True


def _advice(split: PipelineSplit, byte_units: ByteUnits) -> str:
    if split.fewest_ipus is None:
        alone = largest(split.layers, "fullest_tile_bytes")
        size = format_bytes(alone["fullest_tile_bytes"], byte_units)
        return f"with these layers no number of IPUs would do, since '{alone['layer']}' alone needs {size}"
    return f"{split.fewest_ipus} IPUs would do"


def _ipus(number: int) -> str:
    return "1 IPU" if number == 1 else f"{number} IPUs"


def about(split: PipelineSplit, report: str, pattern: str | None) -> dict[str, Any]:
    """Return what JSON says before the parts."""
    return {
        "report": report,
        "method": split.method,
        "num_ipus": split.num_ipus,
        "limit_bytes": split.limit_bytes,
        "layer_regex": pattern,
        "operations_grouped_by": split.grouped_by,
        "left_out_operations": split.left_out_operations,
        "fits": split.fits,
        "fewest_ipus": split.fewest_ipus,
        "split_points": split.split_points,
        "estimate": ESTIMATE,
    }


def stages(split: PipelineSplit, rows: Rows) -> Part:
    """Return the stages: where they begin, what their fullest tiles hold, and what they exchange."""
    chosen, seen = rows.of(split.stages), rows.seen(split.stages)
    facts = [
        Fact("Split before layer", ", ".join(split.split_points) or None),
        Fact("Fewest IPUs that should fit", split.fewest_ipus, Unit.COUNT),
        Fact("Operations in no layer, left out", split.left_out_operations or None, Unit.COUNT),
    ]
    grids = [
        grid("", seen, _STAGES),
        grid("What the fullest tile of each stage holds", seen, _FILLED),
        grid("What each stage does", seen, _WORK),
    ]
    section = Section("Stages", [fact for fact in facts if fact.value is not None], grids, [ESTIMATE])
    return Part("stages", section, records(chosen), chosen)


def layers(split: PipelineSplit, rows: Rows) -> Part:
    """Return the layers with the stages that they are in."""
    return listing("layers", "Layers", split.layers, _LAYERS, rows, "There are no layers.")


def traffic(split: PipelineSplit, rows: Rows) -> Part:
    """Return what one stage sends to another."""
    nothing = "No stage uses what another one writes."
    return listing("traffic", "Traffic between stages", split.traffic, _TRAFFIC, rows, nothing)


def shared(split: PipelineSplit, rows: Rows) -> Part:
    """Return the variables that several stages use."""
    people = split.shared.assign(
        name=split.shared["name"].mask(split.shared["variable_id"].isna(), _MADE_BY_COMPILER),
        stages=[", ".join(map(str, found)) for found in split.shared["stages"]],
    )
    title = "Variables of several stages, counted in each of them"
    part = listing("shared", title, people, _SHARED, rows, "No variable is used by several stages.")
    data = [row | {"stages": list(row["stages"])} for row in records(rows.of(split.shared))]
    return Part("shared", part.section, data, part.frame)


PARTS: Mapping[str, Callable[[PipelineSplit, Rows], Part]] = {
    "stages": stages,
    "layers": layers,
    "traffic": traffic,
    "shared": shared,
}
"""What makes each part, by name."""
