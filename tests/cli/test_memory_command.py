"""``pvanalyse memory`` against plain Python over sqlite3: every part, every option, every refusal."""

from __future__ import annotations

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import Capture, answer, answer_csv, answer_json, as_text, refusal, rows
from tests.conftest import SAMPLES

REPORT = SAMPLES / "pipelined" / "training"
FULL = SAMPLES / "out_of_memory"
NO_LOWERED = SAMPLES / "no_lowered_variables"
SELECTIONS = {
    "all": ([], lambda tile, _ipu: True),
    "tiles": (["--tiles", "0,5,100-120"], lambda tile, _ipu: tile in (0, 5) or 100 <= tile <= 120),
    "ipu": (["--ipu", "1"], lambda _tile, ipu: ipu == 1),
    "both": (["--tiles", "60-70", "--ipu", "1"], lambda tile, ipu: 60 <= tile <= 70 and ipu == 1),
    "ipus": (["--ipu", "0", "--ipu", "1"], lambda _tile, ipu: True),
}


def tile_rows(report: Path) -> list[dict[str, Any]]:
    """Rows of tile_memory with the IPU and what is over, the fullest first."""
    (target,) = rows(report, "SELECT * FROM target")
    found = rows(report, "SELECT * FROM tile_memory")
    for row in found:
        row["ipu"] = row["tile"] // target["tiles_per_ipu"]
        row["free_bytes"] = target["bytes_per_tile"] - row["total_including_gaps"]
        row["over_bytes"] = max(0, -row["free_bytes"], row["overflowed_including_gaps"])
    return sorted(found, key=lambda row: (-row["total_including_gaps"], row["tile"]))


def chosen_rows(report: Path, chosen: Callable[[int, int], bool]) -> list[dict[str, Any]]:
    return [row for row in tile_rows(report) if chosen(row["tile"], row["ipu"])]


def by_tile(report: Path) -> dict[int, Counter[str]]:
    sizes: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows(report, "SELECT * FROM tile_memory_category"):
        sizes[row["tile"]][row["category"]] += row["non_overlapped"]
    return sizes


# ------------------------------------------------------------------------------------------------- the usual parts
@pytest.mark.parametrize("name", SELECTIONS)
def test_tiles_and_what_fills_them(capsys: Capture, name: str) -> None:
    # GIVEN a selection; WHEN asked as JSON; THEN each tile's row is that of the file, the fullest first
    words, chosen = SELECTIONS[name]
    data = answer_json(capsys, "memory", str(REPORT), *words)
    expected = chosen_rows(REPORT, chosen)
    shown = [{key: value for key, value in row.items() if key != "categories"} for row in data["tiles"]]
    assert shown == expected
    sizes = by_tile(REPORT)
    held = {row["tile"]: {one: size for one, size in row["categories"].items() if size} for row in data["tiles"]}
    assert held == {row["tile"]: dict(+sizes[row["tile"]]) for row in expected}
    assert data["tiles_chosen"] == (sorted(row["tile"] for row in expected) if words else None)


@pytest.mark.parametrize("report", [REPORT, FULL], ids=["fits", "does not fit"])
@pytest.mark.parametrize("name", ["all", "tiles"])
def test_totals(capsys: Capture, report: Path, name: str) -> None:
    words, chosen = SELECTIONS[name]
    data = answer_json(capsys, "memory", str(report), *words)["totals"]
    found = chosen_rows(report, chosen)
    (target,) = rows(report, "SELECT * FROM target")

    def total(column: str) -> int:
        return sum(row[column] for row in found)

    capacity = len(found) * target["bytes_per_tile"]
    summed = ("total_including_gaps", "total_excluding_gaps", "always_live_bytes", "not_always_live_bytes",
              "non_interleaved_including_gaps", "interleaved_including_gaps", "overflowed_including_gaps",
              "over_bytes")  # fmt: skip
    assert data == {
        "num_tiles": len(found),
        "capacity_bytes": capacity,
        "gaps_bytes": total("total_including_gaps") - total("total_excluding_gaps"),
        "used_fraction": total("total_including_gaps") / capacity,
        "fullest_tile": found[0]["tile"],
        "fullest_tile_bytes": found[0]["total_including_gaps"],
        "tiles_out_of_memory": sum(row["over_bytes"] > 0 for row in found),
        **{column: total(column) for column in summed},
    }


