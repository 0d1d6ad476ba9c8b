"""Check that weights are finite: a single one that is not makes every loss of a pass NaN."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axformer.errors import CheckpointError


def check_finite(directory: Path, model: Any) -> None:
    """Check every weight of a loaded model.

    Raises:
        CheckpointError: a weight is infinite or NaN.
    """
    for name, weight in model.named_parameters():
        if not _all_finite(weight):
            raise CheckpointError(
                f"checkpoint '{directory}' holds weights that are infinite or not numbers, in {name}; train it again, or save "
                "it in a type with a wider range than float16"
            )


def _all_finite(values: Tensor) -> bool:
    """Whether the least and the greatest are finite: neither is where any is not a number. One look, and nothing is copied."""
    return values.numel() == 0 or all(bool(end.isfinite()) for end in torch.aminmax(values))
