"""The dtype of weights: a pass computes in float32, and a result has the dtype of its checkpoint.

A bfloat16 checkpoint thus gives files of half the float32 size, and the report measures what is deployed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from axformer.architectures.embedder import TOKENS, VECTOR

KEPT = (torch.float32, torch.bfloat16, torch.float16)
"""The formats that a result may have; checkpoints in other formats give float32."""


def most_common(weights: Iterable[tuple[torch.dtype | None, int]]) -> torch.dtype:
    """The format of most weights, given the format and the count of each tensor; None if results cannot have it.

    Some files hold norms or a new head in float32 and the rest in 16 bits. A result has one format for all, as transformers
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


def compared(outputs: Mapping[str, Any], real: Tensor | None = None) -> dict[str, Tensor]:
    """What a model gives back that two of them are compared by: logits; of an embedder vectors of texts and tokens.

    Args:
        real: where tokens are no padding, bool, shape (rows, tokens); what there is for each token is then left out elsewhere,
            and has shape (tokens, ...). None where nothing is given for each token, or padding counts too.
    """
    found = {
        name: values
        for name, values in outputs.items()
        if name.endswith("logits") or (VECTOR in outputs and name in (VECTOR, TOKENS))
    }
    return {name: values if real is None or name == VECTOR else values[real] for name, values in found.items()}


def not_numbers(outputs: Mapping[str, Any]) -> str | None:
    """What to say of a model some of whose logits are not finite numbers; None if all are. Some models that were trained in
    another format overflow in float16."""
    for name, values in compared(outputs).items():
        if not values.isfinite().all():
            return (
                f"the model gives back {name} that are not numbers where it computes in {name_of(values.dtype)}; save the "
                "checkpoint in float32 or bfloat16, and run the pass again"
            )
    return None


def cast(model: Any, dtype: torch.dtype) -> Any:
    """Cast the weights of a model in place, and return the model.

    Buffers that a model computes when it is built, such as rotary angles, stay in float32, as they do when transformers loads
    a file.
    """
    for weight in model.parameters():
        if weight.is_floating_point():
            weight.data = weight.data.to(dtype)
    model.config.dtype = dtype
    return model


@contextmanager
def computing_in(model: Any, dtype: torch.dtype) -> Iterator[None]:
    """Cast a model to another format inside the block, and restore its weights bit for bit afterwards.

    An object that is not a PyTorch model stays unchanged.
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
