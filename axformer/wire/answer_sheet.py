"""The answers of the models on a path to rows that certify, in ``answers.json``: all that labels are needed for."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from axformer.wire.base import Schema

SHEET = "answers.json"
"""The file in a result."""
NEEDED = "needed.jsonl"
"""The rows in a result whose labels may still matter, without any answer."""
SHEET_FORMAT: Literal["axformer-answers/1"] = "axformer-answers/1"

QUESTIONS = "question_answering"
"""The task whose answers are texts."""
CHOSEN_FROM = ("choices", "passages")
"""The inputs of a row that are the answers to choose from."""
SheetTest = Literal["exact", "betting", "worst_case", "sampled"]
"""The tests that take few labels."""
ROWS_MOST = 10_000_000
"""More than anyone has."""
FAR = 1e38
"""The largest number that an answer or a label may be; what is computed of numbers as large is still a number."""
Number = Annotated[float, Field(ge=-FAR, le=FAR, allow_inf_nan=False)]
Answer = int | Number | str | list[int]
"""A class or choice by its index, 0 or 1 for no and yes; of several classes a 0 or 1 for each, of tags the index of each; to a
question a text as it is compared, in lower case and without articles and punctuation. Of a regression a number."""


def _length(answer: Answer) -> int:
    """How many classes or tags an answer names; -1 for one class or choice alone, -2 for a text, -3 for a number."""
    if isinstance(answer, list):
        return len(answer)
    return {str: -2, float: -3}.get(type(answer), -1)


class ChangedRow(Schema):
    """A row that some model of the path answers otherwise than the untouched one."""

    id: str
    """A digest of its inputs, so that copies have the same and a label can be used again."""
    place: int = Field(ge=0)
    """Its place among the rows that count."""
    inputs: dict[str, Any]
    """What a person reads to label it, by the names of the columns that the task reads."""
    before: Answer
    """The untouched model's answer."""
    label: Answer | None = None
    """The label that came with the data; null if none did."""

    @property
    def choices(self) -> list[str]:
        """The row's own answers to choose from; empty where answers are the same for all rows."""
        return [str(one) for name in CHOSEN_FROM for one in self.inputs.get(name, ())]


class PathAnswers(Schema):
    """The answers of one model of the path, in one form."""

    seq: int
    """The trial that led to it."""
    form: str
    """The form that answered; `compact` for the model in PyTorch."""
    times: float = Field(gt=0.0, allow_inf_nan=False)
    """Operations of the untouched model for each of its own."""
    answers: dict[int, Answer]
    """Its answers by the place of the row, where they are not those of the untouched model."""


class AnswerSheet(Schema):
    """Everything that a certificate of a path follows from, besides labels."""

    format: Literal["axformer-answers/1"] = SHEET_FORMAT
    task: str
    metric: str
    """The metric that is certified, for people."""
    test: SheetTest
    """As in a certificate."""
    classes: list[str]
    """The names of classes or tags by their index; empty where answers are choices."""
    points: float = Field(gt=0.0, le=100.0)
    """How far the metric may fall, in hundredths."""
    rows: int = Field(ge=1, le=ROWS_MOST)
    """All rows that count, copies of an input once; the answers of those that are not in `changed` did not change."""
    unlabelled: int = Field(ge=0)
    """Those of them that came without a label."""
    before_training: bool = False
    """Whether the model of the result was trained after these answers, which then say nothing of it."""
    chunks: list[int] = Field(default_factory=list)
    """For `worst_case`: the chunks of each row, those that the untouched model finds and those that a known label has."""
    variance: float = Field(default=0.0, ge=0.0, le=FAR**2, allow_inf_nan=False)
    """For `sampled`: of the untouched model's answers to all rows; a point is a hundredth of it."""
    changed: list[ChangedRow]
    models: list[PathAnswers]
    """In the order of their tests, form after form."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """A sheet may come from a process that nobody trusts."""
        rows = {row.place: row for row in self.changed}
        if not len(rows) == len(self.changed) == len({row.id for row in self.changed}) or self.unlabelled > self.rows:
            raise ValueError("rows have a place or an id in common")
        if any(place >= self.rows for place in rows):
            raise ValueError("a row lies beyond the last")
        if any(isinstance(row.before, str) != (self.task == QUESTIONS) for row in self.changed):
            raise ValueError("questions alone are answered by texts")
        if any(isinstance(row.before, float) != (self.test == "sampled") for row in self.changed):
            raise ValueError("numbers are tested by labels that are drawn")
        shapes = {place: _length(row.before) for place, row in rows.items()}
        labels = [(row.place, row.label) for row in self.changed if row.label is not None]
        answers = [one for model in self.models for one in model.answers.items()]
        if any(shapes.get(place) != _length(answer) for place, answer in (*labels, *answers)):
            raise ValueError("an answer is of no row, or of another length than the untouched model's")
        if len(self.chunks) != (self.rows if self.test == "worst_case" else 0) or min(self.chunks, default=0) < 0:
            raise ValueError("chunks are not counted for each row")
        tags = range(len(self.classes))
        known = [row.before for row in self.changed] + [one for _, one in (*labels, *answers)]
        if self.test == "worst_case" and any(not isinstance(one, list) or not set(one) <= set(tags) for one in known):
            raise ValueError("an answer has a tag that is none of the classes")
        return self
