"""The layers of a program, between which a pipeline can be split: operations whose names say that they belong together.

A layer's operations need not follow one another: the backward pass and the update of the weights of a layer come long
after its forward pass, and belong to it. Layers are in the order in which they begin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pvanalyse.analysis.columns import Integers
from pvanalyse.analysis.memory_details import compiled
from pvanalyse.analysis.operation_groups import OperationGroups, operation_groups
from pvanalyse.errors import NotCaptured, UsageError
from pvanalyse.tables import TableSource, table

_NAMES_SHOWN = 5
_GRADIENTS = re.compile(r"\A(?:gradients(?:_\d+)?|gradient_tape)/(?=.)")


@dataclass(frozen=True)
class Layers:
    """The layers, in the order in which they begin.

    Attributes
    ----------
    names
        Of each layer.
    of_program
        The layer of each row of table ``programs``, −1 for none.
    first_step, stop_step
        The liveness steps from the first program of each layer to the one after its last, shape (layers,); 0 and 0
        for a layer that no step runs.
    num_operations
        Of each layer, shape (layers,).
    left_out
        How many operations that programs belong to are in no layer.
    grouped_by
        How the operations were told apart, see :class:`~pvanalyse.analysis.operation_groups.OperationGroups`.
    """

    names: Sequence[str]
    of_program: Integers
    first_step: Integers
    stop_step: Integers
    num_operations: Integers
    left_out: int
    grouped_by: str

    def __len__(self) -> int:
        return len(self.names)


def find_layers(source: TableSource, num_stages: int, pattern: str | None = None) -> Layers:
    """Return the layers of a program.

    Parameters
    ----------
    source
        A report.
    num_stages
        The stages that they are to be split into.
    pattern
        Regular expression; where it is found in the name of an operation, what its first group matched, or all of it
        without groups, is the name of the layer, and other operations are in none. Without one, layers are as many
        parts of the path of a name as it takes that none has more than its share of the programs: 1 / ``num_stages``.
        TensorFlow's ``gradients/`` and ``gradient_tape/`` before a path are no part of it, since gradients stay with
        what they are of; and what an operation's whole name begins the path of stays with that operation.

    Raises
    ------
    UsageError
        It is no regular expression, it is found nowhere, or there are fewer layers than stages.
    NotCaptured
        The report has no programs.
    """
    if not source.captured("programs"):
        raise NotCaptured("programs", table("programs").capture)
    groups = operation_groups(source)
    frame = groups.frame[groups.frame["num_programs"] > 0]
    names = frame["name"].astype(object)
    named = _by_path(names, frame["num_programs"], num_stages) if pattern is None else _by_pattern(names, pattern)
    layers = _layers(groups, named)
    if len(layers) < num_stages:
        found = "one layer" if len(layers) == 1 else f"{len(layers)} layers"
        advice = "" if pattern is None else "; choose another --layer-regex"
        raise UsageError(f"{found} cannot be split into {num_stages} stages{advice}")
    return layers


def _by_pattern(names: pd.Series[str], pattern: str) -> pd.Series[str]:
    """Return the layer of those operations that have one."""
    expression = compiled(pattern)
    layers = names.map(lambda name: _first_group(expression, name))
    layers = layers[layers != ""]
    if layers.empty:
        some = ", ".join(f"'{name}'" for name in names[names != ""].head(_NAMES_SHOWN))
        raise UsageError(f"'{pattern}' names no layer in any operation; operations are called {some or 'nothing'}")
    return layers


def _first_group(pattern: re.Pattern[str], name: str) -> str:
    match = pattern.search(name)
    if match is None:
        return ""
    return next((group for group in match.groups() if group), "") if pattern.groups else match[0]


def _by_path(names: pd.Series[str], programs: pd.Series[int], num_stages: int) -> pd.Series[str]:
    """Return the layer of those operations that have a name: so many parts of it that no layer has too much."""
    whole = names.map(lambda name: _GRADIENTS.sub("", name.strip("/")))
    whole = whole[whole != ""]
    own = set(whole)
    layers = whole
    for depth in range(1, 1 + max((name.count("/") + 1 for name in own), default=0)):
        layers = whole.map(lambda name, depth=depth: "/".join(name.split("/")[:depth]))
        if _is_fair(layers, programs, num_stages):
            break
    together = layers.map(lambda name: _shortest_among(own, name))
    return together if _is_fair(together, programs, num_stages) else layers


def _is_fair(layers: pd.Series[str], programs: pd.Series[int], num_stages: int) -> bool:
    """Tell whether no layer has more than its share of the programs."""
    share = programs[layers.index].groupby(layers).sum()
    return num_stages * max(share.tolist(), default=0) <= sum(share.tolist())


def _shortest_among(names: set[str], path: str) -> str:
    """Return the shortest beginning of a path that is a name itself: ``dense`` of ``dense/weights``."""
    parts = path.split("/")
    beginnings = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return next((beginning for beginning in beginnings if beginning in names), path)


def _layers(groups: OperationGroups, named: pd.Series[str]) -> Layers:
    """Return the layers of operations, of which some have a name, by their row."""
    codes, names = pd.factorize(named)  # operations are in execution order, and so are layers where they come first
    of_operation = np.full(len(groups.frame) + 1, -1)
    of_operation[named.index] = codes
    steps = groups.frame[["first_step", "last_step"]].loc[named.index].groupby(codes)
    first, last = steps["first_step"].min(), steps["last_step"].max()
    return Layers(
        names=[str(name) for name in names],
        of_program=of_operation[groups.of_program],
        first_step=first.fillna(0).to_numpy(np.int64),
        stop_step=(last.fillna(-1) + 1).to_numpy(np.int64),
        num_operations=np.bincount(codes, minlength=len(names)),
        left_out=int((groups.frame["num_programs"] > 0).sum()) - len(named),
        grouped_by=groups.grouped_by,
    )
