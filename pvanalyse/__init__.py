"""Read the report directories that the Poplar SDK writes when a program for a Graphcore IPU is profiled.

::

    import pvanalyse

    with pvanalyse.open_report("my_report") as report:
        print(report.metrics()["memory.tile_max_including_gaps"])
        report.tables.programs  # a pandas DataFrame

Nothing heavy is imported before it is needed, so ``import pvanalyse`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvanalyse.errors import (
    AmbiguousReport,
    NotCaptured,
    PvanalyseError,
    ReportNotFound,
    UnknownLayout,
    UnreadableFile,
    UsageError,
)

if TYPE_CHECKING:
    from pvanalyse.comparisons import compare
    from pvanalyse.discovery import find_reports
    from pvanalyse.report import Report, open_report

__version__ = "0.1.0"
__all__ = [
    "AmbiguousReport",
    "NotCaptured",
    "PvanalyseError",
    "Report",
    "ReportNotFound",
    "UnknownLayout",
    "UnreadableFile",
    "UsageError",
    "compare",
    "find_reports",
    "open_report",
]

_LAZY = {
    "Report": "pvanalyse.report",
    "compare": "pvanalyse.comparisons",
    "find_reports": "pvanalyse.discovery",
    "open_report": "pvanalyse.report",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pvanalyse' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