@pytest.mark.parametrize(("words", "ipus"), [([], [0, 1]), (["--tiles", "64"], [1])])
def test_ipus_are_whole_even_when_tiles_are_chosen(capsys: Capture, words: list[str], ipus: list[int]) -> None:
    data = answer_json(capsys, "memory", str(REPORT), *words)["ipus"]
    found = tile_rows(REPORT)
    (target,) = rows(REPORT, "SELECT * FROM target")
    expected = []
    for ipu in ipus:
        mine = [row for row in found if row["ipu"] == ipu]
        used, capacity = sum(row["total_including_gaps"] for row in mine), len(mine) * target["bytes_per_tile"]
        expected.append({
            "ipu": ipu, "tiles": len(mine), "total_including_gaps": used,
            "total_excluding_gaps": sum(row["total_excluding_gaps"] for row in mine),
            "always_live_bytes": sum(row["always_live_bytes"] for row in mine),
            "not_always_live_bytes": sum(row["not_always_live_bytes"] for row in mine),
            "fullest_tile": mine[0]["tile"], "fullest_tile_bytes": mine[0]["total_including_gaps"],
            "tiles_out_of_memory": 0, "capacity_bytes": capacity, "used_fraction": used / capacity,
        })  # fmt: skip
    assert data == expected


@pytest.mark.parametrize("name", SELECTIONS)
def test_categories(capsys: Capture, name: str) -> None:
    words, chosen = SELECTIONS[name]
    data = answer_json(capsys, "memory", str(REPORT), *words)["categories"]
    tiles = {row["tile"] for row in chosen_rows(REPORT, chosen)}
    found = [row for row in rows(REPORT, "SELECT * FROM tile_memory_category") if row["tile"] in tiles]
    total = sum(row["non_overlapped"] for row in found)
    expected = {}
    for category in {row["category"] for row in found}:
        mine = [row for row in found if row["category"] == category]
        on_tile: Counter[int] = Counter()
        for row in mine:
            on_tile[row["tile"]] += row["non_overlapped"]
        largest = min(on_tile, key=lambda tile: (-on_tile[tile], tile))
        size = sum(on_tile.values())
        regions = {
            f"{ours}_bytes": sum(row["non_overlapped"] for row in mine if row["region"] == region)
            for ours, region in {"non_interleaved": "nonInterleaved", "interleaved": "interleaved",
                                 "overflowed": "overflowed"}.items()
        }  # fmt: skip
        expected[category] = {
            "category": category, "bytes": size, "overlapped_bytes": sum(row["overlapped"] for row in mine),
            "fraction": size / total, **regions, "num_tiles": len(on_tile), "largest_tile": largest,
            "largest_tile_bytes": on_tile[largest],
        }  # fmt: skip
    assert data == sorted(expected.values(), key=lambda row: (-row["bytes"], row["category"]))


def test_the_distribution_counts_every_tile_once(capsys: Capture) -> None:
    data = answer_json(capsys, "memory", str(FULL), "--show", "distribution")["distribution"]
    sizes = sorted(row["total_including_gaps"] for row in tile_rows(FULL))
    bins = data["histogram"]
    for at, one in enumerate(bins):
        last = at == len(bins) - 1
        held = [size for size in sizes if one["from_bytes"] <= size and (size < one["to_bytes"] or last)]
        assert one["num_tiles"] == len(held)
    assert (bins[0]["from_bytes"], bins[-1]["to_bytes"]) == (sizes[0], sizes[-1])

    def quantile(share: float) -> float:
        place = share * (len(sizes) - 1)
        low = int(place)
        high = min(low + 1, len(sizes) - 1)
        return sizes[low] + (sizes[high] - sizes[low]) * (place - low)

    shares = [0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1]
    assert [one["quantile"] for one in data["quantiles"]] == shares
    assert [one["bytes"] for one in data["quantiles"]] == pytest.approx([quantile(share) for share in shares])


@pytest.mark.parametrize("words", [[], ["--tiles", "900-960"]])
def test_tiles_out_of_memory(capsys: Capture, words: list[str]) -> None:
    data = answer_json(capsys, "memory", str(FULL), *words)["out_of_memory"]
    sizes = by_tile(FULL)
    expected = []
    for row in tile_rows(FULL):
        if row["over_bytes"] and (not words or 900 <= row["tile"] <= 960):
            size = max(sizes[row["tile"]].values())
            filled_by = next(one for one, value in sizes[row["tile"]].items() if value == size)
            names = ("tile", "ipu", "total_including_gaps", "over_bytes")
            expected.append({name: row[name] for name in names} | {
                "overflowed_bytes": row["overflowed_including_gaps"], "largest_category": filled_by,
                "largest_category_bytes": size,
            })  # fmt: skip
    assert data == sorted(expected, key=lambda row: (-row["over_bytes"], row["tile"]))
    assert len(data) > 5


