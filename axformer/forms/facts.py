"""The facts about a model that a runtime without transformers needs besides its graph: ``axformer`` in ``config.json``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from axformer.architectures.embedder import spec_of
from axformer.architectures.registry import architecture_of
from axformer.data.encoding import most_tokens
from axformer.data.padding import Padding
from axformer.errors import ArtifactError, first_line
from axformer.model.compact import MODEL_TYPE_PREFIX

FACTS_FILE, FACTS_KEY = "config.json", "axformer"


class Facts(BaseModel):
    """Facts about a model and its tokenizer."""

    model_config = ConfigDict(frozen=True)

    inputs: tuple[str, ...]
    """Names of the graph's inputs, int64 of shape (batch, tokens) or (batch, choices, tokens)."""
    outputs: tuple[str, ...]
    """Names of the graph's outputs, float32."""
    max_length: int | None
    """Largest number of tokens of an input, including special ones; None if there is no limit."""
    padding_side: str
    pad_token: str
    """If the tokenizer has no pad token, any other token: a causal model with padding on the right is not affected by it."""
    pad_token_id: int
    pad_token_type_id: int
    problem_type: str | None
    """The kind of classification in the terms of transformers; None if the model does not specify it."""
    id2label: dict[int, str]

    def write(self, directory: Path, beside: Mapping[str, Any] | None = None) -> None:
        """Write ``config.json``.

        Args:
            directory: of the form.
            beside: the keys that loaders of transformers' configurations look for; None for none.
        """
        keys = {**(beside or {}), FACTS_KEY: self.model_dump(mode="json")}
        (directory / FACTS_FILE).write_text(json.dumps(keys, indent=2, sort_keys=True) + "\n", encoding="utf-8")


class _Config(BaseModel):
    """A ``config.json``; only our own key is read."""

    axformer: Facts


def facts_of(model: Any, tokenizer: Any, padding: Padding, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Facts:
    """The facts about a compact or a whole model."""
    config = model.config
    token = tokenizer.pad_token_id if padding.filler is None else padding.filler
    most = architecture_of(config.model_type.removeprefix(MODEL_TYPE_PREFIX)).max_tokens(config)
    spec = spec_of(config)
    return Facts(
        inputs=inputs,
        outputs=outputs,
        max_length=most if spec is None else most_tokens(tokenizer, spec.max_length, most),
        padding_side=padding.side or tokenizer.padding_side,
        pad_token=tokenizer.convert_ids_to_tokens(token),
        pad_token_id=token,
        pad_token_type_id=tokenizer.pad_token_type_id,
        problem_type=config.problem_type,
        id2label=config.id2label,
    )


def read_facts(directory: Path) -> Facts:
    """Read the facts next to a graph.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    path = directory / FACTS_FILE
    try:
        return _Config.model_validate_json(path.read_text(encoding="utf-8")).axformer
    except OSError as error:
        raise ArtifactError(f"'{directory}' holds no ONNX form: {error.strerror}: {path.name}") from None
    except ValidationError as error:
        raise ArtifactError(f"'{path}' does not describe the ONNX form: {first_line(error)}") from None
