"""The Perfetto export of a large profile: slices per second, and memory; run by hand.

    python tests/benchmarks/bench_export.py REPORT [RUNS]

REPORT is a directory with a large profile.pop; ``sample_reports/synthesise.py --preset large`` makes one of about 1 GB.
Each run is a process of its own that reads the report and writes the trace to a file. The second line of a run is of
the first run of the program alone, so that it shows whether the memory grows with the number of slices.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPORT = """
import sys
from pvanalyse.render.perfetto import write_perfetto
from pvanalyse.report import open_report

runs = [int(run) for run in sys.argv[3:]] or None
with open_report(sys.argv[1]) as report, open(sys.argv[2], "wb") as out:
    print(write_perfetto(report, out, runs=runs).slices)
"""


def run(report: Path, trace: Path, *runs: str) -> tuple[int, float, float, float]:
    """Return the number of slices, wall and CPU seconds of the process, and the largest memory that it held, in MB."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", EXPORT, str(report), str(trace), *runs], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    answer = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit("the export failed")
    return int(answer), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main() -> None:
    """Measure and print."""
    report, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory) / "trace.pftrace"
        for _ in range(runs):
            for which in ((), ("0",)):
                slices, seconds, cpu, memory = run(report, trace, *which)
                print(
                    f"{slices:>10,} slices in {seconds:6.2f} s: {slices / seconds:>9,.0f} slices/s (wanted: 200,000), "
                    f"{cpu:6.2f} s of CPU, {memory:5.0f} MB of memory, {trace.stat().st_size / 1e6:,.0f} MB of trace"
                )


if __name__ == "__main__":
    main()
