"""The tensors that the user's program declares, and from when until when each is needed."""

from __future__ import annotations

from .debug_contexts import DebugContexts
from .graph import Lowered, Program, TileVector, Variable
from .network import ELEMENT_BYTES, Operation
from .noise import Noise
from .settings import Settings
from .sharing import deal_out
from .tree import Tree

_LARGE = 4_096
"""Elements from which a tensor is worth the interleaved memory's wider loads."""


class Tensors:
    """Makes parameters, activations, gradients, optimiser state, inputs and what one stage hands to the next.

    Address sharing: an activation that the backward pass needs gives its place to the weights' gradient of the
    operation before; activations and gradients that only their neighbour needs take turns in two places.
    """

    def __init__(self, settings: Settings, contexts: DebugContexts, lowered: list[Lowered], tree: Tree) -> None:
        self.settings = settings
        self.contexts = contexts
        self.noise = Noise(settings.seed)
        self.tree = tree
        self.variables: list[Variable] = []
        self.writers: dict[Variable, Program] = {}
        self._inputs(lowered[0])
        for stage in tree.stages:
            here = [one for one in lowered if one.operation.stage == stage]
            for position, one in enumerate(here):
                after = here[position + 1] if position + 1 < len(here) else None
                self._parameters(one)
                self._activation(one, after, position)
                if settings.training:
                    self._gradients(one, after, position)
            self._handed_over(stage, here)

    def _declare(
        self, name: str, one: Lowered, element_type: str, shape: tuple[int, ...], work: TileVector, writer: Program
    ) -> Variable:
        parent = one.forward[-1].context or 0
        variable = Variable(
            name,
            one.operation.stage,
            work * ELEMENT_BYTES[element_type],
            shape=shape,
            element_type=element_type,
            interleaved=int(work.sum()) >= _LARGE,
            context=self.contexts.add_leaf(name, parent, "Variable"),
        )
        self.variables.append(variable)
        self.writers[variable] = writer
        return variable

    def _inputs(self, first: Lowered) -> None:
        settings = self.settings
        images = settings.network == "convolutional"
        shape = (
            (settings.batch, 3, settings.sequence, settings.sequence) if images else (settings.batch, settings.sequence)
        )
        element = "half" if images else "unsigned int"
        elements = sum(stream.bytes for stream in self.tree.load[1].streams) // ELEMENT_BYTES[element]
        for name, copy in (("input", self.tree.load), ("prefetch", self.tree.prefetch)):
            work = deal_out(elements, settings.machine, self.noise, f"{self.tree.scope}/{name}", 0.05)
            begin, _, end = copy
            variable = self._declare(f"{self.tree.scope}/{name}", first, element, shape, work, copy[1])
            variable.lifetime = [(begin, first.forward[-1] if name == "input" else end)]
            if name == "input" and self.settings.machine.stages == 1:
                variable.lifetime = [(begin, end), (first.forward[0], first.forward[-1])]

    def _parameters(self, one: Lowered) -> None:
        operation = one.operation
        if one.weight_work is None:
            return
        writer = one.update or one.forward[-1]
        self._declare(f"{operation.name}/weights", one, "half", operation.weights, one.weight_work, writer)
        if one.update is None:
            return
        state = self._declare(f"Accl___{operation.name}", one, "float", operation.weights, one.weight_work, writer)
        state.interleaved = False
        if self.tree.restore is not None and self.tree.save is not None:
            state.lifetime = [(self.tree.restore[0], self.tree.save[2])]
        if operation.kind == "norm":
            name = f"{operation.name}/epsilon"
            epsilon = self._declare(
                name, one, "float", (1,), deal_out(1, self.settings.machine, self.noise, name, 0), writer
            )
            epsilon.category = "constant"
            epsilon.constant = True

    def _activation(self, one: Lowered, after: Lowered | None, position: int) -> None:
        operation = one.operation
        output = self._declare(
            f"{operation.name}:0", one, operation.element_type, operation.shape, one.work, one.forward[-1]
        )
        consumer = after.forward[-1] if after else self._leaves(operation.stage)
        if one.backward and operation.kept != "forward":
            output.slot, output.phase = f"stash{position}", 0
            if operation.kept == "recomputed" and after:
                output.lifetime = [(one.forward[-1], consumer), (after.backward[0], one.backward[-1])]
            else:
                output.lifetime = [(one.forward[-1], one.backward[-1])]
        else:
            output.slot, output.phase = f"passing{position % 2}", position
            output.lifetime = [(one.forward[-1], consumer)]
        output.own_bank = operation.kind in ("gather", "pool")

    def _leaves(self, stage: int) -> Program:
        """Return the program that takes a stage's last activation away."""
        return self.tree.fill[stage] if stage < len(self.tree.fill) else self.tree.store[2]

    def _gradients(self, one: Lowered, after: Lowered | None, position: int) -> None:
        operation = one.operation
        if after is not None:
            name = f"Gradient___{operation.name}:0"
            gradient = self._declare(name, one, operation.element_type, operation.shape, one.work, after.backward[-1])
            gradient.slot, gradient.phase = f"gradient{position % 2}", position
            gradient.lifetime = [(after.backward[-1], one.backward[-1])]
        if one.update is not None and one.weight_work is not None:
            name = f"Gradient___{operation.name}/weights"
            gradient = self._declare(name, one, "half", operation.weights, one.weight_work, one.backward[-1])
            if after is not None and _gives_place(after.operation):
                gradient.slot, gradient.phase = f"stash{position + 1}", 1
            gradient.lifetime = [(one.backward[-1], one.update)]

    def _handed_over(self, stage: int, here: list[Lowered]) -> None:
        exchange = self.tree.body_exchange
        if exchange is None:
            return
        if stage > 0:
            filling = self.tree.fill[stage - 1]
            self._copy("ipuCopy", stage - 1, here[0], [(filling, here[0].forward[-1])], filling)
        if self.settings.training and stage < len(self.tree.fill):
            lifetime = [(self.tree.body, exchange), (here[-1].backward[0], here[-1].backward[-1])]
            self._copy("Gradient___ipuCopy", stage, here[-1], lifetime, exchange)

    def _copy(
        self, kind: str, boundary: int, one: Lowered, lifetime: list[tuple[Program, Program]], writer: Program
    ) -> None:
        elements = self.tree.boundary_bytes(boundary) // ELEMENT_BYTES["half"]
        name = f"{self.tree.scope}/stage_{boundary}/{kind}"
        work = deal_out(elements, self.settings.machine, self.noise, name, self.settings.spread)
        copy = self._declare(name, one, "half", (elements,), work, writer)
        copy.lifetime = lifetime


def _gives_place(operation: Operation) -> bool:
    """Say whether an activation's place is used again; attention's matrices keep theirs."""
    return operation.kept != "forward" and (bool(operation.weights) or operation.kind == "elementwise")
