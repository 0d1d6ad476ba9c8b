"""Sequential refits of plans, whose fits weigh tokens by how much the predictions depend on them."""

from collections.abc import Callable, Sequence

from axformer.data.batches import Samples
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan
from axformer.repair.refit import Refit, refit_plan
from axformer.repair.sensitivity import Sensitivity, sensitivities


class Refits:
    """Sequential refits (:func:`axformer.repair.refit.refit_plan`), each computed once; see :class:`axformer.repair.refit.Fits`."""

    def __init__(self, checkpoint: Checkpoint, samples: Samples) -> None:
        """
        Args:
            checkpoint: the untouched model; it is not changed.
            samples: calibration data; its labels are not used.
        """
        self._checkpoint = checkpoint
        self._samples = samples
        self._sensitivities: Sequence[Sensitivity] | None = None
        self._found: dict[Plan, Refit] = {}

    def sensitivities(self, check_cancelled: Callable[[], None] = lambda: None) -> Sequence[Sensitivity]:
        """The sensitivity to every block, measured once."""
        if self._sensitivities is None:
            self._sensitivities = sensitivities(self._checkpoint, self._samples, check_cancelled)
        return self._sensitivities

    def of(self, plan: Plan, check_cancelled: Callable[[], None] = lambda: None) -> Refit:
        """The refit of a plan."""
        if plan not in self._found:
            weights = [found.weights for found in self.sensitivities(check_cancelled)]
            checkpoint = self._checkpoint
            self._found[plan] = refit_plan(
                checkpoint.model, checkpoint.architecture, self._samples, plan, check_cancelled, weights=weights
            )
        return self._found[plan]
