"""Slices: the entries of a parameter that a head or a neuron owns. Masking, surgery and counting are based on them.

Projections may stand alone, be fused into one (GPT-2's ``c_attn``, ModernBERT's ``Wqkv`` and ``Wi``), be shared between
heads (grouped queries), be transposed (``Conv1D``), or be bare parameters (XLNet). A slice describes all of this as data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


@dataclass(frozen=True)
class Slice:
    """A parameter of which each unit, a head or a neuron, owns some entries along one axis."""

    module: nn.Module
    name: str
    """The parameter's name in its module."""
    axis: int
    copies: int = 1
    """Number of matrices that are concatenated along the axis."""
    share: int = 1
    """Units that share the same entries: query heads per key/value head."""

    @property
    def parameter(self) -> Tensor:
        """The current parameter."""
        parameter: Tensor = getattr(self.module, self.name)
        return parameter

    def entries(self, units: Sequence[int], total: int) -> Tensor:
        """Indices along the axis that these units own, ascending within each copy, on the CPU.

        Args:
            total: the number of units that the parameter has now.
        """
        first = torch.tensor(self._owners(units), dtype=torch.long, device="cpu") * self._size(total)
        owned = first[:, None] + torch.arange(self._size(total), device="cpu")
        copies = torch.arange(self.copies, device="cpu") * (self.parameter.shape[self.axis] // self.copies)
        return (copies[:, None] + owned.flatten()).flatten()

    def count(self, units: Sequence[int], total: int) -> int:
        """The number of those indices."""
        return self.copies * len(self._owners(units)) * self._size(total)

    def _owners(self, units: Sequence[int]) -> list[int]:
        return sorted({unit // self.share for unit in units})

    def _size(self, total: int) -> int:
        """Indices that one owner has in one copy."""
        return int(self.parameter.shape[self.axis]) * self.share // (self.copies * total)

    def part(self, units: Sequence[int], total: int) -> Tensor:
        """The entries themselves."""
        parameter = self.parameter.detach()
        return parameter.index_select(self.axis, self.entries(units, total).to(parameter.device))

    def replace(self, value: Tensor) -> None:
        """Replace the parameter, and update the module's size attributes."""
        setattr(self.module, self.name, nn.Parameter(value, requires_grad=self.parameter.requires_grad))
        if self.name != "weight":
            return
        if isinstance(self.module, nn.Linear):
            self.module.out_features, self.module.in_features = value.shape
        elif isinstance(self.module, Conv1D):
            self.module.nx, self.module.nf = value.shape


def is_projection(module: nn.Module) -> bool:
    """Whether a module is a linear map."""
    return isinstance(module, nn.Linear | Conv1D)


def into(projection: nn.Module, *, copies: int = 1, share: int = 1) -> tuple[Slice, ...]:
    """The slices of a projection whose outputs belong to units."""
    axis = 1 if isinstance(projection, Conv1D) else 0
    weight = Slice(projection, "weight", axis, copies, share)
    return (weight,) if projection.bias is None else (weight, Slice(projection, "bias", 0, copies, share))


def out_of(projection: nn.Module) -> Slice:
    """The slice of a projection whose inputs belong to units."""
    return Slice(projection, "weight", 0 if isinstance(projection, Conv1D) else 1)
