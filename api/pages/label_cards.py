"""What the page for labels asks of a row: its inputs, and a question with large choices, blind to what any model said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from starlette.datastructures import FormData

from api.errors import InvalidInputError
from axformer.wire.answer_sheet import AnswerSheet, ChangedRow

KEYS = "123456789abcdefghijklmnopqrtvwxyz"
"""The keys of classes by their index, without S, which skips, and U, which undoes."""

_SHORT = 28
"""Most letters of a choice that stands beside others."""


@dataclass(frozen=True)
class CardPart:
    """One input of a row."""

    title: str
    """The name of its column; empty where there is only one."""
    text: str
    words: Sequence[str] = ()
    """The same word by word, where some are asked for."""


@dataclass(frozen=True)
class Card:
    """A row as it is asked for."""

    id: str
    kind: Literal["one", "several", "words"]
    """One class or choice, all classes that apply, or a class for each of some words."""
    parts: Sequence[CardPart]
    choices: Sequence[tuple[str, str]]
    """Each with its key, which may be empty."""
    asked: Sequence[int]
    """The words that are asked for: those whose tags some model has changed."""

    @property
    def is_long(self) -> bool:
        """Whether a choice needs a line of its own."""
        return any(len(name) > _SHORT for _, name in self.choices)


def card_of(sheet: AnswerSheet, row: ChangedRow) -> Card:
    """The card of a row."""
    kind: Literal["one", "several", "words"] = "one"
    if isinstance(row.before, list):
        kind = "several" if sheet.task == "multi_label_classification" else "words"
    names = list(sheet.classes) or [str(one) for one in row.inputs.get("choices", ())]
    hidden = ("choices",) if not sheet.classes else ()
    shown = {name: value for name, value in row.inputs.items() if name not in hidden}
    parts = [_part(name if len(shown) > 1 else "", value) for name, value in shown.items()]
    keys = [KEYS[index] if index < len(KEYS) else "" for index in range(len(names))]
    asked = _changed_words(sheet, row) if kind == "words" else ()
    return Card(row.id, kind, parts, list(zip(keys, names, strict=True)), asked)


def _part(name: str, value: Any) -> CardPart:
    words = [str(word) for word in value] if isinstance(value, list) else []
    return CardPart(name, " ".join(words) if words else str(value), words)


def _changed_words(sheet: AnswerSheet, row: ChangedRow) -> list[int]:
    before = row.before
    assert isinstance(before, list), "tags are a list"
    answers = [model.answers[row.place] for model in sheet.models if row.place in model.answers]
    return [place for place, was in enumerate(before) if any(one[place] != was for one in answers)]  # type: ignore[index]


def label_in(sheet: AnswerSheet, row: ChangedRow, sent: FormData) -> int | list[int]:
    """The label that a card has sent back; the words that it did not ask for have the untouched model's tags.

    Raises:
        InvalidInputError: nothing was chosen.
    """
    card = card_of(sheet, row)
    try:
        if card.kind == "several":
            return [int(str(one)) for one in sent.getlist("label")]
        if card.kind == "one":
            return int(str(sent["label"]))
        tags = list(row.before) if isinstance(row.before, list) else []
        for place in card.asked:
            tags[place] = int(str(sent[f"word.{place}"]))
        return tags
    except (KeyError, ValueError):
        raise InvalidInputError("nothing was chosen, or not for every word; go back and choose") from None