def test_the_verdict(capsys: Capture) -> None:
    worst = max(tile_rows(FULL), key=lambda row: row["over_bytes"])
    out = answer(capsys, "memory", str(FULL), "--units", "bytes")
    assert f"416 of 1,472 tiles do not fit; tile {worst['tile']} is over by {worst['over_bytes']:,} B." in out
    top = tile_rows(REPORT)[0]
    out = answer(capsys, "memory", str(REPORT), "--units", "bytes")
    assert f"Fits: the fullest tile, {top['tile']}, uses {top['total_including_gaps']:,} B of 638,976 B (" in out
    assert "Every tile fits." in out


def test_the_worst_tiles(capsys: Capture) -> None:
    expected = [row["tile"] for row in tile_rows(REPORT)[:7]]
    data = answer_json(capsys, "memory", str(REPORT), "--worst", "7")
    assert [row["tile"] for row in data["tiles"]] == expected
    assert sorted(data["tiles_chosen"]) == sorted(expected)
    on_ipu = [row["tile"] for row in tile_rows(REPORT) if row["ipu"] == 1][:3]
    data = answer_json(capsys, "memory", str(REPORT), "--worst", "3", "--ipu", "1", "--show", "tiles")
    assert [row["tile"] for row in data["tiles"]] == on_ipu


# ------------------------------------------------------------------------------------------------ parts by name
def counts(blob: bytes | None, num_tiles: int) -> tuple[int, ...]:
    return (0,) * num_tiles if blob is None else struct.unpack(f"<{num_tiles}I", blob)


@pytest.mark.parametrize("words", [[], ["--tiles", "0-9"]])
@pytest.mark.parametrize("match", [None, "Reduc|Elementwise", "(?i)CONV"])
def test_vertices(capsys: Capture, words: list[str], match: str | None) -> None:
    tiles = range(10) if words else range(128)
    words = [*words, *(["--match", match] if match else [])]
    data = answer_json(capsys, "memory", str(REPORT), "--show", "vertices", *words)["vertices"]
    code: Counter[int] = Counter()
    held: Counter[int] = Counter()
    for row in rows(REPORT, "SELECT * FROM tile_vertices"):
        if row["tile"] in tiles:
            code[row["vertex_type_id"]] += row["code_bytes"]
            held[row["vertex_type_id"]] += 1
    instances: Counter[int] = Counter()
    for row in rows(REPORT, "SELECT * FROM compute_set_vertices"):
        instances[row["vertex_type_id"]] += sum(counts(row["count_by_tile"], 128)[tile] for tile in tiles)
    expected = [
        {"vertex_type_id": kind, "name": row["name"], "code_bytes": code[kind], "num_instances": instances[kind],
         "state_bytes": instances[kind] * row["instance_bytes"], "num_tiles": held[kind]}
        for row in rows(REPORT, "SELECT * FROM vertex_types")
        if (held[kind := row["vertex_type_id"]] or instances[kind]) and re.search(match or "", row["name"])
    ]  # fmt: skip
    assert data == sorted(expected, key=lambda row: (-row["code_bytes"] - row["state_bytes"], row["name"]))
    assert data


@pytest.mark.parametrize(("words", "tiles"), [([], range(128)), (["--ipu", "1"], range(64, 128))])
def test_exchanges(capsys: Capture, words: list[str], tiles: range) -> None:
    data = answer_json(capsys, "memory", str(REPORT), "--show", "exchanges", *words)["exchanges"]
    expected = []
    for row in rows(REPORT, "SELECT * FROM programs"):
        code = {tile: counts(row["code_bytes_by_tile"], 128)[tile] for tile in tiles}
        cycles = [counts(row["estimated_cycles_by_tile"], 128)[tile] for tile in tiles]
        if sum(code.values()):
            largest = min(code, key=lambda tile: (-code[tile], tile))
            expected.append({
                "program_id": row["program_id"], "type": row["type"], "name": row["name"],
                "code_bytes": sum(code.values()), "largest_tile": largest, "largest_tile_bytes": code[largest],
                "max_estimated_cycles": max(cycles),
            })  # fmt: skip
    assert sorted(data, key=lambda row: row["program_id"]) == expected
    assert [row["code_bytes"] for row in data] == sorted((row["code_bytes"] for row in data), reverse=True)


