"""A data set as it was read and as the model takes it."""

import inspect
from dataclasses import dataclass, field

from axformer.checkpoint import Checkpoint
from axformer.config import PassConfig
from axformer.data.batches import Samples, batched
from axformer.data.columns import Columns
from axformer.data.encoding import Encoded
from axformer.data.rows import Rows
from axformer.devices import batch_tokens_of
from axformer.errors import ConfigError


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


def prepare(rows: Rows, checkpoint: Checkpoint, config: PassConfig) -> DataSet:
    """Read the columns that the checkpoint's task needs, tokenise, and make batches.

    Raises:
        DataError: a column is missing, or a label or a length does not fit the model.
        ConfigError: ``max_length`` is more than the model takes.
    """
    device = str(checkpoint.model.device)
    batch_tokens = config.batch_tokens or batch_tokens_of(device)
    encoded = encode(rows, checkpoint, config)
    return DataSet(rows, batched(encoded, checkpoint.tokenizer, batch_tokens=batch_tokens, device=device))


def encode(rows: Rows, checkpoint: Checkpoint, config: PassConfig) -> Encoded:
    """Read the columns that the checkpoint's task needs, and tokenise; raises what :func:`prepare` raises."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    max_tokens = checkpoint.architecture.max_tokens(model.config)
    if config.max_length is not None and max_tokens is not None and config.max_length > max_tokens:
        raise ConfigError(f"knob max_length={config.max_length}: the model takes at most {max_tokens} tokens")
    encoded = checkpoint.task.encode(rows, tokenizer, model.config, config.max_length, max_tokens)
    return encoded.only(tuple(inspect.signature(model.forward).parameters))
