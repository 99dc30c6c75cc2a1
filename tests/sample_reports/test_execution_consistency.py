"""What a synthesised profile says of the execution agrees with its programs, its estimates and with itself."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.sample_reports.reading import Profile

DATA = {"DoExchange", "GlobalExchange", "StreamCopyMid"}


def test_runs_execute_the_program_tree(executed_profile: Profile) -> None:
    profile = executed_profile

    # GIVEN a control program unrolled: calls followed, repeats repeated, of a switch the first case
    def steps(number: int) -> list[int]:
        program, children = profile.programs[number], profile.children[number]
        if program["type"] == "OnEveryTileSwitch":
            return [number, *steps(children[0])]
        if not children:
            return [number]
        return [step for child in children for step in steps(child)] * (program["repeat_count"] or 1)

    main, *others = profile.controls
    expected = {}
    for row in profile.rows("SELECT * FROM runs"):
        (root,) = [main] if row["name"].startswith("step_") else others
        expected[row["run_id"]] = steps(root)
    # THEN each run took these steps, in this order
    found = defaultdict(list)
    rows = profile.rows("SELECT * FROM execution_steps ORDER BY step_id")
    for row in rows:
        found[row["run_id"]].append(row["program_id"])
    assert found == expected
    assert [row["step_id"] for row in rows] == list(range(len(rows)))
    # and every step has a row for each IPU of the profiled replica
    assert sorted(profile.executed) == list(range(profile.replica_ipus))
    for ipu in profile.executed.values():
        assert [row["step_id"] for row in ipu] == [row["step_id"] for row in rows]


def test_intervals_nest(executed_profile: Profile) -> None:
    for ipu in executed_profile.executed.values():
        for row in ipu:
            assert row["cycles"] == row["active_to_max"] - row["active_from_max"]
            assert row["active_from_min"] <= row["active_from_max"] <= row["active_to_max"]
            assert row["active_from_min"] <= row["active_to_min"] <= row["active_to_max"]
            assert row["all_from_min"] <= row["active_from_min"] <= row["active_from_max"] <= row["all_from_max"]
            assert row["all_to_min"] <= row["active_to_min"] <= row["active_to_max"] <= row["all_to_max"]
            for column in ("tile_balance", "active_tile_balance"):
                assert (row[column] is None) == (row["cycles"] == 0)
                assert row[column] is None or 0 <= row[column] <= 1


def test_steps_of_an_ipu_follow_one_another(executed_profile: Profile) -> None:
    # GIVEN the steps of an IPU; sync answers and overlapped stream copies let the IPU go on
    prefetch = {
        n for n, p in executed_profile.programs.items() if p["type"] == "StreamCopyMid" and "prefetch" in p["name"]
    }
    for ipu in executed_profile.executed.values():
        free = 0
        begun = 0
        for row in ipu:
            # THEN none begins before the one that holds the IPU has ended
            assert row["all_from_min"] >= free
            assert row["all_from_min"] >= begun
            begun = row["all_from_min"]
            if row["type"] != "SyncAns" and row["program_id"] not in prefetch:
                free = row["all_to_max"]


def test_io_overlaps_with_computing(executed_profile: Profile) -> None:
    prefetch = [
        (row["active_from_max"], row["active_to_max"], row["run_id"])
        for row in executed_profile.executed[0]
        if row["type"] == "StreamCopyMid" and "prefetch" in executed_profile.programs[row["program_id"]]["name"]
    ]
    assert prefetch
    for begin, end, _ in prefetch:
        assert any(
            row["active_from_max"] < end and begin < row["active_to_max"]
            for row in executed_profile.executed[0]
            if row["type"] == "OnTileExecute"
        )


def test_common_steps_end_together(executed_profile: Profile) -> None:
    # GIVEN the steps that all IPUs do together
    ends = defaultdict(set)
    for ipu in executed_profile.executed.values():
        for row in ipu:
            name = executed_profile.programs[row["program_id"]]["name"]
            if row["type"] in ("StreamCopyBegin", "StreamCopyEnd") or name == "External Sync":
                ends[row["step_id"]].add(row["all_to_max"])
    # THEN they end on the same cycle
    assert ends
    assert {len(cycles) for cycles in ends.values()} == {1}


def test_cycles_by_tile_agree_with_the_ipus(executed_profile: Profile) -> None:
    profile = executed_profile
    size = profile.target["tiles_per_ipu"]
    measured = {
        row["step_id"]: profile.by_tile(row["cycles_by_tile"])
        for row in profile.rows("SELECT * FROM execution_steps WHERE cycles_by_tile IS NOT NULL")
    }
    # GIVEN tiles were measured where the report says so
    level = profile.value("SELECT value FROM report_info WHERE key = 'instrument_compute'")
    assert bool(measured) == (level == "Tile")
    for ipu, rows in profile.executed.items():
        for row in rows:
            if row["step_id"] not in measured:
                continue
            # WHEN the tiles of one IPU are looked at
            tiles = measured[row["step_id"]][ipu * size : (ipu + 1) * size]
            working = [cycles for cycles in tiles if cycles]
            # THEN the slowest gives the cycles, and mean and maximum the balances
            assert row["cycles"] == max(tiles)
            if working:
                assert row["active_to_min"] == row["active_from_min"] + min(working)
                assert abs(row["tile_balance"] - sum(tiles) / (size * max(tiles))) < 1e-12
                assert abs(row["active_tile_balance"] - sum(working) / (len(working) * max(tiles))) < 1e-12


def test_repeated_compute_sets_take_what_they_took(executed_profile: Profile) -> None:
    cycles = defaultdict(set)
    for ipu, rows in executed_profile.executed.items():
        for row in rows:
            if row["type"] in ("OnTileExecute", "DoExchange"):
                cycles[ipu, row["program_id"]].add(row["cycles"])
    assert {len(values) for values in cycles.values()} == {1}


def test_measured_cycles_are_near_the_estimate(executed_profile: Profile) -> None:
    profile = executed_profile
    size = profile.target["tiles_per_ipu"]
    estimates = {
        row["program_id"]: profile.by_tile(row["estimated_cycles_by_tile"])
        for row in profile.rows(
            """SELECT p.program_id, coalesce(c.estimated_cycles_by_tile, p.estimated_cycles_by_tile)
               AS estimated_cycles_by_tile FROM programs p LEFT JOIN compute_sets c USING (compute_set_id)
               WHERE p.type IN ('OnTileExecute', 'DoExchange')"""
        )
    }
    for ipu, rows in profile.executed.items():
        for row in rows:
            if row["program_id"] in estimates:
                estimate = max(estimates[row["program_id"]][ipu * size : (ipu + 1) * size])
                assert estimate <= row["cycles"] <= estimate * 1.06


def test_stream_copies_move_what_they_say(executed_profile: Profile) -> None:
    # GIVEN the bytes of each stream copy, in and out
    expected: dict[int, Counter[str]] = defaultdict(Counter)
    for row in executed_profile.rows("SELECT * FROM stream_copies"):
        expected[row["program_id"]]["in" if row["direction"].endswith("ToDevice") else "out"] += row["bytes"]
    # WHEN the IPUs' bytes of each step are added up
    moved: dict[tuple[int, int, str], Counter[str]] = defaultdict(Counter)
    for ipu in executed_profile.executed.values():
        for row in ipu:
            assert (row["data_in"] is None) == (row["data_out"] is None)
            assert row["data_in"] is None or row["type"] in DATA
            if row["data_in"] is not None:
                key = row["step_id"], row["program_id"], row["type"]
                moved[key] += Counter({"in": row["data_in"], "out": row["data_out"]})
    # THEN a stream copy moves them, and what leaves one IPU arrives at another
    kinds = set()
    for (_, program, kind), counter in moved.items():
        kinds.add(kind)
        if kind == "StreamCopyMid":
            assert +counter == expected[program]
        else:
            assert counter["in"] == counter["out"] > 0
    assert {"StreamCopyMid", "DoExchange"} <= kinds


def test_every_stream_copy_program_is_listed(profile: Profile) -> None:
    middles = {n for n, p in profile.programs.items() if p["type"] == "StreamCopyMid"}
    assert {row["program_id"] for row in profile.rows("SELECT * FROM stream_copies")} == middles
    kinds = Counter(program["type"] for program in profile.programs.values())
    assert kinds["StreamCopyBegin"] == kinds["StreamCopyMid"] == kinds["StreamCopyEnd"]


def test_remote_buffers_hold_what_remote_copies_move(profile: Profile) -> None:
    held = profile.rows("SELECT * FROM remote_buffers")
    moved = profile.rows("SELECT bytes FROM stream_copies WHERE direction IN ('RemoteToDevice', 'DeviceToRemote')")
    assert {row["bytes"] for row in moved} == ({sum(row["bytes"] for row in held)} if held else set())
    for row in held:
        assert row["bytes"] == row["num_elements"] * row["repeats"] * 4


def test_host_time_covers_the_cycles(executed_profile: Profile) -> None:
    clock = executed_profile.target["clock_frequency"]
    cycles: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for ipu in executed_profile.executed.values():
        for row in ipu:
            cycles[row["run_id"]].append((row["all_from_min"], row["all_to_max"]))
    previous_end, previous_cycle = 0, 0
    loaded = set()
    for row in executed_profile.rows("SELECT * FROM runs ORDER BY run_id"):
        begin = min(first for first, _ in cycles[row["run_id"]])
        end = max(last for _, last in cycles[row["run_id"]])
        device_us = (end - begin) / clock * 1e6
        # THEN the host waits for the device and little longer, and runs do not overlap in either time
        assert device_us <= row["end_us"] - row["start_us"] <= device_us + 100
        assert row["start_us"] > previous_end
        assert begin > previous_cycle
        previous_end, previous_cycle = row["end_us"], end
        loaded.add(row["start_us"] - begin * 1_000_000 // int(clock))
    # and both clocks go on between runs: cycle 0 is at one time
    assert len(loaded) == 1


def test_the_first_run_waits_longest_for_the_host(executed_profile: Profile) -> None:
    waits = defaultdict(list)
    for row in executed_profile.executed[0]:
        if row["type"] == "StreamCopyBegin":
            waits[row["run_id"]].append(row["cycles"])
    first, *others = [max(cycles) for _, cycles in sorted(waits.items())]
    assert first > 100 * max(others)


def test_blocks_lie_in_their_programs(profile: Profile) -> None:
    rows = profile.rows("SELECT * FROM execution_blocks ORDER BY block_id")
    # GIVEN lightweight profiling or none
    assert bool(rows) == bool(profile.rows("SELECT 1 FROM engine_options WHERE name = 'profiler.programs.filter'"))
    kinds = {"common": "OnTileExecute", "streamCopy": "StreamCopyMid"}
    for row in rows:
        assert row["cycles_from"] < row["cycles_to"]
        assert 0 <= row["tile"] < profile.tiles
        if row["kind"] in kinds:
            program = profile.programs[row["program_id"]]
            assert (program["type"], program["name"]) == (kinds[row["kind"]], row["name"])
        else:
            assert row["kind"] in ("overflow", "blockFlush")
            assert row["program_id"] is None
