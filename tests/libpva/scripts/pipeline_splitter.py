"""What a splitter of pipelines asks: operations, their programs and variables, code by tile, lifetimes as arrays."""

import json
import sys

import numpy as np
from pva import OperationAnalysis, Program, openReport

report = openReport(sys.argv[1], sys.argv[2])
steps = [step.program._id for step in report.compilation.livenessProgramSteps]
num_tiles = report.compilation.target.numTiles
brief = report.compilation.loweredVariables.allBriefVars
if len(brief) == 0:
    sys.exit("no lowered variables")
variables, classes = {}, {}
for one in brief:
    variables[one.id] = one.equivalenceClass.id, np.uint64(one.bytes), one.tileId
    if one.equivalenceClass.id not in classes:
        live = classes.setdefault(one.equivalenceClass.id, np.zeros(len(steps), bool))
        for interval in one.equivalenceClass.steps:
            live[interval.start : interval.end] = True
code = {}
for tile, of in enumerate(report.compilation.tiles):
    for vertex in of.memory.vertices:
        code.setdefault(vertex.type.name, np.zeros(num_tiles, np.uint64))[tile] = vertex.codeBytes

operations = OperationAnalysis(report).operations
programs, used, names, types = {}, set(), [], set()
for index in range(len(operations)):
    operation = operations[index]
    names.append(operation.name)
    json.loads(operation.debugContext.json).get("inputs")
    for program in operation.programs():
        programs[program._id] = program
    used |= {one._id for one in operation.vars}
control = np.zeros(num_tiles, np.uint64)
exchange = np.zeros(num_tiles, np.uint64)
for program in programs.values():
    if len(program.children) == 0:
        control += np.array(program.controlCodeByTile, dtype=np.uint64)
    if program.type == Program.Type.DoExchange:
        exchange += np.array(program.codeBytesByTile, dtype=np.uint64)
    if program.type == Program.Type.OnTileExecute:
        for vertex in program.computeset.vertices:
            if any(vertex.countByTile):
                types.add(vertex.type.name)
by_step = np.zeros((num_tiles, len(steps)), np.uint64)
for live, size, tile in variables.values():
    by_step[tile] += classes[live] * size
print(json.dumps({
    "peaks": by_step.max(axis=1).tolist(), "control": int(control.sum()), "exchange": int(exchange.sum()),
    "code": {name: int(sizes.sum()) for name, sizes in sorted(code.items())}, "types": sorted(types),
    "used": len(used), "operations": len(names), "programs": sorted(programs),
}))  # fmt: skip
