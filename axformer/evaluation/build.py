"""The evaluators that a pass asks, made from its knobs."""

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def evaluators(
    checkpoint: Checkpoint,
    samples: Samples,
    config: RunConfig,
    shards: int,
    task: Losses | None = None,
    fitting: Fitting | None = None,
) -> Iterator[tuple[Evaluator, Screen | None]]:
    """What measures the trials, and what looks at them first in low precision where the knobs ask for that.

    Args:
        shards: processes that share the samples.
        task: what tells losses; the checkpoint's task where none is given.
        fitting: gives the weights that stay other values; None where they stay as they are.
    """
    model, architecture, task = checkpoint.model, checkpoint.architecture, task or checkpoint.task
    budget, plan = cache_budget(config.cache_budget, str(model.device)), Plan.full(checkpoint.dimensions)
    if config.evaluate_in == "int8":
        # These go around the linear modules, or give them a part of their inputs, which in int8 has other scales.
        techniques = Techniques(shares=False, absorbed=False, packed=False)
        exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget, techniques=techniques)
        yield Int8Evaluator(exact, model, architecture), None
        return
    setup, cores = Setup(model, architecture.model_type, task, samples, plan, budget, fitting), torch.get_num_threads()
    threads = threads_for(model.device, cores)
    if shards == threads == 1:
        exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget, fitting=fitting)
        screen = LowPrecisionScreen(exact, model, architecture, samples) if config.is_guarded else None
        yield _fitted(exact, fitting), screen
        return
    with Processes(setup, shards) if shards > 1 else Threads(setup, threads, cores) as parts:
        sharded = ShardedScreen(parts, name_of(low_precision(model.device))) if config.is_guarded else None
        yield _fitted(ShardedEvaluator(parts), fitting), sharded


def _fitted(evaluator: Evaluator, fitting: Fitting | None) -> Evaluator:
    return evaluator if fitting is None else FittedEvaluator(evaluator, fitting)
