"""A process that has imported the large libraries, and nothing of ours, forks itself where a Python would be started.

What is started so has all that a start gives: arguments, environment, directory, descriptors, session, and a process id of a
child of whoever started it, so that it is waited for, signalled and killed as usual. It lacks what a start costs. This module
is both the program of that process, run by its path, and what asks it; it imports nothing of this package.
"""

import _posixsubprocess
import array
import atexit
import ctypes
import fcntl
import gc
import io
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_SUBREAPER = 36
_DIES_WITH_PARENT = 1
"""Options of the system call ``prctl``."""
_FIRST_FREE = 400
"""Descriptors are moved here before they get the numbers that they are wanted under."""
_MOST_DESCRIPTORS = 64
_LENGTH_BYTES = 8

Exec = Callable[..., int]
Request = Mapping[str, Any]
_EXEC: Exec = _posixsubprocess.fork_exec
_changing = threading.Lock()
_begun: list[Exec] = []
"""How this process starts others, the last one first; threads may begin and end in any order."""


class Template:
    """The connection to such a process, which is a child of this one."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        """
        Args:
            connection: to the process.
            process: None if this process has forked it.
        """
        self._connection = connection
        self._process = process
        self._owner = os.getpid()
        self._asking = threading.Lock()

    @classmethod
    def start(cls, modules: Sequence[str]) -> "Template":
        """Start one. It imports the modules while this process goes on."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"},
            )
        return cls(ours, process)

    @property
    def pid(self) -> int | None:
        """Its id, if it was started."""
        return None if self._process is None else self._process.pid

    @property
    def is_ours(self) -> bool:
        """Whether it can fork children of this process."""
        return self._owner == os.getpid()

    def end(self) -> None:
        """End it; what it has forked goes on."""
        self._connection.close()
        if self._process is not None:
            self._process.wait()

    def fork(self, request: Request, descriptors: Sequence[int]) -> int:
        """Have a child of this process forked, which becomes the program; gives its id.

        The template's child forks it and ends, and for that moment orphans become children of this process.
        """
        with self._asking:
            _prctl(_SUBREAPER, 1)
            try:
                _send(self._connection, request, descriptors)
                return int(self._connection.recv(_LENGTH_BYTES))
            finally:
                _prctl(_SUBREAPER, 0)

    @contextmanager
    def forking(self, *, nested: bool = False) -> Iterator[None]:
        """Fork each Python that this process starts meanwhile.

        Args:
            nested: fork also each Python that these start.
        """
        if sys.platform != "linux":
            yield  # no process becomes the parent of one that it has not forked
            return
        starts = _starting_by(self, nested=nested)
        with _changing:
            _begun.append(starts)
            _start_by(starts)
        try:
            yield
        finally:
            with _changing:
                _begun.remove(starts)
                _start_by(_begun[-1] if _begun else _EXEC)


def _start_by(starts: Exec) -> None:
    """Have this process start others so, in :mod:`subprocess` and in what starts processes of a pool."""
    subprocess._fork_exec = _posixsubprocess.fork_exec = starts  # type: ignore[attr-defined]


def _starting_by(template: Template, *, nested: bool) -> Exec:
    """What has a template fork the Pythons that it knows how to become, and executes all else."""

    def fork_exec(arguments: Sequence[Any], *rest: Any) -> int:
        command = [os.fsdecode(argument) for argument in arguments]
        close, keep, directory, environment = rest[1:5]
        inherited, new_session, prepare = (rest[5], rest[8], rest[10]), rest[14], rest[20]
        known = command[0] == sys.executable and command[1:2] in (["-m"], ["-c"], ["-I"])
        if not (known and close and prepare is None and template.is_ours):
            return _EXEC(arguments, *rest)
        streams = {number: number if given < 0 else given for number, given in enumerate(inherited)}
        report = rest[12]
        kept = streams | {number: number for number in keep if number != report}
        request = {
            "arguments": command[1:],
            "directory": os.fsdecode(directory) if directory is not None else str(Path.cwd()),
            "environment": dict(os.environ) if environment is None else _variables(environment),
            "descriptors": list(kept),
            "session": bool(new_session),
            "nested": nested,
            "parent": os.getpid(),
        }
        return template.fork(request, list(kept.values()))

    return fork_exec


