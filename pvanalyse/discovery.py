"""Which directories are reports, what belongs to each, and which debug.cbor goes with which profile.pop.

A directory is a report when it holds ``profile.pop`` or ``archive.a``, or at least the ``profile.pop_cache`` that the
vendor's viewer left behind. An engine with a name writes into a directory of that name below the report directory
that was asked for, while ``debug.cbor`` is written once, above them; TensorFlow makes a directory
``tf_report__<date>__<time>__<process id>`` per compiled cluster and puts a symbolic link to ``debug.cbor`` into it.

Nothing is opened here except ``framework.json``, for the name of the cluster, and the first bytes of files that may
be profiles of the old generation. Needs the standard library only.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from os import PathLike
from pathlib import Path

from pvanalyse.errors import AmbiguousReport, ReportNotFound, UnreadableFile
from pvanalyse.names import printable
from pvanalyse.report_files import (
    CAPTURED,
    CAPTURING,
    KINDS,
    FileKind,
    Remains,
    ReportFile,
    ReportFiles,
    Skipped,
    Survey,
)
from pvanalyse.tables import ARCHIVE, DEBUG_INFO, FRAMEWORK, PROFILE, TRACE_CACHE

StrPath = str | PathLike[str]


_MAKES_A_REPORT = (FileKind.PROFILE, FileKind.ARCHIVE, FileKind.TRACE_CACHE)
_BESIDE_A_REPORT = (FileKind.DEBUG_INFO, FileKind.FRAMEWORK, FileKind.APP)  # say nothing when they are alone
_DEFAULT_ENGINES = ("inference", "training")

# Other programs write files of these names too, so the names alone say nothing.
_COMMON_NAMES = frozenset({"graph.json", "execution.json", "profile_info.json"})
_TELLINGKINDS = (FileKind.ARCHIVE, FileKind.LOWERED_VARIABLES, FileKind.SERIALISED_GRAPH, FileKind.OLD_PROFILE)
_OLD_KEYS = re.compile(
    rb'"(alwaysLive|bytesPerIPU|bytesPerTile|clockFrequency|computeSetCycles\w*|computeSets|numComputeSets|numIPUs'
    rb'|profilerMode|relativeSyncDelayByTile|tilesPerIPU|vertexTypes)"\s*:'
)
_HEAD_BYTES = 65_536

_UNFINISHED = re.compile(r"profile_.+\.pop", re.DOTALL)
_JOURNAL = re.compile(r"(profile(?:_.+)?\.pop(?:_cache)?)-(?:journal|wal|shm)", re.DOTALL)

# tf_report__2021-10-06__02-24-24.631__70052
_TENSORFLOW = re.compile(
    r"tf_report__([0-9]{4}-[0-9]{2}-[0-9]{2})(?:__?|T)([0-9]{2})[-:]([0-9]{2})[-:]([0-9]{2}(?:\.[0-9]{1,9})?)__([0-9]{1,19})"
)
_MAX_FRAMEWORK_BYTES = 1 << 20
_MAX_LINES = 12


def find_reports(path: StrPath) -> list[ReportFiles]:
    """Return every report at or below a path, in the order of the paths, parents first.

    A path that is itself a symbolic link is followed; links to directories below it are not.

    Raises
    ------
    ReportNotFound
        There is nothing at the path. A directory without reports is an empty list.
    AmbiguousReport, UnreadableFile
        As for :func:`survey`.
    """
    return list(survey(path).reports)


def survey(path: StrPath) -> Survey:
    """Return what is at or below a path: reports, what is left of others, and what could not be looked into.

    Raises
    ------
    ReportNotFound
        There is nothing at the path, or it is a file that is no part of a report.
    AmbiguousReport
        The path is a file that several reports share, such as their debug.cbor.
    UnreadableFile
        The path may not be read.
    """
    top = Path(path)
    if not stat.S_ISDIR(_status(path).st_mode):
        return Survey(top, (resolve_report(path),))
    reports: list[ReportFiles] = []
    remains: list[Remains] = []
    skipped: list[Skipped] = []
    for directory, names in _walk(top, skipped):
        holding = _gather(directory, names)
        if holding.is_report:
            reports.append(_report(directory, holding))
        elif left := holding.left(directory):
            remains.append(left)
    if skipped and skipped[0].directory == top:
        raise UnreadableFile(path, skipped[0].problem)
    return Survey(top, tuple(reports), tuple(remains), tuple(skipped))


def resolve_report(path: StrPath) -> ReportFiles:
    """Return the one report that a path means.

    The path may be a report directory, a file of a report, a profile under another name (a copy, or the
    ``profile_<random>.pop`` of a run that crashed), or a directory with exactly one report somewhere below.

    Raises
    ------
    ReportNotFound
        There is nothing at the path, or no report; the message says what is there instead.
    AmbiguousReport
        Several reports lie below the path.
    UnreadableFile
        The path may not be read, or is neither a directory nor a regular file.
    """
    if not stat.S_ISDIR(_status(path).st_mode):
        return _report_of_file(Path(path))
    directory = Path(path)
    holding = _gather(directory, _names(directory))
    if holding.is_report:
        return _report(directory, holding)
    found = survey(directory)
    if not found.reports:
        raise ReportNotFound(_nothing_found(found, holding))
    if len(found.reports) > 1:
        raise AmbiguousReport(path, [report.directory for report in found.reports])
    return found.reports[0]


# ---------------------------------------------------------------------------------------------- looking at the disk


def _status(path: StrPath) -> os.stat_result:
    """Look at the path that a person named."""
    try:
        # not Path.stat: Path("") would be the current directory, and an empty path is most often an unset variable
        return os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError, ValueError):
        target = _link_target(Path(path))
        problem = f"is a symbolic link to {target}, which does not exist" if target else "no such file or directory"
        raise ReportNotFound(f"{printable(os.fspath(path))}: {problem}") from None
    except OSError as error:
        raise UnreadableFile(path, _reason(error)) from None


def _walk(top: Path, skipped: list[Skipped]) -> Iterator[tuple[Path, list[str]]]:
    """Yield directories with the names in them that concern us; what cannot be listed goes to ``skipped``."""
    pending = [os.fspath(top)]
    while pending:
        directory = pending.pop()
        names: list[str] = []
        below: list[str] = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    if _concerns(entry.name):
                        names.append(entry.name)
        except OSError as error:
            skipped.append(Skipped(Path(directory), _reason(error)))
        below.sort(reverse=True)
        pending += below
        if names:
            yield Path(directory), names


def _names(directory: Path) -> list[str]:
    """Return the names in a directory that concern us."""
    try:
        return [name for name in os.listdir(directory) if _concerns(name)]  # noqa: PTH208  (names, not paths)
    except OSError as error:
        raise UnreadableFile(directory, _reason(error)) from None


def _concerns(name: str) -> bool:
    if name in KINDS:
        return True
    return name.startswith("profile") and bool(_UNFINISHED.fullmatch(name) or _JOURNAL.fullmatch(name))


class _Missing(UnreadableFile):
    """There is nothing at the path, or at the end of the link that it is."""


def _size(path: Path) -> int:
    """Return the size of a regular file; the problem of an :class:`UnreadableFile` can follow the file's name."""
    try:
        status = path.stat()
    except FileNotFoundError:
        target = _link_target(path)
        problem = f"is a symbolic link to {target}, which does not exist" if target else "does not exist"
        raise _Missing(path, problem) from None
    except OSError as error:
        raise UnreadableFile(path, _reason(error)) from None
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    what = "directory" if stat.S_ISDIR(status.st_mode) else "pipe" if stat.S_ISFIFO(status.st_mode) else "device"
    raise UnreadableFile(path, f"is a {what}, not a file")


