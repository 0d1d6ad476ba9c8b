"""The number format of weights: a pass computes in float32, and a result has the format of its checkpoint.

So a checkpoint in bfloat16 gives files of half the size of float32's, and what is measured of it is what is deployed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

KEPT = (torch.float32, torch.bfloat16, torch.float16)
"""The formats that a result may have; a checkpoint in another one gives float32."""


def most_common(weights: Iterable[tuple[torch.dtype | None, int]]) -> torch.dtype:
    """The format of most weights, given the format and the count of each tensor; None if no result has that format.

    Some files hold norms, or a new head, in float32 and all else in 16 bits. A result has one format for all, as transformers
    loads such a file.
    """
    counts: Counter[torch.dtype | None] = Counter()
    for dtype, count in weights:
        counts[dtype] += count
    ((dtype, _),) = counts.most_common(1) or [(None, 0)]
    return dtype if dtype in KEPT and dtype is not None else torch.float32


def format_of(model: nn.Module) -> torch.dtype:
    """The format of most weights of a model."""
    return most_common((weight.dtype, weight.numel()) for weight in model.parameters() if weight.is_floating_point())


def name_of(dtype: torch.dtype) -> str:
    """A number format's name, for example ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


def cast(model: Any, dtype: torch.dtype) -> Any:
    """Give the weights of a model another format, in place; the same model.

    What a model computes by itself when it is built, such as the angles of rotary positions, stays in float32, as it does when
    transformers loads a file.
    """
    for weight in model.parameters():
        if weight.is_floating_point():
            weight.data = weight.data.to(dtype)
    model.config.dtype = dtype
    return model


@contextmanager
def computing_in(model: Any, dtype: torch.dtype) -> Iterator[None]:
    """Convert a model to another format inside the block, and restore its own weights afterwards, bit for bit.

    An object that is not a PyTorch model keeps its own format.
    """
    if not isinstance(model, nn.Module):
        yield
        return
    own, named = [(weight, weight.data) for weight in model.parameters()], model.config.dtype
    try:
        cast(model, dtype)
        yield
    finally:
        for weight, values in own:
            weight.data = values
        model.config.dtype = named
