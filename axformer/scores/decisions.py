"""What became of answers: how many are other ones, and what each class lost. For tasks whose answers are classes."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from axformer.data.encoding import UNLABELLED
from axformer.data.written import compared
from axformer.scores.confidence import mcnemar
from axformer.scores.measured import Measured, compare
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification, OneOfSeveral
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.multi_label import DECISION_LOGIT, MultiLabelClassification
from axformer.tasks.question_answering import QuestionAnswering
from axformer.tasks.reranking import Reranking
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.report import ClassChange, Comparison

MOST_CLASSES = 20
"""Most classes that a comparison holds, those that lost most."""


def cost_of(before: Measured, after: Measured, names: Sequence[str]) -> Comparison:
    """Compare two models on the same samples, with changed answers and classes.

    Args:
        names: the model's classes by index; empty where answers are no classes.
    """
    first, second = decisions_of(before), decisions_of(after)
    if first is None or second is None:
        return compare(before, after)
    votes = before.samples.voters.tolist()
    changed = sum(one != other for one, other, votes_here in zip(first, second, votes, strict=True) if votes_here)
    return compare(before, after).model_copy(
        update={"changed": changed, "classes": _class_changes(before, first, second, names)}
    )


def decisions_of(measured: Measured) -> list[Any] | None:
    """The answer to each sample, as something that compares; None where answers are numbers or tokens."""
    task, answers = measured.task, measured.answers
    if isinstance(task, QuestionAnswering):
        return [compared(text) for _, text in task.spans(answers, measured.samples.encoded)]
    if isinstance(task, SentenceEmbedding):
        return [int(nearest) for nearest in measured.table[:, 1]]
    if isinstance(task, Reranking):
        return task.tops(answers, measured.samples.encoded)
    if isinstance(task, BinaryClassification):
        return [int(logit > DECISION_LOGIT) for logit in answers]
    return list(answers) if isinstance(task, OneOfSeveral | MultiLabelClassification | TokenClassification) else None


def classes_answered(measured: Measured) -> int | None:
    """How many different classes a model answers; of several for a sample, all count. None where answers are no classes."""
    task, decisions = measured.task, decisions_of(measured)
    if decisions is None:
        return None
    if isinstance(task, MultiLabelClassification):
        return int(np.any(np.array(decisions, dtype=bool), axis=0).sum())
    if isinstance(task, TokenClassification):
        return len(set(chain.from_iterable(decisions)))
    return len(set(decisions)) if isinstance(task, Classification | BinaryClassification) else None


def _class_changes(
    measured: Measured, before: Sequence[Any], after: Sequence[Any], names: Sequence[str]
) -> list[ClassChange]:
    """The recall of each class in the labels, the one that lost most first."""
    task, labels = measured.task, measured.samples.encoded.labels
    if isinstance(task, TokenClassification):
        expected = np.array([tag for row in labels for tag in row if tag != UNLABELLED], dtype=int)
        first, second = (np.array(list(chain.from_iterable(one)), dtype=int) for one in (before, after))
        votes = np.repeat(measured.samples.voters.numpy(), [len(row) for row in before])
    elif isinstance(task, Classification | BinaryClassification):
        expected, first, second = (np.array(one, dtype=int) for one in (labels, before, after))
        votes = measured.samples.voters.numpy()
    else:
        return []
    expected, first, second = expected[votes], first[votes], second[votes]
    found = []
    present = np.unique(expected)
    for index in present:
        own = expected == index
        right = first[own] == index, second[own] == index
        test = mcnemar(*right)
        found.append(
            ClassChange(
                name=names[index] if index < len(names) else str(index),
                count=int(own.sum()),
                before=float(right[0].mean()),
                after=float(right[1].mean()),
                p_value=min(1.0, test.p_value * len(present)),
            )
        )
    return sorted(found, key=lambda one: one.after - one.before)[:MOST_CLASSES]
