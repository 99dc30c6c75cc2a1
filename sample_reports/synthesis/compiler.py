"""From a network to programs and variables with lifetimes."""

from __future__ import annotations

from .assembler import Assembler
from .debug_contexts import DebugContexts
from .graph import Graph, Lowered, Program, TileVector, Variable
from .network import Operation, convolutional, transformer
from .noise import Noise
from .settings import Settings
from .sharing import deal_out
from .tensors import Tensors
from .tree import Tree

_MATRIX = ("matmul", "conv")
_ROLES = {"softmax": "softmax", "norm": "norm", "elementwise": "elementwise", "gather": "gather", "pool": "pool"}
_GRADIENT_ROLES = {
    "softmax": "softmax",
    "norm": "norm",
    "elementwise": "elementwise_grad",
    "gather": "gather_grad",
    "pool": "pool_grad",
}
_SPREADS = {"norm": 0.25, "loss": 0.02}


def network_of(settings: Settings) -> list[Operation]:
    """Return the operations of the network that the settings describe."""
    size = (settings.layers, settings.machine.stages, settings.hidden, settings.sequence, settings.batch)
    if settings.network == "convolutional":
        return convolutional(*size)
    return transformer(*size, settings.regression)


def compile_network(settings: Settings, contexts: DebugContexts) -> Graph:
    """Compile the network for one replica.

    The variables of code and vertex state are not among the result's: they follow from the finished programs, see
    `code.code_variables`.
    """
    return _Compiler(settings, contexts).run()


class _Compiler:
    def __init__(self, settings: Settings, contexts: DebugContexts) -> None:
        self.settings = settings
        self.machine = settings.machine
        self.noise = Noise(settings.seed)
        self.contexts = contexts
        self.make = Assembler(self.machine, self.noise, contexts)
        self.variables: list[Variable] = []
        self.writers: dict[Variable, Program] = {}
        self.passes: dict[int, int] = {}

    def run(self) -> Graph:
        lowered = [self._forward(operation) for operation in network_of(self.settings)]
        if self.settings.training:
            for one in reversed(lowered):
                context = self.contexts.add_operation(one.operation, "backward")
                one.backward = self._body(one.operation, "backward", one.work, context)
            for one in lowered:
                if one.weight_work is not None:
                    one.update = self._update(one.operation, one.weight_work)
        tree = Tree(self.settings, self.make, lowered)
        tensors = Tensors(self.settings, self.contexts, lowered, tree)
        writers = self.writers | tensors.writers
        variables = self.variables + tensors.variables
        return Graph(tree.controls, tree.functions, self.make.compute_sets, variables, tree.remote_buffers, writers)

    # ------------------------------------------------------------------------------------------------ passes

    def _work(self, operation: Operation) -> TileVector:
        spread = _SPREADS.get(operation.kind, 1.0) * self.settings.spread
        return deal_out(operation.elements, self.machine, self.noise, operation.name, spread)

    def _weight_work(self, operation: Operation) -> TileVector:
        key = f"{operation.name}/weights"
        return deal_out(operation.weight_elements, self.machine, self.noise, key, self.settings.spread)

    def _forward(self, operation: Operation) -> Lowered:
        work = self._work(operation)
        context = self.contexts.add_operation(operation, "forward")
        lowered = Lowered(operation, self._body(operation, "forward", work, context), work)
        if operation.weights:
            lowered.weight_work = self._weight_work(operation)
        return lowered

    def _body(self, operation: Operation, direction: str, work: TileVector, context: int) -> list[Program]:
        stage, element = operation.stage, operation.element_type
        forward = direction == "forward"
        name = operation.name if forward else f"Gradient___{operation.name}"
        if operation.kind in _MATRIX:
            programs = self._matrix(operation, f"{name}/matmulGrouped/Conv_1", 1, work, context)
            if not forward:
                programs += self._matrix(operation, f"{name}/matmulGrouped/Conv_2", 2, work, context)
            return programs
        call = self.contexts.add_call(f"popops::{operation.kind}", f"{name}/Op", context, {"type": element})
        roles = _ROLES if forward else _GRADIENT_ROLES
        role = roles.get(operation.kind, "loss")
        programs = []
        if operation.kind in ("softmax", "norm", "gather", "loss"):
            programs += self.make.exchange(f"{name}/ExchangePre", stage, work // 4 * 4, call)
        if not forward and operation.kept == "recomputed":
            again = f"{name}/Recompute/{operation.kind.title()}"
            programs.append(
                self.make.compute(again, stage, [_ROLES[operation.kind]], element, work, operation.flops, call)
            )
        what = f"{name}/{operation.kind.title()}"
        programs.append(self.make.compute(what, stage, [role], element, work, operation.flops, call))
        if self.settings.staging:
            self._scratch(operation, programs, [(f"{name}/temporary", work * 2, "variable")])
        return programs

    def _matrix(self, operation: Operation, name: str, number: int, work: TileVector, context: int) -> list[Program]:
        """Rearrange and multiply, and with staging also copy and reduce in compute sets of their own."""
        stage, element = operation.stage, operation.element_type
        api = "poplin::matMul" if operation.kind == "matmul" else "poplin::convolution"
        args = {"shape": list(operation.shape), "type": element, "pass": number}
        call = self.contexts.add_call(api, name, context, args)
        moved = (operation.weight_elements // work.size // 8 * 8 + work // 2) * (work > 0)
        programs = self.make.exchange(f"{name}/ExchangePre", stage, moved, call)
        roles = ["convolve"] if element == "half" else ["convolve", "cast"]
        if self.settings.staging:
            copy = f"{name}/weightsRearranged/OnTileCopy-0"
            programs.append(self.make.compute(copy, stage, ["copy"], element, moved, 0, call))
        programs.append(self.make.compute(f"{name}/Convolve", stage, roles, element, work, operation.flops, call))
        if self.settings.staging:
            programs += self.make.exchange(f"{name}/Reduce/ExchangePre", stage, work * 4, call)
            programs.append(
                self.make.compute(f"{name}/Reduce0", stage, ["reduce"], element, work, operation.elements, call)
            )
            self._rearranged_and_partial(operation, name, moved, work, programs)
        return programs

    def _rearranged_and_partial(
        self, operation: Operation, name: str, moved: TileVector, work: TileVector, programs: list[Program]
    ) -> None:
        rearranged = (f"{name}/weightsRearranged", moved, "message")
        partials = (f"{name}/partials", work * 4, "variable")
        self._scratch(operation, programs, [rearranged, partials])

    def _scratch(
        self, operation: Operation, programs: list[Program], wanted: list[tuple[str, TileVector, str]]
    ) -> None:
        """Make temporaries that live during one pass; all passes of an IPU share their addresses."""
        phase = self.passes[operation.stage] = self.passes.get(operation.stage, -1) + 1
        writer = next(program for program in programs if program.type == "OnTileExecute")
        for number, (name, size, category) in enumerate(wanted):
            variable = Variable(
                name,
                operation.stage,
                size,
                category,
                [(programs[0], programs[-1])],
                slot="scratch",
                phase=phase,
                interleaved=number > 0,
                context=self.contexts.add_leaf(name, writer.context or 0, "Variable"),
            )
            self.variables.append(variable)
            self.writers[variable] = writer

    def _update(self, operation: Operation, work: TileVector) -> Program:
        call = self.contexts.add_call("popops::scaledAddTo", f"{operation.name}/weights", 0, {"scale": -0.01})
        name = f"SgdUpdate/{operation.name}/weights/ScaledAdd"
        return self.make.compute(name, operation.stage, ["update"], "half", work, 2 * operation.weight_elements, call)
