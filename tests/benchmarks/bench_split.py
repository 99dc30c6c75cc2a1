"""Splitting into pipeline stages against the published method, told in plain Python and numpy; run by hand.

    python tests/benchmarks/bench_split.py --make DIRECTORY       # once; a report of one IPU with 12 layers
    python tests/benchmarks/bench_split.py [DIRECTORY] [IPUS] [REGEX]

The reference is that of the tests with the published method's own way to find the most that is live: sizes are numpy's
unsigned integers, added up in a dictionary for each tile; a pool of eight processes, made for each stage, adds up the
steps of the tiles; and what was found is remembered by the frozen set of the variables. The memory of a stage is made
anew for every layer that is tried. It is given the operations for nothing, and the report from sqlite3. Both get the
same limit, a quarter above the least that is possible, so that every stage is needed, and both read the report.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import defaultdict
from itertools import repeat
from multiprocessing import Pool
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from pvanalyse import open_report
from pvanalyse.analysis.operation_groups import operation_groups
from pvanalyse.analysis.splitting.pipeline_split import pipeline_split
from tests.oracle.splitting import Splitter

ROOT = Path(__file__).parents[2]
SIZES = "--ipus 1 --tiles-per-ipu 1472 --layers 12 --hidden 512 --inference --execution nothing --archive none"


class Published(Splitter):
    """The reference with the published method's way to find the most that is live."""

    _known: ClassVar[dict[frozenset[int], np.ndarray]] = {}

    def _most_live(self, variables: set[int], begin: int, end: int) -> np.ndarray:
        if frozenset(variables) not in self._known:
            by_tile: list[dict[Any, np.uint64]] = [defaultdict(np.uint64) for _ in range(self.num_tiles)]
            for variable in variables:
                kind, size, tile = self.variables[variable]
                by_tile[tile][kind] += np.uint64(size)
            LIVE.update(self.live)
            with Pool(8) as pool:
                most = pool.starmap(most_live, zip(repeat(begin), repeat(end), by_tile))
            self._known[frozenset(variables)] = np.array(most, np.int64)
        return self._known[frozenset(variables)]


LIVE: dict[Any, np.ndarray] = {}  # what the processes of a pool inherit


def most_live(begin: int, end: int, sizes: dict[Any, np.uint64]) -> np.uint64:
    live = np.zeros(end - begin, np.uint64)
    for kind, size in sizes.items():
        if kind in LIVE:
            live += LIVE[kind][begin:end].astype(bool) * size
    return live.max()


def programs_of_operations(directory: Path) -> dict[str, set[int]]:
    programs: dict[str, set[int]] = defaultdict(set)
    with open_report(directory) as report:
        groups = operation_groups(report)
        ids = report.arrow("programs", ["program_id"]).column(0).to_pylist()
    for program, row in zip(ids, groups.of_program.tolist(), strict=True):
        if row >= 0:
            programs[groups.frame["name"][row]].add(program)
    return programs


def main() -> None:
    """Measure, and print the ratios."""
    if sys.argv[1:2] == ["--make"]:
        command = [sys.executable, str(ROOT / "sample_reports" / "synthesise.py"), *SIZES.split(), "-o", sys.argv[2]]
        subprocess.run(command, check=True)
        return
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sample_reports" / "out_of_memory"
    ipus = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    pattern = sys.argv[3] if len(sys.argv) > 3 else r"layer_\d+/\w+/\w+"
    with open_report(directory) as report:
        best = int(pipeline_split(report, ipus, pattern).stages["fullest_tile_bytes"].max())
        print(
            f"{directory}: {report.count('lowered_variables'):,} lowered variables, {report.count('programs'):,} programs"
        )
    limit = best * 5 // 4
    seconds, fullest, stops = {}, {}, {}
    for method in ("exact", "greedy"):
        begin = time.perf_counter()
        with open_report(directory) as report:
            stages = pipeline_split(report, ipus, pattern, method, limit).stages
        seconds[method] = time.perf_counter() - begin
        fullest[method], stops[method] = int(stages["fullest_tile_bytes"].max()), stages["num_layers"].cumsum().tolist()
        print(
            f"{method:>10}: {seconds[method]:8.2f} s with reading   fullest tile {fullest[method]:>9,} bytes   {stops[method]}"
        )
    programs = programs_of_operations(directory)
    begin = time.perf_counter()
    found = re.compile(pattern)
    splitter = Published(directory / "profile.pop", lambda name: (match := found.search(name)) and match[0], True)
    operations = splitter.operations(programs)
    read = time.perf_counter() - begin
    published = splitter.greedy(operations, ipus, limit)
    whole = time.perf_counter() - begin
    assert published == stops["greedy"], "the greedy method is the published one"
    layers = splitter.layers(operations)
    worst = max(splitter.fullest(operations, layers[a:b]) for a, b in zip([0, *published], published, strict=False))
    print(f" published: {whole:8.2f} s, of which {read:.2f} s reading   fullest tile {worst:>9,} bytes   {published}")
    assert worst == fullest["greedy"], "and so is its memory"
    for method, took in seconds.items():
        print(f"{method} is {whole / took:.0f} × as fast as the published method (wanted: at least 30 ×)")


if __name__ == "__main__":
    main()
