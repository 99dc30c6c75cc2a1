"""``openReport`` and what a report itself says: versions, settings, and the way to everything else."""

# ruff: noqa: N802  (libpva's names)

from __future__ import annotations

import weakref
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import ClassVar

from pvanalyse.analysis.columns import only_row
from pvanalyse.errors import NotCaptured, PvanalyseError
from pvanalyse.libpva.enums import Enumeration
from pvanalyse.libpva.execution import ExecutionReport
from pvanalyse.libpva.liveness import (
    LivenessProgramStep,
    all_steps,
    always_live_variables,
    always_live_variables_of_tile,
)
from pvanalyse.libpva.programs import ComputeSet, Program, all_compute_sets, all_programs
from pvanalyse.libpva.store import Store
from pvanalyse.libpva.tiles import IPU, Tile, all_ipus, all_tiles
from pvanalyse.libpva.variables import LoweredVariables, SizedVariable
from pvanalyse.libpva.views import View
from pvanalyse.readers.files import regular_file
from pvanalyse.report import Report as ReportDirectory
from pvanalyse.report import open_report
from pvanalyse.tables import table

StrPath = str | PathLike[str]


def openReport(
    filename: StrPath | None = None,
    debugInfoFilename: StrPath | None = None,  # noqa: N803
    *,
    profileFilename: StrPath | None = None,  # noqa: N803
) -> Report:
    """Open a report.

    Parameters
    ----------
    filename, profileFilename
        The ``profile.pop``, or its directory; libpva's two forms of this function name it differently.
    debugInfoFilename
        The ``debug.cbor``; without it, the one that belongs to the report is found.

    Raises
    ------
    ReportNotFound, AmbiguousReport
        There is no report, or more than one.
    UnreadableFile
        The profile is damaged, or its layout is not known; or there is no such ``debug.cbor``.
    """
    profile = filename if profileFilename is None else profileFilename
    if profile is None:
        raise TypeError("openReport() needs the name of a profile.pop")
    if debugInfoFilename is not None:
        regular_file(Path(debugInfoFilename), 1)
    directory = open_report(profile, debug_info=debugInfoFilename)
    directory.captured("report_info")  # damage shows now and not later
    return Report(directory)


class Report(View):
    """A report; ``openReport`` makes one."""

    __slots__ = ("__weakref__",)

    def __init__(self, directory: ReportDirectory) -> None:
        super().__init__(Store(directory))
        weakref.finalize(self._store, directory.close)

    @property
    def compilation(self) -> CompilationReport:
        """What was compiled."""
        return CompilationReport(self._store)

    @property
    def execution(self) -> ExecutionReport:
        """What ran."""
        return ExecutionReport(self._store)

    @property
    def instrumentationSettings(self) -> InstrumentationSettings:
        """What was recorded while it ran."""
        return InstrumentationSettings(self._store)

    @property
    def poplarVersion(self) -> PoplarVersion:
        """The Poplar that wrote the report."""
        return PoplarVersion(self._store)

    @property
    def version(self) -> ProfileReportVersion:
        """The version of the report's format."""
        return ProfileReportVersion(self._store)

    def listPrintLength(self, newLength: int) -> None:  # noqa: N803
        """Set how many items ``repr`` shows of the lists of this report; 10 at first."""
        self._store.list_length = max(0, int(newLength))


def _said(store: Store, key: str) -> str:
    if key not in store.info:
        raise NotCaptured(f"report_info: {key}", table("report_info").capture)
    return store.info[key]


def _number_said(store: Store, key: str) -> int:
    try:
        return int(_said(store, key))
    except ValueError:
        raise PvanalyseError(f"table 'report_info' cannot be: '{key}' is not a number") from None


class PoplarVersion(View):
    """A version of Poplar."""

    __slots__ = ()

    @property
    def major(self) -> int:
        """3 of 3.1.0."""
        return _number_said(self._store, "poplar_major")

    @property
    def minor(self) -> int:
        """1 of 3.1.0."""
        return _number_said(self._store, "poplar_minor")

    @property
    def point(self) -> int:
        """0 of 3.1.0."""
        return _number_said(self._store, "poplar_point")

    @property
    def packageHash(self) -> str:
        """Git hash of what it was built from."""
        return _said(self._store, "poplar_package_hash")

    @property
    def string(self) -> str:
        """All of it as text."""
        return _said(self._store, "poplar_version")


class ProfileReportVersion(View):
    """A version of the report format."""

    __slots__ = ()

    @property
    def major(self) -> int:
        """First number of the version."""
        return _number_said(self._store, "format_major")

    @property
    def minor(self) -> int:
        """Second number of the version."""
        return _number_said(self._store, "format_minor")

    @property
    def point(self) -> int:
        """Third number of the version."""
        return _number_said(self._store, "format_point")

    @property
    def isUnstableFormat(self) -> bool:
        """Whether it is a format in development."""
        return _said(self._store, "format_unstable") == "1"


class InstrumentationSettings(View):
    """What was recorded while the program ran."""

    __slots__ = ()

    class ComputeInstrumentationLevel(Enumeration):
        """For what cycles of compute were recorded; names and values as documented."""

        Off = 0
        Vertex = 1
        Tile = 2
        Ipu = 3
        Device = 4
        Unknown = 5

    class ExternalExchangeInstrumentationLevel(Enumeration):
        """For what cycles of external exchange were recorded; names and values as documented."""

        Off = 0
        Tile = 1
        Unknown = 2

    @property
    def compute(self) -> ComputeInstrumentationLevel:
        """Of compute."""
        return self.ComputeInstrumentationLevel.of(self._store.info.get("instrument_compute", ""))

    @property
    def externalExchange(self) -> ExternalExchangeInstrumentationLevel:
        """Of external exchange."""
        return self.ExternalExchangeInstrumentationLevel.of(self._store.info.get("instrument_external_exchange", ""))


