"""Language models: masked ones guess hidden tokens, causal ones the next token."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, DataCollatorForLanguageModeling

from benchmarks.rows import TextRow
from benchmarks.tasks.batches import outputs

_NO_LABEL = -100
_SEED = 0


class MaskedLanguage:
    """15 % of the tokens are hidden, as BERT's authors do it: anew in each batch of training, always the same in measuring."""

    name = "masked-lm"
    form = TextRow
    auto_class = AutoModelForMaskedLM

    def head(self, rows: Sequence[TextRow]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {}

    def length(self, row: TextRow) -> int:
        return len(row.text)

    def encode(self, tokenizer: Any, rows: Sequence[TextRow], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        return _masked(DataCollatorForLanguageModeling(tokenizer), tokenizer, rows, max_length)

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[TextRow], max_length: int) -> dict[str, float]:
        mask = DataCollatorForLanguageModeling(tokenizer, seed=_SEED)
        parts = outputs(model, rows, lambda batch: _masked(mask, tokenizer, batch, max_length))
        return _perplexity([_token_losses(given.logits, inputs["labels"]) for given, inputs in parts])


class CausalLanguage:
    """Every token but the first is guessed from those before it."""

    name = "causal-lm"
    form = TextRow
    auto_class = AutoModelForCausalLM

    def head(self, rows: Sequence[TextRow]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {}

    def length(self, row: TextRow) -> int:
        return len(row.text)

    def encode(self, tokenizer: Any, rows: Sequence[TextRow], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        texts = [row.text for row in rows]
        inputs = tokenizer(texts, truncation=True, max_length=max_length, padding=True, return_tensors="pt")
        labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, _NO_LABEL)
        return {**inputs, "labels": labels}

    def figures(self, model: Any, tokenizer: Any, rows: Sequence[TextRow], max_length: int) -> dict[str, float]:
        parts = outputs(model, rows, lambda batch: self.encode(tokenizer, batch, model.config, max_length))
        return _perplexity([_token_losses(given.logits[:, :-1], inputs["labels"][:, 1:]) for given, inputs in parts])


def _masked(collator: Any, tokenizer: Any, rows: Sequence[TextRow], max_length: int) -> Mapping[str, Tensor]:
    encoded = tokenizer([row.text for row in rows], truncation=True, max_length=max_length)
    samples = [dict(zip(encoded, values, strict=True)) for values in zip(*encoded.values(), strict=True)]
    inputs: Mapping[str, Tensor] = collator(samples)
    return inputs


def _token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return losses[labels.flatten() != _NO_LABEL]


def _perplexity(losses: list[Tensor]) -> dict[str, float]:
    mean = torch.cat(losses).mean().item()
    return {"loss": mean, "perplexity": math.exp(mean)}
