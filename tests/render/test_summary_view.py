"""The summary as people and programs see it: its verdict, its numbers, and what it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path

import pytest

from pvanalyse import open_report
from pvanalyse.analysis.summary import Summary
from pvanalyse.render.document import Document, Fact, Grid, Section, Unit, formatter
from pvanalyse.render.html import render_html
from pvanalyse.render.machine import render_csv, render_json
from pvanalyse.render.markdown import render_markdown
from pvanalyse.render.summary import summary_document
from pvanalyse.render.text import render_text
from pvanalyse.units import BYTE_UNITS, ByteUnits
from tests.conftest import SAMPLES
from tests.render.hostile import NAMES, offending

TILES = 4
CAPACITY = 1000
TARGET = ("Ipu", "Ipu2", 2, 1, 2, TILES, CAPACITY, 1e9, None, None, None)


def tile(number: int, including: int, overflowed: int = 0) -> tuple[int, ...]:
    return number, including, including - 10, including, including - 10, 0, 0, overflowed, overflowed, 30, 40


def summary_of(path: Path) -> Summary:
    with open_report(path) as report:
        return report.summary()


@pytest.fixture(scope="module")
def sample() -> Summary:
    return summary_of(SAMPLES / "pipelined" / "training")


def section(document: Document, title: str) -> Section:
    (found,) = [one for one in document.sections if one.title == title and one]
    return found


def facts(document: Document, title: str) -> dict[str, object]:
    return {fact.label: fact.value for fact in section(document, title).facts}


# --------------------------------------------------------------------------------------------------------- verdict
@pytest.mark.parametrize(
    ("units", "sizes"), [("binary", "900 B of 1,000 B"), ("si", "900 B of 1.00 kB"), ("bytes", "900 B of 1,000 B")]
)
def test_a_report_that_fits(make_profile: Callable[..., Path], units: ByteUnits, sizes: str) -> None:
    # GIVEN tiles that all fit; WHEN summarised; THEN the verdict names the fullest
    path = make_profile({"target": [TARGET], "tile_memory": [tile(0, 500), tile(1, 900), tile(2, 1), tile(3, 0)]})
    document = summary_document(summary_of(path), units)
    assert (document.verdict, document.alarming) == (f"Fits: the fullest tile, 1, uses {sizes} (90.0 %).", False)


def test_a_tile_that_is_exactly_full_fits(make_profile: Callable[..., Path]) -> None:
    document = summary_document(summary_of(make_profile({"target": [TARGET], "tile_memory": [tile(0, CAPACITY)]})))
    assert (document.verdict, document.alarming) == (
        "Fits: the fullest tile, 0, uses 1,000 B of 1,000 B (100.0 %).",
        False,
    )


def test_a_report_that_does_not_fit(make_profile: Callable[..., Path]) -> None:
    # GIVEN two tiles that do not fit, and what fills them
    path = make_profile(
        {
            "target": [TARGET],
            "tile_memory": [tile(0, 500), tile(1, 1001, 1), tile(2, 1300, 300), tile(3, 0)],
            "tile_memory_category": [
                (2, "variable", "overflowed", 900, 0),
                (2, "stack", "nonInterleaved", 100, 0),
                (1, "stack", "nonInterleaved", 1000, 0),
            ],
        }
    )
    # WHEN summarised; THEN the verdict says how many, where it is worst, by how much and why
    document = summary_document(summary_of(path))
    assert document.alarming
    assert document.verdict.startswith(
        "OUT OF MEMORY: 2 of 4 tiles do not fit; tile 2 is over by 300 B; 90.0 % of its bytes are variable"
    )


def test_nothing_is_claimed_of_a_capacity_that_is_not_known(make_profile: Callable[..., Path]) -> None:
    document = summary_document(summary_of(make_profile({"tile_memory": [tile(0, 500)]})))
    assert document.verdict == (
        "No tile overflows; the fullest, 0, uses 500 B (the size of a tile's memory was not captured)."
    )


def test_no_memory_no_verdict(make_profile: Callable[..., Path]) -> None:
    document = summary_document(summary_of(make_profile({"runs": [(0, "step", 0, 10)]})))
    assert (document.verdict, document.alarming) == ("", False)


# --------------------------------------------------------------------------------------------------------- contents
def test_every_number_is_that_of_the_metrics(sample: Summary) -> None:
    # GIVEN the summary and the metrics of one report
    with open_report(SAMPLES / "pipelined" / "training") as report:
        metrics = report.metrics()
    assert sample.memory is not None
    assert sample.liveness is not None
    assert sample.execution is not None
    assert sample.archive is not None
    parts = (sample.memory.metrics, sample.liveness.metrics, sample.execution.metrics, sample.archive.metrics)
    shown = {name: value for part in parts for name, value in part.items()}
    shown |= {f"memory.category.{one.category}": one.bytes for one in sample.memory.categories}
    # THEN they agree, and the summary leaves no metric of these parts out
    assert shown == {name: value for name, value in metrics.items() if name.split(".")[0] in
                     ("memory", "liveness", "execution", "archive")}  # fmt: skip


def test_json_is_the_summary_itself(sample: Summary) -> None:
    out = StringIO()
    render_json(summary_document(sample, "si"), out, formatter("si"))
    assert json.loads(out.getvalue()) == json.loads(json.dumps(asdict(sample)))


def test_only_engine_options_that_match_are_shown(sample: Summary) -> None:
    # GIVEN a pattern; WHEN shown; THEN options that match are there, in any case, and the others are counted
    chosen = section(summary_document(sample, options="*INSTRUMENT*"), "Engine options")
    names = {name for _, name, _ in sample.engine_options if "instrument" in name.lower()}
    assert {row[0] for row in chosen.grids[0].rows} == names
    total = len(sample.engine_options)
    assert chosen.sentences == [f"{total - len(names)} of {total} options do not match '*INSTRUMENT*'."]
    assert section(summary_document(sample), "Engine options").sentences == []


def test_what_was_not_captured_is_listed_with_what_captures_it(make_profile: Callable[..., Path]) -> None:
    # GIVEN a report in which only runs were captured
    document = summary_document(summary_of(make_profile({"runs": [(0, "step", 0, 10)]})))
    # THEN parts that lack wholly or in part are told apart, each with its engine option
    missing = facts(document, "Not captured, and what captures it")
    assert missing["lowered variables"] == 'engine option "autoReport.outputLoweredVars": "true"'
    assert missing["execution profile, in part: execution_steps, execution_step_ipus"] == (
        'engine option "autoReport.outputExecutionProfile": "true", and a run of the program'
    )
    assert [one.title for one in document.sections if one] == [
        "Execution",
        "Files",
        "Not captured, and what captures it",
    ]


def test_many_runs_are_cut_and_counted(make_profile: Callable[..., Path]) -> None:
    path = make_profile({"runs": [(run, f"step_{run}", 0, 10) for run in range(1200)]})
    grid = section(summary_document(summary_of(path)), "Execution").grids[-1]
    assert grid.title == "The first 8 of 1,200 runs"
    assert [row[1] for row in grid.rows] == [f"step_{run}" for run in range(8)]


def test_architectures_are_named_as_the_field_names_them(sample: Summary) -> None:
    for architecture, shown in (("Ipu1", "Ipu1 (Mk1)"), ("Ipu2", "Ipu2 (Mk2)"), ("Ipu21", "Ipu21"), ("Odd", "Odd")):
        other = replace(sample, target={**sample.target, "architecture": architecture})
        assert facts(summary_document(other), "Target")["Architecture"] == shown


@pytest.mark.parametrize("units", BYTE_UNITS)
def test_text_shows_every_fact_and_every_row(sample: Summary, units: ByteUnits) -> None:
    # GIVEN a summary; WHEN shown as text
    document, write, out = summary_document(sample, units), formatter(units), StringIO()
    render_text(document, out, write)
    lines = out.getvalue().splitlines()
    # THEN each label stands beside its value, and each row of each table is one line with all of its numbers
    for one in filter(None, document.sections):
        for fact in one.facts:
            assert _shown(lines, fact, write(fact.value, fact.unit)), fact
        for grid in one.grids:
            assert _rows(grid, lines, write), grid.title


def _shown(lines: list[str], fact: Fact, value: str) -> bool:
    first = value.split()[0] if value.split() else ""
    return any(line.strip().startswith(fact.label) and first in line for line in lines)


def _rows(grid: Grid, lines: list[str], write: Callable[..., str]) -> bool:
    wanted = [
        [write(v, f.unit) for v, f in zip(row, grid.fields, strict=True) if f.unit is not Unit.TEXT]
        for row in grid.rows
    ]
    return all(any(all(number in line for number in numbers) for line in lines) for numbers in wanted)


# ----------------------------------------------------------------------------------------------------------- hostile
STORABLE = {key: name for key, name in NAMES.items() if key != "surrogate"}  # SQLite's text is UTF-8


@pytest.mark.parametrize("name", STORABLE.values(), ids=STORABLE)
def test_hostile_names_are_inert_everywhere(make_profile: Callable[..., Path], tmp_path: Path, name: str) -> None:
    # GIVEN a report whose every name is hostile
    path = make_profile(
        {
            "report_info": [("layout", "pvanalyse-1"), ("engine_name", name), ("poplar_version", name)],
            "engine_options": [("engine", name, name)],
            "target": [(name, name, *TARGET[2:])],
            "tile_memory": [tile(0, 1200, 200), tile(1, 3)],
            "tile_memory_category": [(0, name, "nonInterleaved", 7, 1), (0, "variable", name, 5, 0)],
            "programs": [(0, name, name, None, None, None, None, None, None)],
            "variables": [(0, name, name, name, None)],
            "liveness_steps": [(0, 0, 12)],
            "variable_liveness": [(0, name, 0, 1, 12)],
            "runs": [(0, name, 0, 10)],
            "execution_steps": [(0, 0, 0, None)],
            "execution_step_ipus": [(0, 0, 5, 0, 0, 5, 5, 0, 0, 5, 5, 0.5, 0.5, 1, 2)],
        }
    )
    for file in ("framework.json", "app.json"):
        (tmp_path / file).write_text(json.dumps({name: {name: name}, "x" + name: name}), encoding="utf-8")
    document, write = summary_document(summary_of(path)), formatter("binary")
    # WHEN rendered for people; THEN nothing in it is obeyed
    for render in (render_text, render_markdown):
        out = StringIO()
        render(document, out, write)
        assert offending(out.getvalue()) == []
    assert offending(render_html(document)) == []
    assert not re.search(r"<(script|img)", render_html(document))
    # and machine formats hold the name itself
    out = StringIO()
    render_json(document, out, write)
    assert json.loads(out.getvalue())["engine_options"] == [["engine", name, name]]
    out = StringIO()
    render_csv(document, out, write)
    assert out.getvalue().count("\r\n") > 40
