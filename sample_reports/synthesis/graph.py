"""What the compiler makes of a network: variables, compute sets and the tree of programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .network import Operation
from .vertices import VertexType

TileVector = NDArray[np.int64]
PerIpu = dict[int, TileVector]
"""One number per tile, for those IPUs of a replica where not all are zero."""

CONTAINERS = frozenset({"Sequence", "Repeat", "Call"})
GLOBAL = frozenset({"GlobalExchange", "StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd"})
EXTERNAL_SYNC = "External Sync"


@dataclass(eq=False)
class ComputeSet:
    """Vertices that run together.

    Attributes
    ----------
    estimated, measured
        Cycles by tile: what the compiler thinks and what the run shows, at every execution.
    vertices
        Vertex types with the number of instances by tile.
    """

    name: str
    estimated: PerIpu
    measured: PerIpu
    vertices: list[tuple[VertexType, PerIpu]]
    flops: int
    context: int
    number: int = -1


@dataclass(eq=False)
class StreamCopy:
    """What a StreamCopyMid program moves, over the IPUs of one replica."""

    stream: str
    direction: str
    bytes: int


@dataclass(eq=False)
class Program:
    """A node of the program tree; a function's body is a child of every Call.

    Attributes
    ----------
    ipus
        IPUs of a replica that take part; a leaf does nothing on the others.
    control_code
        Bytes by tile without the children's.
    exchange_code, exchange_cycles
        Bytes and estimated cycles by tile, exchanges and stream copies only.
    data_in, data_out
        Bytes by IPU of the replica that an exchange or stream copy moves.
    overlapped
        A stream copy that goes on while the IPUs compute.
    """

    type: str
    name: str = ""
    children: list[Program] = field(default_factory=list)
    ipus: tuple[int, ...] = ()
    repeat_count: int | None = None
    compute_set: ComputeSet | None = None
    control_code: PerIpu = field(default_factory=dict)
    exchange_code: PerIpu = field(default_factory=dict)
    exchange_cycles: PerIpu = field(default_factory=dict)
    data_in: dict[int, int] = field(default_factory=dict)
    data_out: dict[int, int] = field(default_factory=dict)
    streams: list[StreamCopy] = field(default_factory=list)
    overlapped: bool = False
    context: int | None = None
    number: int = -1

    @property
    def is_global(self) -> bool:
        """Whether all IPUs of the replica do it together."""
        return (self.type in GLOBAL and not self.overlapped) or self.name == EXTERNAL_SYNC


@dataclass(eq=False)
class Variable:
    """A variable on one IPU of a replica.

    Attributes
    ----------
    bytes
        By tile of its IPU.
    lifetime
        Pairs of leaf programs, the first and the last during which it is live; empty: always live.
    shape, element_type
        Of a variable that the user's program declares; a shape of () means made by the compiler.
    slot, phase
        Variables of one slot share addresses; those of one phase of it lie side by side, and no two phases are live at
        once. An empty slot is shared with nobody.
    own_bank
        Must start in a memory bank that holds nothing before it.
    """

    name: str
    ipu: int
    bytes: TileVector
    category: str = "variable"
    lifetime: list[tuple[Program, Program]] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    element_type: str = ""
    alignment: int = 8
    slot: str = ""
    phase: int = 0
    interleaved: bool = False
    own_bank: bool = False
    constant: bool = False
    executable: bool = False
    context: int | None = None
    number: int | None = None
    intervals: list[tuple[int, int]] = field(default_factory=list)
    equivalence_class: int | None = None


@dataclass(eq=False)
class Lowered:
    """An operation with the leaf programs of its passes.

    Attributes
    ----------
    work, weight_work
        Elements of the output, and of the parameter, by tile of the operation's IPU.
    backward, update
        Empty and None where nothing is trained.
    """

    operation: Operation
    forward: list[Program]
    work: TileVector
    weight_work: TileVector | None = None
    backward: list[Program] = field(default_factory=list)
    update: Program | None = None


@dataclass
class Graph:
    """A compiled program; programs, compute sets and variables are numbered in the order of their making.

    Attributes
    ----------
    remote_buffers
        Name, element type, elements and repeats.
    writers
        The program that gives a variable its value.
    """

    controls: list[Program]
    functions: list[Program]
    compute_sets: list[ComputeSet]
    variables: list[Variable]
    remote_buffers: list[tuple[str, str, int, int]]
    writers: dict[Variable, Program]
    programs: list[Program] = field(default_factory=list)
    steps: list[Program] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._number_programs(self.controls + self.functions)
        for number, compute_set in enumerate(self.compute_sets):
            compute_set.number = number
        self.steps = list(_linear(self.controls, set()))
        self.settle_lifetimes()

    def _number_programs(self, programs: list[Program]) -> None:
        for program in programs:
            if program.number < 0:
                program.number = len(self.programs)
                self.programs.append(program)
                self._number_programs(program.children)

    def settle_lifetimes(self) -> None:
        """Turn the variables' lifetimes into step intervals, and equal ones into one equivalence class."""
        first: dict[Program, int] = {}
        for step, program in enumerate(self.steps):
            first.setdefault(program, step)
        classes: dict[tuple[tuple[int, int], ...], int] = {}
        declared = 0
        for variable in self.variables:
            variable.intervals = [(first[begin], first[end] + 1) for begin, end in variable.lifetime]
            if variable.intervals:
                variable.equivalence_class = classes.setdefault(tuple(variable.intervals), len(classes))
            if variable.shape:
                variable.number = declared
                declared += 1


def _linear(programs: list[Program], seen: set[Program]) -> Iterator[Program]:
    """Yield leaves in program order, a function's body at its first Call, later Calls as they are."""
    for program in programs:
        if program.type == "Call" and program.children[0] in seen:
            yield program
        elif program.type in CONTAINERS or program.type == "OnEveryTileSwitch":
            seen.add(program)
            if program.type == "OnEveryTileSwitch":
                yield program
            yield from _linear(program.children, seen)
        else:
            yield program


def add_into(total: PerIpu, part: PerIpu) -> None:
    """Add the numbers of `part` to `total`."""
    for ipu, vector in part.items():
        total[ipu] = total[ipu] + vector if ipu in total else vector


def everywhere(tiles: int, number: int) -> TileVector:
    """Return the same number for every tile."""
    return np.full(tiles, number, np.int64)
