"""The evaluators that a pass asks, made from its knobs."""

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
    """What measures the trials of a pass."""

    exact: Evaluator
    """What measures them."""
    screen: Screen | None
    """What looks at them first in low precision, where the knobs ask for that."""
    at_work: AbstractContextManager[Any]
    """Open while they are asked. What they remember outlasts it, except in other processes."""


@contextmanager
def evaluators(
    checkpoint: Checkpoint,
    samples: Samples,
    config: RunConfig,
    shards: int,
    task: Losses | None = None,
) -> Iterator[tuple[Evaluator, Screen | None]]:
    """What measures the trials, and what looks at them first; arguments as for :func:`make_evaluators`."""
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
    """Make what measures the trials.

    Args:
        shards: processes that share the samples.
        task: what tells losses: the checkpoint's task, or a recording of it.
        fitting: gives the weights that stay other values; None where they stay as they are.
    """
    model, architecture = checkpoint.model, checkpoint.architecture
    budget, plan = cache_budget(config.cache_budget, str(model.device)), Plan.full(checkpoint.dimensions)
    if config.evaluate_in == "int8":
        # These go around the linear modules, or give them a part of their inputs, which in int8 has other scales.
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
