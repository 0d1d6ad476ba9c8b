"""Estimate the memory of a pass from sizes alone, so that a job that cannot fit is refused before anything is loaded.

:func:`least` is the minimum that a pass can run with: it counts nothing that is kept between trials (``docs/workers.md``),
since all of that can be in a file. The peak is during the search (the model, its layers packed for the processor, and one
batch), during publishing (the model, a copy for surgery, and the smaller model), or during a training (the model, a smaller
one, its gradients and the optimizer's state).
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from axformer.config import RunConfig
from axformer.plan.elements import Dimensions
from axformer.wire.finetuning import FinetuneSettings

FLOAT64, FLOAT32 = 8, 4
PROCESS_BYTES = 300 * 2**20
"""Memory of Python, PyTorch and transformers before anything is loaded; of the 480 MiB measured, a good third are pages of
program files, which the system can reclaim."""
GPU_PROCESS_BYTES = 1000 * 2**20
"""The same where CUDA is at work too; 1.5 GB were measured on an H200 (docs/workers.md), with the pages of program files."""
ROW_BYTES_PER_BYTE = 10
"""Main memory per byte of a data file. Text, lists of token ids and tensors took 47 bytes for short rows; this counts lists and
tensors alone, at eight bytes of file per token."""
TOKEN_BYTES = 5
"""Bytes of a data file per token: English text has four to five letters per token, and the file also has column names."""
MATRICES = 6
"""Matrices of a refit at once, as wide as the widest block: two sums, their total, one with ridge, a factor, an inverse."""
INPUTS = 4
"""Stored inputs of a refit: of a block and the next one, for teacher and student."""
ROWS_OF_A_BATCH = 4
"""Tensors of shape (tokens, hidden) that a block holds at once: residual stream, queries, keys and values."""
TRAINED = 3
"""Copies of a trained weight: its gradient, and the two moments of AdamW."""

HELD_HIDDEN, HELD_WIDE = 8, 2
"""Tensors as wide as the hidden size, and as the FFN, that a layer holds for the way back; counted in BERT and MPNet."""


@dataclass(frozen=True)
class Sizes:
    """The counts of a checkpoint, from its files without loading them."""

    parameters: int
    layer_parameters: int
    """Parameters in numbered layers; the others are embeddings and the head."""
    dimensions: Dimensions
    outputs_per_token: int
    """Outputs of the head per token: the vocabulary of a language model, otherwise 0."""


InputName = Literal["checkpoint", "validation", "test", "calibrate", "unlabelled", "train"]
"""The fields of a run that name an input."""


@dataclass(frozen=True)
class DataSizes:
    """How much data there is, from its files without reading a row."""

    bytes: Mapping[str, int]
    """Of each file, by the fields of the run."""
    fitted_tokens: int
    """Tokens of the rows that weights are fitted to."""

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(self.bytes.values())


@dataclass(frozen=True)
class Footprint:
    """Bytes of main memory and of GPU memory; on a CPU everything is in main memory."""

    host_bytes: int
    device_bytes: int


@dataclass(frozen=True)
class RunWork:
    """What is done with a model."""

    config: RunConfig
    training: FinetuneSettings | None = None
    """Of what is left; None if nothing is trained but by ``polish``."""
    takes_gradients: bool = False
    """Whether gradients are taken although no knob asks for them."""
    has_new_head: bool = False
    """Whether the whole model is trained with a new head first."""


def least(sizes: Sizes, data: DataSizes, work: RunWork, batch_tokens: int, *, on_gpu: bool) -> Footprint:
    """The minimum memory of a pass.

    Args:
        batch_tokens: tokens evaluated together if the knob is not set.
    """
    config = work.config
    weights, layers = FLOAT32 * sizes.parameters, FLOAT32 * sizes.layer_parameters
    batch_of = min(config.batch_tokens or batch_tokens, _tokens(data.total))
    batch = _batch_bytes(sizes, batch_of, on_gpu=on_gpu)
    fitting = _fitting(sizes, data.fitted_tokens) if config.needs.fitting else 0
    sensitivity = _sensitivity(sizes, batch_of) if config.needs.gradients or work.takes_gradients else 0
    packed = 0 if on_gpu else layers  # a CPU has a copy of the layers in the order of its kernels
    searching = weights + packed + batch + max(fitting, sensitivity)
    # The copy is whole until surgery, and only parameters in layers are ever removed.
    publishing = weights + max(weights, weights - layers + batch) + weights - layers
    most, rows = max(searching, publishing, _training(sizes, work)), ROW_BYTES_PER_BYTE * data.total
    if on_gpu:
        return Footprint(host_bytes=GPU_PROCESS_BYTES + weights + rows, device_bytes=most)
    return Footprint(host_bytes=PROCESS_BYTES + most + rows, device_bytes=0)


def at_ease(sizes: Sizes, data: DataSizes, work: RunWork, batch_tokens: int, *, on_gpu: bool) -> Footprint:
    """The approximate memory of a pass that keeps every block's input for every sample."""
    need, config = least(sizes, data, work, batch_tokens, on_gpu=on_gpu), work.config
    blocks = 2 * sizes.dimensions.layers
    kept = FLOAT32 * _tokens(data.bytes.get("validation", 0)) * sizes.dimensions.hidden_size * blocks
    kept = kept if config.cache_budget is None else min(kept, config.cache_budget)
    if on_gpu:
        return Footprint(need.host_bytes, need.device_bytes + kept)
    return Footprint(need.host_bytes + kept, 0)


