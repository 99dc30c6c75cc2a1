"""The data model: every logical table of a report, its columns, their Arrow types and units.

Readers produce these tables whatever the layout of the file; everything else speaks only these names. A column's
name ends in its unit where it has one; where the name cannot carry it, :attr:`Column.unit` does.

Conventions: *bytes* are storage sizes, *cycles* tile clock cycles, *_us* microseconds of host time; a *step* is an
index into the compile-time liveness steps, counted from 0; intervals are half-open, ``[begin, end)``; *tile* counts
over all IPUs, IPU-major, so ``tile // tiles_per_ipu`` is the IPU. A per-tile column holds one list of unsigned
integers per row, ``target.num_tiles`` long; a null there means that every tile's value is zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


class Kind(Enum):
    """What a column holds; :meth:`Column.arrow_type` gives the Arrow type."""

    INTEGER = "int64"
    REAL = "float64"
    TEXT = "string"
    CATEGORY = "dictionary<int32, string>"  # text with few distinct values
    BOOLEAN = "bool"
    PER_TILE = "list<uint32>"  # one value per tile
    INTEGERS = "list<int64>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a logical table.

    Attributes
    ----------
    name, kind, doc
        What it is called, what it holds, what it means.
    nullable
        Whether a missing value is legitimate. A null elsewhere means a value that could not be read.
    unit
        ``bytes``, ``cycles``, ``us``, ``Hz``, ``step`` or empty.
    """

    name: str
    kind: Kind
    doc: str = ""
    nullable: bool = False
    unit: str = ""

    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type of the column."""
        import pyarrow as pa

        types: dict[Kind, pa.DataType] = {
            Kind.INTEGER: pa.int64(),
            Kind.REAL: pa.float64(),
            Kind.TEXT: pa.string(),
            Kind.CATEGORY: pa.dictionary(pa.int32(), pa.string()),
            Kind.BOOLEAN: pa.bool_(),
            Kind.PER_TILE: pa.list_(pa.uint32()),
            Kind.INTEGERS: pa.list_(pa.int64()),
        }
        return types[self.kind]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a profile can capture: what it is, and how to have it recorded."""

    name: str
    how: str


