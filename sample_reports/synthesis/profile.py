"""profile.pop: writes the compiled program, its memory and its runs into SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .execution import Costs, Run
from .graph import Graph, PerIpu, Program, Variable, add_into
from .layout import REGIONS, UNALLOCATED
from .machine import BYTES_PER_TILE, CLOCK_HZ, INTERLEAVED_BEGIN
from .memory import IpuMemory, Memory
from .settings import Settings
from .vertices import VertexType

Row = tuple[Any, ...]
_LOWERED = ("lowered_variables", "program_lowered_variables", "equivalence_class_intervals")
_ROWS_AT_ONCE = 50_000
_LAYOUT = Path(__file__).parents[2] / "pvanalyse" / "readers" / "dialects" / "pvanalyse-1.sql"


class ProfileWriter:
    """Writes one profile.pop; the connection is closed on leaving the context."""

    def __init__(self, path: Path, settings: Settings, graph: Graph, memory: Memory) -> None:
        self.settings = settings
        self.machine = settings.machine
        self.graph = graph
        self.memory = memory
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=OFF")
        self.connection.execute("PRAGMA synchronous=OFF")
        self.connection.executescript(_LAYOUT.read_text("utf-8"))
        self.vertex_types: dict[VertexType, int] = {}
        for compute_set in graph.compute_sets:
            for vertex, _ in compute_set.vertices:
                self.vertex_types.setdefault(vertex, len(self.vertex_types))

    def __enter__(self) -> ProfileWriter:
        self.connection.execute("BEGIN")
        return self

    def __exit__(self, *exception: object) -> None:
        self.connection.execute("COMMIT")
        self.connection.close()

    def _insert(self, table: str, rows: Iterable[Row], values: str = "") -> None:
        rows = iter(rows)
        first = next(rows, None)
        if first is not None:
            values = values or ",".join("?" * len(first))
            self.connection.executemany(f"INSERT INTO {table} VALUES ({values})", chain([first], rows))  # noqa: S608

    def _blob(self, vector: PerIpu | None) -> bytes | None:
        """Spell out a vector for the tiles of all replicas; None where all are zero."""
        if not vector or not any(part.any() for part in vector.values()):
            return None
        tiles = self.machine.tiles_per_ipu
        replica = np.zeros(self.machine.stages * tiles, "<u4")
        for ipu, part in vector.items():
            replica[ipu * tiles : (ipu + 1) * tiles] = part
        return bytes(np.tile(replica, self.machine.replicas).data)

    # ------------------------------------------------------------------------------------------- compilation

    def write_compilation(self, info: dict[str, str], options: list[tuple[str, str, str]]) -> None:
        """Write everything that is known before the program runs."""
        self._insert("report_info", sorted(info.items()))
        self._insert("engine_options", sorted(options))
        self._write_target()
        self._write_graph()
        self._write_programs()
        self._write_tiles()
        self._write_liveness()
        if self.settings.captured_lowered:
            self._write_lowered_variables()
        else:
            for table in _LOWERED:
                self.connection.execute(f"DROP TABLE {table}")

    def _write_target(self) -> None:
        machine = self.machine
        delays = {ipu: np.arange(machine.tiles_per_ipu) * 7 % 41 for ipu in range(machine.stages)}
        target = (machine.kind, "Ipu2", machine.ipus, machine.replicas, machine.tiles_per_ipu, machine.tiles)
        memory = (BYTES_PER_TILE, float(CLOCK_HZ), INTERLEAVED_BEGIN, self._blob(delays), 22)
        self._insert("target", [target + memory])

    def _write_graph(self) -> None:
        graph, replicas = self.graph, self.machine.replicas
        counted = [
            (vertex, int(sum(int(part.sum()) for part in counts.values())) * replicas)
            for compute_set in graph.compute_sets
            for vertex, counts in compute_set.vertices
        ]
        vertices = sum(count for _, count in counted)
        edges = sum(vertex.edges * count for vertex, count in counted)
        declared = [variable for variable in graph.variables if variable.number is not None]
        self._insert("graph", [(vertices, edges, len(declared), len(graph.compute_sets))])
        self._insert("vertex_types", ((n, v.name, v.instance_bytes) for v, n in self.vertex_types.items()))
        self._insert(
            "compute_sets",
            ((c.number, c.name, self._blob(c.estimated), c.flops, c.context) for c in graph.compute_sets),
        )
        self._insert(
            "compute_set_vertices",
            (
                (compute_set.number, self.vertex_types[vertex], self._blob(counts))
                for compute_set in graph.compute_sets
                for vertex, counts in compute_set.vertices
            ),
        )
        self._insert(
            "variables",
            (
                (v.number, v.name, v.element_type, json.dumps(v.shape, separators=(",", ":")), v.context)
                for v in declared
            ),
        )

    def _write_programs(self) -> None:
        graph = self.graph
        code = _control_code(graph)
        self._insert(
            "programs",
            (
                (
                    program.number,
                    program.type,
                    program.name,
                    program.repeat_count,
                    program.compute_set.number if program.compute_set else None,
                    self._blob(code[program]),
                    self._blob(program.exchange_code),
                    self._blob(program.exchange_cycles),
                    program.context,
                )
                for program in graph.programs
            ),
        )
        self._insert(
            "program_children",
            ((p.number, position, child.number) for p in graph.programs for position, child in enumerate(p.children)),
        )
        roots = (("control", graph.controls), ("function", graph.functions))
        self._insert(
            "program_roots",
            ((kind, position, program.number) for kind, programs in roots for position, program in enumerate(programs)),
        )
        self._insert(
            "stream_copies",
            ((p.number, copy.stream, copy.direction, copy.bytes) for p in graph.programs for copy in p.streams),
        )
        self._insert(
            "remote_buffers", ((n, t, count, times, 4 * count * times) for n, t, count, times in graph.remote_buffers)
        )

    def _write_tiles(self) -> None:
        tiles = self.machine.tiles_per_ipu
        for ipu in range(self.machine.ipus):
            memory, first = self.memory.ipus[ipu % self.machine.stages], ipu * tiles
            layout = memory.layout
            columns = [layout.including.sum(0), layout.excluding.sum(0)]
            for region in range(len(REGIONS)):
                columns += [layout.including[region], layout.excluding[region]]
            columns += [memory.always_live, memory.not_always_live]
            rows = zip(range(first, first + tiles), *(column.tolist() for column in columns), strict=True)
            self._insert("tile_memory", rows)
            self._insert("tile_memory_category", _category_rows(memory, first))
            self._insert("tile_vertices", self._vertex_rows(memory, first))

    def _vertex_rows(self, memory: IpuMemory, first: int) -> list[Row]:
        return sorted(
            (first + int(tile), self.vertex_types[vertex], int(code[tile]))
            for vertex, code in memory.vertex_code.items()
            for tile in np.flatnonzero(code)
        )

    # ---------------------------------------------------------------------------------------------- liveness

    def _write_liveness(self) -> None:
        live = np.sum([memory.step_bytes for memory in self.memory.ipus], axis=0).tolist()
        self._insert("liveness_steps", ((n, p.number, live[n]) for n, p in enumerate(self.graph.steps)))
        always: dict[tuple[str, int | None], int] = {}
        lifetimes = []
        for memory in self.memory.ipus:
            for variable in memory.variables:
                size = int(variable.bytes.sum())
                if not variable.intervals:
                    key = (variable.name, variable.number)
                    always[key] = always.get(key, 0) + size
                lifetimes += [(variable.number, variable.name, *interval, size) for interval in variable.intervals]
        self._insert("always_live_variables", ((name, number, size) for (name, number), size in always.items()))
        self._insert("variable_liveness", lifetimes)

    def _write_lowered_variables(self) -> None:
        self._insert("lowered_variables", self._lowered_rows(), f"?,?,?,?,nullif(?,{UNALLOCATED}),?,?,?,?,?,?,?,?")
        classes = {v.equivalence_class: v.intervals for v in self.graph.variables if v.equivalence_class is not None}
        self._insert(
            "equivalence_class_intervals",
            ((number, begin, end) for number, intervals in sorted(classes.items()) for begin, end in intervals),
        )
        self._insert("program_lowered_variables", self._use_rows())

    def _lowered_rows(self) -> Iterator[Row]:
        for fragment in self.memory.fragments():
            variable, count = fragment.variable, fragment.tile.size
            yield from zip(
                range(fragment.first_number, fragment.first_number + count),
                repeat(variable.number),
                repeat(variable.name),
                fragment.tile.tolist(),
                fragment.offset.tolist(),
                fragment.bytes.tolist(),
                repeat(variable.alignment),
                repeat(variable.category),
                fragment.region,
                repeat(int(not variable.intervals)),
                repeat(int(variable.constant)),
                repeat(int(variable.executable)),
                repeat(variable.equivalence_class),
            )

    def _use_rows(self) -> Iterator[Row]:
        """Yield each program with what it writes and what it is the last to need."""
        users: dict[Variable, list[int]] = {}
        for variable in self.graph.variables:
            programs = {self.graph.writers[variable].number}
            programs |= {end.number for _, end in variable.lifetime[-1:]}
            users[variable] = sorted(programs)
        spans: list[tuple[int, int, int]] = []
        for fragment in self.memory.fragments():
            first, count = fragment.first_number, fragment.tile.size
            spans += [(program, first, count) for program in users.get(fragment.variable, ())]
        for program, first, count in sorted(spans):
            yield from zip(repeat(program), range(first, first + count))

    # --------------------------------------------------------------------------------------------- execution

    def write_runs(self, runs: list[Run], costs: Costs) -> None:
        """Write the steps of all runs."""
        by_tile = {}
        if self.settings.execution == "tiles":
            sets = {p.number: p.compute_set for p in self.graph.programs if p.compute_set}
            by_tile = {number: self._profiled_blob(one.measured) for number, one in sets.items()}
        first = 0
        for number, run in enumerate(runs):
            self._insert("runs", [(number, run.name, run.start_us, run.end_us)])
            count = run.programs.size
            programs = run.programs.tolist()
            blobs = (by_tile.get(program) for program in programs)
            self._insert(
                "execution_steps", zip(range(first, first + count), repeat(number), programs, blobs, strict=False)
            )
            for begin in range(0, count, _ROWS_AT_ONCE):
                rows = _step_rows(run, costs, first, slice(begin, min(begin + _ROWS_AT_ONCE, count)))
                self._insert("execution_step_ipus", rows, ",".join(["?"] * 13 + ["nullif(?,-1)"] * 2))
            first += count

    def _profiled_blob(self, vector: PerIpu) -> bytes | None:
        """Spell out what was measured: the first replica's tiles, zeros for the others."""
        replica = self._blob(vector)
        if replica is None:
            return None
        profiled = len(replica) // self.machine.replicas
        return replica[:profiled] + bytes(len(replica) - profiled)

    def write_blocks(self, runs: list[Run]) -> None:
        """Write what lightweight profiling records: compute sets and stream copies on the first tile of each IPU."""
        programs, rows = self.graph.programs, []
        for run in runs:
            for ipu in range(self.machine.stages):
                tile = ipu * self.machine.tiles_per_ipu
                for step, number in enumerate(run.programs.tolist()):
                    begin, end = int(run.active_from[1, step, ipu]), int(run.active_to[1, step, ipu])
                    kind = {"OnTileExecute": "common", "StreamCopyMid": "streamCopy"}.get(programs[number].type)
                    if kind and end > begin:
                        rows.append((tile, number, programs[number].name, kind, begin, end))
                last = int(run.all_to[1, :, ipu].max())
                rows.append((tile, None, "BlockFlush", "blockFlush", last, last + 2_400))
        rows.append((0, None, "Overflow", "overflow", rows[-1][5], rows[-1][5] + 64))
        self._insert("execution_blocks", ((number, *row) for number, row in enumerate(rows)))
        self._insert("runs", ((number, run.name, run.start_us, run.end_us) for number, run in enumerate(runs)))


