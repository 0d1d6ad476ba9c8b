"""The stored trials that a resumed run begins with: they are taken as they stand and not evaluated again."""

from collections.abc import Sequence

from axformer.errors import PlanError
from axformer.plan.trial import Trial


class Replay:
    """Hands out stored trials one by one, and counts on after the last."""

    def __init__(self, trials: Sequence[Trial] = ()) -> None:
        """
        Args:
            trials: the first of the same pass, as it yielded them before it was stopped.
        """
        self._trials = trials
        self.seq = 0
        """Number of the next trial."""

    @property
    def seconds(self) -> float:
        """How long the pass had run when it was stopped."""
        return self._trials[-1].seconds if self._trials else 0.0

    @property
    def upcoming(self) -> Trial | None:
        """The stored trial that comes next; None where the stored ones are used up."""
        return self._trials[self.seq] if self.seq < len(self._trials) else None

    def next(self, element: str | None) -> Trial | None:
        """The stored trial of an element, None for the base; None where the stored ones are used up.

        Raises:
            PlanError: the stored trial is of another element, so the trace is of another pass.
        """
        trial = self.upcoming
        if trial is None:
            return None
        if trial.element != element or trial.seq != self.seq:
            raise PlanError(
                f"the stored trace is not one of this pass: its trial {self.seq} is {trial.element}, not {element}"
            )
        self.seq += 1
        return trial
