"""The ways to run a pass that are compared, each with one technique more than the one before.

A step is data: to measure one more technique, add one more step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from axformer.checkpoint import Checkpoint
from axformer.data.batches import Samples
from axformer.data.dataset import DataSet
from axformer.evaluation.base import Evaluator
from axformer.evaluation.plain import PlainEvaluator
from axformer.evaluation.prefix import PrefixEvaluator
from axformer.plan import Plan
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
    evaluator: Callable[[Checkpoint, Samples], Evaluator]
    """Makes what answers the pass, with the clock running."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Of the pass, beside those of the preset."""
    evaluations: int | None = None
    """Where every trial is a whole forward pass and so costs the same: how many trials of a round are measured in place of
    all. Null runs the pass to its end."""
    arithmetic: str = "float32"
    """The matrix-multiply rate that its own is compared with."""
    every_round: bool = True
    """False for a step on the way, for which one round says enough."""


def _plain(checkpoint: Checkpoint, samples: Samples) -> Evaluator:
    return PlainEvaluator(checkpoint.model, checkpoint.architecture, checkpoint.task, samples)


def _prefix(checkpoint: Checkpoint, samples: Samples) -> Evaluator:
    parts = checkpoint.model, checkpoint.architecture, checkpoint.task, samples
    return PrefixEvaluator(*parts, Plan.full(checkpoint.dimensions))


def _padded(checkpoint: Checkpoint, data: DataSet) -> Samples:
    return in_data_order(data, checkpoint, PAD_TO)


def _dynamic(checkpoint: Checkpoint, data: DataSet) -> Samples:
    return in_data_order(data, checkpoint, None)


def _by_length(checkpoint: Checkpoint, data: DataSet) -> Samples:  # noqa: ARG001 - of the form that steps take
    return data.samples


PADDED = "padded-128"
DYNAMIC = "dynamic"
EARLY = "early"
STEPS = (
    Step(
        PADDED,
        "whole forward passes, every row padded to 128 tokens (the authors' way)",
        _padded,
        _plain,
        evaluations=1,
    ),
    Step(DYNAMIC, "each batch padded to its longest row", _dynamic, _plain, evaluations=3),
    Step(
        "sorted",
        "rows sorted by length and batched by tokens",
        _by_length,
        _plain,
        evaluations=3,
        every_round=False,
    ),
    Step(
        "prefix",
        "only what a change can reach is run, and removed parts cost nothing",
        _by_length,
        _prefix,
        {"early_decision": False},
        every_round=False,
    ),
    Step(EARLY, "a trial stops when its verdict is known", _by_length, _prefix),
)
BASELINES = (PADDED, DYNAMIC)
"""What ratios are taken against."""


def step_named(name: str) -> Step:
    """The step with this name.

    Raises:
        ValueError: there is none.
    """
    for step in STEPS:
        if step.name == name:
            return step
    raise ValueError(f"step '{name}' is unknown; there are {', '.join(step.name for step in STEPS)}")