def _link_target(path: Path) -> str:
    """Return where a symbolic link points, for people; empty when the path is none."""
    try:
        return f"'{printable(os.fspath(path.readlink()))}'"
    except (OSError, ValueError):
        return ""


def _reason(error: OSError) -> str:
    return "no permission to read it" if isinstance(error, PermissionError) else f"cannot be opened ({error.strerror})"


# ------------------------------------------------------------------------------------- what lies in one directory


@dataclass(slots=True)
class _Holding:
    """What one directory holds."""

    files: list[ReportFile] = field(default_factory=list)
    leftovers: list[ReportFile] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)  # by file name: a sentence on a file that cannot be used
    unusable: dict[str, str] = field(default_factory=dict)  # the same, less links that lead nowhere: nothing is there

    def has(self, *kinds: FileKind) -> bool:
        return any(file.kind in kinds for file in self.files)

    @property
    def is_report(self) -> bool:
        return self.has(*_MAKES_A_REPORT)

    def left(self, directory: Path) -> Remains | None:
        """Return what is worth telling about a directory that holds no report."""
        files = [file for file in self.files if file.kind is FileKind.OLD_PROFILE] + self.leftovers
        problems = [text for name, text in self.problems.items() if KINDS.get(name) not in _BESIDE_A_REPORT]
        notes = [file.note for file in self.leftovers] + problems + _old_generation_note(self.files)
        return Remains(directory, tuple(files), tuple(notes)) if notes else None


