"""The heads that transformers has for a family's encoder: their model classes and kinds of tasks."""

from dataclasses import dataclass
from typing import Any

from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HEAD_KINDS = {
    AutoModelForSequenceClassification: "sequence classification",
    AutoModelForTokenClassification: "token classification",
    AutoModelForQuestionAnswering: "question answering",
    AutoModelForMultipleChoice: "multiple choice",
    AutoModelForMaskedLM: "masked LM",
    AutoModelForCausalLM: "causal LM",
}
"""The kind of task of a head, by the transformers Auto class that loads it."""


@dataclass(frozen=True)
class Head:
    """One kind of head of one family."""

    auto_class: Any
    """The transformers Auto class that loads models with this kind of head."""
    model_class: Any
    """The family's own class."""

    @property
    def kind(self) -> str:
        """What models with this head do."""
        return HEAD_KINDS.get(self.auto_class, "sentence embedding")

    @property
    def name(self) -> str:
        """The name of the class, as ``architectures`` in ``config.json`` has it."""
        return str(self.model_class.__name__)


def heads_of(model_type: str, *, causal: bool) -> tuple[Head, ...]:
    """All heads that a family has in transformers.

    Args:
        causal: whether its attention looks back only; it then has a causal language model, else maybe a masked one.
    """
    config_class = CONFIG_MAPPING[model_type]
    unfit = AutoModelForMaskedLM if causal else AutoModelForCausalLM
    mappings: dict[Any, Any] = {auto: auto._model_mapping for auto in HEAD_KINDS if auto is not unfit}
    return tuple(Head(auto, mapping[config_class]) for auto, mapping in mappings.items() if config_class in mapping)
