"""The tree of debug contexts as arrays, against walks from context to context."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pvanalyse.analysis.context_tree import ContextTree


def make(rng: random.Random, number: int) -> tuple[list[int | None], list[int | None]]:
    """Return ids and parents: some ids twice or missing, parents anywhere, so that some are in circles."""
    ids: list[int | None] = [rng.choice((at, at, at, rng.randrange(number), None)) for at in range(number)]
    parents = [rng.choice((None, rng.randrange(number + 3), rng.randrange(at + 1), at - 1)) for at in range(number)]
    return ids, parents


def walks(ids: list[int | None], parents: list[int | None]) -> list[list[int]]:
    """Return for each row those from it up, a circle cut open above its first row."""
    row_of: dict[int, int] = {}
    for row, identity in enumerate(ids):
        if identity is not None:
            row_of.setdefault(identity, row)
    above = [None if parent is None else row_of.get(parent) for parent in parents]
    for row in range(len(ids)):
        seen = [row]
        while (upper := above[seen[-1]]) is not None and upper not in seen:
            seen.append(upper)
        if upper == row == min(seen):
            above[row] = None
    found = []
    for row in range(len(ids)):
        chain = [row]
        while (upper := above[chain[-1]]) is not None:
            chain.append(upper)
        found.append(chain)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_answers_are_those_of_walks(seed: int) -> None:
    # GIVEN contexts in trees and circles, some of them flagged
    rng = random.Random(seed)
    ids, parents = make(rng, rng.choice((0, 1, 2, 9, 150)))
    flags = np.array([rng.random() < 0.2 for _ in ids], bool)
    # WHEN asked about all of them at once
    columns = {"debug_context_id": pa.array(ids, pa.int64()), "parent_id": pa.array(parents, pa.int64())}
    tree = ContextTree(pa.table(columns))
    # THEN each has the answer of its own walk
    expected = walks(ids, parents)
    flagged = [[row for row in chain if flags[row]] for chain in expected]
    assert [tree.chain(row) for row in range(len(ids))] == expected
    assert tree.parent.tolist() == [chain[1] if len(chain) > 1 else -1 for chain in expected]
    assert tree.nearest(flags).tolist() == [chain[0] if chain else -1 for chain in flagged]
    assert tree.outermost(flags).tolist() == [chain[-1] if chain else -1 for chain in flagged]


def test_rows_of_ids_that_are_not_there() -> None:
    columns = {"debug_context_id": pa.array([5, None, 5, 2], pa.int64()), "parent_id": pa.nulls(4, pa.int64())}
    tree = ContextTree(pa.table(columns))
    assert tree.rows(pa.array([2, 5, None, 7, -1], pa.int64())).tolist() == [3, 0, -1, -1, -1]
    assert tree.rows(pa.chunked_array([[2], [None, 5]], pa.int64())).tolist() == [3, -1, 0]
