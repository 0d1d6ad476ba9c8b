"""A feature model: the lowest layers of an encoder, some of its dimensions, and a linear classifier on them.

The encoder is an ordinary checkpoint of its family. Hidden states are taken as they leave a layer, so that in families with a
norm after the last layer that norm is left out unless all layers are kept (Dalvi et al., 2020, section 7).
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoTokenizer
from transformers.utils.generic import ModelOutput

from axformer.architectures.base import Architecture
from axformer.architectures.registry import architecture_of
from axformer.data.batches import batched
from axformer.data.encoding import Encoded, without_labels
from axformer.data.padding import padding_of
from axformer.devices import CPU_BATCH_TOKENS
from axformer.errors import ArtifactError, InputError, first_line
from axformer.forms.facts import read_described
from axformer.forms.onnx_model import OnnxModel
from axformer.model.hidden_states import watched_states
from axformer.model.tail import ReadPosition
from axformer.wire.features import FeaturesFile

ENCODER, ONNX = "encoder", "onnx"
CLASSIFIER_FILE, DIMENSIONS_FILE = "classifier.safetensors", "dimensions.json"
Answer = str | bool | float | list[str] | list[float]


class FeatureModel(nn.Module):
    """Computes the outputs of a feature model; called like the model that it was made from."""

    def __init__(self, encoder: Any, facts: FeaturesFile, weight: Tensor, bias: Tensor) -> None:
        """
        Args:
            encoder: the shortened base model; it is prepared, and in some families loses its last norm.
            facts: what is read of it.
            weight: of shape (outputs, dimensions), columns in the order of the dimensions.
            bias: of shape (outputs,).
        """
        super().__init__()
        self._architecture: Architecture = architecture_of(facts.model_type)
        self._architecture.prepare(encoder)
        if facts.layers < facts.whole_layers and self._architecture.last_norm is not None:
            setattr(encoder, self._architecture.last_norm, nn.Identity())
        self.encoder, self.config = encoder, encoder.config
        self._is_pooled = facts.reads == "position"
        places = [tuple(map(int, name.split(".")[1:])) for name in facts.dimensions]
        order = sorted(range(len(places)), key=lambda index: places[index][0])
        self._columns: dict[int, list[int]] = {}
        for index in order:
            self._columns.setdefault(places[index][0], []).append(places[index][1])
        self.classifier = nn.Linear(len(order), len(bias))
        with torch.no_grad():
            self.classifier.weight.copy_(weight[:, order])
            self.classifier.bias.copy_(bias)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.classifier.weight.device

    def forward(self, **inputs: Tensor) -> ModelOutput:
        """``logits`` of shape (rows, outputs), or of shape (rows, tokens, outputs) if there is an answer for each word."""
        parts: dict[int, Tensor] = {}

        def see(layer: int, hidden: Tensor) -> None:
            if layer in self._columns:
                parts[layer] = self._read(hidden, inputs)[..., self._columns[layer]]

        with watched_states(self.encoder, self._architecture, see):
            self.encoder(**inputs)
        return ModelOutput(logits=self.classifier(torch.cat([parts[layer] for layer in self._columns], dim=-1)))  # type: ignore[no-untyped-call]

    def _read(self, hidden: Tensor, inputs: dict[str, Tensor]) -> Tensor:
        if not self._is_pooled:
            return hidden
        tokens = self._architecture.read_position(self.config, inputs["input_ids"])
        if tokens is not None:
            return ReadPosition(tokens, 1).narrow(hidden)[:, 0]
        real = inputs["attention_mask"].to(hidden.dtype)[..., None]
        return (hidden * real).sum(dim=1) / real.sum(dim=1)


class Features:
    """A feature model with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, config: Any, facts: FeaturesFile) -> None:
        self.model = model
        """Called with a batch of inputs; gives ``logits``."""
        self.facts = facts
        self._tokenizer, self._config = tokenizer, config
        self._architecture = architecture_of(facts.model_type)
        self._accepted = tuple(inspect.signature(self._architecture.base_class.forward).parameters)

    @torch.inference_mode()
    def predict(self, texts: Sequence[Any]) -> list[Any]:
        """Answer some texts.

        Args:
            texts: texts, pairs of texts, or for tagging lists of words.

        Returns:
            For each text the name of its class, a truth value, the names of the classes that apply, or its numbers; for
            tagging a name for each word that is not cut off.
        """
        if not len(texts):
            return []
        encoding = self._tokenized(texts)
        samples = batched(
            self._encoded(encoding), self._tokenizer, batch_tokens=CPU_BATCH_TOKENS, device=str(self.model.device)
        )
        answers: list[Any] = [None] * len(texts)
        for batch in samples.batches:
            logits = self.model(**batch.inputs).logits.cpu()
            starts = batch.starts().tolist()
            for index, row in enumerate(batch.rows.tolist()):
                if self.facts.reads == "words":
                    last = {word: place for place, word in enumerate(encoding.word_ids(row)) if word is not None}
                    answers[row] = [self._answer(logits[index, starts[index] + last[word]]) for word in sorted(last)]
                else:
                    answers[row] = self._answer(logits[index])
        return answers

    def _tokenized(self, texts: Sequence[Any]) -> Any:
        cut = {} if self.facts.max_length is None else {"truncation": True, "max_length": self.facts.max_length}
        if self.facts.reads == "words":
            return self._tokenizer(
                [list(words) for words in texts], is_split_into_words=True, return_attention_mask=True, **cut
            )
        pairs = None if isinstance(texts[0], str) else [second for _, second in texts]
        first = list(texts) if pairs is None else [text for text, _ in texts]
        return self._tokenizer(first, pairs, return_attention_mask=True, **cut)

    def _encoded(self, encoding: Any) -> Encoded:
        config, pooled = self._config, self.facts.reads == "position"
        padding = padding_of(config, self._tokenizer, causal=self._architecture.causal, pooled=pooled)
        return replace(without_labels(dict(encoding)).only(self._accepted), padding=padding)

    def _answer(self, logits: Tensor) -> Answer:
        names = self.facts.labels
        match self.facts.kind:
            case "class":
                return names[int(logits.argmax())]
            case "truth":
                return bool(logits[0] > 0)
            case "flags":
                return [name for name, logit in zip(names, logits.tolist(), strict=True) if logit > 0]
        numbers: list[float] = logits.tolist()
        return numbers[0] if len(numbers) == 1 else numbers