@dataclass(frozen=True)
class TableSchema:
    """One logical table.

    Attributes
    ----------
    name, doc
        What it is called and what a row is.
    source
        The file of the report directory that it comes from.
    part
        The part of a capture that records it.
    columns
        In order.
    may_be_empty
        Whether a report in which that part was captured may well have no rows of it.
    """

    name: str
    doc: str
    source: str
    part: Part
    columns: tuple[Column, ...]
    may_be_empty: bool = False

    @property
    def capture(self) -> str:
        """How to have it recorded, as a phrase that can follow "to capture it:"."""
        return self.part.how

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """Columns by their name."""
        return {column.name: column for column in self.columns}

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(column.name for column in self.columns)

    def select(self, names: tuple[str, ...] | list[str] | None) -> tuple[Column, ...]:
        """Return the named columns in the order asked for, or all of them.

        Raises
        ------
        UsageError
            A name is not a column of this table.
        """
        if names is None:
            return self.columns
        unknown = [name for name in names if name not in self.by_name]
        if unknown:
            raise UsageError(
                f"table '{self.name}' has no column '{unknown[0]}'; it has: {', '.join(self.column_names)}"
            )
        return tuple(self.by_name[name] for name in names)

    def check_where(self, where: Where) -> None:
        """Check that rows can be chosen like this.

        Raises
        ------
        UsageError
            A column is not one of this table's, or does not hold integers.
        """
        for column in self.select(list(where)):
            if column.kind is not Kind.INTEGER:
                raise UsageError(f"rows of table '{self.name}' cannot be chosen by '{column.name}': no integers")

    def arrow_schema(self, names: tuple[str, ...] | list[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of the named columns, or of all; every field may be null, see :class:`Column`."""
        import pyarrow as pa

        return pa.schema([(c.name, c.arrow_type()) for c in self.select(names)])


def _int(name: str, doc: str = "", unit: str = "", *, null: bool = False) -> Column:
    return Column(name, Kind.INTEGER, doc, null, unit)


def _bytes(name: str, doc: str = "") -> Column:
    return Column(name, Kind.INTEGER, doc, unit="bytes")


def _cycles(name: str, doc: str = "") -> Column:
    return Column(name, Kind.INTEGER, doc, unit="cycles")


def _real(name: str, doc: str = "", unit: str = "", *, null: bool = False) -> Column:
    return Column(name, Kind.REAL, doc, null, unit)


def _text(name: str, doc: str = "", *, null: bool = False) -> Column:
    return Column(name, Kind.TEXT, doc, null)


def _category(name: str, doc: str = "", *, null: bool = False) -> Column:
    return Column(name, Kind.CATEGORY, doc, null)


def _bool(name: str, doc: str = "") -> Column:
    return Column(name, Kind.BOOLEAN, doc)


def _per_tile(name: str, doc: str, unit: str) -> Column:
    return Column(name, Kind.PER_TILE, doc, True, unit)


Where = Mapping[str, Sequence[int]]
"""Only the rows whose integer columns are one of these numbers, such as ``{"tile": [947]}``."""


class TableSource(Protocol):
    """What analysis needs of a report: its tables, by their logical names."""

    def captured(self, name: str) -> bool:
        """Tell whether the report holds the table."""

    def count(self, name: str) -> int:
        """Return the table's number of rows, 0 when it was not captured."""

    def arrow(self, name: str, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        """Return the table, or only some columns or rows; raises NotCaptured."""

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: Where | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the table in the order of its keys without keeping it; raises NotCaptured."""


PROFILE = "profile.pop"
ARCHIVE = "archive.a"
DEBUG_INFO = "debug.cbor"
TRACE_CACHE = "profile.pop_cache"
FRAMEWORK = "framework.json"
APP = "app.json"

_GRAPH = Part("compilation profile", 'engine option "autoReport.outputGraphProfile": "true"')
_LOWERED = Part("lowered variables", 'engine option "autoReport.outputLoweredVars": "true"')
_EXECUTION = Part(
    "execution profile", 'engine option "autoReport.outputExecutionProfile": "true", and a run of the program'
)
_BLOCKS = Part(
    "lightweight profiling blocks",
    'engine option "profiler.programs.filter" or "profiler.blocks.filter", and a run of the program',
)
_ARCHIVE = Part("executables", 'engine option "autoReport.outputArchive": "true"')
_DEBUG = Part("debug information", 'engine option "autoReport.outputDebugInfo": "true"')
_CACHE = Part("execution trace cache", "the vendor's viewer writes profile.pop_cache when it shows the execution trace")
_FRAMEWORK = Part("framework's own facts", "the framework writes framework.json")
_APP = Part("application's own facts", "write a JSON object into app.json in the report directory")

_SCHEMAS = (
    # ------------------------------------------------------------------------------------------ report
    TableSchema(
        "report_info",
        "Facts about the report, key and value.",
        PROFILE,
        _GRAPH,
        (
            _text("key"),
            _text("value"),
        ),
    ),
    TableSchema(
        "engine_options",
        "What the program was compiled and run with.",
        PROFILE,
        _GRAPH,
        (
            _category("scope", "engine, target or report"),
            _text("name", "such as debug.computeInstrumentationLevel"),
            _text("value"),
        ),
        may_be_empty=True,
    ),
    # ------------------------------------------------------------------------------------- compilation
    TableSchema(
        "target",
        "The hardware compiled for; one row.",
        PROFILE,
        _GRAPH,
        (
            _text("type", "Ipu, IpuModel, Cpu or Unknown"),
            _text("architecture", "Ipu1 (Mk1), Ipu2 (Mk2), Ipu21 or Unknown"),
            _int("num_ipus", "all replicas together"),
            _int("num_replicas"),
            _int("tiles_per_ipu"),
            _int("num_tiles", "num_ipus × tiles_per_ipu"),
            _bytes("bytes_per_tile", "638,976 on a Mk2 IPU"),
            _real("clock_frequency", unit="Hz"),
            _int("interleaved_begin", "tile address at which interleaved memory starts", "bytes", null=True),
            _per_tile("relative_sync_delay_by_tile", "sync delay relative to the fastest tile", "cycles"),
            _int("min_sync_delay", unit="cycles", null=True),
        ),
    ),
    TableSchema(
        "graph",
        "Size of the compiled graph; one row.",
        PROFILE,
        _GRAPH,
        (
            _int("num_vertices", null=True),
            _int("num_edges", null=True),
            _int("num_variables", null=True),
            _int("num_compute_sets", null=True),
        ),
    ),
    TableSchema(
        "tile_memory",
        "Memory of each tile; one row per tile.",
        PROFILE,
        _GRAPH,
        (
            _int("tile"),
            _bytes("total_including_gaps", "with the unused bytes between allocations; decides whether the tile fits"),
            _bytes("total_excluding_gaps"),
            _int("non_interleaved_including_gaps", unit="bytes", null=True),
            _int("non_interleaved_excluding_gaps", unit="bytes", null=True),
            _int("interleaved_including_gaps", unit="bytes", null=True),
            _int("interleaved_excluding_gaps", unit="bytes", null=True),
            _bytes("overflowed_including_gaps", "beyond the tile's memory; not zero means out of memory"),
            _bytes("overflowed_excluding_gaps"),
            _bytes("always_live_bytes"),
            _bytes("not_always_live_bytes", "the tile's own peak over the liveness steps"),
        ),
    ),
    TableSchema(
        "tile_memory_category",
        "Bytes by tile, storage category and region; no zero rows.",
        PROFILE,
        _GRAPH,
        (
            _int("tile"),
            _category("category", "vertexCode, controlCode, variable …: an open set"),
            _category("region", "nonInterleaved, interleaved or overflowed"),
            _bytes("non_overlapped", "at addresses that nothing else uses"),
            _bytes("overlapped", "at addresses shared with something live at another time"),
        ),
    ),
    TableSchema(
        "vertex_types",
        "Kinds of vertices.",
        PROFILE,
        _GRAPH,
        (
            _int("vertex_type_id"),
            _text("name"),
            _bytes("instance_bytes", "state of one instance"),
        ),
    ),
    TableSchema(
        "tile_vertices",
        "Vertex code present on a tile.",
        PROFILE,
        _GRAPH,
        (
            _int("tile"),
            _int("vertex_type_id"),
            _bytes("code_bytes"),
        ),
    ),
    TableSchema(
        "compute_sets",
        "Sets of vertices that run together.",
        PROFILE,
        _GRAPH,
        (
            _int("compute_set_id"),
            _text("name"),
            _per_tile("estimated_cycles_by_tile", "estimate of the compiler", "cycles"),
            _int("flops", "estimate over all tiles; engine option profiler.includeFlopEstimates", null=True),
            _int("debug_context_id", "into debug_contexts", null=True),
        ),
    ),
    TableSchema(
        "compute_set_vertices",
        "Vertices of a compute set by type.",
        PROFILE,
        _GRAPH,
        (
            _int("compute_set_id"),
            _int("vertex_type_id"),
            _per_tile("count_by_tile", "vertices on each tile", ""),
        ),
    ),
    TableSchema(
        "programs",
        "Every program of the compiled tree.",
        PROFILE,
        _GRAPH,
        (
            _int("program_id"),
            _category("type", "Sequence, OnTileExecute, DoExchange, StreamCopyMid, Sync …: an open set"),
            _text("name", "may be empty"),
            _int("repeat_count", "Repeat only", null=True),
            _int("compute_set_id", "OnTileExecute only", null=True),
            _per_tile("control_code_by_tile", "control code, a parent's including its children's", "bytes"),
            _per_tile("code_bytes_by_tile", "exchange code; exchanges only", "bytes"),
            _per_tile("estimated_cycles_by_tile", "estimate; exchanges only", "cycles"),
            _int("debug_context_id", "into debug_contexts", null=True),
        ),
    ),
    TableSchema(
        "program_children",
        "Edges of the program tree; a function body may have several parents.",
        PROFILE,
        _GRAPH,
        (
            _int("program_id", "the parent"),
            _int("position"),
            _int("child_id"),
        ),
    ),
    TableSchema(
        "program_roots",
        "Where the program trees start.",
        PROFILE,
        _GRAPH,
        (
            _category("kind", "control or function"),
            _int("position"),
            _int("program_id"),
        ),
    ),
    TableSchema(
        "variables",
        "Tensors as the program declared them (unlowered).",
        PROFILE,
        _GRAPH,
        (
            _int("variable_id"),
            _text("name"),
            _category("element_type", "float, half, int, unsigned int, bool …", null=True),
            _text("shape", "JSON array such as [16,1024]", null=True),
            _int("debug_context_id", "into debug_contexts", null=True),
        ),
    ),
    TableSchema(
        "lowered_variables",
        "Allocations: one row per variable and tile.",
        PROFILE,
        _LOWERED,
        (
            _int("lowered_variable_id"),
            _int("variable_id", "null: made by the compiler", null=True),
            _text("name"),
            _int("tile"),
            _int("offset", "tile address; null: not allocated (out of memory)", "bytes", null=True),
            _bytes("bytes"),
            _bytes("alignment"),
            _category("category"),
            _category("region", "nonInterleaved, interleaved or overflowed"),
            _bool("always_live"),
            _bool("is_constant"),
            _bool("is_executable"),
            _int("equivalence_class_id", "null where always live", null=True),
        ),
    ),
    TableSchema(
        "program_lowered_variables",
        "What a program reads or writes.",
        PROFILE,
        _LOWERED,
        (
            _int("program_id"),
            _int("lowered_variable_id"),
        ),
        may_be_empty=True,
    ),
    # ---------------------------------------------------------------------------------------- liveness
    TableSchema(
        "liveness_steps",
        "The compile-time order of programs, with live memory of one replica.",
        PROFILE,
        _GRAPH,
        (
            _int("step", unit="step"),
            _int("program_id"),
            _bytes("not_always_live_bytes", "over the tiles of one replica"),
        ),
    ),
    TableSchema(
        "equivalence_class_intervals",
        "When the lowered variables of a class are live.",
        PROFILE,
        _LOWERED,
        (
            _int("equivalence_class_id"),
            _int("step_begin", unit="step"),
            _int("step_end", unit="step"),
        ),
    ),
    TableSchema(
        "always_live_variables",
        "What is live during the whole program; code and state appear as pseudo-variables named after their category.",
        PROFILE,
        _GRAPH,
        (
            _text("name"),
            _int("variable_id", null=True),
            _bytes("bytes"),
        ),
    ),
    TableSchema(
        "variable_liveness",
        "When each not-always-live variable is live, on one replica.",
        PROFILE,
        _GRAPH,
        (
            _int("variable_id", "null: made by the compiler", null=True),
            _text("name"),
            _int("step_begin", unit="step"),
            _int("step_end", unit="step"),
            _bytes("bytes", "over the tiles of one replica, while live"),
        ),
    ),
    # --------------------------------------------------------------------------------------- execution
    TableSchema(
        "runs",
        "Calls of Engine::run.",
        PROFILE,
        _EXECUTION,
        (
            _int("run_id"),
            _text("name"),
            _int("start_us", unit="us"),
            _int("end_us", unit="us"),
        ),
    ),
    TableSchema(
        "execution_steps",
        "Programs in the order they ran.",
        PROFILE,
        _EXECUTION,
        (
            _int("step_id"),
            _int("run_id"),
            _int("program_id"),
            _per_tile("cycles_by_tile", "only with tile-level instrumentation", "cycles"),
        ),
    ),
    TableSchema(
        "execution_step_ipus",
        "An executed step on one IPU.",
        PROFILE,
        _EXECUTION,
        (
            _int("step_id"),
            _int("ipu"),
            _cycles("cycles"),
            _cycles("active_from_min", "over the tiles that do work"),
            _cycles("active_from_max"),
            _cycles("active_to_min"),
            _cycles("active_to_max"),
            _cycles("all_from_min", "over all tiles of the IPU"),
            _cycles("all_from_max"),
            _cycles("all_to_min"),
            _cycles("all_to_max"),
            _real("tile_balance", "0 to 1", null=True),
            _real("active_tile_balance", "0 to 1", null=True),
            _int("data_in", "exchanges and stream copies", "bytes", null=True),
            _int("data_out", "exchanges and stream copies", "bytes", null=True),
        ),
    ),
    TableSchema(
        "execution_blocks",
        "Intervals recorded by lightweight profiling.",
        PROFILE,
        _BLOCKS,
        (
            _int("block_id"),
            _int("tile"),
            _int("program_id", null=True),
            _text("name"),
            _category("kind", "common, streamCopy, overflow or blockFlush"),
            _cycles("cycles_from"),
            _cycles("cycles_to"),
        ),
    ),
    TableSchema(
        "stream_copies",
        "What a StreamCopyMid program moves.",
        PROFILE,
        _GRAPH,
        (
            _int("program_id"),
            _text("stream"),
            _category("direction", "HostToDevice, DeviceToHost, RemoteToDevice or DeviceToRemote"),
            _bytes("bytes"),
        ),
        may_be_empty=True,
    ),
    TableSchema(
        "remote_buffers",
        "Buffers in the memory of the host.",
        PROFILE,
        _GRAPH,
        (
            _text("name"),
            _category("element_type", null=True),
            _int("num_elements"),
            _int("repeats"),
            _bytes("bytes"),
        ),
        may_be_empty=True,
    ),
    # ------------------------------------------------------------------------------------- other files
    TableSchema(
        "archive_tiles",
        "Executables of archive.a; one row per ELF member.",
        ARCHIVE,
        _ARCHIVE,
        (
            _int("tile", "the last number in the member's name, or the order of the members"),
            _text("member", "name in the archive"),
            _category("architecture", "Ipu1, Ipu2, Ipu21, or the machine's number for other ELF files"),
            _int("elf_class", "32 or 64"),
            _category("byte_order", "little or big"),
            _int("machine", "e_machine"),
            _int("flags", "e_flags"),
            _int("num_segments"),
            _int("num_sections"),
            _bytes("file_bytes", "size of the member"),
            _bytes("loaded_bytes", "Σ p_memsz of the PT_LOAD segments"),
        ),
    ),
    TableSchema(
        "archive_segments",
        "Program headers of each tile's executable.",
        ARCHIVE,
        _ARCHIVE,
        (
            _int("tile"),
            _int("segment", "index in the program header table"),
            _category("type", "LOAD, NOTE …, or the number in hexadecimal"),
            _int("virtual_address"),
            _bytes("file_bytes", "p_filesz"),
            _bytes("memory_bytes", "p_memsz"),
            _category("flags", "of R, W and E, as readelf prints them"),
            _int("alignment"),
        ),
    ),
    TableSchema(
        "archive_sections",
        "Section headers of each tile's executable.",
        ARCHIVE,
        _ARCHIVE,
        (
            _int("tile"),
            _int("section", "index in the section header table"),
            _category("name"),
            _category("type", "PROGBITS, NOBITS, SYMTAB …, or the number in hexadecimal"),
            _int("address"),
            _bytes("bytes", "sh_size"),
            _category("flags", "letters as readelf prints them"),
        ),
    ),
    TableSchema(
        "archive_symbols",
        "Symbols of each tile's executable, when it was not stripped.",
        ARCHIVE,
        _ARCHIVE,
        (
            _int("tile"),
            _category("name"),
            _int("address", "st_value"),
            _bytes("bytes", "st_size"),
            _category("type", "FUNC, OBJECT …"),
            _category("binding", "LOCAL, GLOBAL, WEAK …"),
            _int("section", "section index (st_shndx)"),
        ),
        may_be_empty=True,
    ),
    TableSchema(
        "debug_contexts",
        "Where everything came from: one row per debug context.",
        DEBUG_INFO,
        _DEBUG,
        (
            _int("debug_context_id"),
            _int("parent_id", "null: a root, or a parent that the file does not hold", null=True),
            _text("name", null=True),
            _category("layer", "xla_op, onnx, popart, poplibs, poplar …: an open set", null=True),
            _category("file", "source file", null=True),
            _category("function", null=True),
            _int("line", null=True),
            _text("fields", "what the layer itself recorded, as a JSON object", null=True),
        ),
    ),
    TableSchema(
        "trace_blocks",
        "Blocks of the execution trace that the vendor's viewer cached.",
        TRACE_CACHE,
        _CACHE,
        (
            _int("block_id"),
            _int("parent_id", "null: a root", null=True),
            _category("tag", "OnTileExecute, DoExchange, StreamCopy …, or FlameGraphNode for a group"),
            _int("ipu"),
            _int("graph"),
            _int("depth", "in the flame graph, 0 for roots"),
            _text("name", null=True),
            _cycles("cycles_from", "absolute, per IPU"),
            _cycles("cycles_to"),
            Column("step_ids", Kind.INTEGERS, "executed steps merged into the block"),
            _real("tile_balance", "0 to 1", null=True),
            _category("stream_copy_destination", "Host or a remote buffer", null=True),
        ),
    ),
    TableSchema(
        "framework",
        "framework.json, flattened.",
        FRAMEWORK,
        _FRAMEWORK,
        (
            _text("section"),
            _text("key"),
            _text("value"),
        ),
    ),
    TableSchema(
        "app",
        "app.json, flattened.",
        APP,
        _APP,
        (
            _text("section"),
            _text("key"),
            _text("value"),
        ),
    ),
)

TABLES: Mapping[str, TableSchema] = {schema.name: schema for schema in _SCHEMAS}
"""Every logical table by name, in the order of the data flow."""


def table(name: str) -> TableSchema:
    """Return the schema of a logical table.

    Raises
    ------
    UsageError
        There is no table of that name; the message lists the nearest.
    """
    if name in TABLES:
        return TABLES[name]
    from difflib import get_close_matches

    near = get_close_matches(name, TABLES, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(TABLES)}"
    raise UsageError(f"there is no table '{name}'; {hint}")


def tables_of(source: str) -> Iterator[TableSchema]:
    """Yield the tables that come from a file such as ``profile.pop``."""
    return (schema for schema in _SCHEMAS if schema.source == source)
