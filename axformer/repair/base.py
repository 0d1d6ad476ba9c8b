"""The interface of repairs: a repair changes the remaining weights of a model, but no shapes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.plan.plan import Plan
from axformer.surroundings import Surroundings
from axformer.wire.report import Finetuning


@dataclass(frozen=True)
class Repaired:
    """A repaired model, and a record of the repair."""

    model: Any
    """In the number format of its checkpoint."""
    record: Finetuning
    """The record for the report."""
    is_measured: bool = False
    """Whether the path was measured with its models repaired, so that its figures and certificate are those of this model."""


class Repair(Protocol):
    """Changes the remaining weights. The result depends on the checkpoint, the plan, the data and the settings alone, so a
    resumed run gives the same weights, on a CPU byte for byte."""

    def carry_out(
        self,
        checkpoint: Checkpoint,
        model: Any,
        plan: Plan,
        sets: Mapping[str, DataSet | None],
        deciding: DataSet,
        surroundings: Surroundings,
    ) -> Repaired:
        """Repair a compact model in place.

        Args:
            checkpoint: the checkpoint that the plan belongs to.
            model: the compact model of the plan, in float32.
            plan: the plan.
            sets: data to measure the model on before the repair, by its name in reports.
            deciding: the deciding rows, which may end a training.
            surroundings: where it happens.
        """
