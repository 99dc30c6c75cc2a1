"""The notebooks run from top to bottom in a kernel of their own, and are kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PATIENCE_SECONDS = 300


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in cells if cell.outputs or cell.execution_count is not None] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_in_a_clean_kernel_and_every_cell_shows_something(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a kernel with nothing in it, no configuration of the user's, and this checkout's package
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)

    # WHEN all cells run, from the notebook's own folder
    client = NotebookClient(notebook, timeout=PATIENCE_SECONDS, resources={"metadata": {"path": str(path.parent)}})
    client.execute()

    # THEN each has something to show, and nothing but that: no warning, no stray print
    silent = (".close()", ".uninstall()")
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and not cell.source.endswith(silent)]
    kinds = {cell.source: {output.output_type for output in cell.outputs} for cell in shown}
    assert {source: found for source, found in kinds.items() if not found} == {}
    assert {source: found for source, found in kinds.items() if not found <= {"execute_result", "display_data"}} == {}
