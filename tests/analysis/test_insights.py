"""Every rule fires on a profile made for it and is silent on one that is not; numbers are worked out by hand."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pvanalyse import Report, open_report
from pvanalyse.analysis.insights import SEVERITIES, Insight, Insights, Limits, insights, limits_with, rules
from pvanalyse.errors import UsageError
from tests.conftest import SAMPLES

TILE = 1000  # bytes of a tile in the hand-made profiles
Tables = dict[str, list[tuple[Any, ...]]]
Open = Callable[..., Report]


@pytest.fixture
def opened(make_profile: Callable[..., Path], tmp_path: Path) -> Iterator[Open]:
    """A function that makes a report of the given tables, and of an app.json when there is one."""
    with ExitStack() as stack:

        def make(tables: Tables, app: dict[str, Any] | None = None) -> Report:
            directory = tmp_path / f"report_{len(list(tmp_path.iterdir()))}"
            make_profile(tables, directory)
            if app is not None:
                (directory / "app.json").write_text(json.dumps(app), "utf-8")
            return stack.enter_context(open_report(directory))

        yield make


def target(ipus: int = 1, tiles_per_ipu: int = 2, replicas: int = 1) -> list[tuple[Any, ...]]:
    number = ipus * tiles_per_ipu
    return [("Ipu", "Ipu2", ipus, replicas, tiles_per_ipu, number, TILE, 1e9, None, None, None)]


def tile_memory(used: Sequence[int], gaps: Sequence[int] = (), over: Sequence[int] = (), always: Sequence[int] = (),
                at_times: Sequence[int] = ()) -> list[tuple[int, ...]]:  # fmt: skip
    """Rows of tile_memory: all of it non-interleaved but for what overflowed."""

    def of(values: Sequence[int], tile: int) -> int:
        return values[tile] if values else 0

    return [
        (tile, size, size - of(gaps, tile), size - of(over, tile), size - of(over, tile) - of(gaps, tile), 0, 0,
         of(over, tile), of(over, tile), of(always, tile), of(at_times, tile))
        for tile, size in enumerate(used)
    ]  # fmt: skip


def memory(used: Sequence[int], ipus: int = 1, replicas: int = 1, **columns: Sequence[int]) -> Tables:
    return {"target": target(ipus, len(used) // ipus, replicas), "tile_memory": tile_memory(used, **columns)}


def categories(*rows: tuple[int, str, int]) -> list[tuple[Any, ...]]:
    return [(tile, name, "nonInterleaved", size, 0) for tile, name, size in rows]


def only(report: Report, rule: str, limits: Limits | None = None, **more: Any) -> Insight | None:
    """What one rule finds; it must have been evaluated."""
    found = insights(report, limits, only=[rule], **more)
    assert found.not_evaluated == ()
    assert (len(found), found.nothing_found) in [(1, ()), (0, (rule,))]
    return found[0] if found else None


def evidence(insight: Insight | None) -> dict[str, Any]:
    assert insight is not None
    return {one.name: one.value for one in insight.evidence}


# -------------------------------------------------------------------------------------------------------------- fit
def test_it_fits_with_room(opened: Open) -> None:
    # GIVEN a fullest tile with exactly the share of its memory left that is enough; WHEN judged; THEN it is a remark
    got = only(opened(memory([400, 950])), "fit")
    assert got is not None
    assert (got.severity, got.tiles, got.advice, got.saving_bytes) == ("info", (1, 0), "", None)
    assert got.title == "Every tile fits; the fullest, 1, has 50 bytes of 1,000 bytes left (5.0 per cent)."
    assert evidence(got) == {
        "fullest_tile": 1, "used_bytes": 950, "free_bytes": 50, "bytes_per_tile": 1000, "free_fraction": 0.05,
        "used_of_all_tiles_fraction": 1350 / 2000,
    }  # fmt: skip


def test_it_fits_with_little_room(opened: Open) -> None:
    report = opened(memory([400, 951]))
    assert only(report, "fit").severity == "warning"  # type: ignore[union-attr]
    assert only(report, "fit", Limits(little_headroom=0.01)).severity == "info"  # type: ignore[union-attr]


def test_it_does_not_fit(opened: Open) -> None:
    # GIVEN a tile that uses 200 too many, one that fits by its total but overflows by 50, and two that fit
    tables = memory([1200, 900, 900, 100], over=[150, 50, 0, 0])
    tables["tile_memory_category"] = categories((0, "stack", 300), (0, "variable", 900), (3, "vertexCode", 5000))
    tables["lowered_variables"] = [lowered(0, "even", 0, 400), lowered(1, "even", 1, 400), lowered(2, "odd", 0, 500)]
    # WHEN judged
    got = only(opened(tables), "fit")
    # THEN it is critical: over is the larger of both reasons, and what stands out on the worst tile is named
    assert got is not None
    assert (got.severity, got.tiles) == ("critical", (0, 1))
    assert got.title == "2 of 4 tiles do not fit; tile 0 is over by 200 bytes."
    assert got.variables == ("odd", "even")  # 500 - 500/4 and 400 - 800/4 more than the mean tile
    assert evidence(got) == {
        "tiles_out_of_memory": 2, "num_tiles": 4, "worst_tile": 0, "over_bytes": 200, "over_of_all_tiles_bytes": 250,
        "largest_category": "variable", "largest_category_fraction": 0.75,
    }  # fmt: skip


def lowered(identity: int, name: str, tile: int, size: int, variable: int | None = None, always: bool = True,
            equivalence_class: int | None = None) -> tuple[Any, ...]:  # fmt: skip
    return (identity, variable, name, tile, None, size, 4, "variable", "nonInterleaved", int(always), 0, 0,
            equivalence_class)  # fmt: skip


def test_without_a_target_only_what_overflowed_is_known(opened: Open) -> None:
    # GIVEN no target; WHEN nothing overflowed; THEN nobody can say whether it fits
    found = insights(opened({"tile_memory": tile_memory([1200])}), only=["fit"])
    assert [(one.rule, one.needs) for one in found.not_evaluated] == [("fit", "target")]
    # WHEN something did; THEN it does not
    got = only(opened({"tile_memory": tile_memory([1200], over=[7])}), "fit")
    assert got is not None
    assert (got.severity, evidence(got)["over_bytes"]) == ("critical", 7)


# -------------------------------------------------------------------------------------------------- overflow-spread
def test_what_overflows_would_fit_on_other_tiles(opened: Open) -> None:
    got = only(opened(memory([1200, 100, 100, 100])), "overflow-spread")
    assert got is not None
    assert got.title == (
        "1 of 4 tiles do not fit, yet the fullest IPU that has such tiles, 0, uses only 37.5 per cent of its memory."
    )
    assert "mapping" in got.advice
    assert evidence(got) == {
        "tiles_out_of_memory": 1, "num_tiles": 4, "ipus_out_of_memory": 1, "fullest_ipu": 0, "used_fraction": 0.375,
        "used_bytes": 1500, "capacity_bytes": 4000,
    }  # fmt: skip


def test_what_overflows_would_fit_on_another_ipu(opened: Open) -> None:
    got = only(opened(memory([100, 100, 1200, 1000], ipus=2)), "overflow-spread")
    assert got is not None
    assert got.title == ("IPU 1 uses 110.0 per cent of its memory and does not fit, while IPU 0 uses 10.0 per cent.")
    assert "split over IPUs" in got.advice


def test_what_overflows_fits_nowhere(opened: Open) -> None:
    got = only(opened(memory([950, 950, 1200, 1000], ipus=2)), "overflow-spread")
    assert got is not None
    assert got.title == "IPU 1 uses 110.0 per cent of its memory: a better mapping alone will hardly make it fit."
    assert "capacity" in got.advice


def test_nothing_overflows(opened: Open) -> None:
    assert only(opened(memory([1000, 100])), "overflow-spread") is None


# ----------------------------------------------------------------------------------------------------- outlier-tile
def test_a_tile_stands_far_above_the_rest(opened: Open) -> None:
    # GIVEN 100 tiles of 500 bytes, but one of 800: by linear interpolation, the 99th percentile is 503
    tables = memory([500] * 42 + [800] + [500] * 57)
    tables["tile_memory_category"] = categories(
        *((tile, "variable", 500) for tile in range(100)), (42, "controlCode", 300)
    )
    tables["lowered_variables"] = [lowered(tile, "even", tile, 5) for tile in range(100)] + [
        lowered(100, "little", 42, 10), lowered(101, "much", 42, 290)
    ]  # fmt: skip
    # WHEN judged; THEN the tile is named with what makes it so
    got = only(opened(tables), "outlier-tile")
    assert got is not None
    assert (got.severity, got.tiles, got.variables) == ("warning", (42, 0, 1, 2, 3), ("much", "little"))
    assert got.title == "Tile 42 uses 800 bytes, 297 bytes more than 99 in 100 tiles use at most."
    assert evidence(got) == {
        "fullest_tile": 42, "used_bytes": 800, "percentile_99_bytes": 503, "above_bytes": 297,
        "category_above_mean": "controlCode", "category_above_mean_bytes": 297,
    }  # fmt: skip


def test_a_tile_that_stands_out_matters_less_with_room(opened: Open) -> None:
    got = only(opened(memory([100] * 99 + [400])), "outlier-tile")
    assert got is not None
    assert (got.severity, got.variables) == ("info", ())


def test_tiles_alike_have_no_outlier(opened: Open) -> None:
    assert only(opened(memory([800, 790, 800, 750])), "outlier-tile") is None


# ----------------------------------------------------------------------------------------------------- tile-balance
def test_tiles_are_filled_unevenly(opened: Open) -> None:
    got = only(opened(memory([900, 100])), "tile-balance")
    assert got is not None
    assert (got.severity, got.tiles) == ("advice", (0, 1))
    assert got.title == "The mean tile uses 500 bytes, 55.6 per cent of what the fullest uses (900 bytes)."
    assert evidence(got) == {
        "mean_bytes": 500, "fullest_bytes": 900, "tile_balance": 500 / 900, "free_of_all_tiles_bytes": 1000
    }  # fmt: skip


def test_a_tile_that_is_over_has_nothing_free(opened: Open) -> None:
    assert evidence(only(opened(memory([1200, 100])), "tile-balance"))["free_of_all_tiles_bytes"] == 900


@pytest.mark.parametrize("used", [[900, 700], [700, 10]], ids=["even", "room"])
def test_tiles_are_filled_well_enough(opened: Open, used: list[int]) -> None:
    assert only(opened(memory(used)), "tile-balance") is None


# ------------------------------------------------------------------------------------------------------------- gaps
def test_gaps_take_a_large_share(opened: Open) -> None:
    got = only(opened(memory([500, 900], gaps=[60, 20])), "gaps")
    assert got is not None
    assert (got.severity, got.tiles) == ("advice", (0, 1))
    assert got.title == (
        "Gaps between allocations take 80 bytes, 5.7 per cent of the memory in use; most on tile 0, 60 bytes."
    )
    assert evidence(got) == {"gap_bytes": 80, "gap_fraction": 80 / 1400, "worst_tile": 0, "worst_gap_bytes": 60}


def test_gaps_are_small(opened: Open) -> None:
    report = opened(memory([500, 900], gaps=[60, 9]))
    assert only(report, "gaps") is None
    assert evidence(only(report, "gaps", Limits(gaps=0.04)))["gap_bytes"] == 69


# -------------------------------------------------------------------------------------------------- instrumentation
def instrumented(*by_tile: int) -> Tables:
    tables = memory([850] * len(by_tile))
    tables["tile_memory_category"] = categories(
        *((tile, "variable", 850 - size) for tile, size in enumerate(by_tile)),
        *((tile, "instrumentationResults", size) for tile, size in enumerate(by_tile) if size),
    )
    tables["report_info"] = [("layout", "pvanalyse-1"), ("instrument_compute", "Tile")]
    return tables


def test_instrumentation_takes_a_share_of_all_tiles(opened: Open) -> None:
    got = only(opened(instrumented(34, 17)), "instrumentation")
    assert got is not None
    assert (got.severity, got.saving_bytes, got.tiles) == ("advice", 51, (0,))
    assert got.options == ("debug.instrument", "debug.computeInstrumentationLevel", "profiler.programs.filter")
    assert got.title == (
        "Counters of the instrumentation take 51 bytes, 3.0 per cent of the memory in use; tile 0 has most, 34 bytes."
    )
    assert evidence(got) == {
        "instrumentation_bytes": 51, "fraction": 0.03, "largest_tile": 0, "largest_tile_bytes": 34,
        "fraction_of_largest_tile": 0.034, "level": "Tile",
    }  # fmt: skip


def test_branches_are_recorded_on_one_tile(opened: Open) -> None:
    # GIVEN little instrumentation, but almost all of it on tile 5: 95 is more than 4 times the mean of 100 / 6
    got = only(opened(instrumented(1, 1, 1, 1, 1, 95)), "instrumentation")
    # THEN the option that chooses that tile is named
    assert got is not None
    assert got.tiles == (5,)
    assert "debug.branchRecordTile" in got.options
    assert "Tile 5" in got.advice


@pytest.mark.parametrize("by_tile", [(0, 0), (10, 10)], ids=["none", "little"])
def test_instrumentation_takes_little(opened: Open, by_tile: tuple[int, ...]) -> None:
    assert only(opened(instrumented(*by_tile)), "instrumentation") is None


# ----------------------------------------------------------------------------------------------------- exchange-code
def with_exchanges(internal: int, between: int, host: int) -> Tables:
    tables = memory([500, 500])
    sizes = {"internalExchangeCode": internal, "globalExchangeCode": between, "hostExchangeCode": host}
    rows = [(0, name, size) for name, size in sizes.items() if size]
    tables["tile_memory_category"] = categories(*rows, (1, "variable", 1000 - internal - between - host))
    tables["programs"] = [
        (0, "DoExchange", "small", None, None, None, struct.pack("<2I", 30, 10), None, None),
        (1, "DoExchange", "large", None, None, None, struct.pack("<2I", 50, 60), None, None),
        (2, "Sequence", "", None, None, None, None, None, None),
    ]
    return tables


def test_exchange_code_takes_a_large_share(opened: Open) -> None:
    got = only(opened(with_exchanges(120, 20, 10)), "exchange-code")
    assert got is not None
    assert got.severity == "info"  # there is room
    assert got.title == "Code for exchanges takes 150 bytes, 15.0 per cent of the memory in use."
    assert got.options[0] == "opt.internalExchangeOptimisationTarget"
    assert evidence(got) == {
        "exchange_code_bytes": 150, "fraction": 0.15, "internalExchangeCode": 120, "globalExchangeCode": 20,
        "hostExchangeCode": 10, "largest_exchange": "DoExchange large", "largest_exchange_bytes": 110,
    }  # fmt: skip


def test_exchange_code_takes_little(opened: Open) -> None:
    assert only(opened(with_exchanges(120, 20, 9)), "exchange-code") is None


# ------------------------------------------------------------------------------------------------------ vertex-state
def with_vertices(state: int) -> Tables:
    tables = memory([500, 500])
    tables["tile_memory_category"] = categories(
        (0, "vertexInstanceState", state), (0, "vertexFieldData", 20), (1, "variable", 980 - state)
    )
    tables["vertex_types"] = [(1, "Few", 50), (2, "Many", 4)]
    tables["tile_vertices"] = [(0, 1, 100), (0, 2, 10)]
    tables["compute_sets"] = [(7, "cs", None, None, None)]
    counts = [(1, (1, 1)), (2, (20, 11))]
    tables["compute_set_vertices"] = [(7, kind, struct.pack("<2I", *number)) for kind, number in counts]
    return tables


def test_vertex_state_takes_a_large_share(opened: Open) -> None:
    got = only(opened(with_vertices(130)), "vertex-state")
    assert got is not None
    assert got.title == "State of vertices takes 150 bytes, 15.0 per cent of the memory in use."
    assert evidence(got) == {
        "vertex_state_bytes": 150, "fraction": 0.15, "vertexInstanceState": 130, "vertexFieldData": 20,
        "vectorListDescriptor": 0, "copyDescriptor": 0, "largest_vertex": "Many", "largest_vertex_state_bytes": 124,
    }  # fmt: skip


def test_vertex_state_takes_little(opened: Open) -> None:
    assert only(opened(with_vertices(129)), "vertex-state") is None


# ------------------------------------------------------------------------------------------------------- always-live
def test_much_is_always_live(opened: Open) -> None:
    tables = memory([500, 500], always=[400, 200], at_times=[100, 300])
    tables["always_live_variables"] = [("little", 1, 100), ("vertexCode", None, 500)]
    got = only(opened(tables), "always-live")
    assert got is not None
    assert got.title == "Always-live memory takes 600 bytes, 60.0 per cent of what is live at the tiles' peaks."
    assert got.variables == ("vertexCode", "little")
    assert evidence(got) == {
        "always_live_bytes": 600, "not_always_live_bytes": 400, "fraction": 0.6, "largest_variable_bytes": 500
    }  # fmt: skip


def test_not_much_is_always_live(opened: Open) -> None:
    assert only(opened(memory([500, 500], always=[400, 199], at_times=[100, 300])), "always-live") is None


# --------------------------------------------------------------------------------------------------------- the peak
Live = tuple[str, int | None, int, int, int]  # name, variable, begin, end, bytes


def with_liveness(live: Sequence[Live], num_steps: int, shapes: dict[int, str] | None = None, replicas: int = 1,
                  used: Sequence[int] = (900, 900)) -> Tables:  # fmt: skip
    """Tables of a liveness whose curve is added up from its variables, step by step."""
    curve = [sum(size for _, _, begin, end, size in live if begin <= step < end) for step in range(num_steps)]
    return {
        **memory(used, replicas=replicas),
        "liveness_steps": [(step, 100 + step, size) for step, size in enumerate(curve)],
        "variable_liveness": [(variable, name, begin, end, size) for name, variable, begin, end, size in live],
        "variables": [(one, f"declared {one}", "half", shape, None) for one, shape in (shapes or {}).items()],
        "programs": [(103, "OnTileExecute", "matmul", None, None, None, None, None, None)],
        "always_live_variables": [("weights", 9, 64)],
    }


def test_a_few_variables_hold_the_peak(opened: Open) -> None:
    # GIVEN a peak of 100 at step 3, where the largest three hold 60 + 10 + 9; without the first, 55 is left at step 0
    live = [("a", 1, 3, 5, 60), ("b", 2, 2, 4, 10), ("c", 3, 3, 4, 9), ("d", 4, 3, 4, 8), ("e", None, 0, 4, 13),
            ("before", 5, 0, 1, 42)]  # fmt: skip
    report = opened(with_liveness(live, 6, replicas=2))
    # WHEN judged
    got = only(report, "peak-concentration")
    # THEN shares are of the peak of one replica, and the saving is of both
    assert got is not None
    assert (got.severity, got.variables, got.saving_bytes) == ("advice", ("a", "e", "b"), 2 * (100 - 55))
    assert got.title == "3 of 5 variables hold 83.0 per cent of the liveness peak of 100 bytes at step 3."
    assert evidence(got) == {
        "num_variables": 3, "num_live": 5, "held_fraction": 0.83, "held_bytes": 83, "peak_bytes": 100, "peak_step": 3,
        "largest_variable_bytes": 60, "peak_without_largest_bytes": 55, "program": "OnTileExecute matmul",
    }  # fmt: skip


def test_many_variables_hold_the_peak(opened: Open) -> None:
    report = opened(with_liveness([(f"v{at}", at, 0, 2, 10) for at in range(10)], 3))
    assert only(report, "peak-concentration") is None
    assert only(report, "peak-concentration", Limits(peak_variables=4)) is not None


def test_few_variables_are_no_concentration(opened: Open) -> None:
    # GIVEN no more variables than would be named; THEN that they hold everything says nothing
    assert only(opened(with_liveness([("a", 1, 0, 1, 10), ("b", 2, 0, 1, 10)], 3)), "peak-concentration") is None


FORWARD_AND_BACK = [
    # four layers: each activation is needed again on the way back; the gradients are short-lived
    *((f"activation {at}", at, at, 20 - at, 40 + at) for at in range(4)),
    ("gradient of weights", 8, 9, 19, 25),
    ("compiler's", None, 0, 20, 11),
    ("temporary", 7, 9, 11, 30),
]
SHAPES = {0: "[4,10]", 1: "[4,10]", 2: "[4,10]", 3: "[4,11]", 7: "[30]", 8: "[5,5]", 9: "[5,5]"}


def test_activations_can_be_computed_again(opened: Open) -> None:
    # GIVEN activations, at the peak with a gradient that has the shape of the weights, and others
    report = opened(with_liveness(FORWARD_AND_BACK, 20, SHAPES))
    # WHEN judged
    got = only(report, "recomputation")
    # THEN the candidates are the activations; the saving is what brute force says
    candidates = [one for one in FORWARD_AND_BACK if one[0].startswith("activation")]
    after = []
    for step in range(20):
        kept = [one for one in FORWARD_AND_BACK if one[2] <= step < one[3]]
        gone = [one for one in candidates if one[2] < step < one[3] - 1]
        after.append(
            sum(one[4] for one in kept) - sum(one[4] for one in gone) + max((one[4] for one in gone), default=0)
        )
    peak = 40 + 41 + 42 + 43 + 25 + 11 + 30
    assert got is not None
    assert evidence(got) == {
        "num_candidates": 4, "candidate_bytes": 166, "candidate_fraction": 166 / peak, "peak_bytes": peak,
        "peak_step": 9, "longest_lifetime_steps": 20, "num_steps": 20, "saving_of_replica_bytes": peak - max(after),
    }  # fmt: skip
    assert got.saving_bytes == peak - max(after) > 0
    assert got.variables == ("activation 3", "activation 2", "activation 1", "activation 0")


def test_an_activation_is_there_when_it_is_made(opened: Open) -> None:
    # GIVEN activations of 50 and 30, a temporary of 20 where the second is made, and of 40 at the peak of 120
    live: list[Live] = [("a", 0, 0, 12, 50), ("b", 1, 3, 12, 30), ("t", None, 3, 4, 20), ("u", None, 8, 9, 40)]
    # WHEN they are computed again; THEN 50 + 40 are left at the peak, but 100 where the second is made
    got = only(opened(with_liveness(live, 12, {0: "[5]", 1: "[3]"})), "recomputation")
    assert got is not None
    assert got.saving_bytes == 120 - 100


def test_no_activation_lives_long(opened: Open) -> None:
    live: list[Live] = [(f"v{at}", at % 4, at, at + 2, 40) for at in range(18)]
    assert only(opened(with_liveness(live, 20, SHAPES)), "recomputation") is None


def test_what_has_the_shape_of_weights_is_no_activation(opened: Open) -> None:
    report = opened(with_liveness(FORWARD_AND_BACK, 20, dict.fromkeys(SHAPES, "[5,5]")))
    assert only(report, "recomputation") is None
    assert only(report, "batch-size") is None


# ------------------------------------------------------------------------------------------------------- batch size
def test_much_of_the_peak_grows_with_the_batch(opened: Open) -> None:
    # GIVEN activations and a temporary of 196 in a peak of 232; WHEN judged, on 2 replicas
    report = opened(with_liveness(FORWARD_AND_BACK, 20, SHAPES, replicas=2), {"hyperparameters": {"batch-size": 8}})
    got = only(report, "batch-size")
    # THEN half of them would be saved on each
    assert got is not None
    assert (got.severity, got.saving_bytes) == ("advice", 196)
    assert got.title == (
        "About 196 bytes, 84.5 per cent of the liveness peak, grows with the batch; half the batch would save about "
        "98 bytes."
    )
    assert evidence(got) == {
        "batch_bytes": 196, "batch_fraction": 196 / 232, "peak_bytes": 232, "num_variables": 5,
        "saving_of_replica_bytes": 98, "batch_size": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("app", "stated"),
    [
        (None, None), ({"batch": "many"}, None), ({"a": {"batch_size": 4}, "b": {"batch": 8}}, None),
        ({"model": {"micro_batch_size": 16}}, 16), ({"model": {"deep": {"microBatchSize": 3}}}, 3),
        ({"batch": "9" * 4000}, None), ({"batches": 7}, None),
    ],
)  # fmt: skip
def test_the_batch_size_is_taken_from_the_application(opened: Open, app: Any, stated: int | None) -> None:
    got = only(opened(with_liveness(FORWARD_AND_BACK, 20, SHAPES), app), "batch-size")
    assert evidence(got).get("batch_size") == stated


def test_a_batch_of_one_cannot_be_halved(opened: Open) -> None:
    assert only(opened(with_liveness(FORWARD_AND_BACK, 20, SHAPES), {"batch": 1}), "batch-size") is None


def test_little_of_the_peak_grows_with_the_batch(opened: Open) -> None:
    live: list[Live] = [("activation", 0, 0, 2, 49), ("gradient", 8, 0, 2, 51)]
    assert only(opened(with_liveness(live, 3, SHAPES)), "batch-size") is None


# ------------------------------------------------------------------------------------------------------------- fp16
def single_precision(size: int) -> Tables:
    tables = with_liveness([("declared 1", 1, 0, 2, 2 * size), ("declared 2", 2, 1, 3, 500)], 3, {2: "[250]"})
    tables["variables"].append((1, "declared 1", "float", "[4]", None))
    return tables


def test_single_precision_by_tile(opened: Open) -> None:
    # GIVEN two tiles of which 0 has 120 and 1 has 81 bytes of a float variable, live in the same class
    tables = single_precision(100)
    tables["lowered_variables"] = [
        lowered(0, "x", 0, 120, 1, False, 5), lowered(1, "x", 1, 81, 1, False, 5), lowered(2, "y", 1, 500, 2, False, 6)
    ]  # fmt: skip
    tables["equivalence_class_intervals"] = [(5, 0, 2), (6, 1, 3)]
    # WHEN judged; THEN half of it would be saved, on the mean of the tiles
    got = only(opened(tables), "fp16")
    assert got is not None
    assert (got.severity, got.saving_bytes, got.tiles, got.variables) == ("advice", 100, (0,), ("declared 1",))
    assert evidence(got) == {
        "num_candidates": 1, "saving_per_tile_bytes": 50, "saving_fraction_of_tile": 0.05, "num_tiles": 2,
        "saving_at_peak_of_replica_bytes": 100,
    }  # fmt: skip


def test_single_precision_of_a_replica(opened: Open) -> None:
    # GIVEN no lowered variables: 200 bytes at the peak on 2 tiles are 100 a tile, of which half is 50
    got = only(opened(single_precision(100)), "fp16")
    assert got is not None
    assert (got.saving_bytes, got.tiles) == (100, ())
    assert evidence(got)["saving_per_tile_bytes"] == 50


def test_single_precision_is_rare(opened: Open) -> None:
    assert only(opened(single_precision(99)), "fp16") is None


# ------------------------------------------------------------------------------------------------------ the capture
def test_a_large_profile(opened: Open) -> None:
    tables = memory([500, 500])
    tables["runs"] = [(0, "first", 0, 1), (1, "second", 1, 2)]
    tables["execution_steps"] = [(step, 0, 0, None) for step in range(3)]
    got = only(opened(tables), "profile-size", profile_bytes=600_000_000)
    assert got is not None
    assert got.title == ("profile.pop has 600,000,000 bytes: 3 executed steps in 2 runs, and 0 lowered variables.")
    assert got.options == (
        "autoReport.executionProfileProgramRunCount", "profiler.programs.filter", "autoReport.outputExecutionProfile"
    )  # fmt: skip


def test_a_small_profile(opened: Open) -> None:
    report = opened(memory([500, 500]))
    assert only(report, "profile-size", profile_bytes=499_999_999) is None
    assert only(report, "profile-size", Limits(profile_bytes=10), profile_bytes=10) is not None


def test_a_profile_of_unknown_size(opened: Open) -> None:
    found = insights(opened(memory([500, 500])), only=["profile-size"])
    assert [asdict(one) for one in found.not_evaluated] == [
        {"rule": "profile-size", "needs": "size of profile.pop", "how": "give it as profile_bytes"}
    ]


def test_stored_numbers_that_are_wrong(opened: Open) -> None:
    # GIVEN tiles that store 400 and 10 always-live bytes and hold 300 and 12
    tables = memory([500, 500], always=[400, 10])
    tables["lowered_variables"] = [lowered(0, "a", 0, 300), lowered(1, "b", 1, 12)]
    got = only(opened(tables), "consistency")
    # THEN it is a warning, with the worst first
    assert got is not None
    assert (got.severity, got.tiles) == ("warning", (0, 1))
    assert evidence(got) == {
        "num_findings": 2, "quantity": "always_live_bytes", "stored_bytes": 400, "computed_bytes": 300,
        "disagreements_of_always_live_bytes": 2,
    }  # fmt: skip


def test_stored_numbers_that_are_right(opened: Open) -> None:
    tables = memory([500, 500], always=[300, 12])
    tables["lowered_variables"] = [lowered(0, "a", 0, 300), lowered(1, "b", 1, 12)]
    assert only(opened(tables), "consistency") is None


# --------------------------------------------------------------------------------------------------- all the rules
RULES = (
    "fit", "overflow-spread", "outlier-tile", "tile-balance", "gaps", "instrumentation", "exchange-code",
    "vertex-state", "always-live", "peak-concentration", "recomputation", "batch-size", "fp16", "profile-size",
    "consistency",
)  # fmt: skip


def test_the_registry_knows_every_rule() -> None:
    assert tuple(rules()) == RULES
    assert [one.name for one in rules().values() if not one.doc.endswith(".")] == []


def reports() -> list[str]:
    return sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("profile.pop"))


def judged(name: str, limits: Limits | None = None, **more: Any) -> Insights:
    with open_report(SAMPLES / name) as report:
        return insights(report, limits, **more)


@pytest.mark.parametrize("name", reports())
def test_every_sample_is_judged_by_every_rule(name: str) -> None:
    found = judged(name, profile_bytes=1)
    names = [one.rule for one in found] + [one.rule for one in found.not_evaluated] + list(found.nothing_found)
    assert sorted(names) == sorted(RULES)
    order = [SEVERITIES.index(one.severity) for one in found]
    assert order == sorted(order, reverse=True)
    missing = {one.rule for one in found.not_evaluated}
    assert missing == ({"consistency"} if name == "no_lowered_variables" else set())
    assert json.loads(json.dumps(asdict(found)))["found"][0]["title"] == found[0].title


@pytest.mark.parametrize("name", reports())
def test_limits_of_nothing_make_every_rule_speak_that_can(name: str) -> None:
    # GIVEN limits that everything exceeds; WHEN a sample is judged; THEN only rules on what is not there are silent
    exceeded = Limits(
        little_headroom=2, outlier=0, tile_balance=2, nearly_full=0, gaps=0, instrumentation=0, exchange_code=0, vertex_state=0,
        always_live=0, peak_concentration=0, peak_variables=1, long_lifetime=0, recomputation=0, batch=0, fp16=0,
        profile_bytes=0,
    )  # fmt: skip
    found = judged(name, exceeded, profile_bytes=1)
    spoke = {one.rule for one in found}
    assert spoke >= set(RULES) - {
        "overflow-spread", "instrumentation", "recomputation", "batch-size", "fp16", "consistency"
    }  # fmt: skip
    known = ("autoReport.", "debug.", "profiler.", "opt.", "PopART: ", "PopTorch: ", "PopLibs: ", "TensorFlow: ")
    assert [option for one in found for option in one.options if not option.startswith(known)] == []
    assert [one.rule for one in found if not one.advice] == []


def test_the_sample_that_is_out_of_memory_is_critical() -> None:
    # GIVEN the numbers straight from the file
    database = sqlite3.connect(f"file:{SAMPLES / 'out_of_memory' / 'profile.pop'}?mode=ro&immutable=1", uri=True)
    over = database.execute(
        "SELECT tile, max(overflowed_including_gaps, total_including_gaps - bytes_per_tile) AS over"
        " FROM tile_memory, target WHERE over > 0 ORDER BY over DESC, tile"
    ).fetchall()
    (total,) = database.execute("SELECT sum(total_including_gaps) FROM tile_memory").fetchone()
    database.close()
    # WHEN the sample is judged; THEN the first finding says so, and the next that other tiles have room
    fit, spread = judged("out_of_memory")[:2]
    assert (fit.rule, fit.severity, fit.tiles) == ("fit", "critical", tuple(tile for tile, _ in over[:5]))
    assert evidence(fit)["tiles_out_of_memory"] == len(over) == 416
    assert evidence(fit)["over_of_all_tiles_bytes"] == sum(size for _, size in over)
    assert spread.rule == "overflow-spread"
    assert evidence(spread)["used_fraction"] == total / (1472 * 638976)


def test_the_regression_of_the_transformer_shows() -> None:
    # GIVEN the two transformers; WHEN both are judged
    before, after = ({one.rule: one for one in judged(name)} for name in ("transformer_before", "transformer_after"))
    # THEN the second has little room left, and the scores are the first candidate for recomputation only there
    assert (before["fit"].severity, after["fit"].severity) == ("info", "warning")
    scores = "bert/encoder/layer_1/attention/self/scores:0"
    assert after["recomputation"].variables[0] == scores
    assert scores not in before["recomputation"].variables
    grown = [evidence(one["recomputation"])["candidate_bytes"] for one in (before, after)]
    assert grown[1] - grown[0] == 7_340_032


def test_an_archive_alone_is_judged_by_no_rule(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "pipelined" / "training" / "archive.a", tmp_path)
    with open_report(tmp_path) as report:
        found = insights(report)
    assert (found.found, found.nothing_found) == ((), ())
    assert [one.rule for one in found.not_evaluated] == list(RULES)
    assert [one for one in found.not_evaluated if "autoReport.output" not in one.how] == []


def test_hostile_names_and_numbers(opened: Open) -> None:
    # GIVEN names that look like templates, a stored peak of 0 with live variables, and a target without replicas
    name = "{0} {over_bytes} {x!r} %s \x1b[31m"
    tables = with_liveness([(name, 1, 0, 9, 70), ("b", 2, 0, 9, 5), ("c", 3, 0, 9, 4), (name, 4, 0, 9, 3)], 9,
                           {1: name, 2: "[", 3: "", 4: "{}"})  # fmt: skip
    tables["liveness_steps"] = [(step, 1, 0) for step in range(9)]
    tables["tile_memory_category"] = categories((0, name, 2**40), (1, "instrumentationResults", 2**40))
    tables["always_live_variables"] = [(name, 77, 2**40)]
    tables["tile_memory"] = tile_memory([2**40, 0], over=[2**40, 0], always=[2**40, 0])
    # WHEN judged; THEN names are kept as they are, and nothing fails
    found = insights(opened(tables))
    first = found[0]
    assert first.title == "1 of 2 tiles do not fit; tile 0 is over by 1,099,511,627,776 bytes."
    assert evidence(first)["largest_category"] == name
    assert next(one for one in found if one.rule == "peak-concentration").variables[0] == name


# -------------------------------------------------------------------------------------------------------- questions
def test_only_some_rules() -> None:
    found = judged("transformer_after", only=["gaps", "fit"])
    assert ([one.rule for one in found], found.nothing_found) == (["fit"], ("gaps",))


def test_an_unknown_rule() -> None:
    with pytest.raises(UsageError, match=r"^there is no rule 'fat'; there are: fit, overflow-spread, "):
        judged("transformer_after", only=["fat"])


def test_at_least_so_severe() -> None:
    found = judged("out_of_memory")
    kept = found.at_least("warning")
    assert {one.severity for one in kept} == {"critical", "warning"}
    assert [one.rule for one in kept] + list(kept.milder) == [one.rule for one in found]
    with pytest.raises(UsageError, match="'fatal' is none of info, advice, warning, critical"):
        found.at_least("fatal")  # type: ignore[arg-type]


def test_limits_by_name() -> None:
    assert limits_with({}) == Limits()
    assert limits_with({"gaps": 0.5, "shown": 2.0}) == Limits(gaps=0.5, shown=2)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("gap", 1, "there is no limit 'gap'; there are: little_headroom, "),
        ("gaps", -0.1, "limit 'gaps' is a number of at least 0, not -0.1"),
        ("gaps", float("nan"), "limit 'gaps' is a number of at least 0, not nan"),
        ("gaps", float("inf"), "limit 'gaps' is a number of at least 0, not inf"),
        ("shown", 0, "limit 'shown' is a whole number of at least 1, not 0"),
        ("shown", 1.5, "limit 'shown' is a whole number of at least 1, not 1.5"),
    ],
)
def test_limits_that_are_none(name: str, value: float, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        limits_with({name: value})
    assert str(caught.value).startswith(problem)
