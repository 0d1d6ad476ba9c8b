"""The certificate of a path whose rows have few labels, or none.

A row that two models answer alike adds nothing to a paired test, whatever its label. So a label is asked only for a changed
answer, and only until the worst case of those that have none passes the test, or their best case fails it. The p-value of the
worst case falls with every label (:func:`axformer.scores.paired_tests.exact_p_value`), so it may be looked at after each one,
and the order in which labels come does not matter. The models of a path are tested in its order, each at 5 %, up to the first
that fails (Maurer, Hothorn and Lehmacher, 1995), form by form. Of answers that are numbers all change, so rows are drawn to be
labelled (:mod:`axformer.scores.sampled_test`). No PyTorch.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from axformer.data.written import compared
from axformer.errors import DataError
from axformer.scores.paired_tests import ALPHA, betting_p_value, exact_p_value, worst_case_p_value
from axformer.scores.planning import POINT
from axformer.scores.sampled_test import MOST_LABELS, Moves, draws_of, rise_p_value
from axformer.tasks.tag_schemes import chunks_of
from axformer.wire.answer_sheet import FAR, Answer, AnswerSheet, ChangedRow, PathAnswers
from axformer.wire.metrics import RERANKING

SEED = 0
"""Of the order in which labels are asked for."""
NONE_OF_THESE = "none of these"
"""The label of a question that every model answers wrongly."""
Labels = Mapping[str, Answer]
"""Labels that people gave, by the id of the row."""
_exact = lru_cache(maxsize=1 << 14)(exact_p_value)


@dataclass(frozen=True)
class AnswerTally:
    """What became of one model's answers."""

    gained: int
    lost: int
    unlabelled: int
    """Changed answers without a label."""


@dataclass(frozen=True)
class PathStanding:
    """How far along a path a form is certified."""

    form: str
    kept: PathAnswers | None
    """The model with the fewest operations that is certified; None for the untouched one."""
    p_value: float | None
    """Of that model, in the worst case."""
    tested: int
    passed: int
    upcoming: PathAnswers | None
    """The next model, which is not certified yet; None if every one is."""
    best_p_value: float | None
    """Of the next model in the best case, where no labels can certify it; else None."""
    needed: Sequence[ChangedRow]
    """The rows whose labels the next model waits for, in the order in which they are asked; none where it is out of reach."""

    @property
    def is_futile(self) -> bool:
        """Whether no labels can certify the next model."""
        return self.best_p_value is not None


def standing_of(sheet: AnswerSheet, form: str, labels: Labels) -> PathStanding:
    """Test the models of a form in the order of the path, with the labels that are known so far."""
    margin = sheet.points * POINT
    models = [model for model in sheet.models if model.form == form]
    passed: list[tuple[PathAnswers, float]] = []
    for model in models:
        worst = p_value_of(sheet, model, labels, margin)
        if worst <= ALPHA:
            passed.append((model, worst))
            continue
        best = p_value_of(sheet, model, labels, margin, is_worst=False)
        if best > ALPHA:
            return _standing(form, passed, len(passed) + 1, model, best, ())
        needed = tuple(unlabelled_of(sheet, model, labels))
        return _standing(form, passed, len(passed) + 1, model, None, needed)
    return _standing(form, passed, len(passed), None, None, ())


def _standing(
    form: str,
    passed: Sequence[tuple[PathAnswers, float]],
    tested: int,
    upcoming: PathAnswers | None,
    best_p_value: float | None,
    needed: Sequence[ChangedRow],
) -> PathStanding:
    kept, p_value = max(reversed(passed), key=lambda one: one[0].times, default=(None, None))
    return PathStanding(form, kept, p_value, tested, len(passed), upcoming, best_p_value, needed)


def p_value_of(
    sheet: AnswerSheet, model: PathAnswers, labels: Labels, margin: float, *, is_worst: bool = True
) -> float:
    """The p-value of a model where the labels that are not known are as bad for it as they can be, or as good."""
    if sheet.test == "sampled":
        p_value, can_fall = rise_p_value(_moves(sheet, model, labels), margin, sheet.variance)
        return 0.0 if can_fall and not is_worst else p_value
    if sheet.test == "worst_case":
        return _p_value_of_chunks(sheet, model, labels, margin, is_worst=is_worst)
    if sheet.test == "betting":
        most = _differences(sheet, model, {}, is_worst=True, takes_given=False)
        return betting_p_value(_differences(sheet, model, labels, is_worst=is_worst), margin, most)
    counts = tally(sheet, model, labels)
    if is_worst:
        return _exact(counts.gained, counts.lost, sheet.rows, margin, counts.unlabelled)
    return _exact(counts.gained + counts.unlabelled, counts.lost, sheet.rows, margin)


