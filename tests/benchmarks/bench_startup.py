"""How long ``pvanalyse --help`` takes beyond a bare interpreter; run by hand: python tests/benchmarks/bench_startup.py"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time


def seconds(arguments: list[str]) -> float:
    """Return the wall time of a process."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    """Take turns, and print the median difference."""
    differences = []
    for _ in range(21):
        bare = seconds(["-c", "pass"])
        differences.append(seconds(["-m", "pvanalyse", "--help"]) - bare)
    print(f"--help takes {statistics.median(differences) * 1000:.0f} ms beyond 'python -c pass' (wanted: under 150)")


if __name__ == "__main__":
    main()
