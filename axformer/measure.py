"""Measure a model before and after a pass: what ``report.json`` says of it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from axformer.batches import Samples
from axformer.checkpoint import Checkpoint
from axformer.compact import stock_attention
from axformer.config import PassConfig
from axformer.dataset import DataSet
from axformer.environment import describe
from axformer.evaluation.plain import predict
from axformer.hard_attention import ATTENTION_NAME
from axformer.latency import measure_latency
from axformer.plan import Plan, removed_elements
from axformer.report import Measures, Report
from axformer.tasks.base import Task
from axformer.trial import Phase, Trial, Verdict


@dataclass(frozen=True)
class Outcome:
    """A finished pass: its trace, the plan it leads to, and the compact model with the size of its files in bytes."""

    trace: Sequence[Trial]
    plan: Plan
    model: Any
    bytes: int


def make_report(
    checkpoint: Checkpoint, outcome: Outcome, validation: DataSet, test: DataSet | None, config: PassConfig
) -> Report:
    """Measure both models on all data and for speed, and put everything into one report."""
    base, small = checkpoint.model, outcome.model
    with _stock_attention(base):
        (before, after), setting = measure_latency([base, small], int(validation.samples.lengths.median()))
    accepted = [trial for trial in outcome.trace if trial.verdict is Verdict.ACCEPT]
    removed = [str(trial.element) for trial in accepted if trial.phase is not Phase.HARD_ATTENTION]
    hard = [index for index, layer in enumerate(outcome.plan.layers) if layer.hard_attention is not None]
    return Report(
        task=checkpoint.task.name,
        base=_measures(base, checkpoint.bytes, before, checkpoint.task, validation, test),
        pruned=_measures(small, outcome.bytes, after, checkpoint.task, validation, test),
        removed=removed_elements(removed),
        hard_attention=hard,
        trials=len(outcome.trace),
        seconds=outcome.trace[-1].seconds,
        config=config.model_dump(mode="json"),
        data={"validation": validation.summary(), "test": None if test is None else test.summary()},
        latency=setting.model_dump(),
        environment=describe(str(base.device)),
    )


def _measures(
    model: Any, size: int, latency_ms: float, task: Task, validation: DataSet, test: DataSet | None
) -> Measures:
    return Measures(
        validation=loss_and_metrics(model, task, validation.samples),
        test=None if test is None else loss_and_metrics(model, task, test.samples),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        bytes=size,
        latency_ms=latency_ms,
    )


def loss_and_metrics(model: Any, task: Task, samples: Samples) -> dict[str, float]:
    """The mean loss of a model and its task's metrics."""
    logits, labels = predict(model, samples).cpu(), samples.labels.cpu()
    return {"loss": task.losses(logits, labels).mean().item(), **task.metrics(logits, labels)}


@contextmanager
def _stock_attention(model: Any) -> Iterator[None]:
    """Let a whole model compute attention as its users' models do, while its speed is measured."""
    model.config._attn_implementation = stock_attention(model)
    try:
        yield
    finally:
        model.config._attn_implementation = ATTENTION_NAME
