"""Many jobs in one request, and what became of each."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from axformer.wire.base import LABEL_COUNT, LabelKey, LabelValue, Schema
from axformer.wire.states import JobState, StateWord

BULK_MOST = 500
"""Jobs of one request: their rows are locked together, for about a millisecond each."""
_ID_LENGTH = 64  # ids have 36 characters

JobId = Annotated[str, StringConstraints(min_length=1, max_length=_ID_LENGTH)]


class BulkCancel(Schema):
    """Which jobs to cancel: those that fit all that is given."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": {"project": "reviews"}, "states": ["queued", "paused"]}]}
    )

    ids: list[JobId] | None = Field(default=None, min_length=1, max_length=BULK_MOST)
    """These jobs; each is answered for."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=LABEL_COUNT)
    """Jobs with all of these labels."""
    states: list[JobState] = Field(default_factory=list)
    """Jobs in one of these states; where neither ``ids`` nor ``states`` are given, those that can be cancelled."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.ids is None and not self.labels and not self.states:
            raise ValueError("names no jobs; give ids, labels or states")
        return self


class BulkErrorRead(Schema):
    """Why a job was left as it is."""

    code: str
    """``job_not_found`` or ``wrong_state``."""
    detail: str


class BulkItemRead(Schema):
    """What became of one job."""

    id: str
    state: StateWord | None
    """As it is now; null where there is no such job."""
    error: BulkErrorRead | None
    """Null where the job is cancelled or is being cancelled."""


class BulkRead(Schema):
    """What became of each job."""

    data: list[BulkItemRead]
    has_more: bool
    """Whether more jobs fit than are taken at a time; send the request again for those."""
