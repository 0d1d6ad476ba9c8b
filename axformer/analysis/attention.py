"""The attention probabilities of a prepared model, and how far those of two models are apart."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from axformer.architectures.base import Architecture
from axformer.architectures.hard_attention import ATTENTION_DIMENSIONS, HardAttentionDropout


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
