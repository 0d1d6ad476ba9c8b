"""What there is of a job once its process has loaded the model: it outlives a time slice where there is room."""

from collections.abc import Sequence
from itertools import chain

from axformer.methods.traces import passes_in
from axformer.plan.elements import Dimensions
from axformer.plan.trial import Phase, Trial
from worker.inputs import Inputs
from worker.sandbox.errors import ProcessMisbehavedError
from worker.sandbox.messages import SpeedEstimate, Tried
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.trials import Limits, check_next


class OpenJob:
    """A job's process, the files that it works on, and the trials that it has made. ``close`` ends and removes all of it."""

    def __init__(
        self,
        sandbox: Sandbox,
        inputs: Inputs,
        dimensions: Dimensions,
        limits: Limits,
        stored: Sequence[Trial],
        first_look: str | None,
    ) -> None:
        """
        Args:
            sandbox: where it runs.
            inputs: what it works on.
            dimensions: of its model.
            limits: of its trials.
            stored: its trials that are in the database, one pass after another.
            first_look: the data that decides and the untouched model on it, in words; `None` of an export.
        """
        self.sandbox = sandbox
        self.inputs = inputs
        self.dimensions = dimensions
        self.first_look = first_look
        self._limits = limits
        self._passes = passes_in(stored)
        self._speed: SpeedEstimate | None = None

    @property
    def trials(self) -> list[Trial]:
        """All trials that are known, one pass after another. While it waits for its next time slice all are in the database."""
        return list(chain.from_iterable(self._passes))

    @property
    def pass_count(self) -> int:
        """Passes that have begun."""
        return len(self._passes)

    @property
    def speed(self) -> SpeedEstimate:
        """Of the plan that the last trials led to.

        Raises:
            ProcessMisbehavedError: the process has not said it.
        """
        if self._speed is None:
            raise ProcessMisbehavedError("its first new trial comes without an estimate of the speed")
        return self._speed

    @speed.setter
    def speed(self, estimate: SpeedEstimate) -> None:
        self._speed = estimate

    def take(self, tried: Tried) -> None:
        """Add a trial that the process has made.

        Raises:
            ProcessMisbehavedError: it cannot be the next one.
        """
        check_next(tried.trial, self._passes, self.dimensions, self._limits)
        if tried.trial.phase is Phase.BASE:
            self._passes.append([])
        self._passes[-1].append(tried.trial)
        self._speed = tried.speed or self._speed

    def close(self) -> None:
        """Free the memory and remove the files."""
        self.sandbox.close()