def _gather(directory: Path, names: Iterable[str]) -> _Holding:
    holding = _Holding()
    present = set(names)
    for name in KINDS:
        if name in present:
            _add(holding, directory / name, KINDS[name])
    _drop_strangers(holding)
    for name in sorted(present - KINDS.keys()):
        _add(holding, directory / name, FileKind.UNFINISHED if _UNFINISHED.fullmatch(name) else FileKind.JOURNAL)
    if PROFILE in present and (directory / PROFILE).is_symlink():
        _add_journals(holding, directory / PROFILE)
    return holding


def _add(holding: _Holding, path: Path, kind: FileKind) -> None:
    try:
        size = _size(path)
    except UnreadableFile as error:
        if path.name not in _COMMON_NAMES:
            holding.problems[path.name] = f"{printable(path.name)} {error.problem}"
        # A link that leads nowhere is a file left behind when the directory was copied; all else is in the way.
        if path.name in KINDS and not isinstance(error, _Missing):
            holding.unusable[path.name] = error.problem
        return
    if kind is FileKind.UNFINISHED or kind is FileKind.JOURNAL:
        holding.leftovers.append(_leftover(path, kind, size))
        return
    target = _link_target(path)
    notes = (
        f"a symbolic link to {target}" if target else "",
        "" if size else "empty",
        "" if os.access(path, os.R_OK) else "closed to you",
    )
    holding.files.append(ReportFile(path.name, path, kind, size, " and ".join(filter(None, notes))))


def _drop_strangers(holding: _Holding) -> None:
    """Forget files such as graph.json when nothing says that they are profiles of the old generation."""
    doubtful = [file for file in holding.files if file.name in _COMMON_NAMES]
    if not doubtful or any(file.kind in _TELLINGKINDS for file in holding.files if file not in doubtful):
        return
    if not any(_OLD_KEYS.search(_head(file.path)) for file in doubtful):
        holding.files = [file for file in holding.files if file not in doubtful]


def _add_journals(holding: _Holding, database: Path) -> None:
    """Add the side files of a database, which SQLite keeps where a symbolic link leads."""
    base = os.path.realpath(database)
    for path in (Path(base + suffix) for suffix in ("-journal", "-wal", "-shm")):
        if path.exists():
            _add(holding, path, FileKind.JOURNAL)


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _leftover(path: Path, kind: FileKind, size: int) -> ReportFile:
    """Return a file of a run that crashed or is still going, with a sentence on what it means."""
    name = printable(path.name)
    database, _, suffix = name.rpartition("-")
    if path.name == CAPTURING:
        note = f"{name} is an unfinished 'pvanalyse capture'; run that command again, and it continues"
    elif kind is FileKind.UNFINISHED:
        held = "name the file itself to read what it holds" if size else "it is empty"
        note = (
            f"{name} is the profile of a run that is still going, or that ended before its engine was destroyed, "
            f"which is when the file becomes {PROFILE}; {held}"
        )
    elif suffix == "shm" or not size:
        note = f"{name} is a side file of SQLite that holds nothing of its own"
    else:
        note = (
            f"{name} is not empty: {database} is still being written or was not closed, and what is read from it may "
            f"be incomplete; let the program end, or open a copy of both files once with sqlite3, which completes it"
        )
    return ReportFile(path.name, path, kind, size, note)


