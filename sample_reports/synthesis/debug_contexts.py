"""debug.cbor: where every program and variable came from, layer below layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cbor2

from .network import Operation, Source

Fields = Mapping[str, Any]


class DebugContexts:
    """The contexts of one debug.cbor; several programs compiled together share it.

    A context is one flat map: `id`, `parentId`, `layer`, `name` and `location` (indices into the string table), and
    beside them whatever its layer recorded.
    """

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self._contexts: list[dict[str, Any]] = []
        self._strings: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._contexts)

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def add(self, layer: str, name: str, parent: int, source: Source, fields: Fields) -> int:
        """Add a context and return its id; a parent of 0 means that it is a root."""
        number = len(self._contexts) + 1
        location = {
            "functionName": self._string(source.function),
            "fileName": self._string(source.file),
            "lineNumber": source.line,
        }
        context = {"id": number, "parentId": parent, "layer": layer, "name": self._string(name), "location": location}
        self._contexts.append(context | dict(fields))
        return number

    def add_operation(self, operation: Operation, direction: str) -> int:
        """Add the framework's layers of one operation in one direction and return the id of the lowest."""
        layers = _tensorflow_layers if self.framework == "tensorflow" else _popart_layers
        parent = 0
        for layer, name, source, fields in layers(operation, direction):
            parent = self.add(layer, name, parent, source, fields)
        return parent

    def add_call(self, api: str, name: str, parent: int, args: Fields) -> int:
        """Add a call of a PopLibs function and return its id."""
        source = Source(f"poplibs/lib/{api.partition('::')[0]}/{api.rpartition('::')[2]}.cpp", 100 + len(api), api)
        return self.add("poplibs", name, parent, source, {"api": api, "args": dict(args), "output": name})

    def add_leaf(self, name: str, parent: int, category: str) -> int:
        """Add a context of Poplar itself and return its id."""
        source = Source("poplar/src/Program.cpp", 40 + len(category), f"poplar::program::{category}")
        return self.add("poplar", name, parent, source, {"category": category})

    def write(self, path: Path) -> None:
        """Write the file: leaves first, so that children come before their parents, and the strings last."""
        order = sorted(self._contexts, key=lambda context: (context["layer"] != "poplar", context["id"]))
        path.write_bytes(cbor2.dumps({"contexts": order, "stringTable": list(self._strings)}))


_Layer = tuple[str, str, Source, Fields]


def _popart_layers(operation: Operation, direction: str) -> list[_Layer]:
    kind = {"matmul": "MatMul", "norm": "GroupNormalization", "gather": "Gather"}.get(
        operation.kind, operation.kind.title()
    )
    suffix = "" if direction == "forward" else "Grad"
    torch = f"aten::{operation.kind}"
    onnx_fields = {
        "category": "op",
        "opName": operation.name,
        "opType": kind,
        "domain": "ai.onnx",
        "input": [f"{operation.name}/in"],
        "output": [operation.name],
        "attribute": [],
    }
    popart_fields = {
        "category": "op",
        "opid": f"ai.graphcore.{kind}{suffix}:1",
        "instanceId": str(len(operation.name)),
        "inputs": [f"{operation.name}/in"],
        "outputs": [operation.name],
        "attributes": {"__execution_phase": "0", "__pipeline_stage": str(operation.stage)},
        "graphId": "",
        "discard": 0,
    }
    builder = Source("popart/builder.cpp", 512, "popart::Builder::op")
    lowering = Source(f"popart/popx/op/{operation.kind}x.cpp", 88, f"popart::popx::{kind}{suffix}Opx::grow")
    torch_fields = {"op_type": torch, "op_name": operation.name, "torch_schema": f"{torch}(Tensor self) -> Tensor"}
    return [
        ("poptorch", operation.name, operation.source, torch_fields),
        ("onnx", operation.name, builder, onnx_fields),
        ("popart", f"{operation.name}{suffix}", lowering, popart_fields),
    ]


def _tensorflow_layers(operation: Operation, direction: str) -> list[_Layer]:
    source = operation.source
    suffix = "" if direction == "forward" else "_grad"
    opcode = {"conv": "convolution", "matmul": "dot", "pool": "reduce-window"}.get(operation.kind, "fusion")
    instruction = f"{opcode}.{len(operation.name)}{suffix}"
    element = {"half": "f16", "float": "f32"}[operation.element_type]
    signature = f"{element}[{','.join(map(str, operation.shape))}]"
    op_fields = {
        "category": "op",
        "op_name": f"gradients/{operation.name}{suffix}" if suffix else operation.name,
        "op_type": operation.name.rpartition("/")[2],
        "sourcefile": source.file,
        "sourceline": source.line,
    }
    hlo_fields = {
        "category": "hlo",
        "hlo_name": instruction,
        "hlo_id": len(operation.name),
        "opcode": opcode,
        "signature": signature,
        "debug_string": f"%{instruction} = {signature} {opcode}()",
        "operands": ["arg0.1"],
        "users": [],
        "computation": "pipeline_stage",
    }
    visitor = Source("tensorflow/compiler/plugin/poplar/driver/visitors/entry_visitor.cc", 210, "EntryVisitor::Handle")
    return [
        ("xla_op", operation.name, source, op_fields),
        ("hloinstruction", instruction, visitor, hlo_fields),
        ("poplar_driver", operation.name, visitor, {"category": "driver", "class": f"{operation.kind.title()}Op"}),
    ]
