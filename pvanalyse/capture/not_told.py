"""What libpva's public objects do not tell, and what analyses do without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotTold:
    """A table, or columns of one, that a captured profile is without.

    Attributes
    ----------
    table
        Of the data model.
    columns
        Those that are null; all of the table for none.
    meaning
        What that means for a person.
    """

    table: str
    columns: tuple[str, ...]
    meaning: str


NEVER_TOLD = (
    NotTold("report_info", (), "when it was compiled, by which engine, for which replica it was profiled: not known"),
    NotTold("engine_options", (), "engine options are not shown"),
    NotTold(
        "target",
        ("interleaved_begin", "relative_sync_delay_by_tile", "min_sync_delay"),
        "where interleaved memory begins and how long syncs take are not known",
    ),
    NotTold("graph", ("num_edges", "num_variables"), "edges and variables of the graph are not counted"),
    NotTold(
        "tile_memory",
        (
            *("non_interleaved_including_gaps", "non_interleaved_excluding_gaps"),
            *("interleaved_including_gaps", "interleaved_excluding_gaps"),
        ),
        "the total of each tile is not divided into regions; categories are",
    ),
    NotTold("compute_sets", ("flops", "debug_context_id"), "no FLOPs; operations are grouped by name"),
    NotTold(
        "programs",
        ("repeat_count", "debug_context_id"),
        "how often a loop repeats is not known; operations are grouped by name; exchange code and estimated cycles are "
        "those of DoExchange programs",
    ),
    NotTold("program_roots", (), "program trees begin at the programs that no other has as its child"),
    NotTold(
        "variables",
        ("element_type", "shape", "debug_context_id"),
        "no tensor shapes; variables without a place on a tile are not listed",
    ),
    NotTold(
        "lowered_variables",
        ("offset", "alignment", "category", "region", "is_constant", "is_executable"),
        "no map of a tile's addresses; variables have no category",
    ),
    NotTold("execution_blocks", ("name",), "a block is called by the name of its program"),
    NotTold("stream_copies", (), "which streams a copy moves is not known; its bytes are, where it ran"),
    NotTold("remote_buffers", (), "remote buffers are not listed"),
)
"""What no version of libpva is known to tell."""

GUARDED = {
    "Graph.numVertices": ("graph", ("num_vertices",)),
    "Graph.numComputeSets": ("graph", ("num_compute_sets",)),
    "CategoryMemory.regions": ("tile_memory_category", ("region", "overlapped")),
    "RegionMemory.overlapped": ("tile_memory_category", ("overlapped",)),
    "ComputeSet.estimatedCyclesByTile": ("compute_sets", ("estimated_cycles_by_tile",)),
    "Program.controlCodeByTile": ("programs", ("control_code_by_tile",)),
    "Program.codeBytesByTile": ("programs", ("code_bytes_by_tile",)),
    "Program.estimatedCyclesByTile": ("programs", ("estimated_cycles_by_tile",)),
    "Program.computeset": ("programs", ("compute_set_id",)),
    "Program.vars": ("program_lowered_variables", ()),
    "LoweredVariable.alwaysLive": ("lowered_variables", ("always_live",)),
    "ExecutionStep.cyclesByTile": ("execution_steps", ("cycles_by_tile",)),
    "IPUExecutionStep.allCycles": (
        "execution_step_ipus",
        ("all_from_min", "all_from_max", "all_to_min", "all_to_max"),
    ),
    "IPUExecutionStep.tileBalance": ("execution_step_ipus", ("tile_balance",)),
    "IPUExecutionStep.activeTileBalance": ("execution_step_ipus", ("active_tile_balance",)),
    "IPUExecutionStep.dataIn": ("execution_step_ipus", ("data_in",)),
    "IPUExecutionStep.dataOut": ("execution_step_ipus", ("data_out",)),
    "ExecutionReport.blocks": ("execution_blocks", ()),
    "Block.kind": ("execution_blocks", ("kind",)),
    "Block.program": ("execution_blocks", ("program_id", "name")),
}
"""What some versions of libpva may not tell: the attribute, as asked for, and what it fills."""
