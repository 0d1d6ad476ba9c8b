"""Labels of the changed answers of a result: what is asked for, what people say, and what is certified by it."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from axformer.wire.answer_sheet import Number
from axformer.wire.base import NAME_LENGTH, Schema

_Label = Annotated[str, StringConstraints(max_length=10 * NAME_LENGTH)]
_Text = Annotated[str, StringConstraints(max_length=NAME_LENGTH)]


class LabelCreate(Schema):
    """Your label of one row."""

    id: _Text
    """The row's, as ``needed`` has it."""
    label: int | Number | _Label | list[int | _Label] | None
    """The name of a class or its index; of several classes those that apply, of words a tag for each; the answer to a question;
    a number. Null withdraws yours."""


class LabelsCreate(Schema):
    """Your labels of some rows, in the place of those that you gave before."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"data": [{"id": "5f0c2a9e71d4b836", "label": "positive"}]}]}
    )

    data: list[LabelCreate] = Field(min_length=1)


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
    """The most that it still takes; 0 where it is out of reach."""
    further: dict[int, int]
    """The most labels that decide about each further model and those before it, by its trial."""


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
        return max(reversed(self.forms), key=lambda form: form.times or 0.0, default=None)

    @property
    def told(self) -> str:
        """The best certificate in a few words; empty without one."""
        times, by = self.best and self.best.times, f" by {self.labels:,} labels" if self.labels else ""
        return f"{times:.2f} times fewer operations certified{by}" if times else ""


class NeededRow(Schema):
    """A row that is asked for."""

    id: str
    inputs: dict[str, Any]
    labels: list[dict[str, Any]] | None = None
    """Where people disagree, what each said: ``by``, the name of the key, ``label`` and ``at``."""


class NeededRead(LabellingRead):
    """The rows whose labels may certify more, in the order in which they are asked; without the models' answers."""

    task: str
    classes: list[str]
    """The names that labels have; empty where a row names its choices."""
    data: list[NeededRow]
    disagreements: list[NeededRow]
    """The rows on which people disagree."""
