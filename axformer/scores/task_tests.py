"""Which paired test, of which metric, compares a task's models with the untouched one; the limit ``within_points`` on the fall
of that metric, and whether there are enough rows to certify it."""

from typing import Any

import numpy as np

from axformer.scores.measured import figures_of
from axformer.scores.paired_tests import (
    FEWEST_ROWS,
    PairedTest,
    betting_p_value,
    bootstrap_test,
    exact_p_value,
    spearman_p_value,
)
from axformer.scores.planning import POINT, few_rows_told
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering
from axformer.tasks.regression import Regression
from axformer.tasks.reranking import Reranking
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.metrics import first_metric, in_words

_SHARES_RIGHT = frozenset(
    task.name
    for task in (
        *(BinaryClassification, Classification, MultiLabelClassification, MultipleChoice, QuestionAnswering),
        *(Reranking, SentenceEmbedding),
    )
)
_ROUNDING = 1e-9
"""Rounding error of a difference of two metrics."""


def paired_test(untouched: np.ndarray, task: Task, points: float) -> PairedTest:
    """The test of a task's first metric; for a tagger whose tags are no chunks, of the accuracy within a sentence, averaged
    over sentences; for an embedder of pairs, where points were asked for, of nDCG@10, or of Spearman's correlation with the
    numbers beside them.

    Args:
        untouched: the table of the untouched model (:attr:`axformer.scores.measured.Measured.table`).
        points: the margin in hundredths of the metric.
    """
    margin, metric = points * POINT, first_metric(figures_of(untouched, task))
    if isinstance(task, SentenceEmbedding) and task.by_partners:
        has_scores = "spearman" in figures_of(untouched, task)
        return (_test_of_scores if has_scores else _test_of_partners)(untouched, task, margin)
    if is_share_right(task.name):
        return _test_of_answers(untouched, task, margin, in_words(metric))
    if task.name == TokenClassification.name and metric == "accuracy":
        return _test_of_sentences(untouched, margin)

    def measure(table: np.ndarray) -> float:
        return figures_of(table, task)[metric]

    return PairedTest("bca_bootstrap", in_words(metric), bootstrap_test(untouched, measure, margin))


def _test_of_answers(untouched: np.ndarray, task: Task, margin: float, metric: str) -> PairedTest:
    def right(table: np.ndarray) -> np.ndarray:
        answers = task.correct(table[:, 1:])
        assert answers is not None, f"{task.name} knows right and wrong"
        return answers

    before = right(untouched)

    def p_value(table: np.ndarray) -> float:
        after = right(table)
        return exact_p_value(int((~before & after).sum()), int((before & ~after).sum()), len(before), margin)

    return PairedTest("exact", metric, p_value)


def _test_of_sentences(untouched: np.ndarray, margin: float) -> PairedTest:
    def lost(table: np.ndarray) -> np.ndarray:
        return np.asarray((untouched[:, 1] - table[:, 1]) / untouched[:, 2])

    return PairedTest("betting", "accuracy (mean over sentences)", lambda table: betting_p_value(lost(table), margin))


def _test_of_partners(untouched: np.ndarray, task: SentenceEmbedding, margin: float) -> PairedTest:
    def lost(table: np.ndarray) -> np.ndarray:
        return np.asarray(task.gained(untouched[:, 1:]) - task.gained(table[:, 1:]))

    return PairedTest("betting", "nDCG@10", lambda table: betting_p_value(lost(table), margin))


def _test_of_scores(untouched: np.ndarray, task: SentenceEmbedding, margin: float) -> PairedTest:
    def p_value(table: np.ndarray) -> float:
        expected, before = task.scored(untouched[:, 1:])
        return spearman_p_value(expected, before, task.scored(table[:, 1:])[1], margin)

    return PairedTest("delta_method", "spearman", p_value)


def takes_unlabelled(task: Task, config: Any) -> bool:
    """Whether rows without labels count for a task's test: labels of changed answers bound its metric, or those of a few rows
    that are drawn. Of several numbers they do not.

    Args:
        config: the model's.
    """
    is_number = isinstance(task, Regression) and config.num_labels == 1
    return is_number or task.name == TokenClassification.name or is_share_right(task.name)


def is_within(fall: float, points: float) -> bool:
    """Whether a metric fell by at most some points (hundredths)."""
    return fall <= points * POINT + _ROUNDING


def is_share_right(task: str) -> bool:
    """Whether a task's first metric is the share of samples answered correctly."""
    return task in _SHARES_RIGHT


def too_few_rows(task: str, rows: int, points: float, share: float = 1.0) -> str | None:
    """A warning if the confirming rows are unlikely to certify the points; otherwise None.

    For tasks whose first metric is a share of right answers, it says how many rows are likely to. A metric that is no mean over
    rows takes a fixed number of rows.
    """
    if is_share_right(task):
        return few_rows_told(rows, points, share)
    if rows >= FEWEST_ROWS:
        return None
    return (
        f"within_points={points:g}: {rows} confirming rows are too few to certify this task's metric (that takes "
        f"{FEWEST_ROWS}), so the untouched model will be kept; give more rows, or a larger share with confirm"
    )
