"""Cutting layers into stages against every possible split, and against trying one layer more at a time."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from pvanalyse.analysis.splitting.partition import exact_split, fewest_stages, filled_split, fullest, greedy_split
from tests.oracle import splitting as oracle

Cost = Callable[[int, int], int]


def random_cost(seed: int, least: int = 1) -> tuple[Cost, int]:
    """A cost as memory has it: on each of some tiles the sizes of what any layer of a stage uses; the fullest counts."""
    rng = random.Random(seed)
    num_layers, tiles, things = rng.randint(least, 9), rng.randint(1, 3), rng.randint(1, 12)
    largest = rng.choice((1, 3, 1000, 2**40))
    sizes = [[rng.randint(0, largest) for _ in range(tiles)] for _ in range(things)]
    used = [{thing for thing in range(things) if rng.random() < rng.choice((0.1, 0.5))} for _ in range(num_layers)]

    def cost(first: int, stop: int) -> int:
        assert 0 <= first < stop <= num_layers, "a stage has a layer, and they are all there"
        held = set().union(*used[first:stop])
        return max(sum(sizes[thing][tile] for thing in held) for tile in range(tiles))

    return cost, num_layers


@pytest.mark.parametrize("seed", range(30))
def test_exact_is_the_best_of_all_splits(seed: int) -> None:
    # GIVEN a cost; WHEN split into every possible number of stages
    cost, num_layers = random_cost(seed)
    for num_stages in range(1, num_layers + 1):
        stops = exact_split(cost, num_layers, num_stages)
        # THEN it is a split, and none of all has a less costly fullest stage
        every = list(oracle.splits(num_layers, num_stages))
        assert stops in every
        assert fullest(cost, stops) == min(fullest(cost, one) for one in every)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_beside_the_fullest_stage_is_split_best_too(seed: int) -> None:
    # GIVEN a split into four stages; WHEN the layers before and after its fullest stage are looked at on their own
    cost, num_layers = random_cost(seed + 1000, least=4)
    stops = exact_split(cost, num_layers, 4)
    starts = [0, *stops[:-1]]
    costs = [cost(first, stop) for first, stop in zip(starts, stops, strict=True)]
    at = costs.index(max(costs))
    # THEN each part is split in the best way
    for begin, end, number, mine in ((0, starts[at], at, stops[:at]), (stops[at], num_layers, 3 - at, stops[at + 1 :])):
        if number:
            every = ([begin + stop for stop in one] for one in oracle.splits(end - begin, number))
            assert fullest(cost, mine, begin) == min(fullest(cost, one, begin) for one in every)


@pytest.mark.parametrize("seed", range(30))
def test_greedy_is_the_published_method(seed: int) -> None:
    # GIVEN a cost; WHEN filled by bisection; THEN stages stop where trying one layer more at a time has them stop
    cost, num_layers = random_cost(seed + 2000)
    whole = cost(0, num_layers)
    for num_stages in range(1, num_layers + 2):
        for limit in {1, whole // 3 + 1, whole // 2, whole * 3 // 4, whole, 2 * whole + 1}:
            expected = oracle.greedy(cost, num_layers, num_stages, limit)
            assert greedy_split(cost, num_layers, num_stages, limit) == expected


@pytest.mark.parametrize("seed", range(30))
def test_fewest_and_filled(seed: int) -> None:
    # GIVEN a cost and limits; WHEN asked how few stages fit; THEN that many do, in the best split, and no fewer
    cost, num_layers = random_cost(seed + 3000)
    whole = cost(0, num_layers)
    for limit in {0, whole // 3, whole // 2, whole - 1, whole}:
        best = [
            min(fullest(cost, one) for one in oracle.splits(num_layers, number)) for number in range(1, num_layers + 1)
        ]
        fitting = [number for number, size in enumerate(best, 1) if size <= limit]
        assert fewest_stages(cost, num_layers, limit) == (fitting[0] if fitting else None)
        # THEN what is filled has the stages asked for, each as long as the limit and the later stages let it be
        for number in range(1, num_layers + 1):
            stops = filled_split(cost, num_layers, number, limit)
            assert stops in list(oracle.splits(num_layers, number))
            for at, (first, stop) in enumerate(zip([0, *stops], stops[:-1], strict=False)):
                assert stop == first + 1 or cost(first, stop) <= limit
                assert stop == num_layers - number + 1 + at or cost(first, stop + 1) > limit


def test_asks_for_few_costs() -> None:
    # GIVEN 400 layers; WHEN split into 8 stages; THEN a small part of the 80,200 possible stages is asked for
    rng = random.Random(4)
    sizes = [rng.randint(1, 1000) for _ in range(400)]
    asked: set[tuple[int, int]] = set()

    def cost(first: int, stop: int) -> int:
        asked.add((first, stop))
        return sum(sizes[first:stop])

    exact_split(cost, 400, 8)
    assert len(asked) < 1500
