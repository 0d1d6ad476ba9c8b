"""The evaluators that a pass asks, made from its knobs."""

from collections.abc import Iterator
from contextlib import contextmanager

from axformer.checkpoint import Checkpoint
from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.low_precision import low_precision, name_of
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.processes import Processes
from axformer.evaluation.screen import LowPrecisionScreen, Screen
from axformer.evaluation.shard import Setup
from axformer.evaluation.sharded import ShardedEvaluator, ShardedScreen
from axformer.evaluation.techniques import Techniques
from axformer.int8 import Int8Evaluator
from axformer.plan import Plan


@contextmanager
def evaluators(
    checkpoint: Checkpoint, samples: Samples, config: PassConfig, shards: int
) -> Iterator[tuple[Evaluator, Screen | None]]:
    """What measures the trials, and what looks at them first in low precision where the knobs ask for that.

    Args:
        shards: processes that share the samples.
    """
    model, architecture, task = checkpoint.model, checkpoint.architecture, checkpoint.task
    budget, plan = cache_budget(config.cache_budget, str(model.device)), Plan.full(checkpoint.dimensions)
    if config.evaluate_in == "int8":
        # These go around the linear modules, or give them a part of their inputs, which in int8 has other scales.
        techniques = Techniques(shares=False, absorbed=False, packed=False)
        exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget, techniques=techniques)
        yield Int8Evaluator(exact, model, architecture), None
        return
    is_guarded = config.precision == "guarded"
    if shards > 1:
        setup = Setup(model, architecture.model_type, task, samples, plan, budget)
        with Processes(setup, shards) as processes:
            precision = name_of(low_precision(model.device))
            yield ShardedEvaluator(processes), ShardedScreen(processes, precision) if is_guarded else None
        return
    exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget)
    yield exact, LowPrecisionScreen(exact, model, architecture, samples) if is_guarded else None
