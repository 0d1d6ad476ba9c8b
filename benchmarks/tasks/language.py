"""Language models: masked ones guess hidden tokens, causal ones the next token."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, DataCollatorForLanguageModeling

from benchmarks.rows import TextRow

_NO_LABEL = -100


class MaskedLanguage:
    """15 % of the tokens are hidden, as BERT's authors do it, anew in each batch."""

    name = "masked-lm"
    form = TextRow
    auto_class = AutoModelForMaskedLM

    def head(self, rows: Sequence[TextRow]) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        return {}

    def length(self, row: TextRow) -> int:
        return len(row.text)

    def encode(self, tokenizer: Any, rows: Sequence[TextRow], config: Any, max_length: int) -> Mapping[str, Tensor]:  # noqa: ARG002
        encoded = tokenizer([row.text for row in rows], truncation=True, max_length=max_length)
        samples = [dict(zip(encoded, values, strict=True)) for values in zip(*encoded.values(), strict=True)]
        inputs: Mapping[str, Tensor] = DataCollatorForLanguageModeling(tokenizer)(samples)
        return inputs


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
