"""The models on the path of a pass."""

from pydantic import ConfigDict, Field

from axformer.wire.base import Name, Schema
from axformer.wire.jobs import HubToken
from axformer.wire.report import PathPoint
from axformer.wire.run import FormName, usual_forms


class PathRead(Schema):
    """Every acceptance gives a model; in a pass, each contains the following ones."""

    kept: int | None
    """``seq`` of the job's result; null before the job has succeeded."""
    data: list[PathPoint]
    """The untouched model first; empty before the job has succeeded."""


class ExportCreate(Schema):
    """How to export a model on the path of a job. Everything else is as in that job."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"forms": ["compact", "onnx"]}]})

    name: Name | None = None
    """Name of the new job; by default it names the trial and the job."""
    forms: list[FormName] = Field(default_factory=usual_forms, min_length=1)
    """Forms of the result; the compact one is always included."""
    hub_token: HubToken | None = None
    """A hub token as for a job: tokens are deleted when a job ends, so it may be needed again."""
