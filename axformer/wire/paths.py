"""The models on the path of a pass."""

from axformer.wire.base import Schema
from axformer.wire.report import PathPoint


class PathRead(Schema):
    """Every acceptance is a model; in a pass each contains all that follow."""

    kept: int | None
    """``seq`` of the model that the job gave; null before it has succeeded."""
    data: list[PathPoint]
    """The untouched model first; empty before the job has succeeded."""
