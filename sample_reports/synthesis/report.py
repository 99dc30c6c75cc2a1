"""Writes whole report directories."""

from __future__ import annotations

import json
from pathlib import Path

from .archive import TileImage, write_archive
from .compiler import compile_network
from .debug_contexts import DebugContexts
from .execution import Costs, run_program
from .graph import Graph
from .layout import Layout
from .memory import IpuMemory, Memory
from .profile import ProfileWriter
from .settings import Settings

_VERSION = (3, 1, 0)
_HASH = "0123abcd4567"


def write_report(directory: Path, settings: Settings, contexts: DebugContexts) -> None:
    """Compile, run and write profile.pop, archive.a and app.json; the caller writes the debug contexts.

    Parameters
    ----------
    directory
        An existing directory.
    contexts
        Grows by the contexts of this program.
    """
    graph = compile_network(settings, contexts)
    memory = Memory(graph, settings)
    path = directory / "profile.pop"
    with ProfileWriter(path, settings, graph, memory) as writer:
        writer.write_compilation(_info(settings, memory), _options(settings))
        if settings.execution != "nothing":
            costs = Costs(graph, settings.machine.stages)
            runs = run_program(graph, settings, costs)
            if settings.execution == "blocks":
                writer.write_blocks(runs)
            else:
                writer.write_runs(runs, costs)
    if settings.archive != "none":
        write_archive(directory / "archive.a", _images(settings, memory))
    write_json(directory / "app.json", _app(settings, graph))


def write_json(path: Path, content: object) -> None:
    """Write a JSON file as a person would like to read it."""
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def framework_json(settings: Settings) -> dict[str, object]:
    """Return what a framework says of itself and the machine."""
    system = {
        "Operating system": "Linux",
        "Operating system version": "5.4.0-1063",
        "Machine": "x86_64",
        "Nominal CPU frequency [GHz]": 2.25,
        "Number of total cpus": 240,
    }
    if settings.framework == "tensorflow":
        cluster = "cluster_1__XlaCompiledKernel_true__XlaNumConstantArgs_0__XlaNumResourceArgs_4_.27"
        tensorflow = {"Version": "2.6.3", "Githash": "b'v2.6.3'", "Cluster": cluster, "IpuSelectionOrder": "AUTO"}
        return {"TensorFlow": tensorflow, "System Information": system}
    return {"PopTorch": {"Version": "3.1.0", "Engine": settings.engine}, "System Information": system}


def _info(settings: Settings, memory: Memory) -> dict[str, str]:
    instrumented = {"tiles": "Tile", "steps": "Ipu", "blocks": "Off", "nothing": "Off"}[settings.execution]
    overflowed = any(ipu.layout.excluding[2].any() for ipu in memory.ipus)
    major, minor, point = _VERSION
    return {
        "layout": "pvanalyse-1",
        "poplar_version": f"{major}.{minor}.{point}+synthesised ({_HASH})",
        "poplar_major": str(major),
        "poplar_minor": str(minor),
        "poplar_point": str(point),
        "poplar_package_hash": _HASH,
        "format_major": "3",
        "format_minor": "0",
        "format_point": "0",
        "format_unstable": "0",
        "compiled_at": settings.compiled_at,
        "engine_name": settings.engine,
        "instrument_compute": instrumented,
        "instrument_external_exchange": "Off" if settings.execution in ("blocks", "nothing") else "Tile",
        "profiled_replica": "0",
        "compile_out_of_memory": str(int(overflowed)),
    }


def _options(settings: Settings) -> list[tuple[str, str, str]]:
    def text(value: bool) -> str:
        return str(value).lower()

    runs = settings.execution != "nothing"
    engine = {
        "autoReport.all": "false",
        "autoReport.directory": "./report",
        "autoReport.outputArchive": text(settings.archive != "none"),
        "autoReport.outputDebugInfo": "true",
        "autoReport.outputExecutionProfile": text(runs),
        "autoReport.outputGraphProfile": "true",
        "autoReport.outputLoweredVars": text(settings.captured_lowered),
        "debug.allowOutOfMemory": "true",
        "debug.computeInstrumentationLevel": "tile" if settings.execution == "tiles" else "ipu",
        "debug.instrument": text(settings.execution in ("steps", "tiles")),
        "exchange.streamBufferOverlap": "none",
        "opt.enableSwSyncs": "false",
        "opt.internalExchangeOptimisationTarget": "cycles",
        "opt.maxComputeSetsPerLoopIteration": "8",
        "profiler.includeFlopEstimates": "true",
        "profiler.replicaToProfile": "0",
        "streamCallbacks.multiThreadMode": "collaborative",
    }
    if settings.execution == "blocks":
        engine["profiler.programs.filter"] = ".*"
    target = {
        "target.deterministicWorkers": "portable",
        "target.hostSyncTimeout": "300",
        "target.syncReplicasIndependently": text(settings.machine.replicas > 1),
        "target.workerStackSizeInBytes": "1024",
    }
    scopes = {"engine": engine, "target": target, "report": {"showVarStorage": "false", "showExecutionSteps": "true"}}
    return [(scope, name, value) for scope, options in scopes.items() for name, value in options.items()]


def _app(settings: Settings, graph: Graph) -> dict[str, object]:
    hyper = {
        "layers": settings.layers,
        "hidden": settings.hidden,
        "sequence": settings.sequence,
        "batch": settings.batch,
        "gradient_accumulation": settings.iterations,
        "optimiser": "sgd" if settings.training else None,
    }
    return {
        "synthesised": True,
        "model": settings.network,
        "hyperparameters": hyper,
        "programs": len(graph.programs),
        "notes": "Made by sample_reports/synthesise.py, not captured from hardware.",
    }


def _images(settings: Settings, memory: Memory) -> list[TileImage]:
    images = [
        _image(ipu.layout, ipu, tile, settings.archive == "symbols")
        for ipu in memory.ipus
        for tile in range(settings.machine.tiles_per_ipu)
    ]
    return images * settings.machine.replicas


def _image(layout: Layout, ipu: IpuMemory, tile: int, symbols: bool) -> TileImage:
    code = int(layout.code_end[tile])
    functions = [(vertex.symbol, int(size[tile])) for vertex, size in ipu.vertex_code.items() if size[tile]]
    return TileImage(
        code,
        int(layout.including[0, tile]) - code,
        int(layout.including[1, tile]),
        functions if symbols else [],
    )
