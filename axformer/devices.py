"""The device of a pass, and its batch size."""

import torch

from axformer.errors import ConfigError, first_line

AUTO = "auto"
CPU_BATCH_TOKENS = 1024
"""Enough to keep a few cores busy; more would only delay early decisions."""
GPU_BYTES_PER_TOKEN = 2**21
"""GPU memory per token of a batch; the activations of a token take about a tenth of it."""
MOST_BATCH_TOKENS = 65536


def resolve_device(name: str) -> str:
    """Resolve a device name; ``auto`` is a GPU if there is one, otherwise the CPU.

    Raises:
        ConfigError: there is no such device here.
    """
    if name == AUTO:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device '{name}' cannot be used here: {first_line(error)}; try auto or cpu") from None
    return name


def batch_tokens_of(device: str) -> int:
    """The default number of tokens to evaluate together on a device."""
    if torch.device(device).type != "cuda":
        return CPU_BATCH_TOKENS
    return batch_tokens_in(torch.cuda.get_device_properties(device).total_memory)


def batch_tokens_in(memory: int) -> int:
    """How many tokens to evaluate together on a GPU with this much memory in bytes."""
    return max(1, min(MOST_BATCH_TOKENS, memory // GPU_BYTES_PER_TOKEN))
