"""Variables: on the tiles, always live, and live at each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pvanalyse.capture.parts import Part, id_of


class Classes(Part):
    """Lowered variables in brief, which tell when each is live."""

    name = "lifetimes"
    tables = ("equivalence_class_intervals", "capture_classes")

    def items(self) -> Sequence[Any]:
        """Return the lowered variables in brief."""
        brief: Sequence[Any] = self.session.report.compilation.loweredVariables.allBriefVars
        return brief

    def begin(self, done: int) -> None:  # noqa: ARG002
        """Expect classes anew; what is written twice stays what it is."""
        self._known: set[int] = set()

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write the class of a lowered variable, and when it is live."""
        of = item.equivalenceClass
        number = of.id
        self.file.add("capture_classes", ((item.id, item.tileId, number),))
        if number not in self._known:
            self._known.add(number)
            spans = [(number, span.start, span.end) for span in of.steps]
            self.file.add("equivalence_class_intervals", spans)


class Lowered(Part):
    """Lowered variables, tile by tile, and the variables that they are of."""

    name = "lowered variables"
    tables = ("lowered_variables", "variables", "capture_variables")

    def items(self) -> Sequence[Any]:
        """Return the numbers of the tiles."""
        self._variables = self.session.report.compilation.loweredVariables
        return range(self.session.num_tiles)

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write the lowered variables of a tile."""
        optional, rows = self.session.optional, []
        for position, one in enumerate(self._variables.forTile(at)):
            number = self._number(one.unloweredVar, at, position) if one.hasUnloweredVar else None
            always = optional(one, "LoweredVariable", "alwaysLive")
            rows.append((one._id, number, one.name, at, one.bytes, None if always is None else int(always)))
        self.file.add("lowered_variables", rows)

    def _number(self, variable: Any, tile: int, position: int) -> int:
        numbers = self.session.variables
        number = numbers.get(variable)
        if number is None:
            number = numbers[variable] = len(numbers)
            self.file.add("variables", [(number, variable.name, None, None, None)])
            self.file.add("capture_variables", [(number, tile, position)])
        return number

    def end(self) -> None:
        """Remove what told the classes, and the classes that no variable is in: those of what is always live."""
        used = "SELECT equivalence_class_id FROM lowered_variables WHERE equivalence_class_id IS NOT NULL"
        self.file.execute(f"DELETE FROM equivalence_class_intervals WHERE equivalence_class_id NOT IN ({used})")  # noqa: S608
        ((brief, full),) = self.file.select(
            "SELECT (SELECT count(*) FROM capture_classes), (SELECT count(*) FROM lowered_variables)"
        )
        if brief > full:
            self.file.remark(f"{brief - full:,} of the variables in allBriefVars are on no tile, and left out")
        self.file.execute("DELETE FROM capture_classes")


class AlwaysLive(Part):
    """What is live all the time."""

    name = "always-live variables"
    tables = ("always_live_variables",)

    def items(self) -> Sequence[Any]:
        """Return these variables."""
        variables: Sequence[Any] = self.session.report.compilation.alwaysLiveVariables
        return variables

    def write(self, at: int, item: Any) -> None:  # noqa: ARG002
        """Write a variable; it has a number when it was met on a tile."""
        self.file.add("always_live_variables", [(item.name, self.session.variables.get(item), item.size)])


class Liveness(Part):
    """The steps of the compiled program, and from which step to which each variable is live."""

    name = "liveness steps"
    tables = ("liveness_steps", "variable_liveness", "capture_live")

    def items(self) -> Sequence[Any]:
        """Return the steps."""
        steps: Sequence[Any] = self.session.report.compilation.livenessProgramSteps
        self._steps = steps
        return steps

    def begin(self, done: int) -> None:
        """Find again what is live at the last step that was written, and since when."""
        self._places: dict[Any, int] = {}  # by variable; objects are compared once for each step, numbers after that
        self._called: list[tuple[int | None, str]] = []
        self._live: dict[int, tuple[int, int]] = {}  # of what is live at the last step: since when, and its bytes
        self._done = done
        if done:
            since = self.file.select("SELECT step_begin FROM capture_live ORDER BY position")
            sizes = self._sizes(self._steps[done - 1].notAlwaysLiveMemory)
            self._live = {one: (begin, sizes[one]) for one, (begin,) in zip(sizes, since, strict=True)}

    def write(self, at: int, item: Any) -> None:
        """Write a step, and what was live up to it."""
        memory = item.notAlwaysLiveMemory
        self.file.add("liveness_steps", [(at, id_of(item.program), memory.bytes)])
        before, now = self._live, {}
        for one, size in self._sizes(memory).items():
            held = before.get(one)
            now[one] = held if held is not None and held[1] == size else (at, size)
        self._put(at, {one: held for one, held in before.items() if now.get(one) != held})
        self._live, self._done = now, at + 1

    def keep(self) -> None:
        """Write since when everything has been live."""
        self.file.execute("DELETE FROM capture_live")
        self.file.add("capture_live", [(place, begin) for place, (begin, _) in enumerate(self._live.values())])

    def end(self) -> None:
        """Write what is live at the last step."""
        self._put(self._done, self._live)
        self._live = {}

    def _sizes(self, memory: Any) -> dict[int, int]:
        """Return the bytes of each variable of a step, in the order of the step."""
        sizes: dict[int, int] = {}
        places, called = self._places, self._called
        for one in memory.variables:
            place = places.setdefault(one, len(called))
            if place == len(called):
                called.append((self.session.variables.get(one), one.name))
            sizes[place] = sizes.get(place, 0) + one.size
        return sizes

    def _put(self, end: int, live: dict[int, tuple[int, int]]) -> None:
        rows = [(*self._called[one], begin, end, size) for one, (begin, size) in live.items()]
        self.file.add("variable_liveness", rows)
