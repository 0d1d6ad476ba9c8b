"""Which columns of a data file hold what."""

from pydantic import BaseModel, ConfigDict


class Columns(BaseModel):
    """Names of the columns to read; each task reads those that it needs, and ``text_pair`` where the file has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = "text"
    text_pair: str = "text_pair"
    label: str = "label"
    labels: str = "labels"
    """Multi-label classification: a list of names or indices."""
    tokens: str = "tokens"
    """Token classification: a list of words."""
    tags: str = "tags"
    """Token classification: a name or an index for each word."""
    question: str = "question"
    context: str = "context"
    answers: str = "answers"
    """Question answering: ``{"text": [...], "answer_start": [...]}``, the starts in characters of the context."""
    choices: str = "choices"
    """Multiple choice: a list of endings of ``text``; ``label`` is the index of the right one."""
