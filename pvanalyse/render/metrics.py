"""The metrics of a report, for people and programs."""

from __future__ import annotations

from pvanalyse.analysis.metrics import Metrics, metric_spec
from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit


def unit_of(metric: str) -> Unit:
    """Return the unit of a metric."""
    spec = metric_spec(metric)
    return Unit(spec.unit) if spec else Unit.COUNT


def metrics_document(title: str, metrics: Metrics) -> Document:
    """Return metrics as a document; its machine form is the flat object {metric: number}."""
    fields = [Field("Metric", "metric"), Field("Value", "value", Unit.COUNT)]
    sections = []
    for group in dict.fromkeys(name.partition(".")[0] for name in metrics):
        chosen = {name: value for name, value in metrics.items() if name.partition(".")[0] == group}
        sections.append(_section(group, chosen))
    return Document(title, sections, metrics, grid=Grid("", fields, list(metrics.items())))


def _section(group: str, metrics: Metrics) -> Section:
    return Section(group.capitalize(), [Fact(name, value, unit_of(name)) for name, value in metrics.items()])
