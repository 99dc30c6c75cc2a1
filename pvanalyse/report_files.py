"""What a report directory is made of: its files, what they are, and what is left of other reports.

Plain data; :mod:`pvanalyse.discovery` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from pvanalyse.tables import APP, ARCHIVE, DEBUG_INFO, FRAMEWORK, PROFILE, TRACE_CACHE


class FileKind(StrEnum):
    """What a file of a report directory is."""

    PROFILE = "profile"
    ARCHIVE = "archive"
    DEBUG_INFO = "debug info"
    FRAMEWORK = "framework"
    APP = "app"
    TRACE_CACHE = "trace cache"
    LOWERED_VARIABLES = "lowered variables"
    SERIALISED_GRAPH = "serialised graph"
    OLD_PROFILE = "old-generation profile"
    UNFINISHED = "unfinished profile"
    JOURNAL = "journal"


CAPTURED = "captured"
"""The directory within a report into which 'pvanalyse capture' writes unless it is told otherwise."""

CAPTURING = "profile_capturing.pop"
"""What 'pvanalyse capture' calls a profile that it has not finished."""

KINDS = {
    PROFILE: FileKind.PROFILE,
    ARCHIVE: FileKind.ARCHIVE,
    DEBUG_INFO: FileKind.DEBUG_INFO,
    FRAMEWORK: FileKind.FRAMEWORK,
    APP: FileKind.APP,
    TRACE_CACHE: FileKind.TRACE_CACHE,
    "vars.capnp": FileKind.LOWERED_VARIABLES,
    "serialized_graph.capnp": FileKind.SERIALISED_GRAPH,
    "graph.cbor": FileKind.OLD_PROFILE,
    "execution.cbor": FileKind.OLD_PROFILE,
    "graph.json": FileKind.OLD_PROFILE,
    "execution.json": FileKind.OLD_PROFILE,
    "profile_info.json": FileKind.OLD_PROFILE,
}
"""What the files of fixed names are, the most telling first."""


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file that belongs to a report, or is left of one.

    Attributes
    ----------
    name, path, kind
        What it is called, where it is, what it is.
    bytes
        Its size; a symbolic link's is that of the file it leads to.
    note
        What a person should know about it, or nothing: a phrase that can follow "it is", for leftovers a sentence.
    """

    name: str
    path: Path
    kind: FileKind
    bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files of one report.

    Attributes
    ----------
    directory
        Where they are, spelt as the path that was asked about.
    files
        Those that are there and can be looked at, the profile first. A ``debug.cbor`` of the parent is not among them.
    engine
        Name of the engine that wrote the report, when the directory is named after it; otherwise empty.
    cluster
        Name of TensorFlow's XLA cluster, from framework.json; otherwise empty.
    created, process_id
        From the name of a TensorFlow report directory: local time of the machine that wrote it, and its process.
    debug_info
        The debug.cbor that belongs to the report.
    debug_info_origin
        ``own``, ``symbolic link`` (a link in the directory), ``parent`` (of the parent directory), or empty for none.
    leftovers
        Unfinished profiles and database journals in the directory; each one's note says what it means.
    notes
        Sentences for a person about what is unusual here and what to do about it.
    unusable
        What stands where a file of the report should be, such as a directory, and why that cannot be read; by name.
    """

    directory: Path
    files: tuple[ReportFile, ...]
    engine: str = ""
    cluster: str = ""
    created: datetime | None = None
    process_id: int | None = None
    debug_info: Path | None = None
    debug_info_origin: str = ""
    leftovers: tuple[ReportFile, ...] = ()
    notes: tuple[str, ...] = ()
    unusable: Mapping[str, str] = field(default_factory=dict)

    def path_of(self, source: str) -> Path | None:
        """Return the file that serves as ``source``, a name such as ``profile.pop``, or None when there is none.

        The file's own name may differ: a copy that was renamed, or a debug.cbor of the parent directory.
        """
        kind = KINDS[source]
        if kind is FileKind.DEBUG_INFO:
            return self.debug_info
        return next((file.path for file in self.files if file.kind is kind), None)


@dataclass(frozen=True, slots=True)
class Remains:
    """A directory that holds no report but something of one.

    Attributes
    ----------
    directory
        Where.
    files
        What a crashed run left (``UNFINISHED``, ``JOURNAL``) and profiles of the old generation (``OLD_PROFILE``).
    notes
        A sentence on each of them, and on files that cannot be used, such as a link that leads nowhere.
    """

    directory: Path
    files: tuple[ReportFile, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A directory that could not be looked into, and why."""

    directory: Path
    problem: str


@dataclass(frozen=True, slots=True)
class Survey:
    """All that was found at or below a path; each part in the order of the paths, parents first."""

    path: Path
    reports: tuple[ReportFiles, ...]
    remains: tuple[Remains, ...] = ()
    skipped: tuple[Skipped, ...] = ()
