"""A data set as it was read and as the model takes it."""

import inspect
from dataclasses import dataclass, field

from axformer.batches import Samples, batched
from axformer.checkpoint import Checkpoint
from axformer.columns import Columns
from axformer.config import PassConfig
from axformer.errors import ConfigError
from axformer.report import DataSummary
from axformer.rows import Rows


@dataclass(frozen=True)
class DataSource:
    """Where a data set is and how its columns are called."""

    path: str
    columns: Columns = field(default_factory=Columns)


@dataclass(frozen=True)
class DataSet:
    """Rows with their tokenised form."""

    rows: Rows
    samples: Samples

    def summary(self) -> DataSummary:
        """Size and digest."""
        return DataSummary(rows=len(self.rows), cut=self.samples.cut, sha256=self.rows.digest())


def prepare(rows: Rows, checkpoint: Checkpoint, config: PassConfig) -> DataSet:
    """Read the columns that the checkpoint's task needs, and tokenise.

    Raises:
        DataError: a column is missing, or a label or a length does not fit the model.
        ConfigError: ``max_length`` is more than the model takes.
    """
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    max_tokens = checkpoint.architecture.max_tokens(model.config)
    if config.max_length is not None and max_tokens is not None and config.max_length > max_tokens:
        raise ConfigError(f"knob max_length={config.max_length}: the model takes at most {max_tokens} tokens")
    encoded = checkpoint.task.encode(rows, tokenizer, model.config, config.max_length, max_tokens)
    accepted = tuple(inspect.signature(model.forward).parameters)
    samples = batched(encoded.only(accepted), tokenizer, batch_tokens=config.batch_tokens, device=str(model.device))
    return DataSet(rows, samples)
