"""Baseline files: the same bytes every time, there and back, and refused when they are something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import open_report
from pvanalyse.analysis.contributions import COLUMNS
from pvanalyse.errors import NotCaptured, UnreadableFile, UsageError
from pvanalyse.gate.baseline import Baseline, baseline_text, make_baseline, parse_baseline, read_baseline
from pvanalyse.gate.measured import Measured
from tests.conftest import SAMPLES
from tests.oracle.metrics import brute_force
from tests.render.hostile import NAMES

REPORTS = sorted(path.parent for path in SAMPLES.rglob("profile.pop"))
texts = st.one_of(st.sampled_from(list(NAMES.values())), st.text(max_size=20))
numbers = st.one_of(st.integers(-(1 << 61), 1 << 61), st.floats(-1e30, 1e30))
names = st.one_of(
    st.sampled_from([name for name in NAMES.values() if name != NAMES["surrogate"]]), st.text(max_size=20)
)
rows = st.fixed_dictionaries({**dict.fromkeys(COLUMNS, names), "value": st.integers(-(1 << 40), 1 << 40)})


@st.composite
def baselines(draw: st.DrawFn) -> Baseline:
    metrics = draw(st.dictionaries(texts, numbers, max_size=6))
    whole = [name for name, value in metrics.items() if isinstance(value, int)]
    contributors = {name: tuple(draw(st.lists(rows, max_size=3))) for name in whole if draw(st.booleans())}
    target = draw(st.dictionaries(texts, st.one_of(texts, numbers), max_size=3))
    return Baseline(metrics, contributors, target, draw(texts))


@given(baselines())
def test_there_and_back_is_the_same_byte_for_byte(baseline: Baseline) -> None:
    # GIVEN any baseline, with any names; WHEN written, read and written again
    text = baseline_text(baseline)
    again = parse_baseline(text)
    # THEN nothing has changed, and it is plain JSON with sorted keys in ASCII
    assert again == baseline
    assert baseline_text(again) == text
    assert text.isascii()
    assert json.dumps(json.loads(text), sort_keys=True) == json.dumps(json.loads(text))


@pytest.mark.parametrize("directory", REPORTS, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_report_gives_the_same_bytes_each_time_and_they_are_its_numbers(directory: Path) -> None:
    made = []
    for _ in range(2):
        with open_report(directory) as report:
            made.append(baseline_text(make_baseline(Measured(report))))
    assert made[0] == made[1]
    data = json.loads(made[0])
    # THEN the numbers are those of plain Python over sqlite3
    expected = brute_force(directory / "profile.pop")
    assert {name: data["metrics"][name] for name in expected if isinstance(expected[name], int)} == {
        name: value for name, value in expected.items() if isinstance(value, int)
    }
    # AND the contributors add up to them
    assert data["contributors"]
    for name, found in data["contributors"].items():
        assert sum(row["value"] for row in found) == data["metrics"][name]
        assert len(found) <= 21
    # AND nothing says where or when it was made
    assert str(directory) not in made[0]
    assert "compiled_at" not in made[0]


def test_each_metric_and_contributor_has_a_line() -> None:
    row = {**dict.fromkeys(COLUMNS, ""), "variable": "a\nb", "value": 3}
    made = Baseline({"memory.gaps": 3, "a": 0.5}, {"memory.gaps": (row,)}, {"num_ipus": 1}, "3.3")
    assert baseline_text(made) == (
        "{\n"
        '  "contributors": {\n'
        '    "memory.gaps": [\n'
        '      {"category": "", "layer": "", "location": "", "operation": "", "value": 3, "variable": "a\\nb"}\n'
        "    ]\n"
        "  },\n"
        '  "metrics": {\n'
        '    "a": 0.5,\n'
        '    "memory.gaps": 3\n'
        "  },\n"
        '  "schema": 1,\n'
        '  "sdk_version": "3.3",\n'
        '  "target": {\n'
        '    "num_ipus": 1\n'
        "  }\n"
        "}\n"
    )


def with_(**changed: Any) -> str:
    data: dict[str, Any] = {"schema": 1, "metrics": {"memory.gaps": 3}, **changed}
    return json.dumps({key: value for key, value in data.items() if value is not ...})


WRONG = {
    "no JSON": ("[1, 2", "line 1, column"),
    "a list": ("[1, 2]", "says no schema"),
    "no schema": (with_(schema=...), "says no schema"),
    "a later schema": (with_(schema=2), "of schema 2, and only 1 is known"),
    "a schema of text": (with_(schema="\x1b[31m1"), "of schema"),
    "a schema that is true": (with_(schema=True), "of schema true"),
    "something unknown": (with_(metrik={}), "there is no 'metrik'"),
    "metrics that are a list": (with_(metrics=[1]), "its metrics are not a table"),
    "a metric of text": (with_(metrics={"memory.gaps": "3"}), "'memory.gaps' in its metrics is not a number"),
    "a metric that is true": (with_(metrics={"memory.gaps": True}), "is not a number"),
    "not a number": ('{"schema": 1, "metrics": {"memory.gaps": NaN}}', "NaN is no number"),
    "infinity": ('{"schema": 1, "metrics": {"memory.gaps": 1e999}}', "is not a number"),
    "an endless number": ('{"schema": 1, "metrics": {"memory.gaps": ' + "9" * 10_000 + "}}", "not of this world"),
    "a number beyond sense": ('{"schema": 1, "metrics": {"memory.gaps": ' + "9" * 1000 + "}}", "is not a number"),
    "depth": ('{"schema": ' + "[" * 100_000, "not of this world"),
    "contributors to nothing": (with_(contributors={"x": []}), "'x' has contributors, but is no whole number"),
    "a contributor that is a number": (with_(contributors={"memory.gaps": [1]}), "has not the columns"),
    "a contributor without value": (with_(contributors={"memory.gaps": [{}]}), "has not the columns"),
    "a contributor of no text": (
        with_(contributors={"memory.gaps": [{**dict.fromkeys(COLUMNS, "\ud800"), "value": 3}]}), "a name that is no text",
    ),
    "a contributor of text": (
        with_(contributors={"memory.gaps": [{**dict.fromkeys(COLUMNS, ""), "value": "3"}]}), "no whole number",
    ),
    "a target of lists": (with_(target={"a": []}), "'a' in its target is not a number or a text"),
    "a version that is a number": (with_(sdk_version=3), "its sdk_version is not a text"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_baseline_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    text, problem = WRONG[name]
    with pytest.raises(UsageError) as caught:
        parse_baseline(text)
    assert problem in str(caught.value)
    path = tmp_path / "baseline.json"
    path.write_text(text, "utf-8")
    with pytest.raises(UnreadableFile) as unreadable:
        read_baseline(path)
    assert str(unreadable.value) == f"{path}: {caught.value}"
    assert len(str(unreadable.value).splitlines()) == 1


@given(st.recursive(st.one_of(st.none(), st.booleans(), numbers, texts), lambda deeper: st.one_of(
    st.lists(deeper, max_size=3), st.dictionaries(st.one_of(texts, st.sampled_from(["schema", "metrics", "contributors",
    "target"])), deeper, max_size=4))))  # fmt: skip
def test_any_json_is_a_baseline_or_a_usage_error(data: Any) -> None:
    for said in (data, {"schema": 1, "metrics": data}, {"schema": 1, "target": data}):
        made = parsed(json.dumps(said))
        assert made is None or parsed(baseline_text(made)) == made


def parsed(text: str) -> Baseline | None:
    try:
        return parse_baseline(text)
    except UsageError:
        return None


def test_a_report_that_measured_nothing_gives_no_baseline(make_profile: Callable[..., Path]) -> None:
    profile = make_profile({"engine_options": [("engine", "autoReport.all", "false")]})
    with open_report(profile) as report, pytest.raises(NotCaptured, match="outputGraphProfile"):
        make_baseline(Measured(report))
