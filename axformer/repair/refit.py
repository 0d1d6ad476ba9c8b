"""Refit a whole plan from bottom to top: every block that the plan cuts, and every block above one.

The refit is *sequential*: the input of a block is the student's after everything below was fitted, and its target is the output
of the teacher, the untouched model, at the same token. So errors from below are repaired above. No label is used.

In a sentence embedder the target is *corrected by the residual* as well: by how far the hidden state that enters the block has
moved from the teacher's, so that block and residual together come to the teacher's sum. There every token counts; where a head
reads one, this brought nothing (docs/compress.md).
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from axformer.architectures.base import Architecture, BlockWeights
from axformer.architectures.embedder import spec_of
from axformer.data.batches import Batch, Samples
from axformer.evaluation.base import Fitting
from axformer.model.masking import masked
from axformer.plan.blocks import Block, all_blocks, blocks_of_layer
from axformer.plan.elements import Dimensions
from axformer.plan.plan import LayerPlan, Plan
from axformer.repair.blockwise import Blockwise
from axformer.repair.least_squares import Fit, Sums, refit
from axformer.wire.data_summary import Refitted

CHECKED_EVERY = 5
"""One in this many sequences serves to choose the ridge. The final fit uses all sequences."""


@dataclass(frozen=True)
class BlockFit:
    """The output projection of one block after a refit, in the precision of the model."""

    weight: Tensor | None
    """Shape (outputs, remaining columns), float32; None if no columns remain."""
    bias: Tensor | None
    """Shape (outputs,), float32; None if the projection has no bias."""
    ridge: float | None
    """The chosen ridge; None if only the bias was fitted."""
    tokens: int
    """Number of tokens in the fit."""


Refit = Mapping[Block, BlockFit]
"""The fits of blocks; unchanged blocks have none."""


class Fits(Protocol):
    """Fits the remaining weights of one model under plans. A fit is a function of the plan, the model and the calibration
    data."""

    def __init__(self, model: Any, architecture: Architecture, samples: Samples) -> None:
        """
        Args:
            model: whole and prepared; it is not changed.
            architecture: the model's family.
            samples: calibration data; its labels are not used.
        """

    @property
    def in_trials(self) -> Fitting | None:
        """Fits the layers that trials cut; None if only the models of whole plans are fitted."""

    def of(self, plan: Plan, check_cancelled: Callable[[], None] = lambda: None) -> Refit:
        """The fitted weights of a plan."""


class Refits:
    """Sequential refits of plans (:func:`refit_plan`), each computed once; see :class:`Fits`."""

    in_trials = None

    def __init__(self, model: Any, architecture: Architecture, samples: Samples) -> None:
        self._model = model
        self._architecture = architecture
        self._samples = samples
        self._files: dict[Plan, Path] = {}
        """The file of each plan's fits, since a run may have twenty plans and each has half a model's weights."""

    def of(self, plan: Plan, check_cancelled: Callable[[], None] = lambda: None) -> Refit:
        """The refit of a plan."""
        if plan not in self._files:
            directory = next(iter(self._files.values())).parent if self._files else scratch_of(self, "axformer-fits-")
            fits = refit_plan(self._model, self._architecture, self._samples, plan, check_cancelled)
            torch.save(fits, directory / str(len(self._files)))
            self._files[plan] = directory / str(len(self._files))
        fits = torch.load(self._files[plan], weights_only=False, map_location=self._model.device)
        assert isinstance(fits, dict), "it was written here"
        return fits


def scratch_of(owner: object, prefix: str) -> Path:
    """A directory for files of an object, which goes with the object."""
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    weakref.finalize(owner, shutil.rmtree, directory, ignore_errors=True)
    return directory


def refitted(fits: Refit | None) -> Refitted | None:
    """The summary of a refit for reports."""
    if fits is None:
        return None
    biases = sum(fit.ridge is None or fit.weight is None for fit in fits.values())
    fewest = min((fit.tokens / fit.weight.shape[1] for fit in fits.values() if fit.weight is not None), default=None)
    tokens = max(fit.tokens for fit in fits.values())
    return Refitted(blocks=len(fits), bias_only=biases, tokens=tokens, tokens_per_unknown=fewest)


def can_refit(model: Any, architecture: Architecture) -> bool:
    """Whether every output projection belongs to a single block; shared weights (ALBERT) cannot fit several blocks."""
    layers = architecture.layers(model)
    owned = [id(block.output.parameter) for layer in layers for block in _blocks(architecture, layer)]
    return len(set(owned)) == len(owned)


def refit_plan(
    model: Any,
    architecture: Architecture,
    samples: Samples,
    plan: Plan,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Refit:
    """Fit the remaining weights of a whole, prepared model under a plan. The model itself is not changed.

    Args:
        samples: calibration data; its labels are not used.
        check_cancelled: called between blocks; an exception from it ends the refit.
    """
    full = Plan.full(architecture.dimensions(model.config))
    found: dict[Block, BlockFit] = {}
    is_corrected = spec_of(model.config) is not None

    def put_found(index: int, layer: nn.Module, _: LayerPlan) -> None:
        for block in blocks_of_layer(index):
            if block in found:
                put(architecture, layer, block, found[block])

    teacher = Blockwise(model, architecture, samples, full)
    student = Blockwise(model, architecture, samples, plan, put_found)
    is_changed = False
    for block in all_blocks(len(plan.layers)):
        check_cancelled()
        before, after = full.layers[block.layer], plan.layers[block.layer]
        is_cut = block.part_of(before) != block.part_of(after)
        if (is_changed or is_cut) and block.is_kept_in(after):
            fit = _fit_block(teacher, student, after, is_corrected=is_corrected)
            if fit is not None:
                found[block] = fit
                student.cut_again()
        if not is_changed and not is_cut:
            teacher.advance()
            student.share_inputs(teacher)
            continue
        is_changed = True
        teacher.advance()
        student.advance()
    return found


def apply_refit(model: Any, architecture: Architecture, plan: Plan, fits: Refit) -> None:
    """Put fitted weights into a model in place. The model was cut as in the plan."""
    layers = architecture.layers(model)
    for block, fit in of_remaining(fits, plan).items():
        put(architecture, layers[block.layer], block, fit)


def of_remaining(fits: Refit, plan: Plan) -> Refit:
    """The fits of a plan by the blocks of the model from which the dropped layers were taken out."""
    places = {index: place for place, index in enumerate(plan.remaining)}
    return {Block(places[block.layer], block.kind): fit for block, fit in fits.items()}


def put(architecture: Architecture, layer: nn.Module, block: Block, fit: BlockFit) -> None:
    """Put copies of fitted weights into one block of a layer that was cut as in its plan; a training may change them there."""
    layout = architecture.layout(block)
    if fit.weight is None:
        assert fit.bias is not None, "without columns a constant is all that is fitted"
        layout.remove(layer, _frozen(fit.bias.clone()))
        return
    weights = layout.weights(layer)
    old = weights.output.parameter
    weights.output.replace(shaped_like(fit.weight, weights).to(old.device, old.dtype, copy=True))
    if fit.bias is not None and weights.bias is not None:
        weights.output.module.bias = _frozen(fit.bias.to(weights.bias.device, weights.bias.dtype, copy=True))


def matrix_of(weights: BlockWeights) -> Tensor:
    """The output projection as a matrix of shape (outputs, columns), with the columns of each unit next to each other."""
    parameter = weights.output.parameter.detach()
    return parameter.T if weights.output.axis == 0 else parameter.flatten(start_dim=1)


def shaped_like(matrix: Tensor, weights: BlockWeights) -> Tensor:
    """A matrix of :func:`matrix_of` in the shape of the output projection."""
    if weights.output.axis == 0:
        return matrix.T.contiguous()
    return matrix.view(len(matrix), -1, *weights.output.parameter.shape[2:])


class Calibration:
    """The sums of one block, separately for the sequences to fit to and for those that choose the ridge; copies of a sequence
    are all on one side."""

    def __init__(self, samples: Samples) -> None:
        self._first_rows = samples.first_rows
        self._sums: tuple[Sums, Sums] | None = None

    def add(self, batch: Batch, x: Tensor, y: Tensor) -> None:
        """Add one batch, shapes (sequences, tokens, columns) and (sequences, tokens, outputs)."""
        real = batch.inputs["attention_mask"].flatten(end_dim=-2).bool()
        if self._sums is None:
            origin = x[real].mean(dim=0), y[real].mean(dim=0)
            self._sums = Sums.around(*origin), Sums.around(*origin)
        first_rows = self._first_rows.to(batch.rows.device)[batch.rows]
        sequences = first_rows.repeat_interleave(len(real) // len(batch.rows))
        checked = (sequences % CHECKED_EVERY == 0)[:, None] & real
        for sums, chosen in zip(self._sums, (real & ~checked, checked), strict=True):
            sums.add(x[chosen], y[chosen])

    @property
    def sums(self) -> tuple[Sums, Sums]:
        """Sums over the tokens that candidates are fitted to, and over those that choose between the candidates."""
        assert self._sums is not None, "there is data"
        return self._sums


def block_fit(fit: Fit, tokens: int) -> BlockFit:
    """A fit in the precision of models."""
    weight = fit.weight.float() if fit.weight.shape[1] else None
    return BlockFit(weight, None if fit.bias is None else fit.bias.float(), fit.ridge, tokens)


def _fit_block(teacher: Blockwise, student: Blockwise, plan: LayerPlan, *, is_corrected: bool) -> BlockFit | None:
    """Fit the current block of both walks; None if no column is left and there is no bias to fit.

    Args:
        is_corrected: whether the target is corrected by the residual.
    """
    wanted, has_units = teacher.weights, bool(student.block.units_in(plan))
    has_bias = wanted.bias is not None
    if not has_units and not has_bias:
        return None
    matrix, bias = matrix_of(wanted), None if wanted.bias is None else wanted.bias.detach()
    calibration = Calibration(teacher.samples)
    sources = student.look() if has_units else None
    for (batch, x), moved in zip(teacher.look(), _moved(teacher, student, is_corrected=is_corrected), strict=True):
        source = x[..., :0] if sources is None else next(sources)[1]
        calibration.add(batch, source, functional.linear(x, matrix, bias) - moved)
    old = matrix_of(student.weights) if has_units else matrix[:, :0]
    fitting, checking = calibration.sums
    return block_fit(refit(old, fitting, checking, has_bias=has_bias), fitting.count + checking.count)


def _moved(teacher: Blockwise, student: Blockwise, *, is_corrected: bool) -> Iterator[Tensor | float]:
    """By how much the input of the student's block differs from the teacher's, batch by batch; 0 where that is not to be
    repaired."""
    for wanted, given in zip(teacher.inputs, student.inputs, strict=True):
        yield 0.0 if wanted is None or given is None or not is_corrected else given - wanted


def _blocks(architecture: Architecture, layer: nn.Module) -> tuple[BlockWeights, BlockWeights]:
    return architecture.attention.weights(layer), architecture.ffn.weights(layer)


def _frozen(value: Tensor) -> nn.Parameter:
    return nn.Parameter(value, requires_grad=False)


@contextmanager
def masked_and_fitted(model: Any, architecture: Architecture, plan: Plan, fits: Refit) -> Iterator[None]:
    """Inside the ``with`` block, a prepared model computes the same as the fitted compact model.

    Raises:
        PlanError: the plan belongs to another model.
    """
    dimensions, layers = architecture.dimensions(model.config), architecture.layers(model)
    with masked(model, architecture, plan), ExitStack() as undo:
        for block, fit in fits.items():
            weights = architecture.layout(block).weights(layers[block.layer])
            if fit.weight is not None:  # without columns, masking has zeroed everything already
                wide = _widened(fit.weight, weights, plan, block, dimensions)
                _set(undo, weights.output.module, weights.output.name, wide)
            if fit.bias is not None and weights.bias is not None:
                _set(undo, weights.output.module, "bias", fit.bias.to(weights.bias.device, weights.bias.dtype))
        yield


def _widened(fitted: Tensor, weights: BlockWeights, plan: Plan, block: Block, dimensions: Dimensions) -> Tensor:
    """The whole output projection, with the fitted matrix at the remaining columns and zeros at the others."""
    output = weights.output
    whole = torch.zeros_like(output.parameter)
    columns = output.entries(block.units(plan), block.size(dimensions)).to(whole.device)
    return whole.index_copy(output.axis, columns, shaped_like(fitted, weights).to(whole.device, whole.dtype))


def _set(undo: ExitStack, module: nn.Module, name: str, value: Tensor) -> None:
    undo.callback(setattr, module, name, getattr(module, name))
    setattr(module, name, nn.Parameter(value, requires_grad=False))
