"""Labels of positions, as probes learn them, and the answers of probes, as the task scores them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from axformer.data.encoding import UNLABELLED, Encoded
from axformer.errors import ConfigError, DataError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.one_output import GradedClassification
from axformer.tasks.regression import Regression
from axformer.tasks.token_classification import TokenClassification


class LabelKind(StrEnum):
    """What a label is."""

    CLASS = "class"
    """One of several classes."""
    TRUTH = "truth"
    """Yes or no, told by one logit."""
    FLAGS = "flags"
    """Yes or no for each of several classes."""
    NUMBERS = "numbers"
    """One or several numbers."""


_KINDS = {
    Classification.name: LabelKind.CLASS,
    TokenClassification.name: LabelKind.CLASS,
    BinaryClassification.name: LabelKind.TRUTH,
    MultiLabelClassification.name: LabelKind.FLAGS,
    GradedClassification.name: LabelKind.NUMBERS,
    Regression.name: LabelKind.NUMBERS,
}
_SUREST = 0.99
"""Degrees beyond this and its complement are learned as these, since the logit of 0 or 1 is no number."""


def can_probe(task: Task) -> bool:
    """Whether positions of a task have labels that a linear probe can learn."""
    return task.name in _KINDS


@dataclass(frozen=True)
class Labels:
    """The labels of all positions of a data set."""

    kind: LabelKind
    values: np.ndarray
    """Indices of classes, int of shape (positions,), or flags or numbers, float32 of shape (positions, outputs)."""
    outputs: int
    """Number of outputs of the model's head."""

    def at(self, places: np.ndarray) -> "Labels":
        """The labels of some positions."""
        return replace(self, values=self.values[places])


def labels_of(checkpoint: Checkpoint, data: DataSet) -> Labels:
    """The labels of a data set's positions.

    Raises:
        ConfigError: the task has none that a linear probe can learn.
        DataError: all labels are equal.
    """
    task, encoded = checkpoint.task, data.samples.encoded
    if not can_probe(task):
        raise ConfigError(
            f"there are no probes for {task.name.replace('_', ' ')}: its positions have no label; reports that need none are "
            "cka, heads, drift, clusters and layers"
        )
    if encoded.alike is not None:
        raise DataError(f"data file '{data.rows.source}' has {encoded.alike} everywhere, from which no probe can learn")
    kind, outputs = _KINDS[task.name], int(checkpoint.model.config.num_labels)
    if kind is LabelKind.CLASS:
        flat = [label for row in encoded.labels for label in (row if isinstance(row, list) else [row])]
        classes = np.array([label for label in flat if label != UNLABELLED], dtype=int)
        if len(np.unique(classes)) == 1:
            raise DataError(f"data file '{data.rows.source}' has one label everywhere, from which no probe can learn")
        return Labels(kind, classes, outputs)
    values = np.array(encoded.labels, dtype=np.float32).reshape(encoded.samples, -1)
    if kind is LabelKind.TRUTH:
        return Labels(kind, values[:, 0].astype(int), 1)
    if task.name == GradedClassification.name:
        sure = np.clip(values, 1 - _SUREST, _SUREST)
        values = np.log(sure / (1 - sure))
    return Labels(kind, values, values.shape[1])


def figures_of_scores(task: Task, encoded: Encoded, counts: Sequence[int], scores: np.ndarray) -> dict[str, float]:
    """The task's metrics of a probe, as of the model itself.

    Args:
        task: the task.
        encoded: the data that was probed.
        counts: positions of each model row.
        scores: one per output, shape (positions, outputs).
    """
    return task.metrics(task.statistics(answers_of(task, counts, scores), encoded))


def answers_of(task: Task, counts: Sequence[int], scores: np.ndarray) -> list[Any]:
    """The answers that a model with these outputs gives, one for each model row."""
    if task.name == TokenClassification.name:
        predicted = scores.argmax(axis=1)
        return [predicted[start:end].tolist() for start, end in pairwise([0, *accumulate(counts)])]
    output: Any = SimpleNamespace(logits=torch.from_numpy(scores))
    batch: Any = None  # tasks with one answer a row do not look at it
    return task.answers(output, batch)