# ----------------------------------------------------------------------------------------------- making a report


def _report(directory: Path, holding: _Holding, notes: Iterable[str] = ()) -> ReportFiles:
    debug_info, origin = _find_debug_info(directory, holding)
    name = _true_directory(directory).name
    created, process_id = _tensorflow_run(name)
    cluster, framework_problems = _cluster(holding)
    return ReportFiles(
        directory,
        tuple(holding.files),
        engine=name if process_id is None and _is_engine(directory, debug_info, origin) else "",
        cluster=cluster,
        created=created,
        process_id=process_id,
        debug_info=debug_info,
        debug_info_origin=origin,
        leftovers=tuple(holding.leftovers),
        notes=(*notes, *_notes(holding, origin), *framework_problems),
        unusable=holding.unusable,
    )


def _true_directory(directory: Path) -> Path:
    """Return the directory under its own name, not that of a link or ``.`` or ``..``."""
    if directory.name in ("", "..") or directory.is_symlink():
        return Path(os.path.realpath(directory))
    return directory


def _find_debug_info(directory: Path, holding: _Holding) -> tuple[Path | None, str]:
    """Return the debug.cbor of a report and its origin: in the directory, or one above, where engines share it."""
    for file in holding.files:
        if file.kind is FileKind.DEBUG_INFO:
            return file.path, "symbolic link" if file.path.is_symlink() else "own"
    above = _true_directory(directory).parent / DEBUG_INFO
    return (above, "parent") if above.is_file() else (None, "")


def _is_engine(directory: Path, debug_info: Path | None, origin: str) -> bool:
    """Tell whether a directory is named after an engine: a usual name, or its debug.cbor is shared from above."""
    true_directory = _true_directory(directory)
    if true_directory.name == CAPTURED and (true_directory.parent / PROFILE).is_file():
        return False  # written down by 'pvanalyse capture' from the profile above it
    if origin == "parent" or true_directory.name in _DEFAULT_ENGINES:
        return True
    if debug_info is None or origin != "symbolic link":
        return False
    above = os.path.realpath(true_directory.parent)
    return os.path.dirname(os.path.realpath(debug_info)) == above  # noqa: PTH120  (text to text)


def _tensorflow_run(name: str) -> tuple[datetime | None, int | None]:
    """Return when and by which process a TensorFlow report directory was made, from its name."""
    match = _TENSORFLOW.fullmatch(name)
    if match is None:
        return None, None
    date, hour, minute, second, process_id = match.groups()
    try:
        return datetime.fromisoformat(f"{date}T{hour}:{minute}:{second}"), int(process_id)
    except ValueError:  # such as month 13
        return None, int(process_id)


def _cluster(holding: _Holding) -> tuple[str, list[str]]:
    """Return the name of the XLA cluster and what is wrong with framework.json."""
    path = next((file.path for file in holding.files if file.kind is FileKind.FRAMEWORK), None)
    if path is None:
        return "", []
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_FRAMEWORK_BYTES))
        cluster = content["TensorFlow"]["Cluster"]
    except (KeyError, TypeError):  # another framework's
        return "", []
    except (OSError, ValueError, RecursionError):
        return "", [f"{FRAMEWORK} cannot be read, so the name of the cluster is not known"]
    return (cluster, []) if isinstance(cluster, str) else ("", [])


def _notes(holding: _Holding, debug_info_origin: str) -> Iterator[str]:
    yield from holding.problems.values()
    for file in holding.files:
        if file.note and not (file.kind is FileKind.DEBUG_INFO and file.bytes):  # there a link is the rule
            yield f"{printable(file.name)} is {file.note}"
    yield from (file.note for file in holding.leftovers if file.bytes and not file.name.endswith("-shm"))
    yield from _old_generation_note(holding.files)
    if not holding.has(FileKind.PROFILE):
        only = f"only {ARCHIVE}, the code of each tile" if holding.has(FileKind.ARCHIVE) else f"only {TRACE_CACHE}"
        yield f"there is no {PROFILE}, {only}"
    if debug_info_origin == "parent":
        yield f"{DEBUG_INFO} is taken from the parent directory, where the engines of one program share it"


