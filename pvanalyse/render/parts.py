"""Answers made of frames: a part each, put together into one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvanalyse.errors import NotCaptured
from pvanalyse.render.document import Document, Fact, Field, Grid, Section, Unit, Value

if TYPE_CHECKING:
    import pandas as pd

_BLOCKS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an answer.

    Attributes
    ----------
    key
        Its name in JSON.
    section
        What people see.
    data
        What JSON shows under the key.
    frame
        The table that CSV shows when no other part was asked for; None when it has several.
    """

    key: str
    section: Section
    data: Any
    frame: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of a frame as people see it; a ``drawing`` is left out where programs read."""

    label: str
    column: str
    unit: Unit = Unit.TEXT
    prose: bool = False
    drawing: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows of a frame are shown.

    Attributes
    ----------
    top
        What was asked for, None when nothing was.
    usual
        How many people see then, None for all; programs get all.
    """

    top: int | None = None
    usual: int | None = 10

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that programs get."""
        return frame if self.top is None else frame.head(self.top)

    def seen(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that people see."""
        top = self.usual if self.top is None else self.top
        return frame if top is None else frame.head(top)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as plain Python values by column, None where there is none."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def largest(frame: pd.DataFrame, column: str) -> dict[str, Any]:
    """Return the first row with the largest value of a column, of a frame that has rows."""
    at = int(frame[column].argmax())
    return records(frame.iloc[at : at + 1])[0]


def grid(title: str, frame: pd.DataFrame, columns: Sequence[Shown]) -> Grid:
    """Return some columns of a frame as a table; a column that the frame lacks is left out."""
    held = [one for one in columns if one.column in frame]
    fields = [Field(one.label, "" if one.drawing else one.column, one.unit, one.prose) for one in held]
    rows = [tuple(row[one.column] for one in held) for row in records(frame[[one.column for one in held]])]
    return Grid(title, fields, rows)


def exact_grid(frame: pd.DataFrame) -> Grid:
    """Return all of a frame as a table for programs."""
    rows: list[tuple[Value, ...]] = [tuple(row.values()) for row in records(frame)]
    return Grid("", [Field(str(name), str(name)) for name in frame.columns], rows)


def listing(key: str, title: str, frame: pd.DataFrame, columns: Sequence[Shown], rows: Rows, nothing: str) -> Part:
    """Return a frame as a part.

    Parameters
    ----------
    key, title
        Its name in JSON, and its heading.
    columns
        What people see of it.
    rows
        How many rows.
    nothing
        What is said when there are none.
    """
    chosen = rows.of(frame)
    return Part(key, listed(title, frame, columns, rows, nothing), records(chosen), chosen)


def listed(
    title: str, frame: pd.DataFrame, columns: Sequence[Shown], rows: Rows, nothing: str, facts: Sequence[Fact] = ()
) -> Section:
    """Return the first rows of a frame as a section; see :func:`listing`."""
    shown = rows.seen(frame)
    sentences = [] if len(frame) else [nothing]
    if len(shown) < len(frame):
        sentences.append(f"The first {len(shown):,} of {len(frame):,}; --top shows more.")
    return Section(title, facts, [grid("", shown, columns)], sentences)


def together(
    parts: Sequence[Part],
    about: Mapping[str, Any],
    missing: Mapping[str, NotCaptured],
    verdict: tuple[str, bool] = ("", False),
    *,
    as_table: bool = False,
) -> Document:
    """Return parts as one document.

    Parameters
    ----------
    parts
        In the order of reading.
    about
        What JSON has before the parts; its ``report`` is the title.
    missing
        What else would have been shown, by key, and why it is not.
    verdict
        The answer in one sentence, and whether it is bad news.
    as_table
        Whether CSV shows the table of the only part rather than a row for each value.
    """
    gone = [Fact(name.replace("_", " "), error.how) for name, error in missing.items()]
    data = {
        **about,
        **{part.key: part.data for part in parts},
        "not_captured": [{"part": name, "table": one.table, "how": one.how} for name, one in missing.items()],
    }
    alone = parts[0].frame if as_table and len(parts) == 1 else None
    return Document(
        title=str(about["report"]),
        sections=[*(part.section for part in parts), Section("Not captured, and what captures it", gone)],
        data=data,
        verdict=verdict[0],
        alarming=verdict[1],
        grid=None if alone is None else exact_grid(alone),
    )


def bar(value: float, most: float, width: int) -> str:
    """Draw a value as a bar to an eighth of a character; one that is not nothing is seen.

    Parameters
    ----------
    value
        At least 0.
    most
        The value whose bar is ``width`` characters long.
    """
    eighths = round(8 * width * value / most) if most else 0
    if value and not eighths:
        eighths = 1
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
