"""Exports of models on a job's path."""

from pydantic import ConfigDict, Field

from axformer.wire.base import Name, Schema
from axformer.wire.jobs import FormName, HubToken, usual_forms


class ExportCreate(Schema):
    """How a model on the path of a job is handed out. All else is as in that job."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"forms": ["compact", "onnx"]}]})

    name: Name | None = None
    """Of the new job; by default it says which trial of which job."""
    forms: list[FormName] = Field(default_factory=usual_forms, min_length=1)
    """As of a job; the compact one is always there."""
    hub_token: HubToken | None = None
    """As of a job: tokens are forgotten when a job ends, so where the hub asks for one it is needed again."""
