"""Modules that use weights of other modules, so that these are counted, saved and loaded once."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from axformer.architectures.slices import Slice


class Shared(nn.Module):
    """Calls a module that belongs to somebody else."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self._owner = (owner,)  # in a tuple, so that it does not become a part of this module

    def forward(self, hidden: Tensor) -> Tensor:
        """What the owner gives."""
        output: Tensor = self._owner[0](hidden)
        return output


class SharedSlice(nn.Module):
    """A linear module made of some rows or some columns of another."""

    def __init__(self, owner: nn.Module, axis: int, entries: Sequence[int]) -> None:
        super().__init__()
        self._owner = (owner,)
        self.axis = axis
        self.entries = list(entries)

    @classmethod
    def of(cls, part: Slice, units: Sequence[int], total: int) -> nn.Module:
        """What some of the ``total`` units of a linear module's weight own."""
        if len(units) == total:
            return Shared(part.module)
        return cls(part.module, part.axis, part.entries(units, total).tolist())

    def forward(self, hidden: Tensor) -> Tensor:
        """The linear map; shapes (..., inputs) to (..., outputs)."""
        owner: Any = self._owner[0]
        entries = hidden.new_tensor(self.entries).long()
        bias = owner.bias if owner.bias is None or self.axis == 1 else owner.bias[entries]
        return functional.linear(hidden, owner.weight.index_select(self.axis, entries), bias)


class SharedBias(nn.Module):
    """What an emptied projection still adds: the bias of another module."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self._owner = (owner,)

    def forward(self, *_: Any, **__: Any) -> Tensor:
        """The bias, whatever comes in."""
        owner: Any = self._owner[0]
        bias: Tensor = owner.bias
        return bias


class UsedNorm(nn.Module):
    """Takes the place of a post-LN attention block: LayerNorm, and the bias of an emptied projection inside it."""

    def __init__(self, norm: nn.Module, biased: nn.Module | None) -> None:
        super().__init__()
        self.LayerNorm = norm
        self._biased = (biased,)

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        """The output and no probabilities; shapes (batch, tokens, hidden)."""
        biased: Any = self._biased[0]
        return self.LayerNorm(hidden if biased is None else hidden + biased.bias), None
