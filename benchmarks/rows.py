"""Data sets as JSON Lines, one dataclass for each form of a line; ``Row`` is the labelled text or pair of texts."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

RowT = TypeVar("RowT")


@dataclass(frozen=True)
class Row:
    """A text or a pair of texts with one label: a class name or a float."""

    text: str
    label: str | float
    text_pair: str | None = None


@dataclass(frozen=True)
class LabelsRow:
    """A text with any number of labels."""

    text: str
    labels: list[str]


@dataclass(frozen=True)
class TagsRow:
    """A sentence in words, each with a tag."""

    tokens: list[str]
    tags: list[str]


@dataclass(frozen=True)
class QuestionRow:
    """A question whose answer stands in the context."""

    question: str
    context: str
    answers: dict[str, Any]
    """``text``: the accepted answers; ``answer_start``: where each begins in the context, in characters."""


@dataclass(frozen=True)
class TextRow:
    """A text to learn the language from."""

    text: str


@dataclass(frozen=True)
class PairRow:
    """A text that searches for another."""

    text: str
    text_pair: str


@dataclass(frozen=True)
class PassagesRow:
    """A query and passages, of which one is right."""

    query: str
    passages: list[str]
    label: int
    """The place of the right one."""


def read_rows(path: Path, form: type[RowT]) -> list[RowT]:
    """All rows of a JSON Lines file whose lines have one form."""
    with path.open(encoding="utf-8") as lines:
        return [form(**json.loads(line)) for line in lines]


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write rows as JSON Lines; a field that is None is left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{_line(row)}\n" for row in rows), encoding="utf-8")


def _line(row: Any) -> str:
    fields = {name: value for name, value in asdict(row).items() if value is not None}
    order = [name for name in ("text", "text_pair") if name in fields]  # read by people, so the texts come first
    return json.dumps({name: fields[name] for name in [*order, *fields]}, ensure_ascii=False)
