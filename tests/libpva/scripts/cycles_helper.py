"""What performance tests ask: cycles by type, balances, bytes moved, compute beside stream copies through a visitor."""

import json
import sys
from collections import defaultdict

import pva


class Intervals(pva.ProgramVisitor):
    def __init__(self, begin, end):
        self.begin = begin
        self.end = end
        super(Intervals, self).__init__()  # noqa: UP008  (as programs of that time wrote it)

    def visitOnTileExecute(self, program):  # noqa: N802
        executed.append(program.computeset.name)
        compute.append([self.begin.max, self.end.max])

    def visitStreamCopyMid(self, _):  # noqa: N802
        copies.append([self.begin.max, self.end.max])


report = pva.openReport(sys.argv[1])
executed, compute, copies = [], [], []
cycles = defaultdict(int)
balances = []
data_in = data_out = exchanged = 0
for step in report.execution.steps:
    kind = step.program.type
    for ipu in step.ipus:
        cycles[kind.name] += ipu.cycles
        begin, end = ipu.activeCycles.cyclesFrom, ipu.activeCycles.cyclesTo
        step.program.accept(Intervals(begin, end))
        if kind not in {pva.Program.Type.Sync, pva.Program.Type.SyncAns} and begin.max != end.max:
            balances.append(ipu.tileBalance)
        if kind == pva.Program.Type.StreamCopyMid:
            data_in += ipu.dataIn
            data_out += ipu.dataOut
        elif kind == pva.Program.Type.GlobalExchange:
            exchanged += ipu.dataOut
spans = [
    [(one.ipus[ipu].allCycles.cyclesFrom.min, one.ipus[ipu].allCycles.cyclesTo.max) for ipu in range(len(one.ipus))]
    for run in report.execution.runs for one in run.steps
]  # fmt: skip
assert len(spans) == len(report.execution.steps)
print(json.dumps({
    "execution.num_runs": len(report.execution.runs),
    "execution.num_steps": len(report.execution.steps),
    "execution.cycles": report.execution.totalCycles.total,
    "execution.host_seconds": sum(run.microseconds.end - run.microseconds.start for run in report.execution.runs) / 1e6,
    "execution.stream_bytes.in": data_in,
    "execution.stream_bytes.out": data_out,
    "execution.exchange_bytes.global": exchanged,
    "execution.tile_balance": sum(balances) / len(balances),
    **{f"execution.step_cycles.{name}": total for name, total in cycles.items()},
}))  # fmt: skip
print(len(compute), len(copies), sorted(set(executed))[:1], file=sys.stderr)
