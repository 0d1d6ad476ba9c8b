"""Figures of a model on all data sets of a run, by their names in the report."""

from collections.abc import Mapping
from typing import Any

from axformer.intake.dataset import DataSet
from axformer.scores.scoring import Score, score
from axformer.tasks.base import Task
from axformer.wire.report import Scores

Sets = Mapping[str, DataSet | None]
"""Data sets by their names in the report; None for a set that was not given."""


def scores_of(model: Any, task: Task, sets: Sets) -> Scores:
    """Score a model on all data sets, as in the report."""
    return Scores(**as_report(scores_on(model, task, sets)))


def scores_on(model: Any, task: Task, sets: Sets) -> dict[str, Score | None]:
    return {name: None if data is None else score(model, task, data.samples) for name, data in sets.items()}


def as_report(scores: Mapping[str, Score | None]) -> dict[str, Any]:
    figures = {name: None if score is None else score.figures for name, score in scores.items()}
    return figures | {f"{name}_intervals": None if score is None else score.intervals for name, score in scores.items()}
