"""The columns of a data file and their roles. Light to import: passing them on needs none of the libraries that read data."""

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

MOST_COLUMNS = 1000
"""Columns of a file that are read."""
JOINT = "+"
"""Joins the names of columns that form a list, as in ``ending0+ending1``."""

USUAL_NAMES = {
    "text": ("text", "sentence", "sentence1", "premise", "question1", "review", "content", "comment", "tweet"),
    "text_pair": ("text_pair", "sentence2", "hypothesis", "question2"),
    "label": ("label", "labels", "class", "target", "category", "sentiment", "score", "rating"),
    "labels": ("labels", "label", "tags"),
    "tokens": ("tokens", "words"),
    "tags": ("tags", "ner_tags", "pos_tags", "upos", "labels"),
    "question": ("question",),
    "context": ("context", "passage"),
    "answers": ("answers",),
    "choices": ("choices", "endings"),
    "query": ("query",),
    "passages": ("passages", "docs", "documents"),
}
"""Column names in public data sets by role; the first that exists is used."""
USUAL_PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("query", "passage"),
    ("question", "passage"),
)
"""The names of two columns of public data sets that are read as a pair of texts."""


ANSWERS = ("label", "labels", "tags", "answers")
"""The fields that hold what a model should answer; data that only calibrates needs none of them."""
OWN_ANSWERS = "your model's own answers"
"""How the labels of rows are read that have none, so that what is measured is which answers stay."""


class Columns(BaseModel):
    """Names of the columns to read; each task reads those that it needs, and ``text_pair`` if the file has it.

    A list may be spread over columns: ``choices=ending0+ending1`` or ``labels=toxic+insult``. A column whose name differs from
    its field must exist.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = "text"
    text_pair: str = "text_pair"
    """The second of two texts; for multiple choice, the beginning of every choice."""
    label: str = "label"
    labels: str = "labels"
    """Multi-label classification: a list of names or indices, comma-separated names, or a 0 or 1 for each class."""
    tokens: str = "tokens"
    """Token classification: a list of words."""
    tags: str = "tags"
    """Token classification: a name or an index for each word; -100 for an ignored word."""
    question: str = "question"
    context: str = "context"
    answers: str = "answers"
    """Question answering: ``{"text": [...], "answer_start": [...]}``, the starts in characters of the context."""
    choices: str = "choices"
    """Multiple choice: a list of endings of ``text``; ``label`` is the index of the right one, or its letter."""
    query: str = "query"
    passages: str = "passages"
    """Reranking: a list of texts; ``label`` is the index of the right one, or a list with a grade for each. Lists called
    ``positive`` and ``negative`` will do for both."""

    def without_answers(self) -> "Columns":
        """The names of all else; what a model should answer need not be there."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in ANSWERS})


@dataclass(frozen=True)
class DataSource:
    """The location of a data set and the names of its columns."""

    path: str
    columns: Columns = field(default_factory=Columns)