# The members are attributes of the class too; of two with one name, that of the enumeration declared last.
for _enumeration in (
    InstrumentationSettings.ComputeInstrumentationLevel,
    InstrumentationSettings.ExternalExchangeInstrumentationLevel,
):
    for _name, _member in _enumeration.__members__.items():
        setattr(InstrumentationSettings, _name, _member)


class CompilationReport(View):
    """What was compiled."""

    __slots__ = ()
    _not_known: ClassVar = {
        "controlPrograms": "table 'program_roots'",
        "functionPrograms": "table 'program_roots'",
        "remoteBuffers": "table 'remote_buffers'",
        "hostExchanges": "table 'stream_copies'",
        "engineOptions": "table 'engine_options'",
        "timestamp": "key 'compiled_at' of table 'report_info'",
    }

    @property
    def target(self) -> Target:
        """The hardware that it was compiled for."""
        return Target(self._store)

    @property
    def graph(self) -> Graph:
        """The size of the graph."""
        return Graph(self._store)

    @property
    def tiles(self) -> Sequence[Tile]:
        """Every tile of every IPU, IPU by IPU."""
        return all_tiles(self._store)

    @property
    def ipus(self) -> Sequence[IPU]:
        """Every IPU."""
        return all_ipus(self._store)

    @property
    def computeSets(self) -> Sequence[ComputeSet]:
        """Every compute set."""
        return all_compute_sets(self._store)

    @property
    def programs(self) -> Sequence[Program]:
        """Every program of the compiled tree."""
        return all_programs(self._store)

    @property
    def livenessProgramSteps(self) -> Sequence[LivenessProgramStep]:
        """The program as a list of steps, with what is live at each."""
        return all_steps(self._store)

    @property
    def alwaysLiveVariables(self) -> Sequence[SizedVariable]:
        """What is live all the time; code and state appear as variables named after their category."""
        return always_live_variables(self._store)

    def alwaysLiveVariablesForTile(self, tile: int) -> Sequence[SizedVariable]:
        """Return the same of one tile.

        Raises
        ------
        IndexError
            There is no such tile.
        NotCaptured
            The report has no lowered variables.
        """
        return always_live_variables_of_tile(self._store, tile)

    @property
    def loweredVariables(self) -> LoweredVariables:
        """The variables as they lie on the tiles."""
        return LoweredVariables(self._store)


class Target(View):
    """The hardware that was compiled for."""

    __slots__ = ()
    _not_known = dict.fromkeys(("relativeSyncDelayByTile", "minSyncDelay"), "table 'target'")

    class Type(Enumeration):
        """Kinds of hardware; the values are ours, libpva's are not known."""

        Unknown = 0
        Ipu = 1
        IpuModel = 2
        Cpu = 3

    @property
    def type(self) -> Target.Type:
        """Its kind."""
        return Target.Type.of(self._store.of_target("type"))

    @property
    def architecture(self) -> IPU.Architecture:
        """The generation of its IPUs."""
        return IPU.Architecture.of(self._store.of_target("architecture"))

    @property
    def numIPUs(self) -> int:
        """IPUs of all replicas together."""
        return int(self._store.of_target("num_ipus"))

    @property
    def numReplicas(self) -> int:
        """Replicas."""
        return int(self._store.of_target("num_replicas"))

    @property
    def ipusPerReplica(self) -> int:
        """IPUs of one replica."""
        return self.numIPUs // max(1, self.numReplicas)

    @property
    def tilesPerReplica(self) -> int:
        """Tiles of one replica."""
        return self.numTiles // max(1, self.numReplicas)

    @property
    def memoryPerReplica(self) -> int:
        """Bytes of the tiles of one replica."""
        return self.tilesPerReplica * self.bytesPerTile

    @property
    def tilesPerIpu(self) -> int:
        """Tiles of one IPU."""
        return int(self._store.of_target("tiles_per_ipu"))

    @property
    def numTiles(self) -> int:
        """Tiles of all IPUs."""
        return int(self._store.of_target("num_tiles"))

    @property
    def bytesPerTile(self) -> int:
        """Bytes of one tile."""
        return int(self._store.of_target("bytes_per_tile"))

    @property
    def bytesPerIPU(self) -> int:
        """Bytes of the tiles of one IPU."""
        return self.tilesPerIpu * self.bytesPerTile

    @property
    def totalMemory(self) -> int:
        """Bytes of all tiles."""
        return self.numTiles * self.bytesPerTile

    @property
    def clockFrequency(self) -> float:
        """Hertz."""
        return float(self._store.of_target("clock_frequency"))


class Graph(View):
    """The size of the compiled graph."""

    __slots__ = ()
    _not_known = dict.fromkeys(("numEdges", "numVars"), "table 'graph'")

    @property
    def numComputeSets(self) -> int:
        """Compute sets."""
        return self._number("num_compute_sets")

    @property
    def numVertices(self) -> int:
        """Vertices."""
        return self._number("num_vertices")

    def _number(self, column: str) -> int:
        graph = only_row(self._store.source, "graph")
        if column not in graph:
            raise NotCaptured(f"graph: {column}", table("graph").capture)
        return int(graph[column])
