"""What GNU binutils say of an archive, parsed into the rows of the archive tables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Row = tuple[Any, ...]

_FILE = re.compile(r"^File: .*\((.*)\)$")
_SECTION = re.compile(
    r"^  \[ *(\d+)\] (.*?) +([A-Z][A-Z0-9_]+|SYMTAB SECTION INDICES|LO[A-Z]+\+0?x?[0-9a-f]+|[0-9a-f]{8}: <unknown>)"
    r" +([0-9a-f]{8,16}) ([0-9a-f]{6,}) ([0-9a-f]{6,}) [0-9a-f]{2,} +([A-Za-z]*) +\d+ +\d+ +\d+$"
)
_SEGMENT = re.compile(
    r"^  (<unknown>: \S+|\S+) +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+) 0x([0-9a-f]+)"
    r" ([R ][W ][E ]) (?:0x)?([0-9a-f]+)$"
)
_SYMBOL = re.compile(
    r"^ +\d+: ([0-9a-f]{8,16}) +(0x[0-9a-f]+|\d+) (\S+) +(\S+) +\S+ +(?:\[.*?\] +)?(UND|ABS|COM|\d+) ?(.*)$"
)
_SPECIAL_SECTIONS = {"UND": 0, "ABS": 0xFFF1, "COM": 0xFFF2}


def tool(name: str) -> str:
    """Return the path of a program, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(program: str, *arguments: str | Path, cwd: Path | None = None) -> str:
    """Run a program that must succeed, and return what it prints; skip the test when it is missing."""
    command = [tool(program), *map(str, arguments)]
    environment = os.environ | {"LC_ALL": "C"}
    result = subprocess.run(
        command, capture_output=True, text=True, errors="backslashreplace", cwd=cwd, env=environment, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def static_libraries() -> list[Path]:
    """Return archives that a machine with a compiler or a Python has; there may be none."""
    places = [
        *(Path("/usr/lib").glob("*-linux-gnu/lib*.a")),
        *(Path("/usr/lib/gcc").glob("*/*/lib*.a")),
        *(Path(sysconfig.get_config_var("LIBPL") or "/nonexistent").glob("lib*.a")),
    ]
    wanted = ("libc.a", "libgcc.a", "libpthread.a", "libstdc++.a", "libz.a")
    found = {path.resolve() for path in places if path.name in wanted or path.name.startswith("libpython")}
    return sorted(path for path in found if path.stat().st_size < 20_000_000)


def member_names(path: Path) -> list[str]:
    """Return what ``ar t`` lists."""
    return run("ar", "t", path.name, cwd=path.parent).splitlines()  # of a thin archive it shows paths as seen from here


def _lines(path: Path, options: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of readelf for an archive, with the number of the member that they belong to."""
    member = -1
    for line in run("readelf", options, path).splitlines():
        if line.startswith("File: "):
            member += 1
        yield member, line


def sections(path: Path) -> list[Row]:
    """Return member, index, name, type, address, size and flags of each section."""
    found = ((member, _SECTION.match(line)) for member, line in _lines(path, "-SW"))
    return [(member, int(m[1]), m[2], m[3], int(m[4], 16), int(m[6], 16), m[7]) for member, m in found if m is not None]


def segments(path: Path) -> list[Row]:
    """Return member, type, virtual address, size in the file and in memory, flags and alignment of each segment."""
    found = ((member, _SEGMENT.match(line)) for member, line in _lines(path, "-lW"))
    return [
        (member, m[1], int(m[3], 16), int(m[4], 16), int(m[5], 16), m[6].rstrip(), int(m[7], 16))
        for member, m in found
        if m is not None
    ]


def symbols(path: Path) -> list[Row]:
    """Return member, name, value, size, type, binding and section of each entry of ``.symtab``.

    readelf shows a section's name for the nameless symbol of a section; here it is empty.
    """
    rows: list[Row] = []
    wanted = False
    for member, line in _lines(path, "-sW"):
        if line.startswith("Symbol table"):
            wanted = "'.symtab'" in line
        elif wanted and (m := _SYMBOL.match(line)) is not None:
            section = _SPECIAL_SECTIONS[m[5]] if m[5] in _SPECIAL_SECTIONS else int(m[5])
            name = "" if m[3] == "SECTION" else m[6]
            rows.append((member, name, int(m[1], 16), int(m[2], 0), m[3], m[4], section))
    return rows


def headers(path: Path) -> list[Row]:
    """Return class, byte order, flags, number of segments and number of sections of each member."""
    members: list[dict[str, str]] = []
    for member, line in _lines(path, "-hW"):
        if member == len(members):
            members.append({})
        key, colon, value = line.partition(":")
        if colon and members:
            members[-1][key.strip()] = value.strip()
    return [
        (
            int(m["Class"].removeprefix("ELF")),
            "little" if "little" in m["Data"] else "big",
            int(m["Flags"].split(",")[0], 16),
            _count(m["Number of program headers"]),
            _count(m["Number of section headers"]),
        )
        for m in members
    ]


def _count(text: str) -> int:
    """Return the number, or the one in brackets behind it, which is the one that did not fit."""
    return int(re.findall(r"\d+", text)[-1])


def section_sizes(path: Path) -> list[Row]:
    """Return member, name, size and address of each section that ``size -A`` counts."""
    rows: list[Row] = []
    member = -1
    for line in run("size", "-A", path).splitlines():
        if "(ex " in line:
            member += 1
        elif (m := re.match(r"^(\S.*?) +(\d+) +(\d+)$", line)) is not None:
            rows.append((member, m[1], int(m[2]), int(m[3])))
    return rows
