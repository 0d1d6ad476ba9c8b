"""Find the task that a checkpoint was fine-tuned for."""

from collections.abc import Callable
from typing import Any

from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from axformer.data.rows import Rows
from axformer.errors import CheckpointError
from axformer.tasks.base import Task
from axformer.tasks.causal_lm import CausalLanguageModelling
from axformer.tasks.classification import Classification
from axformer.tasks.embedding import SentenceEmbedding
from axformer.tasks.masked_lm import MaskedLanguageModelling
from axformer.tasks.multi_label import MultiLabelClassification
from axformer.tasks.multiple_choice import MultipleChoice
from axformer.tasks.one_output import task_of_one_output
from axformer.tasks.question_answering import QuestionAnswering
from axformer.tasks.regression import Regression
from axformer.tasks.reranking import Reranking
from axformer.tasks.token_classification import TokenClassification


def task_of(auto_class: Any, config: Any, rows: Rows | None = None) -> Task:
    """The task of a model.

    Args:
        rows: the deciding rows. They settle what the rest leaves open: whether a single output is a number, yes and no, or the
            score of a passage, and whether a question may have no answer. The positions that the head reads do not depend on
            them.

    Raises:
        CheckpointError: the task is not supported.
        DataError: the labels fit no task of such a model.
    """
    if auto_class not in _TASKS:
        supported = ", ".join(known.__name__ for known in _TASKS)
        raise CheckpointError(f"models of {auto_class.__name__} are not supported; supported are those of {supported}")
    return _TASKS[auto_class](config, rows)


def _sequence_task(config: Any, rows: Rows | None) -> Task:
    if rows is not None and rows.are_lists:
        return Reranking.of(config)
    if config.num_labels == 1:
        return task_of_one_output(config, rows)
    if config.problem_type == "multi_label_classification":
        return MultiLabelClassification()
    return Regression() if config.problem_type == "regression" else Classification()


_TASKS: dict[Any, Callable[[Any, Rows | None], Task]] = {
    AutoModelForSequenceClassification: _sequence_task,
    AutoModelForTokenClassification: lambda config, _: TokenClassification.of(config),
    AutoModelForQuestionAnswering: lambda _, rows: QuestionAnswering.of(rows),
    AutoModelForMultipleChoice: lambda *_: MultipleChoice(),
    AutoModelForMaskedLM: lambda *_: MaskedLanguageModelling(),
    AutoModelForCausalLM: lambda *_: CausalLanguageModelling(),
    AutoModel: lambda config, _: SentenceEmbedding(config),
}
