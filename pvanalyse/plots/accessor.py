"""``report.plot``: every kind of plot as a method."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from pvanalyse.plots import KINDS
from pvanalyse.tables import TableSource

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BY_METHOD = {kind.function: kind for kind in KINDS.values()}


class Plots:
    """The plots of a report: ``report.plot.memory_by_tile(by="region")`` and the like, each of which returns Axes.

    In a notebook a plot is shown like any other; elsewhere save it with ``axes.figure.savefig("plot.png")``, or give
    Axes of your own as ``ax``. The legend is beside the data, so a figure of your own needs ``layout="constrained"``.
    """

    def __init__(self, source: TableSource) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Callable[..., Axes]:
        if name not in _BY_METHOD:
            raise AttributeError(f"there is no plot {name!r}; there are: {', '.join(_BY_METHOD)}")
        return _bound(_BY_METHOD[name].load(), self._source)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_BY_METHOD]

    def __repr__(self) -> str:
        return "\n".join(f"{kind.function}: {kind.doc}" for kind in KINDS.values())


def _bound(function: Callable[..., Axes], source: TableSource) -> Callable[..., Axes]:
    """Return the function without its first argument, with its documentation and signature."""

    @wraps(function)
    def plot(*args: Any, **kwargs: Any) -> Axes:
        return function(source, *args, **kwargs)

    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.name != "source"]
    plot.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return plot
