"""The gate: reports are held against budgets and baselines, and what fails is explained.

::

    from pvanalyse import gate

    result = gate.check("my_report", limits={"memory.tile_max_including_gaps": "600 KiB"}, baseline="baseline.json")
    assert result.passed, gate.full_text(result)

Nothing is imported before it is needed: the plugin for pytest is in this package, and loaded in every run of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pvanalyse.analysis.checks import Check, CheckResult, ReportCheck, Status, Why
    from pvanalyse.analysis.rules import Increase, Limit, Rules
    from pvanalyse.gate.baseline import Baseline, baseline_text, make_baseline, parse_baseline, read_baseline
    from pvanalyse.gate.budgets import Budget, read_budget
    from pvanalyse.gate.checking import Gate, check, make_gate
    from pvanalyse.gate.measured import Measured
    from pvanalyse.render.check_words import verdict
    from pvanalyse.render.checks import full_text, markdown_text

__all__ = [
    "Baseline",
    "Budget",
    "Check",
    "CheckResult",
    "Gate",
    "Increase",
    "Limit",
    "Measured",
    "ReportCheck",
    "Rules",
    "Status",
    "Why",
    "baseline_text",
    "check",
    "full_text",
    "make_baseline",
    "make_gate",
    "markdown_text",
    "parse_baseline",
    "read_baseline",
    "read_budget",
    "verdict",
]

_LAZY = {
    **dict.fromkeys(("Check", "CheckResult", "ReportCheck", "Status", "Why"), "pvanalyse.analysis.checks"),
    **dict.fromkeys(("Increase", "Limit", "Rules"), "pvanalyse.analysis.rules"),
    **dict.fromkeys(
        ("Baseline", "baseline_text", "make_baseline", "parse_baseline", "read_baseline"), "pvanalyse.gate.baseline"
    ),
    **dict.fromkeys(("Budget", "read_budget"), "pvanalyse.gate.budgets"),
    **dict.fromkeys(("Gate", "check", "make_gate"), "pvanalyse.gate.checking"),
    "Measured": "pvanalyse.gate.measured",
    "verdict": "pvanalyse.render.check_words",
    **dict.fromkeys(("full_text", "markdown_text"), "pvanalyse.render.checks"),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pvanalyse.gate' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
