"""The database that a capture writes, with how far it is; written in chunks that are there whole or not at all."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pvanalyse.errors import PvanalyseError, UnreadableFile

Row = tuple[Any, ...]

_NOT_TOLD = ("engine_options", "program_roots", "stream_copies", "remote_buffers")
"""Tables of the layout that libpva says nothing of; dropped, since an empty one could pass for "there are none"."""

_WORKING_TABLES = """
CREATE TABLE capture_parts (part TEXT PRIMARY KEY, done INTEGER, finished INTEGER, left_out TEXT);
CREATE TABLE capture_remarks (remark TEXT PRIMARY KEY, times INTEGER);
CREATE TABLE capture_classes (lowered_variable_id INTEGER PRIMARY KEY, tile INTEGER, equivalence_class_id INTEGER);
CREATE TABLE capture_variables (variable_id INTEGER PRIMARY KEY, tile INTEGER, position INTEGER);
CREATE TABLE capture_compute_sets (compute_set_id INTEGER PRIMARY KEY, name TEXT, contents BLOB);
CREATE TABLE capture_live (position INTEGER PRIMARY KEY, step_begin INTEGER);
"""
_INSERT = {
    "lowered_variables": "INSERT INTO lowered_variables (lowered_variable_id, variable_id, name, tile, bytes, "
    "always_live, equivalence_class_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, iif(?6, NULL, (SELECT equivalence_class_id "
    "FROM capture_classes WHERE lowered_variable_id = ?1 AND tile = ?4)))",
    "program_lowered_variables": "INSERT OR IGNORE INTO program_lowered_variables VALUES (?, ?)",
    "equivalence_class_intervals": "INSERT INTO equivalence_class_intervals VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET step_end = max(step_end, excluded.step_end)",
    "tile_vertices": "INSERT INTO tile_vertices VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET code_bytes = code_bytes + excluded.code_bytes",
    "capture_remarks": "INSERT INTO capture_remarks VALUES (?, ?) "
    "ON CONFLICT DO UPDATE SET times = times + excluded.times",
}
"""How rows are put into tables where it is not plain. Vertex types of one name and size are one type here."""

_ROWS_AT_ONCE = 5_000
_LONG_ROWS_AT_ONCE = 64  # a number for each of 23,552 tiles has 94 kB
_LONG_ROWS = ("compute_sets", "compute_set_vertices", "programs", "execution_steps")
_CHUNK_SECONDS = 2.0


class CaptureFile:
    """An unfinished capture.

    Parameters
    ----------
    path
        The file, which is made, or continued when it is of the same origin.
    origin
        What the report is known by: keys that ``report_info`` keeps, and their values.
    chunk_seconds
        How much work may be lost at most.

    Attributes
    ----------
    continued
        Whether something had been captured before.
    discarded
        Whether what had been captured before was of another origin, and was removed.

    Raises
    ------
    UnreadableFile
        There is another file of that name.
    """

    def __init__(self, path: Path, origin: Mapping[str, str], chunk_seconds: float = _CHUNK_SECONDS) -> None:
        self.path = path
        self._origin = dict(origin)
        self._chunk_seconds = chunk_seconds
        self._rows: dict[str, list[Row]] = defaultdict(list)
        self._remarks: Counter[str] = Counter()
        self._inserts: dict[str, str] = {}
        self._since = time.monotonic()
        self.continued = self.discarded = False
        self._database = self._open()
        try:
            self._begin_or_continue()
        except BaseException:
            self._database.close()
            raise

    def _begin_or_continue(self) -> None:
        found = self._origin_found()
        self.continued = found == self._origin
        if found and not self.continued:
            self._database.close()
            self.path.unlink()
            self.discarded = True
            self._database = self._open()
        if not self.continued:
            self._make()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        try:
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            database.close()
            if error.sqlite_errorname == "SQLITE_NOTADB":
                raise UnreadableFile(self.path, "is not an unfinished capture; move it away") from None
            raise
        return database

    def _origin_found(self) -> dict[str, str]:
        """Return the origin of what is there already; empty when nothing is."""
        names = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master")}
        if not names:
            return {}
        sql = "SELECT key, value FROM report_info"
        facts = dict(self._database.execute(sql)) if "report_info" in names else {}
        if not facts.keys() >= self._origin.keys():
            raise UnreadableFile(self.path, "is not an unfinished capture; move it away")
        return {key: facts[key] for key in self._origin}

    def _make(self) -> None:
        layout = (resources.files("pvanalyse.readers") / "dialects" / "pvanalyse-1.sql").read_text("utf-8")
        self._database.execute("ROLLBACK")  # executescript would commit
        without = re.sub(r"--[^\n]*", "", layout).replace("NOT NULL", "")  # libpva does not tell every column
        self._database.executescript(f"BEGIN EXCLUSIVE; {without}; {_WORKING_TABLES}")
        self._database.executemany("INSERT INTO report_info VALUES (?, ?)", self._origin.items())
        self._commit()

    # --------------------------------------------------------------------------------------------------------- writing
    def add(self, table: str, rows: Iterable[Row]) -> None:
        """Take rows to write."""
        waiting = self._rows[table]
        waiting.extend(rows)
        if len(waiting) >= (_LONG_ROWS_AT_ONCE if table in _LONG_ROWS else _ROWS_AT_ONCE):
            self._flush(table)

    def remark(self, what: str) -> None:
        """Count something that has to be said in the end."""
        self._remarks[what] += 1

    def select(self, sql: str) -> list[Row]:
        """Return what has been written, everything that was added included."""
        self._flush_all()
        return self._database.execute(sql).fetchall()

    def execute(self, sql: str) -> None:
        """Change what has been written."""
        self._flush_all()
        self._database.execute(sql)

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if rows:
            if table not in self._inserts:
                places = ", ".join("?" * len(rows[0]))
                self._inserts[table] = _INSERT.get(table) or f"INSERT INTO {table} VALUES ({places})"  # noqa: S608
            self._database.executemany(self._inserts[table], rows)
            rows.clear()

    def _flush_all(self) -> None:
        for table in list(self._rows):
            self._flush(table)

    # ---------------------------------------------------------------------------------------------------------- chunks
    @property
    def due(self) -> bool:
        """Whether a chunk is full, so that :meth:`keep` is to be called."""
        return time.monotonic() - self._since >= self._chunk_seconds

    def keep(self, part: str, done: int, *, finished: bool = False) -> None:
        """Write everything added for good, together with how many items of a part are done."""
        self.add("capture_remarks", self._remarks.items())
        self._remarks.clear()
        self._flush_all()
        self._database.execute("REPLACE INTO capture_parts VALUES (?, ?, ?, NULL)", (part, done, finished))
        self._commit()

    def forget(self) -> None:
        """Drop what was added since the last chunk."""
        self._rows.clear()
        self._remarks.clear()
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        self._begin()

    def leave_out(self, part: str, tables: Iterable[str], why: str) -> None:
        """Remove what there is of a part, for good."""
        self.forget()
        for table in tables:
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608
        self._database.execute("REPLACE INTO capture_parts VALUES (?, 0, 1, ?)", (part, why))
        self._commit()

    def done(self, part: str) -> tuple[int, bool]:
        """Return how many items of a part are done, and whether that is all of them."""
        if self.complete:
            return 0, True
        found = self._database.execute("SELECT done, finished FROM capture_parts WHERE part = ?", (part,)).fetchone()
        return (int(found[0]), bool(found[1])) if found else (0, False)

    def _commit(self) -> None:
        self._database.execute("COMMIT")
        self._begin()

    def _begin(self) -> None:
        self._database.execute("BEGIN")
        self._since = time.monotonic()

    # ----------------------------------------------------------------------------------------------------------- ending
    @property
    def complete(self) -> bool:
        """Whether nothing is left to do but to give the file its name."""
        return not self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'capture_parts'").fetchone()

    @property
    def left_out(self) -> dict[str, str]:
        """Parts that were left out, and why."""
        return dict(self._database.execute("SELECT part, left_out FROM capture_parts WHERE left_out IS NOT NULL"))

    @property
    def remarks(self) -> dict[str, int]:
        """What has to be said, and how often it was so."""
        return dict(self._database.execute("SELECT remark, times FROM capture_remarks ORDER BY remark"))

    def finish(self, without: Mapping[str, Any], *, told_uses: bool) -> None:
        """Remove what only the capture itself needed, and note in the file what it is without.

        Parameters
        ----------
        without
            Written into ``report_info`` as JSON.
        told_uses
            Whether it was told which variables programs use.
        """
        text = json.dumps(without, ensure_ascii=False)
        self._database.execute("REPLACE INTO report_info VALUES ('captured_without', ?)", (text,))
        names = [name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        # A program may well use no variable; the other tables are empty when there is nothing to tell.
        used_told = all(map(self.count, ("programs", "lowered_variables"))) and told_uses
        for name in names:
            kept = self.count(name) or (name == "program_lowered_variables" and used_told)
            if name in _NOT_TOLD or name.startswith("capture_") or not kept:
                self._database.execute(f"DROP TABLE {name}")
        self._commit()

    @property
    def without(self) -> dict[str, Any]:
        """What the finished file says that it is without."""
        found = self._database.execute("SELECT value FROM report_info WHERE key = 'captured_without'").fetchone()
        return dict(json.loads(found[0]))

    @property
    def tables(self) -> dict[str, int]:
        """Rows of every table of the finished file."""
        names = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
        return {name: self.count(name) for (name,) in names.fetchall()}

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        (number,) = self._database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        return int(number)

    def close(self) -> None:
        """Close it; what was added since the last chunk is lost."""
        self._database.close()


def sentence(path: Path, error: sqlite3.Error) -> PvanalyseError:
    """Return what is wrong with a capture's file, for a person."""
    again = "what was captured so far is kept, the same command continues it"
    problems = {
        "SQLITE_FULL": f"the disk is full; make room, {again}",
        "SQLITE_BUSY": "another capture is writing it; wait until that is done",
        "SQLITE_CANTOPEN": "cannot be written; name another directory with -o",
        "SQLITE_READONLY": "cannot be written; name another directory with -o",
    }
    code = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    return UnreadableFile(path, problems.get(code, f"cannot be written ({error}); {again}"))
