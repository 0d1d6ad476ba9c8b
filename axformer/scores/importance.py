"""Scores of heads and neurons: how much a model would miss each of them, by several estimates.

| score | of a unit e with the weights W_e (its rows of the projections in, its columns of the projection out) | source |
|---|---|---|
| ``taylor`` | E_x abs(dL(x)/dg_e), g_e a gate on e at 1 | Molchanov et al. (2017); Chiang et al. (2020), eq. 2 |
| ``fisher`` | E_x (dL(x)/dg_e)^2 | Kwon et al. (2022) |
| ``gradient`` | mean over w in W_e of abs(dL/dw), L the mean loss | AxFormer, Table IV: "absolute gradient of loss" |
| ``activation`` | root of the mean square of e's columns at the input of the projection out | |
| ``l1`` | mean over w in W_e of abs(w) | AxFormer, Table IV; it does not say which norm of what is meant |
| ``magnitude`` | the share of W_e that is not among the smallest weights of all layers | AxFormer, Table IV, for units |
| ``random`` | a random number | a control |

Expectations are over samples: the gradients of a question that is split into windows are averaged over its windows first.
Where layers share their weights (ALBERT), the gradients of a unit are summed over its uses before the absolute value (Chiang et
al., eq. 3), and all its uses have one score.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from axformer.architectures.base import BlockWeights
from axformer.architectures.slices import Slice
from axformer.data.batches import Samples
from axformer.errors import ConfigError
from axformer.intake.checkpoint import Checkpoint
from axformer.model.signals import Signals
from axformer.plan.blocks import Block, all_blocks


@dataclass(frozen=True)
class Ranked:
    """A model whose units are ranked."""

    checkpoint: Checkpoint
    """Its whole model, which is masked while it is measured."""
    samples: Samples
    """What gradients and activations are measured on, with their labels."""
    masking: Callable[[], AbstractContextManager[None]]
    """Masks the units that have left."""
    share: float
    """Share of the units that will have left after the next step."""
    seed: int
    owners: Mapping[Block, Block]
    """See :func:`owners_of`."""

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the model, bottom first."""
        return all_blocks(self.checkpoint.dimensions.layers)


def owners_of(checkpoint: Checkpoint) -> dict[Block, Block]:
    """The first block that uses the weights of a block: itself, unless layers share their weights."""
    first: dict[int, Block] = {}
    weights = Signals.blocks_of(checkpoint.model, checkpoint.architecture)
    blocks = zip(all_blocks(checkpoint.dimensions.layers), weights, strict=True)
    return {block: first.setdefault(id(own.output.parameter), block) for block, own in blocks}


ScoreUnits = Callable[[Ranked], Sequence[Any]]
"""Scores the units of a ranked model, which is masked meanwhile: for every block of ``ranked.blocks`` an array or tensor of
shape (units,), also of the units that have left. The units with the lowest scores leave first. ``Signals(model, architecture,
samples)`` of :mod:`axformer.model.signals` measures gradients of gates on them."""


def scores_of(score: str | ScoreUnits, ranked: Ranked) -> dict[Block, np.ndarray]:
    """The score of every unit, also of those that have left, shape (units,) for each block.

    Args:
        score: a name of ``SCORES``, none of whose scores is negative, or a function of one's own. Blocks that share their
            weights get the mean of its scores.

    Raises:
        ConfigError: the function does not return a finite score for every unit.
    """
    with ranked.masking():
        found = SCORES[score](ranked) if isinstance(score, str) else _given(score(ranked), ranked)
    return {block: values.double().cpu().numpy() for block, values in zip(ranked.blocks, found, strict=True)}


def _given(found: Sequence[Any], ranked: Ranked) -> list[Tensor]:
    """The scores that a function returned, checked."""
    blocks = [torch.as_tensor(values).double().cpu() for values in found]
    sizes = [block.size(ranked.checkpoint.dimensions) for block in ranked.blocks]
    if [tuple(values.shape) for values in blocks] != [(size,) for size in sizes]:
        raise ConfigError(
            f"score: the function returned {len(blocks)} blocks of shapes {[tuple(values.shape) for values in blocks][:4]}...; "
            f"return one array for each of the {len(sizes)} blocks, bottom first, of sizes {sizes[:4]}..."
        )
    if not all(values.isfinite().all() for values in blocks):
        raise ConfigError("score: the function returned a score that is no finite number; return one for every unit")
    return _over_uses(ranked, blocks, lambda uses: uses.mean(dim=0))