def smallest(need_of: Callable[[int], int]) -> int:
    """The least memory of a device that a job fits, in bytes.

    Args:
        need_of: what the job needs on a device with so much memory. More memory makes larger batches, so that it grows, up to
            a largest batch.
    """
    memory = 0
    while (needed := need_of(memory)) > memory:
        memory = needed
    return memory


def with_models(one: Footprint, sizes: Sizes, models: int, *, on_gpu: bool) -> Footprint:
    """The memory of work that takes this much with one model of a size, and has so many of them."""
    more = FLOAT32 * sizes.parameters * (models - 1)
    if on_gpu:
        return Footprint(one.host_bytes, one.device_bytes + more)
    return Footprint(one.host_bytes + more, one.device_bytes)


def largest_part(sizes: Sizes, data: DataSizes, work: RunWork, batch_tokens: int, *, on_gpu: bool) -> InputName:
    """The input that takes most of the memory of a pass, by the fields of the run."""

    def needed(part: DataSizes) -> int:
        need = least(sizes, part, work, batch_tokens, on_gpu=on_gpu)
        return need.host_bytes + need.device_bytes

    whole, without_fitted = needed(data), needed(replace(data, fitted_tokens=0))
    model = needed(DataSizes({}, 0))
    if 2 * model >= whole:
        return "checkpoint"
    if whole - without_fitted > without_fitted - model:
        return cast(InputName, fitted_part(data.bytes))
    return cast(InputName, max(data.bytes, key=data.bytes.__getitem__))


def fitted_part(given: Container[str]) -> str:
    """The field of a run whose rows weights are fitted to, of those that are given."""
    return next((part for part in ("calibrate", "unlabelled") if part in given), "validation")


def _tokens(data_bytes: int) -> int:
    return data_bytes // TOKEN_BYTES


def _batch_bytes(sizes: Sizes, tokens: int, *, on_gpu: bool) -> int:
    """The memory of one batch in a block or in the head. A GPU holds the FFN's inside before and after its activation function;
    on a CPU both are one."""
    hidden, wide = sizes.dimensions.hidden_size, sizes.dimensions.intermediate_size
    block = max(ROWS_OF_A_BATCH * hidden, hidden + (2 if on_gpu else 1) * wide)
    return FLOAT32 * tokens * max(block, sizes.outputs_per_token)


def _fitting(sizes: Sizes, tokens: int) -> int:
    """The memory of a refit: matrices of the widest block, a block's inputs for teacher and student, and refitted weights."""
    hidden, wide = sizes.dimensions.hidden_size, sizes.dimensions.intermediate_size
    fitted = sizes.dimensions.layers * hidden * (hidden + wide)
    return MATRICES * FLOAT64 * wide**2 + FLOAT32 * (INPUTS * tokens * hidden + fitted)


def _sensitivity(sizes: Sizes, tokens: int) -> int:
    """The memory of gradients: what all layers hold of a batch for the way back, and a matrix for each block."""
    layers, hidden, wide = sizes.dimensions.layers, sizes.dimensions.hidden_size, sizes.dimensions.intermediate_size
    held = HELD_HIDDEN * hidden + HELD_WIDE * wide
    return layers * (FLOAT32 * tokens * held + 2 * FLOAT64 * hidden**2)


def _training(sizes: Sizes, work: RunWork) -> int:
    """The memory of a training without its activations: the untouched model, and the trained one with AdamW's moments."""
    if work.training is None and not work.config.needs.polish:
        return 0
    settings = work.training or FinetuneSettings()
    layers, others = sizes.dimensions.layers, sizes.parameters - sizes.layer_parameters
    left = max(layers - (0 if work.has_new_head else work.config.needs.drops), 0)
    free = left - sum(layer < layers for layer in settings.frozen_layers())
    trained = sizes.layer_parameters * max(free, 0) // layers + (0 if settings.freezes_embeddings else others)
    keeps_best = work.training is None or settings.patience is not None  # with a copy of the weights of before
    cut = others + sizes.layer_parameters * left // layers
    return FLOAT32 * (sizes.parameters + (2 if keeps_best else 1) * cut + TRAINED * trained)
