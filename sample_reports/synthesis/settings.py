"""Everything that can be chosen about a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .machine import Machine
from .network import Regression


@dataclass(frozen=True)
class Settings:
    """What to compile, how to run it and what to capture.

    Attributes
    ----------
    network, framework
        Kind of network, and whose names and debug layers it wears.
    layers, hidden, sequence, batch
        Size of the network; for a convolutional one `hidden` is the channels and `sequence` the image's edge.
    iterations
        Micro-batches per run.
    runs
        Calls of the engine.
    staging
        Whether operations have temporaries, and matrix multiplications copy their inputs and reduce partial sums in
        compute sets of their own.
    spread
        The part of the tiles on which a large tensor lies, 0..1.
    lowered_variables
        At least this many rows, by splitting allocations into contiguous fragments; 0 leaves each whole.
    execution
        What the run recorded: "steps", "tiles" (steps with cycles by tile), "blocks" (lightweight) or "nothing".
    archive
        "none", "stripped" or "symbols".
    """

    network: Literal["transformer", "convolutional"] = "transformer"
    framework: Literal["popart", "tensorflow"] = "popart"
    engine: str = ""
    training: bool = True
    machine: Machine = field(default_factory=lambda: Machine(1))
    layers: int = 2
    hidden: int = 768
    sequence: int = 128
    batch: int = 2
    iterations: int = 4
    runs: int = 3
    seed: int = 1
    staging: bool = True
    spread: float = 1.0
    regression: Regression | None = None
    captured_lowered: bool = True
    lowered_variables: int = 0
    execution: Literal["steps", "tiles", "blocks", "nothing"] = "steps"
    archive: Literal["none", "stripped", "symbols"] = "stripped"
    compiled_at: str = "2022-05-03T10:15:30Z"
