"""The command line in a process of its own that answers one command after another and is ended when it hangs.

A command that waits for ever inside a C library cannot be interrupted from within its process, and a process for
each command would spend its time on imports. The memory of the process is limited, so that a command which would
take all of the machine's fails alone.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pvanalyse

CHECKOUT = Path(pvanalyse.__file__).parent.parent

_SERVER = """
import json, os, resource, sys, traceback
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
answers = os.fdopen(os.dup(1), "w")
from pvanalyse.cli import main
for line in sys.stdin:
    request = json.loads(line)
    for descriptor, path in ((1, request["stdout"]), (2, request["stderr"])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    try:
        code = main(request["argv"])
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    print(json.dumps(code), file=answers, flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    """What a command ended with."""

    code: int
    stdout: str
    stderr: str


def environment() -> dict[str, str]:
    """Return the environment in which the checkout can be imported from any directory, without colours."""
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONFAULTHANDLER": "1", "NO_COLOR": "1", "COLUMNS": "500"}


class CommandLine:
    """Runs commands of `pvanalyse`; use it as a context manager."""

    def __init__(self, scratch: Path, patience_seconds: float = 30) -> None:
        self.scratch = scratch
        self.patience_seconds = patience_seconds
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> CommandLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, *argv: str | os.PathLike[str]) -> Outcome:
        """Run one command.

        Raises
        ------
        AssertionError
            The command has not ended in time, or has taken its process down with it.
        """
        process = self._started()
        stdout, stderr = self.scratch / "stdout", self.scratch / "stderr"
        request = {"argv": [os.fspath(word) for word in argv], "stdout": str(stdout), "stderr": str(stderr)}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self.patience_seconds)
        answer = process.stdout.readline() if ready else ""
        if not answer:
            self.close()
            what = f"ended with {process.returncode}" if ready else "hangs"
            raise AssertionError(f"pvanalyse {' '.join(request['argv'])} {what}\n{_text(stderr)}")
        return Outcome(json.loads(answer), _text(stdout), _text(stderr))

    def close(self) -> None:
        """End the process; the next command starts another."""
        if self.process is not None:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment(),
                cwd=self.scratch,
            )
        return self.process


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
