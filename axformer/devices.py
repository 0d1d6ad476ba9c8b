"""Which device a pass runs on."""

import torch

from axformer.errors import ConfigError, first_line

AUTO = "auto"


def resolve_device(name: str) -> str:
    """The device of this name; ``auto`` is a GPU where there is one, else the CPU.

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
