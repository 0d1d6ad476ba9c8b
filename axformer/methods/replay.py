"""Replay of stored trials: a resumed run takes over its first trials without evaluating them again."""

from collections.abc import Sequence

from axformer.errors import PlanError
from axformer.plan.trial import Trial


class Replay:
    """Hands out the stored trials one by one; :attr:`seq` goes on counting after the last."""

    def __init__(self, trials: Sequence[Trial] = ()) -> None:
        """Hand out the trials that the same pass yielded before it was stopped."""
        self._trials = trials
        self.seq = 0
        """Number of the next trial."""

    @property
    def seconds(self) -> float:
        """Seconds that the pass had run when it was stopped."""
        return self._trials[-1].seconds if self._trials else 0.0

    @property
    def upcoming(self) -> Trial | None:
        """The next stored trial; None after the last."""
        return self._trials[self.seq] if self.seq < len(self._trials) else None

    def is_at(self, element: str) -> bool:
        """Whether the next stored trial is of this element."""
        return self.upcoming is not None and self.upcoming.element == element

    def next(self, element: str | None) -> Trial | None:
        """Take the next stored trial; None after the last.

        Args:
            element: the element that the pass tries next; None for the untouched model.

        Raises:
            PlanError: the stored trial is of another element, so the trace belongs to another pass.
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
