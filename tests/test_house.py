"""The house rules that a program can hold: formatting, lint, types, who may import whom, and what stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Rooms in the order of the data flow: a room may import from its own row and from rows above.
FLOW = (
    ("collector", "names", "units"),
    ("errors",),
    ("tables",),
    ("report_files",),
    ("discovery", "readers", "analysis"),
    ("render", "plots", "html"),
    ("accessors",),
    ("report", "comparisons"),
    ("__init__",),
    ("gate", "logs", "libpva", "capture", "watching"),
    ("cli",),
    ("__main__",),
)
RANK = {room: rank for rank, rooms in enumerate(FLOW) for room in rooms}
FORBIDDEN = {("analysis", "readers"), ("analysis", "discovery"), ("readers", "analysis"), ("readers", "discovery")}


@pytest.mark.parametrize(
    "command",
    [["ruff", "format", "--check", "."], ["ruff", "check", "."], ["mypy", "--no-error-summary"]],
    ids=["format", "lint", "types"],
)
def test_tools_find_nothing(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def imports(path: Path) -> Iterator[str]:
    """Names of the pvanalyse modules that a file imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"


def test_data_flows_one_way() -> None:
    package = ROOT / "pvanalyse"
    wrong = []
    for path in sorted(package.rglob("*.py")):
        mine = room(".".join(["pvanalyse", *path.relative_to(package).with_suffix("").parts]))
        for name in imports(path):
            if name.split(".")[0] != "pvanalyse":
                continue
            theirs = room(name)
            if theirs == "__init__" and name.removeprefix("pvanalyse.") in ("__version__", "tables"):
                continue
            if RANK[theirs] > RANK[mine] or (mine, theirs) in FORBIDDEN:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name.partition(".")[0] for name in done.stdout.split()}


HEAVY = {"pandas", "pyarrow", "numpy", "matplotlib", "adbc_driver_sqlite", "cbor2"}


def test_importing_the_package_is_light() -> None:
    assert modules_after("import pvanalyse") & (HEAVY | {"rich", "click"}) == set()


def test_help_is_light() -> None:
    code = "from pvanalyse.cli import main\nassert main(['--help']) == 0"
    assert modules_after(code) & (HEAVY | {"rich"}) == set()


def test_ci_runs_the_line_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert [line for line in script if "pip install" in line or "pytest" in line] == script[-1:]
    assert script[-1] in (ROOT / "README.md").read_text("utf-8").splitlines()


def test_top_level_is_as_agreed() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not tracked:
        pytest.skip("not a git checkout, so build products cannot be told from sources")
    top = {name.partition("/")[0] for name in tracked.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= {
        "LICENSE", "README.md", "notebooks", "pvanalyse", "pyproject.toml", "sample_reports", "tests",
    }  # fmt: skip


def test_the_readme_lists_every_metric() -> None:
    from pvanalyse.analysis.metrics import CATALOGUE

    rows = [f"| `{spec.name}` | {spec.unit} | {spec.doc} |" for spec in CATALOGUE]
    text = (ROOT / "README.md").read_text("utf-8")
    assert "\n".join(["| metric | unit | |", "|---|---|---|", *rows]) in text
