"""Budgets: TOML files that say what the reports of a project may take.

::

    baseline = "baselines/all.json"               # a file or a report, relative to this file; may be left out

    [limits]
    "memory.tile_max_including_gaps" = "600 KiB"  # at most; a number is in the metric's unit
    "execution.tile_balance" = ">= 0.7"
    "memory.category.*" = ["<= 10 MiB", ">= 1 KiB"]

    [max_increase]                                # over the baseline; or max_increase = "2%" for all
    default = "2%"
    "memory.category.*" = "64 KiB"

    [engine.training.limits]                      # for reports of this engine, in place of the above
    "memory.tile_max_including_gaps" = "620 KiB"

    [report."*/nightly/*"]                        # for reports at these paths, in place of all above
    baseline = "baselines/nightly.json"

Of several rules for a metric, the most specific pattern holds. Quotes around names may be left out: a dotted key is a
table of tables, and these are read as the names that they spell.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pvanalyse.analysis.rules import DEFAULT, Increase, Limit, Rules
from pvanalyse.errors import UsageError
from pvanalyse.gate.limits import check_name, parse_metric_increase, parse_metric_limit
from pvanalyse.gate.text_files import read_text_file
from pvanalyse.names import marked, printable

StrPath = str | PathLike[str]

_TOP = ("baseline", "limits", "max_increase", "engine", "report")
_SECTION = ("baseline", "limits", "max_increase")
_LINE = re.compile(r"\s*(\[[^\[].*?\]|[^=#\s\[][^=#]*=|\"[^\"\n]*\"[^=\n]*=)")


@dataclass(frozen=True, slots=True)
class Section:
    """What a budget says for some reports.

    Attributes
    ----------
    kind, pattern
        ``engine`` and a glob of engines' names, ``report`` and a glob of paths, or twice nothing: for all.
    """

    kind: str = ""
    pattern: str = ""
    rules: Rules = field(default_factory=Rules)
    baseline: Path | None = None

    def is_for(self, directory: Path, engine: str) -> bool:
        """Tell whether the section is for a report; globs of paths may begin anywhere among the directories."""
        if self.kind == "engine":
            return fnmatchcase(engine, self.pattern)
        paths = (directory.as_posix(), f"/{directory.as_posix()}", directory.absolute().as_posix())
        return not self.kind or any(fnmatchcase(path, self.pattern) for path in paths)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a budget file says: sections, of which later ones take the place of earlier ones."""

    path: Path
    sections: tuple[Section, ...] = ()

    def rules_for(self, directory: Path, engine: str = "") -> Rules:
        """Return the rules for a report."""
        rules = Rules()
        for section in self._for(directory, engine):
            rules = rules.with_later(section.rules)
        return rules

    def baseline_for(self, directory: Path, engine: str = "") -> Path | None:
        """Return where the baseline for a report is, None when none is named."""
        named = [section.baseline for section in self._for(directory, engine) if section.baseline]
        return named[-1] if named else None

    def _for(self, directory: Path, engine: str) -> Iterator[Section]:
        return (section for section in self.sections if section.is_for(directory, engine))


