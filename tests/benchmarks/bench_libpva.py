"""How fast libpva's objects are walked, beside plain Python objects and the sqlite3 module; run by hand.

    python tests/benchmarks/bench_libpva.py REPORT [RUNS]

REPORT is a report directory with lowered variables, such as the one of 5 million that ``bench_tile_peaks.py --make``
makes. Each measurement is a process of its own, and ours and its reference take
turns. Times are CPU seconds, which other work on the machine does not lengthen as it does the clock's.

* tiles: five numbers of each of 23,552 tiles (16 IPUs) of a profile that is made here, beside the same loop over plain
  objects with attributes that were made before, the least that an object model in Python can cost;
* brief variables: id, bytes, tile and class of each lowered variable, beside a loop over a cursor of the sqlite3
  module for the same columns;
* memory: the peak of that process beyond what it has after importing, beside the columns' own bytes.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYOUT = ROOT / "pvanalyse" / "readers" / "dialects" / "pvanalyse-1.sql"
TILES = 16 * 1472
CATEGORIES = ("vertexCode", "controlCode", "variable", "internalExchangeCode", "stack", "vertexInstanceState")

MEASURED = """
import json, resource, sys, time
{imports}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
{prepare}
begin = time.process_time()
{measure}
print(json.dumps({{"seconds": time.process_time() - begin, "bytes": peak() - before, "answer": answer}}))
"""
OURS = {"imports": "from pvanalyse.libpva import openReport"}
WALK = """
answer = 0
for tile in tiles:
    memory = tile.memory
    answer += memory.total.includingGaps + memory.total.excludingGaps
    answer += memory.alwaysLiveBytes + memory.notAlwaysLiveBytes + memory.category.vertexCode.total
"""
TILES_OURS = MEASURED.format(
    **OURS,
    prepare="tiles = openReport(sys.argv[1]).compilation.tiles",
    measure=WALK,
)
TILES_PLAIN = MEASURED.format(
    **OURS,
    prepare="""
class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)
tiles = [
    Plain(memory=Plain(
        total=Plain(includingGaps=one.memory.total.includingGaps, excludingGaps=one.memory.total.excludingGaps),
        alwaysLiveBytes=one.memory.alwaysLiveBytes, notAlwaysLiveBytes=one.memory.notAlwaysLiveBytes,
        category=Plain(vertexCode=Plain(total=one.memory.category.vertexCode.total)),
    )) for one in openReport(sys.argv[1]).compilation.tiles
]""",
    measure=WALK,
)
BRIEF_OURS = MEASURED.format(
    **OURS,
    prepare="variables = openReport(sys.argv[1]).compilation.loweredVariables",
    measure="""
answer = 0
for one in variables.allBriefVars:
    answer += (one.id ^ one.bytes ^ one.tileId) + (one.equivalenceClass.id >= 0)
""",
)
BRIEF_CURSOR = MEASURED.format(
    imports="import sqlite3",
    prepare="database = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro&immutable=1', uri=True)",
    measure="""
answer = 0
for identity, size, tile, of in database.execute(
    "SELECT lowered_variable_id, bytes, tile, equivalence_class_id FROM lowered_variables ORDER BY 1"
):
    answer += (identity ^ size ^ tile) + (of is None or of >= 0)
""",
)


def run(code: str, profile: Path) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(profile)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def make_tiles(path: Path) -> None:
    """Write a profile that has nothing but the memory of its tiles."""
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(LAYOUT.read_text("utf-8"))
        target = ("Ipu", "Ipu2", 16, 1, 1472, TILES, 638976, 1.33e9, None, None, None)
        database.execute(f"INSERT INTO target VALUES ({', '.join('?' * len(target))})", target)
        memory = ((tile, *(tile * 7 % 600_000 + at for at in range(10))) for tile in range(TILES))
        database.executemany(f"INSERT INTO tile_memory VALUES ({', '.join('?' * 11)})", memory)
        cells = (
            (tile, category, "nonInterleaved", tile + 1, 0) for tile in range(TILES) for category in sorted(CATEGORIES)
        )
        database.executemany("INSERT INTO tile_memory_category VALUES (?, ?, ?, ?, ?)", cells)


def compare(what: str, ours: str, reference: str, profile: Path, runs: int) -> tuple[float, float, float]:
    """Take turns; return the median seconds of both, and the bytes of ours."""
    found: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    for _ in range(runs):
        for one, code in zip(found, (ours, reference), strict=True):
            one.append(run(code, profile))
    assert len({one["answer"] for one in (*found[0], *found[1])}) == 1, "ours and the reference differ"
    mine, theirs = (statistics.median(one["seconds"] for one in measured) for measured in found)
    print(f"{what}: {mine:.3f} s of CPU, {mine / theirs:.2f} × the reference's {theirs:.3f} s")
    return mine, theirs, max(one["bytes"] for one in found[0])


def main() -> None:
    """Measure, and print the ratios."""
    profile, runs = Path(sys.argv[1]) / "profile.pop", int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as directory:
        make_tiles(Path(directory) / "profile.pop")
        tiles = Path(directory) / "profile.pop"
        seconds, _, _ = compare(f"{TILES:,} tiles, beside plain objects", TILES_OURS, TILES_PLAIN, tiles, runs)
        print(f"  with reading the columns, wanted: under 0.25 s, is {seconds:.3f} s")
    with closing(sqlite3.connect(f"file:{profile}?mode=ro&immutable=1", uri=True)) as database:
        ((rows,),) = database.execute("SELECT count(*) FROM lowered_variables")
    what = f"{rows:,} brief variables, beside a cursor of sqlite3"
    seconds, _, size = compare(what, BRIEF_OURS, BRIEF_CURSOR, profile, runs)
    columns = rows * (4 * 8 + 1)
    print(f"  with reading, wanted: under 1.5 s for a million, is {seconds / rows * 1e6:.2f} s")
    print(f"  peak memory {size / 2**20:,.0f} MiB, wanted: under 1.5 × the {columns / 2**20:,.0f} MiB of the columns, "
          f"is {size / columns:.2f} ×")  # fmt: skip


if __name__ == "__main__":
    main()
