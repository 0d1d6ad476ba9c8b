"""Builds the evaluators of a pass from its knobs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.fitting import FittedEvaluator, Fitting
from axformer.evaluation.int8 import Int8Evaluator
from axformer.evaluation.low_precision import low_precision
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.processes import Processes
from axformer.evaluation.screen import LowPrecisionScreen, Screen
from axformer.evaluation.shard import Setup
from axformer.evaluation.sharded import ShardedEvaluator, ShardedScreen
from axformer.evaluation.techniques import Techniques
from axformer.evaluation.threads import Threads, threads_for
from axformer.intake.checkpoint import Checkpoint
from axformer.model.number_format import name_of
from axformer.plan.plan import Plan
from axformer.tasks.base import Losses


@dataclass(frozen=True)
class Evaluators:
    """The evaluators of a pass."""

    exact: Evaluator
    """Measures the trials."""
    screen: Screen | None
    """Measures the trials in low precision first; None unless the knobs select it."""
    at_work: AbstractContextManager[Any]
    """The context in which the evaluators are used. They keep their state after it, except for those in other processes."""


@contextmanager
def evaluators(
    checkpoint: Checkpoint,
    samples: Samples,
    config: RunConfig,
    shards: int,
    task: Losses | None = None,
) -> Iterator[tuple[Evaluator, Screen | None]]:
    """The evaluator of the trials, and the screen or None; arguments as for :func:`make_evaluators`."""
    made = make_evaluators(checkpoint, samples, config, shards, task or checkpoint.task)
    with made.at_work:
        yield made.exact, made.screen


def make_evaluators(
    checkpoint: Checkpoint,
    samples: Samples,
    config: RunConfig,
    shards: int,
    task: Losses,
    fitting: Fitting | None = None,
) -> Evaluators:
    """Make the evaluators of a pass.

    Args:
        shards: number of processes that share the samples.
        task: computes the losses: the checkpoint's task, or a recording of it.
        fitting: fits the remaining weights; None to leave them as they are.
    """
    model, architecture = checkpoint.model, checkpoint.architecture
    budget, plan = cache_budget(config.cache_budget, str(model.device)), Plan.full(checkpoint.dimensions)
    if config.evaluate_in == "int8":
        # These bypass the linear modules, or pass them only a part of their inputs, which would have other scales in int8.
        techniques = Techniques(shares=False, absorbed=False, packed=False)
        exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget, techniques=techniques)
        return Evaluators(Int8Evaluator(exact, model, architecture), None, nullcontext())
    setup, cores = Setup(model, architecture.model_type, task, samples, plan, budget, fitting), torch.get_num_threads()
    threads = threads_for(model.device, cores)
    if shards == threads == 1:
        exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget, fitting=fitting)
        looking = LowPrecisionScreen(exact, model, architecture, samples) if config.is_guarded else None
        return Evaluators(_fitted(exact, fitting), looking, nullcontext())
    parts = Processes(setup, shards) if shards > 1 else Threads(setup, threads, cores)
    screen = ShardedScreen(parts, name_of(low_precision(model.device))) if config.is_guarded else None
    return Evaluators(_fitted(ShardedEvaluator(parts), fitting), screen, parts)


def _fitted(evaluator: Evaluator, fitting: Fitting | None) -> Evaluator:
    return evaluator if fitting is None else FittedEvaluator(evaluator, fitting)
