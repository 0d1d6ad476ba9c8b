"""Reranking: which of several passages fits a query best.

A cross-encoder reads the query with one passage after the other; its one logit is the passage's score, and the passage with the
highest score is the answer to the row. Passages are scored one by one, so that a score depends on no other passage.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from axformer.data.encoding import Encoded, TokenLimits, firsts, most_tokens, tokenize, without_labels
from axformer.data.rows import Rows
from axformer.data.written import written_out
from axformer.errors import CheckpointError, DataError
from axformer.tasks.binary import OneLogit
from axformer.tasks.guess import Guess, guess_of_degrees, mean_by_sample
from axformer.tasks.numbers import number_of
from axformer.tasks.standing import LabelAgreement
from axformer.wire.metrics import RERANKING

PLACES = 10
"""Places of a ranking that count."""
_GAINS = 1 / np.log2(np.arange(PLACES) + 2)


class Reranking(OneLogit):
    """A score for each passage of a query; the loss is averaged over the passages.

    A label is the grade of a passage divided by the highest in its list: 1 for the right ones.
    """

    name = RERANKING

    @classmethod
    def of(cls, config: Any) -> "Reranking":
        """The task of a model with one output.

        Raises:
            CheckpointError: it has several.
        """
        if config.num_labels == 1:
            return cls()
        raise CheckpointError(
            f"the rows hold passages to rank, which takes a model with one output, their score, and this one has "
            f"{config.num_labels}; give rows of text and text_pair"
        )

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        lists = _passages(rows)
        grades = [*map(_of_copies, lists, _grades(rows, [len(passages) for passages in lists]))]
        kept = [row for row, given in enumerate(grades) if max(given) > 0]
        if not kept:
            raise DataError(f"data file '{rows.source}': no passage has a grade above 0; grades rise with relevance")
        encoded = self.inputs(rows.at(kept), tokenizer, config, limits)
        labels = [grade / max(grades[row]) for row in kept for grade in grades[row]]
        if len(kept) == len(rows):
            return replace(encoded, labels=labels)
        note = f"{len(rows) - len(kept)} rows have no passage with a grade above 0 and are left out"
        return replace(encoded, labels=labels, kept=kept, notes=(note,))

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        lists = _passages(rows)
        sample_of_row = [row for row, passages in enumerate(lists) for _ in passages]
        queries = rows.texts("query")
        texts = [passage for passages in lists for passage in passages]
        asked = [queries[row] for row in sample_of_row]
        most = most_tokens(tokenizer, None, limits.max_length, limits.max_tokens)
        cut_at = replace(limits, max_length=most)
        encoding, cut = tokenize(rows, tokenizer, asked, texts, cut_at, sample_of_row=sample_of_row)
        return replace(without_labels(dict(encoding), sample_of_row, cut), reading=[*map(firsts, lists)])

    def tops(self, answers: Sequence[float], encoded: Encoded) -> list[int]:
        """The place of each row's best passage in its list, the first one of its copies."""
        best = [int(_ranked(scores)[0]) for scores in _lists(answers, encoded)]
        return [copies[place] for copies, place in zip(encoded.reading, best, strict=True)]

    def right(self, encoded: Encoded) -> list[list[int]]:
        """The places of each row's passages with the highest grade."""
        return [np.flatnonzero(labels == 1).tolist() for labels in _lists(encoded.labels, encoded)]

    def labels_of(self, tops: Sequence[int], encoded: Encoded) -> list[float]:
        """The labels of all passages where one of each row, with its copies, is right."""
        return [float(first == top) for copies, top in zip(encoded.reading, tops, strict=True) for first in copies]

    def statistics(self, answers: Sequence[float], encoded: Encoded) -> np.ndarray:
        """Whether the best passage is right, the normalised discounted gain of the first ten, and one divided by the place of
        the first relevant passage, 0 beyond the tenth."""
        pairs = zip(_lists(answers, encoded), _lists(encoded.labels, encoded), strict=True)
        return np.array([_figures(labels[_ranked(scores)]) for scores, labels in pairs])

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        return dict(zip(("accuracy", "ndcg_10", "mrr_10"), statistics.mean(axis=0).tolist(), strict=True))

    def correct(self, statistics: np.ndarray) -> np.ndarray:
        return np.asarray(statistics[:, 0] == 1.0)

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        """The mean label for each passage, and any passage as the best."""
        losses = guess_of_degrees(np.array(encoded.labels)).losses
        return Guess(mean_by_sample(losses, np.array(encoded.sample_of_row), encoded.samples), _chance(encoded))

    def standing(self, answers: Sequence[float], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        right = self.correct(self.statistics(answers, encoded)).astype(float)
        causes = (
            "whether labels count the passages from 0, whether grades rise with relevance, whether query and passages are the "
            "right columns, and whether the model was fine-tuned for this"
        )
        return LabelAgreement(causes, right, right - _chance(encoded), is_bar=False)


def _of_copies(passages: Sequence[str], grades: Sequence[float]) -> list[float]:
    """The grades where copies of a passage have the highest of theirs."""
    highest: dict[str, float] = {}
    for passage, grade in zip(passages, grades, strict=True):
        highest[passage] = max(grade, highest.get(passage, grade))
    return [highest[passage] for passage in passages]


def _figures(labels: np.ndarray) -> tuple[float, float, float]:
    """The statistics of a list, given the labels in the order of the scores."""
    gains, ideal = (float(one[:PLACES] @ _GAINS[: len(one)]) for one in (labels, np.sort(labels)[::-1]))
    first = int(np.argmax(labels > 0))
    return float(labels[0] == 1), gains / ideal, 1 / (first + 1) if first < PLACES else 0.0


def _ranked(scores: np.ndarray) -> np.ndarray:
    """The places by score. Of equal ones the later is first: files put right passages first, and no tie may find them."""
    return len(scores) - 1 - np.argsort(-scores[::-1], kind="stable")


def _lists(values: Sequence[float], encoded: Encoded) -> list[np.ndarray]:
    """The values of each row's passages."""
    return np.split(np.array(values, dtype=float), np.bincount(encoded.sample_of_row).cumsum()[:-1])


def _chance(encoded: Encoded) -> np.ndarray:
    """The share of each row's passages that are right."""
    right = np.array(encoded.labels) == 1
    return mean_by_sample(right, np.array(encoded.sample_of_row), encoded.samples)


def _passages(rows: Rows) -> list[list[str]]:
    lists = rows.text_lists("passages")
    for row, passages in enumerate(lists, start=1):
        if len(passages) < 2:
            count = "no passage" if not passages else "one passage"
            raise rows.error(
                row, f"it has {count}, which leaves nothing to rank; give at least two, or leave the row out"
            )
    return lists


def _grades(rows: Rows, counts: Sequence[int]) -> list[list[float]]:
    """The grade of each passage, from the index of the right one or from a list of grades."""
    rows.require("label")
    parts = rows.parts("label")
    cells = (written_out(value) for value in rows.table[parts[0]])
    if len(parts) == 1 and not any(isinstance(cell, list) and len(cell) != 1 for cell in cells):
        return [_grades_of_index(rows, row, value, counts) for row, value in enumerate(rows.labels("label"), 1)]
    found = []
    for row, (values, count) in enumerate(zip(rows.label_lists("label"), counts, strict=True), 1):
        if len(values) != count:
            raise rows.error(row, f"it has {count} passages and {len(values)} grades; give one for each")
        given = [number_of(value, rows, row) for value in values]
        if min(given) < 0:
            raise rows.error(row, f"grade {min(given):g} is below 0; give 0 to a passage that is not relevant")
        found.append(given)
    return found


def _grades_of_index(rows: Rows, row: int, value: Any, counts: Sequence[int]) -> list[float]:
    count, index = counts[row - 1], number_of(value, rows, row)
    if index not in range(count):
        raise rows.error(
            row,
            f"label {value!r} is none of its {count} passages, which count from 0; give the index of the right one, or a list "
            "with a grade for each",
        )
    return [float(place == index) for place in range(count)]
