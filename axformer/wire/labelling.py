"""Labels of the changed answers of a result: what is asked for, what people say, and what is certified by it."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from axformer.wire.base import NAME_LENGTH, Schema

_Text = Annotated[str, StringConstraints(max_length=NAME_LENGTH)]


class LabelCreate(Schema):
    """Your label of one row."""

    id: _Text
    """The row's, as ``needed`` has it."""
    label: int | _Text | list[int | _Text] | None
    """The name of a class or its index; of several classes those that apply, of tags or words one for each. Null withdraws
    yours."""


class LabelsCreate(Schema):
    """Your labels of some rows, in the place of those that you gave before."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [{"id": "5f0c2a9e71d4b836", "label": "positive"}]}]}
    )

    data: list[LabelCreate] = Field(min_length=1)


class FurtherRead(Schema):
    """A model that is not certified yet."""

    seq: int
    """The trial that led to it."""
    times: float
    """Operations of the untouched model for each of its own."""
    labels: int
    """The most labels that decide about it and those before it."""


class FormStandingRead(Schema):
    """How far a form is certified by the labels that there are."""

    form: str
    certificate: dict[str, Any]
    """As in a report; ``sentence`` is for people, ``kept`` is the trial of the certified model."""
    times: float | None
    """Operations of the untouched model for each of the certified one's; null where none is certified."""
    certified: list[int]
    """The trials of all models that are certified."""
    next: str
    """What the next certificate takes, for people."""
    best_p_value: float | None
    """Where no labels can certify the next model: its p-value if all were in its favour; above 0.05."""
    labelled: int
    """Labels that the next model has of those that count for it."""
    left: int
    """The most labels that it still takes; 0 where it is out of reach."""
    further: list[FurtherRead]


class LabelExportRead(Schema):
    """The export of a model that labels have certified and that is smaller than the job's result."""

    seq: int
    times: float
    job: str | None
    """The job that makes it; null where it could not be queued, which is tried again with the next label."""
    error: str | None = None
    """Why it could not be queued."""


class LabellingRead(Schema):
    """What is certified by the labels that there are."""

    labels: int
    """Rows that have a label on which people agree."""
    disagreed: int
    """Rows on which people disagree; they count as unlabelled."""
    forms: list[FormStandingRead]
    exports: list[LabelExportRead] = Field(default_factory=list)

    @property
    def best(self) -> FormStandingRead | None:
        """The form that is certified furthest along the path, the last of those alike; None if none is."""
        found = [form for form in self.forms if form.times is not None]
        return max(reversed(found), key=lambda form: form.times or 0.0, default=None)

    @property
    def told(self) -> str:
        """The best certificate in a few words; empty without one."""
        if self.best is None:
            return ""
        by = f" by {self.labels:,} label{'' if self.labels == 1 else 's'}" if self.labels else ""
        return f"{self.best.times:.2f} times fewer operations certified{by}"


class NeededRow(Schema):
    """A row that is asked for."""

    id: str
    inputs: dict[str, Any]


class LabelRead(Schema):
    """What somebody said of a row."""

    by: str
    """The name of the key, or its id."""
    label: Any
    """By the names of classes."""
    at: datetime


class DisagreementRead(NeededRow):
    """A row on which people disagree."""

    labels: list[LabelRead]


class NeededRead(LabellingRead):
    """The rows whose labels may certify more, in the order in which they are asked; without the models' answers."""

    task: str
    classes: list[str]
    """The names that labels have; empty where a row names its choices."""
    data: list[NeededRow]
    disagreements: list[DisagreementRead]
