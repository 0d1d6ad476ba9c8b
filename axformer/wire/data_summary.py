"""What a report says of a data set, and of weights that were fitted to one."""

from typing import Annotated

from pydantic import Field

from axformer.wire.base import Schema
from axformer.wire.bounds import Figures, Text, Word


class DataSummary(Schema):
    """One data set that was used."""

    rows: int
    cut: int
    """Number of rows that were cut at max_length."""
    sha256: Word
    """Digest of the columns that a task may read."""
    labels_as: Text | None = None
    """How the column of labels was read, from its first row to its last; null where there was nothing to decide, of training
    data, and in reports of earlier versions."""
    shares: Annotated[dict[Word, float], Field(max_length=100)] | None = None
    """How often each class is the right one, the most frequent first, 100 at most; null where answers are no classes, of
    training data, and in reports of earlier versions."""
    doubt: Text | None = None
    """Why figures on held-out data or confirming rows say nothing of new rows: labels seem to count the classes in another
    order than the model, or rows are also among those that the result was made with. Null where nothing speaks against them, of
    other data, and in reports of earlier versions."""
    guess: Figures | None = None
    """What guessing gets: its mean `loss`, and the `accuracy` of the most frequent answer where there is one; null of training
    data and in reports of earlier versions."""


ENOUGH_TOKENS = 10
"""Calibration tokens for each unknown of a fit; fewer are told. With 3.7 MPNet-base lost a point more on held-out rows than on
those that it was calibrated with."""


class Refitted(Schema):
    """The weights that were fitted in closed form to what the untouched model computes, without labels."""

    blocks: int
    """Blocks whose output projection was fitted."""
    bias_only: int
    """Blocks of which only the bias was fitted, because more would not have held on other tokens."""
    tokens: int
    """Calibration tokens."""
    tokens_per_unknown: float | None
    """Calibration tokens for each weight of an output, in the block that has the fewest, also where only its bias was fitted;
    null where no block has columns left."""
    data: DataSummary | None = None
    """The rows of `calibrate`, whose labels were not looked at; null where those that decide calibrated."""

    @property
    def has_few_tokens(self) -> bool:
        """Whether more rows would help."""
        return self.tokens_per_unknown is not None and self.tokens_per_unknown < ENOUGH_TOKENS
