"""Measure the reader of debug.cbor against a plain ``cbor2.loads`` of the same file.

    python tests/benchmarks/bench_debug_info.py [--megabytes 100] [--rounds 3]

Every measurement is a process of its own; the contestants take turns, and the best round of each counts. Time is that
of the call (imports and the reading of the file into memory for `loads` left out); memory is the peak of the whole
process, shown also above what it had after the imports (which are cbor2 alone for `loads`; pyarrow, and pandas, which
pyarrow imports by itself, for the reader).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cbor2

_PROLOGUE = """
import gc, json, resource, sys, time
{imports}
path = sys.argv[1]
before = resource.getrusage(resource.RUSAGE_SELF)
start = time.perf_counter()
"""
_PLAIN = "import cbor2"
_OURS = "import pandas, pyarrow.compute; from pvanalyse.readers.debug_info import count_contexts, read_debug_info"
_EPILOGUE = """
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF)
peak, base = after.ru_maxrss * 1024, before.ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "cpu": after.ru_utime - before.ru_utime, "peak": peak, "base": base}))
"""
_CONTESTANTS = {
    "cbor2.loads": "data = open(path, 'rb').read(); start = time.perf_counter(); kept = cbor2.loads(data)",
    "cbor2.loads, gc off": "gc.disable(); data = open(path, 'rb').read(); start = time.perf_counter();"
    " kept = cbor2.loads(data)",
    "read, all columns": "kept = read_debug_info(path)",
    "read, without fields": "kept = read_debug_info(path, ['debug_context_id', 'parent_id', 'name', 'layer',"
    " 'file', 'function', 'line'])",
    "read, ids and names": "kept = read_debug_info(path, ['debug_context_id', 'parent_id', 'name'])",
    "count": "kept = count_contexts(path)",
}


def _tensor(rng: random.Random) -> dict[str, Any]:
    return {"shape": [rng.choice((1, 16, 64, 512)), rng.randrange(1, 4096)], "type": rng.choice(("half", "float"))}


def _transform(rng: random.Random) -> dict[str, Any]:
    names = ("truncationLower", "truncationUpper", "dilation", "paddingLower", "paddingUpper")
    return {**{name: [rng.randrange(3), rng.randrange(3)] for name in names}, "flip": [False, False]}


def _convolution(rng: random.Random) -> dict[str, Any]:
    parameters = {
        "inputType": "half",
        "outputType": "half",
        "batchSize": 4,
        "inputFieldShape": [56, 56],
        "kernelShape": [3, 3],
        "inputChannelsPerConvGroup": rng.choice((64, 128, 256)),
        "outputChannelsPerConvGroup": rng.choice((64, 128, 256)),
        "numConvGroups": 1,
        "inputTransform": _transform(rng),
        "kernelTransform": _transform(rng),
        "outputTransform": _transform(rng),
    }
    options = {"availableMemoryProportion": "0.6", "partialsType": "half", "pass": "TRAINING_FWD"}
    arguments = {"in": _tensor(rng), "weights": _tensor(rng), "params": parameters, "options": options}
    return {"api": "poplin::convolution", "args": arguments, "output": _tensor(rng)}


def _poplibs(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    if rng.random() < 0.08:
        return _convolution(rng)
    if rng.random() < 0.15:
        arguments: dict[str, Any] = {"A": _tensor(rng), "B": _tensor(rng), "outputType": "half", "options": {}}
        return {"api": "poplin::matMul", "args": arguments, "output": _tensor(rng)}
    arguments = {"expr": "(_1 + _2)", "ts": [_tensor(rng), _tensor(rng)], "inPlace": rng.random() < 0.5, "options": {}}
    return {"api": "popops::map", "args": arguments, "output": _tensor(rng)}


def _popart(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    def value(role: str) -> dict[str, Any]:
        return {
            "tensorId": f"{scope}/{role}:{number}",
            "shape": [rng.randrange(1, 4096), 1024],
            "elementType": "FLOAT16",
        }

    return {
        "category": "op",
        "instanceId": number,
        "opid": "ai.onnx.MatMul:9",
        "inputs": [value("in"), value("weights")],
        "outputs": [value("out")],
        "attributes": {"__execution_mode": "0", "__outline": "1", "name": scope, "serialize": [1, number % 8]},
        "graphId": "",
    }


def _popart_builder(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    names = [f"{scope}/{role}:{number}" for role in ("in", "weights")]
    return {"category": "op", "api": "addOp", "inputs": names, "outputs": [f"{scope}/out:{number}"], "attributes": {}}


def _xla_op(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    source = {"sourcefile": "/home/user/bert/modeling.py", "sourceline": rng.randrange(900)}
    return {"category": "xla_op", "op_name": f"{scope}/MatMul", "op_type": "MatMul", **source}


def _hlo_instruction(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    text = f"%dot.{number} = f16[16,1024]{{1,0}} dot(f16[16,1024]{{1,0}} %arg.{number - 3}, f16[1024,1024]{{1,0}} %p)"
    return {
        "category": "hloinstruction",
        "hlo_name": f"dot.{number}",
        "hlo_id": number,
        "opcode": "dot",
        "signature": "(f16[16,1024], f16[1024,1024]) -> f16[16,1024]",
        "debug_string": f'{text}, metadata={{op_type="MatMul" op_name="{scope}"}}',
        "operands": [number - 3, number - 2],
        "users": [number + 1],
        "computation": f"cluster_{number % 7}",
    }


def _poplar_driver(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    return {"category": "visitor", "class": "DeferredVisitor"}


def _poplar(rng: random.Random, scope: str, number: int) -> dict[str, Any]:
    return {}


_LAYERS = {
    "poplar": (_poplar, 30),
    "poplibs": (_poplibs, 35),
    "popart": (_popart, 10),
    "popartbuilder": (_popart_builder, 5),
    "hloinstruction": (_hlo_instruction, 12),
    "xla_op": (_xla_op, 4),
    "poplar_driver": (_poplar_driver, 4),
}


def _contexts(rng: random.Random, strings: int) -> Iterator[bytes]:
    layers, weights = list(_LAYERS), [weight for _, weight in _LAYERS.values()]
    number = 0
    while True:
        number += 1
        layer = rng.choices(layers, weights)[0]
        scope = f"bert/encoder/layer_{number % 24}/attention/self"
        location = {
            "functionName": rng.randrange(400),
            "fileName": rng.randrange(150),
            "lineNumber": rng.randrange(3000),
        }
        context = {
            "id": number,
            "parentId": max(0, number - rng.randrange(1, 40)),
            "name": rng.randrange(strings),
            "layer": layer,
            "location": location,
        }
        yield cbor2.dumps({**context, **_LAYERS[layer][0](rng, scope, number)})


def write_file(path: Path, size: int) -> None:
    """Write a debug.cbor of about `size` bytes: layers and keys as the frameworks record them, values made up."""
    rng = random.Random(1)
    strings = size // 700
    table = cbor2.dumps([f"bert/encoder/layer_{i % 24}/attention/self/query/MatMul:{i}" for i in range(strings)])
    count = 0
    with path.open("wb") as file:
        file.write(b"\xa2" + cbor2.dumps("contexts") + b"\x9a")
        place = file.tell()
        file.write(b"\0\0\0\0")
        for context in _contexts(rng, strings):
            file.write(context)
            count += 1
            if file.tell() + len(table) >= size:
                break
        file.write(cbor2.dumps("stringTable") + table)
        file.seek(place)
        file.write(count.to_bytes(4, "big"))


def _measure(code: str, path: Path) -> dict[str, float]:
    prologue = _PROLOGUE.format(imports=_PLAIN if "cbor2.loads" in code else _OURS)
    command = [sys.executable, "-c", f"{prologue}{code}{_EPILOGUE}", str(path)]
    root = str(Path(__file__).parents[2])
    done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": root})
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Make the file, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "debug.cbor"
        write_file(path, int(arguments.megabytes * 1e6))
        size = path.stat().st_size
        rounds = [{name: _measure(code, path) for name, code in _CONTESTANTS.items()} for _ in range(arguments.rounds)]
    best = {
        name: {what: min(results[name][what] for results in rounds) for what in rounds[0][name]}
        for name in _CONTESTANTS
    }
    plain = best["cbor2.loads"]
    print(f"{size / 1e6:.1f} MB, best of {arguments.rounds}")
    print(f"{'':22}{'wall s':>8}{'cpu s':>8}{'× faster':>10}{'peak MB':>9}{'× file':>8}{'above imports':>15}")
    for name, result in best.items():
        print(
            f"{name:22}{result['seconds']:8.2f}{result['cpu']:8.2f}{plain['seconds'] / result['seconds']:10.1f}"
            f"{result['peak'] / 1e6:9.0f}{result['peak'] / size:8.2f}{(result['peak'] - result['base']) / size:15.2f}"
        )


if __name__ == "__main__":
    main()