def write_features(facts: FeaturesFile, weight: Tensor, bias: Tensor, directory: Path) -> None:
    """Write the classifier and the dimensions next to the encoder."""
    save_file({"weight": weight.contiguous(), "bias": bias.contiguous()}, directory / CLASSIFIER_FILE)
    (directory / DIMENSIONS_FILE).write_text(facts.model_dump_json(indent=1) + "\n", encoding="utf-8")


def load_features(path: str | Path, *, onnx: bool = False) -> Features:
    """Load a feature model, in evaluation mode on the CPU.

    Args:
        path: the directory that ``axformer features`` wrote.
        onnx: compute with ONNX Runtime instead of PyTorch; only if it was written.

    Raises:
        ArtifactError: there is no feature model, or it is damaged.
        FormError: ONNX Runtime is not installed.
    """
    directory = Path(path)
    facts = read_features(directory)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory / ENCODER, local_files_only=True)
        tokenizer.padding_side = facts.padding_side
        base_class = architecture_of(facts.model_type).base_class
        encoder = base_class.from_pretrained(
            directory / ENCODER, local_files_only=True, use_safetensors=True, **unpooled(base_class)
        )
        stored = load_file(directory / CLASSIFIER_FILE)
        model: Any = FeatureModel(encoder, facts, stored["weight"], stored["bias"]).eval()
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - of transformers, safetensors or the disk: all concern these files
        raise ArtifactError(f"'{directory}' holds no feature model that loads: {first_line(error)}") from None
    return Features(OnnxModel(directory) if onnx else model, tokenizer, encoder.config, facts)


def read_features(directory: Path) -> FeaturesFile:
    """Read ``dimensions.json``.

    Raises:
        ArtifactError: it is missing or damaged.
    """
    return read_described(FeaturesFile, directory / DIMENSIONS_FILE, "feature model")


def unpooled(base_class: Any) -> dict[str, bool]:
    """Arguments that make a base model without a pooler, which nothing reads, if its class has one."""
    takes = inspect.signature(base_class.__init__).parameters
    return {"add_pooling_layer": False} if "add_pooling_layer" in takes else {}
