"""``python -m pvanalyse.libpva``: the script runs as Python itself would run it, except that it can import pva."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from pvanalyse import libpva
from tests.conftest import ROOT

ABOUT = """
import os, sys
import __main__
try:
    import pva
except ImportError:
    pass
print(__name__, __file__, sys.argv, os.path.realpath(sys.path[0]), __main__.__dict__ is globals(), __doc__)
print(sorted(set(globals()) - {"pva", "__annotations__"}), __spec__, __package__)
import neighbour
"""
SCRIPTS = {
    "about": ABOUT,
    "exception": "def inner():\n    raise KeyError('lost')\n\ndef outer():\n    inner()\n\nouter()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('no') from error\n",
    "syntax": "x = 1\nif x\n    pass\n",
    "exit": "import sys\nprint('before')\nsys.exit(7)\n",
    "exit with text": "raise SystemExit('that is wrong')\n",
    "exit without": "import sys\nsys.exit()\n",
    "at exit": "import atexit\nvalue = 'kept'\natexit.register(lambda: print(value))\n",
    "thread": "import threading, time\nvalue = 3\ndef late():\n    time.sleep(0.2)\n    print(value)\nthreading.Thread(target=late).start()\n",
    "pickle": "import pickle\nclass Thing:\n    pass\nprint(type(pickle.loads(pickle.dumps(Thing()))) is Thing)\n",
    "hook": "import sys\nsys.excepthook = lambda kind, error, trace: print('hooked', kind.__name__)\nraise OSError\n",
    "encoded": "# -*- coding: latin-1 -*-\nprint(ascii('caf\xe9'))\n",
    "future": "print(compile('x: y', 'f', 'exec').co_flags, 3 / 2)\n\ndef f(x: undefined_name = 1): pass\n",
}  # fmt: skip


def outcome(command: list[str], cwd: Path) -> tuple[int, str, str]:
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_python_runs_it(name: str, tmp_path: Path) -> None:
    # GIVEN a script in a directory of its own, with a module beside it
    (tmp_path / "below").mkdir()
    script = tmp_path / "below" / "script.py"
    script.write_bytes(SCRIPTS[name].encode("latin-1"))
    (tmp_path / "below" / "neighbour.py").write_text("print('neighbour')\n")
    # WHEN it is run by Python, and by us
    arguments = ["below/script.py", "--flag", "-m", "two words", ""]
    expected = outcome(arguments, tmp_path)
    found = outcome(["-m", "pvanalyse.libpva", *arguments], tmp_path)
    # THEN what it prints, its traceback and its exit code are the same
    assert found == expected


def test_pva_is_answered(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import pva, pva.pva_core\nfrom pva import openReport, OperationAnalysis\n"
        "from pva.pva_core import Program\nprint(Program.Type is pva.Program.Type)\n"
    )
    assert outcome(["-m", "pvanalyse.libpva", "script.py"], tmp_path) == (0, "True\n", "")


def test_a_module_can_be_run_too(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import sys, pva\nprint(__name__, sys.argv[1:], pva.__name__)\n")
    expected = (0, "__main__ ['x', '-m'] pvanalyse.libpva\n", "")
    assert outcome(["-m", "pvanalyse.libpva", "-m", "tool", "x", "-m"], tmp_path) == expected


@pytest.mark.parametrize("arguments", [[], ["-m"], ["--flag", "script.py"], ["-"]])
def test_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    code, out, err = outcome(["-m", "pvanalyse.libpva", *arguments], tmp_path)
    assert (code, out, err.startswith("Usage: ")) == (2, "", True)


def test_help(tmp_path: Path) -> None:
    code, out, err = outcome(["-m", "pvanalyse.libpva", "--help"], tmp_path)
    assert (code, "SCRIPT" in out, err) == (0, True, "")


@pytest.mark.parametrize("path", ["missing.py", "below"])
def test_no_script(path: str, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    code, out, err = outcome(["-m", "pvanalyse.libpva", path], tmp_path)
    assert (code, out) == (2, "")
    assert f"can't open file '{tmp_path / path}'" in err
    assert "Traceback" not in err


def test_errors_of_pvanalyse_reach_the_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import pva\ntry:\n    pva.openReport('nowhere.pop')\nexcept Exception as error:\n    print(error)\n"
        "pva.openReport('nowhere.pop')\n"
    )
    code, out, err = outcome(["-m", "pvanalyse.libpva", "script.py"], tmp_path)
    assert (code, out) == (1, "nowhere.pop: no such file or directory\n")
    assert err.splitlines()[1].strip() == f'File "{tmp_path}/script.py", line 6, in <module>'


@pytest.fixture
def clean() -> None:
    names = ("pva", "pva.pva_core")
    before = {name: sys.modules.pop(name, None) for name in names}
    yield
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


@pytest.mark.usefixtures("clean")
def test_install_and_uninstall() -> None:
    # GIVEN no libpva, WHEN ours is installed, twice
    libpva.install()
    libpva.install()
    import pva  # type: ignore[import-not-found]
    import pva.pva_core as core  # type: ignore[import-not-found]

    # THEN it answers, until it is uninstalled, twice
    assert (pva, core) == (libpva, libpva.pva_core)
    libpva.uninstall()
    libpva.uninstall()
    assert not {"pva", "pva.pva_core"} & set(sys.modules)


@pytest.mark.usefixtures("clean")
def test_a_real_libpva_comes_back() -> None:
    # GIVEN a libpva that was imported already
    real = types.ModuleType("pva")
    sys.modules["pva"] = real
    # WHEN ours is installed, it hides that one; WHEN it is uninstalled, that one is back
    libpva.install()
    assert sys.modules["pva"] is libpva
    libpva.uninstall()
    assert sys.modules["pva"] is real
    assert "pva.pva_core" not in sys.modules


@pytest.mark.usefixtures("clean")
def test_one_that_took_our_place_stays() -> None:
    libpva.install()
    real = types.ModuleType("pva")
    sys.modules["pva"] = real
    libpva.uninstall()
    assert sys.modules["pva"] is real
