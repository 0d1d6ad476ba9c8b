"""Bulk requests on jobs, and their outcome for each job."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from axformer.wire.base import LABEL_COUNT, LabelKey, LabelValue, Schema
from axformer.wire.states import JobState, StateWord

BULK_MOST = 500
"""Jobs of one request: their rows are locked together, for about a millisecond each."""
_ID_LENGTH = 64  # ids have 36 characters

JobId = Annotated[str, StringConstraints(min_length=1, max_length=_ID_LENGTH)]


class BulkCancel(Schema):
    """The jobs to cancel: those that match all given filters."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"labels": {"project": "reviews"}, "states": ["queued", "paused"]}]}
    )

    ids: list[JobId] | None = Field(default=None, min_length=1, max_length=BULK_MOST)
    """These jobs; the answer reports each."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=LABEL_COUNT)
    """Jobs with all of these labels."""
    states: list[JobState] = Field(default_factory=list)
    """Jobs in one of these states; without ``ids`` and ``states``, all jobs that can be cancelled."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.ids is None and not self.labels and not self.states:
            raise ValueError("names no jobs; give ids, labels or states")
        return self


class BulkErrorRead(Schema):
    """Why a job was left unchanged."""

    code: str
    """``job_not_found`` or ``wrong_state``."""
    detail: str


class BulkItemRead(Schema):
    """The outcome for one job."""

    id: str
    state: StateWord | None
    """Its present state; null if the job does not exist."""
    error: BulkErrorRead | None
    """Null if the job is cancelled or being cancelled."""


class BulkRead(Schema):
    """The outcome for each job."""

    data: list[BulkItemRead]
    has_more: bool
    """Whether more jobs match than are handled at a time; repeat the request for those."""
