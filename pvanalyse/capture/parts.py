"""What the parts of a capture share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from pvanalyse.capture.capture_file import CaptureFile
from pvanalyse.errors import NotCaptured

ABSENT = "absent:"
MISFIT = "misfit:"
_LARGEST = 2**32 - 1

NOT_THERE = (AttributeError, NotCaptured)
"""What is raised for what a version of libpva does not have, or a report does not hold."""


@dataclass
class Session:
    """A capture at work.

    Attributes
    ----------
    report
        libpva's object.
    file
        What is written.
    variables
        The number of each unlowered variable that was met on a tile; its place there is in ``capture_variables``, so
        that it is found again after an interruption.
    """

    report: Any
    file: CaptureFile
    variables: dict[Any, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restore()

    def restore(self) -> None:
        """Know again what was numbered in the chunks that are written, and nothing else."""
        self.__dict__.pop("vertex_types", None)
        self.variables.clear()
        met = self.file.select("SELECT tile, position, variable_id FROM capture_variables ORDER BY tile, position")
        for tile, there in groupby(met, key=lambda row: row[0]):
            lowered = self.report.compilation.loweredVariables.forTile(tile)
            for _, position, number in there:
                self.variables[lowered[position].unloweredVar] = number

    @cached_property
    def vertex_types(self) -> dict[tuple[str, int], int]:
        """The number of each vertex type by name and size."""
        found = self.file.select("SELECT name, instance_bytes, vertex_type_id FROM vertex_types")
        return {(name, size): number for name, size, number in found}

    @cached_property
    def num_tiles(self) -> int:
        """Number of tiles."""
        try:
            return int(self.report.compilation.target.numTiles)
        except NOT_THERE:
            return len(self.report.compilation.tiles)

    def vertex_type(self, kind: Any) -> int:
        """Return the number of a vertex type; a new one is written."""
        key = (kind.name, kind.size)
        number = self.vertex_types.get(key)
        if number is None:
            number = self.vertex_types[key] = len(self.vertex_types)
            self.file.add("vertex_types", [(number, *key)])
        return number

    def optional(self, thing: Any, owner: str, name: str, otherwise: Any = None) -> Any:
        """Return an attribute that not every version has, or not every report; noted when it is not there."""
        try:
            return getattr(thing, name)
        except NOT_THERE:
            self.file.remark(f"{ABSENT}{owner}.{name}")
            return otherwise

    def packed(self, numbers: Iterable[int] | None, column: str) -> bytes | None:
        """Return a number for each tile as the layout has them; None for zeros, or when there are none.

        Numbers that are not one for each tile, or too large, are not taken, and this is noted for the column.
        """
        values = np.array([] if numbers is None else list(numbers), np.int64)
        if not values.any():
            return None
        if len(values) != self.num_tiles or values.min() < 0 or values.max() > _LARGEST:
            self.file.remark(f"{MISFIT}{column}")
            return None
        return values.astype("<u4").tobytes()


class Part:
    """A part of a report: items that are walked and written one after another.

    Attributes
    ----------
    name
        What it is called.
    tables
        What it alone fills.
    """

    name: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]

    def __init__(self, session: Session) -> None:
        self.session = session
        self.file = session.file

    def items(self) -> Sequence[Any]:
        """Return what is walked."""
        raise NotImplementedError

    def begin(self, done: int) -> None:
        """Get ready for the items after the first ``done``, which an earlier process wrote."""

    def write(self, at: int, item: Any) -> None:
        """Write an item."""
        raise NotImplementedError

    def keep(self) -> None:
        """Write what the next process needs to go on after the items so far."""

    def end(self) -> None:
        """Write what is known after the last item."""


def id_of(program: Any) -> int | None:
    """Return the number of a program; None for no program."""
    return None if program is None else int(program._id)
