"""What ``pvanalyse execution`` can show: each part analysed and made ready to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pvanalyse.analysis import execution_details as details
from pvanalyse.analysis import execution_efficiency as efficiency
from pvanalyse.analysis import execution_waits as waits
from pvanalyse.analysis.execution_trace import Trace, read_trace
from pvanalyse.errors import NotCaptured
from pvanalyse.render import execution as view
from pvanalyse.render.parts import Part, Rows

if TYPE_CHECKING:
    import pandas as pd

    from pvanalyse.tables import TableSource

_MANY = 20


@dataclass(frozen=True)
class ExecutionQuestion:
    """What was asked.

    Attributes
    ----------
    source
        A report.
    runs, ipus
        Only these, None for all.
    match
        A regular expression that names must match, None for all.
    prefix, depth
        Only names that begin with this prefix, and how many parts of them are told apart after it.
    top
        How many rows of each list, None for what is usual.
    """

    source: TableSource
    runs: tuple[int, ...] | None = None
    ipus: tuple[int, ...] | None = None
    match: str | None = None
    prefix: str = ""
    depth: int = 1
    top: int | None = None

    @cached_property
    def trace(self) -> Trace:
        """One pass over the intervals."""
        return read_trace(self.source, self.runs, self.ipus)

    @cached_property
    def trace_or_none(self) -> Trace | None:
        """The pass, None where there are no intervals."""
        try:
            return self.trace
        except NotCaptured:
            return None

    @cached_property
    def run_frame(self) -> pd.DataFrame:
        """The runs."""
        return details.runs_frame(self.source, self.trace_or_none)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """What each run's time went into on each IPU."""
        return details.shares(self.trace)

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        return view.verdict(self.run_frame, self.shares if self.trace_or_none else None)

    def rows(self, usual: int | None = 10) -> Rows:
        """Return how many rows of a list are shown."""
        return Rows(self.top, usual)

    def part(self, name: str) -> Callable[[], Part]:
        """Return what makes the part of that name."""
        return partial(_PARTS[name], self)


def _steps(asked: ExecutionQuestion) -> Part:
    frame = details.steps_frame(asked.source, asked.runs, asked.ipus, None, asked.match)
    return view.steps(frame, asked.match, asked.rows())


_PARTS: Mapping[str, Callable[[ExecutionQuestion], Part]] = {
    "runs": lambda asked: view.runs(asked.run_frame, asked.rows()),
    "kinds": lambda asked: view.kinds(asked.shares, asked.rows(_MANY)),
    "types": lambda asked: view.types(details.by_type(asked.trace), asked.rows(None)),
    "programs": lambda asked: view.programs(details.by_program(asked.trace, asked.match), asked.match, asked.rows()),
    "compute-sets": lambda asked: view.compute_sets(
        details.by_compute_set(asked.trace, asked.match), asked.match, asked.rows()
    ),
    "operations": lambda asked: view.operations(
        details.by_operation(asked.trace, asked.match), asked.match, asked.rows()
    ),
    "prefixes": lambda asked: view.prefixes(
        details.by_prefix(asked.trace, asked.depth, asked.prefix), asked.depth, asked.prefix, asked.rows()
    ),
    "imbalance": lambda asked: view.imbalance(
        efficiency.imbalance(asked.trace, asked.match), asked.match, asked.rows()
    ),
    "overlap": lambda asked: view.overlap(details.compute_io_overlap(asked.trace), asked.rows(_MANY)),
    "bandwidth": lambda asked: view.bandwidth(details.bandwidth(asked.trace), asked.rows(_MANY)),
    "gaps": lambda asked: view.gaps(waits.idle_gaps(asked.trace), asked.rows()),
    "pipeline": lambda asked: view.pipeline(waits.bubbles(asked.trace), asked.rows(_MANY)),
    "waits": lambda asked: view.waits(waits.waiting(asked.trace), asked.rows()),
    "path": lambda asked: view.path(waits.critical_path(asked.trace), asked.rows(_MANY)),
    "flops": lambda asked: view.flops(efficiency.flops(asked.trace, asked.match), asked.match, asked.rows()),
    "estimates": lambda asked: view.estimates(
        efficiency.against_estimates(asked.trace, asked.match), asked.match, asked.rows()
    ),
    "steps": _steps,
}