def _moves(sheet: AnswerSheet, model: PathAnswers, labels: Labels) -> Moves:
    """How a model's answers moved, each of them a number."""
    deltas, draws, errors = np.zeros(sheet.rows), np.ones(sheet.rows), np.full(sheet.rows, np.nan)
    is_given = np.zeros(sheet.rows, dtype=bool)
    draws[[row.place for row in sheet.changed]] = draws_of(row.id for row in sheet.changed)
    for row in sheet.changed:
        before, label = _number(row.before), labels.get(row.id, row.label)
        deltas[row.place] = _number(model.answers.get(row.place, before)) - before
        errors[row.place] = np.nan if label is None else before - _number(label)
        is_given[row.place] = row.label is not None
    return Moves(deltas, draws, is_given, errors)


def _number(answer: Answer) -> float:
    assert isinstance(answer, int | float), "the answers of this sheet are numbers"
    return float(answer)


def tally(sheet: AnswerSheet, model: PathAnswers, labels: Labels) -> AnswerTally:
    """Count what became of a model's answers, each of them right or wrong as a whole."""
    gained = lost = unlabelled = 0
    for row in sheet.changed:
        if row.place not in model.answers:
            continue
        label = labels.get(row.id, row.label)
        unlabelled += label is None
        lost += row.before == label
        gained += model.answers[row.place] == label
    return AnswerTally(gained, lost, unlabelled)


def _differences(
    sheet: AnswerSheet, model: PathAnswers, labels: Labels, *, is_worst: bool, takes_given: bool = True
) -> np.ndarray:
    """By how much the share of a row's words that are right fell, shape (rows,)."""
    found = np.zeros(sheet.rows)
    for row in sheet.changed:
        if row.place not in model.answers:
            continue
        before, after = np.atleast_1d(row.before), np.atleast_1d(model.answers[row.place])
        known = labels.get(row.id, row.label if takes_given else None)
        expected = (before if is_worst else after) if known is None else np.atleast_1d(known)
        found[row.place] = np.mean(before == expected) - np.mean(after == expected)
    return found


def _p_value_of_chunks(
    sheet: AnswerSheet, model: PathAnswers, labels: Labels, margin: float, *, is_worst: bool
) -> float:
    """The p-value of a fall of the F1 of chunks by at least the margin.

    Let T, P and G be the expected numbers of correct, predicted and true chunks of a row, so that F1 is 2 T / (P + G). The new
    model's is above F - m, where F is the old one's, if ``2 (T_old - T_new) + F (P_new - P_old) - m (P_new + G) < 0``, which is
    a mean over rows. It is linear in F, which is unknown without labels, so both ends, 0 and 1, must pass. Of a row without a
    label only chunks that one model alone finds can be lost, and it may have no other true ones.
    """
    found, outermost = np.zeros((2, sheet.rows)), np.zeros((2, sheet.rows))
    found -= margin * np.array(sheet.chunks)
    outermost += np.abs(found)
    for row in sheet.changed:
        if row.place not in model.answers:
            continue
        before, after = _chunks(sheet, row.before), _chunks(sheet, model.answers[row.place])
        lost, gained = before - after, after - before
        known = labels.get(row.id, row.label)
        more = np.array([0, len(after) - len(before)])

        def fall(right: int, wrong: int, true: int, grown: np.ndarray = more, claimed: int = len(after)) -> np.ndarray:
            return 2 * (right - wrong) + grown - margin * (claimed + true)

        worst, best = fall(len(lost), 0, len(lost)), fall(0, len(gained), len(np.atleast_1d(row.before)))
        found[:, row.place] = worst if is_worst else best
        outermost[:, row.place] = np.maximum(np.abs(worst), np.abs(best))
        if known is not None:
            true = _chunks(sheet, known) - (before & after)
            found[:, row.place] = fall(len(true & lost), len(true & gained), len(true))
    return max(worst_case_p_value(*pair, margin) for pair in zip(found, outermost, strict=True))


def _chunks(sheet: AnswerSheet, tags: Answer) -> set[tuple[str, int, int]]:
    return chunks_of([sheet.classes[tag] for tag in np.atleast_1d(tags)])


def asked_words(sheet: AnswerSheet, row: ChangedRow) -> list[int]:
    """The words of a tagged row that are asked for, by their places: those whose tags some model has changed, and the others of
    chunks that it has changed. The rest counts as the models have it."""
    asked: set[int] = set()
    for model in sheet.models:
        if row.place not in model.answers:
            continue
        before, after = np.atleast_1d(row.before), np.atleast_1d(model.answers[row.place])
        asked.update(np.flatnonzero(before != after).tolist())
        if sheet.test == "worst_case":
            for _, first, last in _chunks(sheet, row.before) ^ _chunks(sheet, model.answers[row.place]):
                asked.update(range(first, last + 1))
    return sorted(asked)


