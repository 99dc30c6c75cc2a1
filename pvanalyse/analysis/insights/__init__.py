"""What is worth knowing about a report, with evidence and advice; see :func:`insights`.

A new rule is a function in one of the modules of this package with the decorator ``@rule("its-name")``. It gets the
:class:`Facts` of a report and returns ``insight(…)`` or, when there is nothing to say, None. What it needs and the
report does not hold raises NotCaptured, and the rule is listed as not evaluated.
"""

from pvanalyse.analysis.insights.evaluation import insights, limits_with, rules
from pvanalyse.analysis.insights.limits import Limits
from pvanalyse.analysis.insights.model import (
    SEVERITIES,
    Evidence,
    Insight,
    Insights,
    NotEvaluated,
    Rule,
    Severity,
)

__all__ = [
    "SEVERITIES",
    "Evidence",
    "Insight",
    "Insights",
    "Limits",
    "NotEvaluated",
    "Rule",
    "Severity",
    "insights",
    "limits_with",
    "rules",
]
