"""Two models on the same rows: where their answers differ, and what the labels of those rows certify.

A row with equal answers makes no difference, whatever its label. Only the other rows need labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from axformer.config import RunConfig, reading_config
from axformer.data.columns import DataSource
from axformer.data.reading import read_rows
from axformer.data.rows import Rows
from axformer.errors import CheckpointError, ConfigError
from axformer.gate import AnswersVerdict, certify
from axformer.intake.checkpoint import Checkpoint, load_checkpoint
from axformer.intake.dataset import prepare
from axformer.plan.plan import read_plan_file
from axformer.reporting.bench import compact_checkpoint
from axformer.scores.measured import measure
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import DECISION_LOGIT
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.one_output import CROSS_ENCODER_KEYS

_UNKNOWN_LABEL = 0
"""Placeholder label of an unlabelled row; no answer depends on it."""
_IF_BINARY = (
    f'; if its one output says yes or no, say "{CROSS_ENCODER_KEYS[0]}": '
    '{"activation_fn": "torch.nn.modules.activation.Sigmoid"} in config.json'
)
_TASKS = (Classification.name, BinaryClassification.name, MultipleChoice.name)
"""Tasks with one right or wrong answer per row."""


@dataclass(frozen=True)
class _Answers:
    values: Sequence[Any]
    right: np.ndarray


def disagreements(before: str, after: str, source: DataSource, device: str) -> tuple[Rows, int]:
    """The rows on which the answers of two models differ, and how many rows there are.

    Args:
        before: a checkpoint, or the directory of a result.
        after: another one.
        source: rows; they need no labels.
        device: the device that PyTorch computes on.

    Raises:
        InputError: a model or the data cannot be read, or they do not fit.
    """
    rows = read_rows(source.path, source.columns)
    label = {rows.columns.label: [_UNKNOWN_LABEL] * len(rows)}
    one, other = _both(before, after, replace(rows, table=rows.table | label), device, are_labelled=False)
    differing = [place for place, pair in enumerate(zip(one.values, other.values, strict=True)) if pair[0] != pair[1]]
    return rows.at(differing), len(rows)


def certify_pair(
    before: str, after: str, source: DataSource, points: float, rows: int | None, device: str
) -> AnswersVerdict:
    """Test whether the second model's accuracy is less than some points below the first one's.

    Args:
        before: a checkpoint, or the directory of a result.
        after: another one, which these rows did not choose.
        source: rows with labels, including all rows on which the answers differ.
        points: the margin in hundredths of the accuracy.
        rows: number of rows including omitted ones, on which the answers are equal; None if none were omitted.
        device: the device that PyTorch computes on.

    Raises:
        InputError: a model or the data cannot be read, or they do not fit.
    """
    labelled = read_rows(source.path, source.columns)
    whole = len(labelled) if rows is None else rows
    if whole < len(labelled):
        raise ConfigError(
            f"--rows {rows} is less than the {len(labelled)} rows of '{source.path}'; give the number of all"
        )
    equal = [True] * (whole - len(labelled))
    one, other = (
        [*answers.right.tolist(), *equal] for answers in _both(before, after, labelled, device, are_labelled=True)
    )
    return certify(one, other, [True] * whole, points).whole


def _both(before: str, after: str, rows: Rows, device: str, *, are_labelled: bool) -> list[_Answers]:
    """The answers of both models. Labels that are placeholders have no say in what the models' task is."""
    opened = [_open(one, device) for one in (before, after)]
    if are_labelled:
        opened = [(checkpoint.for_rows(rows), config) for checkpoint, config in opened]
    (first, _), (second, _) = opened
    for one, reference in ((first, before), (second, after)):
        if one.task.name not in _TASKS:
            may_be_binary = one.model.config.num_labels == 1 and one.model.config.problem_type is None
            raise CheckpointError(
                f"'{reference}' is a model for {one.task.name.replace('_', ' ')}; answers are compared where there is one a "
                f"row: {', '.join(name.replace('_', ' ') for name in _TASKS)}{_IF_BINARY if may_be_binary else ''}"
            )
    if first.task.name != second.task.name or first.model.config.id2label != second.model.config.id2label:
        raise CheckpointError(f"'{before}' and '{after}' have other classes or tasks; give two models for the same")
    return [_answers(checkpoint, rows, config) for checkpoint, config in opened]


def _open(reference: str, device: str) -> tuple[Checkpoint, RunConfig]:
    """Load a model, and the config that its rows are read with; for a result, that of its pass."""
    if (Path(reference) / "plan.json").is_file():
        return compact_checkpoint(Path(reference), device), reading_config(read_plan_file(Path(reference)).config)
    return load_checkpoint(reference, device), reading_config({})


def _answers(checkpoint: Checkpoint, rows: Rows, config: RunConfig) -> _Answers:
    samples, task = prepare(rows, checkpoint, config).samples, checkpoint.task
    measured = measure(checkpoint.model, task, samples)
    assert measured.right is not None, f"{task.name} knows right and wrong"
    is_logit = task.name == BinaryClassification.name
    answers = [answer > DECISION_LOGIT for answer in measured.answers] if is_logit else measured.answers
    return _Answers(answers, measured.right)
