"""Rows without labels: the untouched model's answers take their place, so that what is measured is which answers stay.

For a test these are the worst labels that the rows can have, since every changed answer counts as lost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from axformer.config import RunConfig
from axformer.data.columns import OWN_ANSWERS
from axformer.data.encoding import UNLABELLED, Encoded
from axformer.data.labels import Reading
from axformer.data.rows import Rows
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, needed_to_calibrate, prepare, prepare_inputs, relabelled
from axformer.scores.decisions import decisions_of
from axformer.scores.measured import Measured, measure
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import OneOfSeveral
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.question_answering import QuestionAnswering, with_answers
from axformer.tasks.regression import Regression
from axformer.tasks.reranking import Reranking
from axformer.tasks.token_classification import TokenClassification


def can_answer(task: Task) -> bool:
    """Whether a model's answers can be labels."""
    kinds = OneOfSeveral | BinaryClassification | MultiLabelClassification | Regression | TokenClassification
    return isinstance(task, kinds | QuestionAnswering | Reranking | SentenceEmbedding)


def check_can_answer(task: Task) -> None:
    """Check that a run without labels is possible.

    Raises:
        ConfigError: the model's answers are no labels.
    """
    if not can_answer(task):
        raise ConfigError(
            f"unlabelled rows alone are too little for a model for {task.name.replace('_', ' ')}; give validation data too",
            "validation",
        )


def split(
    rows: Rows, like: Rows | None, checkpoint: Checkpoint, config: RunConfig, *, calibrates: bool
) -> tuple[DataSet | None, Rows]:
    """The part of unlabelled rows that calibrates, and the rows that confirm. Copies of an input stay in one part.

    As many calibrate as ``calibrate_rows`` says, but at most half, drawn by ``seed``.

    Args:
        like: other rows of the run, which must have the same columns; None if there are none.
        calibrates: whether any of them do.
    """
    if not calibrates:
        return None, rows
    every = prepare_inputs(like, rows, checkpoint, config)
    inputs = every.samples.encoded.inputs
    drawn = needed_to_calibrate(every.samples.encoded, checkpoint.dimensions.intermediate_size, config)
    calibrating = set(drawn[: len(set(inputs)) // 2])
    places = [[row for row, first in enumerate(inputs) if (first in calibrating) is wanted] for wanted in (True, False)]
    if not all(places):
        raise ConfigError(f"{len(rows)} unlabelled rows cannot both calibrate and confirm; give more", "unlabelled")
    return prepare_inputs(like, rows.at(places[0]), checkpoint, config), rows.at(places[1])


def with_own_answers(rows: Rows, like: Rows | None, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """Rows without labels, with the untouched model's answers as labels.

    Raises:
        DataError: the rows do not fit the model.
    """
    if isinstance(checkpoint.task, SentenceEmbedding):
        return prepare(rows, checkpoint, config)
    blank = _with_blank_labels(rows, like, checkpoint, config)
    measured = measure(checkpoint.model, checkpoint.task, blank.samples)
    if isinstance(checkpoint.task, QuestionAnswering):
        return _with_own_spans(
            blank, checkpoint.task.spans(measured.answers, blank.samples.encoded), checkpoint, config
        )
    return relabelled(blank, list(_labels(measured)), checkpoint, config, labels_as=OWN_ANSWERS)


def _with_own_spans(
    data: DataSet, spans: Sequence[tuple[int, str]], checkpoint: Checkpoint, config: RunConfig
) -> DataSet:
    """Questions with the answers that the model gives."""
    may_be_none = isinstance(checkpoint.task, QuestionAnswering) and checkpoint.task.may_abstain
    answers = [[] if may_be_none and not text else [(start, text)] for start, text in spans]
    encoded = with_answers(data.samples.encoded, answers)
    answered = replace(data, samples=replace(data.samples, encoded=encoded))
    return relabelled(answered, encoded.labels, checkpoint, config, labels_as=OWN_ANSWERS)


def without_those_of(
    data: Rows, like: Rows | None, others: dict[str, Encoded], checkpoint: Checkpoint, config: RunConfig
) -> tuple[Rows, str | None]:
    """The rows whose inputs are not among others, which cannot confirm what they helped to make, and a note if
    any are left out.

    Args:
        others: by their name in the note.
    """
    keys = prepare_inputs(like, data, checkpoint, config).samples.encoded.keys
    known = {name: set(other.keys) for name, other in others.items()}
    counts = {name: sum(key in of_other for key in keys) for name, of_other in known.items()}
    kept = [row for row, key in enumerate(keys) if not any(key in of_other for of_other in known.values())]
    told = [f"{count:,} are also among {name}" for name, count in counts.items() if count]
    if not told:
        return data, None
    if not kept:
        raise ConfigError(
            f"of the {len(keys):,} unlabelled rows {' and '.join(told)}, so none is left to confirm", "unlabelled"
        )
    return data.at(kept), f"of its {len(keys):,} rows that confirm {' and '.join(told)}, and are left out"


def _with_blank_labels(rows: Rows, like: Rows | None, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """The rows with a label that no answer depends on."""
    task, outputs = checkpoint.task, checkpoint.model.config.num_labels
    if isinstance(task, TokenClassification):
        tags = [[0] * len(words) for words in rows.text_lists("tokens", is_joined=True)]
        table = rows.table | {rows.columns.tags: tags}
        return prepare(replace(rows, table=table, labels_as=Reading.INDICES, own_names={}), checkpoint, config)
    data = prepare_inputs(like, rows, checkpoint, config)
    if isinstance(task, QuestionAnswering):
        return data
    empty: Any = [0.0] * outputs
    if isinstance(task, OneOfSeveral | BinaryClassification | Reranking):
        empty = 0 if isinstance(task, OneOfSeveral) else 0.0
    return relabelled(data, [empty] * len(data.samples.sample_of_row), checkpoint, config)


def _labels(measured: Measured) -> Iterator[Any]:
    """A model's answers, as the labels of its task."""
    task = measured.task
    if isinstance(task, TokenClassification):
        for label, answer in zip(measured.samples.encoded.labels, measured.answers, strict=True):
            words = iter(answer)
            yield [UNLABELLED if tag == UNLABELLED else next(words) for tag in label]
    elif isinstance(task, Regression):
        yield from measured.answers
    else:
        decisions = decisions_of(measured)
        assert decisions is not None, f"{task.name} has answers that are labels"
        if isinstance(task, Reranking):
            yield from task.labels_of(decisions, measured.samples.encoded)
            return
        number = int if isinstance(task, OneOfSeveral) else float
        for answer in decisions:
            yield [number(one) for one in answer] if isinstance(answer, list) else number(answer)