def _variables(environment: Sequence[bytes]) -> dict[str, str]:
    return dict(os.fsdecode(line).split("=", 1) for line in environment)  # type: ignore[misc] # each has two parts


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _send(connection: socket.socket, request: Request, descriptors: Sequence[int]) -> None:
    content = json.dumps(request).encode()
    handed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    connection.sendmsg([len(content).to_bytes(_LENGTH_BYTES)], handed)
    connection.sendall(content)


def _receive(connection: socket.socket) -> tuple[Request, list[int]] | None:
    """A request and its descriptors; None where nobody asks any more."""
    head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH_BYTES, _MOST_DESCRIPTORS)
    if not head:
        return None
    left, content = int.from_bytes(head), io.BytesIO()
    while content.tell() < left:
        content.write(connection.recv(left - content.tell()))
    return json.loads(content.getvalue()), descriptors


def _serve(connection: socket.socket) -> NoReturn:
    """Fork for each request."""
    while (received := _receive(connection)) is not None:
        request, descriptors = received
        reads, writes = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                _become(request, descriptors)
            os.write(writes, str(child).encode())
            os._exit(0)
        os.close(writes)
        for descriptor in descriptors:
            os.close(descriptor)
        os.waitpid(between, 0)
        connection.sendall(os.read(reads, _LENGTH_BYTES))
        os.close(reads)
    os._exit(0)


def _become(request: Request, descriptors: Sequence[int]) -> NoReturn:
    """Be the program that was asked for, to its end."""
    while os.getppid() != request["parent"]:  # still the process between
        time.sleep(0.0005)
    moved = {number: _moved(given) for number, given in zip(request["descriptors"], descriptors, strict=True)}
    os.closerange(0, _FIRST_FREE)
    for number, given in moved.items():
        os.dup2(given, number)
    os.closerange(_FIRST_FREE, _FIRST_FREE + 2 * _MOST_DESCRIPTORS)
    if request["session"]:
        os.setsid()
    if request["nested"]:
        _prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        _have_template()
    _set_up(request)
    os._exit(_run(request["arguments"]))


def _moved(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD, _FIRST_FREE)


def _have_template() -> None:
    """Fork a template for this process's own starts."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        _prctl(_DIES_WITH_PARENT, signal.SIGKILL)
        theirs_alone = _moved(theirs.fileno())
        os.closerange(3, _FIRST_FREE)
        _serve(socket.socket(fileno=theirs_alone))
    theirs.close()
    _start_by(_starting_by(Template(ours), nested=False))


def _set_up(request: Request) -> None:
    """What an interpreter does as it starts."""
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    first = [] if request["arguments"][0] == "-I" or "PYTHONSAFEPATH" in os.environ else [request["directory"]]
    paths = [] if request["arguments"][0] == "-I" else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [*first, *filter(None, paths)]
    random.seed()


def _run(arguments: Sequence[str]) -> int:
    """Run the program, and end as an interpreter does; gives the status."""
    how, what, *rest = arguments
    code = 1
    try:
        sys.argv = ["-c" if how == "-c" else what, *rest]
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        elif how == "-c":
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(what, main.__dict__)
        else:
            runpy.run_path(what, run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if ended.code is not None and not isinstance(ended.code, int):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001 - whatever it is, it is printed and the process ends
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return code


def main() -> None:
    """Import, and serve."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    sys.path.remove(str(Path(__file__).parent))
    gc.disable()
    for name in sys.argv[2:]:
        import_module(name)
    gc.freeze()
    gc.enable()
    pid = os.fork()  # libraries end their threads before a fork
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    _serve(connection)


if __name__ == "__main__":
    main()
