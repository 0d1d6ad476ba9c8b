"""Figures of a model on a data set, their uncertainty, and the comparison of two models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from axformer.data.batches import Samples
from axformer.evaluation.plain import Predictions, predict
from axformer.scores.confidence import Figures, Interval, bootstrap, interval, mcnemar
from axformer.tasks.base import Task
from axformer.wire.report import Comparison, Difference, McNemarTest


@dataclass(frozen=True)
class Score:
    """The figures of one model on one data set."""

    figures: Figures
    """The mean loss and the task's metrics."""
    correct: np.ndarray | None
    """Which samples it answers correctly; None if the task has no right and wrong."""
    draw: Callable[[], dict[str, np.ndarray]] = field(repr=False)
    """Computes :attr:`drawn`, which takes long and is not always needed."""

    @cached_property
    def drawn(self) -> dict[str, np.ndarray]:
        """Each figure on every bootstrap resample."""
        return self.draw()

    @property
    def intervals(self) -> dict[str, Interval]:
        """The interval of each figure."""
        return {name: interval(values) for name, values in self.drawn.items()}


def score(model: Any, task: Task, samples: Samples) -> Score:
    """Run a model over a data set and compute its figures."""
    return score_of(predict(model, task, samples), task, samples)


def score_of(predictions: Predictions, task: Task, samples: Samples) -> Score:
    """Compute the figures of a model's predictions."""
    table = table_of(samples.per_sample(predictions.losses), predictions.answers, task, samples)

    def measure(rows: np.ndarray) -> Figures:
        return figures_of(rows, task)

    return Score(measure(table), task.correct(table[:, 1:]), lambda: bootstrap(table, measure))


def table_of(losses: Tensor, answers: Sequence[Any], task: Task, samples: Samples) -> np.ndarray:
    """The loss and the task's statistics of each sample, shape (samples, 1 + columns).

    Args:
        losses: per-sample losses, shape (samples,), on the CPU.
        answers: the model's answer to each row.
    """
    return np.column_stack([losses.double().numpy(), task.statistics(answers, samples.encoded)])


def figures_of(table: np.ndarray, task: Task) -> Figures:
    """The mean loss and the task's metrics of such a table."""
    return {"loss": float(table[:, 0].mean()), **task.metrics(table[:, 1:])}


def compare(before: Score, after: Score) -> Comparison:
    """Compare two models on the same samples, the first being the baseline."""
    differences = {
        name: Difference(value=after.figures[name] - value, interval=interval(after.drawn[name] - before.drawn[name]))
        for name, value in before.figures.items()
    }
    if before.correct is None or after.correct is None:
        return Comparison(differences=differences, mcnemar=None)
    test = mcnemar(before.correct, after.correct)
    return Comparison(differences=differences, mcnemar=McNemarTest(**test._asdict()))
