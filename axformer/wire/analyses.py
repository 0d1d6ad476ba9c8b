"""Analyses as clients post them."""

from pydantic import ConfigDict, Field

from axformer.config.common import LARGEST_INTEGER
from axformer.wire.analysis import ReportName
from axformer.wire.base import LABEL_COUNT, LabelKey, LabelValue, Name, Schema
from axformer.wire.devices import Device
from axformer.wire.jobs import PRIORITY_MOST, HubToken
from axformer.wire.references import CheckpointRef, DataRef
from axformer.wire.webhooks import Webhook

ROWS_LEAST, ROWS_MOST = 2, 1_000_000


class AnalysisCreate(Schema):
    """Which model to analyze, on which data."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "where reviews are redundant",
                    "checkpoint": "hf://acme/bert-reviews@main",
                    "validation": "s3://acme-data/reviews/dev.jsonl",
                    "train": "s3://acme-data/reviews/train.jsonl",
                    "against": "hf://acme/bert-base",
                    "reports": ["layers", "heads", "drift"],
                    "rows": 1000,
                }
            ]
        }
    )

    name: Name
    """For people; need not be unique."""
    checkpoint: CheckpointRef
    validation: DataRef
    """Labelled rows to measure on."""
    train: DataRef | None = None
    """Other labelled rows, which linear probes learn from; without them there are no probes, and no report ``features``."""
    against: CheckpointRef | None = None
    """The model that the checkpoint was trained from, with or without a head; the report ``drift`` compares the two."""
    reports: list[ReportName] | None = Field(default=None, min_length=1)
    """Reports to make; without it all that the inputs allow."""
    rows: int | None = Field(default=None, strict=True, ge=ROWS_LEAST, le=ROWS_MOST)
    """Most rows of each data set, drawn at random; 2,000 by default."""
    max_length: int | None = Field(default=None, strict=True, ge=2, le=LARGEST_INTEGER)
    """Cut inputs to this many tokens; without it inputs that are too long for the model are refused."""
    priority: int = Field(default=0, strict=True, ge=-PRIORITY_MOST, le=PRIORITY_MOST)
    """As of a job."""
    device: Device = Device.ANY
    """As of a job."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=LABEL_COUNT)
    """Words to find jobs by."""
    webhook: Webhook | None = None
    """As of a job."""
    hub_token: HubToken | None = None
    """As of a job."""