def test_compute_sets(capsys: Capture) -> None:
    data = answer_json(capsys, "memory", str(REPORT), "--show", "compute-sets", "--match", "Softmax", "--ipu", "0")
    state = {row["vertex_type_id"]: row["instance_bytes"] for row in rows(REPORT, "SELECT * FROM vertex_types")}
    on_tile: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
    for row in rows(REPORT, "SELECT * FROM compute_set_vertices"):
        number = counts(row["count_by_tile"], 128)[:64]
        on_tile[row["compute_set_id"]].append((row["vertex_type_id"], number))
    expected = []
    for row in rows(REPORT, "SELECT * FROM compute_sets"):
        mine = on_tile[row["compute_set_id"]]
        if "Softmax" in row["name"] and any(sum(number) for _, number in mine):
            expected.append({
                "compute_set_id": row["compute_set_id"], "name": row["name"],
                "num_vertices": sum(sum(number) for _, number in mine),
                "state_bytes": sum(sum(number) * state[kind] for kind, number in mine),
                "num_vertex_types": sum(any(number) for _, number in mine),
                "num_tiles": sum(any(column) for column in zip(*(number for _, number in mine), strict=True)),
                "max_estimated_cycles": max(counts(row["estimated_cycles_by_tile"], 128)[:64]),
                "flops": row["flops"],
            })  # fmt: skip
    found = data["compute_sets"]
    assert sorted(found, key=lambda row: row["compute_set_id"]) == expected
    assert found


@pytest.mark.parametrize(("words", "tiles"), [([], range(128)), (["--tiles", "3,40-70"], [3, *range(40, 71)])])
def test_variables(capsys: Capture, words: list[str], tiles: range | list[int]) -> None:
    data = answer_json(capsys, "memory", str(REPORT), "--show", "variables", "--match", "Gather", *words)["variables"]
    declared = {row["variable_id"]: row["name"] for row in rows(REPORT, "SELECT * FROM variables")}
    found: dict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    for row in rows(REPORT, "SELECT * FROM lowered_variables"):
        name = declared.get(row["variable_id"], row["name"])
        if row["tile"] in tiles and "Gather" in name:
            found[name, row["variable_id"]].append(row)
    expected = {}
    for (name, identity), mine in found.items():
        on_tile: Counter[int] = Counter()
        for row in mine:
            on_tile[row["tile"]] += row["bytes"]
        largest = min(on_tile, key=lambda tile: (-on_tile[tile], tile))
        expected[name] = {
            "name": name, "variable_id": identity, "bytes": sum(on_tile.values()), "num_allocations": len(mine),
            "num_tiles": len(on_tile), "largest_tile": largest, "largest_tile_bytes": on_tile[largest],
            "always_live_bytes": sum(row["bytes"] for row in mine if row["always_live"]),
        }  # fmt: skip
    assert {row["name"]: row for row in data} == expected
    assert [row["bytes"] for row in data] == sorted((row["bytes"] for row in data), reverse=True)
    assert len(data) > 3


def test_the_map_of_a_tile(capsys: Capture) -> None:
    # GIVEN a tile; WHEN mapped; THEN every allocation is there, and together with gaps it leaves no address out
    data = answer_json(capsys, "memory", str(REPORT), "--map", "8")["map"]
    assert data["tile"] == 8
    stored = rows(REPORT, "SELECT offset, bytes FROM lowered_variables WHERE tile = 8")
    allocations = [(row["begin"], row["bytes"]) for row in data["rows"] if row["kind"] == "allocation"]
    assert sorted(allocations) == sorted((row["offset"], row["bytes"]) for row in stored)
    covered: Counter[int] = Counter()
    for row in data["rows"]:
        covered.update(range(row["begin"], row["begin"] + row["bytes"], 4))
    assert sorted(covered)[0] == 0
    gaps = sum(row["bytes"] for row in data["rows"] if row["kind"] == "gap")
    (memory,) = rows(REPORT, "SELECT * FROM tile_memory WHERE tile = 8")
    assert gaps == memory["total_including_gaps"] - memory["total_excluding_gaps"]


