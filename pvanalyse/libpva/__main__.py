"""Run a script that was written for libpva: ``python -m pvanalyse.libpva SCRIPT [ARGUMENTS …]``."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from pvanalyse.libpva import install

USAGE = """\
Usage: python -m pvanalyse.libpva SCRIPT [ARGUMENTS …]
       python -m pvanalyse.libpva -m MODULE [ARGUMENTS …]

Runs a Python script, or a module such as pytest, that was written for libpva, the library of Graphcore's SDK:
"import pva" is answered by pvanalyse, in this process only. Everything else is as if Python itself ran it.
"""
_WRONG_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments name and return the exit code; a script's own exit is let through."""
    if list(arguments[:1]) in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if not arguments or list(arguments) == ["-m"] or (arguments[0][:1] == "-" and arguments[0] != "-m"):
        sys.stderr.write(USAGE)
        return _WRONG_USAGE
    if arguments[0] == "-m":
        return _run_module(arguments[1], arguments[2:])
    return _run_script(arguments[0], arguments[1:])


def _run_script(path: str, arguments: Sequence[str]) -> int:
    """Run a file as ``python FILE`` does: as ``__main__``, with its directory first on the path."""
    full = os.path.abspath(path)  # noqa: PTH100  (Python does not follow links here)
    try:
        source = Path(full).read_bytes()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}\n")
        return _WRONG_USAGE
    module = ModuleType("__main__")
    loader = SourceFileLoader("__main__", full)
    module.__dict__.update(__file__=full, __loader__=loader, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv[:] = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(full))  # noqa: PTH120

    def run() -> None:
        code: CodeType = compile(source, full, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  (running it is what was asked for)

    return _reported(run)


def _run_module(name: str, arguments: Sequence[str]) -> int:
    """Run a module as ``python -m MODULE`` does."""
    import runpy

    sys.argv[:] = [name, *arguments]
    return _reported(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def _reported(run: Callable[[], Any]) -> int:
    """Run, with ``import pva`` answered; an exception is shown as Python shows it, without our own frames."""
    install()
    try:
        run()
    except Exception as error:  # noqa: BLE001  (whatever it is, it is the script's)
        error.__traceback__ = _beyond_us(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _beyond_us(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins in the script."""
    ours = {__file__, getattr(sys.modules.get("runpy"), "__file__", None), "<frozen runpy>"}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
