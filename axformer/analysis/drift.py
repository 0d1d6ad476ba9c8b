"""The report ``drift``: what training has changed between two models that read the same tokens.

For every hidden state the mean cosine where states are read (Sajjad et al., 2020, figure 5) and the mean Euclidean distance
over all tokens; for every head the mean Jensen-Shannon divergence of its attention over queries and rows (Chiang et al., 2020,
section 5); how many of one model's important heads the other's ranking keeps (equation 5); and whether the important heads are
those that changed (appendix E).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from axformer.analysis.advice import Given, advise
from axformer.analysis.heads import Heads
from axformer.analysis.positions import Positions, positions_of
from axformer.analysis.representations import watched_states
from axformer.analysis.study import Study
from axformer.architectures.base import Architecture
from axformer.architectures.hard_attention import ATTENTION_DIMENSIONS, HardAttentionDropout
from axformer.data.batches import Batch
from axformer.errors import CheckpointError
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.encoder import Encoder
from axformer.wire.analysis import Advice, DriftReport, Recall
from axformer.wire.steps import Counter, StepName

STEADY = 0.95
"""Mean cosine above which a state counts as unchanged. The paper shades such states, and its number is lost in its text."""


@dataclass
class _Sums:
    """Sums over rows, tokens and positions."""

    cosine: np.ndarray
    distance: np.ndarray
    attention: np.ndarray
    positions: int = 0
    tokens: int = 0
    rows: int = 0


@dataclass
class _Look:
    """What one model computes for one batch."""

    states: dict[int, Tensor] = field(default_factory=dict)
    attention: dict[int, Tensor] = field(default_factory=dict)


def check_comparable(checkpoint: Checkpoint, other: Checkpoint | Encoder, name: str) -> None:
    """Check that two models read the same tokens, and have the same layers and heads.

    Raises:
        CheckpointError: they do not.
    """
    families = checkpoint.architecture.model_type, other.architecture.model_type
    if families[0] != families[1] or checkpoint.dimensions != other.dimensions:
        raise CheckpointError(
            f"--against '{name}': it is a {families[1]} model with {_shape(other)}, the checkpoint a {families[0]} model with "
            f"{_shape(checkpoint)}; give the model that the checkpoint was trained from"
        )
    if checkpoint.tokenizer.get_vocab() != other.tokenizer.get_vocab():
        raise CheckpointError(
            f"--against '{name}': its tokenizer has other tokens than the checkpoint's, so no states compare"
        )


def _shape(checkpoint: Checkpoint | Encoder) -> str:
    sizes = checkpoint.dimensions
    return f"{sizes.layers} layers of {sizes.heads} heads and width {sizes.hidden_size}"


def drift_report(
    study: Study, other: Checkpoint | Encoder, name: str, heads: tuple[Heads, Heads | None], given: Given
) -> DriftReport:
    """Compare a study's model with another one.

    Args:
        study: the model with its rows.
        other: the other model.
        name: its name for people.
        heads: the ranked heads of the model, and of the other one if its head reads the same rows.
        given: the inputs.
    """
    began = time.monotonic()
    data = study.part(study.bounds.curve_rows)
    counter = Counter(StepName.DRIFT, len(data.samples.batches), study.surroundings.on_step)
    counter.begin()
    positions = positions_of(study.checkpoint, data, study.config)
    layers, per_layer = study.checkpoint.dimensions.layers, study.checkpoint.dimensions.heads
    sums = _Sums(np.zeros(layers + 1), np.zeros(layers + 1), np.zeros((layers, per_layer)))
    for batch in data.samples.batches:
        study.surroundings.check_cancelled()
        _add(sums, batch, positions, [_look(one, batch) for one in (study.checkpoint, other)])
        counter.advance()
    own, theirs = heads
    cosine, attention = sums.cosine / sums.positions, sums.attention / sums.rows
    return DriftReport(
        against=name,
        rows=len(data.rows),
        cosine=tuple(cosine.tolist()),
        distance=tuple((sums.distance / sums.tokens).tolist()),
        attention=tuple(tuple(row) for row in attention.tolist()),
        recall=None if theirs is None else recalls(own, theirs),
        correlation=_correlation(own.importance, attention),
        correlation_against=None if theirs is None else _correlation(theirs.importance, attention),
        advice=_advice(cosine.tolist(), given),
        seconds=time.monotonic() - began,
    )


@torch.inference_mode()
def _look(checkpoint: Checkpoint | Encoder, batch: Batch) -> _Look:
    found = _Look()
    model, architecture = checkpoint.model, checkpoint.architecture
    inputs = {key: values.flatten(end_dim=-2) for key, values in batch.inputs.items()}
    with (
        watched_states(model, architecture, found.states.__setitem__),
        watched_attention(model, architecture, found.attention),
    ):
        model.base_model(**inputs)
    return found


@torch.inference_mode()
def _add(sums: _Sums, batch: Batch, positions: Positions, looks: Sequence[_Look]) -> None:
    one, other = looks
    real = batch.inputs["attention_mask"].flatten(end_dim=-2).bool()
    for layer, state in one.states.items():
        read, read_there = (positions.read(batch, states) for states in (state, other.states[layer]))
        sums.cosine[layer] += _sum(cosine_similarity(read, read_there, dim=-1))
        sums.distance[layer] += _sum((state - other.states[layer])[real].norm(dim=-1))
    queries = real.sum(dim=1)
    for layer, probabilities in one.attention.items():
        apart = divergence(probabilities, other.attention[layer])  # (sequences, heads, queries)
        by_row = (apart * real[:, None]).sum(dim=-1) / queries[:, None]
        sums.attention[layer] += by_row.double().sum(dim=0).cpu().numpy()
    sums.positions += sum(positions.counts(batch))
    sums.tokens += int(queries.sum())
    sums.rows += len(real)


def _sum(values: Tensor) -> float:
    return float(values.double().sum())


def recalls(own: Heads, other: Heads) -> tuple[Recall, ...]:
    """At every step of another model's ranking, the share of a model's important heads that are left.

    Important are the heads with which the model still has 90 % of its metric.
    """
    important = own.steps[own.last_enough]
    return tuple(
        Recall(
            removed=kept.removed,
            relative=kept.relative,
            recall=len(important & left) / len(important) if important else 1.0,
        )
        for kept, left in zip(other.curve, other.steps, strict=True)
    )


def _correlation(importance: np.ndarray, attention: np.ndarray) -> float | None:
    one, other = importance.ravel(), attention.ravel()
    return float(np.corrcoef(one, other)[0, 1]) if one.std() and other.std() else None


def _advice(cosine: Sequence[float], given: Given) -> Advice:
    """Freeze the lowest layers that training has left as they were."""
    steady = next((layer for layer, value in enumerate(cosine) if value < STEADY), len(cosine))
    lower = min(steady - 1, len(cosine) - 3)  # one layer is dropped, and one is trained
    if lower < 1:
        return advise(
            f"Training has changed every layer (mean cosine below {STEADY:g} from the lowest on), so all are worth training "
            "again after pruning."
        )
    freeze = ["--finetune", f"freeze=lower:{lower}"] if given.train is not None else []
    told = "" if freeze else "; with training rows, --finetune freeze=lower:N keeps them"
    return advise(
        f"Training has left the lowest {lower} of {len(cosine) - 1} layers nearly as they were (mean cosine of at least "
        f"{STEADY:g}), so they may stay frozen when what is left is trained{told}.",
        given.prune("layers", "--method", "layers", *freeze, set_=["drop=1"]),
    )


@contextmanager
def watched_attention(model: Any, architecture: Architecture, seen: dict[int, Tensor]) -> Iterator[None]:
    """Inside the ``with`` block, every forward pass puts the probabilities of each layer into ``seen``.

    They have the shape (sequences, heads, queries, keys). Families either compute attention in a module that returns them, or
    pass them through a dropout of their own.
    """

    def handed_on(layer: int, _: Any, args: tuple[Any, ...]) -> None:
        if args[0].dim() == ATTENTION_DIMENSIONS:
            seen[layer] = args[0]

    def returned(layer: int, _: Any, __: Any, output: Any) -> None:
        seen[layer] = output[1]

    with ExitStack() as undo:
        for index, layer in enumerate(architecture.layers(model)):
            core = architecture.attention.weights(layer).core
            assert core is not None, "attention blocks name their core"
            if isinstance(core, HardAttentionDropout):
                undo.callback(core.register_forward_pre_hook(partial(handed_on, index)).remove)
            else:
                undo.callback(core.register_forward_hook(partial(returned, index)).remove)
        yield


def divergence(one: Tensor, other: Tensor) -> Tensor:
    """The Jensen-Shannon divergence of distributions over the last axis, in nats: 0 to ln 2."""
    middle = (one + other) / 2
    return (_relative(one, middle) + _relative(other, middle)) / 2


def _relative(one: Tensor, middle: Tensor) -> Tensor:
    """The divergence of Kullback and Leibler; 0 log 0 is 0."""
    return (torch.xlogy(one, one) - torch.xlogy(one, middle)).sum(dim=-1)
