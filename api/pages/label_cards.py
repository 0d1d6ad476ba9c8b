"""What the page for labels asks of a row: its inputs, and a question with large choices, blind to what any model said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import FormData

from api.errors import InvalidInputError
from axformer.scores.labelling import asked_words, choices_of
from axformer.wire.answer_sheet import CHOSEN_FROM, AnswerSheet, ChangedRow

KEYS = "123456789abcdefghijklmnopqrtvwxyz"
"""The keys of classes by their index, without S, which skips, and U, which undoes."""

_SHORT = 28
"""Most letters of a choice that stands beside others."""


@dataclass(frozen=True)
class Card:
    """A row as it is asked for."""

    id: str
    kind: Literal["one", "several", "words"]
    """One class or choice, all classes that apply, or a class for each of some words."""
    parts: Sequence[tuple[str, str | list[str]]]
    """Its inputs, each a text or words, with the name of the column; the name is empty where there is only one."""
    choices: Sequence[tuple[str, str]]
    """Each with its key, which may be empty."""
    asked: Sequence[int] = ()
    """The words that are asked for."""

    @property
    def is_long(self) -> bool:
        """Whether a choice needs a line of its own."""
        return any(len(name) > _SHORT for _, name in self.choices)


def card_of(sheet: AnswerSheet, row: ChangedRow) -> Card:
    """The card of a row."""
    names = choices_of(sheet, row)
    shown = {name: value for name, value in row.inputs.items() if sheet.classes or name not in CHOSEN_FROM}
    parts = [(name if len(shown) > 1 else "", value) for name, value in shown.items()]
    choices = [(KEYS[index : index + 1], name) for index, name in enumerate(names)]
    if not isinstance(row.before, list):
        return Card(row.id, "one", parts, choices)
    if sheet.task == "multi_label_classification":
        return Card(row.id, "several", parts, choices)
    return Card(row.id, "words", parts, choices, asked_words(sheet, row))


def label_in(sheet: AnswerSheet, row: ChangedRow, sent: FormData) -> int | str | list[int]:
    """The label that a card has sent back; the words that it did not ask for have the untouched model's tags.

    Raises:
        InvalidInputError: nothing was chosen.
    """
    card = card_of(sheet, row)
    try:
        if card.kind == "several":
            return [int(str(one)) for one in sent.getlist("label")]
        if card.kind == "one":
            index = int(str(sent["label"]))
            return dict(enumerate(choices_of(sheet, row)))[index] if isinstance(row.before, str) else index
        tags = list(row.before) if isinstance(row.before, list) else []
        for place in card.asked:
            tags[place] = int(str(sent[f"word.{place}"]))
        return tags
    except (LookupError, ValueError):
        raise InvalidInputError("nothing was chosen, or not for every word; go back and choose") from None
