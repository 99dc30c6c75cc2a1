"""A whole capture: the parts one after another, in chunks, continued where an earlier one stopped."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pvanalyse.capture import compilation, execution, variables
from pvanalyse.capture.capture_file import CaptureFile, sentence
from pvanalyse.capture.not_told import GUARDED, NEVER_TOLD, NotTold
from pvanalyse.capture.parts import ABSENT, MISFIT, NOT_THERE, Part, Session
from pvanalyse.errors import PvanalyseError, UnreadableFile, UsageError
from pvanalyse.names import printable
from pvanalyse.readers.files import regular_file
from pvanalyse.report_files import CAPTURING
from pvanalyse.tables import PROFILE

_KINDS: tuple[type[Part], ...] = (
    *(compilation.Facts, compilation.Target, compilation.Graph, compilation.Tiles, compilation.ComputeSets),
    *(variables.Classes, variables.Lowered, variables.AlwaysLive, variables.Liveness),
    *(compilation.Programs, execution.Runs, execution.Steps, execution.Blocks),
)
PARTS = tuple(kind.name for kind in _KINDS)
"""What is captured, in this order; variables are numbered where they are met on a tile, which is before the rest."""

Progress = Callable[[str, int, int], None]
"""Takes the part, the items of it that are done, and all of them."""

_CHANGE_COUNTER = slice(24, 28)  # of a SQLite file's header


@dataclass(frozen=True, slots=True)
class Captured:
    """What a capture wrote.

    Attributes
    ----------
    profile
        The file.
    tables
        Its tables, and their rows.
    without
        What it is without, and what that means.
    remarks
        Sentences about how this capture went.
    """

    profile: Path
    tables: Mapping[str, int]
    without: tuple[NotTold, ...]
    remarks: tuple[str, ...]


def open_module(name: str) -> Any:
    """Import a module with libpva's interface.

    Raises
    ------
    UsageError
        There is none, it cannot be imported, or it is something else.
    """
    where = (
        "it comes with Graphcore's Poplar SDK: enable the SDK in this shell and use the Python that it is installed "
        "for; --pva names another module with the same interface"
    )
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name in (name, name.partition(".")[0]):
            raise UsageError(f"there is no Python module '{name}'; {where}") from None
        raise UsageError(f"the Python module '{name}' cannot be imported ({error}); {where}") from None
    except Exception as error:  # noqa: BLE001  (whatever someone else's module does when it is loaded)
        raise UsageError(f"the Python module '{name}' cannot be imported ({_said(error)}); {where}") from None
    if not callable(getattr(module, "openReport", None)):
        raise UsageError(f"the Python module '{name}' is not libpva, it has no openReport; {where}")
    return module


def capture_report(
    source: Path,
    directory: Path,
    module: Any,
    *,
    skip: Collection[str] = (),
    progress: Progress = lambda _part, _done, _total: None,
    chunk_seconds: float = 2.0,
) -> Captured:
    """Walk a report through libpva and write what it tells as a profile.

    What is done is kept when it is interrupted, but for the last ``chunk_seconds`` of work, and the next call goes on
    from there if the report is still the same. The report itself is only read, by the module.

    Parameters
    ----------
    source
        The ``profile.pop`` to read.
    directory
        Where to write one; made when it is not there. One that is there already is replaced when everything is done.
    module
        ``pva``, or a module with its interface.
    skip
        Names out of :data:`PARTS` to leave out.
    progress
        Called when a part begins, after each chunk, and when the part is done.

    Raises
    ------
    UnreadableFile
        The report cannot be opened, or the profile not be written.
    PvanalyseError
        libpva failed on the way.
    """
    target = directory / PROFILE
    origin = _origin(source, module)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableFile(directory, f"cannot be made ({error.strerror}); name another one with -o") from None
    unfinished = directory / CAPTURING
    try:
        file = CaptureFile(unfinished, origin, chunk_seconds)
        try:
            if not file.complete:
                _capture(source, module, file, skip, progress)
                if _origin(source, module) != origin:
                    raise UnreadableFile(source, "was changed while it was captured; capture it again")
                found = {"tables": [asdict(one) for one in _without(file)], "remarks": _remarks(file)}
                file.finish(found, told_uses=f"{ABSENT}Program.vars" not in file.remarks)
            tables, without = file.tables, file.without
        finally:
            file.close()
        unfinished.replace(target)
    except sqlite3.Error as error:
        raise sentence(unfinished, error) from None
    except OSError as error:
        raise UnreadableFile(target, f"cannot be written ({error.strerror})") from None
    told = (NotTold(one["table"], tuple(one["columns"]), one["meaning"]) for one in without["tables"])
    return Captured(target, tables, tuple(told), (*_beginning(file, unfinished), *without["remarks"]))


def _origin(source: Path, module: Any) -> dict[str, str]:
    """Return what tells whether a report is the one of which a part was captured before."""
    size, head = regular_file(source, 100)
    return {
        "layout": "pvanalyse-1",
        "captured_through": module.__name__,
        "captured_bytes": str(size),
        "captured_changed_ns": str(source.stat().st_mtime_ns),
        "captured_change_counter": str(int.from_bytes(head[_CHANGE_COUNTER], "big")),
    }


def _capture(source: Path, module: Any, file: CaptureFile, skip: Collection[str], progress: Progress) -> None:
    with _failing(source, module, "when it opened the report"):
        session = Session(module.openReport(os.fspath(source)), file)
    for kind in _KINDS:
        done, finished = file.done(kind.name)
        place = _Place(kind.name, done)
        if not finished:
            with _failing(source, module, place):
                why = "it was to be skipped" if kind.name in skip else _walk(kind(session), place, file, progress)
                if why:
                    file.leave_out(kind.name, kind.tables, why)
                    session.restore()


@dataclass(slots=True)
class _Place:
    """Where in a report a capture is."""

    part: str
    at: int

    def __str__(self) -> str:
        return (
            f"in part '{self.part}', item {self.at:,}; what was captured before is kept and the same command "
            f"continues it, with --skip '{self.part}' without this part"
        )


def _walk(part: Part, place: _Place, file: CaptureFile, progress: Progress) -> str:
    """Write what is left of a part; return why it has to be left out, or nothing."""
    try:
        items = part.items()
        total = len(items)
        part.begin(place.at)
        progress(part.name, place.at, total)
        for item in islice(iter(items), place.at, None):
            part.write(place.at, item)
            place.at += 1
            if file.due:
                part.keep()
                file.keep(part.name, place.at)
                progress(part.name, place.at, total)
        part.end()
    except NOT_THERE as error:
        return printable(str(error)) or type(error).__name__
    file.keep(part.name, place.at, finished=True)
    progress(part.name, total, total)
    return ""


@contextmanager
def _failing(source: Path, module: Any, where: object) -> Iterator[None]:
    """Turn what libpva may raise into a sentence; our own errors pass."""
    try:
        yield
    except (PvanalyseError, sqlite3.Error, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001  (whatever someone else's module raises)
        raise UnreadableFile(source, f"{module.__name__} failed ({_said(error)}) {where}") from None


def _said(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}")


# ------------------------------------------------------------------------------------------------- what it is without
def _without(file: CaptureFile) -> Iterator[NotTold]:
    yield from NEVER_TOLD
    if not file.count("variables"):
        yield NotTold(
            "variable_liveness", ("variable_id",), "no variable was met on a tile, so that variables go by their names"
        )
    tables = {kind.name: [one for one in kind.tables if not one.startswith("capture_")] for kind in _KINDS}
    for part, why in file.left_out.items():
        for table in tables[part]:
            yield NotTold(table, (), f"left out: {why}")
    for remark, times in file.remarks.items():
        if remark.startswith(ABSENT):
            attribute = remark.removeprefix(ABSENT)
            owner, _, name = attribute.partition(".")
            table, columns = GUARDED.get(attribute, (owner, (name,)))
            yield NotTold(table, columns, f"not told by this libpva, or not of this report: {attribute}")
        elif remark.startswith(MISFIT):
            table, _, column = remark.removeprefix(MISFIT).partition(".")
            meaning = f"in {times:,} rows libpva's numbers are not one for each tile, or too large; left out there"
            yield NotTold(table, (column,), meaning)


def _remarks(file: CaptureFile) -> list[str]:
    return [remark for remark in file.remarks if not remark.startswith((ABSENT, MISFIT))]


def _beginning(file: CaptureFile, unfinished: Path) -> Iterator[str]:
    if file.continued:
        yield "an earlier capture was continued"
    if file.discarded:
        yield f"{unfinished.name} was of another report, or of this one before it changed; captured afresh"