def unlabelled_of(sheet: AnswerSheet, model: PathAnswers, labels: Labels) -> Iterable[ChangedRow]:
    """The changed rows of a model that have no label, in the order in which they are asked: a random one that all models share,
    of numbers by how far they changed."""
    if sheet.test == "sampled":
        by_place = {row.place: row for row in sheet.changed}
        asked = (by_place[place] for place in _moves(sheet, model, {}).order[:MOST_LABELS].tolist())
        yield from (row for row in asked if row.id not in labels)
        return
    order = np.random.default_rng(SEED).permutation(len(sheet.changed))
    for index in order:
        row = sheet.changed[index]
        if row.place in model.answers and labels.get(row.id, row.label) is None:
            yield row


def forms_of(sheet: AnswerSheet) -> list[str]:
    """The forms on a sheet, in its order."""
    return list(dict.fromkeys(model.form for model in sheet.models))


def needed(sheet: AnswerSheet, labels: Labels) -> list[ChangedRow]:
    """The rows whose labels can still certify a further model, in the order in which they are asked: those that the next model
    of each form waits for, the last form first, which is the one that is deployed."""
    rows = {row.id: row for form in reversed(forms_of(sheet)) for row in standing_of(sheet, form, labels).needed}
    return list(rows.values())


def needed_lines(sheet: AnswerSheet, labels: Labels) -> str:
    """The rows of :func:`needed` as JSON Lines, without any answer."""
    records = ({"id": row.id, **row.inputs} for row in needed(sheet, labels))
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def choices_of(sheet: AnswerSheet, row: ChangedRow) -> list[str]:
    """What a person chooses from: the classes, the choices of the row, or the answers to a question in the order of letters."""
    if isinstance(row.before, str):
        given = {str(model.answers[row.place]) for model in sheet.models if row.place in model.answers}
        return [*sorted({row.before, *given}), NONE_OF_THESE]
    return list(sheet.classes) or row.choices


def range_of(sheet: AnswerSheet) -> tuple[float, float]:
    """The least and the largest number that the untouched model answers, for who has to think of one."""
    numbers = [_number(row.before) for row in sheet.changed]
    return min(numbers, default=0.0), max(numbers, default=0.0)


def label_of(sheet: AnswerSheet, row: ChangedRow, value: Any) -> Answer:
    """A label as a person or a file has it, by the names of classes or by their indices.

    Raises:
        DataError: it is none of the task's.
    """
    if isinstance(row.before, float):
        return _finite(row, value)
    if isinstance(row.before, str):
        return compared(str(value))
    is_one = isinstance(row.before, int)
    values = [value] if is_one else value.split() if isinstance(value, str) else value
    names = {name: index for index, name in enumerate(sheet.classes)}
    if not isinstance(values, list):
        raise DataError(f"label {value!r} of row {row.id} is no list, one label for each word or class")
    if sheet.task == "multi_label_classification":
        given = [_index_of(sheet, row, one, names) for one in values]
        return [int(index in given) for index in range(len(sheet.classes))]
    found = [_index_of(sheet, row, one, names) for one in values]
    if not is_one and isinstance(row.before, list) and len(found) != len(row.before):
        raise DataError(
            f"the model reads {len(row.before)} words of row {row.id}, which has {len(found)} labels; give one for each "
            "of these words, as needed.jsonl has them"
        )
    if sheet.task == RERANKING:
        return row.choices.index(row.choices[found[0]])  # copies of a passage are one answer
    return found[0] if is_one else found


def _finite(row: ChangedRow, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not abs(found) <= FAR:
        raise DataError(f"label {value!r} of row {row.id} is no number, or none between {-FAR:g} and {FAR:g}")
    return found


def _index_of(sheet: AnswerSheet, row: ChangedRow, value: Any, names: Mapping[str, int]) -> int:
    count = len(sheet.classes) or len(row.choices) or None
    text = str(value).strip()
    if text in names:
        return names[text]
    if text.isdecimal() and (count is None or int(text) < count):
        return int(text)
    known = ", ".join(sheet.classes) if sheet.classes else f"0 to {(count or 1) - 1}"
    raise DataError(f"label {value!r} of row {row.id} is unknown; the labels are {known}")


def most_labels(sheet: AnswerSheet, form: str, labels: Labels) -> list[tuple[PathAnswers, int]]:
    """The models that are not certified yet, each with the most labels that decide about it and those before it."""
    asked: set[str] = set()
    found = []
    for model in [model for model in sheet.models if model.form == form][standing_of(sheet, form, labels).passed :]:
        asked |= {row.id for row in unlabelled_of(sheet, model, labels)}
        found.append((model, len(asked)))
    return found
