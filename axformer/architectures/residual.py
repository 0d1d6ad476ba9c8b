"""What stands in a post-LN layer where a block was: the residual stream, its LayerNorm, and at most a constant."""

from torch import Tensor, nn


class ResidualNorm(nn.Module):
    """``LayerNorm(hidden)``, or ``LayerNorm(hidden + bias)`` where all heads or neurons of a kept block are gone."""

    def __init__(self, norm: nn.Module, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.norm = norm
        self.bias = bias

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise; shapes (batch, tokens, hidden)."""
        normed: Tensor = self.norm(hidden if self.bias is None else hidden + self.bias)
        return normed
