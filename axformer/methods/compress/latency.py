"""Latency of a block at each of its sizes, on the device of the run.

One input of median length goes through the first layer, whose blocks are cut to every size in turn. All layers of a model have
the same shapes, so the measurement of one holds for all. A run stores the measurement in its first trial, because measuring
again would give slightly different figures, and with them different plans.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from axformer.data.batches import Batch, Samples
from axformer.evaluation.cut_layers import CutLayers
from axformer.intake.checkpoint import Checkpoint
from axformer.plan.blocks import Block, blocks_of_layer
from axformer.plan.levels import sizes_of
from axformer.plan.plan import Plan
from axformer.plan.trial import Milliseconds

REPEATS = 25
"""Measurements of each size, taken in turns with all others; the median counts."""
WARM_UPS = 3


_Call = tuple[Tensor, Mapping[str, Any]]
"""The input and the arguments of a call of a layer."""


def measure_blocks(checkpoint: Checkpoint, samples: Samples) -> Milliseconds:
    """Milliseconds of an attention block and of a feed-forward block at each of their sizes, all units first, and of the model.

    The figures never rise as a block gets smaller.
    """
    row = _median_row(samples)
    call, milliseconds = _call_of_first_layer(checkpoint, row), []
    for block in blocks_of_layer(0):
        sizes = sizes_of(block, checkpoint.dimensions)
        full = Plan.full(checkpoint.dimensions)
        cut = CutLayers(checkpoint.model, checkpoint.architecture)
        layers = [cut.get(block.with_units(full, range(size)))[0] for size in sizes]
        seconds = [[_seconds(checkpoint, block, layer, call) for layer in layers] for _ in range(WARM_UPS + REPEATS)]
        medians = np.median(seconds[WARM_UPS:], axis=0)
        milliseconds.append(tuple(1000 * float(value) for value in np.minimum.accumulate(medians)))
    whole = [_timed(checkpoint, lambda: checkpoint.model(**row.inputs)) for _ in range(WARM_UPS + REPEATS)]
    attention, ffn = milliseconds
    return Milliseconds(attention=attention, ffn=ffn, whole=1000 * float(np.median(whole[WARM_UPS:])))


def _median_row(samples: Samples) -> Batch:
    """The first row of the batch of median length."""
    batches = sorted(samples.batches, key=lambda batch: batch.tokens)
    batch = batches[len(batches) // 2]
    return Batch(batch.rows[:1], {name: values[:1] for name, values in batch.inputs.items()}, batch.labels[:1])


def _call_of_first_layer(checkpoint: Checkpoint, batch: Batch) -> _Call:
    first, calls = checkpoint.architecture.layers(checkpoint.model)[0], list[_Call]()
    names = tuple(inspect.signature(type(first).forward).parameters)[2:]  # after self and the input

    def see(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append((args[0], dict(zip(names, args[1:], strict=False)) | kwargs))

    end = first.register_forward_pre_hook(see, with_kwargs=True)
    try:
        with torch.inference_mode():
            checkpoint.model(**batch.inputs)
    finally:
        end.remove()
    return calls[0]


def _seconds(checkpoint: Checkpoint, block: Block, layer: nn.Module, call: _Call) -> float:
    return _timed(checkpoint, lambda: checkpoint.architecture.layout(block).run(layer, *call))


@torch.inference_mode()
def _timed(checkpoint: Checkpoint, compute: Callable[[], Any]) -> float:
    device = torch.device(checkpoint.model.device)
    # What one thread computes takes no longer for other programs, which slow a whole model down by more than a block.
    clock = time.thread_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    compute()
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
    return clock() - started
