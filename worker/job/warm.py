"""A job whose process has loaded the model; if there is room, it stays in memory while the job waits for its next time slice,
to save loading and replaying.

It is the job's own process, waiting between two trials, so it continues as if it had never stopped. Only the very next claim
of its job resumes it: the fence shows whether another worker has had the job meanwhile.
"""

from dataclasses import dataclass, field

from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial
from axformer.scores.labelling import Labels
from axformer.wire.devices import Device, needed_memory
from store.repositories import leases
from store.settings import Settings
from store.tables.jobs import Job
from worker.base.context import abilities
from worker.job.failure import Failure, RefusedInputError
from worker.job.inputs import JobInputs
from worker.job.ledger import Ledger
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import Memory, MemoryEstimate, PlanSpeed, Searched, TrialMade
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.trials import check_next


@dataclass(eq=False)
class OpenJob:
    """A job's process, its input files, and its trials. ``close`` ends the process and removes the files."""

    sandbox: Sandbox
    inputs: JobInputs
    dimensions: Dimensions
    most_trials: int
    """An upper bound on the number of its trials."""
    trials: list[Trial]
    """All known trials. While the job waits for its next time slice, the database has all of them."""
    first_look: str | None
    """One line on the validation data and the untouched model; None for an export."""
    searched: Searched | None = None
    """The end of the search, once it is over; the model may still be trained after it, over several time slices."""
    labels: Labels = field(default_factory=dict)
    """Of an export: those that certify its model."""
    _speed: PlanSpeed | None = None

    @property
    def speed(self) -> PlanSpeed:
        """Estimated speed of the current plan.

        Raises:
            ProcessMisbehavedError: the process has not sent an estimate.
        """
        if self._speed is None:
            raise ProcessMisbehavedError("its first new trial comes without an estimate of the speed")
        return self._speed

    @speed.setter
    def speed(self, estimate: PlanSpeed) -> None:
        self._speed = estimate

    def take(self, tried: TrialMade) -> None:
        """Add a trial that the process sent.

        Raises:
            ProcessMisbehavedError: it cannot be the next one.
        """
        check_next(tried.trial, len(self.trials), self.dimensions, self.most_trials)
        self.trials.append(tried.trial)
        self._speed = tried.speed or self._speed

    def close(self) -> None:
        """Free the memory and remove the files."""
        self.sandbox.close()


class WarmSlot:
    """Holds one suspended pass until it is resumed; if a second replaced it, two jobs in turns would always load anew."""

    def __init__(self) -> None:
        self._kept: tuple[str, int, OpenJob] | None = None

    def __enter__(self) -> "WarmSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    @property
    def is_empty(self) -> bool:
        """Whether no pass is kept."""
        return self._kept is None

    def keep(self, job_id: str, fence: int, opened: OpenJob) -> None:
        """Keep a pass whose job waits with this fence; close it if another is kept."""
        if self._kept is not None:
            opened.close()
            return
        self._kept = (job_id, fence, opened)

    def take(self, job: Job) -> OpenJob | None:
        """Take the pass of a job that was just claimed, if it is kept, alive, and no other worker has had the job since."""
        if self._kept is None or self._kept[0] != job.id:
            return None
        _, fence, opened = self._kept
        if job.fence != fence + 1 or not opened.sandbox.is_alive():
            self.clear()
            return None
        self._kept = None
        return opened

    def make_room(self, need: Memory, free: Memory) -> None:
        """Give up the kept pass if it leaves too little memory for another job."""
        if need.host_bytes > free.host_bytes or need.device_bytes > free.device_bytes:
            self.clear()

    def clear(self) -> None:
        """Give up the kept pass; its job is replayed when it is claimed."""
        if self._kept is not None:
            self._kept[2].close()
        self._kept = None


TOO_BIG = "too_big"
"""Error code of a job that is too large for this worker."""
_GB = 1e9
_LESS = {
    "checkpoint": "a smaller model or a smaller batch_tokens",
    "validation": "fewer validation rows, or fewer of them to calibrate on (calibrate_rows)",
    "calibrate": "fewer of the calibration rows (calibrate_rows)",
    "unlabelled": "fewer unlabelled rows, or fewer of them to calibrate on (calibrate_rows)",
    "test": "fewer held-out rows",
    "train": "fewer training rows",
}
"""What a job needs less of, by the input that takes most of its memory."""


class LeftToLargerError(Exception):
    """The job needs more memory than this worker's device has, and a larger worker was seen; it goes back to the queue."""


def make_room(estimate: MemoryEstimate, settings: Settings, warm: WarmSlot, ledger: Ledger) -> None:
    """Keep what a job needs with it, free memory for it by giving up a kept pass, and refuse a job that can never fit.

    Raises:
        LeftToLargerError: this worker's device is too small for the job; another worker has a larger one.
        RefusedInputError: the job needs more than this worker has; the message has both figures.
    """
    need, total, able = estimate.least, estimate.total, abilities(settings)
    found = {Device.CPU.value: estimate.fits.host_bytes, Device.GPU.value: estimate.fits.device_bytes}
    is_elsewhere = ledger.write(leases.note_memory, found)
    needed, there_is = needed_memory(able.device, found), able.memory
    if is_elsewhere and there_is is not None and needed > there_is:
        said = f"it needs {needed / _GB:.2f} GB, and the worker that looked at it has {there_is / _GB:.2f} GB"
        raise LeftToLargerError(said)
    _check_fits("memory", need.host_bytes, settings.memory_bytes or total.host_bytes, estimate)
    _check_fits("GPU memory", need.device_bytes, total.device_bytes, estimate)
    if able.device is Device.GPU and there_is is not None:
        _check_fits("GPU memory", needed, there_is, estimate)
    warm.make_room(estimate.at_ease, estimate.free)


def _check_fits(what: str, needed: int, available: int, estimate: MemoryEstimate) -> None:
    if needed <= available:
        return
    message = (
        f"the job needs at least {needed / _GB:.2f} GB of {what}, and this worker has {available / _GB:.2f} GB: the model has "
        f"{estimate.parameters:,} parameters, the data {estimate.data_bytes:,} bytes; use {_LESS[estimate.largest]}, or ask "
        "the operator for a worker with more"
    )
    raise RefusedInputError(Failure(TOO_BIG, message, estimate.largest))
