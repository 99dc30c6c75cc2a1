"""Every table of a synthesised profile agrees with every other: compile-time memory, code, programs and liveness."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from itertools import combinations

from pvanalyse.tables import PROFILE, tables_of
from tests.sample_reports.reading import ELEMENT_BYTES, Profile, shared_addresses

REGIONS = ("nonInterleaved", "interleaved", "overflowed")
COLUMNS = dict(zip(REGIONS, ("non_interleaved", "interleaved", "overflowed"), strict=True))
EXCHANGE_CODE = {
    "DoExchange": "internalExchangeCode",
    "GlobalExchange": "globalExchangeCode",
    "StreamCopyMid": "hostExchangeCode",
}


def region_begins(profile: Profile) -> dict[str, int]:
    return {"nonInterleaved": 0, "interleaved": profile.target["interleaved_begin"]}


# ------------------------------------------------------------------------------------------------------- the layout


def test_the_tables_are_those_of_the_data_model(profile: Profile) -> None:
    # GIVEN what pvanalyse says a profile holds
    expected = {schema.name: list(schema.column_names) for schema in tables_of(PROFILE)}
    # WHEN the database's own columns are listed
    found = {
        table: [row["name"] for row in profile.rows(f"SELECT name FROM pragma_table_info('{table}')")]
        for table in profile.tables
    }
    # THEN they are the same, except for tables that were not captured
    assert found == {table: expected[table] for table in found}
    missing = set(expected) - set(found)
    assert missing in (set(), {"lowered_variables", "program_lowered_variables", "equivalence_class_intervals"})
    assert profile.value("PRAGMA application_id") == 0x50564131
    assert profile.value("PRAGMA integrity_check") == "ok"


def test_per_tile_columns_have_one_number_per_tile(profile: Profile) -> None:
    for schema in tables_of(PROFILE):
        if schema.name in profile.tables:
            for column in schema.columns:
                if column.name.endswith("_by_tile"):
                    sql = f"SELECT DISTINCT length({column.name}) FROM {schema.name} WHERE {column.name} IS NOT NULL"
                    assert {row[0] for row in profile.rows(sql)} <= {4 * profile.tiles}


def test_the_target_adds_up(profile: Profile) -> None:
    target = profile.target
    assert target["num_tiles"] == target["num_ipus"] * target["tiles_per_ipu"]
    assert target["num_ipus"] % target["num_replicas"] == 0
    assert sorted(profile.memory) == list(range(target["num_tiles"]))


# ------------------------------------------------------------------------------------------------------ memory by tile


def test_regions_add_up_to_the_tile(profile: Profile) -> None:
    for row in profile.memory.values():
        for gaps in ("including_gaps", "excluding_gaps"):
            assert row[f"total_{gaps}"] == sum(row[f"{column}_{gaps}"] for column in COLUMNS.values())
        for column in COLUMNS.values():
            assert 0 <= row[f"{column}_excluding_gaps"] <= row[f"{column}_including_gaps"]
        assert row["non_interleaved_including_gaps"] <= profile.target["interleaved_begin"]
        room = profile.target["bytes_per_tile"] - profile.target["interleaved_begin"]
        assert row["interleaved_including_gaps"] <= room


def test_memory_is_what_lies_at_the_addresses(lowered_profile: Profile) -> None:
    # GIVEN the allocations of a tile
    for tile, memory in lowered_profile.memory.items():
        expected = {}
        for region, begin in region_begins(lowered_profile).items():
            here = [v for v in lowered_profile.lowered[tile] if v["region"] == region]
            # WHEN their addresses are united
            union, _ = shared_addresses([(v["offset"], v["bytes"]) for v in here])
            highest = max((v["offset"] + v["bytes"] for v in here), default=begin)
            expected[region] = (highest - begin, union)
        lost = [v for v in lowered_profile.lowered[tile] if v["region"] == "overflowed"]
        padded = sum(-(-v["bytes"] // v["alignment"]) * v["alignment"] for v in lost)
        expected["overflowed"] = (padded, sum(v["bytes"] for v in lost))
        # THEN each region spans them with gaps and holds them without
        found = {
            region: (memory[f"{column}_including_gaps"], memory[f"{column}_excluding_gaps"])
            for region, column in COLUMNS.items()
        }
        assert found == expected


def test_allocations_lie_where_their_region_is(lowered_profile: Profile) -> None:
    interleaved, end = lowered_profile.target["interleaved_begin"], lowered_profile.target["bytes_per_tile"]
    for tile in lowered_profile.lowered.values():
        for variable in tile:
            assert variable["bytes"] > 0
            if variable["region"] == "overflowed":
                assert variable["offset"] is None
                continue
            first, last = (0, interleaved) if variable["region"] == "nonInterleaved" else (interleaved, end)
            assert first <= variable["offset"] < variable["offset"] + variable["bytes"] <= last
            assert variable["offset"] % variable["alignment"] == 0
            if variable["is_executable"]:
                assert variable["region"] == "nonInterleaved"


def test_kinds_of_allocations_follow_their_category(lowered_profile: Profile) -> None:
    sql = "SELECT DISTINCT category, is_executable, is_constant, always_live FROM lowered_variables"
    for row in lowered_profile.rows(sql):
        assert row["is_executable"] == int(row["category"].endswith("Code"))
        assert row["is_constant"] == int(row["category"] == "constant")
        assert row["always_live"] in (0, 1)
        assert row["always_live"] or row["category"] in ("variable", "message")


def test_nothing_overlaps_in_both_address_and_time(lowered_profile: Profile) -> None:
    # GIVEN which classes are ever live together (None: always live)
    classes = [None, *lowered_profile.intervals]
    together = {
        frozenset((one, other)): one is None or other is None or _meet(lowered_profile, one, other)
        for one, other in combinations(classes, 2)
    }
    # WHEN two allocations of a tile share an address
    for tile in lowered_profile.lowered.values():
        open_now: list[tuple[int, int | None]] = []
        for variable in sorted((v for v in tile if v["offset"] is not None), key=lambda v: v["offset"]):
            begin, number = variable["offset"], variable["equivalence_class_id"]
            open_now = [one for one in open_now if one[0] > begin]
            # THEN they are never live at once
            for _, other in open_now:
                assert number != other
                assert not together[frozenset((number, other))]
            open_now.append((begin + variable["bytes"], number))


def _meet(profile: Profile, one: int, other: int) -> bool:
    return any(a < d and c < b for a, b in profile.intervals[one] for c, d in profile.intervals[other])


def test_categories_split_the_bytes_of_each_region(lowered_profile: Profile) -> None:
    # GIVEN the bytes that each allocation has alone and shares
    expected: Counter[tuple[int, str, str, str]] = Counter()
    for tile, variables in lowered_profile.lowered.items():
        placed = [v for v in variables if v["offset"] is not None]
        _, alone = shared_addresses([(v["offset"], v["bytes"]) for v in placed])
        for variable, own in zip(placed, alone, strict=True):
            key = tile, variable["category"], variable["region"]
            expected[*key, "non_overlapped"] += own
            expected[*key, "overlapped"] += variable["bytes"] - own
        for variable in variables:
            if variable["offset"] is None:
                expected[tile, variable["category"], "overflowed", "non_overlapped"] += variable["bytes"]
    # WHEN the table is read in the same form
    found: Counter[tuple[int, str, str, str]] = Counter()
    for row in lowered_profile.rows("SELECT * FROM tile_memory_category"):
        assert row["non_overlapped"] or row["overlapped"]
        for column in ("non_overlapped", "overlapped"):
            found[row["tile"], row["category"], row["region"], column] = row[column]
    # THEN it says the same
    assert +found == +expected


def test_categories_and_shared_addresses_make_the_total(profile: Profile) -> None:
    # GIVEN the bytes alone and shared, by tile
    sql = "SELECT tile, sum(non_overlapped) AS alone, sum(overlapped) AS shared FROM tile_memory_category GROUP BY tile"
    for row in profile.rows(sql):
        total = profile.memory[row["tile"]]["total_excluding_gaps"]
        # THEN what is left of the total is shared by at least two: no more than half of the bytes that share
        assert row["alone"] <= total <= row["alone"] + row["shared"] // 2


# ------------------------------------------------------------------------------------------------------- code, state


def test_own_control_code_adds_up_to_the_tiles(profile: Profile) -> None:
    # GIVEN each program's control code with its children's
    inclusive = {number: profile.by_tile(row["control_code_by_tile"]) for number, row in profile.programs.items()}
    # WHEN the children's is taken off
    total = [0] * profile.tiles
    for number, by_tile in inclusive.items():
        below = [inclusive[child] for child in profile.children[number]]
        own = [size - sum(parts) for size, *parts in zip(by_tile, *below, strict=True)]
        assert min(own) >= 0
        if profile.programs[number]["type"] == "Sequence":
            assert not any(own)
        total = [a + b for a, b in zip(total, own, strict=True)]
    # THEN what programs have of their own is the tiles' control code
    assert total == profile.category_bytes["controlCode"]


def test_exchange_code_adds_up_to_the_tiles(profile: Profile) -> None:
    expected = {category: [0] * profile.tiles for category in EXCHANGE_CODE.values()}
    for row in profile.programs.values():
        if row["code_bytes_by_tile"] is not None:
            total = expected[EXCHANGE_CODE[row["type"]]]
            for tile, size in enumerate(profile.by_tile(row["code_bytes_by_tile"])):
                total[tile] += size
    assert {category: profile.category_bytes[category] for category in expected} == expected


def test_vertices_explain_their_code_and_state(profile: Profile) -> None:
    # GIVEN the vertices of all compute sets
    sizes = {row["vertex_type_id"]: row["instance_bytes"] for row in profile.rows("SELECT * FROM vertex_types")}
    instances: Counter[tuple[int, int]] = Counter()
    for row in profile.rows("SELECT * FROM compute_set_vertices"):
        for tile, count in enumerate(profile.by_tile(row["count_by_tile"])):
            if count:
                instances[tile, row["vertex_type_id"]] += count
    state = [0] * profile.tiles
    for (tile, vertex_type), count in instances.items():
        state[tile] += count * sizes[vertex_type]
    # WHEN the vertex code is read
    code = [0] * profile.tiles
    coded = set()
    for row in profile.rows("SELECT * FROM tile_vertices"):
        code[row["tile"]] += row["code_bytes"]
        coded.add((row["tile"], row["vertex_type_id"]))
    # THEN tiles hold the code of exactly the vertices they run, and the state of all instances
    assert coded == set(instances)
    assert code == profile.category_bytes["vertexCode"]
    assert state == profile.category_bytes["vertexInstanceState"]
    assert profile.value("SELECT num_vertices FROM graph") == sum(instances.values())


def test_compute_sets_take_cycles_where_they_have_vertices(profile: Profile) -> None:
    # GIVEN the tiles on which a compute set has vertices
    expected: dict[int, list[bool]] = {}
    for row in profile.rows("SELECT * FROM compute_set_vertices"):
        there = [count > 0 for count in profile.by_tile(row["count_by_tile"])]
        before = expected.setdefault(row["compute_set_id"], there)
        expected[row["compute_set_id"]] = [a or b for a, b in zip(before, there, strict=True)]
    # THEN it takes cycles there and nowhere else
    rows = profile.rows("SELECT * FROM compute_sets")
    found = {
        row["compute_set_id"]: [cycles > 0 for cycles in profile.by_tile(row["estimated_cycles_by_tile"])]
        for row in rows
    }
    assert found == expected


def test_the_graph_counts_its_rows(profile: Profile) -> None:
    (graph,) = profile.rows("SELECT * FROM graph")
    assert graph["num_variables"] == profile.value("SELECT count(*) FROM variables")
    assert graph["num_compute_sets"] == profile.value("SELECT count(*) FROM compute_sets")
    assert graph["num_edges"] >= graph["num_vertices"]


# ----------------------------------------------------------------------------------------------------------- programs


def test_the_program_tree_reaches_every_program(profile: Profile) -> None:
    roots = {row["program_id"] for row in profile.rows("SELECT * FROM program_roots")}
    # GIVEN the edges
    reached, waiting = set(), sorted(roots)
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += profile.children[number]
    # THEN every program can be reached, and only functions are children of a Call or of several programs
    assert reached == set(profile.programs)
    parents = defaultdict(list)
    for parent, children in profile.children.items():
        for child in children:
            parents[child].append(profile.programs[parent]["type"])
    for number, program in profile.programs.items():
        if number in roots:
            assert set(parents[number]) <= {"Call"}
        else:
            assert len(parents[number]) == 1
        assert bool(profile.children[number]) == (
            program["type"] in ("Sequence", "Repeat", "Call", "OnEveryTileSwitch")
        ), program["name"]
        assert (program["repeat_count"] is not None) == (program["type"] == "Repeat")
        assert (program["compute_set_id"] is not None) == (program["type"] == "OnTileExecute")


def test_every_compute_set_is_executed_by_a_program(profile: Profile) -> None:
    used = Counter(row["compute_set_id"] for row in profile.programs.values() if row["compute_set_id"] is not None)
    assert used == Counter(row["compute_set_id"] for row in profile.rows("SELECT * FROM compute_sets"))


def test_liveness_steps_are_the_programs_in_order(profile: Profile) -> None:
    # GIVEN the tree, a function's body unrolled at its first call
    seen = set()

    def steps(number: int) -> list[int]:
        kind = profile.programs[number]["type"]
        if kind == "Call" and profile.children[number][0] in seen:
            return [number]
        seen.add(number)
        below = [step for child in profile.children[number] for step in steps(child)]
        return below if kind in ("Sequence", "Repeat", "Call") else [number, *below]

    expected = [step for root in profile.controls for step in steps(root)]
    # THEN the liveness steps are its leaves
    rows = profile.rows("SELECT * FROM liveness_steps ORDER BY step")
    assert [row["program_id"] for row in rows] == expected
    assert [row["step"] for row in rows] == list(range(len(expected)))


# ----------------------------------------------------------------------------------------------------------- liveness


def test_live_bytes_of_each_tile(lowered_profile: Profile) -> None:
    for tile, memory in lowered_profile.memory.items():
        always = 0
        change: Counter[int] = Counter()
        for variable in lowered_profile.lowered[tile]:
            assert bool(variable["always_live"]) == (variable["equivalence_class_id"] is None)
            if variable["always_live"]:
                always += variable["bytes"]
            else:
                for begin, end in lowered_profile.intervals[variable["equivalence_class_id"]]:
                    change[begin] += variable["bytes"]
                    change[end] -= variable["bytes"]
        live = peak = 0
        for step in sorted(change):
            live += change[step]
            peak = max(peak, live)
        assert (memory["always_live_bytes"], memory["not_always_live_bytes"]) == (always, peak)


def test_live_bytes_of_each_step(profile: Profile) -> None:
    # GIVEN when each variable is live
    rows = profile.rows("SELECT * FROM liveness_steps ORDER BY step")
    expected = [0] * len(rows)
    for row in profile.rows("SELECT * FROM variable_liveness"):
        assert 0 <= row["step_begin"] < row["step_end"] <= len(rows)
        for step in range(row["step_begin"], row["step_end"]):
            expected[step] += row["bytes"]
    # THEN a step's bytes are those of the variables live then
    assert [row["not_always_live_bytes"] for row in rows] == expected


def test_variables_and_lowered_variables_live_alike(lowered_profile: Profile) -> None:
    # GIVEN the lowered variables of one replica, put together by variable
    always: Counter[tuple[int | None, str]] = Counter()
    lifetimes: Counter[tuple[int | None, str, int, int]] = Counter()
    for tile in range(lowered_profile.replica_tiles):
        for variable in lowered_profile.lowered[tile]:
            key = variable["variable_id"], variable["name"]
            if variable["always_live"]:
                always[key] += variable["bytes"]
            else:
                for interval in lowered_profile.intervals[variable["equivalence_class_id"]]:
                    lifetimes[*key, *interval] += variable["bytes"]
    # THEN the tables that need no lowered variables say the same
    found_always = lowered_profile.rows("SELECT * FROM always_live_variables")
    found = lowered_profile.rows("SELECT * FROM variable_liveness")
    assert {(row["variable_id"], row["name"]): row["bytes"] for row in found_always} == dict(always)
    assert len(found_always) == len(always)
    assert (
        Counter({(row["variable_id"], row["name"], row["step_begin"], row["step_end"]): row["bytes"] for row in found})
        == lifetimes
    )
    assert len(found) == len(lifetimes)


def test_always_live_variables_make_the_tiles_always_live_bytes(profile: Profile) -> None:
    one_replica = profile.value("SELECT sum(bytes) FROM always_live_variables")
    all_tiles = profile.value("SELECT sum(always_live_bytes) FROM tile_memory")
    assert one_replica * profile.target["num_replicas"] == all_tiles


def test_pseudo_variables_are_named_after_their_category(profile: Profile) -> None:
    of_replica = {
        category: sum(by_tile[: profile.replica_tiles]) for category, by_tile in profile.category_bytes.items()
    }
    pseudo = {
        row["name"]: row["bytes"]
        for row in profile.rows("SELECT * FROM always_live_variables WHERE variable_id IS NULL")
    }
    assert {"vertexCode", "controlCode", "internalExchangeCode", "stack", "vertexInstanceState"} <= set(pseudo)
    assert pseudo == {category: of_replica[category] for category in pseudo}


def test_replicas_have_the_same_memory(profile: Profile) -> None:
    for tile, row in profile.memory.items():
        assert tuple(row)[1:] == tuple(profile.memory[tile % profile.replica_tiles])[1:]


def test_declared_variables_are_as_large_as_their_shape(lowered_profile: Profile) -> None:
    # GIVEN the allocations of one replica
    found: Counter[int] = Counter()
    for tile in range(lowered_profile.replica_tiles):
        for variable in lowered_profile.lowered[tile]:
            if variable["variable_id"] is not None:
                found[variable["variable_id"]] += variable["bytes"]
    # THEN those of a variable hold its elements
    assert found == {
        row["variable_id"]: math.prod(json.loads(row["shape"])) * ELEMENT_BYTES[row["element_type"]]
        for row in lowered_profile.rows("SELECT * FROM variables")
    }


def test_programs_use_variables_that_exist_and_are_live(lowered_profile: Profile) -> None:
    # GIVEN the first step of each program
    first: dict[int, int] = {}
    for row in lowered_profile.rows("SELECT * FROM liveness_steps ORDER BY step"):
        first.setdefault(row["program_id"], row["step"])
    # THEN a program uses what is live at its step
    sql = """SELECT DISTINCT u.program_id, v.equivalence_class_id, v.always_live
             FROM program_lowered_variables u LEFT JOIN lowered_variables v USING (lowered_variable_id)"""
    for row in lowered_profile.rows(sql):
        assert row["always_live"] is not None
        if not row["always_live"]:
            intervals = lowered_profile.intervals[row["equivalence_class_id"]]
            assert any(begin <= first[row["program_id"]] < end for begin, end in intervals)
    used = lowered_profile.value("SELECT count(DISTINCT lowered_variable_id) FROM program_lowered_variables")
    pseudo = lowered_profile.value("SELECT count(*) FROM lowered_variables WHERE name = category")
    assert used + pseudo == lowered_profile.value("SELECT count(*) FROM lowered_variables")
