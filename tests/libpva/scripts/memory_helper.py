"""What memory tests of frameworks ask: totals, the fullest tile, always live and peak liveness, categories."""

import argparse
import json

import numpy as np
import pva

parser = argparse.ArgumentParser()
parser.add_argument("--profile", required=True)
parser.add_argument("--out", required=True)
arguments = parser.parse_args()

report = pva.openReport(arguments.profile)
tiles = report.compilation.tiles
target = report.compilation.target
including = np.array([tile.memory.total.includingGaps for tile in tiles])
always_live = sum(tile.memory.alwaysLiveBytes for tile in tiles)
peak = 0
for step in report.compilation.livenessProgramSteps:
    if step.notAlwaysLiveMemory.bytes > peak:
        peak = step.notAlwaysLiveMemory.bytes
by_ipu = including.reshape((len(report.compilation.ipus), -1)).sum(axis=1)
exchange = sum(
    tile.memory.category.internalExchangeCode.nonInterleaved.nonOverlapped
    + tile.memory.category.internalExchangeCode.interleaved.nonOverlapped
    + tile.memory.category.internalExchangeCode.overflowed.nonOverlapped
    for tile in tiles
)
over = [tile for ipu in report.compilation.ipus for tile in ipu.tiles if tile.memory.overflowed.includingGaps]
with open(arguments.out, "w") as out:  # noqa: PTH123
    json.dump(
        {
            "memory.total_including_gaps": int(including.sum()),
            "memory.total_excluding_gaps": sum(tile.memory.total.excludingGaps for tile in tiles),
            "memory.tile_max_including_gaps": max(tile.memory.total.includingGaps for tile in tiles),
            "memory.ipu_max_including_gaps": int(by_ipu.max()),
            "memory.always_live": always_live,
            "memory.not_always_live": sum(tile.memory.notAlwaysLiveBytes for tile in tiles),
            "memory.overflowed": sum(tile.memory.overflowed.includingGaps for tile in over),
            "memory.category.vertexCode": sum(tile.memory.category.vertexCode.total for tile in tiles),
            "memory.category.internalExchangeCode": exchange,
            "liveness.num_steps": len(report.compilation.livenessProgramSteps),
            "liveness.peak_not_always_live": peak,
            "liveness.peak": always_live + peak * target.numReplicas,
            "target.num_ipus": target.numIPUs,
            "target.num_tiles": target.numTiles,
            "target.clock_frequency": target.clockFrequency,
            "graph.num_compute_sets": report.compilation.graph.numComputeSets,
            "graph.num_vertices": report.compilation.graph.numVertices,
            "variables.num_lowered": len(report.compilation.loweredVariables.allBriefVars),
        },
        out,
    )
