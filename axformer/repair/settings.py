"""Settings of the training after a pass. This module does not import torch, so any program can check settings."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from axformer.config import METHODS
from axformer.config.nearest import or_all
from axformer.errors import ConfigError
from axformer.wire.finetuning import FinetuneSettings as FinetuneSettings
from axformer.wire.heads import HEAD_DEFAULTS, NewHead

FIXED_MASKS = frozenset({"masked_lm"})
"""Tasks whose data masks the same tokens every time: a model would memorise these tokens instead of learning to predict."""
_OF_TEACHERS = ("teacher_weight", "temperature", "hidden_weight")
"""Settings that mean nothing without a teacher."""


def make_settings(values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> FinetuneSettings:
    """Make settings from values by name.

    Args:
        values: the settings that are given.
        defaults: the method's own defaults; the others are those of :class:`FinetuneSettings`.

    Raises:
        ConfigError: a setting is unknown, a value is out of range, or two settings contradict each other.
    """
    try:
        settings = FinetuneSettings(**{**(defaults or {}), **values})
    except ValidationError as error:
        first = error.errors()[0]
        name, known = first["loc"][0], FinetuneSettings.model_fields
        if first["type"] == "extra_forbidden":
            raise ConfigError(f"finetune '{name}' is unknown; {or_all(name, known, 'the settings are')}") from None
        listed = ", ".join(known)
        raise ConfigError(f"finetune {name}={first['input']!r}: {first['msg']}; the settings are {listed}") from None
    idle = [name for name in _OF_TEACHERS if name in values and values[name] != getattr(FinetuneSettings(), name)]
    if idle and not settings.teacher:
        raise ConfigError(
            f"finetune {idle[0]}={values[idle[0]]!r} says how to learn from a teacher; set teacher=true too"
        )
    return settings


def completed(settings: FinetuneSettings | None, defaults: Mapping[str, Any]) -> FinetuneSettings:
    """The same settings with a method's defaults for those that were not given.

    Raises:
        ConfigError: two settings contradict each other.
    """
    return make_settings({} if settings is None else settings.model_dump(exclude_unset=True), defaults)


def defaults_of(method: str, head: NewHead | None) -> Mapping[str, Any]:
    """A run's own defaults of the settings: those of a new head where there is one, else those of its method."""
    if head is not None:
        return HEAD_DEFAULTS
    return METHODS[method].finetune_defaults if method in METHODS else {}


def check_trainable(task: str, device: str) -> None:
    """Check that a task's data, as the library encodes it, is suitable for training, and that Trainer can use the device.

    Raises:
        ConfigError: the data is not suitable, or the device is not the first GPU, which is the only one that Trainer uses.
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
