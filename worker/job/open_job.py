"""A job whose process has loaded the model; if there is room, it stays open between time slices."""

from dataclasses import dataclass, field

from axformer.plan.elements import Dimensions
from axformer.plan.trial import Trial
from axformer.scores.labelling import Labels
from worker.job.inputs import JobInputs
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import PlanSpeed, Searched, TrialMade
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
