"""How a model is fine-tuned after a pass. Without torch, so that whoever takes such settings in can check them."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from axformer.errors import ConfigError

FIXED_MASKS = frozenset({"masked_lm"})
"""Tasks whose data hides the same tokens every time: a model would learn these tokens by heart, not to guess."""


class FinetuneSettings(BaseModel):
    """Unknown settings and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    epochs: int = Field(default=1, ge=1, le=100)
    """How often all rows are seen. A model that is already fine-tuned overfits a task's data within two or three (section
    III-A), so one."""
    learning_rate: float = Field(default=2e-5, gt=0.0, le=1.0)
    """Of the first step; it falls to 0 on a line. The least of those that BERT's authors fine-tune with."""
    batch_size: int = Field(default=32, ge=1, le=4096)
    """Rows of a step, as BERT's authors take."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Of the order of the rows, and of dropout."""


def make_settings(values: Mapping[str, Any]) -> FinetuneSettings:
    """Settings by name; the others keep their defaults.

    Raises:
        ConfigError: a setting is unknown, or a value is out of range.
    """
    try:
        return FinetuneSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        known = ", ".join(FinetuneSettings.model_fields)
        raise ConfigError(
            f"finetune {first['loc'][0]}={first['input']!r}: {first['msg']}; the settings are {known}"
        ) from None


def check_trainable(task: str, device: str) -> None:
    """Make sure that a task's data, as the library encodes it, is good to learn from, and that Trainer can do so here.

    Raises:
        ConfigError: it is not, or the device is another GPU than the first, which is the only one that Trainer takes.
    """
    kind, _, index = device.partition(":")
    if kind == "cuda" and index not in ("", "0"):
        raise ConfigError(
            f"device '{device}': fine-tuning computes on the first GPU only; use cuda:0 with CUDA_VISIBLE_DEVICES={index}"
        )
    if task in FIXED_MASKS:
        raise ConfigError(
            f"models of the task '{task}' cannot be fine-tuned here: their data is encoded with fixed masks, which are for "
            "measuring; leave finetune and train out, and train the finished model with a new mask each epoch"
        )
