"""libpva's Python object model over the reports that pvanalyse reads: what ``import pva`` offers, without the SDK.

Scripts that were written for libpva run as they are::

    python -m pvanalyse.libpva SCRIPT [ARGUMENTS …]

and in a notebook, ``import pva`` is answered after::

    import pvanalyse.libpva

    pvanalyse.libpva.install()

Names, shapes and laziness are those that public documentation and public programs show. An attribute that libpva may
have, but whose spelling nobody here has seen, raises an ``AttributeError`` that says so and where pvanalyse has the
data. Lists of what was not recorded are empty, as libpva's are; an answer that would be wrong without the data raises
:class:`pvanalyse.NotCaptured`.
"""

from __future__ import annotations

import sys
from types import ModuleType

from pvanalyse.libpva import pva_core
from pvanalyse.libpva.pva_core import *  # noqa: F403
from pvanalyse.libpva.pva_core import __all__ as _names

__all__ = ["install", "pva_core", "uninstall", *_names]

_MODULES = {"pva": sys.modules[__name__], "pva.pva_core": pva_core}
_hidden: dict[str, ModuleType | None] = {}


def install() -> None:
    """Let ``import pva`` in this process be answered by this module.

    Only the entries ``pva`` and ``pva.pva_core`` of ``sys.modules`` are set. A libpva that is installed stays where it
    is for every other process, and for this one after :func:`uninstall`; modules that have imported it already keep
    it. Nothing else is touched. Doing it twice is doing it once.
    """
    for name, module in _MODULES.items():
        if sys.modules.get(name) is not module:
            _hidden[name] = sys.modules.get(name)
            sys.modules[name] = module


def uninstall() -> None:
    """Undo :func:`install`: ``import pva`` is again answered as it was before."""
    for name, module in _MODULES.items():
        if sys.modules.get(name) is module:
            before = _hidden.pop(name, None)
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before
