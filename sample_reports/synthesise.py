"""Make synthetic report directories, the same byte for byte every time.

The named samples have fixed sizes. Without --preset, or with --preset large, every size is an option.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from synthesis.presets import COMMITTED, CUSTOM, LARGE, Preset, single
from synthesis.settings import Settings
from synthesis.sizes import fitting_hidden, iterations_for

_SIZES = {
    "ipus": "IPUs, those of all replicas",
    "replicas": "copies of the program; divides the IPUs",
    "tiles_per_ipu": "tiles of an IPU; 1472 is the hardware",
    "io_tiles": "tiles of each IPU that only talk to the host",
    "layers": "layers of the network",
    "hidden": "hidden size or channels; 0 fills the tiles to about two thirds",
    "sequence": "tokens, or the edge of an image",
    "batch": "samples at a time",
    "iterations": "micro-batches in a run",
    "runs": "runs of the program",
    "lowered_variables": "allocations, at least; splits tensors into fragments",
    "execution_steps": "executed steps of all runs, about; sets the iterations",
    "seed": "of all irregularities",
}
_CHOICES = {
    "network": ("transformer", "convolutional"),
    "framework": ("popart", "tensorflow"),
    "execution": ("steps", "tiles", "blocks", "nothing"),
    "archive": ("none", "stripped", "symbols"),
}


def main() -> int:
    """Parse the command line and write the reports; return the exit code."""
    parser = _parser()
    arguments = parser.parse_args()
    chosen = {name: getattr(arguments, name) for name in (*_SIZES, *_CHOICES) if getattr(arguments, name) is not None}
    named = arguments.all or arguments.preset in COMMITTED
    if named and (chosen or arguments.inference or arguments.no_lowered_variables):
        parser.error("the named samples have fixed sizes")
    if arguments.all:
        targets = {arguments.output / name: preset for name, preset in COMMITTED.items()}
    elif named:
        targets = {arguments.output: COMMITTED[arguments.preset]}
    else:
        base = LARGE if arguments.preset == "large" else CUSTOM
        base = replace(
            base,
            training=not arguments.inference,
            captured_lowered=not arguments.no_lowered_variables,
        )
        try:
            targets = {arguments.output: single(_sized(base, chosen))}
        except ValueError as error:
            parser.error(str(error))
    existing = [directory for directory in targets if directory.exists()]
    if existing and not arguments.force:
        parser.error(f"{existing[0]} exists already; --force replaces it")
    for directory, preset in targets.items():
        _write(directory, preset)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--preset", choices=[*COMMITTED, "large"], help="a named sample, or about 1 GB")
    what.add_argument("--all", action="store_true", help="all named samples, each in a directory of its name")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory to make")
    parser.add_argument("--force", action="store_true", help="replace directories that exist")
    for name, text in _SIZES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=_whole_number, metavar="N", help=text)
    for name, choices in _CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices)
    parser.add_argument("--inference", action="store_true", help="no backward pass")
    parser.add_argument("--no-lowered-variables", action="store_true", help="leave out what the option would capture")
    return parser


def _whole_number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _sized(base: Settings, chosen: dict[str, Any]) -> Settings:
    chosen = dict(chosen)
    steps = chosen.pop("execution_steps", 0)
    fields = {name: chosen.pop(name) for name in ("ipus", "replicas", "tiles_per_ipu", "io_tiles") if name in chosen}
    settings = replace(base, machine=replace(base.machine, **fields), **chosen)
    _check(settings)
    if not settings.hidden:
        settings = replace(settings, hidden=fitting_hidden(settings))
    return replace(settings, iterations=iterations_for(settings, steps)) if steps else settings


def _check(settings: Settings) -> None:
    machine = settings.machine
    if machine.replicas < 1 or machine.ipus < machine.replicas or machine.ipus % machine.replicas:
        raise ValueError(f"{machine.ipus} IPUs cannot be shared by {machine.replicas} replicas")
    if machine.io_tiles >= machine.tiles_per_ipu:
        raise ValueError("an IPU needs tiles that compute, not only I/O tiles")
    if settings.layers < machine.stages:
        raise ValueError(f"{settings.layers} layers cannot be dealt out to {machine.stages} pipeline stages")
    if not (settings.sequence and settings.batch and settings.iterations and settings.runs):
        raise ValueError("sequence, batch, iterations and runs must be 1 or more")


def _write(directory: Path, preset: Preset) -> None:
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    preset(directory)
    print(directory)


if __name__ == "__main__":
    sys.exit(main())
