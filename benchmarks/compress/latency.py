"""Latency of the untouched model and of smaller ones, in PyTorch and in ONNX Runtime, measured in turns in one run.

Other work on the machine affects all of them equally, so medians over the turns are compared. The load is recorded.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from axformer.data.batches import Samples
from axformer.forms.kinds import BASE
from axformer.forms.onnx import write_onnx
from axformer.forms.onnx_model import OnnxModel
from axformer.intake.checkpoint import Checkpoint
from axformer.model.compact import compact
from axformer.plan.plan import Plan
from axformer.reporting.speed import Effort, take_turns
from axformer.reporting.workloads import limits_of, own_workloads, typical

UNTOUCHED, WHOLE = "untouched", "compact, nothing removed"
"""Stock transformers; and the class of this package, which computes the last layer at one position if the head reads only
one."""
PYTORCH, ONNX = "pytorch", "onnx"
BATCH = 32
EFFORT = Effort(least=15, most=100, seconds=3.0, warm_ups=2)


def latency(
    checkpoint: Checkpoint, test: Samples, models: Mapping[str, Any], effort: Effort | None = None
) -> dict[str, Any]:
    """Median milliseconds for one row of median length, and for batches of rows.

    Args:
        checkpoint: the untouched model, loaded from a directory.
        test: the rows.
        models: the compact models, by name.
        effort: the effort of each measurement; None for ``EFFORT``.
    """
    encoded = test.encoded
    assert checkpoint.directory is not None, "it was loaded from one"
    stock = BASE.load(checkpoint.directory, "cpu")
    whole = compact(checkpoint.model, checkpoint.architecture, Plan.full(checkpoint.dimensions))
    in_pytorch = {UNTOUCHED: stock, WHOLE: whole, **models}
    limits = limits_of(checkpoint.head, checkpoint.model.config, checkpoint.architecture.max_tokens(stock.config))
    loads = [
        typical(encoded, checkpoint.tokenizer),
        *own_workloads(encoded, checkpoint.tokenizer, limits, (BATCH,)),
    ]
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="latency-") as scratch:
        in_onnx = {}
        for index, (name, model) in enumerate(in_pytorch.items()):
            if name != WHOLE:
                home = Path(scratch) / str(index)
                write_onnx(model, checkpoint.tokenizer, encoded, home)
                in_onnx[name] = OnnxModel(home, torch.get_num_threads())
        taking_turns = [*in_pytorch.values(), *in_onnx.values()]
        turns = [(load, take_turns(taking_turns, load.batches, effort or EFFORT)) for load in loads]
    workloads = [
        {
            "batch": load.batch,
            "tokens": load.tokens,
            "turns": len(seconds[0]),
            PYTORCH: _milliseconds(in_pytorch, seconds),
            ONNX: _milliseconds(in_onnx, seconds[len(in_pytorch) :]),
        }
        for load, seconds in turns
    ]
    return {"workloads": workloads, "threads": torch.get_num_threads(), "load": [before, os.getloadavg()[0]]}


def _milliseconds(models: Mapping[str, Any], seconds: Sequence[Sequence[float]]) -> dict[str, float]:
    return {name: 1000 * median(taken) for name, taken in zip(models, seconds, strict=False)}
