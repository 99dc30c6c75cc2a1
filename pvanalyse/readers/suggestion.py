"""A first draft of a dialect for a database of unknown layout, from names that are alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pvanalyse.readers.inspection import ColumnFacts, DatabaseFacts, TableFacts
from pvanalyse.readers.sqlite import quote_identifier
from pvanalyse.tables import PROFILE, Column, Kind, TableSchema, tables_of

_ALIKE = 0.72  # below this, names are taken for different things
_SAME_WORDS = {
    "size": "bytes", "nbytes": "bytes", "num": "num", "count": "num", "number": "num", "nr": "num", "idx": "id",
    "index": "id", "from": "begin", "start": "begin", "to": "end", "stop": "end", "vars": "variables",
    "var": "variable", "prog": "program", "kind": "type", "freq": "frequency", "arch": "architecture",
}  # fmt: skip
_FITS = {
    Kind.INTEGER: {"integer"},
    Kind.BOOLEAN: {"integer"},
    Kind.REAL: {"real", "integer"},
    Kind.TEXT: {"text", "integer"},
    Kind.CATEGORY: {"text", "integer"},
    Kind.PER_TILE: {"blob", "text"},
    Kind.INTEGERS: {"blob"},
}


@dataclass(frozen=True, slots=True)
class Match:
    """A logical table, the stored table that is most like it, and which stored column is which of ours."""

    schema: TableSchema
    table: TableFacts
    columns: Mapping[str, ColumnFacts]
    score: float

    @property
    def missing(self) -> list[Column]:
        """Columns that nothing was found for and that may not be left out."""
        return [c for c in self.schema.columns if c.name not in self.columns and not c.nullable]


def match_tables(facts: DatabaseFacts) -> list[Match]:
    """Return, for each logical table of profile.pop, the stored table that is most like it, if one is.

    Each stored table serves one logical table, the one that it is most like.
    """
    pairs = [_match(schema, table) for schema in tables_of(PROFILE) for table in facts.tables]
    matches: list[Match] = []
    for match in sorted(pairs, key=lambda pair: -pair.score):
        taken = any(match.schema is one.schema or match.table is one.table for one in matches)
        if match.score >= _ALIKE and match.columns and not taken:
            matches.append(match)
    order = [schema.name for schema in tables_of(PROFILE)]
    return sorted(matches, key=lambda match: order.index(match.schema.name))


def suggest_dialect(facts: DatabaseFacts, name: str) -> str:
    """Return the text of a dialect file to start from; what it could not match stands in it as comments."""
    matches = match_tables(facts)
    return "\n".join([*_head(facts, name, matches), *_blocks(matches), *_rest(facts, matches)]) + "\n"


def _head(facts: DatabaseFacts, name: str, matches: Sequence[Match]) -> Iterator[str]:
    yield f"# A draft for {_comment(facts.path.name)}, made from names that are alike: check every query."
    yield "# What may stand here: pydoc pvanalyse.readers.dialect"
    yield f"name = {_string(name)}"
    yield 'description = ""'
    yield ""
    yield "[[recognise]]"
    if facts.application_id:
        yield f"application_id = 0x{facts.application_id:08x}"
    if facts.user_version:
        yield f"user_version = {facts.user_version}"
    telling = matches[:3] or []
    listed = ", ".join(
        f"{_string(m.table.name)} = [{', '.join(_string(c.name) for c in m.table.columns[:4])}]" for m in telling
    )
    yield f"tables = {{ {listed} }}" if listed else '# tables = { some_table = ["its", "columns"] }'


def _blocks(matches: Sequence[Match]) -> Iterator[str]:
    for match in matches:
        yield ""
        mark = "" if not match.missing else "# "
        if match.missing:
            yield f"# {match.schema.name}: cannot be read yet, nothing was found for: " + ", ".join(
                column.name for column in match.missing
            )
        yield f"{mark}[tables.{match.schema.name}]  # {match.schema.doc}"
        yield f'{mark}query = """'
        yield f"{mark}SELECT"
        selected = [f"  {quote_identifier(stored.name)} AS {ours}" for ours, stored in match.columns.items()]
        yield from (mark + _multiline(line) + comma for line, comma in _with_commas(selected))
        yield mark + _multiline(f"FROM {quote_identifier(match.table.name)}")
        yield f'{mark}"""'
        # Without an order, columns that are read at different times may not belong together.
        order = match.table.key or [stored.name for stored in match.columns.values()]
        yield f"{mark}order = {_string(', '.join(map(quote_identifier, order)))}"
        unused = [c.name for c in match.table.columns if c not in match.columns.values()]
        if unused:
            yield f"# not used: {_comment(', '.join(unused))}"
        yield from _decoders(match, mark)


