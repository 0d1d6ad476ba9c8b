"""The device of a pass: its batch size, its 16-bit number format, and how fast it multiplies in it."""

import torch
from torch.nn.functional import linear

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


def why_no_gpu() -> str:
    """Why PyTorch cannot use a GPU here, in its own words."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return first_line(error)
    return "it found none"


def gpu_memory() -> tuple[int, ...]:
    """The bytes of each GPU that PyTorch can use, or of its MIG slice; nothing is allocated on it."""
    if not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.get_device_properties(place).total_memory for place in range(torch.cuda.device_count()))


def batch_tokens_of(device: str) -> int:
    """The default number of tokens to evaluate together on a device."""
    if torch.device(device).type != "cuda":
        return CPU_BATCH_TOKENS
    return batch_tokens_in(torch.cuda.get_device_properties(device).total_memory)


def batch_tokens_in(memory: int) -> int:
    """How many tokens to evaluate together on a GPU with this much memory in bytes."""
    return max(1, min(MOST_BATCH_TOKENS, memory // GPU_BYTES_PER_TOKEN))


_SHAPE = 512, 512, 2048
_REPEATS = 5


def low_precision(device: torch.device) -> torch.dtype:
    """The fastest 16-bit number format of a device."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.float16
    return torch.bfloat16


@torch.inference_mode()
def gain_in_rate(device: torch.device) -> float:
    """Measure how many times as fast as in float32 the device multiplies matrices in low precision."""
    return _seconds(torch.float32, device) / _seconds(low_precision(device), device)


def _seconds(dtype: torch.dtype, device: torch.device) -> float:
    # This import searches for CUDA's compiler and prints a warning on machines without a GPU, so it is not at the top.
    from torch.utils.benchmark import Timer

    rows, inputs, outputs = _SHAPE
    given = {
        "linear": linear,
        "left": torch.ones(rows, inputs, dtype=dtype, device=device),
        "right": torch.ones(outputs, inputs, dtype=dtype, device=device),
    }
    timer = Timer("linear(left, right)", globals=given, num_threads=torch.get_num_threads())
    return min(timer.timeit(2).mean for _ in range(_REPEATS))
