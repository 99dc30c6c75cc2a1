"""Rules against a second implementation in plain Python, and the cases that people fall over."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.analysis.checks import Check, CheckResult, ReportCheck, Status, accepted, differences, evaluate
from pvanalyse.analysis.metrics import CATALOGUE, Metrics
from pvanalyse.analysis.rules import (
    DEFAULT,
    NO_GROWTH,
    Better,
    Increase,
    Limit,
    Rules,
    Sense,
    better,
    captured_by,
    importance,
    unmatched,
)

SIZES = (
    "memory.total_including_gaps",
    "memory.gaps",
    "memory.category.variable",
    "memory.category.vertexCode",
    "liveness.peak",
)
PATTERNS = (*SIZES, "memory.*", "memory.category.*", "memory.category.v*", "*", "liveness.p?ak")
values = st.one_of(st.integers(-5, 50), st.integers(0, 1 << 70))
metric_dicts = st.dictionaries(st.sampled_from(SIZES), values)
senses = st.sampled_from(list(Sense))
limits = st.builds(Limit, st.sampled_from(PATTERNS), senses, values)
shares = st.decimals(0, 2, places=3, allow_nan=False).map(Fraction)
increases = st.one_of(
    st.builds(Increase, st.sampled_from((*PATTERNS, DEFAULT)), st.integers(0, 30)),
    st.builds(Increase, st.sampled_from((*PATTERNS, DEFAULT)), share=shares),
)


def status(checks: tuple[Check, ...], metric: str) -> Status:
    (found,) = [check.status for check in checks if check.metric == metric]
    return found


def one(metrics: Metrics, rule: Limit | Increase, baseline: Metrics | None = None) -> Check:
    rules = Rules(limits=(rule,)) if isinstance(rule, Limit) else Rules(increases=(rule,))
    (check,) = evaluate(metrics, rules, baseline)
    return check


# ----------------------------------------------------------------------------------------------- against plain Python
def chosen(rules: list[Limit | Increase], name: str) -> Limit | Increase | None:
    """The rule for a name by a regular-expression reading of the globs, ranked anew."""
    import re

    best: tuple[tuple[int, int], Limit | Increase] | None = None
    for at, rule in enumerate(rules):
        if rule.pattern == DEFAULT:
            rank = 0 if name.split(".")[0] in ("memory", "liveness") else None
        elif rule.pattern == name:
            rank = 10**6
        else:
            expression = re.escape(rule.pattern).replace(r"\*", ".*").replace(r"\?", ".")
            literal = len(rule.pattern.replace("*", "").replace("?", ""))
            rank = 1 + literal if re.fullmatch(expression, name) else None
        if rank is not None and (best is None or (rank, at) >= best[0]):
            best = ((rank, at), rule)
    return best[1] if best else None


def number(metrics: Metrics, name: str) -> int | None:
    if name in metrics:
        return int(metrics[name])
    a_sibling = name.startswith("memory.category.") and any(key.startswith("memory.category.") for key in metrics)
    return 0 if a_sibling else None


@given(metric_dicts, st.lists(limits, max_size=5), st.one_of(st.none(), metric_dicts))
def test_limits_are_as_a_second_reading_has_them(
    metrics: Metrics, rules: list[Limit], baseline: Metrics | None
) -> None:
    # GIVEN metrics and limits; WHEN evaluated
    checks = evaluate(metrics, Rules(limits=tuple(rules)), baseline)
    found = sorted((check.metric, check.rule.sense.side, check.status, check.rule) for check in checks
                   if check.metric in SIZES and isinstance(check.rule, Limit))  # fmt: skip
    # THEN each metric has, per side, the one verdict that plain Python has for it
    expected = []
    for name in SIZES:
        for side in "<>=":
            those = [rule for rule in rules if rule.sense.side == side]
            rule = chosen(list(those), name)
            present = name in metrics or (baseline is not None and name in baseline)
            if not isinstance(rule, Limit) or not (present or any(one.pattern == name for one in those)):
                continue
            value = number(metrics, name)
            if value is None:
                verdict = Status.NOT_CAPTURED
            else:
                kept = {"<=": value <= rule.value, "<": value < rule.value, ">=": value >= rule.value,
                        ">": value > rule.value, "==": value == rule.value}[rule.sense.value]  # fmt: skip
                verdict = Status.PASSED if kept else Status.FAILED
            expected.append((name, side, verdict, rule))
    assert found == sorted(expected, key=lambda row: row[:3])


@given(metric_dicts, st.lists(increases, max_size=5), metric_dicts)
def test_increases_are_as_a_second_reading_has_them(metrics: Metrics, rules: list[Increase], baseline: Metrics) -> None:
    checks = evaluate(metrics, Rules(increases=tuple(rules)), baseline)
    failed = {check.metric for check in checks if check.status is Status.FAILED}
    missing = {check.metric for check in checks if check.status is Status.NOT_CAPTURED} & set(SIZES)
    over, gone = set(), set()
    for name in SIZES:
        rule = chosen(list(rules), name)
        named = any(one.pattern == name for one in rules)
        if not isinstance(rule, Increase) or not (name in metrics or name in baseline or named):
            continue
        value, before = number(metrics, name), number(baseline, name)
        if value is None or (before is None and rule.pattern == name):
            gone.add(name)
        elif before is not None:
            allowed = abs(before) * rule.share if rule.share is not None else rule.amount
            if value - before > allowed:
                over.add(name)
    assert failed == over
    assert missing == gone


@given(metric_dicts)
def test_a_report_does_not_grow_over_itself(metrics: Metrics) -> None:
    checks = evaluate(metrics, NO_GROWTH, metrics)
    assert {check.metric for check in checks} == (set(metrics) or {"memory.*"})
    assert all(check.status is Status.PASSED and check.change == 0 for check in checks if metrics)
    assert differences(metrics, metrics, checks) == ()


@given(metric_dicts, metric_dicts)
def test_nothing_that_differs_is_hidden(metrics: Metrics, baseline: Metrics) -> None:
    # GIVEN two reports and one rule; THEN every metric that differs is in a check or among the differences
    checks = evaluate(metrics, Rules(increases=(Increase("memory.gaps"),)), baseline)
    shown = {check.metric for check in checks} | {one.metric for one in differences(metrics, baseline, checks)}
    assert shown >= {name for name in SIZES if metrics.get(name) != baseline.get(name)}


# -------------------------------------------------------------------------------------------------------------- exactness
def test_a_byte_decides() -> None:
    huge = (1 << 62) + 1  # which a float does not tell from 1 << 62
    limit = Limit("memory.gaps", Sense.AT_MOST, 1 << 62)
    assert one({"memory.gaps": huge}, limit).status is Status.FAILED
    assert one({"memory.gaps": 1 << 62}, limit).status is Status.PASSED


@pytest.mark.parametrize(("value", "expected"), [(102, Status.PASSED), (103, Status.FAILED), (99, Status.IMPROVED)])
def test_a_share_is_exact_and_the_bound_is_whole(value: int, expected: Status) -> None:
    check = one({"memory.gaps": value}, Increase("memory.gaps", share=Fraction("0.029")), {"memory.gaps": 100})
    assert (check.status, check.bound, check.change) == (expected, 102, value - 100)


def test_a_decimal_that_a_float_cannot_hold_is_met_by_its_float() -> None:
    limit = Limit("execution.tile_balance", Sense.AT_LEAST, float(Decimal("0.7")))
    assert one({"execution.tile_balance": 0.7}, limit).status is Status.PASSED
    assert one({"execution.tile_balance": math.nextafter(0.7, 0)}, limit).status is Status.FAILED


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_never_passes(value: float) -> None:
    limit = Limit("execution.tile_balance", Sense.AT_LEAST, 0.7)
    assert one({"execution.tile_balance": value}, limit).status is Status.NOT_CAPTURED


# -------------------------------------------------------------------------------------------------- what is not there
def test_what_was_not_captured_never_passes() -> None:
    assert one({}, Limit("execution.cycles", Sense.AT_MOST, 3)).status is Status.NOT_CAPTURED
    assert one({"memory.gaps": 1}, Limit("execution.*", Sense.AT_MOST, 3)).status is Status.NOT_CAPTURED
    assert one({}, Increase("memory.gaps"), {"memory.gaps": 1}).status is Status.NOT_CAPTURED
    assert one({"memory.gaps": 1}, Increase("memory.gaps"), {}).status is Status.NOT_CAPTURED
    assert one({"memory.gaps": 1}, Increase("memory.*"), {}).status is Status.NEW
    assert one({"execution.cycles": 1}, Increase(DEFAULT), {}).status is Status.NOT_CAPTURED


def test_a_category_that_appears_grows_from_nothing_and_one_that_vanishes_is_seen() -> None:
    before: Metrics = {"memory.category.stack": 5, "memory.category.gone": 7}
    after: Metrics = {"memory.category.stack": 5, "memory.category.new": 9}
    rule = Increase("memory.category.*", 8)
    found = {check.metric: check for check in evaluate(after, Rules(increases=(rule,)), before)}
    assert found["memory.category.new"] == Check("memory.category.new", Status.FAILED, rule, 9, None, 8, 9)
    assert found["memory.category.gone"] == Check("memory.category.gone", Status.VANISHED, rule, None, 7, 15, -7)
    roomy = evaluate(after, Rules(increases=(Increase("memory.category.*", 9),)), before)
    assert status(roomy, "memory.category.new") is Status.NEW


# ----------------------------------------------------------------------------------------------------- which rule holds
def test_the_most_specific_rule_holds_and_later_ones_take_the_place_of_earlier_ones() -> None:
    metrics: Metrics = {"memory.category.stack": 10, "memory.category.variable": 10}
    rules = Rules(
        limits=(
            Limit("memory.category.stack", Sense.AT_MOST, 20),
            Limit("memory.category.*", Sense.AT_MOST, 5),
            Limit("memory.*", Sense.AT_MOST, 100),
            Limit("memory.*", Sense.AT_LEAST, 1),
        )
    )
    assert [(check.metric, check.rule.pattern, check.status) for check in evaluate(metrics, rules)] == [
        ("memory.category.stack", "memory.category.stack", Status.PASSED),
        ("memory.category.stack", "memory.*", Status.PASSED),
        ("memory.category.variable", "memory.category.*", Status.FAILED),
        ("memory.category.variable", "memory.*", Status.PASSED),
    ]
    later = rules.with_later(Rules(limits=(Limit("memory.category.*", Sense.BELOW, 11),)))
    assert status(tuple(one for one in evaluate(metrics, later) if one.rule.pattern == "memory.category.*"),
                  "memory.category.variable") is Status.PASSED  # fmt: skip
    assert len(later.limits) == len(rules.limits)


def test_the_default_is_about_bytes_of_which_fewer_are_better() -> None:
    gated = {spec.name for spec in CATALOGUE if Increase(DEFAULT).fits(spec.name.replace("<category>", "stack"))}
    assert gated == {
        "memory.total_including_gaps", "memory.total_excluding_gaps", "memory.tile_max_including_gaps",
        "memory.tile_max_excluding_gaps", "memory.tile_mean_including_gaps", "memory.tile_p99_including_gaps",
        "memory.gaps", "memory.tiles_out_of_memory", "memory.overflowed", "memory.ipu_max_including_gaps",
        "memory.used_fraction", "memory.always_live", "memory.not_always_live", "memory.region.non_interleaved",
        "memory.region.interleaved", "memory.region.overflowed", "memory.category.<category>",
        "liveness.peak_not_always_live", "liveness.peak", "liveness.peak_fraction",
        "archive.loaded_bytes", "archive.tile_max_loaded_bytes",
    }  # fmt: skip


def test_a_glob_leaves_alone_what_is_better_when_there_is_more() -> None:
    assert better("execution.host_bandwidth") is Better.MORE
    assert not Increase("execution.*").fits("execution.host_bandwidth")
    assert Increase("execution.host_bandwidth").fits("execution.host_bandwidth")


def test_a_unit_is_for_metrics_of_that_unit() -> None:
    assert Limit("*", Sense.AT_MOST, 1, "bytes").fits("memory.gaps")
    assert not Limit("*", Sense.AT_MOST, 1, "bytes").fits("memory.tile_balance")
    assert Limit("*", Sense.AT_MOST, 1).fits("memory.tile_balance")


def test_rules_for_nothing_are_found() -> None:
    names = ["memory.category.stack", "memory.gaps"]
    rules = [
        Limit("memory.category.stak", Sense.AT_MOST, 1),
        Limit("memory.category.s*", Sense.AT_MOST, 1),
        Limit("memory.nothing*", Sense.AT_MOST, 1),
        Limit("memory.*", Sense.AT_MOST, 1, "s"),
        Limit("execution.step_cycles.DoExchange", Sense.AT_MOST, 1),  # nothing was executed, so it may be one
        Increase(DEFAULT),
    ]
    assert [rule.pattern for rule in unmatched(rules, names)] == [
        "memory.category.stak", "memory.nothing*", "memory.*",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- outcomes
def outcome(*statuses: Status, problem: str = "") -> ReportCheck:
    rule = Limit("memory.gaps", Sense.AT_MOST, 1)
    return ReportCheck("r", checks=tuple(Check("memory.gaps", one, rule) for one in statuses), problem=problem)


@pytest.mark.parametrize(
    ("reports", "code"),
    [
        ([outcome(Status.PASSED, Status.IMPROVED, Status.NEW, Status.VANISHED, Status.ACCEPTED)], 0),
        ([outcome(Status.PASSED), outcome(Status.PASSED, Status.FAILED)], 1),
        ([outcome(Status.FAILED, Status.NOT_CAPTURED)], 4),
        ([outcome(Status.FAILED), outcome(Status.NOT_CAPTURED), outcome(problem="gone")], 3),
    ],
)
def test_exit_codes(reports: list[ReportCheck], code: int) -> None:
    result = CheckResult(tuple(reports))
    assert (result.exit_code, result.passed) == (code, code == 0)


def test_a_new_baseline_accepts_growth_and_nothing_else() -> None:
    metrics: Metrics = {"memory.gaps": 9, "liveness.peak": 9}
    rules = Rules((Limit("liveness.peak", Sense.AT_MOST, 5),), (Increase(DEFAULT),))
    old: Metrics = {"memory.gaps": 1, "liveness.peak": 9, "memory.overflowed": 0}
    found = accepted(evaluate(metrics, rules, old), evaluate(metrics, rules, metrics))
    assert [(check.metric, check.status) for check in found] == [
        ("memory.gaps", Status.ACCEPTED),
        ("memory.overflowed", Status.ACCEPTED),
        ("liveness.peak", Status.FAILED),
        ("liveness.peak", Status.PASSED),
    ]


def test_every_metric_has_a_place_and_a_way_to_be_captured() -> None:
    assert min((spec.name for spec in CATALOGUE), key=importance) == "memory.tile_max_including_gaps"
    assert [spec.name for spec in CATALOGUE if not captured_by(spec.name)] == []
