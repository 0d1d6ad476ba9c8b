"""A model measured on data: the loss of each sample, the answer to each model row, and all that follows from them.

The fast evaluators of a pass have their own way over the data; they record what they compute with :class:`Recording`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from axformer.data.batches import Batch, Samples
from axformer.data.columns import OWN_ANSWERS
from axformer.intake.dataset import DataSet
from axformer.pulse import beat
from axformer.scores.confidence import Figures, Interval, bootstrap, interval, mcnemar
from axformer.scores.temperature import LossCurves, best_temperature, calibration_error
from axformer.tasks.base import Task
from axformer.wire.report import Comparison, Difference, Scores

Sets = Mapping[str, DataSet | None]
"""Data sets by their names in the report; None for a set that was not given."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What one model makes of one data set."""

    losses: Tensor
    """The loss of each sample, shape (samples,), float32, on the CPU."""
    answers: Sequence[Any]
    """The task's answer to each model row, in the order of the data; see :meth:`axformer.tasks.base.Task.answers`."""
    task: Task
    samples: Samples
    """The data set."""
    logits: Sequence[Tensor] | None = None
    """The logits of each sample's possible answers, where the task answers with one of several; else None."""

    @cached_property
    def table(self) -> np.ndarray:
        """The loss and the task's statistics of each sample, shape (samples, 1 + columns)."""
        return np.column_stack([self.losses.double().numpy(), self.task.statistics(self.answers, self.samples.encoded)])

    @cached_property
    def figures(self) -> Figures:
        """The mean loss and the task's metrics."""
        return figures_of(self.table, self.task)

    @property
    def right(self) -> np.ndarray | None:
        """Which samples are answered correctly, bool, shape (samples,); None if the task has no right and wrong."""
        return self.task.correct(self.table[:, 1:])

    def calibration_error(self, temperature: float = 1.0) -> float | None:
        """The expected calibration error with all logits divided by a temperature; None without logits, and where a model's own
        answers stand for labels."""
        right, labels_as = self.right, self.samples.encoded.labels_as
        if self.logits is None or right is None or labels_as == OWN_ANSWERS:
            return None
        probabilities = (torch.stack(list(self.logits)) / temperature).softmax(dim=1)
        return calibration_error(probabilities.amax(dim=1).numpy(), right)

    @property
    def best_temperature(self) -> float | None:
        """That of the smallest loss; None where there is no calibration error."""
        if self.logits is None or self.calibration_error() is None:
            return None
        return best_temperature(torch.stack(list(self.logits)), torch.as_tensor(self.samples.encoded.labels))

    def losses_at(self, temperature: float) -> np.ndarray:
        """The loss of each sample with all logits divided by a temperature; only where there are logits."""
        assert self.logits is not None, "a model without a temperature is not asked"
        labels = torch.as_tensor(self.samples.encoded.labels)
        losses = functional.cross_entropy(torch.stack(list(self.logits)) / temperature, labels, reduction="none")
        return losses.double().numpy()

    @property
    def votes(self) -> np.ndarray:
        """The part of the table that tests take, which hold for independent rows: one row for each different input
        (:attr:`axformer.data.batches.Samples.voters`)."""
        return np.asarray(self.table[self.samples.voters.numpy()])

    @cached_property
    def drawn(self) -> dict[str, np.ndarray]:
        """Each figure on every bootstrap resample. This takes long."""
        return bootstrap(self.table, lambda table: figures_of(table, self.task), self.samples.inputs.numpy())

    @property
    def intervals(self) -> dict[str, Interval]:
        """The interval of each figure."""
        return {name: interval(values) for name, values in self.drawn.items()}


def figures_of(table: np.ndarray, task: Task) -> Figures:
    """The mean loss and the task's metrics of a table, or of a part of one; see :attr:`Measured.table`."""
    return {"loss": float(table[:, 0].mean()), **task.metrics(table[:, 1:])}


