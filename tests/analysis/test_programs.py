"""The program tree, whole, against recursion over plain rows: random trees, shared, damaged and cyclic; the samples."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from pvanalyse import Report, open_report
from pvanalyse.accessors import ProgramsAccessor
from pvanalyse.analysis.programs import cut, find_programs, program_tree
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.render.programs import dot, nested_programs, tree_text
from tests.analysis.memory_cases import SAMPLE_NAMES, captured_of, report_of
from tests.oracle.frames import Answer, Captured, answer, assert_not_captured, assert_same, numbers, outcome, plain
from tests.oracle.reports import ODD_NAMES, Rows, write_debug_info, write_profile

TILES = 3
SEEDS = 25
COLUMNS = (
    "depth kind program_id parent_id type name repeat_count own_control_code_bytes control_code_bytes "
    "own_exchange_code_bytes exchange_code_bytes own_executions executions own_cycles cycles live_bytes note found "
    "left_out"
)
SUMMED = ("control_code_bytes", "exchange_code_bytes", "executions", "cycles")


# --------------------------------------------------------------------------------------------------------- random trees
def per_tile(rng: random.Random) -> bytes | None:
    return rng.choice((None, struct.pack(f"<{TILES}I", *(rng.choice((0, 8, 2**32 - 1)) for _ in range(TILES)))))


def random_rows(seed: int) -> dict[str, Rows]:
    """Return a report with a tree whose functions are shared, and which may be damaged and may hold cycles."""
    rng = random.Random(seed)
    ids = sorted(rng.sample(range(-3, 40), rng.randint(1, 14)))
    damaged, cyclic = rng.random() < 0.4, rng.random() < 0.4
    edges = [(rng.choice(ids[:at]), one) for at, one in enumerate(ids) if at and rng.random() < 0.9]
    edges += [tuple(sorted(rng.sample(ids, 2))) for _ in range(rng.randint(0, 8)) if len(ids) > 1]
    if cyclic:
        edges += [(rng.choice(ids), rng.choice(ids)) for _ in range(4)]
    if damaged:
        edges += [(rng.choice((*ids, 77)), rng.choice((77, 78, *ids))) for _ in range(3)]
    rng.shuffle(edges)
    kinds = ("function", "control", *(["odd"] if damaged else []))
    roots = [(rng.choice(kinds), rng.choice((*ids, 99) if damaged else ids)) for _ in range(rng.randint(0, 4))]
    steps = rng.sample(range(60), rng.randint(0, 30))
    rows: dict[str, Rows] = {
        "target": [{"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": TILES,
                    "num_tiles": TILES, "bytes_per_tile": 638_976, "clock_frequency": 1e9}],
        "programs": [
            {"program_id": one, "type": rng.choice(("Sequence", "Repeat", "OnTileExecute")),
             "name": rng.choice((*ODD_NAMES, f"a/{one}")), "debug_context_id": rng.choice((None, 1, 2, 3, 50)), "repeat_count": rng.choice((None, 7)),
             "control_code_by_tile": per_tile(rng), "code_bytes_by_tile": per_tile(rng)}
            for one in ids
        ],
        "program_children": [
            {"program_id": parent, "position": 2 * at, "child_id": child} for at, (parent, child) in enumerate(edges)
        ],
        "program_roots": [{"kind": kind, "position": at, "program_id": one} for at, (kind, one) in enumerate(roots)],
        "liveness_steps": [
            {"step": at, "program_id": rng.choice((*ids, 98)), "not_always_live_bytes": rng.randint(0, 99)}
            for at in range(rng.randint(0, 10))
        ],
        "execution_steps": [{"step_id": at, "run_id": 0, "program_id": rng.choice((*ids, 78, 98))} for at in steps],
        "execution_step_ipus": [
            {"step_id": step, "ipu": ipu, "cycles": rng.choice((0, 5, 2**62)), **dict.fromkeys(
                [f"{which}_{end}_{most}" for which in ("active", "all") for end in ("from", "to")
                 for most in ("min", "max")], 0)}
            for step in (*steps, 61) for ipu in (0, 1)
        ],
    }  # fmt: skip
    absent = rng.choice(("program_children", "program_roots", "liveness_steps", "execution_steps", "", ""))
    return {name: records for name, records in rows.items() if name != absent}


# ---------------------------------------------------------------------------------------------------------- brute force
class Brute:
    """The same by recursion, set by set."""

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.programs = {row["program_id"]: row for row in captured["programs"]}
        self.children: dict[int, list[int]] = {}
        ids = dict.fromkeys(self.programs)
        key = lambda row: (row["program_id"], row["position"])  # noqa: E731
        for row in sorted(captured.get("program_children", []), key=key):
            ids |= {row["program_id"]: None, row["child_id"]: None}
            self.children.setdefault(row["program_id"], []).append(row["child_id"])
        kinds = [row["kind"] for row in captured.get("program_roots", [])]
        order = ["control", "function", *(kind for kind in kinds if kind not in ("control", "function"))]
        self.roots = [
            (row["kind"], row["program_id"])
            for row in sorted(captured.get("program_roots", []), key=lambda row: (order.index(row["kind"]), row["position"]))
        ]  # fmt: skip
        ids |= dict.fromkeys(program for _, program in self.roots)
        everything: list[tuple[Any, ...]] = []
        done: set[int] = set()
        for kind, program in self.roots:
            self.visit(everything, done, kind, program)
        called = {child for below in self.children.values() for child in below}
        for program in [*(one for one in ids if one not in called), *ids]:
            if program not in done:
                self.roots.append(("other", program))
                self.visit(everything, done, "other", program)
        self.closing = {(row[3], row[2]) for row in everything if row[4] == "cycle"}

    def visit(self, rows: list[tuple[Any, ...]], done: set[int], kind: str, program: int,
              above: tuple[int, ...] = ()) -> None:  # fmt: skip
        note = "missing" if program not in self.programs else "shared" if program in done else ""
        note = "cycle" if program in above else note
        rows.append((len(above), kind, program, above[-1] if above else None, note))
        if program in done or program in above:
            return
        for child in self.children.get(program, []):
            self.visit(rows, done, kind, child, (*above, program))
        done.add(program)

    def tree(self, roots: list[tuple[str, int]] | None = None) -> Answer:
        rows: list[tuple[Any, ...]] = []
        done: set[int] = set()
        for kind, program in self.roots if roots is None else roots:
            self.visit(rows, done, kind, program)
        return answer(COLUMNS, [(*row[:4], *self.about(row[2]), row[4], True, 0) for row in rows])

    def below(self, program: int) -> set[int]:
        """The program and everything below it."""
        direct = [child for child in self.children.get(program, []) if (program, child) not in self.closing]
        return {program}.union(*(self.below(child) for child in direct))

    def about(self, program: int) -> tuple[Any, ...]:
        row = self.programs.get(program, {})
        costs: list[Any] = []
        for name in SUMMED:
            if name in ("executions", "cycles") and not {"execution_steps", "execution_step_ipus"} <= set(
                self.captured
            ):
                costs += [None, None]
            else:
                own = getattr(self, name)
                costs += [own(program), sum(own(one) for one in self.below(program))]
        live = [
            step["not_always_live_bytes"]
            for step in self.captured.get("liveness_steps", [])
            if step["program_id"] in self.below(program)
        ]
        return row.get("type", ""), row.get("name", ""), row.get("repeat_count"), *costs, max(live, default=None)

    def code(self, program: int, column: str) -> int:
        blob = self.programs.get(program, {}).get(column)
        return sum(numbers(blob, self.captured.target["num_tiles"]))

    def control_code_bytes(self, program: int) -> int:
        direct = {child for child in self.children.get(program, []) if (program, child) not in self.closing}
        column = "control_code_by_tile"
        return max(0, self.code(program, column) - sum(self.code(child, column) for child in direct))

    def exchange_code_bytes(self, program: int) -> int:
        return self.code(program, "code_bytes_by_tile")

    def steps(self, program: int) -> list[int]:
        return [row["step_id"] for row in self.captured["execution_steps"] if row["program_id"] == program]

    def executions(self, program: int) -> int:
        return len(self.steps(program))

    def cycles(self, program: int) -> int:
        steps = set(self.steps(program))
        return sum(row["cycles"] for row in self.captured["execution_step_ipus"] if row["step_id"] in steps)


RANDOM = [f"random {seed}" for seed in range(SEEDS)]
SMALL_SAMPLES = [name for name in SAMPLE_NAMES if name in ("lightweight", "out_of_memory")]
Case = tuple[Report, Brute]


@pytest.fixture(scope="module", params=[*RANDOM, *SMALL_SAMPLES])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    kind, _, seed = request.param.partition(" ")
    directory = report_of(kind, tmp_path_factory) if not seed else tmp_path_factory.mktemp(kind)
    if seed:
        write_profile(directory / "profile.pop", random_rows(int(seed)))
        write_debug_info(directory / "debug.cbor", 3)
    with open_report(directory) as report:
        yield report, Brute(captured_of(directory / "profile.pop"))


def test_the_random_trees_hold_what_can_go_wrong() -> None:
    seen: set[str] = set()
    for seed in range(SEEDS):
        captured = Captured.__new__(Captured)  # as if it had been written and read
        captured.update({name: records for name, records in random_rows(seed).items() if records})
        brute = Brute(captured)
        columns, rows = brute.tree()
        seen |= {row[columns.index(name)] for row in rows for name in ("note", "kind")}
        seen |= {"large" for row in rows if (row[columns.index("cycles")] or 0) > 2**63}
    assert seen == {"", "shared", "cycle", "missing", "control", "function", "odd", "other", "large"}


def test_the_tree_is_that_of_recursion(case: Case) -> None:
    report, brute = case
    assert_same(plain(program_tree(report)), brute.tree())


@pytest.mark.parametrize("kind", ["control", "function", "other"])
def test_trees_of_a_kind_start_at_its_roots(case: Case, kind: str) -> None:
    report, brute = case
    found = outcome(lambda: program_tree(report, kind=kind))
    if kind != "other" and "program_roots" not in brute.captured:
        assert found == "not captured"
    else:
        assert_same(found, brute.tree([root for root in brute.roots if root[0] == kind]))


def test_a_subtree_starts_at_its_program(case: Case) -> None:
    report, brute = case
    for program in list(brute.programs)[:20]:
        assert_same(plain(program_tree(report, root=program)), brute.tree([("chosen", program)]), program)


def test_a_depth_leaves_out_what_is_below_and_counts_it(case: Case) -> None:
    report, brute = case
    columns, rows = brute.tree()
    for depth in range(3):
        expected: list[list[Any]] = []
        for row in rows:
            if row[0] <= depth:
                expected.append(list(row))
            else:
                expected[-1][-1] += 1
        assert_same(plain(program_tree(report, depth=depth)), (columns, [tuple(row) for row in expected]), depth)
        # A tree that is cut again is as if it had been cut once.
        assert_same(plain(cut(program_tree(report, depth=depth + 1), depth)), (columns, [tuple(r) for r in expected]))


@pytest.mark.parametrize("pattern", ["a", "^$", "no such name at all", "weights|Conv"])
def test_a_pattern_keeps_what_matches_and_what_is_above(case: Case, pattern: str) -> None:
    report, brute = case
    columns, rows = brute.tree()
    found = [re.search(pattern, row[columns.index("name")]) is not None for row in rows]
    expected = []
    for at, row in enumerate(rows):
        # the rows below are those that follow and are deeper
        end = next((after for after in range(at + 1, len(rows)) if rows[after][0] <= row[0]), len(rows))
        if any(found[at:end]):
            expected.append((*row[:-2], found[at], 0))
    assert_same(plain(program_tree(report, pattern=pattern)), (columns, expected))
    once = {row[2]: row[2:16] for row, one in zip(reversed(rows), reversed(found), strict=True) if one}
    first = [row[2] for row, one in zip(rows, found, strict=True) if one]
    assert_same(plain(find_programs(report, pattern)), (columns[2:16], [once[one] for one in dict.fromkeys(first)]))


def test_shared_bodies_need_not_fit_into_one_set(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    report, brute = case
    monkeypatch.setattr("pvanalyse.analysis.program_graph._SHARED_AT_ONCE", 2)
    assert_same(plain(program_tree(report)), brute.tree())


# ----------------------------------------------------------------------------------------------------------- the samples
@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_everything_in_a_sample_is_below_its_control_programs(sample: str) -> None:
    # GIVEN a sample, whose functions are all called; WHEN its control programs are added up
    with open_report(report_of(sample, None)) as report:
        frame = program_tree(report, kind="control")
        tables = captured_of(report_of(sample, None) / "profile.pop")
        tops = frame[frame["depth"] == 0]
    # THEN every program is there, and so are all executed steps, cycles, exchange code and the peak
    assert set(frame["program_id"]) == {row["program_id"] for row in tables["programs"]}
    assert set(frame["note"]) <= {"", "shared"}
    tiles = tables.target["num_tiles"]
    code = [sum(numbers(row["code_bytes_by_tile"], tiles)) for row in tables["programs"]]
    assert tops["exchange_code_bytes"].sum() == sum(code)
    assert tops["live_bytes"].max() == max(row["not_always_live_bytes"] for row in tables["liveness_steps"])
    if "execution_steps" in tables:
        assert tops["executions"].sum() == len(tables["execution_steps"])
        assert tops["cycles"].sum() == sum(row["cycles"] for row in tables["execution_step_ipus"])
    else:
        assert frame[["executions", "cycles", "own_executions", "own_cycles"]].isna().all(axis=None)


@pytest.fixture(scope="module")
def training() -> Iterator[Case]:
    directory = report_of("pipelined/training", None)
    with open_report(directory) as report:
        yield report, Brute(captured_of(directory / "profile.pop"))


@pytest.mark.parametrize("pattern", ["LayerNorm", "layer_0", ".", "no such name at all"])
def test_an_operation_starts_at_its_outermost_programs(training: Case, pattern: str) -> None:
    check_operation(*training, pattern)


@pytest.mark.parametrize("pattern", ["first", "second", "third"])
def test_random_operations_start_at_their_outermost_programs(case: Case, pattern: str) -> None:
    report, brute = case
    check_operation(report, brute, pattern)
    # WHEN only what is below a program is looked at
    for program in list(brute.programs)[:5]:
        check_operation(report, brute, pattern, program)


def check_operation(report: Report, brute: Brute, pattern: str, root: int | None = None) -> None:
    """Hold the trees of an operation against those of recursion."""
    rows = brute.tree(None if root is None else [("chosen", root)])[1]
    order = dict.fromkeys(row[2] for row in rows)
    wanted = [one for one in order if one in programs_of_operation(brute.captured, pattern)]
    inside = {below for one in wanted for below in brute.below(one) - {one}}
    expected = brute.tree([("chosen", one) for one in wanted if one not in inside])
    assert_same(plain(program_tree(report, root=root, operation=pattern)), expected, (pattern, root))


def programs_of_operation(tables: Captured, pattern: str) -> set[int]:
    contexts = {one["id"]: one for one in tables.contexts["contexts"]}
    strings = tables.contexts["stringTable"]
    of_set = {row["compute_set_id"]: row["debug_context_id"] for row in tables.get("compute_sets", [])}
    found = set()
    for row in tables["programs"]:
        at = row["debug_context_id"]
        at = of_set.get(row["compute_set_id"]) if at is None else at
        while at in contexts:
            name = contexts[at].get("name")
            if name is not None and re.search(pattern, strings[name]):
                found.add(row["program_id"])
            at = contexts[at].get("parentId")
    return found


# --------------------------------------------------------------------------------------------------------- what is absent
@pytest.mark.parametrize("seed", range(3))
def test_without_programs_nothing_is_said(tmp_path: Path, seed: int) -> None:
    rows = {name: records for name, records in random_rows(seed).items() if name != "programs"}
    write_profile(tmp_path / "profile.pop", rows, ["programs"] if seed else [])
    with open_report(tmp_path) as report, pytest.raises(NotCaptured) as caught:
        program_tree(report)
    assert_not_captured(caught.value, Captured(tmp_path / "profile.pop"))


def test_an_operation_needs_debug_information(tmp_path: Path) -> None:
    write_profile(tmp_path / "profile.pop", random_rows(0))
    with open_report(tmp_path) as report, pytest.raises(NotCaptured, match="'debug_contexts' was not captured"):
        program_tree(report, operation="a")


QUESTIONS: dict[str, Callable[[Report], Any]] = {
    "there is no kind 'Control' of program tree; there are: control, function, other": lambda report: program_tree(
        report, kind="Control"
    ),
    "a root is the start of one tree, and a kind": lambda report: program_tree(report, kind="control", root=0),
    "there is no program 1234": lambda report: program_tree(report, root=1234),
    "not a regular expression: .*\n  \\(\n": lambda report: program_tree(report, pattern="("),
    "not a regular expression: .*\n  \\[": lambda report: program_tree(report, operation="["),
}


@pytest.mark.parametrize("message", QUESTIONS)
def test_questions_that_make_no_sense_are_refused(message: str) -> None:
    with open_report(report_of("lightweight", None)) as report, pytest.raises(UsageError, match=message):
        QUESTIONS[message](report)


# --------------------------------------------------------------------------------------------------- text, JSON, and DOT
def test_nested_programs_are_the_rows_put_into_one_another(case: Case) -> None:
    report, _ = case
    frame = program_tree(report)
    rows: list[dict[str, Any]] = []

    def unnest(programs: list[dict[str, Any]], depth: int) -> None:
        for program in programs:
            row = dict(program)
            children = row.pop("children")
            rows.append({"depth": depth, **row})
            unnest(children, depth + 1)

    unnest(json.loads(json.dumps(nested_programs(frame))), 0)
    columns, expected = plain(frame)
    assert rows == [dict(zip(columns, row, strict=True)) for row in expected]


def test_a_tree_as_deep_as_no_json_is_cut_there(tmp_path: Path) -> None:
    # GIVEN a tree far deeper than Python recurses
    number = 20_000
    rows: dict[str, Rows] = {
        "target": random_rows(0)["target"],
        "programs": [{"program_id": at, "type": "Sequence", "name": ""} for at in range(number)],
        "program_children": [{"program_id": at, "position": 0, "child_id": at + 1} for at in range(number - 1)],
        "program_roots": [{"kind": "control", "position": 0, "program_id": 0}],
    }
    write_profile(tmp_path / "profile.pop", rows)
    with open_report(tmp_path) as report:
        frame = program_tree(report)
    # THEN it is read whole, and JSON counts what it leaves out
    assert list(frame["depth"]) == list(range(number))
    [inner] = json.loads(json.dumps(nested_programs(frame)))
    while inner["children"]:
        [inner] = inner["children"]
    assert (inner["program_id"], inner["left_out"]) == (100, number - 101)
    assert len(tree_text(frame).splitlines()) == number


def test_text_is_a_line_for_each_row_indented_by_its_depth(tmp_path: Path) -> None:
    # GIVEN a tree with a function called twice, a cycle, a missing program and a name that is no line
    programs = [(0, "Sequence", "main", None), (1, "Repeat", "loop", 1500), (2, "Call", "", None), (3, "Sequence", "f\n\x1b", None)]  # fmt: skip
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 1), (3, 9)]
    rows: dict[str, Rows] = {
        "target": random_rows(0)["target"],
        "programs": [{"program_id": p, "type": t, "name": n, "repeat_count": r} for p, t, n, r in programs],
        "program_children": [{"program_id": a, "position": i, "child_id": b} for i, (a, b) in enumerate(edges)],
        "program_roots": [{"kind": "control", "position": 0, "program_id": 0}],
    }
    write_profile(tmp_path / "profile.pop", rows)
    with open_report(tmp_path) as report:
        programs_of = ProgramsAccessor(report)
        assert programs_of.text() == (
            "Sequence main\n"
            "| Repeat × 1,500 loop\n"
            "| | Call\n"
            "| | | Sequence f\\n\\x1b\n"
            "| | | | Repeat × 1,500 loop (contains this one: a cycle)\n"
            "| | | | ? (not in the report)\n"
            "| Call (shown above)\n"
        )
        cut_short = programs_of.tree(depth=1)
        assert programs_of.text(cut_short) == (
            "Sequence main\n| Repeat × 1,500 loop (4 more below)\n| Call (shown above)\n"
        )
        # THEN its graph has a node for each program and an edge for each row below another
        assert programs_of.dot() == (
            "digraph programs {\n"
            "  node [shape=box];\n"
            '  "0" [label="Sequence\\nmain"];\n'
            '  "1" [label="Repeat × 1,500\\nloop"];\n'
            '  "2" [label="Call"];\n'
            '  "3" [label="Sequence\\nf\\\\n\\\\x1b"];\n'
            '  "9" [label="?", style=dashed];\n'
            '  "0" -> "1";\n'
            '  "1" -> "2";\n'
            '  "2" -> "3";\n'
            '  "3" -> "1" [style=dashed];\n'
            '  "3" -> "9";\n'
            '  "0" -> "2";\n'
            "}\n"
        )
        assert [one["children"][1]["name"] for one in programs_of.nested()] == [""]
        assert list(programs_of.find("loop")["program_id"]) == [1]


@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_graphviz_draws_every_program_and_edge(tmp_path: Path, seed: int) -> None:
    program = shutil.which("dot")
    if program is None:
        pytest.skip("Graphviz is not installed")
    rows = random_rows(seed)
    for row in rows["programs"]:
        row["name"] += '"\\N\\l&lt;<b>{}|'
    write_profile(tmp_path / "profile.pop", rows)
    with open_report(tmp_path) as report:
        frame = program_tree(report)
    done = subprocess.run([program, "-Tjson"], input=dot(frame), capture_output=True, text=True, check=True)
    drawn = json.loads(done.stdout)
    assert {int(node["name"]) for node in drawn["objects"]} == set(frame["program_id"])
    assert len(drawn.get("edges", [])) == frame["parent_id"].notna().sum()
    svg = subprocess.run([program, "-Tsvg"], input=dot(frame), capture_output=True, text=True, check=True).stdout
    assert unescape(svg).count('"\\N\\l&lt;<b>{}|') == len(rows["programs"])
