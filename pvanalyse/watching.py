"""When a report changed and is complete: for ``pvanalyse watch``, and for the page that ``pvanalyse open`` serves.

A program writes its profile under another name, ``profile_<random>.pop``, which becomes ``profile.pop`` when its engine
is destroyed; a copy or a viewer may write to ``profile.pop`` itself. So a report counts as complete when its database
has no journal that holds anything, and when two looks in a row find every file the same: its inode, size, time of
change, and for profile.pop SQLite's change counter. Looking, instead of being told by the operating system, works on
network file systems too, and when the directory itself goes and comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pvanalyse.discovery import find_reports
from pvanalyse.errors import ReportNotFound, UnreadableFile
from pvanalyse.names import printable
from pvanalyse.readers.sqlite import read_header
from pvanalyse.report_files import FileKind, ReportFiles
from pvanalyse.tables import PROFILE

_LOOKS = 2
_LOOKS_WHEN_DAMAGED = 5
"""A file that is cut off may still be being copied; after so many looks it is taken as it is."""


class Event(StrEnum):
    """What happened to a report."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to the report in a directory; for one that has to be waited for, why."""

    event: Event
    directory: Path
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _State:
    """What one look finds of a report."""

    files: tuple[tuple[str, int, int, int], ...]
    change_counter: int | None
    damaged: str = ""
    journal: str = ""


@dataclass(slots=True)
class _Watched:
    state: _State
    looks: int = 1
    told: _State | None = None
    waiting: str = ""

    def look(self, state: _State) -> None:
        self.looks = self.looks + 1 if state == self.state else 1
        self.state = state

    @property
    def why_not_yet(self) -> str:
        """Why it is not complete; the reason is empty as long as nothing unusual keeps it."""
        if self.state.journal:
            return self.state.journal
        return self.state.damaged if self.looks < _LOOKS_WHEN_DAMAGED else ""

    @property
    def is_complete(self) -> bool:
        return self.looks >= _LOOKS and not self.why_not_yet


@dataclass(slots=True)
class Watcher:
    """Tells what changed at and below a path between one look and the next.

    Attributes
    ----------
    path
        A directory, or a file of a report; neither needs to be there yet.
    """

    path: Path
    _reports: dict[Path, _Watched] = field(default_factory=dict)

    def know(self) -> None:
        """Take what is there now as told, complete or not."""
        self._reports = {directory: _Watched(state, told=state) for directory, state in _states(self.path).items()}

    def look(self) -> list[Change]:
        """Look once; return the reports that are new or changed and complete, those that went, and those to wait for.

        Raises
        ------
        UnreadableFile
            The path may not be read.
        """
        found = _states(self.path)
        changes = [self._forget(directory) for directory in sorted(self._reports.keys() - found.keys())]
        for directory, state in found.items():
            watched = self._reports.setdefault(directory, _Watched(state, looks=0))
            watched.look(state)
            changes.append(self._judge(directory, watched))
        return [change for change in changes if change is not None]

    def _forget(self, directory: Path) -> Change | None:
        watched = self._reports.pop(directory)
        return Change(Event.GONE, directory) if watched.told else None

    def _judge(self, directory: Path, watched: _Watched) -> Change | None:
        if watched.state == watched.told:
            return None
        if watched.is_complete:
            event = Event.CHANGED if watched.told else Event.NEW
            watched.told, watched.waiting = watched.state, ""
            return Change(event, directory)
        reason = watched.why_not_yet
        if reason and reason != watched.waiting and watched.looks >= _LOOKS:
            watched.waiting = reason
            return Change(Event.WAITING, directory, reason)
        return None


def _states(path: Path) -> Mapping[Path, _State]:
    try:
        return {files.directory: _state(files) for files in find_reports(path)}
    except ReportNotFound:
        return {}


def _state(files: ReportFiles) -> _State:
    paths = [file.path for file in files.files]
    if files.debug_info is not None and files.debug_info not in paths:
        paths.append(files.debug_info)
    written = (file for file in files.leftovers if file.kind is FileKind.JOURNAL and file.bytes)
    journals = [printable(file.name) for file in written if not file.name.endswith("-shm")]
    journal = f"{journals[0]} is not empty: the profile is still being written" if journals else ""
    counter, damaged = _change_counter(files.path_of(PROFILE))
    return _State(tuple(map(_fingerprint, paths)), counter, damaged, journal)


def _fingerprint(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except OSError:  # it went while we looked
        return (path.name, 0, -1, 0)
    return (path.name, status.st_ino, status.st_size, status.st_mtime_ns)


def _change_counter(profile: Path | None) -> tuple[int | None, str]:
    """Return the change counter of a profile, or why there is none."""
    if profile is None:
        return None, ""
    try:
        return read_header(profile), ""
    except UnreadableFile as error:
        return None, f"{printable(profile.name)} {error.problem}"
