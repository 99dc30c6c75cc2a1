"""The program tree: control programs, functions, and who calls whom."""

from __future__ import annotations

from .assembler import Assembler
from .graph import Lowered, Program, everywhere
from .network import ELEMENT_BYTES
from .settings import Settings

Triple = tuple[Program, Program, Program]


class Tree:
    """Arranges the passes of all operations.

    A stage's forward and backward passes are functions. The main control program loads the input, fills the pipeline,
    repeats its body, drains it, updates the weights and stores the loss. In the body the next input comes in while
    the IPUs compute.

    Attributes
    ----------
    controls, functions
        Roots.
    load, prefetch, store
        Stream copies: the first input, the later ones during computing, the loss.
    fill
        The exchange after stage i's first forward pass, for all stages but the last.
    body_exchange
        The exchange between stages in the body, if there are several.
    body
        First leaf of the repeated body.
    restore, save
        Stream copies of the optimiser's state, if it is kept in remote buffers.
    """

    def __init__(self, settings: Settings, make: Assembler, lowered: list[Lowered]) -> None:
        self.settings = settings
        self.make = make
        self.lowered = lowered
        self.stages = range(settings.machine.stages)
        self.scope = lowered[0].operation.name.partition("/")[0]
        self.remote_buffers: list[tuple[str, str, int, int]] = []
        self.restore: Triple | None = None
        self.save: Triple | None = None
        self.fill: list[Program] = []
        self.body_exchange: Program | None = None
        self.forwards = [
            self._function(f"{self.scope}/stage_{stage}/forward", stage, "forward") for stage in self.stages
        ]
        self.backwards: list[Program] = []
        if settings.training:
            self.backwards = [
                self._function(f"{self.scope}/stage_{stage}/backward", stage, "backward") for stage in self.stages
            ]
        self.functions = self.forwards + self.backwards
        batch = {0: settings.batch * settings.sequence * ELEMENT_BYTES["unsigned int"]}
        if settings.network == "convolutional":
            batch = {0: settings.batch * 3 * settings.sequence**2 * ELEMENT_BYTES["half"]}
        self.load = make.stream_copy(f"host_load/{self.scope}/input", "HostToDevice", batch)
        self.prefetch = make.stream_copy(f"host_load/{self.scope}/prefetch", "HostToDevice", batch, overlapped=True)
        self.store = make.stream_copy(
            f"host_store/{self.scope}/loss", "DeviceToHost", {self.stages[-1]: lowered[-1].operation.bytes}
        )
        self.body = make.external_sync()
        self.controls = [self._main()]
        if settings.training:
            self.controls.append(self._weights_to_host())

    def _function(self, name: str, stage: int, direction: str) -> Program:
        here = [one for one in self.lowered if one.operation.stage == stage]
        passes = [one.forward for one in here] if direction == "forward" else [one.backward for one in reversed(here)]
        return self._sequence(name, [program for programs in passes for program in programs], (stage,))

    def _sequence(self, name: str, children: list[Program], ipus: tuple[int, ...] = ()) -> Program:
        return Program("Sequence", name, children, ipus or self.make.all_ipus)

    def _call(self, function: Program) -> Program:
        ipu = function.ipus[0]
        size = self.settings.machine.tiles_per_ipu
        return Program("Call", function.name, [function], function.ipus, control_code={ipu: everywhere(size, 8)})

    def _main(self) -> Program:
        children = [self.make.external_sync(), *self.load]
        children += self._fill()
        size = self.settings.machine.tiles_per_ipu
        looping = {stage: everywhere(size, 20) for stage in self.stages}
        repeat = Program(
            "Repeat",
            f"{self.scope}/pipeline" if len(self.stages) > 1 else f"{self.scope}/gradientAccumulation",
            [self._sequence("", self._body())],
            self.make.all_ipus,
            self.settings.iterations,
            control_code=looping,
        )
        children.append(repeat)
        children += [self._call(backward) for backward in self.backwards[:-1]]
        if self.settings.training:
            children.append(self._weight_update())
        children += [self.make.external_sync(), *self.store, self._checkpoint()]
        return self._sequence(f"{self.scope}/{'training' if self.settings.training else 'inference'}", children)

    def _fill(self) -> list[Program]:
        programs: list[Program] = []
        for stage in self.stages[:-1]:
            programs += [self._call(self.forwards[earlier]) for earlier in range(stage + 1)]
            exchange = self._between_stages(f"{self.scope}/fill_{stage}/ipuCopy", [(stage, stage + 1)])
            self.fill.append(exchange[-1])
            programs += exchange
        return programs

    def _body(self) -> list[Program]:
        programs = [self.body]
        if len(self.stages) > 1:
            pairs = [(stage, stage + 1) for stage in self.stages[:-1]]
            if self.settings.training:
                pairs += [(stage + 1, stage) for stage in self.stages[:-1]]
            _, self.body_exchange = self._between_stages(f"{self.scope}/pipeline/ipuCopy", pairs)
            programs += [self.body_exchange, self.make.external_sync()]
        begin, middle, end = self.prefetch
        programs += [begin, middle, self.make.sync_answer()]
        programs += [self._call(function) for function in self.forwards + self.backwards[::-1]]
        return [*programs, self.make.external_sync(), end]

    def boundary_bytes(self, stage: int) -> int:
        """Bytes that stage `stage` hands to the next one."""
        last = [one for one in self.lowered if one.operation.stage == stage][-1]
        return last.operation.bytes

    def _between_stages(self, name: str, pairs: list[tuple[int, int]]) -> list[Program]:
        data_in: dict[int, int] = {}
        data_out: dict[int, int] = {}
        for sender, receiver in pairs:
            moved = self.boundary_bytes(min(sender, receiver))
            data_out[sender] = data_out.get(sender, 0) + moved
            data_in[receiver] = data_in.get(receiver, 0) + moved
        return self.make.global_exchange(f"{name}/GlobalExchange", data_in, data_out)

    def _weight_bytes(self, element_bytes: int) -> dict[int, int]:
        result: dict[int, int] = {}
        for one in self.lowered:
            if one.operation.weights:
                stage = one.operation.stage
                result[stage] = result.get(stage, 0) + one.operation.weight_elements * element_bytes
        return result

    def _weight_update(self) -> Program:
        children: list[Program] = []
        if len(self.stages) > 1:
            children += self._restore_state()
        if self.settings.machine.replicas > 1:
            moved = self._weight_bytes(ELEMENT_BYTES["half"])
            children += self.make.global_exchange("gcl/AllReduce/GlobalExchange", moved, moved)
        for stage in self.stages:
            here = [one.update for one in self.lowered if one.operation.stage == stage]
            updates = [update for update in here if update is not None]
            children.append(self._sequence(f"SgdUpdate/stage_{stage}", updates, (stage,)))
        if len(self.stages) > 1:
            self.save = self.make.stream_copy(
                "remote/Accl___store", "DeviceToRemote", self._weight_bytes(ELEMENT_BYTES["float"])
            )
            children += [self.make.external_sync(), *self.save]
        return self._sequence("SgdUpdate", children)

    def _restore_state(self) -> list[Program]:
        sizes = self._weight_bytes(ELEMENT_BYTES["float"])
        self.restore = self.make.stream_copy("remote/Accl___load", "RemoteToDevice", sizes)
        self.remote_buffers = [(f"Accl___stage_{s}", "float", count // 4, 1) for s, count in sorted(sizes.items())]
        return [self.make.external_sync(), *self.restore]

    def _checkpoint(self) -> Program:
        """Make a switch whose second case, never taken in a profiled run, stores the loss once more."""
        copies = self.make.stream_copy("checkpoint/loss", "DeviceToHost", {self.stages[-1]: 16})
        return Program(
            "OnEveryTileSwitch",
            "checkpoint/switchControl",
            [
                self._sequence("case_0", [self.make.internal_sync(0)]),
                self._sequence("case_1", [self.make.external_sync(), *copies]),
            ],
            self.make.all_ipus,
        )

    def _weights_to_host(self) -> Program:
        copies = self.make.stream_copy("weightsToHost", "DeviceToHost", self._weight_bytes(ELEMENT_BYTES["half"]))
        return self._sequence("weightsToHost", [self.make.external_sync(), *copies])
