"""Layer dropping: its description and its knobs.

Sajjad and others, *On the Effect of Dropping Layers of Pre-trained Transformer Models* (2023).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, model_validator

from axformer.config.common import About, Needs, Points, RunConfig
from axformer.errors import ConfigError
from axformer.plan.elements import Dimensions


class Strategy(StrEnum):
    """How the dropped layers are chosen (:mod:`axformer.methods.layers.strategies`)."""

    TOP = "top"
    BOTTOM = "bottom"
    ODD_ALTERNATE = "odd_alternate"
    EVEN_ALTERNATE = "even_alternate"
    SYMMETRIC = "symmetric"
    PARAMETER_AGGREGATION = "parameter_aggregation"
    """The layers whose last projections have the smallest sums of magnitudes
    (:func:`axformer.methods.layers.scores.aggregation`)."""
    PARAMETER_VARIANCE = "parameter_variance"
    """The layers whose last projections have the smallest variances (:func:`axformer.methods.layers.scores.variance`)."""
    CONTRIBUTION = "contribution"
    """The layers that change their input least (:func:`axformer.methods.layers.scores.contribution`)."""
    GREEDY = "greedy"
    """One after the other, the layer without which the loss on the deciding rows is lowest, before any training."""
    EXPLICIT = "explicit"


class Schedule(StrEnum):
    """When layers are dropped, and when the model is trained (sections 4 and 6.5)."""

    AT_ONCE = "at_once"
    GRADUAL = "gradual"
    FINETUNE_FIRST = "finetune_first"
    FINETUNE_FIRST_FROZEN = "finetune_first_frozen"


_MADE = """
This model was made from a fine-tuned transformer by dropping whole layers ({{ report.config.strategy.replace("_", " ") }})
{%- if report.is_trained %}, and training what was left{% else %}, without training{% endif %}.
{{ trained(report) }}
"""


class LayersConfig(RunConfig):
    """The knobs of ``method=layers``."""

    # The paper trains three epochs with the default settings of transformers (section 4), without a teacher. Here the model
    # that loses its layers is one, with which less was lost (docs/evidence.md).
    about = About(
        title="layer dropping",
        method="axformer.methods.layers.method:Layers",
        made=_MADE,
        finetune_defaults={"epochs": 3, "learning_rate": 5e-5, "teacher": True},
    )

    method: Literal["layers"] = "layers"
    """``layers``: whole layers are dropped, and what is left is trained again. The result is an ordinary model of its
    family."""
    confirm: float = Field(default=0.4, ge=0.0, le=0.5)
    """Share of the validation rows that do not decide, but choose between the models with fewer and fewer layers."""
    within_points: Points = 1.0
    """Drop one layer, two, and so on, each from the start, until the metric on the deciding rows has fallen by more than this
    many points (hundredths), and keep the smallest model that is certified, on the confirming rows, to have lost less. None
    keeps the model with the lowest loss on the confirming rows, or without ``confirm`` the last one."""
    strategy: Strategy = Strategy.TOP
    """Which layers are dropped. ``top`` is the paper's best for most models and tasks; the parameter strategies need no data,
    ``contribution`` and ``greedy`` look at the deciding rows, ``explicit`` takes ``layers``."""
    drop: int | None = Field(default=None, ge=1)
    """Drop this many layers and try no other number; then ``within_points`` and ``confirm`` are not used unless they are
    given."""
    threshold: float | None = Field(default=None, gt=0.0, lt=1.0)
    """With ``strategy=contribution``: drop every layer whose output resembles its input by more than this mean cosine. The
    paper takes 0.95, 0.925 and 0.9; above that it finds no layer, and below more than half."""
    layers: tuple[int, ...] = ()
    """With ``strategy=explicit``: the layers to drop, counted from 0, in the order in which they leave."""
    schedule: Schedule = Schedule.AT_ONCE
    """``at_once`` drops, then trains. ``finetune_first`` trains the whole model before that; ``finetune_first_frozen``
    does so with the layers that will leave frozen. ``gradual`` trains two epochs before each layer leaves (section 6.5; the
    paper finds no gain in it)."""

    @property
    def needs(self) -> Needs:
        drops = self.drop or 0 if self.schedule is Schedule.AT_ONCE else 0
        return Needs(trains_each=True, base=True, drops=drops)

    @classmethod
    def trains_path(cls, knobs: Mapping[str, Any]) -> bool:  # noqa: ARG003 - as for every method
        return True

    @classmethod
    def applied_otherwise(cls, knobs: Mapping[str, Any], *, has_new_head: bool) -> str | None:
        # With a new head layers leave the base model, and of a plan that is applied they leave the trained one.
        same, schedule = "finetune_first" if has_new_head else "at_once", knobs.get("schedule", "at_once")
        return None if schedule == same else f"trained as with schedule={same}, and not with {schedule}"

    def most_trials(self, dimensions: Dimensions) -> int:
        return 2 if self.tries_one else dimensions.layers

    @property
    def tries_one(self) -> bool:
        """Whether a single number of layers is tried."""
        return self.drop is not None or self.threshold is not None

    @model_validator(mode="before")
    @classmethod
    def _one_size_needs_no_choice(cls, knobs: Any) -> Any:
        if isinstance(knobs, Mapping) and (knobs.get("drop") is not None or knobs.get("threshold") is not None):
            return {"within_points": None, "confirm": 0.0, **knobs}
        return knobs

    def check(self) -> None:
        super().check()
        if (self.strategy is Strategy.EXPLICIT) != bool(self.layers):
            raise ConfigError(
                "strategy=explicit and layers go together, for example layers=[10,11]; give both or neither"
            )
        if self.threshold is not None and self.strategy is not Strategy.CONTRIBUTION:
            raise ConfigError(
                f"threshold={self.threshold:g} is of strategy=contribution, not of strategy={self.strategy.value}"
            )
        if self.threshold is not None and self.drop is not None:
            raise ConfigError(
                f"drop={self.drop} and threshold={self.threshold:g} both say how many layers go; give one"
            )
