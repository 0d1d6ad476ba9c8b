"""A pass that stays in memory while its job waits for the next time slice, so that it need not be loaded and replayed.

It is the suspended generator of trials itself, so it goes on as if it had never stopped. It is only taken up by the very
next claim of its job: the fence tells whether anybody has had the job meanwhile.
"""

import gc
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from axformer.footprint import Footprint
from axformer.run import PruningRun
from axformer.trial import Trial
from store.tables.jobs import Job
from worker.inputs import Inputs


class PassClock:
    """Seconds of a pass, without those in which it waited."""

    def __init__(self) -> None:
        self._waited = 0.0
        self._stopped = 0.0

    def __call__(self) -> float:
        """Seconds, from any start."""
        return time.monotonic() - self._waited

    def stop(self) -> None:
        """Begin to wait."""
        self._stopped = time.monotonic()

    def go_on(self) -> None:
        """End to wait."""
        self._waited += time.monotonic() - self._stopped


class OpenPass:
    """One job's pass in memory, with the files that it came from. ``close`` frees all of it."""

    def __init__(
        self, work: Path, inputs: Inputs, run: PruningRun, stored: Sequence[Trial], resources: ExitStack
    ) -> None:
        """
        Args:
            work: the directory of its files.
            inputs: what is in it.
            run: loaded.
            stored: the trials that are in the database, which are replayed.
            resources: what is given up with the pass.
        """
        self.work = work
        self.inputs = inputs
        self.run = run
        self.stored = len(stored)
        """How many trials are in the database."""
        self._clock = PassClock()
        self.trials = run.trials(stored, self._clock)
        """All that are still to come."""
        self._resources = resources
        self._cores = self._threads = torch.get_num_threads()

    def suspend(self) -> None:
        """Let other passes use the process; what this one has set for all is undone. All its trials are stored."""
        self.stored = len(self.run.trace)
        self._clock.stop()
        self._threads = torch.get_num_threads()
        torch.set_num_threads(self._cores)

    def go_on(self) -> None:
        """Be the process's pass again."""
        torch.set_num_threads(self._threads)
        self._clock.go_on()

    def close(self) -> None:
        """Free the memory and remove the files."""
        self.trials.close()
        self._resources.close()
        del self.run, self.trials
        gc.collect()  # models and their layers refer to each other
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


class WarmSlot:
    """Room for one suspended pass. The first stays until it is taken up: two that take turns would else both be loaded anew."""

    def __init__(self) -> None:
        self._kept: tuple[str, int, OpenPass] | None = None

    def __enter__(self) -> "WarmSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    @property
    def is_empty(self) -> bool:
        """Whether no pass is kept."""
        return self._kept is None

    def keep(self, job_id: str, fence: int, opened: OpenPass) -> None:
        """Keep a pass whose job waits with this fence, or close it where another is kept."""
        if self._kept is not None:
            opened.close()
            return
        opened.suspend()
        self._kept = (job_id, fence, opened)

    def take(self, job: Job) -> OpenPass | None:
        """The pass of a job that was just claimed, if it is kept whole and nobody else has had the job since."""
        if self._kept is None or self._kept[0] != job.id:
            return None
        _, fence, opened = self._kept
        if job.fence != fence + 1 or not opened.work.is_dir():
            self.clear()
            return None
        self._kept = None
        opened.go_on()
        return opened

    def make_room(self, need: Footprint, free: Footprint) -> None:
        """Give up the kept pass if another cannot have all that it would use beside it."""
        if need.host_bytes > free.host_bytes or need.device_bytes > free.device_bytes:
            self.clear()

    def clear(self) -> None:
        """Give up the kept pass; its job is replayed when it is claimed."""
        if self._kept is not None:
            self._kept[2].close()
        self._kept = None
