"""A process that imports what jobs need and forks itself for each job, so that no job waits for imports:

    python -m worker.sandbox.parent LIFELINE LISTENER PROGRAM

Each connection to the socket LISTENER is a request. PROGRAM is a module with a function ``main(reads, writes)``, which takes
the descriptors of a pair of pipes. It runs in the forked process, and the restrictions are in force before it reads anything
of a job.

The parent has one thread, the environment of jobs, and no data of any job: it sees only the descriptors of a request and
never what is sent over them. It does not use the GPU, since a forked process could not use it then. It ends when the other
end of the socket LIFELINE is closed, for example because the worker died; the kernel then ends everything that it forked.
"""

import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import psutil

from axformer.cli.libraries import without_collection
from store.system.processes import descendants
from worker.sandbox import launch, privileges

REQUEST = b"f"
"""The byte that is sent with the descriptors of :class:`Handed`."""
DESCRIPTORS = 5
NAME = "axformer-job"
"""Name of a forked process in process lists."""

_REQUEST_SECONDS = 5.0
"""Most seconds between a connection and its request; other requests wait meanwhile."""

Program = Callable[[int, int], None]


class Handed:
    """The descriptors of a request: the specification of the restrictions, the pipes, a log, and the leash.

    The leash is a socket on which the parent reports the ``pid`` of the process and that it ``ended``. When the worker closes
    the leash, the parent ends the process.
    """

    def __init__(self, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self.specification, self.reads, self.writes, self.log, leash = descriptors
        self.leash = socket.socket(fileno=leash)

    def close_all_but_leash(self) -> None:
        """Close the descriptors that the forked process now owns."""
        for descriptor in (self.specification, self.reads, self.writes, self.log):
            os.close(descriptor)


class Parent:
    """Serves requests until the lifeline is closed."""

    def __init__(self, lifeline: socket.socket, listener: socket.socket, program: Program) -> None:
        self._lifeline = lifeline
        self._listener = listener
        self._program = program
        self._children: dict[int, socket.socket] = {}
        """The leash of each child that has not been waited for, by process id."""
        self._reported: set[int] = set()
        """Children whose end has been reported."""
        self._selector = selectors.DefaultSelector()
        self._wakes, self._woken = socket.socketpair()
        for end in (self._wakes, self._woken):
            end.setblocking(False)

    def serve(self) -> None:
        """Fork for each request."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        for source in (self._lifeline, self._listener, self._wakes):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in self._selector.select()]
            if self._wakes in ready:
                self._report_ends()
            for pid, leash in list(self._children.items()):
                if leash in ready:
                    self._end(pid)
            if self._lifeline in ready:
                for pid in list(self._children):
                    self._end(pid)
                return
            if self._listener in ready:
                self._answer()

    def _answer(self) -> None:
        """Accept a connection, and fork if it sends a request."""
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(_REQUEST_SECONDS)
            try:
                _, descriptors, _, _ = socket.recv_fds(connection, len(REQUEST), DESCRIPTORS)
            except OSError:
                return
        if len(descriptors) != DESCRIPTORS:  # the client has ended meanwhile
            for descriptor in descriptors:
                os.close(descriptor)
            return
        handed, own = Handed(descriptors), os.getpid()
        try:
            pid = os.fork()
        except OSError as error:  # too many processes, or no memory: this job's process looks dead, the others continue
            os.write(handed.log, f"cannot fork: {error}\n".encode())
            handed.leash.close()
            handed.close_all_but_leash()
            return
        if pid == 0:
            self._become(handed, own)
        handed.close_all_but_leash()
        handed.leash.setblocking(False)
        self._children[pid] = handed.leash
        self._selector.register(handed.leash, selectors.EVENT_READ)
        _report(handed.leash, f"pid {pid}")

    def _become(self, handed: Handed, parent: int) -> NoReturn:
        """Close the parent's sockets, apply the restrictions, and run the program."""
        code = 1
        try:
            self._let_go(handed)
            os.setsid()
            for number in (1, 2):
                os.dup2(handed.log, number)
            os.close(handed.log)
            with os.fdopen(handed.specification, "rb") as file:
                specification = json.loads(file.read())
            move_in(specification["write"][0])
            privileges.be_called(NAME)
            launch.report(handed.writes, launch.restrict(specification, parent))
            self._program(handed.reads, handed.writes)
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:  # noqa: BLE001 - logged, as an interpreter would
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)

    def _let_go(self, handed: Handed) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        own = (self._lifeline, self._listener, self._wakes, self._woken)
        for open_socket in (*own, handed.leash, *self._children.values()):
            open_socket.close()

    def _report_ends(self) -> None:
        """Report children that have ended. They stay zombies, and keep their ids, until the worker closes the leash."""
        with suppress(BlockingIOError):
            while self._wakes.recv(64):
                pass
        for pid in self._children.keys() - self._reported:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._reported.add(pid)
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                _report(self._children[pid], f"ended {code}")

    def _end(self, pid: int) -> None:
        """Kill a child whose leash was closed, with its descendants, and wait for it."""
        leash = self._children.pop(pid)
        self._reported.discard(pid)
        self._selector.unregister(leash)
        _kill(pid)
        _, status = os.waitpid(pid, 0)
        _report(leash, f"waited {os.waitstatus_to_exitcode(status)}")
        leash.close()


def _kill(pid: int) -> None:
    """Kill a child with its tree and its session. Its id stays valid until it is waited for."""
    for descendant in descendants(pid):
        with suppress(psutil.NoSuchProcess):
            descendant.kill()
    os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it may not have started its own session yet
        os.killpg(pid, signal.SIGKILL)


def _report(leash: socket.socket, words: str) -> None:
    with suppress(OSError):  # the worker has closed the leash
        leash.send(f"{words}\n".encode())


def move_in(directory: str) -> None:
    """Change to the job's directory."""
    os.environ.update(HOME=directory, TMPDIR=directory)
    os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)  # PyTorch noted a place that this process does not see
    os.chdir(directory)


def _end_threads() -> None:
    """Fork once, so that libraries end their threads; they start them again when needed."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def main() -> None:
    """Import the program, and serve requests."""
    lifeline, listener = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    with without_collection():  # garbage collection over these objects would copy every page in each child
        program: Program = import_module(sys.argv[3]).main
    _end_threads()
    Parent(lifeline, listener, program).serve()
    os._exit(0)  # ends at once, and everything that it forked with it


if __name__ == "__main__":
    main()
