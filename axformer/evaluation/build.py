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
from axformer.evaluation.screen import LowPrecisionScreen, Screen
from axformer.evaluation.shards import Setup, ShardedEvaluator, ShardedScreen, Shards
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
    techniques = Techniques(shares=config.evaluate_in == "float32")  # without some of its inputs, int8 has other scales
    is_guarded = config.precision == "guarded"
    if shards > 1:
        setup = Setup(model, architecture.model_type, task, samples, plan, budget, techniques)
        with Shards(setup, shards) as processes:
            precision = name_of(low_precision(model.device))
            yield ShardedEvaluator(processes), ShardedScreen(processes, precision, plan) if is_guarded else None
        return
    exact = PrefixEvaluator(model, architecture, task, samples, plan, budget=budget, techniques=techniques)
    if config.evaluate_in == "int8":
        yield Int8Evaluator(exact, model, architecture), None
        return
    yield exact, LowPrecisionScreen(exact, model, architecture, samples) if is_guarded else None