def _mean_over_samples(ranked: Ranked, of: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """The mean over samples of a function of each sample's gate gradients, for every block."""
    sums: list[Tensor] = []
    for slopes in _slopes_of_samples(ranked):
        values = _over_uses(ranked, slopes, lambda uses: uses.sum(dim=0))
        terms = [of(block.double()).sum(dim=0) for block in values]
        sums = terms if not sums else [one + more for one, more in zip(sums, terms, strict=True)]
    return [one / len(ranked.samples) for one in sums]


def _slopes_of_samples(ranked: Ranked) -> Iterator[Sequence[Tensor]]:
    """The gate gradients of some whole samples at a time, shape (samples, units) for every block."""
    checkpoint, samples = ranked.checkpoint, ranked.samples
    gradients = _signals(ranked).gradients(checkpoint.task)
    if samples.one_row_each:
        yield from (slopes for _, slopes in gradients)
        return
    windows = torch.bincount(samples.sample_of_row)
    open_samples: dict[int, tuple[int, list[Tensor]]] = {}
    for rows, slopes in gradients:
        for index, sample in enumerate(samples.sample_of_row[rows].tolist()):
            count, sums = open_samples.pop(sample, (0, [torch.zeros(1, slope.shape[1]) for slope in slopes]))
            sums = [one + slope[index] for one, slope in zip(sums, slopes, strict=True)]
            if count + 1 == windows[sample]:
                yield [one / windows[sample] for one in sums]
            else:
                open_samples[sample] = count + 1, sums


def _activation(ranked: Ranked) -> list[Tensor]:
    signals = _signals(ranked)
    squares = enumerate(signals.mean_squares())
    found = [of_block.view(signals.units(block), -1).mean(dim=1) for block, of_block in squares]
    return [one.sqrt() for one in _over_uses(ranked, found, lambda uses: uses.mean(dim=0))]


def _gradient(ranked: Ranked) -> list[Tensor]:
    """Mean absolute gradients of weights; a shared weight has the sum of its uses'."""
    blocks = _blocks(ranked)
    parts = [part for block in blocks for part in (*block.inputs, block.output)]
    # By parameter, since fused projections are the parameter of several slices.
    parameters = list({id(part.parameter): part.parameter for part in parts}.values())
    was = [parameter.requires_grad for parameter in parameters]
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        sums = _weight_gradients(ranked, parameters)
    finally:
        for parameter, before in zip(parameters, was, strict=True):
            parameter.requires_grad_(before)
    by_id = {id(parameter): total.abs() for parameter, total in zip(parameters, sums, strict=True)}
    return _mean_over_weights(ranked, blocks, lambda part: by_id[id(part.parameter)])


def _weight_gradients(ranked: Ranked, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of the mean loss over all samples."""
    model, samples, task = ranked.checkpoint.model, ranked.samples, ranked.checkpoint.task
    weight = 1.0 / torch.bincount(samples.sample_of_row).float()
    sums = [torch.zeros_like(parameter) for parameter in parameters]
    for batch in samples.batches:
        each = weight[samples.sample_of_row[batch.rows.cpu()]].to(batch.rows.device) / len(samples)
        with torch.enable_grad():
            loss = (task.losses(model(**batch.inputs), batch) * each).sum()
        for total, slope in zip(sums, torch.autograd.grad(loss, parameters, allow_unused=True), strict=True):
            if slope is not None:
                total += slope
    return sums


def _magnitude(ranked: Ranked) -> list[Tensor]:
    """The threshold is that below which the share of all weights lies that is to leave."""
    blocks = _blocks(ranked)
    parts = {id(part.parameter): part.parameter for block in blocks for part in (*block.inputs, block.output)}
    sizes = torch.cat([parameter.detach().abs().flatten() for parameter in parts.values()])
    rank = min(len(sizes), max(1, round(ranked.share * len(sizes))))
    threshold = sizes.kthvalue(rank).values
    return _mean_over_weights(ranked, blocks, lambda part: (part.parameter.detach().abs() > threshold).double())


def _random(ranked: Ranked) -> list[Tensor]:
    draw = torch.Generator().manual_seed(ranked.seed)
    signals = _signals(ranked)
    found = [torch.rand(signals.units(block), generator=draw) for block in range(len(signals.blocks()))]
    return _over_uses(ranked, found, lambda uses: uses[0])


SCORES: Mapping[str, Callable[[Ranked], list[Tensor]]] = {
    "taylor": lambda ranked: _mean_over_samples(ranked, torch.abs),
    "fisher": lambda ranked: _mean_over_samples(ranked, torch.square),
    "gradient": _gradient,
    "activation": _activation,
    "l1": lambda ranked: _mean_over_weights(ranked, _blocks(ranked), lambda part: part.parameter.detach().abs()),
    "magnitude": _magnitude,
    "random": _random,
}
"""The scores by name."""


def _signals(ranked: Ranked) -> Signals:
    return Signals(ranked.checkpoint.model, ranked.checkpoint.architecture, ranked.samples)


def _blocks(ranked: Ranked) -> list[BlockWeights]:
    return Signals.blocks_of(ranked.checkpoint.model, ranked.checkpoint.architecture)


def _over_uses(ranked: Ranked, blocks: Sequence[Tensor], combine: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Give all blocks that share their weights the same values, combined from those of each."""
    owners = [ranked.owners[block] for block in ranked.blocks]
    uses: dict[Block, list[Tensor]] = {}
    for owner, values in zip(owners, blocks, strict=True):
        uses.setdefault(owner, []).append(values)
    combined = {owner: combine(torch.stack(found)) for owner, found in uses.items()}
    return [combined[owner] for owner in owners]


def _mean_over_weights(
    ranked: Ranked, blocks: Sequence[BlockWeights], values_of: Callable[[Slice], Tensor]
) -> list[Tensor]:
    """The mean over each unit's weights of a value that every weight has."""
    dimensions = ranked.checkpoint.dimensions
    found = []
    for block, weights in zip(ranked.blocks, blocks, strict=True):
        total = block.size(dimensions)
        sums, count = torch.zeros(total, dtype=torch.float64), 0
        for part in (*weights.inputs, weights.output):
            values = values_of(part)
            sums += _sum_by_unit(part, values, total)
            count += part.count([0], total) * (values.numel() // values.shape[part.axis])
        found.append(sums / count)
    return _over_uses(ranked, found, lambda uses: uses.mean(dim=0))


def _sum_by_unit(part: Slice, values: Tensor, total: int) -> Tensor:
    """The sum of the values of the entries that each unit owns, shape (units,), float64."""
    along = values.transpose(0, part.axis).flatten(start_dim=1) if values.dim() > 1 else values[:, None]
    owners = along.double().sum(dim=1)[part.entries(range(total), total).to(along.device)].cpu()
    by_copy = owners.view(part.copies, total // part.share, -1).sum(dim=(0, 2))
    return by_copy.repeat_interleave(part.share)
