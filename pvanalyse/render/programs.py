"""The program tree for people and programs: indented text, nested JSON, and a graph for Graphviz."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pvanalyse.analysis.program_graph import CYCLE, MISSING, SHARED
from pvanalyse.analysis.programs import cut
from pvanalyse.names import printable
from pvanalyse.render.document import Section, Unit
from pvanalyse.render.parts import Part, Shown, grid, records

if TYPE_CHECKING:
    import pandas as pd

_LINES = 60  # of a tree that people see who did not say how deep
_MOST_LINES = 5000  # that people get at all
_DEEPEST_DRAWN = 12  # from here on, how deep a program lies is a number
_DEEPEST_JSON = 100  # programs that read JSON give up somewhere
_NOTES = {SHARED: "shown above", CYCLE: "contains this one: a cycle", MISSING: "not in the report"}

_COLUMNS = (
    Shown("Program", "label"),
    Shown("Id", "program_id"),
    Shown("Control code", "control_code_bytes", Unit.BYTES),
    Shown("Exchange code", "exchange_code_bytes", Unit.BYTES),
    Shown("Executions", "executions", Unit.COUNT),
    Shown("Cycles", "cycles", Unit.CYCLES),
    Shown("Live at most", "live_bytes", Unit.BYTES),
)


def programs_part(frame: pd.DataFrame, depth: int | None, formats: Collection[str]) -> Part:
    """Return a program tree as a part.

    Parameters
    ----------
    frame
        As :func:`pvanalyse.analysis.programs.program_tree` returns it.
    depth
        How deep it was asked for; None when people see as many levels as fit.
    formats
        Those that are wanted: what programs read can be large, and is made only for them.
    """
    shown = _levels_that_fit(frame) if depth is None else frame.head(_MOST_LINES)
    lines = shown.assign(label=list(labels(shown)))
    section = Section(
        "Programs, with everything below them", (), [grid("", lines, _COLUMNS)], list(_said(frame, shown))
    )
    nested = nested_programs(frame) if "json" in formats else []
    return Part("programs", section, nested, frame if "csv" in formats else None)


def labels(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a line of text for each row of a program tree, indented by its depth."""
    columns = zip(frame["depth"], frame["name"], _kinds(frame), _remarks(frame), strict=True)
    for depth, name, kind, remarks in columns:
        indent = "| " * min(depth, _DEEPEST_DRAWN) + (f"[{depth}] " if depth > _DEEPEST_DRAWN else "")
        yield indent + " ".join(word for word in (kind, name, f"({remarks})" if remarks else "") if word)


def _kinds(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the type of each program and how often it repeats what is below it."""
    repeats = frame["repeat_count"].astype(object).where(frame["repeat_count"].notna(), None)
    for kind, times in zip(frame["type"], repeats, strict=True):
        yield (kind or "?") + ("" if times is None else f" × {times:,}")


def _remarks(frame: pd.DataFrame) -> Iterator[str]:
    for note, left_out in zip(frame["note"], frame["left_out"], strict=True):
        said = [_NOTES[note] if note else "", f"{left_out:,} more below" if left_out else ""]
        yield ", ".join(one for one in said if one)


def tree_text(frame: pd.DataFrame) -> str:
    """Return a program tree as indented lines without figures; names are made printable."""
    return "".join(f"{printable(line)}\n" for line in labels(frame))


def nested_programs(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a program tree as nested dicts, each with its ``children``.

    It is at most 100 levels deep; what lies below is only counted, in ``left_out``.
    """
    roots: list[dict[str, Any]] = []
    above: list[list[dict[str, Any]]] = [roots]  # where the next program of each depth goes
    for row in records(cut(frame, _DEEPEST_JSON)):
        depth = row.pop("depth")
        row["children"] = []
        above[depth].append(row)
        del above[depth + 1 :]
        above.append(row["children"])
    return roots


def dot(frame: pd.DataFrame) -> str:
    """Return a program tree as a graph for Graphviz (https://graphviz.org/doc/info/lang.html), a node per program.

    Edges that close a cycle are dashed; so is a program that the report does not describe.
    """
    lines = ["digraph programs {", "  node [shape=box];"]
    drawn: set[int] = set()
    columns = [frame[one] for one in ("program_id", "name", "note", "left_out")]
    for identity, name, note, left_out, kind in zip(*columns, _kinds(frame), strict=True):
        if identity in drawn or note in (CYCLE, SHARED):
            continue
        drawn.add(identity)
        label = [kind, name, f"{left_out:,} more below" if left_out else ""]
        style = ", style=dashed" if note == MISSING else ""
        lines.append(f'  "{identity}" [label="{_escaped([line for line in label if line])}"{style}];')
    edges = frame[frame["parent_id"].notna()]
    for parent, child, note in zip(edges["parent_id"], edges["program_id"], edges["note"], strict=True):
        lines.append(f'  "{parent}" -> "{child}"{" [style=dashed]" if note == CYCLE else ""};')
    return "\n".join([*lines, "}", ""])


def _escaped(lines: list[str]) -> str:
    """Return lines as the inside of a quoted string, in which Graphviz reads backslashes and HTML's entities."""
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines)
    return "\\n".join(escaped)


def _levels_that_fit(frame: pd.DataFrame) -> pd.DataFrame:
    """Return as many whole levels of a tree as people take in at once, the uppermost one at least in part."""
    reach = np.cumsum(np.bincount(frame["depth"].to_numpy(np.int64), minlength=1))
    return cut(frame, max(0, int(np.searchsorted(reach, _LINES, "right")) - 1)).head(_LINES)


def _said(frame: pd.DataFrame, shown: pd.DataFrame) -> Iterator[str]:
    if not len(frame):
        yield "There is none."
    elif len(shown) < len(frame):
        yield f"{len(shown):,} of {len(frame):,} lines; --depth, --root and --match show others, CSV has all."
    notes = frame["note"].value_counts()
    if CYCLE in notes:
        yield f"Damaged: lines of programs that are above themselves, not followed round: {notes[CYCLE]:,}."
    if MISSING in notes:
        yield f"Damaged: lines of programs that the report names but does not describe: {notes[MISSING]:,}."