def read_budget(path: StrPath) -> Budget:
    """Read a budget file.

    Raises
    ------
    UnreadableFile
        There is no such file, or it cannot be read.
    UsageError
        It is not TOML or not a budget, with the line and the key.
    """
    text = read_text_file(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{printable(fspath(path))}: {_syntax_problem(text, str(error))}") from None
    except RecursionError:
        raise UsageError(f"{printable(fspath(path))}: tables are nested too deeply") from None
    return Budget(Path(path), tuple(_Reader(Path(path), text).sections(data)))


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    text: str

    def sections(self, data: Mapping[str, Any]) -> Iterator[Section]:
        """Yield the section for all, those for engines, those for reports."""
        self._known(data, _TOP, ())
        yield self._section("", "", data, ())
        for kind in ("engine", "report"):
            for pattern, table in self._table(data, kind, ()).items():
                place = (kind, pattern)
                if not isinstance(table, Mapping):
                    raise self._wrong(place, f"must be a table, such as [{kind}.{pattern}.limits]")
                self._known(table, _SECTION, place)
                yield self._section(kind, pattern, table, place)

    def _section(self, kind: str, pattern: str, table: Mapping[str, Any], place: tuple[str, ...]) -> Section:
        baseline = table.get("baseline")
        if baseline is not None and (not isinstance(baseline, str) or not baseline):
            raise self._wrong((*place, "baseline"), "must be the path of a baseline file or report, in quotes")
        rules = Rules(tuple(self._limits(table, place)), tuple(self._increases(table, place)))
        return Section(kind, pattern, rules, self.path.parent / baseline if baseline else None)

    def _limits(self, table: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Limit]:
        for keys, value in self._leaves(self._table(table, "limits", place)):
            at = (*place, "limits", *keys)
            pattern = self._pattern(keys, at)
            for one in value if isinstance(value, list) else [value]:
                yield parse_metric_limit(pattern, self._quantity(one, at), self._where(at))

    def _increases(self, table: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[Increase]:
        if not isinstance(table.get("max_increase", {}), Mapping):
            at = (*place, "max_increase")
            yield parse_metric_increase(DEFAULT, self._quantity(table["max_increase"], at), self._where(at))
            return
        for keys, value in self._leaves(self._table(table, "max_increase", place)):
            at = (*place, "max_increase", *keys)
            pattern = DEFAULT if keys == ("default",) else self._pattern(keys, at)
            yield parse_metric_increase(pattern, self._quantity(value, at), self._where(at))

    def _leaves(self, table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield what is not a table with the keys that lead to it."""
        for key, value in table.items():
            if isinstance(value, Mapping):
                yield from (((key, *keys), leaf) for keys, leaf in self._leaves(value))
            else:
                yield (key,), value

    def _pattern(self, keys: tuple[str, ...], at: tuple[str, ...]) -> str:
        pattern = ".".join(keys)
        try:
            check_name(pattern)
        except UsageError as error:
            raise UsageError(f"{self._where(at)}: {error}") from None
        return pattern

    def _quantity(self, value: Any, at: tuple[str, ...]) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(at, 'must be a number, or a text such as "600 KiB"')
        return str(value)

    def _table(self, table: Mapping[str, Any], key: str, place: tuple[str, ...]) -> Mapping[str, Any]:
        found = table.get(key, {})
        if not isinstance(found, Mapping):
            raise self._wrong((*place, key), "must be a table")
        return found

    def _known(self, table: Mapping[str, Any], keys: tuple[str, ...], place: tuple[str, ...]) -> None:
        for key in table:
            if key not in keys:
                raise self._wrong((*place, key), f"is none of {', '.join(keys)}")

    def _wrong(self, at: tuple[str, ...], problem: str) -> UsageError:
        return UsageError(f"{self._where(at)} {problem}")

    def _where(self, at: tuple[str, ...]) -> str:
        line = _line_of(self.text, at)
        return printable(f"{self.path}{f', line {line}' if line else ''}, {_dotted(at)}")


def _dotted(keys: tuple[str, ...]) -> str:
    return ".".join(key if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'"{key}"' for key in keys)


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """Return the number of the line where a key, or else the table that it is in, is written; 0 when none is found."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        if match[1].startswith("["):
            table = _spelt(match[1])
            found.setdefault(table, number)
        else:
            found.setdefault((*table, *_spelt(f"{match[1]} 0")), number)
    known = [keys[:length] for length in range(len(keys), 0, -1)]
    return next((found[one] for one in known if one in found), 0)


def _spelt(line: str) -> tuple[str, ...]:
    """Return the keys that a header or the left side of an assignment spells."""
    try:
        table: Any = tomllib.loads(line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    keys = []
    while isinstance(table, Mapping) and table:
        key, table = next(iter(table.items()))
        keys.append(key)
    return tuple(keys)


def _syntax_problem(text: str, message: str) -> str:
    """Return what is wrong with TOML and where, which the parser says as ``(at line 1, column 2)`` or not at all."""
    at = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if at is None:
        lines = text.splitlines()
        return f"{message[:1].lower()}{message[1:]}, line {max(len(lines), 1)}"
    line = text.split("\n")[int(at[1]) - 1]
    problem = message[: at.start()].strip()
    return f"line {at[1]}: {problem[:1].lower()}{problem[1:]}\n{marked(line, int(at[2]) - 1)}"
