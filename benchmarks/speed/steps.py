"""The ways to run a pass that are compared, each with one technique more than the one before.

A step is data: to measure one more technique, add one more step.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch

from axformer.config import PassConfig
from axformer.data.batches import Batch, Samples
from axformer.evaluation.base import Evaluator, Part
from axformer.evaluation.budget import cache_budget
from axformer.evaluation.prefix import ALL, PrefixEvaluator, Techniques
from axformer.evaluation.untouched import make_evaluator
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet
from axformer.model.masking import masked
from axformer.plan.plan import Plan
from axformer.scores.measured import measure
from axformer.tasks.base import Task

PAD_TO = 128
"""The authors' program pads every row to its ``max_seq_length``, 128 for GLUE."""
ROWS = 32
"""Rows of a batch where batches are made as evaluation loops commonly make them."""
PADDED, DYNAMIC, EARLY = "padded-128", "dynamic", "early"


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
    on_the_way: bool = False
    """Measured on the cut only, to tell what each technique is worth."""


def in_data_order(checkpoint: Checkpoint, data: DataSet, pad_to: int | None) -> Samples:
    """The data set again, in batches of ``ROWS`` in the order of the file.

    Args:
        checkpoint: of the model.
        data: single- or multi-label classification or regression, one model row a sample.
        pad_to: tokens of every row; null pads to the longest of a batch, as transformers' ``DataCollatorWithPadding``.
    """
    samples = data.samples
    count = len(samples.sample_of_row)
    starts = range(0, count, ROWS)
    batches = [_batch(samples, checkpoint, range(start, min(count, start + ROWS)), pad_to) for start in starts]
    return Samples(tuple(batches), samples.encoded, samples.sample_of_row, samples.lengths)


def _batch(samples: Samples, checkpoint: Checkpoint, places: range, pad_to: int | None) -> Batch:
    encoded, device = samples.encoded, checkpoint.model.device
    features = {name: [values[place] for place in places] for name, values in encoded.features.items()}
    padding = "longest" if pad_to is None else "max_length"
    inputs = checkpoint.tokenizer.pad(features, padding=padding, max_length=pad_to, return_tensors="pt", verbose=False)
    return Batch(
        rows=torch.tensor(list(places), device=device),
        inputs={name: values.to(device) for name, values in inputs.items()},
        labels=torch.tensor([encoded.labels[place] for place in places], device=device),
    )


def _by_length(_: Checkpoint, data: DataSet) -> Samples:
    return data.samples


class _Whole(PrefixEvaluator):
    """A forward pass of the whole masked model over every sample, for every plan."""

    def parts(self, plan: Plan) -> Iterator[Part]:
        with masked(self._model, self._architecture, plan):
            losses = measure(self._model, cast(Task, self._task), self.samples).losses
        yield Part(torch.arange(len(losses)), losses)


def _reached(
    checkpoint: Checkpoint,
    samples: Samples,
    config: PassConfig,
    techniques: Techniques = ALL,
    kind: type[PrefixEvaluator] = PrefixEvaluator,
) -> Evaluator:
    return kind(
        *(checkpoint.model, checkpoint.architecture, checkpoint.task, samples, Plan.full(checkpoint.dimensions)),
        budget=cache_budget(config.cache_budget, str(checkpoint.model.device)),
        techniques=techniques,
    )


_whole = partial(_reached, kind=_Whole)


def _on_the_way(name: str, adds: str, *without: str) -> Step:
    made = partial(_reached, techniques=Techniques(**dict.fromkeys(without, False)))
    return Step(name, adds, _by_length, made, {"early_decision": False}, on_the_way=True)


STEPS = (
    Step(
        PADDED,
        "whole forward passes, every row padded to 128 tokens (the authors' way)",
        *(partial(in_data_order, pad_to=PAD_TO), _whole),
        evaluations=1,
    ),
    Step(DYNAMIC, "each batch padded to its longest row", partial(in_data_order, pad_to=None), _whole, evaluations=3),
    Step(
        *("sorted", "rows sorted by length and batched by tokens", _by_length, _whole), evaluations=3, on_the_way=True
    ),
    _on_the_way(
        *("prefixes", "what comes before a change is kept, and what is removed costs nothing"),
        *("shares", "tail", "untouched", "absorbed", "packed"),
    ),
    _on_the_way(
        *("tail", "behind the last attention only the position runs that the head reads"),
        *("shares", "untouched", "absorbed", "packed"),
    ),
    _on_the_way(
        *("untouched", "samples that hard attention cannot change are left out"), *("shares", "absorbed", "packed")
    ),
    _on_the_way(
        *("shares", "the share of a head or neuron group is taken off what its block adds"), *("absorbed", "packed")
    ),
    _on_the_way("absorbed", "the last attention, read at one position, computes no keys and values", "packed"),
    _on_the_way("packed", "weights are packed once, and activation functions computed within products"),
    Step(
        EARLY,
        "a trial begins with samples that were hurt, and stops when its verdict is known; each core has a batch of its own",
        *(_by_length, make_evaluator),
    ),
)
TARGETED = tuple(step for step in STEPS if not step.on_the_way)
"""What is measured on whole sets."""


def step_named(name: str) -> Step:
    """The step with this name.

    Raises:
        ValueError: there is none.
    """
    for step in STEPS:
        if step.name == name:
            return step
    raise ValueError(f"step '{name}' is unknown; there are {', '.join(step.name for step in STEPS)}")
