"""Which task a checkpoint was fine-tuned for."""

from typing import Any

from axformer.errors import CheckpointError
from axformer.tasks.base import Task
from axformer.tasks.classification import Classification
from axformer.tasks.regression import Regression


def task_of(config: Any) -> Task:
    """The task of a sequence classifier's configuration.

    Raises:
        CheckpointError: the task is not supported.
    """
    if config.problem_type == "multi_label_classification":
        raise CheckpointError("multi-label classifiers are not supported; supported are one label and regression")
    if config.problem_type == "regression" and config.num_labels != 1:
        raise CheckpointError(f"a regression with {config.num_labels} outputs is not supported; one output is")
    if config.problem_type == "regression" or config.num_labels == 1:
        return Regression()
    return Classification()
