"""What stands where a block was: nothing but the residual stream, or the constant that an emptied block still adds."""

from typing import Any

import torch
from torch import Tensor, nn


class Constant(nn.Module):
    """Takes the place of a projection or a block whose output was added to the residual stream.

    Gives 0, or the bias of the projection out where the block is kept but all its heads or neurons are gone. It has no
    dimensions of batch and tokens: it is only ever added.
    """

    def __init__(self, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.bias = bias

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """The constant, whatever comes in."""
        return torch.zeros(()) if self.bias is None else self.bias


class ConstantAttention(nn.Module):
    """The same for attention modules, which give back probabilities too."""

    def __init__(self, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.bias = bias

    def forward(self, *_: Any, **__: Any) -> tuple[Tensor, None]:
        """The constant and no probabilities, whatever comes in."""
        return (torch.zeros(()) if self.bias is None else self.bias), None


class ResidualNorm(nn.Module):
    """Takes the place of a post-LN block that holds its own LayerNorm, which stays."""

    def __init__(self, norm: nn.Module, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.layer_norm = norm
        self.bias = bias

    def forward(self, hidden: Tensor) -> Tensor:
        """``LayerNorm(hidden)``, plus the constant inside it; shapes (batch, tokens, hidden)."""
        normed: Tensor = self.layer_norm(hidden if self.bias is None else hidden + self.bias)
        return normed


class ConstantDecoderAttention(nn.Module):
    """The same for decoders, which ask the cache of keys and values how many tokens they have seen."""

    def __init__(self, bias: nn.Parameter | None, layer_idx: int) -> None:
        super().__init__()
        self.bias = bias
        self.layer_idx = layer_idx

    def forward(self, hidden_states: Tensor, *_: Any, past_key_values: Any = None, **__: Any) -> tuple[Tensor, None]:
        """The constant and no probabilities; tokens are counted in the cache by keys and values of one 0 each."""
        if past_key_values is not None:
            nothing = hidden_states.new_zeros((len(hidden_states), 1, hidden_states.shape[1], 1))
            past_key_values.update(nothing, nothing, self.layer_idx)
        return (torch.zeros(()) if self.bias is None else self.bias), None
