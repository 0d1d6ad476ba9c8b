"""The new head that a base model gets: its task, and the names of its classes."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from axformer.config.nearest import or_all
from axformer.errors import ConfigError, reason_of
from axformer.wire.base import Schema

HeadTask = Literal[
    "classification",
    "multi_label_classification",
    "regression",
    "token_classification",
    "question_answering",
    "multiple_choice",
]
"""The tasks that a new head can have, by the names that reports use."""
HEAD_TASKS: tuple[str, ...] = HeadTask.__args__  # type: ignore[attr-defined]
FEWEST_LABELS: Mapping[str, int] = {"classification": 2, "multi_label_classification": 1, "token_classification": 2}
"""The tasks that have classes, each with the fewest that make sense."""
_MOST_LABELS = 4096
HEAD_DEFAULTS: Mapping[str, Any] = {"epochs": 3, "learning_rate": 5e-5, "teacher": False}
"""How a base model is trained if nothing else is said: three epochs with the defaults of transformers and no teacher, as
Sajjad and others do (section 4). One epoch, the default after a pass, is too little for a head that begins at random."""

ClassName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class NewHead(Schema):
    """A new head for a base model, which has none or that of a language model."""

    task: HeadTask
    """What the model is for."""
    labels: tuple[ClassName, ...] = Field(default=(), max_length=_MOST_LABELS)
    """The names of the classes in the order of their indices, for a task that has classes."""

    @model_validator(mode="after")
    def _has_the_labels_of_its_task(self) -> Self:
        fewest = FEWEST_LABELS.get(self.task)
        if fewest is None and self.labels:
            raise ValueError(f"task {self.task} has no classes; leave labels out")
        if fewest is not None and len(self.labels) < fewest:
            raise ValueError(f"task {self.task} needs the names of at least {fewest} classes, not {len(self.labels)}")
        twice = next((name for name in self.labels if self.labels.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"labels name {twice!r} twice; each class needs a name of its own")
        return self

    def __str__(self) -> str:
        return f"{self.task}={','.join(self.labels)}" if self.labels else self.task


def parse_head(text: str) -> NewHead:
    """Parse ``task``, or ``task=label,label`` for a task with classes.

    Raises:
        ConfigError: it is not that, or the task is unknown.
    """
    task, _, names = text.partition("=")
    labels = [name.strip() for name in names.split(",")] if names else []
    try:
        return NewHead.model_validate({"task": task.strip(), "labels": labels})
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"][:1] == ("task",):
            raise ConfigError(f"head '{task}' is not a task; {or_all(task, HEAD_TASKS)}") from None
        raise ConfigError(f"head '{text[:200]}': {reason_of(first)}; write it like classification=no,yes") from None
