"""Make the answer sheet of a path: which rows its models answer otherwise than the untouched one, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from axformer.data.encoding import UNLABELLED, Encoded
from axformer.data.labels import ClassNames
from axformer.data.rows import Rows
from axformer.data.written import NO_ANSWER, compared
from axformer.intake.dataset import DataSet
from axformer.scores.decisions import decisions_of
from axformer.scores.measured import Measured
from axformer.scores.task_tests import paired_test
from axformer.tasks.base import Task
from axformer.tasks.binary import BinaryClassification
from axformer.tasks.classification import Classification
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.question_answering import SpanReading
from axformer.tasks.regression import Regression
from axformer.tasks.reranking import Reranking
from axformer.tasks.tag_schemes import chunks_of, is_chunk_scheme
from axformer.tasks.token_classification import TokenClassification
from axformer.wire.answer_sheet import CHOSEN_FROM, FAR, Answer, AnswerSheet, ChangedRow, PathAnswers, SheetTest

_READ = ("text", "text_pair", "question", "context", "query")
_LISTS = ("tokens", *CHOSEN_FROM)
"""What a person reads of a row to label it, by the fields of a task; lists are called like them."""
EXPLAINED = "explained variance"
"""The metric of numbers: a point is lost where the mean squared error rises by a hundredth of the variance of the untouched
model's answers, which takes no labels. Where labels vary as much or more, R squared falls by a hundredth at most."""


@dataclass(frozen=True)
class ConfirmingRows:
    """The rows that confirm: some with labels, some without."""

    labelled: DataSet | None
    unlabelled: DataSet
    """With the untouched model's answers as labels."""

    @property
    def sets(self) -> list[tuple[DataSet, bool]]:
        """The data sets, each with whether it has labels."""
        return [(data, has) for data, has in ((self.labelled, True), (self.unlabelled, False)) if data is not None]


Answers = Sequence[Measured]
"""A model on the data sets of the confirming rows, in their order."""


@dataclass(frozen=True)
class AnsweringModel:
    """A model of the path and its answers."""

    seq: int
    form: str
    times: float
    """Operations of the untouched model for each of its own."""
    answers: Answers


def sheet_of(
    rows: ConfirmingRows, untouched: Answers, models: Sequence[AnsweringModel], config: Any, points: float
) -> AnswerSheet:
    """The sheet of a path.

    Args:
        untouched: the untouched model on the rows.
        models: in the order of their tests, form after form.
        config: the model's.
        points: how far the metric may fall.
    """
    task = untouched[0].task
    test, metric = _test(untouched[-1].votes, task, points)
    tags = task.names if isinstance(task, TokenClassification) and is_chunk_scheme(task.names) else ()
    assert tags or test != "worst_case", f"changed answers of {task.name} bound its metric"
    before = _voted(untouched)
    changed: dict[int, Answer] = {}
    answered = []
    for model in models:
        own = {
            place: one for place, (one, was) in enumerate(zip(_voted(model.answers), before, strict=True)) if one != was
        }
        changed |= {place: before[place] for place in own}
        answered.append(PathAnswers(seq=model.seq, form=model.form, times=model.times, answers=own))
    known = _known(rows, task)
    return AnswerSheet(
        task=task.name,
        metric=metric,
        test=test,
        classes=_classes(task, config),
        points=points,
        rows=len(before),
        unlabelled=int(rows.unlabelled.samples.voters.sum()),
        chunks=_chunks(known, before, tags) if tags else [],
        variance=float(np.var(np.array(before, dtype=float))) if test == "sampled" else 0.0,
        changed=[
            ChangedRow(
                id=known[place].id, place=place, inputs=known[place].inputs, before=was, label=known[place].label
            )
            for place, was in sorted(changed.items())
        ],
        models=answered,
    )


def _test(votes: np.ndarray, task: Task, points: float) -> tuple[SheetTest, str]:
    """The test that takes few labels, and its metric."""
    if isinstance(task, Regression):
        return "sampled", EXPLAINED
    test = paired_test(votes, task, points)
    assert test.name != "delta_method", "numbers beside pairs are labels"
    return "worst_case" if test.name == "bca_bootstrap" else test.name, test.metric


def _chunks(rows: Sequence["_Row"], before: Sequence[Answer], names: Sequence[str]) -> list[int]:
    """How many chunks each row that counts has: those of the untouched model, and of a label that is known."""

    def count(tags: Answer) -> int:
        return len(chunks_of([names[tag] for tag in np.atleast_1d(tags)]))

    return [
        count(found) + (0 if row.label is None else count(row.label)) for row, found in zip(rows, before, strict=True)
    ]


@dataclass(frozen=True)
class _Row:
    id: str
    inputs: dict[str, Any]
    label: Answer | None


def _known(rows: ConfirmingRows, task: Task) -> list[_Row]:
    """The rows that count, with what is known of them."""
    found = []
    for data, has_labels in rows.sets:
        keys = data.samples.encoded.keys
        several = _right_answers(task, data.samples.encoded)
        labels = [right[0] for right in several] or data.samples.encoded.labels
        for index in np.flatnonzero(data.samples.voters.numpy()).tolist():
            label = _canonical(labels[index], task) if has_labels else None
            inputs = _inputs(data.rows, index)
            if isinstance(task, TokenClassification):  # those that the model reads, of a row that was cut too
                inputs["tokens"] = [inputs["tokens"][word] for word in data.samples.encoded.reading[index]]
            found.append(_Row(keys[index].hex(), inputs, label))
    return found


def _inputs(rows: Rows, index: int) -> dict[str, Any]:
    """The inputs of a row by the names of its columns."""
    columns = dict.fromkeys(part for name in _READ if rows.has(name) for part in rows.parts(name))
    row = rows.at([index])
    lists = {name: row.text_lists(name, is_joined=name == "tokens")[0] for name in _LISTS if rows.has(name)}
    return {column: rows.table[column][index] for column in columns} | lists


def _voted(answers: Answers) -> list[Answer]:
    """The answers to the rows that count."""
    found: list[Answer] = []
    for measured in answers:
        decisions = measured.answers if isinstance(measured.task, Regression) else decisions_of(measured)
        assert decisions is not None, f"answers of {measured.task.name} can be compared"
        votes = measured.samples.voters.tolist()
        if several := _right_answers(measured.task, measured.samples.encoded):
            decisions = [right[0] if one in right else one for one, right in zip(decisions, several, strict=True)]
        found += [_canonical(one, measured.task) for one, counts in zip(decisions, votes, strict=True) if counts]
    return found


def _right_answers(task: Task, encoded: Encoded) -> Sequence[Sequence[Answer]]:
    """The right answers to each row, of which the first stands for all; empty for tasks with one right answer."""
    if isinstance(task, Reranking):
        return task.right(encoded)
    if not isinstance(encoded.reading, SpanReading):
        return []
    return [list(map(compared, texts)) or [NO_ANSWER] for texts in encoded.reading.answers]


def _canonical(value: Any, task: Task) -> Answer:
    if isinstance(task, Regression):
        number = float(np.clip(np.nan_to_num(value[0], nan=FAR), -FAR, FAR))  # a model whose training diverged lost all
        return float(f"{number:.7g}")  # as exact as float32, and no longer than it has to be
    if isinstance(value, list | tuple):
        return [int(one) for one in value if one != UNLABELLED]
    return value if isinstance(value, str) else int(value)


def _classes(task: Task, config: Any) -> list[str]:
    if isinstance(task, Classification | MultiLabelClassification | TokenClassification):
        return list(ClassNames.of(config).names)
    return ["no", "yes"] if isinstance(task, BinaryClassification) else []
