"""Fresh Pythons in a tenth of the time: forked from a process that has imported PyTorch and transformers, and nothing of ours.

That process has one thread, no test's data, and lasts as long as the test run. It knows nothing of this package, so that a
program which must do without it is found out here as well. What a forked process says of memory and of seconds is not what a
fresh one needs; :mod:`tests.axformer.forms.test_fresh` asks real ones.
"""

import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, get_context
from pathlib import Path

PRELOADED = (
    "torch",
    "transformers.modeling_utils",
    "transformers.generation.utils",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.stats",
    "pydantic.main",
)
"""What takes long to import. None of it starts a thread, which would be lost in a fork."""
TIMEOUT_SECONDS = 600

_CONTEXT = get_context("forkserver")
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class _Program:
    """What an interpreter would be started with."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    streams: Path
    """Where its standard input comes from, and output and error go, as the files ``0``, ``1`` and ``2``."""

    def run(self) -> None:
        """Become the program; called in the forked process."""
        for number in (1, 2):
            with (self.streams / str(number)).open("wb") as stream:
                os.dup2(stream.fileno(), number)
        sys.stdin = (self.streams / "0").open(encoding="utf-8")
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
        match self.arguments:
            case ("-m", module, *rest):
                sys.argv = [module, *rest]
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            case ("-I", script, *rest):
                sys.argv = [script, *rest]
                runpy.run_path(script, run_name="__main__")
            case _:
                raise ValueError(f"neither -m MODULE nor -I SCRIPT: {self.arguments}")


def start() -> None:
    """Start the process that forks; it imports while this one goes on."""
    _CONTEXT.set_forkserver_preload(list(PRELOADED))
    forkserver.ensure_running()


class ForkedInterpreter:
    """See :class:`axformer.forms.interpreter.Interpreter`; it is forked when it is told what is asked."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments

    def tell(self, line: str) -> subprocess.CompletedProcess[str]:
        return forked_interpreter(self._arguments, f"{line}\n")

    def end(self) -> None:
        """Nothing goes on."""


def forked_interpreter(arguments: Sequence[str], said: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with this on its standard input."""
    with _one_at_a_time, tempfile.TemporaryDirectory(prefix="axformer-forked-") as streams:
        Path(streams, "0").write_text(said, encoding="utf-8")
        program = _Program(tuple(arguments), dict(os.environ), str(Path.cwd()), Path(streams))
        process = _CONTEXT.Process(target=program.run)
        process.start()
        process.join(TIMEOUT_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(list(arguments), TIMEOUT_SECONDS)
        out, err = (Path(streams, number).read_text(encoding="utf-8") for number in ("1", "2"))
        return subprocess.CompletedProcess(list(arguments), process.exitcode, out, err)
