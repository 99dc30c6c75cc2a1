"""Looking rows up by their keys, against a dict."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pvanalyse.analysis.columns import Keys

SMALL = st.integers(-6, 6)
ANY = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(SMALL | ANY, max_size=12), st.lists(SMALL | ANY, max_size=12), st.sampled_from([sorted, list]))
def test_the_first_row_of_each_key(keys: list[int], wanted: list[int], order: object) -> None:
    keys = order(keys)  # type: ignore[operator]
    rows = {key: at for at, key in reversed(list(enumerate(keys)))}
    found = Keys(np.array(keys, np.int64)).positions(np.array(wanted + keys, np.int64))
    assert found.tolist() == [rows.get(one, -1) for one in wanted + keys]


@given(st.integers(-50, 50), st.integers(1, 20), st.lists(st.integers(-80, 80)))
def test_keys_without_a_gap(first: int, count: int, wanted: list[int]) -> None:
    found = Keys(np.arange(first, first + count)).positions(np.array(wanted, np.int64))
    assert found.tolist() == [one - first if first <= one < first + count else -1 for one in wanted]
