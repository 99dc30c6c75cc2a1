"""What ``@pytest.mark.ipu_memory(...)`` may say, and what the marks of one test say together."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pvanalyse.errors import UsageError

if TYPE_CHECKING:
    import pytest

    from pvanalyse.analysis.rules import Increase, Limit, Rules

MARK = "ipu_memory"
UPDATE_OPTION = "--ipu-update-baselines"
SHORT_NAMES = {
    "tile_max": "memory.tile_max_including_gaps",
    "tile_mean": "memory.tile_mean_including_gaps",
    "ipu_max": "memory.ipu_max_including_gaps",
    "total": "memory.total_including_gaps",
    "gaps": "memory.gaps",
    "always_live": "memory.always_live",
    "not_always_live": "memory.not_always_live",
    "peak": "liveness.peak",
    "peak_not_always_live": "liveness.peak_not_always_live",
    "overflowed": "memory.overflowed",
    "tiles_out_of_memory": "memory.tiles_out_of_memory",
}
"""Arguments of the mark that are limits of one metric; any other metric goes into ``limits``."""

_PATHS = ("baseline", "budget", "report")
ARGUMENTS = (*SHORT_NAMES, "limits", "increase", *_PATHS)

SIGNATURE = f"{MARK}({', '.join(f'{name}=None' for name in ARGUMENTS)})"
DESCRIPTION = (
    "hold the test's report against limits such as tile_max='600 KiB', limits={'memory.category.*': '10 MiB'} and "
    "increase='1%' over a baseline; what is not said is not limited. The report is the one that report= names, what "
    "the fixture ipu_report profiled, and what open_report opened; without any the test fails. Paths are relative to "
    "the test's file. Marks of function, class and module add up, and the closest holds for what several say."
)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a test demands of its report.

    Attributes
    ----------
    rules
        Limits and increases.
    baseline, budget, report
        Paths that the marks name, None where they name none.
    """

    rules: Rules
    baseline: Path | None = None
    budget: Path | None = None
    report: Path | None = None


def marks_of(item: pytest.Item) -> list[pytest.Mark]:
    """Return the marks of a test, those that take the place of others last.

    Pytest lists them in this order in each node: base class before derived, lower decorator before upper, and the
    marks of a parameter after those of the function.
    """
    return [mark for node in item.listchain() for mark in node.own_markers if mark.name == MARK]


def read_demand(item: pytest.Item, budget: Path | None = None) -> Demand | None:
    """Return what a test demands, None when it has no mark.

    Parameters
    ----------
    item
        The test.
    budget
        The budget of tests whose marks name none.

    Raises
    ------
    UsageError
        An argument is unknown or cannot be read, or nothing is demanded.
    """
    marks = marks_of(item)
    if not marks:
        return None
    from pvanalyse.analysis.rules import Rules

    demand = Demand(Rules(), budget=budget)
    for mark in marks:
        demand = _with(demand, mark, item.path.parent)
    if not demand.rules and demand.baseline is None and demand.budget is None:
        raise UsageError(f"@pytest.mark.{MARK} demands nothing: give a limit, such as tile_max='600 KiB', an increase "
                         "over a baseline, a baseline or a budget")  # fmt: skip
    return demand


def baseline_path(item: pytest.Item, engine: str = "") -> Path:
    """Return where the baseline of a test is when its marks demand an increase and name none.

    Parameters
    ----------
    item
        The test.
    engine
        Tells the baselines of a test apart that makes several reports.
    """
    _, _, name = item.nodeid.partition("::")
    wanted = ".".join(filter(None, [name.replace("::", "."), engine]))
    safe = re.sub(r"[^\w.,=+\[\] -]", "_", wanted, flags=re.ASCII)[:120]
    if safe != wanted:
        safe = f"{safe}-{zlib.crc32(wanted.encode('utf-8', 'surrogatepass')):08x}"
    return item.path.parent / "ipu_baselines" / item.path.stem / f"{safe}.json"


def _with(demand: Demand, mark: pytest.Mark, directory: Path) -> Demand:
    """Return a demand with what one more mark says."""
    from pvanalyse.analysis.rules import Rules

    if mark.args:
        raise UsageError(
            f"@pytest.mark.{MARK} takes arguments by name, such as tile_max='600 KiB', not {mark.args[0]!r}"
        )
    for name in mark.kwargs:
        if name not in ARGUMENTS:
            raise _unknown(name)
    rules = Rules(
        limits=(*_short(mark.kwargs), *_limits(mark.kwargs.get("limits", ()))),
        increases=tuple(_increases(mark.kwargs.get("increase", ()))),
    )
    paths = {name: _path(name, mark.kwargs[name], directory) for name in _PATHS if name in mark.kwargs}
    return replace(demand, rules=demand.rules.with_later(rules), **paths)


def _unknown(name: str) -> UsageError:
    near = get_close_matches(name, ARGUMENTS, n=3, cutoff=0.6)
    nearest = f"the nearest: {', '.join(near)}" if near else f"there are {', '.join(ARGUMENTS)}"
    return UsageError(f"@pytest.mark.{MARK} has no argument '{name}'; {nearest}. "
                      "Metrics without a short name go into limits={'memory.gaps': '1 MiB'}")  # fmt: skip


def _short(given: Mapping[str, Any]) -> Iterator[Limit]:
    from pvanalyse.gate.limits import parse_metric_limit

    for name, metric in SHORT_NAMES.items():
        if name in given:
            yield parse_metric_limit(metric, _amount(name, given[name]), f"{MARK}({name}=…)")


def _limits(given: Any) -> Iterator[Limit]:
    from pvanalyse.gate.limits import parse_limit, read_limits

    if isinstance(given, Mapping):
        yield from read_limits({_text("limits", name): _amount("limits", value) for name, value in given.items()})
        return
    for one in _several("limits", given):
        yield parse_limit(_text("limits", one), f"{MARK}(limits=…)")


def _increases(given: Any) -> Iterator[Increase]:
    from pvanalyse.gate.limits import parse_increase, read_increases

    if isinstance(given, Mapping):
        yield from read_increases({_text("increase", name): _increase(value) for name, value in given.items()})
        return
    for one in _several("increase", given):
        yield parse_increase(_increase(one), f"{MARK}(increase=…)")


def _increase(value: Any) -> str:
    if isinstance(value, float):  # 0.01 would be a hundredth of a byte, which nobody means
        raise _wrong("increase", value, "a share or a size, such as '1%', '64 KiB' or 65536")
    return _amount("increase", value)


def _several(name: str, given: Any) -> Iterable[Any]:
    if isinstance(given, (str, int, float)):
        return [given]
    if isinstance(given, (list, tuple)):
        return given
    raise _wrong(name, given, "a text, a list of texts, or a dictionary by metrics")


def _amount(name: str, value: Any) -> str:
    return str(_of(name, value, (str, int, float), "a number or a text such as '600 KiB'"))


def _text(name: str, value: Any) -> str:
    return str(_of(name, value, (str,), "made of texts, such as 'memory.gaps<=1MiB'"))


def _path(name: str, value: Any, directory: Path) -> Path:
    path: str = os.fspath(_of(name, value, (str, os.PathLike), "a path"))
    if not path:
        raise _wrong(name, path, "a path")
    return directory / path


def _of(name: str, value: Any, kinds: tuple[type, ...], what: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise _wrong(name, value, what)
    return value


def _wrong(name: str, value: Any, what: str) -> UsageError:
    return UsageError(f"@pytest.mark.{MARK}({name}=…) is {what}, not {value!r}")