class Recording:
    """Computes a task's losses and records them with the answers. Model rows that an evaluator does not compute again, because
    a plan does not affect them, keep their earlier values."""

    def __init__(self, task: Task, samples: Samples, curves: LossCurves | None = None) -> None:
        """
        Args:
            samples: the data set that all batches belong to.
            curves: takes the losses at other temperatures too.
        """
        self._task = task
        self.curves = curves
        self._samples = samples
        rows = len(samples.sample_of_row)
        self._losses = torch.zeros(rows)
        self._answers: list[Any] = [None] * rows
        self._logits_of: Callable[[Any], Tensor] | None = getattr(task, "logits", None)
        self._logits: list[Tensor] = [] if self._logits_of is None else [torch.zeros(0)] * rows
        self.is_on = True
        """Whether anything is recorded; otherwise only the task's losses are computed, without extra cost."""

    @property
    def pooled(self) -> bool:
        """See the task's ``pooled``."""
        return self._task.pooled

    def losses(self, output: Any, batch: Batch) -> Tensor:
        """The task's losses."""
        losses = self._task.losses(output, batch)
        if self.is_on:
            self._losses[batch.rows.cpu()] = losses.cpu()
            for row, answer in zip(batch.rows.tolist(), self._task.answers(output, batch), strict=True):
                self._answers[row] = answer
            if self._logits_of is not None:
                for row, logits in zip(batch.rows.tolist(), self._logits_of(output).cpu(), strict=True):
                    self._logits[row] = logits
            if self.curves is not None:
                self.curves.record(output, batch)
        return losses

    def measured(self, losses: Tensor | None = None) -> Measured:
        """The values recorded so far.

        Args:
            losses: the loss of each sample as an evaluator returned it; None for the recorded ones.
        """
        if losses is None:
            losses = self._samples.per_sample(self._losses.clone())
        return Measured(losses, list(self._answers), self._task, self._samples, list(self._logits) or None)


See = Callable[[str, Any, Batch], None]
"""Sees the output of a model, by its name, for a batch."""


@torch.inference_mode()
def measure_together(
    models: Mapping[str, Any], task: Task, samples: Samples, see: See | None = None
) -> dict[str, Measured]:
    """Run models over a data set in turns, batch by batch, keeping only the loss and the task's answer of each output.

    Args:
        models: by name; they are called alike, and each may be on a different device.
        see: sees every output before it is dropped.
    """
    recordings = {name: Recording(task, samples) for name in models}
    for batch in samples.batches:
        for name, model in models.items():
            own_batch = batch.to(model.device)
            output = run(model, own_batch)
            recordings[name].losses(output, own_batch)
            if see is not None:
                see(name, output, own_batch)
    return {name: recording.measured() for name, recording in recordings.items()}


def measure(model: Any, task: Task, samples: Samples) -> Measured:
    """Run one model over a data set."""
    return measure_together({"": model}, task, samples)[""]


def measure_sets(model: Any, task: Task, sets: Sets) -> dict[str, Measured]:
    """Run one model over each data set that was given."""
    return {name: measure(model, task, data.samples) for name, data in sets.items() if data is not None}


def run(model: Any, batch: Batch, **options: Any) -> Any:
    """The output of a model for a batch, in float32, so that losses are not rounded to the 16 bits that logits may have.

    ``options`` go to the model. Its hidden states, a tuple, keep their number format.
    """
    beat()
    output = model(**batch.inputs, **options)
    for name, values in output.items():
        if isinstance(values, Tensor) and values.is_floating_point():
            output[name] = values.float()
    return output


def compare(before: Measured, after: Measured) -> Comparison:
    """Compare two models on the same samples, the first being the baseline."""
    differences = {
        name: Difference(value=after.figures[name] - value, interval=interval(after.drawn[name] - before.drawn[name]))
        for name, value in before.figures.items()
    }
    right, voters = (before.right, after.right), before.samples.voters.numpy()
    test = None if right[0] is None or right[1] is None else mcnemar(right[0][voters], right[1][voters])
    errors = before.calibration_error(), after.calibration_error()
    calibration = None if errors[0] is None or errors[1] is None else (errors[0], errors[1])
    return Comparison(differences=differences, mcnemar=test, calibration=calibration)


def tempered(before: Measured, after: Measured, temperatures: tuple[float, float]) -> Difference:
    """The change of the loss with each model at a temperature of its own, so that doubt alone is no gain."""
    gaps = after.losses_at(temperatures[1]) - before.losses_at(temperatures[0])
    inputs = before.samples.inputs.numpy()
    drawn = bootstrap(gaps[:, None], lambda table: {"loss": float(table.mean())}, inputs)["loss"]
    return Difference(value=float(gaps.mean()), interval=interval(drawn))


def scores_of(measured: Mapping[str, Measured]) -> Scores:
    """The figures of a model on all data sets, as in the report."""
    return Scores(**as_report(measured))


def as_report(measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The fields of :class:`axformer.wire.report.Scores` by name."""
    figures: dict[str, Any] = {"test": None, "test_intervals": None}
    for name, on_set in measured.items():
        figures |= {name: on_set.figures, f"{name}_intervals": on_set.intervals}
    return figures
