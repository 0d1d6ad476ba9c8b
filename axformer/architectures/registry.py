"""The model families that the library knows."""

from axformer.architectures.base import Architecture
from axformer.architectures.bert import BERT_FAMILIES
from axformer.errors import CheckpointError

ARCHITECTURES: dict[str, Architecture] = {architecture.model_type: architecture for architecture in BERT_FAMILIES}


def architecture_of(model_type: str) -> Architecture:
    """The adapter of a model family.

    Raises:
        CheckpointError: the family is not supported.
    """
    if model_type not in ARCHITECTURES:
        raise CheckpointError(
            f"models of type '{model_type}' are not supported; supported are: {', '.join(sorted(ARCHITECTURES))}"
        )
    return ARCHITECTURES[model_type]
