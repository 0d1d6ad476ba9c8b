"""Replacements for removed blocks: nothing, or the constant that an emptied block still adds to the residual stream."""

from typing import Any

import torch
from torch import Tensor, nn


class Constant(nn.Module):
    """Replaces a projection or a block whose output was added to the residual stream.

    Returns 0, or the bias of the output projection if the block is kept but all its heads or neurons are removed. It has no
    batch and token dimensions, since it is only ever added.
    """

    def __init__(self, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.bias = bias

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """Return the constant for any input."""
        return torch.zeros(()) if self.bias is None else self.bias


class ConstantAttention(Constant):
    """:class:`Constant` for attention modules, which also return probabilities."""

    def forward(self, *_: Any, **__: Any) -> Any:
        """Return the constant and no probabilities for any input."""
        return super().forward(), None


class ResidualNorm(nn.Module):
    """Replaces a post-LN block that contains its own LayerNorm, which stays."""

    def __init__(self, norm: nn.Module, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.layer_norm = norm
        self.bias = bias

    def forward(self, hidden: Tensor) -> Any:
        """``LayerNorm(hidden)``, plus the constant inside it; shapes (batch, tokens, hidden)."""
        return self.layer_norm(hidden if self.bias is None else hidden + self.bias)


class ConstantDecoderAttention(ConstantAttention):
    """:class:`ConstantAttention` for decoders, whose cache of keys and values counts the tokens seen."""

    def __init__(self, bias: nn.Parameter | None, layer_idx: int) -> None:
        super().__init__(bias)
        self.layer_idx = layer_idx

    def forward(self, hidden_states: Tensor, *_: Any, past_key_values: Any = None, **__: Any) -> Any:
        """Return the constant and no probabilities; one zero key and value per token keeps the cache's count."""
        if past_key_values is not None:
            nothing = hidden_states.new_zeros((hidden_states.shape[0], 1, hidden_states.shape[1], 1))
            past_key_values.update(nothing, nothing, self.layer_idx)
        return super().forward()
