"""Scores of layers, from their weights or from what they do to inputs (Sajjad et al., 2023, sections 3.3 and 3.4; see
:mod:`axformer.methods.layers.strategies`)."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from axformer.architectures.base import Architecture
from axformer.data.batches import Batch, Samples
from axformer.errors import ConfigError
from axformer.model.tail import ReadPosition, read_positions


def aggregation(model: Any, architecture: Architecture) -> list[float]:
    """The sum of the magnitudes of each layer's last projection: layers with small sums matter least (section 3.3).

    The paper says "aggregate" and means the final weights of a layer; magnitudes are our reading of it.

    Raises:
        ConfigError: layers share their weights, so their scores would be equal.
    """
    return [float(weight.abs().sum()) for weight in _last_projections(model, architecture)]


def variance(model: Any, architecture: Architecture) -> list[float]:
    """The variance of each layer's last projection: layers with small variances matter least (section 3.3).

    Raises:
        ConfigError: layers share their weights, so their scores would be equal.
    """
    return [float(weight.var(correction=0)) for weight in _last_projections(model, architecture)]


def _last_projections(model: Any, architecture: Architecture) -> list[Tensor]:
    parameters = [architecture.ffn.weights(layer).output.parameter for layer in architecture.layers(model)]
    if len({id(parameter) for parameter in parameters}) < len(parameters):
        raise ConfigError(
            f"layers of {architecture.model_type} share their weights, which therefore do not tell which layers matter; "
            "choose another strategy"
        )
    return [parameter.detach().double() for parameter in parameters]


@torch.inference_mode()
def contribution(
    model: Any, architecture: Architecture, samples: Samples, check_cancelled: Callable[[], None] = lambda: None
) -> list[float]:
    """The mean cosine between input and output of each layer, at the position that the head reads (section 3.4).

    A layer with a high score changes its input little. If the head reads several positions, a row's cosine is the mean over
    its tokens without padding. DeBERTa's convolution is no part of the layer below it.

    Args:
        model: whole and prepared.
        architecture: its family.
        samples: the data; each model row counts once.
        check_cancelled: called before each batch; an exception from it ends the measurement.
    """
    layers = architecture.layers(model)
    total, rows = torch.zeros(len(layers), dtype=torch.float64), 0
    for batch in samples.batches:
        check_cancelled()
        position = read_positions(model, architecture, batch)
        cosines: list[Tensor] = []
        with ExitStack() as undo:
            for layer in layers:
                see = _seen_by(cosines, batch, architecture, position)
                undo.callback(layer.register_forward_hook(see).remove)
            model(**batch.inputs)
        found = torch.stack(cosines).double()  # (layers, sequences)
        total += found.sum(dim=1).cpu()
        rows += found.shape[1]
    return [float(score) for score in total / rows]


def _seen_by(
    cosines: list[Tensor], batch: Batch, architecture: Architecture, position: ReadPosition | None
) -> Callable[..., None]:
    """A hook on a layer that adds the cosine of each sequence, shape (sequences,)."""

    def see(_: Any, inputs: tuple[Any, ...], output: Any) -> None:
        before, after = inputs[0], output[0] if isinstance(output, tuple) else output
        if position is not None:
            one, other = (position.narrow(hidden).flatten(end_dim=1) for hidden in (before, after))
            cosines.append(cosine_similarity(one, other, dim=-1))
            return
        similar = cosine_similarity(before, after, dim=-1)
        real = batch.inputs["attention_mask"].flatten(end_dim=-2).to(similar.dtype)
        by_row = similar if architecture.token_axis == 1 else similar.T
        cosines.append((by_row * real).sum(dim=1) / real.sum(dim=1))

    return see
