"""What memory a pass needs, from sizes alone: so that a job that cannot run here is refused before anything is loaded.

It is the least that a pass can do with, not what it would like: of what is kept between trials (``docs/memory.md``) nothing is
counted in :func:`least`, since all of it can be in a file. A pass takes the most either while it searches, with the model, its
layers packed for the processor, and one batch; or when it publishes, with the model, a copy on which surgery is done, and
the smaller model that takes over from it.
"""

from dataclasses import dataclass

from axformer.config import RunConfig
from axformer.plan.elements import Dimensions

FLOAT64, FLOAT32, HALF = 8, 4, 2
PROCESS_BYTES = 300 * 2**20
"""What a process holds of Python, PyTorch and transformers before it loads anything; 480 MiB were seen, of which a good third
are pages of program files, which the system can take back."""
ROW_BYTES_PER_BYTE = 10
"""Main memory for each byte of a data file: text, lists of token ids and their tensors came to 47 for short rows; this is the
lists and tensors alone, at eight bytes of file a token."""
TOKEN_BYTES = 5
"""Of a data file for each token; English text has four to five letters a token, and the file its columns' names besides."""
MATRICES = 6
"""Of a refit at once, as wide as the widest block: two sums, both together, one with its ridge, its factor and its inverse."""
INPUTS = 4
"""Of a block and of the next one, of teacher and student."""
MODELS_KEPT = 4
"""Fitted weights of whole models: eight budgets, half as large on average."""
ROWS_OF_A_BATCH = 4
"""Tensors of (tokens, hidden) that a block holds at once: the residual stream, queries, keys and values."""


@dataclass(frozen=True)
class Sizes:
    """The counts of a checkpoint, as its files say them without being loaded."""

    parameters: int
    layer_parameters: int
    """Those that are in numbered layers; the others are embeddings and the head."""
    dimensions: Dimensions
    outputs_per_token: int
    """Numbers that the head gives for each token: the vocabulary of a language model, 0 elsewhere."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of main memory, and of a GPU's; on a CPU everything is in main memory."""

    host_bytes: int
    device_bytes: int


def least(sizes: Sizes, data_bytes: int, config: RunConfig, batch_tokens: int, *, on_gpu: bool) -> Footprint:
    """What a pass cannot do without.

    Args:
        sizes: of the checkpoint.
        data_bytes: of the data files together.
        config: the knobs.
        batch_tokens: evaluated together where the knob does not say.
        on_gpu: whether the model computes on a GPU.
    """
    weights, layers = FLOAT32 * sizes.parameters, FLOAT32 * sizes.layer_parameters
    batch = _batch_bytes(sizes, min(config.batch_tokens or batch_tokens, _tokens(data_bytes)))
    searching = weights + _copies(sizes, config, on_gpu=on_gpu) + batch
    if config.is_refitted:
        searching += _fitting(sizes, _tokens(data_bytes))
    # The copy is whole until surgery is done on it, and what is not in layers is never removed.
    publishing = weights + max(weights, weights - layers + batch) + weights - layers
    most, rows = max(searching, publishing), ROW_BYTES_PER_BYTE * data_bytes
    if on_gpu:
        return Footprint(host_bytes=PROCESS_BYTES + weights + rows, device_bytes=most)
    return Footprint(host_bytes=PROCESS_BYTES + most + rows, device_bytes=0)


def at_ease(sizes: Sizes, data_bytes: int, config: RunConfig, batch_tokens: int, *, on_gpu: bool) -> Footprint:
    """What a pass uses if it may keep every block's input of every sample, about."""
    need = least(sizes, data_bytes, config, batch_tokens, on_gpu=on_gpu)
    blocks = 2 * sizes.dimensions.layers
    kept = FLOAT32 * _tokens(data_bytes) * sizes.dimensions.hidden_size * blocks
    kept = kept if config.cache_budget is None else min(kept, config.cache_budget)
    if on_gpu:
        return Footprint(need.host_bytes, need.device_bytes + kept)
    return Footprint(need.host_bytes + kept, 0)


def _tokens(data_bytes: int) -> int:
    return data_bytes // TOKEN_BYTES


def _batch_bytes(sizes: Sizes, tokens: int) -> int:
    """One batch on its way through a block, or through the head."""
    dimensions = sizes.dimensions
    block = max(ROWS_OF_A_BATCH * dimensions.hidden_size, dimensions.hidden_size + dimensions.intermediate_size)
    return FLOAT32 * tokens * max(block, sizes.outputs_per_token)


def _fitting(sizes: Sizes, tokens: int) -> int:
    """A refit: matrices of the widest block, inputs of a block for all tokens, of teacher and student, and fitted weights."""
    hidden, wide = sizes.dimensions.hidden_size, sizes.dimensions.intermediate_size
    fitted = sizes.dimensions.layers * hidden * (hidden + wide)
    return MATRICES * FLOAT64 * wide**2 + FLOAT32 * (INPUTS * tokens * hidden + MODELS_KEPT * fitted)


def _copies(sizes: Sizes, config: RunConfig, *, on_gpu: bool) -> int:
    """The layers once more, as they multiply fastest: packed on a CPU, in low precision where that looks first."""
    if config.evaluate_in == "int8":
        return sizes.layer_parameters
    packed = 0 if on_gpu else FLOAT32 * sizes.layer_parameters
    return packed + (HALF * sizes.layer_parameters if config.is_guarded else 0)
