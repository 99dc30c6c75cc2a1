"""Where to cut a row of layers into stages, knowing only what a stage of neighbouring layers costs.

A cost is a function of the first layer of a stage and of the one after its last, ``cost(first, stop)``. It may not
fall when a stage gets longer at either end: a stage needs what each part of it needs. A split is the list of the
stages' stops; its last is the number of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

Cost = Callable[[int, int], int]

_PROPORTIONS = (5, 6, 7, 8, 9, 10)  # tenths of the limit
_LEAST_LAYERS = (3, 2, 1)


def stages_of(stops: Sequence[int], first: int = 0) -> list[tuple[int, int]]:
    """Return first layer and stop of each stage."""
    return list(pairwise([first, *stops]))


def fullest(cost: Cost, stops: Sequence[int], first: int = 0) -> int:
    """Return the cost of the stage that costs most."""
    return max(cost(begin, stop) for begin, stop in stages_of(stops, first))


# ------------------------------------------------------------------------------------------------------------- exact
def exact_split(cost: Cost, num_layers: int, num_stages: int) -> list[int]:
    """Return the split into so many stages whose most costly stage costs the least that is possible.

    Of several such splits, the one is taken whose most costly stage comes first when stages are filled up to it, and
    the layers on either side of that stage are split in the same way.

    Parameters
    ----------
    cost
        Called as rarely as possible; it should remember what it found.
    num_layers, num_stages
        At least one layer for each stage.
    """
    farthest = [num_layers - number for number in reversed(range(num_stages))]  # each stage after it needs a layer
    even = [num_layers * number // num_stages for number in range(1, num_stages + 1)]
    limit = fullest(cost, even)
    return _balanced(cost, 0, _fill(cost, 0, limit, range(1, num_stages + 1), farthest))


def _balanced(cost: Cost, first: int, stops: list[int]) -> list[int]:
    """Return the best split of the same layers into as many stages, those of a fill up to what the fullest costs."""
    if len(stops) <= 1:
        return stops
    stops = _least(cost, first, stops)
    stages = stages_of(stops, first)
    costs = [cost(*stage) for stage in stages]
    at = costs.index(max(costs))
    end = stages[at][1]
    return [*_balanced(cost, first, stops[:at]), end, *_balanced(cost, end, stops[at + 1 :])]


def _least(cost: Cost, first: int, stops: list[int]) -> list[int]:
    """Return such a split, by bisection over what its most costly stage costs.

    Filling every stage as far as it goes finds a split within a limit when there is one; what its most costly stage
    costs is a better limit. When there is none, the answer is at least the least of the costs at which a stage was not
    continued. Stops move one way only with the limit of a fill: those of earlier limits enclose those of later ones.
    """
    num_stages, stop = len(stops), stops[-1]
    low, high = max(cost(at, at + 1) for at in range(first, stop)), fullest(cost, stops, first)
    nearest = [first + number for number in range(1, num_stages + 1)]
    last = [stop - number for number in reversed(range(num_stages))]
    while low < high:
        fill = _fill(cost, first, (low + high) // 2, nearest, stops)
        if fill[-1] == stop:
            stops, high = fill, fullest(cost, fill, first)
        else:
            stages = zip(stages_of(fill, first), last, strict=True)
            nearest, low = fill, min(cost(begin, end + 1) for (begin, end), most in stages if end < most)
    return stops


def _fill(cost: Cost, first: int, limit: int, nearest: Sequence[int], farthest: Sequence[int]) -> list[int]:
    stops: list[int] = []
    for near, far in zip(nearest, farthest, strict=True):
        stops.append(_reach(cost, first, limit, max(near, first + 1), far))
        first = stops[-1]
    return stops


def _reach(cost: Cost, first: int, limit: int, near: int, far: int) -> int:
    """Return the last stop up to ``far`` at which a stage is within the limit, knowing that it is at ``near``."""
    while near < far:
        middle = (near + far + 1) // 2
        near, far = (middle, far) if cost(first, middle) <= limit else (near, middle - 1)
    return near


# ------------------------------------------------------------------------------------------------------------ greedy
def greedy_split(cost: Cost, num_layers: int, num_stages: int, limit: int) -> list[int] | None:
    """Return the split that the published method finds, or None when it finds none.

    It fills one stage after another, with at least three layers each, up to half of the limit; when that takes too
    many stages, up to 60 %, and so on to the limit; then again with at least two layers each, then one. The last stage
    may have fewer layers, and there may be fewer stages. Source: ``greedy_solver.py`` of github.com/graphcore/popliner.

    Parameters
    ----------
    cost
        What a stage costs.
    num_layers, num_stages
        How many layers there are, and how many stages at most.
    limit
        What a stage may cost.
    """
    for least in _LEAST_LAYERS:
        for tenths in _PROPORTIONS:
            stops = _filled_from(cost, num_layers, num_stages, limit * tenths // 10, least)
            if stops is not None:
                return stops
    return None


def _filled_from(cost: Cost, num_layers: int, num_stages: int, limit: int, least: int) -> list[int] | None:
    stops: list[int] = []
    first = 0
    while first < num_layers:
        near = first + least if first + least <= num_layers else first + 1
        if len(stops) == num_stages or cost(first, near) > limit:
            return None
        first = _reach(cost, first, limit, near, num_layers)
        stops.append(first)
    return stops


def filled_split(cost: Cost, num_layers: int, num_stages: int, limit: int) -> list[int]:
    """Return a split for when none is within the limit: stages are filled up to it, the last takes what is left."""
    nearest = range(1, num_stages)
    farthest = range(num_layers - num_stages + 1, num_layers)
    return [*_fill(cost, 0, limit, nearest, farthest), num_layers]


def fewest_stages(cost: Cost, num_layers: int, limit: int) -> int | None:
    """Return how few stages there can be within a limit; None when a layer alone is beyond it."""
    stops = _filled_from(cost, num_layers, num_layers, limit, 1)
    return None if stops is None else len(stops)
