"""A data set: its rows and their encoding for the model."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from axformer.config import RunConfig, reading_config
from axformer.data.batches import Samples, batched
from axformer.data.columns import OWN_ANSWERS
from axformer.data.encoding import Encoded, TokenLimits
from axformer.data.labels import ClassNames, Reading
from axformer.data.rows import Rows
from axformer.devices import batch_tokens_of
from axformer.errors import CheckpointError, ConfigError, DataError, LibraryPanicError, first_line, panics_as_errors
from axformer.intake.checkpoint import Checkpoint
from axformer.pulse import beat
from axformer.tasks.embedding import SentenceEmbedding
from axformer.wire.data_summary import ENOUGH_TOKENS

TOKENS_PER_NEURON = 2 * ENOUGH_TOKENS
"""Calibration tokens for each neuron of a block, of which each is an unknown of a fit."""
SHARE = 0.05
"""A share of common or repeated rows that is reported. Fewer hardly move a metric: a model that is right on every one of
them, and on nine in ten of the others, gains half a point by them."""
LEAST_ROWS = 1000
"""Fewest calibration rows that are drawn, since tokens of one row are alike (``docs/compress.md``)."""


@dataclass(frozen=True)
class DataSet:
    """Rows with their tokenized form."""

    rows: Rows
    samples: Samples


def prepare(rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """Read the columns that the checkpoint's task needs, tokenize them, and make batches.

    The resulting rows are those that became samples. They record how their labels were read, so that parts of them are read in
    the same way.

    Raises:
        DataError: a column is missing, or a label or a length does not fit the model.
        ConfigError: ``max_length`` is more than the model takes.
    """
    return _prepared(rows, encode(rows, checkpoint, config), checkpoint, config)


def prepare_like(other: DataSet, rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """Prepare more data of the same kind: ambiguous labels are read as in the other set.

    Raises:
        DataError: as in :func:`encode_like`.
    """
    return _prepared(rows, encode_like(other, rows, checkpoint, config), checkpoint, config)


def encode_like(other: DataSet, rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> Encoded:
    """Encode more data of the same kind, as :func:`encode` does: ambiguous labels are read as in the other set.

    Raises:
        DataError: as in :func:`prepare`, or one set holds pairs of texts and the other does not, or labels are ambiguous, being
            names in one file and indices in the other.
    """
    if not isinstance(checkpoint.task, SentenceEmbedding):  # which embeds texts and pairs alike
        _check_pairs(other, rows)
    encoded = encode(replace(rows, labels_as=other.rows.labels_as), checkpoint, config)
    here, there = encoded.labels_as, other.rows.labels_as
    if here != there and {here, there} == {Reading.NAMES, Reading.INDICES}:
        classes = ClassNames.of(checkpoint.model.config)
        if classes.are_numbers:
            raise DataError(
                f"labels of data file '{rows.source}' are {here}, those of '{other.rows.source}' are {there}, and the "
                f"model knows {classes}; write them alike"
            )
    return encoded


def _check_pairs(other: DataSet, rows: Rows) -> None:
    """Check that both sets hold pairs of texts or neither does."""
    if not other.rows.has("text"):
        return
    if other.rows.has("text_pair"):
        rows.require("text_pair")
    elif rows.has("text_pair"):
        raise DataError(
            f"data file '{rows.source}' has second texts in its column '{rows.columns.text_pair}', and '{other.rows.source}' "
            "has none; give both the same columns"
        )


def _prepared(rows: Rows, encoded: Encoded, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    rows = replace(rows if encoded.kept is None else rows.at(encoded.kept), labels_as=encoded.labels_as)
    data = DataSet(rows, _batched(encoded, checkpoint, config))
    if not isinstance(checkpoint.task, SentenceEmbedding):
        return data
    vectors = _vectors(checkpoint, data.samples)
    return relabelled(data, vectors, checkpoint, config, labels_as=OWN_ANSWERS)


@torch.inference_mode()
def _vectors(checkpoint: Checkpoint, samples: Samples) -> list[Tensor]:
    """The untouched model's vector of each model row."""
    found: dict[int, Tensor] = {}
    for batch in samples.batches:
        beat()
        answers = checkpoint.task.answers(checkpoint.model(**batch.inputs), batch)
        found |= dict(zip(batch.rows.tolist(), answers, strict=True))
    return [found[row] for row in range(len(found))]


