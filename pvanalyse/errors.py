"""What can go wrong, as few kinds as the command line has exit codes.

Every error that is the input's or the user's fault is a :class:`PvanalyseError`; its text is one sentence for a
person. The command line prints that sentence and ends with :attr:`PvanalyseError.exit_code`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from pvanalyse.names import printable


class PvanalyseError(Exception):
    """Base of all errors that pvanalyse raises on purpose."""

    exit_code = 3


class UsageError(PvanalyseError):
    """The question itself is wrong: an unknown option, name or format (exit code 2)."""

    exit_code = 2


class AmbiguousReport(UsageError):
    """Several reports lie below a path where one is needed.

    Attributes
    ----------
    candidates
        The report directories found.
    """

    def __init__(self, path: str | PathLike[str], candidates: Sequence[str | PathLike[str]]) -> None:
        self.path = fspath(path)
        self.candidates = [fspath(candidate) for candidate in candidates]
        shown = "".join(f"\n  {printable(candidate)}" for candidate in self.candidates[:20])
        more = f"\n  … and {len(self.candidates) - 20} more" if len(self.candidates) > 20 else ""
        count = len(self.candidates)
        super().__init__(f"{printable(self.path)}: {count} reports lie below it, name one of them:{shown}{more}")


class ReportNotFound(PvanalyseError):
    """There is no report at the path (exit code 3)."""


class UnreadableFile(PvanalyseError):
    """A file is missing, damaged, or not what its name says (exit code 3).

    Attributes
    ----------
    path
        The file.
    problem
        What is wrong with it, without the file's name.
    """

    def __init__(self, path: str | PathLike[str], problem: str) -> None:
        self.path = fspath(path)
        self.problem = problem
        super().__init__(f"{printable(self.path)}: {problem}")


class UnknownLayout(UnreadableFile):
    """A database whose tables no dialect recognises (exit code 3)."""


class NotCaptured(PvanalyseError):
    """The report is fine, but what was asked for was not recorded in it (exit code 4).

    Attributes
    ----------
    table
        The logical table that is missing.
    how
        What captures it, such as an engine option.
    """

    exit_code = 4

    def __init__(self, table: str, how: str) -> None:
        self.table = table
        self.how = how
        super().__init__(f"'{table}' was not captured in this report; to capture it: {how}")
