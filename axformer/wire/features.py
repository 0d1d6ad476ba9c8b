"""The content of ``dimensions.json``: what a feature model reads, and what it is worth."""

from typing import Literal

from axformer.wire.base import Schema

FEATURES_FORMAT: Literal["axformer-features/1"] = "axformer-features/1"


class Speed(Schema):
    """Milliseconds of a forward pass for a row, on some of the rows."""

    whole: float
    """Of the checkpoint's model."""
    kept: float
    """Of the feature model."""


class FeaturesFile(Schema):
    """A feature model: a few dimensions of the lowest layers of a model, and a linear classifier on them."""

    format: Literal["axformer-features/1"] = FEATURES_FORMAT
    model_type: str
    task: str
    kind: Literal["class", "truth", "flags", "numbers"]
    """What an answer is: one of the classes, yes or no, some of the classes, or numbers."""
    reads: Literal["position", "words"]
    """Whether there is an answer for each row or for each word, which is read at the last token of the word."""
    labels: tuple[str, ...]
    """Names of the outputs."""
    layers: int
    """Layers that are left of the checkpoint's model; at least one, also where only the embeddings are read."""
    whole_layers: int
    """Layers of the checkpoint's model."""
    dimensions: tuple[str, ...]
    """Ids of the dimensions that are read (``hidden.LAYER.COLUMN``), in the order of the classifier's columns."""
    max_length: int | None
    """Longer rows are cut to this many tokens; null cuts none."""
    padding_side: Literal["left", "right"]
    """On which side short rows are padded."""
    parameters: int
    whole_parameters: int
    metric: str
    """Name of the task's first metric."""
    value: float
    """The metric of the feature model, measured as it is loaded from here."""
    whole_value: float
    """The metric of the checkpoint's model on the same rows."""
    milliseconds: Speed
    sha256: str
    """Digest of the checkpoint's weights."""
