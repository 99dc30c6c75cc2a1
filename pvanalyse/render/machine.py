"""Documents for programs: JSON with exact numbers, and CSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from pvanalyse.render.document import Document, Formatter, Value


def render_json(document: Document, out: TextIO, _write: Formatter) -> None:
    """Write the document's machine form as JSON: numbers exact, sizes in bytes, names unescaped UTF-8."""
    try:
        text = json.dumps(document.data, indent=2, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        # JSON has no infinity, and UTF-8 no lone surrogate, as an odd file name can hold; escapes can say the latter.
        text = json.dumps(_finite(document.data), indent=2, allow_nan=False)
    out.write(text + "\n")


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def render_csv(document: Document, out: TextIO, _write: Formatter) -> None:
    """Write the document as one CSV table (RFC 4180): its own table, or a row per value when it has several.

    A row per value says the section, what the item is (``by``, the first column of its table, such as ``tile``) and
    which, then field, value and unit.
    """
    writer = csv.writer(out, lineterminator="\r\n")
    if document.grid is not None:
        writer.writerow([field.key for field in document.grid.fields])
        writer.writerows(map(_cell, row) for row in document.grid.rows)
        return
    writer.writerow(["section", "by", "item", "field", "value", "unit"])
    writer.writerows(_long(document))


def _long(document: Document) -> Iterator[list[Value]]:
    for section in document.sections:
        for fact in section.facts:
            yield [_cell(section.title), "", _cell(fact.label), "", _cell(fact.value), fact.unit.value]
        for grid in section.grids:
            first, *fields = grid.fields
            for item, *values in grid.rows:
                of = [_cell(section.title), first.key, _cell(item)]
                cells = zip(fields, values, strict=True)
                yield from ([*of, f.key, _cell(value), f.unit.value] for f, value in cells if f.key)
        for sentence in section.sentences:
            yield [_cell(section.title), "", "", "", _cell(sentence), ""]


def _cell(value: Value) -> Value:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return "" if value is None else value
