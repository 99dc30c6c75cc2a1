"""Checks for GitHub Actions: annotations at the lines of code that failures come from, and the step's summary.

Workflow commands are escaped as GitHub's toolkit does it: ``%``, carriage return and line feed everywhere, ``:`` and
``,`` in properties as well. GitHub shows ten annotations of a kind for a step, so failures that come from one line
share one, and the most telling come first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, TextIO

from pvanalyse.analysis.checks import CheckResult, ReportCheck, Status, Why
from pvanalyse.analysis.rules import importance
from pvanalyse.names import printable
from pvanalyse.render.check_words import contributor, leading, sentence, verdict
from pvanalyse.render.document import Formatter
from pvanalyse.units import counted

_MOST = 10
_LONGEST = 4_000


def render_github(result: CheckResult, out: TextIO, write: Formatter, workspace: str = "") -> None:
    """Write annotations: errors for what fails, the verdict as a notice, each on a line.

    Parameters
    ----------
    result
        Of one report or of many.
    out
        Standard output of a step.
    write
        Writes amounts.
    workspace
        Directory of the checkout, which is taken off the paths of source files.
    """
    for report in result.reports:
        for line in _annotations(report, write, workspace):
            out.write(f"{line}\n")
    out.write(f"{command('notice', 'pvanalyse check', verdict(result))}\n")


def command(kind: str, title: str, message: str, file: str = "", line: int | None = None) -> str:
    """Return a workflow command that annotates.

    Parameters
    ----------
    kind
        ``error``, ``warning`` or ``notice``.
    title, message
        Any text; of a message the lines stay.
    file, line
        Where, if anywhere.
    """
    properties = {"file": file, "line": "" if line is None else str(line), "title": printable(title)}
    shown = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    text = "\n".join(map(printable, message.split("\n")))
    return f"::{kind} {shown}::{_data(text if len(text) <= _LONGEST else text[:_LONGEST] + '…')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _annotations(report: ReportCheck, write: Formatter, workspace: str) -> Iterator[str]:
    if report.problem:
        yield command("error", f"{report.report} cannot be checked", report.problem)
    whys = {why.metric: why for why in report.whys}
    places: dict[str, list[str]] = {}
    culprits: dict[str, str] = {}
    for check in sorted(report.checks, key=lambda one: importance(one.metric)):
        if check.ok:
            continue
        row = _culprit(whys.get(check.metric)) if check.status is Status.FAILED else None
        location = row["location"] if row else ""
        places.setdefault(location, []).append(sentence(check, write))
        if row and location:
            culprits.setdefault(location, f"mostly {contributor(row)}")
    for location, lines in list(places.items())[:_MOST]:
        of = f": {culprits[location]}" if location in culprits else ""
        title = f"{report.report}: {counted(len(lines), 'failed check')}{of}"
        yield command("error", title, "\n".join(map(printable, lines)), *_place(location, workspace))


def _culprit(why: Why | None) -> dict[str, Any] | None:
    """Return the contributor to name: the largest that has a place in the source, else the largest."""
    rows = leading(why) if why else []
    return next((row for row in rows if row["location"]), rows[0] if rows else None)


def _place(location: str, workspace: str) -> tuple[str, int | None]:
    """Return file and line of ``file:line``; below the workspace, as from there."""
    file, colon, number = location.rpartition(":")
    if not colon or not number.isdecimal() or len(number) > 9:
        file, number = location, ""
    if workspace and os.path.isabs(file) and PurePath(file).is_relative_to(workspace):  # noqa: PTH117
        file = PurePath(file).relative_to(workspace).as_posix()
    return file, int(number) if number else None