def prepare_inputs(other: Rows | None, rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """Prepare data without a look at its labels, which it need not have.

    Args:
        other: more rows of the same kind; None if there are none.

    Raises:
        DataError: a column of inputs is missing, the second of two texts too where the other set has it, or a length does not
            fit the model.
    """
    is_of_texts = isinstance(checkpoint.task, SentenceEmbedding)
    if other is not None and not is_of_texts and other.has("text") and other.has("text_pair"):
        rows.require("text_pair")
    encoded = _encoded(checkpoint.task.inputs, rows, checkpoint, config)
    return DataSet(rows, _batched(encoded, checkpoint, config))


def relabelled(
    data: DataSet, labels: list[Any], checkpoint: Checkpoint, config: RunConfig, labels_as: str | None = None
) -> DataSet:
    """The same inputs with other labels, one per model row."""
    encoded = replace(data.samples.encoded, labels=labels, labels_as=labels_as, alike=None)
    return replace(data, samples=_batched(encoded, checkpoint, config))


def drawn_to_calibrate(data: DataSet, checkpoint: Checkpoint, config: RunConfig) -> DataSet:
    """As many of the rows as ``calibrate_rows`` says, drawn at random and in the order of the file, no input twice; the same
    data set if these are all. Their labels are left out."""
    rows, inputs = data.rows, len(set(data.samples.encoded.inputs))
    drawn = sorted(needed_to_calibrate(data.samples.encoded, checkpoint.dimensions.intermediate_size, config))
    if len(drawn) == len(rows):
        return data
    part = prepare_inputs(rows, rows.at(drawn), checkpoint, config)
    if len(drawn) == inputs and len(rows) - inputs <= SHARE * len(rows):
        return part  # a few copies fewer
    how = "drawn at random" if len(drawn) < inputs else "each input once"
    note = (
        f"weights are fitted to {len(drawn):,} of its {len(rows):,} rows, {how}; they have "
        f"{int(part.samples.lengths.sum()):,} tokens (calibrate_rows gives another number)"
    )
    encoded = replace(part.samples.encoded, notes=(*part.samples.encoded.notes, note))
    return replace(part, samples=replace(part.samples, encoded=encoded))


def needed_to_calibrate(encoded: Encoded, neurons: int, config: RunConfig) -> list[int]:
    """The indices of the samples that calibrate, in a random order: the first copies of some inputs.

    Args:
        neurons: of a block of the model.
    """
    different = torch.tensor(sorted(set(encoded.inputs)))
    order = different[torch.randperm(len(different), generator=torch.Generator().manual_seed(config.seed))]
    count = config.calibrate_rows
    if count is None:
        tokens = torch.zeros(encoded.samples, dtype=torch.int64)
        tokens.index_add_(0, torch.tensor(encoded.sample_of_row), torch.tensor(encoded.lengths))
        enough = int((tokens[order].cumsum(0) < TOKENS_PER_NEURON * neurons).sum()) + 1
        count = max(enough, LEAST_ROWS)
    drawn: list[int] = order[:count].tolist()
    return drawn


def cutting_config(checkpoint: Checkpoint) -> RunConfig:
    """How rows are read where a command takes no knobs: cut at what the model takes."""
    return reading_config({"max_length": checkpoint.architecture.max_tokens(checkpoint.model.config)})


def encode(rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> Encoded:
    """Read the columns that the checkpoint's task needs, and tokenize them; raises what :func:`prepare` raises."""
    return _encoded(checkpoint.task.encode, rows, checkpoint, config)


def _encoded(read: Callable[..., Encoded], rows: Rows, checkpoint: Checkpoint, config: RunConfig) -> Encoded:
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    max_tokens = checkpoint.architecture.max_tokens(model.config)
    if config.max_length is not None and max_tokens is not None and config.max_length > max_tokens:
        raise ConfigError(f"knob max_length={config.max_length}: the model takes at most {max_tokens} tokens")
    try:
        with panics_as_errors():
            encoded = read(
                rows, tokenizer, model.config, TokenLimits(config.max_length, max_tokens, _why(model.config))
            )
    except LibraryPanicError as error:
        raise DataError(
            f"data file '{rows.source}': the checkpoint's tokenizer gives up on it ({first_line(error)}); save the checkpoint "
            "with another tokenizer, or shorten the texts"
        ) from None
    accepted = tuple(inspect.signature(checkpoint.head.model_class.forward).parameters)
    encoded = replace(encoded.only(accepted), padding=checkpoint.padding)
    for name, size in (("input_ids", "vocab_size"), ("token_type_ids", "type_vocab_size")):
        _check_known(encoded.features.get(name, []), name, getattr(model.config, size, None))
    return encoded


def _why(config: Any) -> str:
    dynamic = "dynamic" in ((getattr(config, "rope_parameters", None) or {}).get("rope_type") or "")
    return " (with rope type dynamic, the answer to a longer row depends on the rows before it)" if dynamic else ""


def _batched(encoded: Encoded, checkpoint: Checkpoint, config: RunConfig) -> Samples:
    device = str(checkpoint.model.device)
    batch_tokens = config.batch_tokens or batch_tokens_of(device)
    return batched(encoded, checkpoint.tokenizer, batch_tokens=batch_tokens, device=device)


def _check_known(rows: list[Any], name: str, known: int | None) -> None:
    """Check that the model has an embedding for every id."""
    if not known or not rows:
        return
    choices = (choice for row in rows for choice in (row if isinstance(row[0], list) else [row]))
    most = max(max(choice, default=0) for choice in choices)
    if most >= known:
        raise CheckpointError(
            f"the tokenizer gives {name} up to {most}, the model knows {known} of them; save the model with the tokenizer that "
            "it was trained with"
        )
