"""Flame grouping: against the groups that the vendor's viewer stored, a brute force, and cases one can see through."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse import UsageError, open_report
from pvanalyse.analysis.flame import FLAME_COLUMNS, GROUP, flame_blocks
from pvanalyse.analysis.intervals import interval_batches

Steps = list[tuple[str, str]]
Leaf = tuple[int, ...]  # an IPU and the steps of a block


def intervals(steps: Steps, lengths: list[int] | None = None) -> pd.DataFrame:
    """Steps one after the other on one IPU, given by type and name."""
    ends = pd.Series(lengths or [10] * len(steps), dtype="int64").cumsum()
    return pd.DataFrame({
        "step_id": range(len(steps)), "ipu": 0, "type": [kind for kind, _ in steps], "name": [name for _, name in steps],
        "begin": ends.shift(fill_value=0), "end": ends,
    })  # fmt: skip


def outline(frame: pd.DataFrame) -> list[str]:
    return ["  " * depth + (f"[{name}]" if kind == GROUP else f"{name} {steps}")
            for depth, kind, name, steps in zip(frame.depth, frame.type, frame.name, frame.step_ids, strict=True)]  # fmt: skip


def compute(*names: str) -> Steps:
    return [("InternalSync" if name == "sync" else "OnTileExecute", name) for name in names]


# ------------------------------------------------------------------------------------------------------ the real cache
class Tree:
    """Blocks and groups by the leaves that are in them, whatever their numbers and order."""

    def __init__(self) -> None:
        self.groups: dict[frozenset[Leaf], dict[str, Any]] = {}
        self.leaves: dict[Leaf, dict[str, Any]] = {}

    def add(self, frame: pd.DataFrame, ipu: int) -> None:
        frame = frame.set_index("block_id")
        inside: dict[int, set[Leaf]] = {number: set() for number in frame.index}
        for number, row in frame.iterrows():
            if row["type"] == GROUP:
                continue
            leaf = (ipu, min(row["step_ids"]))
            self.leaves[leaf] = {"number": number, **row}
            while number >= 0:
                inside[number].add(leaf)
                number = frame["parent_id"][number]
        within = {number: frozenset(leaves) for number, leaves in inside.items()}
        for row in self.leaves.values():
            if row["number"] in within and "parent" not in row:
                row["parent"] = within.get(row["parent_id"])
        for number, row in frame[frame["type"] == GROUP].iterrows():
            self.groups[within[number]] = {**row, "parent": within.get(row["parent_id"])}


@pytest.fixture
def trees(real_cache: Path) -> tuple[Tree, Tree]:
    """The tree that the viewer stored, and the one recomputed from the leaves of it."""
    stored, ours = Tree(), Tree()
    with open_report(real_cache) as report:
        blocks = report.arrow("trace_blocks").to_pandas()
        for ipu in (0, 1):
            ours.add(flame_blocks(pd.concat(interval_batches(report, "cache", ipus=[ipu]))), ipu)
    renamed = {"tag": "type", "cycles_from": "begin", "cycles_to": "end"}
    blocks = blocks.rename(columns=renamed).astype({"type": "str"})
    blocks["parent_id"] = blocks["parent_id"].fillna(-1).astype(int)
    for ipu, part in blocks.groupby("ipu"):
        stored.add(part, int(str(ipu)))
    return stored, ours


def differing(stored: dict[Any, dict[str, Any]], ours: dict[Any, dict[str, Any]], column: str) -> list[str]:
    """Names of what is in both and has another value."""
    both = stored.keys() & ours.keys()
    return [stored[key]["name"] for key in both if stored[key][column] != ours[key][column]]


def test_the_groups_are_those_that_the_viewer_stored(trees: tuple[Tree, Tree]) -> None:
    stored, ours = (tree.groups for tree in trees)
    assert (len(stored), len(ours), len(stored.keys() & ours.keys())) == (590, 590, 574)
    # A step named like the group that it starts or ends ("adamupdater/380" beside "adamupdater/380/updateStep"): the
    # viewer gives its steps to the group and leaves a nameless block outside. With us the block is in the group.
    missing = Counter(stored[key]["name"] for key in stored.keys() - ours.keys())
    assert missing == Counter(ours[key]["name"] for key in ours.keys() - stored.keys())
    assert (sum(missing.values()), {name.split("/")[0] for name in missing}) == (16, {"adamupdater"})
    assert sum(bool(len(row["step_ids"])) for row in stored.values()) == 16
    # All others have the same name, depth, parent and end.
    for column in ("name", "depth", "parent", "end"):
        assert differing(stored, ours, column) == []
    # In one group a step ran before its elder siblings; the viewer's group begins with the first by number.
    assert Counter(differing(stored, ours, "begin")) == {"nll_loss_with_softmax_grad/343": 12}


def test_the_blocks_are_where_the_viewer_put_them(trees: tuple[Tree, Tree]) -> None:
    stored, ours = (tree.leaves for tree in trees)
    assert (len(stored), stored.keys()) == (4604, ours.keys())
    for column in ("name", "begin", "end"):
        assert differing(stored, ours, column) == []
    # The 16 nameless blocks and the synchronisation before each are in the group with us; their sibling's parent is
    # a group of more blocks.
    assert Counter(differing(stored, ours, "depth")) == {"": 16, "Internal Sync": 16}
    assert Counter(differing(stored, ours, "parent")) == {"": 16, "Internal Sync": 16, "updateStep": 16}
    assert set(differing(stored, ours, "type")) == {"Mid"}  # which has the name of the program's type with us


# ------------------------------------------------------------------------------------------- against the definition
NAMES = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map("/".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["OnTileExecute", "DoExchange"]), NAMES),
        st.sampled_from([
            ("InternalSync", "Internal Sync"), ("Sync", "External Sync"), ("SyncAns", "SyncAns"),
            ("OnTileExecute", "copy7_a/b"), ("StreamCopyBegin", "a/b"), ("StreamCopyMid", "a/b"),
            ("StreamCopyEnd", "a/b"), ("GlobalExchange", "a/Global"),
        ]),
    ), max_size=14,
)  # fmt: skip


def shared(first: str, second: str) -> int:
    mine, theirs = first.split("/"), second.split("/")
    if mine == theirs:
        return len(mine) - 1
    return max(length for length in range(len(mine) + 1) if mine[:length] == theirs[:length])


def groups_by_definition(steps: Steps) -> dict[frozenset[int], str]:
    """Groups by the steps in them, with whole names, straight from what a group is."""
    stretches: list[list[tuple[int, str, str]]] = [[]]
    found: dict[frozenset[int], str] = {}
    triple: set[int] = set()
    for number, (kind, name) in enumerate(steps):
        if kind == "SyncAns":
            continue
        if kind.startswith("StreamCopy"):
            stretches.append([])
            triple = set() if kind == "StreamCopyBegin" else triple
            found.pop(frozenset(triple), None)
            triple |= {number}
            found[frozenset(triple)] = "StreamCopy"
            triple = set() if kind == "StreamCopyEnd" else triple
            continue
        triple = set()
        stretches[-1].append((number, "" if "Sync" in kind or name.startswith("copy7_") else name, kind))
    for stretch in stretches:
        named = [(at, name) for at, (_, name, _) in enumerate(stretch) if name]
        links = [0, *(shared(one[1], other[1]) for one, other in pairwise(named)), 0]
        for first in range(len(named)):
            for last in range(first + 1, len(named)):
                length = min(links[first + 1 : last + 1])
                if length > max(links[first], links[last + 1]):
                    inside = stretch[named[first][0] : named[last][0] + 1]
                    found[frozenset(number for number, _, _ in inside)] = "/".join(named[first][1].split("/")[:length])
    return found


@given(STEPS)
def test_groups_are_what_the_definition_says(steps: Steps) -> None:
    # GIVEN steps of which no two neighbours have one name
    steps = [one for at, one in enumerate(steps) if at == 0 or one[1] != steps[at - 1][1] or "Sync" in one[0]]
    steps = [one for at, one in enumerate(steps) if at == 0 or one != steps[at - 1] or one[0] == "SyncAns"]
    # WHEN they are grouped
    frame = flame_blocks(intervals(steps)).set_index("block_id")
    inside: dict[int, set[int]] = {number: set() for number in frame.index}
    whole: dict[int, str] = {}
    for number, row in frame.iterrows():
        parent = row["parent_id"]
        whole[number] = f"{whole[parent]}/{row['name']}" if parent >= 0 and row["type"] == GROUP else row["name"]
        # THEN depth and order are those of the parents, and a group reaches over what is in it
        assert row["depth"] == (frame["depth"][parent] + 1 if parent >= 0 else 0)
        assert parent < number
        assert parent < 0 or frame["begin"][parent] <= row["begin"] <= row["end"] <= frame["end"][parent]
        while number >= 0:
            inside[number] |= set(row["step_ids"])
            number = frame["parent_id"][number]
    groups = {frozenset(inside[number]): name for number, name in whole.items() if frame["type"][number] == GROUP}
    # AND the groups are those of the definition
    assert groups == groups_by_definition(steps)
    # AND every step is there once, with what is left of its name
    assert sorted(step for steps_of in frame["step_ids"] for step in steps_of) == list(range(len(steps)))


# ------------------------------------------------------------------------------------------------------ one by one
@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            compute("mm/1/Convolve", "sync", "mm/1/Reduce", "sync", "add/2"),
            ["[mm/1]", "  Convolve [0]", "  sync [1]", "  Reduce [2]", "sync [3]", "add/2 [4]"],
            id="synchronisation is inside a group and not at its end",
        ),
        pytest.param(
            compute("mm/1/x", "copy3_Copy_y_to_mm/1/z", "mm/1/z"),
            ["[mm/1]", "  x [0]", "  copy3_Copy_y_to_mm/1/z [1]", "  z [2]"],
            id="a copy of the compiler keeps its name",
        ),
        pytest.param(
            compute("a/1/x", "a/1/y", "a/2", "b"),
            ["[a]", "  [1]", "    x [0]", "    y [1]", "  2 [2]", "b [3]"],
            id="a group in a group is found when the outer one is closed later",
        ),
        pytest.param(
            [("DoExchange", "a/x"), ("OnTileExecute", "a/x"), ("OnTileExecute", "b")],
            ["a/x [0, 1]", "b [2]"],
            id="equal neighbours are one block",
        ),
        pytest.param(
            [("InternalSync", "s"), ("SyncAns", "SyncAns"), ("SyncAns", "SyncAns"), ("InternalSync", "s")],
            ["s [0]", "SyncAns [1]", "SyncAns [2]", "s [3]"],
            id="but not around SyncAns, nor SyncAns itself",
        ),
        pytest.param(
            [("StreamCopyBegin", "in/Begin"), ("StreamCopyEnd", "in/End"), ("StreamCopyBegin", "in/Begin"),
             ("StreamCopyMid", "in/ Host -> Device"), ("StreamCopyEnd", "in/End"), ("OnTileExecute", "in/x")],
            ["[StreamCopy]", "  Begin [0]", "  End [1]", "[StreamCopy]", "  Begin [2]", "  Mid [3]", "  End [4]",
             "in/x [5]"],
            id="stream copies are groups of their own, with a part missing where an IPU has none",
        ),
        pytest.param(compute("x", "y"), ["x [0]", "y [1]"], id="nothing shared"),
        pytest.param(compute("x/", "x//y"), ["[x/]", "   [0]", "  y [1]"], id="empty parts of names"),
        pytest.param(compute("", ""), [" [0]", " [1]"], id="no names"),
        pytest.param([], [], id="nothing"),
    ],
)  # fmt: skip
def test_one_by_one(steps: Steps, expected: list[str]) -> None:
    frame = flame_blocks(intervals(steps))
    assert list(frame.columns) == list(FLAME_COLUMNS)
    assert outline(frame) == expected


def test_a_step_that_took_no_time_is_not_there() -> None:
    # GIVEN a step between two of one name, which another IPU took part in and this one did not
    frame = flame_blocks(intervals(compute("a/x", "b", "a/x"), [5, 0, 7]))
    # THEN the two are neighbours
    assert outline(frame) == ["a/x [0, 2]"]
    assert frame[["begin", "end"]].to_numpy().tolist() == [[0, 12]]


def test_one_ipu_at_a_time() -> None:
    frame = intervals(compute("a", "b"))
    frame["ipu"] = [0, 1]
    with pytest.raises(UsageError, match="one IPU"):
        flame_blocks(frame)


def test_names_of_any_depth() -> None:
    # GIVEN names each of which starts with all that went before: a group in each group
    names = ["/".join("x" * length) for length in range(1, 2000)]
    frame = flame_blocks(intervals(compute(*names)))
    # THEN there is no limit but memory
    assert int(frame["depth"].max()) == 1998
    assert int((frame["type"] == GROUP).sum()) == 1998
