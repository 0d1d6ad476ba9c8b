"""Kill processes that do not stop in time, for example because a call never returns.

A process checks the state of its job between trials, so it cannot react while it is stuck in one. The main process watches
the database instead. It takes the job from the process under the fence before it kills the process; a process that has just
recovered, and may have begun another job, is left alone.
"""

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress

import billiard
import psutil
import structlog
from sqlalchemy.exc import NoResultFound

from store.errors import LeaseLostError
from store.repositories.leases import abandon, release
from store.repositories.workers import Held, held_by
from store.session import Sessions, session_scope
from store.system.launch import PR_SET_PDEATHSIG
from store.system.processes import descendants
from worker.base.context import worker_name
from worker.base.periodic import Periodic

_LOG = structlog.get_logger(__name__)

Kill = Callable[[int], None]
"""Kills a process and its descendants."""
Discard = Callable[[str], None]
"""Removes the files of a job that ended without a result."""


class Supervisor(Periodic):
    """A thread of the main process that watches the processes in which jobs run."""

    def __init__(
        self,
        sessions: Sessions,
        children: Callable[[], Collection[int]],
        kill: Kill,
        discard: Discard,
        *,
        obey_seconds: float,
        every_seconds: float,
    ) -> None:
        """
        Args:
            children: returns the ids of the living processes.
            discard: removes the files of a cancelled job.
            obey_seconds: how long a process may take to stop.
        """
        super().__init__("supervisor", every_seconds)
        self._sessions = sessions
        self._children = children
        self._kill = kill
        self._discard = discard
        self._obey_seconds = obey_seconds
        self._known: set[int] = set()
        """Living processes, and dead ones whose job has not been dealt with yet."""
        self._idle_since: dict[int, float | None] = {}
        """When each process that held a job, dead or alive, was first seen without one; None while it holds one."""
        self._pausing_since: dict[tuple[str, int], float] = {}
        """When each held job, by its fence, was first seen pausing."""
        self._taken: set[tuple[str, int]] = set()
        """Jobs, by their fences, that were taken from their processes and not claimed since."""
        self._stop_by: float | None = None
        """Deadline for all processes to end; None while they may continue."""

    def end_children(self) -> None:
        """Set the deadline for the processes to end; safe in a signal handler, and only the first call counts."""
        if self._stop_by is None:
            self._stop_by = time.monotonic() + self._obey_seconds

    def stop(self) -> None:
        """End the thread, and give back jobs that could not be given back while their processes held the rows."""
        super().stop()
        self.join()
        if self._is_stopping_late():
            self.try_once()

    def look(self) -> None:
        """Check all processes once, and act.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: the database does not answer.
        """
        alive, now = set(self._children()), time.monotonic()
        pids = {worker_name(pid): pid for pid in alive | self._known}
        with session_scope(self._sessions) as session:
            by_fence = {(job.job_id, job.fence): job for job in held_by(session, pids.keys())}
        self._taken &= by_fence.keys()
        held = [job for key, job in by_fence.items() if key not in self._taken]
        holders = {pids[job.worker] for job in held}
        self._known = alive | holders
        self._idle_since.update(dict.fromkeys(holders))
        pausing = {(job.job_id, job.fence) for job in held if job.is_pausing}
        self._pausing_since = {key: self._pausing_since.get(key, now) for key in pausing}
        for job in held:
            self._judge(job, pids[job.worker], is_alive=pids[job.worker] in alive)
        for pid in self._idle_since.keys() - holders:
            self._judge_idle(pid, now, is_alive=pid in alive)

    def _judge(self, held: Held, pid: int, *, is_alive: bool) -> None:
        if self._is_stopping_late():
            self._take(held, pid, "the worker was told to stop", give_back=True, is_alive=is_alive)
        elif not is_alive:
            self._take(held, pid, "its process has died", is_alive=False)
        elif max(held.cancelling_seconds or 0.0, self._pausing_seconds(held)) > self._obey_seconds:
            self._take(held, pid, "its process did not stop by itself and was ended")
        elif held.overdue_seconds > self._obey_seconds:
            self._take(held, pid, "its process did not renew its lease and was ended")

    def _judge_idle(self, pid: int, now: float, *, is_alive: bool) -> None:
        """Kill a process that lost its job and does not end.

        Its time starts when it is first seen without a job: a worker that was suspended wakes up together with its processes.
        """
        since = self._idle_since[pid]
        if not is_alive:
            del self._idle_since[pid]
        elif since is None:
            self._idle_since[pid] = now
        elif now - since > self._obey_seconds:
            _LOG.warning("process_killed", pid=pid, reason="it has lost its job and did not end")
            self._kill(pid)

    def _take(self, held: Held, pid: int, reason: str, *, give_back: bool = False, is_alive: bool = True) -> None:
        """Take a job from its process, then kill the process unless it is dead; its id may belong to another by now."""
        take = release if give_back else abandon
        try:
            with session_scope(self._sessions) as session:
                take(session, held.job_id, held.fence, reason)
        except (LeaseLostError, NoResultFound):
            return  # the process has just ended the job itself
        self._taken.add((held.job_id, held.fence))
        _LOG.warning("process_killed" if is_alive else "process_died", pid=pid, job_id=held.job_id, reason=reason)
        if is_alive:
            self._kill(pid)
        if held.cancelling_seconds is not None:
            self._discard(held.job_id)

    def _pausing_seconds(self, held: Held) -> float:
        now = time.monotonic()
        return now - self._pausing_since.get((held.job_id, held.fence), now)

    def _is_stopping_late(self) -> bool:
        return self._stop_by is not None and time.monotonic() > self._stop_by

    def once(self) -> None:
        """Look, and kill all processes whose deadline is over."""
        was_late = self._is_stopping_late()  # evaluated first, so that look() gives back the jobs before the kill
        try:
            self.look()
        finally:
            if was_late:
                for pid in self._children():  # also processes without a job, and if the database does not answer
                    self._kill(pid)


def job_processes() -> list[int]:
    """The ids of the living processes."""
    return [child.pid for child in billiard.active_children()]


def kill_tree(pid: int) -> None:
    """Kill a child process and its descendants.

    If it has ended, nothing happens, not even to another process that has its id by now.
    """
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.ppid() != os.getpid():
            return
        for member in (*descendants(pid), process):
            with suppress(psutil.NoSuchProcess):
                member.kill()


def end_if_hung(stopping: threading.Event, seconds: float) -> None:
    """End this process if it still lives so many seconds after it was told to stop: the work of a daemon thread.

    Celery's pool can wait forever for a task or a child that went down together with the broker. By then all jobs have been
    given back, so the process ends in order; what it waited for is in the log.
    """
    stopping.wait()
    time.sleep(seconds)
    stack = traceback.format_stack(sys._current_frames()[threading.main_thread().ident or 0])
    _LOG.error("worker_hung", seconds=seconds, reason="it was told to stop and did not end", stack="".join(stack))
    for pid in job_processes():
        kill_tree(pid)
    os._exit(0)


def stop_with_parent() -> None:
    """Have this process asked to stop when its parent dies, for whatever reason (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
