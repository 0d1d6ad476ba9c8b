"""What a repair is: it changes the weights that a plan leaves, and no shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.plan.plan import Plan
from axformer.wire.report import Finetuning


@dataclass(frozen=True)
class Repaired:
    """A model whose weights were changed, and how."""

    model: Any
    """In the number format of its checkpoint."""
    record: Finetuning
    """What was done, for the report."""


class Repair(Protocol):
    """Changes the weights that stay. It is a function of checkpoint, plan, data and settings alone, so that a run that was
    resumed gives the same weights; on a CPU byte for byte."""

    def carry_out(
        self,
        checkpoint: Checkpoint,
        model: Any,
        plan: Plan,
        sets: Mapping[str, DataSet | None],
        check_cancelled: Callable[[], None],
    ) -> Repaired:
        """Repair a compact model in place.

        Args:
            checkpoint: what the plan was made for.
            model: what the plan leaves of it, in float32.
            plan: the plan.
            sets: data to measure the model on before, by its name in reports.
            check_cancelled: called now and then; what it raises ends the repair.
        """
