"""Small random reports for operations: debug contexts of every layer in odd trees, and programs, variables, costs."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cbor2

from tests.oracle.reports import Rows, write_profile

LAYERS = ("xla_op", "hloinstruction", "poplar_driver", "poptorch", "popxl", "popartbuilder", "onnx", "popart", "popart",
          "poplibs", "poplibs", "poplar", "poplar", "somebody's own")  # fmt: skip
NAMES = (
    "",
    "a",
    "a/b",
    "a/b/c",
    "model/layer_0/mm",
    "model/layer_0/relu",
    "model/layer_1/mm",
    "日本/語",
    "it's\n/x",
    "/",
    "x/",
)
FILES = ("", "model.py", "layer:3.py", "poplar/Program.cpp")
OPTIONAL = (
    *("programs", "variables", "lowered_variables", "variable_liveness", "liveness_steps", "compute_sets"),
    *("compute_set_vertices", "vertex_types", "tile_vertices", "execution_steps", "execution_step_ipus"),
    "program_children",
)


def make_operation_report(directory: Path, seed: int) -> Path:
    """Write a random report into a directory, which is made, and return the path of its profile.pop."""
    rng = random.Random(seed)
    directory.mkdir(parents=True)
    tiles = rng.randint(1, 20)
    contexts = [*_contexts(rng, rng.choice((0, 6, 25)))]
    ids = [None, 10**9, *(one["id"] for one in contexts if "id" in one)]
    rows: dict[str, Rows] = {
        "target": [{"type": "Ipu", "architecture": "Ipu2", "num_ipus": 1, "num_replicas": 1, "tiles_per_ipu": tiles,
                    "num_tiles": tiles, "bytes_per_tile": 1, "clock_frequency": 1e9}],
        **_programs(rng, tiles, ids),
        **_variables(rng, tiles, ids),
        **_execution(rng),
    }  # fmt: skip
    dropped = rng.sample(OPTIONAL, rng.choice((0, 0, 0, 1, 2)))
    kept = {name: records for name, records in rows.items() if name not in dropped}
    if rng.random() < 0.8:
        _write(directory / "debug.cbor", contexts)
    return write_profile(directory / "profile.pop", kept, dropped)


# ---------------------------------------------------------------------------------------------------- debug contexts
def _contexts(rng: random.Random, number: int) -> Iterable[dict[str, Any]]:
    ids = rng.sample(range(1, 100), number)
    for at, identity in enumerate(ids):
        one: dict[str, Any] = {"id": identity, "layer": rng.choice(LAYERS)}
        if rng.random() < 0.05:
            one["id"] = rng.choice(ids)  # a second context of that id
        if at and rng.random() < 0.85:
            one["parentId"] = rng.choice(ids[:at] if rng.random() < 0.9 else [*ids, 0, 1000])  # at times in a circle
        if rng.random() < 0.8:
            one["name"] = rng.choice(NAMES)
        if rng.random() < 0.6:
            one["location"] = {"fileName": rng.choice(FILES), "functionName": "f", "lineNumber": rng.randint(0, 9)}
        yield one | _fields(rng, one["layer"])


def _fields(rng: random.Random, layer: str) -> dict[str, Any]:
    """Return what a layer records, at times of a tensor, at times nonsense."""
    tensor = {"tensorId": rng.choice(NAMES), "shape": rng.choice(("[1 2]", [1, 2], [])), "elementType": "FLOAT16"}
    listed = [{"index": at, "tensorId": rng.choice(NAMES), "shape": [at, 4]} for at in range(rng.randint(0, 2))]
    named = rng.choices(NAMES, k=rng.randint(0, 2))
    by_layer: dict[str, dict[str, Any]] = {
        "xla_op": {"category": "op", "op_name": rng.choice(NAMES), "op_type": "Conv2D",
                   "sourcefile": rng.choice(FILES), "sourceline": rng.choice((3, 4, "five", 10**18))},
        "hloinstruction": {"category": "op", "hlo_name": "dot.1", "opcode": "dot",
                           "signature": rng.choice(("f16[4,64]{1,0}", "(f32[], s32[2])", 7))},
        "poplar_driver": {"category": "op", "class": "ConvOp"},
        "poptorch": {"op_type": "aten::mm", "op_name": rng.choice(NAMES)},
        "onnx": {"category": rng.choice(("op", "op", "variable")), "opName": rng.choice((*NAMES, 5)), "opType": "MatMul"},
        "popart": {"category": "op", "opid": rng.choice(("ai.onnx.MatMul:9", "Relu", ":1")),
                   "inputs": rng.choice((listed, named)), "outputs": rng.choice((listed, named, "none", [3])), "discard": rng.choice((0, 0, 1))},
        "popxl": {"category": "op", "api": "popxl.ops.add"},
        "popartbuilder": {"category": "api", "api": "matmul"},
        "poplibs": {"api": "poplin::convolution", "args": {"category": "op"}},
    }  # fmt: skip
    if layer == "popart" and rng.random() < 0.3:
        return {"category": "tensor", **tensor}
    return by_layer.get(layer, {"category": "DoExchange"}) if rng.random() < 0.9 else {}


def _write(path: Path, contexts: Iterable[dict[str, Any]]) -> None:
    """Write a debug.cbor, whose texts are indices into its string table."""
    texts: dict[str, int] = {}
    for one in contexts:
        for owner, key in ((one, "name"), *((one.get("location", {}), key) for key in ("fileName", "functionName"))):
            if key in owner:
                owner[key] = texts.setdefault(owner[key], len(texts))
    path.write_bytes(cbor2.dumps({"contexts": list(contexts), "stringTable": list(texts)}))


# ------------------------------------------------------------------------------------------------ programs and vertices
def _programs(rng: random.Random, tiles: int, ids: list[int | None]) -> dict[str, Rows]:
    programs = rng.sample(range(40), rng.randint(1, 15))
    sets = rng.sample(range(30), rng.randint(1, 6))
    types = rng.sample(range(30), rng.randint(1, 4))
    return {
        "programs": [
            {"program_id": one, "type": rng.choice(("OnTileExecute", "DoExchange", "Sequence")), "name": rng.choice(NAMES),
             "compute_set_id": rng.choice((None, *sets, 99)), "debug_context_id": rng.choice(ids),
             "control_code_by_tile": _blob(rng, tiles), "code_bytes_by_tile": _blob(rng, tiles)} for one in programs
        ],
        "program_children": [
            {"program_id": parent, "position": at, "child_id": child}
            for number, parent in enumerate(programs)
            for at, child in enumerate(rng.sample(programs[number + 1 :], min(rng.randint(0, 3), len(programs) - number - 1)))
        ] or [{"program_id": programs[0], "position": 0, "child_id": 1000}],
        "program_roots": [{"kind": "control", "position": 0, "program_id": programs[0]}],
        "compute_sets": [{"compute_set_id": one, "name": rng.choice(NAMES), "flops": rng.choice((None, 0, 7, 2**60)),
                          "debug_context_id": rng.choice(ids)} for one in sets],
        "vertex_types": [{"vertex_type_id": one, "name": rng.choice(NAMES), "instance_bytes": rng.randint(0, 50)} for one in types],
        "tile_vertices": [{"tile": tile, "vertex_type_id": one, "code_bytes": rng.randint(0, 500)}
                          for tile in range(tiles) for one in (*types, 77) if rng.random() < 0.7]
        or [{"tile": 0, "vertex_type_id": types[0], "code_bytes": 1}],
        "compute_set_vertices": [{"compute_set_id": one, "vertex_type_id": kind, "count_by_tile": _blob(rng, tiles) or bytes(4 * tiles)}
                                 for one in (*sets, 99) for kind in (*types, 99) if rng.random() < 0.5]
        or [{"compute_set_id": sets[0], "vertex_type_id": types[0], "count_by_tile": bytes(4 * tiles)}],
    }  # fmt: skip


def _blob(rng: random.Random, tiles: int) -> bytes | None:
    values = [rng.choice((0, 0, rng.randint(0, 60))) for _ in range(tiles)]
    return rng.choice((None, b"".join(value.to_bytes(4, "little") for value in values)))


# ------------------------------------------------------------------------------------------- variables and execution
def _variables(rng: random.Random, tiles: int, ids: list[int | None]) -> dict[str, Rows]:
    variables = rng.sample(range(50), rng.randint(1, 8))
    owners = [None, 999, *variables]
    return {
        "variables": [
            {"variable_id": one, "name": rng.choice(NAMES), "element_type": rng.choice((None, "half")),
             "shape": rng.choice((None, "[2,3]")), "debug_context_id": rng.choice(ids)} for one in variables
        ],
        "lowered_variables": [
            {"lowered_variable_id": at, "variable_id": rng.choice(owners), "name": rng.choice(NAMES),
             "tile": rng.randrange(tiles), "offset": 0, "bytes": rng.choice((0, rng.randint(1, 90))), "alignment": 4,
             "category": "variable", "region": "nonInterleaved", "always_live": rng.randint(0, 1), "is_constant": 0,
             "is_executable": 0, "equivalence_class_id": None} for at in range(rng.randint(1, 60))
        ],
        "variable_liveness": [
            {"variable_id": rng.choice(owners), "name": rng.choice(NAMES), "step_begin": begin,
             "step_end": begin + rng.randint(0, 4), "bytes": rng.randint(0, 90)}
            for begin in rng.choices(range(8), k=12)
        ],
        "liveness_steps": [
            {"step": step, "program_id": rng.randrange(40), "not_always_live_bytes": rng.choice((0, 5, 90))}
            for step in range(rng.randint(1, 12))
        ],
    }  # fmt: skip


def _execution(rng: random.Random) -> dict[str, Rows]:
    steps = rng.sample(range(100), rng.randint(1, 30))
    columns = [
        f"{kind}_{end}_{most}" for kind in ("active", "all") for end in ("from", "to") for most in ("min", "max")
    ]
    return {
        "runs": [{"run_id": 0, "name": "", "start_us": 0, "end_us": 1}],
        "execution_steps": [{"step_id": step, "run_id": 0, "program_id": rng.randrange(40)} for step in steps],
        "execution_step_ipus": [
            {"step_id": step, "ipu": ipu, "cycles": rng.randint(0, 99), **dict.fromkeys(columns, 0)}
            for step in [*steps, 1000] for ipu in range(2) if rng.random() < 0.8
        ] or [{"step_id": steps[0], "ipu": 0, "cycles": 3, **dict.fromkeys(columns, 0)}],
    }  # fmt: skip
