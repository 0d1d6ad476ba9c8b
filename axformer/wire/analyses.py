"""Analyses as clients post them."""

from collections.abc import Mapping
from typing import Self

from pydantic import ConfigDict, Field

from axformer.config.common import LARGEST_INTEGER
from axformer.wire.analysis import ReportName
from axformer.wire.base import Schema
from axformer.wire.jobs import Posted
from axformer.wire.references import CheckpointRef, DataRef, Reference

ROWS_LEAST, ROWS_MOST = 2, 1_000_000
PARTS = ("checkpoint", "validation", "train", "against")
"""The fields of an analysis that refer to content."""


class AnalysisRun(Schema):
    """Which model to analyze, on which data."""

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

    def sources(self) -> dict[str, Reference]:
        """What the analysis reads, by field."""
        given = {part: getattr(self, part) for part in PARTS}
        return {part: source for part, source in given.items() if source is not None}

    def located(self, uris: Mapping[str, str]) -> Self:
        """The same analysis with its models and data elsewhere, by field."""
        sources = self.sources()
        return self.model_copy(
            update={part: sources[part].model_copy(update={"uri": uri}) for part, uri in uris.items()}
        )


class AnalysisCreate(Posted, AnalysisRun):
    """Which model to analyze, on which data, as a job."""

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
