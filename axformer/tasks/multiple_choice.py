"""Multiple choice: which of several endings fits a text."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from string import ascii_uppercase
from typing import Any

import numpy as np

from axformer.data.encoding import Encoded, TokenLimits, tokenize, without_labels
from axformer.data.labels import ClassNames, LabelColumn
from axformer.data.rows import Rows
from axformer.tasks.classification import OneOfSeveral
from axformer.tasks.guess import Guess, guess_of_choices
from axformer.tasks.standing import Choices, LabelAgreement, agreement_of


class MultipleChoice(OneOfSeveral):
    """The model reads the text with each choice."""

    name = "multiple_choice"
    pipeline = None

    def encode(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:
        count = self._count(rows.text_lists("choices"), rows)
        read = LabelColumn(rows.labels("label"), rows, range(1, len(rows) + 1)).read(_letters(count))
        encoded = self.inputs(rows, tokenizer, config, limits)
        return replace(encoded, labels=read.indices, labels_as=read.reading, notes=read.notes)

    def inputs(self, rows: Rows, tokenizer: Any, config: Any, limits: TokenLimits) -> Encoded:  # noqa: ARG002
        """The texts with all their choices, without a word of which is right."""
        choices = rows.text_lists("choices")
        count = self._count(choices, rows)
        texts = [text for text in rows.texts("text") for _ in range(count)]
        begins = [f"{text} " for text in rows.texts("text_pair")] if rows.has("text_pair") else [""] * len(rows)
        endings = [begin + ending for begin, row in zip(begins, choices, strict=True) for ending in row]
        row_of = [row for row in range(len(rows)) for _ in range(count)]
        encoding, cut = tokenize(rows, tokenizer, texts, endings, limits, sample_of_row=row_of)
        return without_labels({name: _nested(values, count) for name, values in encoding.items()}, cut=cut)

    def _count(self, choices: list[list[str]], rows: Rows) -> int:
        count = len(choices[0])
        if count < 2:
            raise rows.error(1, f"it has {count} choices; give at least two")
        for row, endings in enumerate(choices, start=1):
            if len(endings) != count:
                raise rows.error(
                    row, f"it has {len(endings)} choices, row 1 has {count}; give all rows the same number"
                )
        return count

    def metrics(self, statistics: np.ndarray) -> dict[str, float]:
        return {"accuracy": float(self.correct(statistics).mean())}

    def guess(self, encoded: Encoded, config: Any) -> Guess:  # noqa: ARG002 - the protocol's signature
        expected, names = np.array(encoded.labels), [f"choice {place}" for place in range(encoded.choices)]
        return guess_of_choices(expected, np.arange(len(expected)), encoded.samples, names)

    def standing(self, answers: Sequence[int], encoded: Encoded, config: Any) -> LabelAgreement:  # noqa: ARG002
        expected, predicted = np.array(encoded.labels), np.array(answers)
        choices = Choices(expected, predicted, np.arange(len(expected)), encoded.samples, encoded.choices)
        causes = (
            "whether the labels count the choices from 0 and in the order of the column, whether text and choices are the "
            "right columns, and whether the model was fine-tuned for this"
        )
        return LabelAgreement(causes, (expected == predicted).astype(float), agreement_of(choices), is_bar=False)


def _letters(count: int) -> ClassNames:
    """The choices as letters, as RACE and other data sets name them."""
    letters = ascii_uppercase if count <= len(ascii_uppercase) else map(str, range(count))
    return ClassNames(tuple(islice(letters, count)), f"rows of {count} choices")


def _nested(values: list[Any], count: int) -> list[list[Any]]:
    return [values[start : start + count] for start in range(0, len(values), count)]
