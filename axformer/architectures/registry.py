"""The model families that the library knows."""

from axformer.architectures.albert import ALBERT
from axformer.architectures.base import Architecture
from axformer.architectures.bert_blocks import BERT_FAMILIES
from axformer.architectures.deberta import DEBERTA
from axformer.architectures.distilbert import DISTILBERT
from axformer.architectures.gpt2 import GPT2
from axformer.architectures.llama import LLAMA_FAMILIES
from axformer.architectures.modernbert import MODERNBERT
from axformer.architectures.mpnet import MPNET
from axformer.architectures.xlnet import XLNET
from axformer.errors import CheckpointError

_ALL = (*BERT_FAMILIES, DISTILBERT, MPNET, ALBERT, XLNET, DEBERTA, MODERNBERT, GPT2, *LLAMA_FAMILIES)

ARCHITECTURES: dict[str, Architecture] = {architecture.model_type: architecture for architecture in _ALL}


def architecture_of(model_type: str) -> Architecture:
    """The adapter of a model family.

    Raises:
        CheckpointError: the family is not supported.
    """
    if model_type not in ARCHITECTURES:
        raise CheckpointError(
            f"models of type '{model_type}' are not supported; supported are: {', '.join(sorted(ARCHITECTURES))}; "
            "docs/add-a-family.md says how to add one"
        )
    return ARCHITECTURES[model_type]
