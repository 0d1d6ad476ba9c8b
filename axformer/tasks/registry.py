"""Which task a checkpoint was fine-tuned for."""

from collections.abc import Callable
from typing import Any

from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from axformer.errors import CheckpointError
from axformer.tasks.base import Task
from axformer.tasks.causal_lm import CausalLanguageModelling
from axformer.tasks.classification import Classification
from axformer.tasks.masked_lm import MaskedLanguageModelling
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.question_answering import QuestionAnswering
from axformer.tasks.regression import Regression
from axformer.tasks.token_classification import TokenClassification


def task_of(auto_class: Any, config: Any) -> Task:
    """The task of a model.

    Args:
        auto_class: the transformers Auto class that loads it, which says what kind of head it has.
        config: its configuration, which says how many labels there are and of what kind.

    Raises:
        CheckpointError: the task is not supported.
    """
    if auto_class not in _TASKS:
        supported = ", ".join(known.__name__ for known in _TASKS)
        raise CheckpointError(f"models of {auto_class.__name__} are not supported; supported are those of {supported}")
    return _TASKS[auto_class](config)


def _sequence_task(config: Any) -> Task:
    if config.problem_type == "multi_label_classification":
        return MultiLabelClassification()
    if config.problem_type == "regression" and config.num_labels != 1:
        raise CheckpointError(f"a regression with {config.num_labels} outputs is not supported; one output is")
    if config.problem_type == "regression" or config.num_labels == 1:
        return Regression()
    return Classification()


_TASKS: dict[Any, Callable[[Any], Task]] = {
    AutoModelForSequenceClassification: _sequence_task,
    AutoModelForTokenClassification: TokenClassification.of,
    AutoModelForQuestionAnswering: lambda _: QuestionAnswering(),
    AutoModelForMultipleChoice: lambda _: MultipleChoice(),
    AutoModelForMaskedLM: lambda _: MaskedLanguageModelling(),
    AutoModelForCausalLM: lambda _: CausalLanguageModelling(),
}
