"""Which paired test, of which metric, compares a task's models with the untouched one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from axformer.scores.measured import figures_of
from axformer.scores.paired_tests import betting_p_value, bootstrap_test, exact_p_value
from axformer.scores.planning import POINT
from axformer.scores.within_points import is_share_right
from axformer.tasks.base import Task
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.metrics import first_metric


@dataclass(frozen=True)
class PairedTest:
    """The test of a task's models against the untouched model, on some rows."""

    name: Literal["exact", "betting", "bca_bootstrap"]
    metric: str
    """The tested metric in words."""
    p_value: Callable[[np.ndarray], float]
    """Computes a p-value from a model's table; it is small if the metric fell by less than the margin."""
    fall: Callable[[np.ndarray], float]
    """Computes from a model's table how far the metric fell on these rows."""


def paired_test(untouched: np.ndarray, task: Task, points: float) -> PairedTest:
    """The test of a task's first metric; for a tagger, of the accuracy within a sentence, averaged over sentences.

    Args:
        untouched: the table of the untouched model (:attr:`axformer.scores.measured.Measured.table`).
        points: the margin in hundredths of the metric.
    """
    margin, metric = points * POINT, first_metric(figures_of(untouched, task))
    if is_share_right(task.name):
        return _test_of_answers(untouched, task, margin, metric.replace("_", " "))
    if task.name == TokenClassification.name:
        return _test_of_sentences(untouched, margin)

    def measure(table: np.ndarray) -> float:
        return figures_of(table, task)[metric]

    before, p_value = measure(untouched), bootstrap_test(untouched, measure, margin)
    return PairedTest("bca_bootstrap", metric.replace("_", " "), p_value, lambda table: before - measure(table))


def _test_of_answers(untouched: np.ndarray, task: Task, margin: float, metric: str) -> PairedTest:
    def right(table: np.ndarray) -> np.ndarray:
        answers = task.correct(table[:, 1:])
        assert answers is not None, f"{task.name} knows right and wrong"
        return answers

    before = right(untouched)

    def p_value(table: np.ndarray) -> float:
        after = right(table)
        return exact_p_value(int((~before & after).sum()), int((before & ~after).sum()), len(before), margin)

    return PairedTest("exact", metric, p_value, lambda table: float(before.mean() - right(table).mean()))


def _test_of_sentences(untouched: np.ndarray, margin: float) -> PairedTest:
    def lost(table: np.ndarray) -> np.ndarray:
        shares: np.ndarray = (untouched[:, 1] - table[:, 1]) / untouched[:, 2]
        return shares

    return PairedTest(
        "betting",
        "accuracy (mean over sentences)",
        lambda table: betting_p_value(lost(table), margin),
        lambda table: float(lost(table).mean()),
    )
