"""The summary of a large profile against a bare ADBC query of the same columns; run by hand.

    python tests/benchmarks/bench_summary.py REPORT [RUNS]

REPORT is a directory with a large profile.pop; ``sample_reports/synthesise.py --preset large`` makes one of about 1 GB.
Each command is a process of its own, the two take turns, and the reference does what anybody would write who wants the
numbers of the summary from SQLite into Arrow: one SELECT of the columns, rows read in batches and dropped.
Prints both times, their ratio pair by pair, and the largest memory of the summary's process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

REFERENCE = """
import sys
import adbc_driver_manager, adbc_driver_sqlite
import pyarrow as pa

database = adbc_driver_sqlite.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1")
connection = adbc_driver_manager.AdbcConnection(database)
for query in QUERIES:
    statement = adbc_driver_manager.AdbcStatement(connection)
    statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
    statement.set_sql_query(query)
    stream, _ = statement.execute_query()
    rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
    statement.close()
"""
# The columns that the summary needs, no more and no less; its counts are counts here too.
QUERIES = [
    "SELECT key, value FROM report_info",
    "SELECT * FROM engine_options",
    "SELECT * FROM target",
    "SELECT * FROM graph",
    "SELECT * FROM tile_memory",
    "SELECT tile, category, non_overlapped, overlapped FROM tile_memory_category",
    "SELECT program_id, type, name FROM programs",
    "SELECT step, program_id, not_always_live_bytes FROM liveness_steps",
    "SELECT name, step_begin, step_end, bytes FROM variable_liveness",
    "SELECT * FROM runs",
    "SELECT step_id, run_id, program_id FROM execution_steps",
    """SELECT step_id, ipu, cycles, active_from_max, active_to_max, all_from_min, all_to_max, tile_balance,
       active_tile_balance, data_in, data_out FROM execution_step_ipus""",
    *(f"SELECT count(*) FROM {table}" for table in ("programs", "compute_sets", "vertex_types", "variables",
                                                      "lowered_variables", "runs", "execution_steps")),
]  # fmt: skip


def run(arguments: list[str]) -> tuple[float, float]:
    """Return the wall seconds of a command and the largest memory that it held, in MB."""
    begin = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"failed: {arguments[:4]}")
    return seconds, usage.ru_maxrss / 1000


def main() -> None:
    """Measure, and print the ratios."""
    report, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    profile = report / "profile.pop" if report.is_dir() else report
    reference = [sys.executable, "-c", REFERENCE.replace("QUERIES", repr(QUERIES)), str(profile)]
    # Named by its file, so that only profile.pop is read, as by the reference.
    summary = [sys.executable, "-m", "pvanalyse", "summary", "--quiet", str(profile)]
    with profile.open("rb") as file:  # into the page cache: both are to be measured, not the disk
        while file.read(1 << 24):
            pass
    ratios, memory = [], []
    for _ in range(runs):
        theirs, their_memory = run(reference)
        ours, our_memory = run(summary)
        ratios.append(ours / theirs)
        memory.append(our_memory)
        print(
            f"bare ADBC {theirs:6.2f} s {their_memory:5.0f} MB   summary {ours:6.2f} s {our_memory:5.0f} MB   ratio {ratios[-1]:.2f}"
        )
    print(f"{profile}: {profile.stat().st_size / 1e6:,.0f} MB")
    print(
        f"median ratio {statistics.median(ratios):.2f} (wanted: at most 1.5), largest memory {max(memory):.0f} MB (wanted: under 400)"
    )


if __name__ == "__main__":
    main()