def test_the_map_is_of_the_fullest_tile_unless_said(capsys: Capture) -> None:
    found = tile_rows(REPORT)
    assert answer_json(capsys, "memory", str(REPORT), "--show", "map")["map"]["tile"] == found[0]["tile"]
    of_ipu = next(row["tile"] for row in found if row["ipu"] == 1)
    assert answer_json(capsys, "memory", str(REPORT), "--show", "map", "--ipu", "1")["map"]["tile"] == of_ipu
    both = answer_json(capsys, "memory", str(REPORT), "--show", "ipus", "--map", "3")
    assert list(both) == ["report", "tiles_chosen", "ipus", "map", "not_captured"]
    text = answer(capsys, "memory", str(REPORT), "--map", "3")
    assert "Memory map of tile 3" in text
    assert "(gap)" in text


# ------------------------------------------------------------------------------------------------- choice and form
PARTS = ("totals", "ipus", "tiles", "categories", "distribution", "out-of-memory", "vertices", "compute-sets",
         "exchanges", "variables", "map")  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_each_part_by_itself(capsys: Capture, part: str) -> None:
    # GIVEN one part; WHEN asked for in each format; THEN that is all there is, and CSV has the rows of JSON
    key = part.replace("-", "_")
    data = answer_json(capsys, "memory", str(FULL), "--show", part)
    assert list(data) == ["report", "tiles_chosen", key, "not_captured"]
    found = answer_csv(capsys, "memory", str(FULL), "--show", part)
    expected = data[key]["rows"] if part == "map" else [data[key]] if part == "totals" else data[key]
    if part == "distribution":  # two tables, so a row per value
        assert [float(row["value"]) for row in found if row["by"] == "quantile"] == [
            one["bytes"] for one in data[key]["quantiles"]
        ]
        return
    if part == "tiles":
        expected = [
            {name: value for name, value in row.items() if name != "categories"}
            | {f"category.{name}": size for name, size in row["categories"].items()}
            for row in expected
        ]
    assert found == [as_text(row) for row in expected]
    assert found


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("columns", ["80", "120"])
def test_lines_fit(capsys: Capture, monkeypatch: pytest.MonkeyPatch, part: str, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = answer(capsys, "memory", str(REPORT), "--show", part, "--units", "bytes", "--top", "3").splitlines()
    assert max(map(len, lines[1:])) <= int(columns)
    assert len(lines) > 2


def test_top_limits_lists_in_every_form(capsys: Capture) -> None:
    # GIVEN a long list; WHEN nothing is said; THEN people see ten rows, programs all
    every = answer_json(capsys, "memory", str(REPORT), "--show", "exchanges")["exchanges"]
    assert len(every) > 20
    out = answer(capsys, "memory", str(REPORT), "--show", "exchanges")
    assert f"The first 10 of {len(every)}; --top shows more." in out
    # WHEN a number is said; THEN it holds for all
    assert answer_json(capsys, "memory", str(REPORT), "--show", "exchanges", "--top", "4")["exchanges"] == every[:4]
    assert len(answer_csv(capsys, "memory", str(REPORT), "--show", "exchanges", "--top", "4")) == 4
    assert "The first 4 of" in answer(capsys, "memory", str(REPORT), "--show", "exchanges", "--top", "4")
    whole = answer(capsys, "memory", str(REPORT), "--show", "exchanges", "--top", "10000")
    assert "--top shows more" not in whole


def test_match_alone_shows_everything_with_names(capsys: Capture) -> None:
    data = answer_json(capsys, "memory", str(REPORT), "--match", "Softmax")
    assert list(data) == [
        "report", "tiles_chosen", "vertices", "compute_sets", "exchanges", "variables", "not_captured",
    ]  # fmt: skip
    names = [row["name"] for part in ("compute_sets", "exchanges", "variables") for row in data[part]]
    assert {"Softmax" in name for name in names} == {True}


def test_a_match_without_a_find_is_said(capsys: Capture) -> None:
    out = answer(capsys, "memory", str(REPORT), "--match", "no such thing")
    for what in ("vertices", "compute sets", "exchanges", "variables"):
        assert f"There are no {what} whose name matches 'no such thing'." in out
    assert answer_csv(capsys, "memory", str(REPORT), "--show", "variables", "--match", "no such thing") == []


# ------------------------------------------------------------------------------------------------- what is missing
def test_what_was_not_captured_is_said_and_the_rest_shown(capsys: Capture) -> None:
    how = 'engine option "autoReport.outputLoweredVars": "true"'
    data = answer_json(capsys, "memory", str(NO_LOWERED), "--match", ".")
    assert data["not_captured"] == [{"part": "variables", "table": "lowered_variables", "how": how}]
    assert {"vertices", "compute_sets", "exchanges"} <= set(data)
    assert how in answer(capsys, "memory", str(NO_LOWERED), "--match", ".")
    assert answer_json(capsys, "memory", str(NO_LOWERED))["not_captured"] == []


@pytest.mark.parametrize("words", [["--show", "variables"], ["--map", "0"], ["--show", "totals", "--show", "map"]])
def test_what_was_asked_for_and_not_captured_ends_with_4(capsys: Capture, words: list[str]) -> None:
    err = refusal(capsys, 4, "memory", str(NO_LOWERED), *words)
    assert "'lowered_variables' was not captured in this report; to capture it: engine option" in err


def test_a_report_without_memory_ends_with_4(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    path = make_profile({"runs": [(0, "step", 0, 10)]})
    for words in ([], ["--worst", "2"], ["--ipu", "0"], ["--show", "tiles"], ["--match", "x"]):
        assert "was not captured" in refusal(capsys, 4, "memory", str(path), *words)


def test_tiles_without_a_target_are_shown_as_far_as_known(capsys: Capture, make_profile: Callable[..., Path]) -> None:
    path = make_profile({"tile_memory": [(0, 500, 490, 500, 490, 0, 0, 0, 0, 30, 40)]})
    data = answer_json(capsys, "memory", str(path))
    assert [row["tile"] for row in data["tiles"]] == [0]
    assert data["totals"]["capacity_bytes"] is None
    assert [one["part"] for one in data["not_captured"]] == ["ipus", "categories"]
    assert "the size of a tile's memory was not captured" in answer(capsys, "memory", str(path))


# ------------------------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--tiles", "0,x"], "'x' is neither a number nor a range such as 100-200\n  0,x\n    ^"),
        (["--tiles", "9-3"], "counts down"),
        (["--tiles", "128"], "there is no tile 128; the report has tiles 0 to 127"),
        (["--tiles", ""], "neither a number nor a range"),
        (["--ipu", "2"], "there is no IPU 2; the report has IPUs 0 to 1"),
        (["--ipu", "-1"], "Invalid value for '--ipu'"),
        (["--worst", "0"], "Invalid value for '--worst'"),
        (["--top", "0"], "Invalid value for '--top'"),
        (["--map", "128"], "there is no tile 128"),
        (["--map", "x"], "Invalid value for '--map'"),
        (["--show", "nothing"], "Invalid value for '--show'"),
        (["--tiles", "0", "--ipu", "1"], "no tile is chosen by --tiles 0 --ipu 1"),
        (["--match", "x", "--show", "tiles"],
         "--match is about vertices, compute-sets, exchanges, variables; --show one of them"),
        (["--match", "x", "--map", "0"], "--match is about"),
        (["--match", "ab(c"], "--match: not a regular expression: missing ), unterminated subpattern\n  ab(c\n    ^\n"),
        (["--match", "漢*(?P<1>x)"], "\n  漢*(?P<1>x)\n         ^\n"),
        (["--match", "\x1b[z"], "\n  \\x1b[z\n      ^\n"),
        (["--match", "x{99999999999}"], "--match: not a regular expression: the repetition number is too large"),
    ],
)  # fmt: skip
def test_wrong_usage_ends_with_2(capsys: Capture, words: list[str], problem: str) -> None:
    err = refusal(capsys, 2, "memory", str(REPORT), *words)
    assert problem in err


def test_a_wrong_pattern_is_refused_before_the_report_is_looked_for(capsys: Capture, tmp_path: Path) -> None:
    assert "regular expression" in refusal(capsys, 2, "memory", str(tmp_path), "--match", "(")


def test_help_says_what_can_be_shown(capsys: Capture) -> None:
    out = answer(capsys, "memory", "--help")
    words = " ".join(out.split())
    for part in PARTS:
        assert part in words
    for option in ("--tiles", "--ipu", "--worst", "--show", "--match", "--top", "--map"):
        assert option in words
