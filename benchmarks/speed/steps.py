"""The ways to run a pass that are compared, each with one technique more than the one before.

A step is data: to measure one more technique, add one more step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from axformer.config import PassConfig
from axformer.data.batches import Samples
from axformer.evaluation.base import Evaluator
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.build import make_evaluator
from axformer.evaluation.plain import PlainEvaluator
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.evaluation.techniques import ALL, Techniques
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.plan.plan import Plan
from benchmarks.speed.padding import in_data_order

PAD_TO = 128
"""The authors' program pads every row to its ``max_seq_length``, 128 for GLUE."""


@dataclass(frozen=True)
class Step:
    """One way to run a pass."""

    name: str
    adds: str
    """What it does that the one before does not, for people."""
    samples: Callable[[Checkpoint, DataSet], Samples]
    """Makes the batches; the clock does not run, for all steps have them made by tokenising."""
    evaluator: Callable[[Checkpoint, Samples, PassConfig], Evaluator]
    """Makes what answers the pass, with the clock running."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Of the pass, beside those of the preset."""
    evaluations: int | None = None
    """Where every trial is a whole forward pass and so costs the same: how many trials of a round are measured in place of
    all. Null runs the pass to its end."""
    arithmetic: str = "float32"
    """The matrix-multiply rate that its own is compared with."""
    on_the_way: bool = False
    """Measured on the cut only, to tell what each technique is worth."""


def _padded(checkpoint: Checkpoint, data: DataSet) -> Samples:
    return in_data_order(data, checkpoint, PAD_TO)


def _dynamic(checkpoint: Checkpoint, data: DataSet) -> Samples:
    return in_data_order(data, checkpoint, None)


def _by_length(checkpoint: Checkpoint, data: DataSet) -> Samples:  # noqa: ARG001 - of the form that steps take
    return data.samples


def _whole(checkpoint: Checkpoint, samples: Samples, config: PassConfig) -> Evaluator:  # noqa: ARG001 - the same
    return PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, samples)


def _reached(checkpoint: Checkpoint, samples: Samples, config: PassConfig, techniques: Techniques) -> Evaluator:
    return PrefixEvaluator(
        *(checkpoint.model, checkpoint.architecture, checkpoint.task, samples, Plan.full(checkpoint.dimensions)),
        budget=cache_budget(config.cache_budget, str(checkpoint.model.device)),
        techniques=techniques,
    )


def _on_the_way(name: str, adds: str, techniques: Techniques) -> Step:
    knobs = {"early_decision": False}
    return Step(name, adds, _by_length, partial(_reached, techniques=techniques), knobs, on_the_way=True)


PADDED = "padded-128"
DYNAMIC = "dynamic"
EARLY = "early"
STEPS = (
    Step(
        PADDED,
        "whole forward passes, every row padded to 128 tokens (the authors' way)",
        _padded,
        _whole,
        evaluations=1,
    ),
    Step(DYNAMIC, "each batch padded to its longest row", _dynamic, _whole, evaluations=3),
    Step(
        "sorted",
        "rows sorted by length and batched by tokens",
        _by_length,
        _whole,
        evaluations=3,
        on_the_way=True,
    ),
    _on_the_way(
        "prefixes",
        "what comes before a change is kept, and what is removed costs nothing",
        Techniques(shares=False, tail=False, untouched=False, absorbed=False, packed=False),
    ),
    _on_the_way(
        "tail",
        "behind the last attention only the position runs that the head reads",
        Techniques(shares=False, untouched=False, absorbed=False, packed=False),
    ),
    _on_the_way(
        "untouched",
        "samples that hard attention cannot change are left out",
        Techniques(shares=False, absorbed=False, packed=False),
    ),
    _on_the_way(
        "shares",
        "the share of a head or neuron group is taken off what its block adds",
        Techniques(absorbed=False, packed=False),
    ),
    _on_the_way(
        "absorbed",
        "the last attention, read at one position, computes no keys and values",
        Techniques(packed=False),
    ),
    _on_the_way("packed", "weights are packed once, and activation functions computed within products", ALL),
    Step(
        EARLY,
        "a trial begins with samples that were hurt, and stops when its verdict is known; each core has a batch of its own",
        _by_length,
        make_evaluator,
    ),
)
BASELINES = (PADDED, DYNAMIC)
"""What ratios are taken against."""


TARGETED = tuple(step for step in STEPS if not step.on_the_way)
"""What is measured on whole sets: the baselines, and the steps that targets are for."""


def step_named(name: str) -> Step:
    """The step with this name.

    Raises:
        ValueError: there is none.
    """
    for step in STEPS:
        if step.name == name:
            return step
    raise ValueError(f"step '{name}' is unknown; there are {', '.join(step.name for step in STEPS)}")
