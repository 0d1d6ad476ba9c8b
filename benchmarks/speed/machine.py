"""What the machine can do, and what a process took of it."""

import os
import statistics
import subprocess
import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from axformer.evaluation.multiply import multiplier
from axformer.plan.elements import Dimensions
from axformer.reporting.environment import describe

ARITHMETICS = ("float32",)
_REPEATS = 5
_SQUARE_PROJECTIONS = 4  # query, key, value and output

Shape = tuple[int, int, int]


def layer_shapes(dimensions: Dimensions, tokens: int) -> list[Shape]:
    """The matrix multiplications of one layer's projections: rows, inputs and outputs of each."""
    hidden, inner = dimensions.hidden_size, dimensions.intermediate_size
    return [(tokens, hidden, hidden)] * _SQUARE_PROJECTIONS + [(tokens, hidden, inner), (tokens, inner, hidden)]


def matmul_rate(shapes: Iterable[Shape], device: str) -> float:
    """Operations a second of some matrix multiplications one after another, each at the median of several.

    With weights packed once, as in a pass: nothing is faster in PyTorch.
    """
    operations, seconds = 0, 0.0
    known: dict[Shape, float] = {}
    for shape in shapes:
        if shape not in known:
            known[shape] = statistics.median(_multiply(shape, device))
        rows, inputs, outputs = shape
        operations += 2 * rows * inputs * outputs
        seconds += known[shape]
    return operations / seconds


@torch.inference_mode()
def _multiply(shape: Shape, device: str) -> list[float]:
    rows, inputs, outputs = shape
    left = torch.randn(rows, inputs, device=device)
    multiply = multiplier(nn.Linear(inputs, outputs, device=device))
    multiply(left)
    taken = []
    for _ in range(_REPEATS):
        wait_for(device)
        start = time.perf_counter()
        multiply(left)
        wait_for(device)
        taken.append(time.perf_counter() - start)
    return taken


def wait_for(device: str) -> None:
    """Let an accelerator finish what it was given; a CPU has nothing open."""
    if device != "cpu":
        torch.accelerator.synchronize(device)


def environment(device: str, threads: int) -> dict[str, Any]:
    """Hardware and software, and how busy the machine was before the first measurement."""
    return {
        **describe(device),
        "threads": threads,
        "load_before": round(os.getloadavg()[0], 2),
        "commit": commit(),
    }


def commit() -> str:
    """The commit that is measured, and whether files of it are changed.

    Raises:
        RuntimeError: this is no git checkout, so figures would belong to no commit.
    """
    return _git("rev-parse", "--short=12", "HEAD") + (" with changes" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S607 - git of the PATH
    if done.returncode != 0:
        raise RuntimeError(
            f"git {' '.join(arguments)} failed, so the figures would belong to no commit: {done.stderr.strip()}; "
            "run the benchmark in a git checkout"
        )
    return done.stdout.strip()
