"""Modules that use other modules' weights, so that these are counted, saved and loaded once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from axformer.architectures.slices import Slice


class Shared(nn.Module):
    """Calls a module that belongs to another module."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self._owner = (owner,)  # in a tuple, so that it is not registered as a submodule

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the owner's output."""
        output: Tensor = self._owner[0](hidden)
        return output


class SharedLinear(nn.Module):
    """A linear module that uses another's weight, or some of its rows or columns."""

    def __init__(self, part: Slice, units: Sequence[int], total: int) -> None:
        """Use the part of a linear module's weight that some of its ``total`` units own."""
        super().__init__()
        self._owner = (part.module,)
        self._axis = part.axis
        self._entries = None if len(units) == total else part.entries(units, total).tolist()

    @property
    def weight(self) -> Tensor:
        """Shape (outputs, inputs)."""
        owner: Any = self._owner[0]
        weight: Tensor = owner.weight
        return weight if self._entries is None else weight.index_select(self._axis, self._places)

    @property
    def bias(self) -> Tensor | None:
        """Shape (outputs,)."""
        owner: Any = self._owner[0]
        bias: Tensor | None = owner.bias
        return bias if bias is None or self._entries is None or self._axis == 1 else bias[self._places]

    @property
    def _places(self) -> Tensor:
        owner: Any = self._owner[0]
        return torch.tensor(self._entries, device=owner.weight.device)

    def forward(self, hidden: Tensor) -> Tensor:
        """The linear map; shapes (..., inputs) to (..., outputs)."""
        return functional.linear(hidden, self.weight, self.bias)


class SharedBias(nn.Module):
    """Replaces an emptied projection, which still adds the bias of another module."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self._owner = (owner,)

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """Return the bias for any input."""
        owner: Any = self._owner[0]
        bias: Tensor = owner.bias
        return bias


class UsedNorm(nn.Module):
    """Replaces a post-LN attention block: LayerNorm, with the bias of an emptied projection inside it."""

    def __init__(self, norm: nn.Module, biased: nn.Module | None) -> None:
        super().__init__()
        self.LayerNorm = norm
        self._biased = (biased,)

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        """The output and no probabilities; shapes (batch, tokens, hidden)."""
        biased: Any = self._biased[0]
        return self.LayerNorm(hidden if biased is None else hidden + biased.bias), None