def _with_commas(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((line, "," if at < len(lines) - 1 else "") for at, line in enumerate(lines))


def _decoders(match: Match, mark: str) -> Iterator[str]:
    for ours, stored in match.columns.items():
        column = match.schema.by_name[ours]
        block = f"{mark}[tables.{match.schema.name}.columns.{ours}]"
        if column.kind is Kind.PER_TILE and "text" in stored.found:
            yield from (block, f"{mark}json = true")
        elif stored.blobs is not None and stored.blobs.packed == "u64":
            yield from (block, f'{mark}packed = "u64"')
        elif column.kind in (Kind.TEXT, Kind.CATEGORY) and "integer" in stored.found:
            yield from (f"# {block}", '# map = { 0 = "name of 0", 1 = "name of 1" }')


def _rest(facts: DatabaseFacts, matches: Sequence[Match]) -> Iterator[str]:
    found = {match.schema.name for match in matches}
    missing = [schema for schema in tables_of(PROFILE) if schema.name not in found]
    if missing:
        yield ""
        yield "# Nothing like these was found; the columns in brackets may be left out:"
        for schema in missing:
            columns = ", ".join(f"[{c.name}]" if c.nullable else c.name for c in schema.columns)
            yield f"#   {schema.name}: {columns}"
    left = [table for table in facts.tables if table not in [match.table for match in matches]]
    if left:
        yield ""
        yield "# Stored tables that were not used:"
        for table in left:
            yield f"#   {_comment(table.name)}: {_comment(', '.join(column.name for column in table.columns))}"


def _match(schema: TableSchema, table: TableFacts) -> Match:
    columns: dict[str, ColumnFacts] = {}
    pairs = [
        (_column_likeness(column, stored, schema, table), column, stored)
        for column in schema.columns
        for stored in table.columns
        if not stored.found or set(stored.found) - {"null"} <= _FITS[column.kind] or set(stored.found) == {"null"}
    ]
    for likeness, column, stored in sorted(pairs, key=lambda pair: -pair[0]):
        if likeness >= _ALIKE and column.name not in columns and stored not in columns.values():
            columns[column.name] = stored
    needed = [column for column in schema.columns if not column.nullable] or schema.columns
    share = sum(column.name in columns for column in needed) / len(needed)
    in_order = {column.name: columns[column.name] for column in schema.columns if column.name in columns}
    return Match(schema, table, in_order, (_likeness(schema.name, table.name) + share) / 2)


def _column_likeness(column: Column, stored: ColumnFacts, schema: TableSchema, table: TableFacts) -> float:
    """Names are alike as they are, or with the table's name before them: ``id`` of ``tiles`` is ``tile_id``."""
    ours, theirs = _words(column.name), _words(stored.name)
    of_table = [_singular(word) for word in _words(table.name)]
    ours_of_table = [_singular(word) for word in _words(schema.name)]
    candidates = [(ours, theirs), (ours, of_table + theirs), (ours_of_table + ours, theirs), (ours, [*theirs, "id"]),
                  ([*ours, "id"], theirs)]  # fmt: skip
    return max(_ratio(a, b) - 0.02 * at for at, (a, b) in enumerate(candidates))


def _likeness(ours: str, theirs: str) -> float:
    return _ratio([_singular(word) for word in _words(ours)], [_singular(word) for word in _words(theirs)])


def _ratio(ours: Sequence[str], theirs: Sequence[str]) -> float:
    if sorted(ours) == sorted(theirs):
        return 1.0
    together = SequenceMatcher(None, "_".join(sorted(ours)), "_".join(sorted(theirs)), autojunk=False).ratio()
    return together * 0.95


def _words(name: str) -> list[str]:
    """Split a name of any fashion, ``numTiles`` or ``NUM_TILES``, into words that compare."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+", name)
    return [_SAME_WORDS.get(part.lower(), part.lower()) for part in parts] or [name]


def _singular(word: str) -> str:
    if word.endswith("ices"):
        return word[:-4] + "ex"  # vertices
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _string(text: str) -> str:
    """Write a TOML basic string."""
    return '"' + _escape(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _multiline(text: str) -> str:
    """Write a part of a TOML multi-line string, in which a quote may stand, but not three."""
    return _escape(text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'))


def _escape(text: str) -> str:
    """Escape the characters that TOML allows in no string."""
    escapes = (c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text)
    return "".join(escapes)


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
