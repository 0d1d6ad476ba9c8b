"""The words of tagged sentences as a byte-level tokenizer had them in training: with a space before each, or without.

Such a tokenizer has other tokens for a word behind a space. Transformers 4 refused words without spaces for most of these
tokenizers, so training scripts set ``add_prefix_space``, and many of them only there: the files that go with the model do not
say it. The model does: it answers words as it learned them.
"""

import inspect
import json
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer

from axformer.data.batches import batched
from axformer.data.encoding import TokenLimits
from axformer.data.rows import Rows
from axformer.devices import batch_tokens_of
from axformer.intake.companions import Companions
from axformer.intake.names import TOKENIZER, TOKENIZER_CONFIG
from axformer.intake.tokenizer_files import PREFIX_SPACE
from axformer.tasks.token_classification import TokenClassification

if TYPE_CHECKING:
    from axformer.intake.checkpoint import Checkpoint

ROWS = 64
"""Rows on which both readings are compared."""


def with_word_spaces(checkpoint: "Checkpoint", rows: Rows) -> "Checkpoint":
    """The checkpoint with a space before each word if its tokenizer has none there and the model knows words with one better.

    Args:
        rows: the deciding rows, with their tags.

    Raises:
        DataError: a row or a tag cannot be read.
    """
    if checkpoint.task.name != TokenClassification.name or not rows.has("tags"):
        return checkpoint
    table = json.loads(checkpoint.tokenizer.backend_tokenizer.to_str()) if checkpoint.tokenizer.is_fast else {}
    splits = table.get("pre_tokenizer") or {}
    spaceless = [one for one in (splits, *splits.get("pretokenizers", ())) if one.get(PREFIX_SPACE) is False]
    if not spaceless:
        return checkpoint
    spaceless[0][PREFIX_SPACE] = True
    spaced = _with_table(checkpoint, table)
    some = rows.at(list(range(min(len(rows), ROWS))))
    return spaced if _loss(spaced, some) < _loss(checkpoint, some) else checkpoint


def _with_table(checkpoint: "Checkpoint", table: dict[str, Any]) -> "Checkpoint":
    """The checkpoint with another ``tokenizer.json``, in memory and in the files of its results."""
    tokenizer, files = copy(checkpoint.tokenizer), dict(checkpoint.companions.files)
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(table))
    tokenizer.add_prefix_space = True
    settings = json.loads(files[TOKENIZER_CONFIG]) | {PREFIX_SPACE: True}
    table |= {"padding": None, "truncation": None}  # which belong to calls
    files |= {
        name: json.dumps(one, ensure_ascii=False).encode()
        for name, one in ((TOKENIZER, table), (TOKENIZER_CONFIG, settings))
    }
    note = (
        "the model knows words with a space before them, as transformers 4 asked of taggers with such a tokenizer, and its "
        "files do not say so: add_prefix_space=True is set, here and in the result"
    )
    companions = Companions(files, checkpoint.companions.notes)
    return replace(checkpoint, tokenizer=tokenizer, companions=companions, notes=(*checkpoint.notes, note))


@torch.inference_mode()
def _loss(checkpoint: "Checkpoint", rows: Rows) -> float:
    """The mean loss of the model on some rows, cut to what it takes."""
    model, task, tokenizer = checkpoint.model, checkpoint.task, checkpoint.tokenizer
    limits = TokenLimits(checkpoint.architecture.max_tokens(model.config))
    encoded = task.encode(rows, tokenizer, model.config, limits)
    accepted = tuple(inspect.signature(checkpoint.head.model_class.forward).parameters)
    encoded = replace(encoded.only(accepted), padding=checkpoint.padding)
    device = str(model.device)
    samples = batched(encoded, tokenizer, batch_tokens=batch_tokens_of(device), device=device)
    losses = [task.losses(model(**batch.inputs), batch) for batch in samples.batches]
    return float(torch.cat(losses).mean())
