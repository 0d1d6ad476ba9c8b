"""Fit each block locally: the rest of its output projection is fitted to the outputs of the whole block, on the block's inputs
in the untouched model.

The fit of a block depends only on what the plan keeps of this block. So the weights of a trial are a function of its plan, and
a trial that changes one block costs one fit. Changes of the inputs by other blocks are not repaired. For that there is
:func:`axformer.repair.refit.refit_plan`, which refits every block above a change.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from axformer.architectures.base import Architecture
from axformer.data.batches import Samples
from axformer.plan.blocks import Block, all_blocks, blocks_of_layer
from axformer.plan.plan import LayerPlan, Plan
from axformer.repair.blockwise import Blockwise
from axformer.repair.least_squares import Sums, refit
from axformer.repair.leaving import Leaving, columns_of, leaving_order
from axformer.repair.refit import BlockFit, Calibration, Refit, block_fit, matrix_of, put, scratch_of

KEPT = 4
"""Number of fits kept for each block: they serve the current plan, the plan on trial, and an element whose parts are tried."""


@dataclass(frozen=True)
class WholeBlock:
    """A block of the untouched model, with sums over its inputs and outputs on the calibration data."""

    weight: Tensor
    """The output projection, shape (outputs, columns)."""
    has_bias: bool
    fitting: Sums
    """Sums over the tokens that candidates are fitted to."""
    checking: Sums
    """Sums over the tokens that choose between the candidates."""

    @classmethod
    def before(cls, teacher: Blockwise) -> "WholeBlock":
        """The current block of a walk up the untouched model."""
        weight, bias = matrix_of(teacher.weights), teacher.weights.bias
        calibration = Calibration(teacher.samples)
        for batch, x in teacher.look():
            calibration.add(batch, x, functional.linear(x, weight, None if bias is None else bias.detach()))
        return cls(weight, bias is not None, *calibration.sums)

    @property
    def covariance(self) -> Tensor:
        """Covariance of the projection's inputs, shape (columns, columns), float64."""
        return (self.fitting + self.checking).covariances[0]

    def fit(self, kept: Sequence[int], units: int) -> BlockFit | None:
        """Fit the output projection with some of its units; None if no unit is kept and there is no bias to fit.

        Args:
            kept: the remaining heads or neurons.
            units: number of units of the whole block.
        """
        if not kept and not self.has_bias:
            return None
        columns = columns_of(kept, self.weight.shape[1] // units, self.weight.device)
        parts = self.fitting.of(columns), self.checking.of(columns)
        fit = refit(self.weight[:, columns], *parts, has_bias=self.has_bias)
        return block_fit(fit, self.fitting.count + self.checking.count)


class LocalFits:
    """The fits of all blocks, each computed when a plan needs it; see :class:`axformer.repair.refit.Fits`.

    The sums of the blocks are kept in files.
    """

    def __init__(self, model: Any, architecture: Architecture, samples: Samples) -> None:
        self._model = model
        self._architecture = architecture
        self._samples = samples
        self._dimensions = architecture.dimensions(model.config)
        self._files: Path | None = None
        self._found: dict[Block, OrderedDict[tuple[int, ...], BlockFit | None]] = {}
        self._orders: dict[Block, Leaving] = {}

    @property
    def in_trials(self) -> Self:
        return self

    def of(self, plan: Plan, check_cancelled: Callable[[], None] = lambda: None) -> Refit:
        """The fit of every block that the plan keeps in part."""
        found = {}
        for block in all_blocks(len(plan.layers)):
            kept = self._kept(block, plan.layers[block.layer])
            if kept is not None:
                fit = self._fit(block, kept, check_cancelled)
                if fit is not None:
                    found[block] = fit
        return found

    def prepare(self, plan: Plan) -> None:
        """Compute the fits of a plan, so that :meth:`fit` finds them."""
        self.of(plan)

    def fit(self, index: int, layer: nn.Module, plan: LayerPlan) -> None:
        """Put the fitted weights into layer number ``index``, which was cut as in its plan."""
        for block in blocks_of_layer(index):
            kept = self._kept(block, plan)
            fit = None if kept is None else self._found[block][kept]
            if fit is not None:
                put(self._architecture, layer, block, fit)

    def order(self, block: Block) -> Leaving:
        """The order in which the heads or neurons of a block leave."""
        if block not in self._orders:
            whole = self._whole(block)
            self._orders[block] = leaving_order(whole.weight, whole.covariance, block.size(self._dimensions))
        return self._orders[block]

    def _kept(self, block: Block, plan: LayerPlan) -> tuple[int, ...] | None:
        """The units that are kept of a block; None if it is whole, or removed together with its bias."""
        kept = tuple(block.units_in(plan))
        return kept if block.is_kept_in(plan) and len(kept) < block.size(self._dimensions) else None

    def _fit(self, block: Block, kept: tuple[int, ...], check_cancelled: Callable[[], None]) -> BlockFit | None:
        found = self._found.setdefault(block, OrderedDict())
        if kept not in found:
            found[kept] = self._whole(block, check_cancelled).fit(kept, block.size(self._dimensions))
        found.move_to_end(kept)
        while len(found) > KEPT:
            found.popitem(last=False)
        return found[kept]

    def _whole(self, block: Block, check_cancelled: Callable[[], None] = lambda: None) -> WholeBlock:
        if self._files is None:
            self._files = self._measure(check_cancelled)
        whole = torch.load(self._files / str(block.number), weights_only=False, map_location=self._model.device)
        assert isinstance(whole, WholeBlock), "it was written here"
        return whole

    def _measure(self, check_cancelled: Callable[[], None]) -> Path:
        """Walk up the untouched model once and write the sums of each block; returns their directory."""
        files = scratch_of(self, "axformer-sums-")
        teacher = Blockwise(self._model, self._architecture, self._samples, Plan.full(self._dimensions))
        for block in all_blocks(self._dimensions.layers):
            check_cancelled()
            torch.save(WholeBlock.before(teacher), files / str(block.number))
            teacher.advance()
        return files
