"""A data set as it was read and as the model takes it."""

import hashlib
import json
from dataclasses import dataclass, field

from axformer.batches import Samples, encode
from axformer.checkpoint import Checkpoint
from axformer.columns import Columns
from axformer.config import PassConfig
from axformer.data import Rows
from axformer.errors import ConfigError
from axformer.report import DataSummary


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
        content = json.dumps([self.rows.text, self.rows.text_pair, self.rows.label], ensure_ascii=False)
        digest = hashlib.sha256(content.encode()).hexdigest()
        return DataSummary(rows=len(self.rows), cut=self.samples.cut, sha256=digest)


def prepare(rows: Rows, checkpoint: Checkpoint, config: PassConfig) -> DataSet:
    """Read the labels as the checkpoint's task does, and tokenise.

    Raises:
        DataError: a label or a length does not fit the model.
        ConfigError: ``max_length`` is more than the model takes.
    """
    max_tokens = checkpoint.architecture.max_tokens(checkpoint.model.config)
    if config.max_length is not None and max_tokens is not None and config.max_length > max_tokens:
        raise ConfigError(f"knob max_length={config.max_length}: the model takes at most {max_tokens} tokens")
    samples = encode(
        rows,
        checkpoint.task.labels(rows, checkpoint.model.config),
        checkpoint.tokenizer,
        max_length=config.max_length,
        max_tokens=max_tokens,
        batch_tokens=config.batch_tokens,
        device=str(checkpoint.model.device),
    )
    return DataSet(rows, samples)