def _old_generation_note(files: Iterable[ReportFile]) -> list[str]:
    names = [printable(file.name) for file in files if file.kind is FileKind.OLD_PROFILE]
    if not names:
        return []
    note = (
        f"{', '.join(names)}: a profile of the old generation, which pvanalyse does not read yet; profile the program "
        f"again with Poplar SDK 2 or newer, or use a version of the vendor's viewer before 3.7"
    )
    return [note]


# ------------------------------------------------------------------------------------------ what a person may name


def _report_of_file(path: Path) -> ReportFiles:
    """Return the report that a file belongs to, or that it is by itself."""
    _size(path)
    if not os.access(path, os.R_OK):
        raise UnreadableFile(path, "no permission to read it")
    if path.name not in KINDS and path.is_symlink():
        path = Path(os.path.realpath(path))  # "latest.pop" leads to a profile.pop with its own neighbours
    kind = KINDS.get(path.name)
    if kind in _MAKES_A_REPORT:
        return _report(path.parent, _gather(path.parent, _names(path.parent)))
    if kind is FileKind.OLD_PROFILE:
        old = ReportFile(path.name, path, kind, 0)
        raise ReportNotFound(f"{printable(os.fspath(path.parent))}: {_old_generation_note([old])[0]}")
    if kind is not None:
        return resolve_report(path.parent)
    kind = _kind_of_copy(path)
    if kind is None:
        raise ReportNotFound(f"{printable(os.fspath(path))}: not a file of a report: neither a profile nor an archive")
    return _report_of_copy(path, kind)


def _kind_of_copy(path: Path) -> FileKind | None:
    """Return what a file of another name is, by its ending, else by its first bytes."""
    endings = {".pop": FileKind.PROFILE, ".pop_cache": FileKind.TRACE_CACHE, ".a": FileKind.ARCHIVE}
    if path.suffix in endings:
        return endings[path.suffix]
    head = _head(path)
    if head.startswith(b"SQLite format 3\0"):
        return FileKind.PROFILE
    return FileKind.ARCHIVE if head.startswith((b"!<arch>\n", b"!<thin>\n")) else None


def _report_of_copy(path: Path, kind: FileKind) -> ReportFiles:
    """Return the report whose profile (or archive, or trace cache) has a name of its own.

    What lies beside it belongs to the directory's profile.pop if there is one; otherwise, it belongs to this file.
    """
    beside = _gather(path.parent, _names(path.parent))
    notes, others = [], [file for file in beside.files if file.kind is not kind]
    if beside.has(FileKind.PROFILE):
        notes = [f"{printable(path.name)} lies beside a {PROFILE}, to which {DEBUG_INFO} and {FRAMEWORK} may belong"]
        others = [file for file in others if file.kind not in _MAKES_A_REPORT]
    holding = _Holding(problems=beside.problems)
    _add(holding, path, kind)
    holding.files += others
    _add_journals(holding, path)
    return _report(path.parent, holding, notes)


def _nothing_found(found: Survey, top: _Holding) -> str:
    """Say what is there instead of a report."""
    lines = [f"{printable(os.fspath(found.path))}: no graph profile found: no {PROFILE} or {ARCHIVE} at or below it"]
    if beside := [file.name for file in top.files if file.kind is not FileKind.OLD_PROFILE]:
        lines.append(f"it holds only {', '.join(beside)}")
    for left in found.remains:
        lines += [f"{printable(os.fspath(left.directory))}: {note}" for note in left.notes]
    lines += [f"{printable(os.fspath(skipped.directory))}: {skipped.problem}" for skipped in found.skipped]
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = [f"… and {len(lines) - _MAX_LINES} more"]
    return "\n  ".join(lines)
