"""Builds the evaluator of a pass from its knobs."""

import torch

from axformer.config import RunConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.fitting import FittedEvaluator, Fitting
from axformer.evaluation.int8 import Int8Evaluator
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.techniques import Techniques
from axformer.evaluation.threads import ThreadedEvaluator, threads_for
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.plan import Plan
from axformer.tasks.base import Losses


def make_evaluator(
    checkpoint: Checkpoint,
    samples: Samples,
    config: RunConfig,
    task: Losses | None = None,
    fitting: Fitting | None = None,
) -> Evaluator:
    """Make the evaluator of a pass, which is used as a context manager.

    Args:
        task: computes the losses: a recording of the checkpoint's task, or None for the task itself.
        fitting: fits the remaining weights; None to leave them as they are.
    """
    model, architecture, device = checkpoint.model, checkpoint.architecture, checkpoint.model.device
    budget, plan = cache_budget(config.cache_budget, str(device)), Plan.full(checkpoint.dimensions)
    given = model, architecture, task or checkpoint.task, samples, plan
    if config.evaluate_in == "int8":
        # These bypass the linear modules, or pass them only a part of their inputs, which would have other scales in int8.
        techniques = Techniques(shares=False, absorbed=False, packed=False)
        return Int8Evaluator(PrefixEvaluator(*given, budget=budget, techniques=techniques), model, architecture)
    cores = torch.get_num_threads()
    threads = threads_for(device, cores)
    evaluator: Evaluator
    if threads == 1:
        evaluator = PrefixEvaluator(*given, budget=budget, fitting=fitting)
    else:
        evaluator = ThreadedEvaluator(*given, budget=budget, threads=threads, cores=cores, fitting=fitting)
    return evaluator if fitting is None else FittedEvaluator(evaluator, fitting)
