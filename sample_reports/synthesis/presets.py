"""The named samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .debug_contexts import DebugContexts
from .machine import Machine
from .network import ATTENTION, Regression, Source
from .report import framework_json, write_json, write_report
from .settings import Settings

Preset = Callable[[Path], None]

PIPELINED = Settings(
    engine="training",
    machine=Machine(2, tiles_per_ipu=64, io_tiles=8),
    layers=2,
    hidden=256,
    sequence=128,
    batch=2,
    iterations=4,
    runs=3,
    archive="symbols",
)
TRANSFORMER = Settings(
    machine=Machine(1, tiles_per_ipu=368, io_tiles=8),
    layers=2,
    hidden=448,
    sequence=256,
    batch=4,
    iterations=8,
    runs=3,
    seed=2,
    staging=False,
    spread=0.5,
)
REGRESSION = Regression(1, Source(ATTENTION, 88, "SelfAttention.forward"))
OUT_OF_MEMORY = Settings(
    machine=Machine(1, io_tiles=32),
    layers=1,
    hidden=1024,
    sequence=384,
    batch=10,
    seed=3,
    staging=False,
    spread=0.15,
    execution="nothing",
    archive="none",
)
TENSORFLOW = Settings(
    network="convolutional",
    framework="tensorflow",
    machine=Machine(1, tiles_per_ipu=96),
    layers=5,
    hidden=64,
    sequence=32,
    batch=4,
    iterations=4,
    runs=2,
    seed=4,
)
NO_LOWERED_VARIABLES = replace(
    PIPELINED,
    machine=Machine(4, tiles_per_ipu=64),
    engine="",
    layers=4,
    hidden=192,
    iterations=1,
    runs=2,
    seed=5,
    staging=False,
    captured_lowered=False,
    archive="stripped",
)
REPLICATED = Settings(
    network="convolutional",
    machine=Machine(4, replicas=2, tiles_per_ipu=48, io_tiles=4),
    layers=4,
    hidden=32,
    sequence=32,
    batch=4,
    iterations=2,
    runs=3,
    seed=6,
    execution="tiles",
)
LIGHTWEIGHT = replace(
    REPLICATED,
    machine=Machine(2, tiles_per_ipu=64),
    seed=7,
    execution="blocks",
    archive="none",
)
LARGE = Settings(
    machine=Machine(4, io_tiles=32),
    layers=24,
    hidden=0,
    sequence=128,
    batch=2,
    iterations=60,
    runs=4,
    seed=8,
    lowered_variables=4_000_000,
)
CUSTOM = Settings(hidden=0)
TF_DIRECTORY = "tf_report__2022-05-03__10-15-30__12345"


def single(settings: Settings) -> Preset:
    """Return a preset of one report with its own debug.cbor."""

    def write(directory: Path) -> None:
        contexts = DebugContexts(settings.framework)
        write_report(directory, settings, contexts)
        write_json(directory / "framework.json", framework_json(settings))
        contexts.write(directory / "debug.cbor")

    return write


def _pipelined(directory: Path) -> None:
    contexts = DebugContexts("popart")
    inference = replace(PIPELINED, engine="inference", training=False, runs=2, archive="stripped")
    for settings in (PIPELINED, inference):
        below = directory / settings.engine
        below.mkdir()
        write_report(below, settings, contexts)
        write_json(below / "framework.json", framework_json(settings))
    contexts.write(directory / "debug.cbor")


def _tensorflow(directory: Path) -> None:
    contexts = DebugContexts("tensorflow")
    below = directory / TF_DIRECTORY
    below.mkdir()
    write_report(below, TENSORFLOW, contexts)
    write_json(below / "framework.json", framework_json(TENSORFLOW))
    contexts.write(directory / "debug.cbor")
    (below / "debug.cbor").symlink_to("../debug.cbor")


COMMITTED: dict[str, Preset] = {
    "pipelined": _pipelined,
    "transformer_before": single(TRANSFORMER),
    "transformer_after": single(replace(TRANSFORMER, regression=REGRESSION)),
    "out_of_memory": single(OUT_OF_MEMORY),
    "tensorflow": _tensorflow,
    "no_lowered_variables": single(NO_LOWERED_VARIABLES),
    "replicated": single(REPLICATED),
    "lightweight": single(LIGHTWEIGHT),
}
"""What `--all` writes, by the name of the directory."""
