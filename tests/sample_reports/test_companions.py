"""The files beside profile.pop agree with it, and the samples are what the README says they are."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.sample_reports.reading import (
    SAMPLES,
    Profile,
    program_headers,
    read_archive,
    read_contexts,
    section_headers,
)

MACHINE_IPU, MK2 = 248, 0x02
LOAD, SYMTAB, NOBITS = 1, 2, 8
EXECUTE = 1
IMAGE_BASE = 0x4C000


# ------------------------------------------------------------------------------------------------------- debug.cbor


def test_debug_context_ids_exist(profile: Profile) -> None:
    for table in ("programs", "compute_sets", "variables"):
        used = {row[0] for row in profile.rows(f"SELECT debug_context_id FROM {table}")} - {None}
        assert used
        assert used <= set(profile.debug_contexts)


def test_contexts_name_what_points_to_them(profile: Profile) -> None:
    for row in profile.rows(
        "SELECT name, debug_context_id FROM compute_sets UNION ALL SELECT name, debug_context_id FROM variables"
    ):
        context = profile.debug_contexts[row["debug_context_id"]]
        assert (context["name"], context["layer"]) == (row["name"], "poplar")


def test_programs_point_to_the_context_of_their_name(profile: Profile) -> None:
    for row in profile.programs.values():
        if row["debug_context_id"] is not None:
            name = profile.debug_contexts[row["debug_context_id"]]["name"]
            assert row["name"] == name or row["name"].startswith(f"{name}/")  # the three parts of a stream copy
        else:
            assert row["type"] in ("Sequence", "Repeat", "Call", "OnEveryTileSwitch", "Sync", "SyncAns")


def test_contexts_form_chains_through_the_layers(profile: Profile) -> None:
    # GIVEN the layers above a compute set of the model
    tensorflow = any(context["layer"] == "xla_op" for context in profile.debug_contexts.values())
    expected = ["poplar", "poplibs"]
    expected += ["poplar_driver", "hloinstruction", "xla_op"] if tensorflow else ["popart", "onnx", "poptorch"]
    sql = "SELECT debug_context_id FROM compute_sets WHERE name NOT LIKE 'SgdUpdate%'"
    for row in profile.rows(sql):
        layers, number = [], row["debug_context_id"]
        while number:
            context = profile.debug_contexts[number]
            layers.append(context["layer"])
            number = context["parentId"]
        # THEN they lead from Poplar to the line that the user wrote
        assert layers == expected
        assert context["file"].endswith(".py")
        assert context["location"]["lineNumber"] > 0


def test_children_come_before_their_parents_in_the_file() -> None:
    contexts = read_contexts(SAMPLES / "pipelined" / "debug.cbor")
    places = {number: place for place, number in enumerate(contexts)}
    early = [number for number, one in contexts.items() if one["parentId"] and places[number] < places[one["parentId"]]]
    assert early
    assert all(one["parentId"] in contexts for one in contexts.values() if one["parentId"])


def test_two_engines_share_the_debug_contexts_of_the_parent() -> None:
    used = []
    for engine in ("training", "inference"):
        profile = Profile(SAMPLES / "pipelined" / engine)
        assert not (profile.directory / "debug.cbor").exists()
        assert profile.value("SELECT value FROM report_info WHERE key = 'engine_name'") == engine
        used.append({row[0] for row in profile.rows("SELECT debug_context_id FROM compute_sets")})
    assert not used[0] & used[1]


# --------------------------------------------------------------------------------------------------------- archive.a


@pytest.fixture
def images(profile: Profile) -> dict[str, bytes]:
    path = profile.directory / "archive.a"
    if not path.exists():
        pytest.skip("this sample has no archive")
    return read_archive(path)


def test_executables_load_the_memory_of_their_tile(profile: Profile, images: dict[str, bytes]) -> None:
    assert list(images) == [f"tile_{tile}.elf" for tile in range(profile.tiles)]
    for tile, image in enumerate(images.values()):
        # GIVEN an executable for a Mk2 tile
        assert image[:7] == b"\x7fELF\x01\x01\x01"
        machine, flags = struct.unpack_from("<H", image, 18)[0], struct.unpack_from("<I", image, 36)[0]
        assert (machine, flags) == (MACHINE_IPU, MK2)
        # WHEN its segments are added up
        loaded = [header for header in program_headers(image) if header[0] == LOAD]
        memory = profile.memory[tile]
        # THEN they are the tile's memory with gaps, less what found no place
        assert sum(header[5] for header in loaded) == (
            memory["total_including_gaps"] - memory["overflowed_including_gaps"]
        )
        assert all(header[4] <= header[5] for header in loaded)
        assert {header[6] & EXECUTE for header in loaded} == {0, EXECUTE}


def test_code_segments_hold_the_code(lowered_profile: Profile, images: dict[str, bytes]) -> None:
    for tile, image in enumerate(images.values()):
        code = [v for v in lowered_profile.lowered[tile] if v["is_executable"]]
        end = max(v["offset"] + v["bytes"] for v in code)
        spans = [(h[2], h[5]) for h in program_headers(image) if h[6] & EXECUTE]
        assert spans == [(IMAGE_BASE, end)]


def test_sections_fill_the_segments(profile: Profile, images: dict[str, bytes]) -> None:
    for image in images.values():
        in_memory = [(h[3], h[5]) for h in section_headers(image) if h[2] & 2 and h[5]]
        loaded = sorted((header[2], header[5]) for header in program_headers(image))
        assert sum(size for _, size in in_memory) == sum(size for _, size in loaded)
        for begin, size in in_memory:
            assert any(first <= begin and begin + size <= first + length for first, length in loaded)
        assert sum(1 for h in section_headers(image) if h[1] == NOBITS) >= 2


def test_symbols_are_the_vertices_of_the_tile(profile: Profile, images: dict[str, bytes]) -> None:
    code: dict[int, list[int]] = {tile: [] for tile in range(profile.tiles)}
    for row in profile.rows("SELECT * FROM tile_vertices"):
        code[row["tile"]].append(row["code_bytes"])
    stripped = True
    for tile, image in enumerate(images.values()):
        for header in section_headers(image):
            if header[1] == SYMTAB:
                stripped = False
                symbols = list(struct.iter_unpack("<IIIBBH", image[header[4] : header[4] + header[5]]))[1:]
                assert sorted(symbol[2] for symbol in symbols) == sorted(code[tile])
                assert [one[1] + one[2] for one in symbols[:-1]] == [other[1] for other in symbols[1:]]
    # of the samples only one keeps its symbols, and so does a made one
    assert stripped or profile.directory.name in ("training", "report")


@pytest.mark.skipif(not (shutil.which("ar") and shutil.which("readelf")), reason="needs ar and readelf of binutils")
def test_binutils_reads_the_archives(profile: Profile, images: dict[str, bytes], tmp_path: Path) -> None:
    path = profile.directory / "archive.a"
    listed = subprocess.run(["ar", "t", path], capture_output=True, text=True, check=True).stdout.split()
    assert listed == list(images)
    subprocess.run(["ar", "x", path.resolve(), listed[-1]], cwd=tmp_path, check=True)
    assert (tmp_path / listed[-1]).read_bytes() == images[listed[-1]]
    shown = subprocess.run(["readelf", "-hlSsW", tmp_path / listed[-1]], capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    memory = [int(line.split()[5], 16) for line in shown.stdout.splitlines() if line.split()[:1] == ["LOAD"]]
    assert memory == [header[5] for header in program_headers(images[listed[-1]])]


# ---------------------------------------------------------------------------------------------------- particular samples


def test_the_transformer_pair_differs_by_what_is_documented() -> None:
    # GIVEN what the README says of the change
    documented = json.loads(Path(__file__).with_name("transformer_change.json").read_text("utf-8"))
    profiles = {side: Profile(SAMPLES / f"transformer_{side}") for side in ("before", "after")}
    # WHEN the same is read from the two profiles
    found: dict[str, object] = {"variable": documented["variable"]}
    for side, profile in profiles.items():
        (variable,) = profile.rows("SELECT * FROM variables WHERE name = ?", documented["variable"])
        lifetimes = profile.rows("SELECT * FROM variable_liveness WHERE name = ?", documented["variable"])
        (lifetime,) = lifetimes
        number = variable["debug_context_id"]
        while profile.debug_contexts[number]["parentId"]:
            number = profile.debug_contexts[number]["parentId"]
        source = profile.debug_contexts[number]
        found[side] = {
            "source": f"{source['file']}:{source['location']['lineNumber']}",
            "element_type": variable["element_type"],
            "bytes": lifetime["bytes"],
            "live_steps": [lifetime["step_begin"], lifetime["step_end"]],
            "liveness.peak_not_always_live": profile.value("SELECT max(not_always_live_bytes) FROM liveness_steps"),
            "memory.always_live": profile.value("SELECT sum(always_live_bytes) FROM tile_memory"),
            "memory.not_always_live": profile.value("SELECT sum(not_always_live_bytes) FROM tile_memory"),
            "memory.total_including_gaps": profile.value("SELECT sum(total_including_gaps) FROM tile_memory"),
            "memory.tile_max_including_gaps": profile.value("SELECT max(total_including_gaps) FROM tile_memory"),
        }
    # THEN it is the same, and the README's table says so
    assert found == documented
    readme = (SAMPLES / "README.md").read_text("utf-8")
    assert documented["after"]["source"] in readme
    for metric, before in documented["before"].items():
        if isinstance(before, int):
            after = documented["after"][metric]
            assert f"| {before:,} | {after:,} | +{after - before:,} |" in readme


def test_only_the_scores_and_what_follows_changed_between_the_pair() -> None:
    before, after = (Profile(SAMPLES / f"transformer_{side}") for side in ("before", "after"))
    sql = "SELECT name, element_type, shape FROM variables"
    changed = {tuple(row) for row in before.rows(sql)} ^ {tuple(row) for row in after.rows(sql)}
    scores = "bert/encoder/layer_1/attention/self/scores:0"
    assert {name for name, *_ in changed} == {scores, f"Gradient___{scores}"}
    sql = "SELECT name, bytes FROM always_live_variables WHERE variable_id IS NOT NULL"
    assert [tuple(row) for row in before.rows(sql)] == [tuple(row) for row in after.rows(sql)]
    names = "SELECT type, name FROM programs"
    assert [tuple(row) for row in before.rows(names)] == [tuple(row) for row in after.rows(names)]


def test_out_of_memory_overflows_on_some_tiles_and_did_not_run() -> None:
    profile = Profile(SAMPLES / "out_of_memory")
    full = profile.value("SELECT count(*) FROM tile_memory WHERE overflowed_including_gaps > 0")
    assert 0 < full < profile.tiles
    assert profile.value("SELECT max(total_including_gaps) FROM tile_memory") > profile.target["bytes_per_tile"]
    assert profile.value("SELECT count(*) FROM lowered_variables WHERE offset IS NULL") > 0
    for table in ("runs", "execution_steps", "execution_step_ipus", "execution_blocks"):
        assert profile.value(f"SELECT count(*) FROM {table}") == 0
    assert not (profile.directory / "archive.a").exists()
    assert profile.value("SELECT value FROM report_info WHERE key = 'compile_out_of_memory'") == "1"


def test_the_flag_says_whether_memory_ran_out(profile: Profile) -> None:
    overflowed = profile.value("SELECT sum(overflowed_including_gaps) FROM tile_memory") > 0
    flag = profile.value("SELECT value FROM report_info WHERE key = 'compile_out_of_memory'")
    assert flag == str(int(overflowed))


def test_tensorflow_links_to_the_parents_debug_contexts() -> None:
    (directory,) = (SAMPLES / "tensorflow").glob("tf_report__*__*")
    link = directory / "debug.cbor"
    assert link.is_symlink()
    assert link.resolve() == (SAMPLES / "tensorflow" / "debug.cbor").resolve()
    framework = json.loads((directory / "framework.json").read_text("utf-8"))
    assert set(framework) == {"TensorFlow", "System Information"}
    assert framework["TensorFlow"]["Cluster"].startswith("cluster_")


def test_committed_samples_are_small() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file() and not path.is_symlink()]
    sizes: dict[str, int] = {}
    for path in files:
        sample = path.relative_to(SAMPLES).parts[0]
        sizes[sample] = sizes.get(sample, 0) + path.stat().st_size
    assert max(sizes.values()) <= 5_000_000
    assert sum(sizes.values()) <= 25_000_000
    assert "Synthesised, not captured" in (SAMPLES / "README.md").read_text("utf-8")
    for path in SAMPLES.rglob("app.json"):
        assert json.loads(path.read_text("utf-8"))["synthesised"] is True
