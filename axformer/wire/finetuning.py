"""Settings of the training after a pass, and its losses."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, field_validator

from axformer.config import METHODS
from axformer.config.nearest import or_all
from axformer.errors import ConfigError
from axformer.wire.base import Schema
from axformer.wire.heads import HEAD_DEFAULTS, NewHead

LOWER = "lower:"
"""The beginning of a value of ``freeze`` that counts layers from the bottom."""
_FREEZE = re.compile(rf"{LOWER}[1-9][0-9]{{0,3}}|[0-9]{{1,4}}(,[0-9]{{1,4}})*")


def _as_text(value: Any) -> Any:
    """A list of layers, or a single one, as text: ``0,1,2``; anything else is left as it is."""
    layers = [value] if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(layers, list | tuple):
        return ",".join(map(str, layers))
    return value.replace(" ", "") if isinstance(value, str) else value


class FinetuneSettings(Schema):
    """Unknown settings and values out of range are refused."""

    epochs: int = Field(default=1, ge=1, le=100)
    """Number of epochs. A fine-tuned model overfits a task's data within two or three (section III-A), so the default is
    one."""
    learning_rate: float = Field(default=2e-5, gt=0.0, le=1.0)
    """Initial learning rate; it decays linearly to 0. The default is the smallest that BERT's authors fine-tune with."""
    batch_size: int = Field(default=32, ge=1, le=4096)
    """Rows per step, as BERT's authors use."""
    warmup: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the steps in which the learning rate rises from 0. The default is that of transformers."""
    weight_decay: float = Field(default=0.0, ge=0.0, le=1.0)
    """Decay of all weights but biases and norms, as in AdamW. The default is that of transformers."""
    max_grad_norm: float = Field(default=1.0, ge=0.0, le=1e6)
    """Longer gradients are shortened to this norm; 0 shortens none. The default is that of transformers."""
    dropout: bool = True
    """Whether the dropout of the model's configuration is used. With a teacher alone, training without it brings the model
    closer to the teacher in few steps."""
    bf16: bool = False
    """Whether matrices are multiplied in bfloat16 (transformers' mixed precision); weights, their updates and the loss stay
    in float32. Faster where the GPU or processor multiplies bfloat16 fast."""
    freeze: Annotated[str | None, BeforeValidator(_as_text, json_schema_input_type=str | list[int] | None)] = None
    """Layers of the untouched model that are not trained: ``lower:4``, the embeddings included, so that nothing goes back
    through them; or their numbers from 0, as ``0,1,5``."""
    freeze_embeddings: bool = False
    """Whether the embeddings are not trained, whatever ``freeze`` says."""
    patience: int | None = Field(default=None, ge=1, le=100)
    """End after this many epochs without a lower loss on the deciding rows, and keep the best epoch's weights, or those of
    before if no epoch is better. Where a teacher trains alone, that loss is the divergence from it. Without it, all epochs are
    trained, and the last one's weights are kept."""
    teacher: bool = False
    """Whether the model also learns from the untouched model's predictions."""
    teacher_weight: float = Field(default=0.5, ge=0.0, le=1.0)
    """Weight of the teacher's predictions in the loss; the labels have the rest. With 1, the rows need no labels."""
    temperature: float = Field(default=2.0, gt=0.0, le=100.0)
    """Divides both models' logits before they are compared, so that less likely classes count more (Hinton et al. 2015)."""
    hidden_weight: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight of the difference from the teacher's hidden states in the loss (Sun et al. 2019)."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the order of rows and of dropout."""

    @field_validator("freeze")
    @classmethod
    def _known_layers(cls, value: str | None) -> str | None:
        if value is not None and not _FREEZE.fullmatch(value):
            raise ValueError("write lower:N for the N lowest layers, or layers by number, for example 0,1,5")
        return value

    @property
    def needs_labels(self) -> bool:
        """Whether the training rows' labels are looked at."""
        return not (self.teacher and self.teacher_weight == 1.0)

    @property
    def freezes_embeddings(self) -> bool:
        """Whether the embeddings are not trained."""
        return self.freeze_embeddings or (self.freeze or "").startswith(LOWER)

    def frozen_layers(self) -> tuple[int, ...]:
        """The layers of the untouched model that are not trained, ascending."""
        if self.freeze is None:
            return ()
        if self.freeze.startswith(LOWER):
            return tuple(range(int(self.freeze.removeprefix(LOWER))))
        return tuple(sorted({int(layer) for layer in self.freeze.split(",")}))


class LossPoint(Schema):
    """The losses of a training after a step."""

    step: int = Field(ge=0)
    epoch: float = Field(ge=0, allow_inf_nan=False)
    loss: float | None = Field(default=None, allow_inf_nan=False)
    """Mean training loss since the last one; null if not finite, and where only deciding rows were measured."""
    deciding: float | None = Field(default=None, allow_inf_nan=False)
    """Loss on the deciding rows; null within an epoch."""


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
        raise ConfigError(refused_setting(error.errors()[0])) from None
    idle = [name for name in _OF_TEACHERS if name in values and values[name] != getattr(FinetuneSettings(), name)]
    if idle and not settings.teacher:
        raise ConfigError(
            f"finetune {idle[0]}={values[idle[0]]!r} says how to learn from a teacher; set teacher=true too"
        )
    return settings


def refused_setting(item: Mapping[str, Any]) -> str:
    """Say what is wrong with a setting.

    Args:
        item: of ``ValidationError.errors()``; the last part of its place is the setting's name.
    """
    name, known = item["loc"][-1], FinetuneSettings.model_fields
    if item["type"] == "extra_forbidden":
        return f"finetune '{name}' is unknown; {or_all(name, known, 'the settings are')}"
    return f"finetune {name}={item['input']!r}: {item['msg']}; the settings are {', '.join(known)}"


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
    return METHODS[method].about.finetune_defaults if method in METHODS else {}


def check_head(new: NewHead, settings: FinetuneSettings, *, has_train: bool, is_taught_too: bool = False) -> None:
    """Check that a new head can be trained.

    Args:
        new: the head.
        settings: of the trainings.
        has_train: whether there are training rows.
        is_taught_too: whether a teacher would teach in the training of the head itself.

    Raises:
        ConfigError: there are no training rows, or their labels would not be looked at.
    """
    if not has_train:
        raise ConfigError(
            f"head={new.task} puts an untrained head on the model, and there is no training data; give train too",
            "head",
        )
    if is_taught_too and settings.teacher:
        raise ConfigError(f"head={new.task} with teacher=true: an untrained head teaches nothing; leave teacher out")
    if not settings.needs_labels:
        raise ConfigError(
            f"head={new.task} with teacher_weight=1: there is no teacher before the head is trained, which takes labels; set "
            "teacher_weight below 1",
            "finetune",
        )
