"""The peaks of all tiles against reading their columns, and against a loop over tiles and classes; run by hand.

    python tests/benchmarks/bench_tile_peaks.py --make DIRECTORY    # once; about 3 minutes and 3 GB
    python tests/benchmarks/bench_tile_peaks.py DIRECTORY [RUNS]

The report that is made has 2 IPUs of 1,472 tiles, about 20,000 liveness steps and 5 million lowered variables: those
that the synthesiser makes for so many steps, thinned out evenly. Any other report with lowered variables will do.

Reading and computing are processes of their own that take turns. The reference reads the columns that the answer needs
with bare ADBC, batch by batch, and drops them. The loop is what is usually written: for each tile, for each equivalence
class, a boolean mask over the tile's variables, and the sum of their bytes added to the steps of each interval. It is
measured twice, over all classes and over those that the tile has; it is given each tile's rows for nothing, measured on
some tiles evenly spread, and scaled to all.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import numpy as np

SYNTHESISE = Path(__file__).parents[2] / "sample_reports" / "synthesise.py"
SIZES = "--ipus 2 --tiles-per-ipu 1472 --layers 136 --hidden 192 --execution nothing --archive none"
ALLOCATIONS = 5_000_000
MEASURED_TILES = 16

REFERENCE = """
import json, sys, time
import adbc_driver_manager, adbc_driver_sqlite
import pyarrow as pa

begin = time.perf_counter()
database = adbc_driver_sqlite.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1")
connection = adbc_driver_manager.AdbcConnection(database)
for query in ("SELECT tile, bytes, always_live, equivalence_class_id FROM lowered_variables",
              "SELECT * FROM equivalence_class_intervals", "SELECT step FROM liveness_steps", "SELECT * FROM tile_memory"):
    statement = adbc_driver_manager.AdbcStatement(connection)
    statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
    statement.set_sql_query(query)
    stream, _ = statement.execute_query()
    rows = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))
    statement.close()
print(json.dumps({"seconds": time.perf_counter() - begin}))
"""
OURS = """
import json, sys, time
from pvanalyse import open_report
from pvanalyse.analysis.lifetimes import read_lifetimes
from pvanalyse.analysis.liveness import tile_peaks

with open_report(sys.argv[1]) as report:
    begin = time.perf_counter()
    frame = tile_peaks(report)
    seconds = time.perf_counter() - begin
answer = {"seconds": seconds, "tiles": frame["tile"].tolist(), "bytes": frame["peak_bytes"].tolist(),
          "steps": frame["peak_step"].tolist()}
with open_report(sys.argv[1]) as report:  # the same once more in two parts, to see what computing alone takes
    live = read_lifetimes(report)
    begin = time.perf_counter()
    live.peaks(live.group_of(frame["tile"].to_numpy()), len(frame))
    answer["computing"] = time.perf_counter() - begin
print(json.dumps(answer))
"""


def run(program: str, profile: Path) -> tuple[dict[str, object], float]:
    """Return what a program prints, and the largest memory that it held, in MB."""
    command = [sys.executable, "-c", program, str(profile)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    if status:
        sys.exit("a measured program failed")
    return json.loads(printed), usage.ru_maxrss / 1000


def make(directory: Path) -> None:
    """Make the report."""
    command = [sys.executable, str(SYNTHESISE), *SIZES.split(), "-o", str(directory)]
    subprocess.run(command, check=True)
    with closing(sqlite3.connect(directory / "profile.pop", isolation_level=None)) as database:
        ((rows,),) = database.execute("SELECT count(*) FROM lowered_variables").fetchall()
        if rows > ALLOCATIONS:
            database.execute("DELETE FROM program_lowered_variables")
            keep = f"(lowered_variable_id * 7919) % {rows} < {ALLOCATIONS}"
            database.execute(f"DELETE FROM lowered_variables WHERE NOT {keep}")
            database.execute("VACUUM")


def columns(profile: Path, sql: str, *parameters: int) -> list[np.ndarray]:
    with closing(sqlite3.connect(profile)) as database:
        return list(np.array(database.execute(sql, parameters).fetchall(), np.int64).reshape(-1, sql.count(",") + 1).T)


def loop(profile: Path, tiles: list[int], only_present: bool) -> tuple[float, list[int], list[int]]:
    """Return the seconds that the loop takes for some tiles, and their peaks: bytes and steps."""
    intervals = defaultdict(list)
    for one, begin, end in zip(
        *(
            column.tolist()
            for column in columns(
                profile, "SELECT equivalence_class_id, step_begin, step_end FROM equivalence_class_intervals"
            )
        ),
        strict=True,
    ):
        intervals[one].append((begin, end))
    num_steps = int(columns(profile, "SELECT max(step) FROM liveness_steps")[0][0]) + 1
    seconds, sizes, steps = 0.0, [], []
    for tile in tiles:
        size, classes = columns(
            profile,
            "SELECT bytes, equivalence_class_id FROM lowered_variables WHERE tile = ? AND NOT always_live",
            tile,
        )
        begun = time.perf_counter()
        curve = np.zeros(num_steps, np.int64)
        for one in np.unique(classes).tolist() if only_present else intervals:
            live = int(size[classes == one].sum())
            for begin, end in intervals[one]:
                curve[begin:end] += live
        steps.append(int(curve.argmax()))
        sizes.append(int(curve.max()))
        seconds += time.perf_counter() - begun
    return seconds, sizes, steps


def main() -> None:
    """Measure, and print the ratios."""
    if sys.argv[1] == "--make":
        make(Path(sys.argv[2]))
        return
    report, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    profile = report / "profile.pop"
    with profile.open("rb") as file:  # into the page cache: both are to be measured, not the disk
        while file.read(1 << 24):
            pass
    for table in ("lowered_variables", "liveness_steps", "equivalence_class_intervals", "tile_memory"):
        print(f"{columns(profile, f'SELECT count(*) FROM {table}')[0][0]:>12,} rows of {table}")
    over, ours, computing, answer = [], [], [], {}
    for _ in range(runs):
        reference, _ = run(REFERENCE, profile)
        answer, memory = run(OURS, profile)
        over.append(answer["seconds"] - 1.2 * reference["seconds"])
        ours.append(answer["seconds"])
        computing.append(answer["computing"])
        print(f"bare ADBC {reference['seconds']:6.2f} s   tile_peaks {answer['seconds']:6.2f} s, of which computing "
              f"{answer['computing']:5.2f} s   {memory:5.0f} MB (wanted: under 2,000)")  # fmt: skip
    print(f"median time beyond 1.2 × reading: {statistics.median(over):.2f} s (wanted: at most 2)")
    every = answer["tiles"]
    places = np.linspace(0, len(every) - 1, MEASURED_TILES).astype(int).tolist()
    for only_present, what in ((False, "all classes"), (True, "classes of the tile")):
        seconds, sizes, steps = loop(profile, [every[at] for at in places], only_present)
        same = sizes == [answer["bytes"][at] for at in places] and steps == [answer["steps"][at] for at in places]
        scaled = seconds / len(places) * len(every)
        print(f"loop over {what}: {seconds:.2f} s for {len(places)} tiles, scaled to {len(every):,}: {scaled:.1f} s; "
              f"{'equal' if same else 'NOT EQUAL'} results; computing is {scaled / statistics.median(computing):.0f} × "
              f"as fast, with reading {scaled / statistics.median(ours):.0f} ×")  # fmt: skip


if __name__ == "__main__":
    main()