def _control_code(graph: Graph) -> dict[Program, PerIpu]:
    """Return each program's control code with that of all below it."""
    inclusive: dict[Program, PerIpu] = {}

    def visit(program: Program) -> PerIpu:
        if program not in inclusive:
            result = dict(program.control_code)
            for child in program.children:
                add_into(result, visit(child))
            inclusive[program] = result
        return inclusive[program]

    for program in graph.programs:
        visit(program)
    return inclusive


def _category_rows(memory: IpuMemory, first: int) -> list[Row]:
    return sorted(
        (first + int(tile), category, REGIONS[region], int(alone[tile]), int(shared[tile]))
        for (category, region), (alone, shared) in memory.layout.categories.items()
        for tile in np.flatnonzero(alone + shared)
    )


def _step_rows(run: Run, costs: Costs, first: int, steps: slice) -> Iterator[Row]:
    """Yield the rows of some steps, step by step and IPU by IPU."""
    ipus = run.active_from.shape[2]
    programs = run.programs[steps]
    ended = run.active_to[1, steps] > run.active_from[1, steps]

    def column(values: NDArray[Any]) -> list[Any]:
        flat: list[Any] = values.reshape(-1).tolist()
        return flat

    yield from zip(
        column(np.repeat(np.arange(first + steps.start, first + steps.stop), ipus)),
        column(np.tile(np.arange(ipus), programs.size)),
        column(run.active_to[1, steps] - run.active_from[1, steps]),
        *(
            column(matrix[bound, steps])
            for matrix in (run.active_from, run.active_to, run.all_from, run.all_to)
            for bound in (0, 1)
        ),
        column(np.where(ended, costs.tile_balance[programs], np.nan)),
        column(np.where(ended, costs.active_balance[programs], np.nan)),
        column(costs.data_in[programs]),
        column(costs.data_out[programs]),
        strict=True,
    )
