"""Sizes that follow from other sizes."""

from __future__ import annotations

import math

from .compiler import compile_network
from .debug_contexts import DebugContexts
from .execution import steps_of
from .machine import BYTES_PER_TILE
from .settings import Settings

_WEIGHT_SHARE = 0.4
_BYTES_PER_WEIGHT = 8
"""Half for the weight and its gradient, single precision for the optimiser's state."""


def fitting_hidden(settings: Settings) -> int:
    """Return a hidden size (or number of channels) whose weights take about two fifths of the tiles' memory."""
    machine = settings.machine
    layers = -(-settings.layers // machine.stages)
    share = int(_WEIGHT_SHARE * BYTES_PER_TILE * machine.compute_tiles)
    if settings.network == "convolutional":
        return max(math.isqrt(share // (64 * 9 * _BYTES_PER_WEIGHT * layers)) // 8 * 8, 8)
    return max(math.isqrt(share // (12 * _BYTES_PER_WEIGHT * layers)) // 64 * 64, 64)


def iterations_for(settings: Settings, steps: int) -> int:
    """Return the iterations with which all runs together take at least about `steps` steps."""
    graph = compile_network(settings, DebugContexts(settings.framework))
    repeat = next(program for program in graph.programs if program.type == "Repeat")
    body = steps_of(repeat.children[0]).size
    rest = steps_of(graph.controls[0]).size - settings.iterations * body
    return max(1, -(-(-(-steps // settings.runs) - int(rest)) // int(body)))
