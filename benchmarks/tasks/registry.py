"""The tasks by name."""

from typing import Any

from benchmarks.tasks.answering import Answering
from benchmarks.tasks.base import Task
from benchmarks.tasks.classification import Classification, Regression
from benchmarks.tasks.tagging import Tagging

_ALL: tuple[Task[Any], ...] = (Classification(), Regression(), Tagging(), Answering())
TASKS = {task.name: task for task in _ALL}


def task_named(name: str) -> Task[Any]:
    """The task with this name.

    Raises:
        ValueError: there is none.
    """
    if name not in TASKS:
        raise ValueError(f"task '{name}' is unknown; there are {', '.join(TASKS)}")
    return TASKS[name]
