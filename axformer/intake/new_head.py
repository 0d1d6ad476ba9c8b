"""Give a base model a new head: which class of its family it becomes, and what its configuration then says.

A base model is a bare encoder, or one with the head of a language model or of pre-training. A checkpoint with another head was
fine-tuned, and is refused: a second training would forget the first.
"""

from collections.abc import Collection, Mapping
from typing import Any

from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from axformer.architectures.base import Architecture
from axformer.architectures.heads import Head
from axformer.errors import CheckpointError
from axformer.intake.label_names import COUNT, ID2LABEL, LABEL2ID, label_maps
from axformer.wire.heads import NewHead

_CLASSES: Mapping[str, Any] = {
    "classification": AutoModelForSequenceClassification,
    "multi_label_classification": AutoModelForSequenceClassification,
    "regression": AutoModelForSequenceClassification,
    "token_classification": AutoModelForTokenClassification,
    "question_answering": AutoModelForQuestionAnswering,
    "multiple_choice": AutoModelForMultipleChoice,
}
_PROBLEMS = {
    "classification": "single_label_classification",
    "multi_label_classification": "multi_label_classification",
    "regression": "regression",
}
_BASES = (AutoModel, AutoModelForPreTraining, AutoModelForMaskedLM, AutoModelForCausalLM)


def head_for(directory: Any, names: Collection[str], architecture: Architecture, new: NewHead) -> Head:
    """The head of a family that a base model gets.

    Args:
        names: ``architectures`` in its ``config.json``; none means a base model.

    Raises:
        CheckpointError: the model is none without a head, or its family has no head for the task.
    """
    fitting = next((head for head in architecture.heads if head.auto_class is _CLASSES[new.task]), None)
    if fitting is None:
        raise CheckpointError(
            f"checkpoint '{directory}': transformers has no head for {new.task} on models of type "
            f"'{architecture.model_type}'; take another model"
        )
    if names and not set(names) & _base_names(architecture):
        own = next((head for head in architecture.heads if head.name in names), None)
        has = f"a head for {own.kind} already ({own.name})" if own else f"another class ({', '.join(names)[:200]})"
        raise CheckpointError(
            f"checkpoint '{directory}' has {has}, and head={new.task} is for base models; leave the head out, or give the "
            "model that it was fine-tuned from"
        )
    return fitting


def with_head(raw: Mapping[str, Any], head: Head, new: NewHead) -> dict[str, Any]:
    """The keys of a ``config.json`` for the model with its new head."""
    kept = {key: value for key, value in raw.items() if key not in (ID2LABEL, LABEL2ID, COUNT, "problem_type")}
    kept["architectures"] = [head.name]
    if new.labels:
        kept |= label_maps(new.labels)
    if new.task == "regression":
        kept[COUNT] = 1
    if new.task in _PROBLEMS:
        kept["problem_type"] = _PROBLEMS[new.task]
    return kept


def is_new(name: str, base: str) -> bool:
    """Whether a weight belongs to a new head: it lies outside of the encoder, or in its pooler, which only heads read."""
    return not name.startswith(f"{base}.") or name.startswith(f"{base}.pooler.")


def _base_names(architecture: Architecture) -> set[str]:
    """The names of a family's classes without a head for a task."""
    config_class = CONFIG_MAPPING[architecture.model_type]
    mappings = [auto._model_mapping for auto in _BASES]
    classes = [mapping[config_class] for mapping in mappings if config_class in mapping]
    several = (some if isinstance(some, tuple) else (some,) for some in classes)
    return {one.__name__ for some in several for one in some if one is not None}
