"""What is known of every method, and the knobs of every method."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axformer.config.earlier import of_today, refuse_removed
from axformer.errors import ConfigError
from axformer.plan.elements import Dimensions

LARGEST_INTEGER = 2**31 - 1
"""The largest seed and length: of 32 bits with a sign, as what draws numbers and cuts inputs everywhere takes."""


BY_ROWS: Literal["rows"] = "rows"
"""``within_points`` as few as the confirming rows are likely to certify."""
Points = Annotated[float, Field(ge=0.0, le=100.0)] | Literal["rows"] | None


@dataclass(frozen=True)
class About:
    """What is known of a method without running it. The code that runs it is named as for :func:`pkgutil.resolve_name`, so that
    nothing is imported before it is needed."""

    title: str
    """What people call it."""
    method: str
    """Its :class:`axformer.methods.base.Method`."""
    made: str
    """How a model was made, for its card: a template of ``report`` and ``paper`` that may use the macros of ``words.jinja``."""
    nothing_met: str = "no smaller model was accepted"
    """What it means that nothing was removed, as the end of a sentence: a template of ``config``."""
    meter: str = "axformer.methods.progress:PlanMeter"
    """Its :class:`axformer.methods.progress.Meter`."""
    of_plans: bool = True
    """Whether its trials are of whole plans, and not of single elements."""
    calibrated_with: str | None = None
    """The knob without which calibration data changes nothing; None if it never changes anything."""
    instead_of_points: str = "leave it out with within_points=null"
    """What to do where the metric has no points."""
    finetune_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Its own defaults of the settings of a training."""
    files: tuple[str, ...] = ()
    """The files that it adds to a result."""
    takes_score: bool = False
    """Whether a program may pass in a score of heads and neurons (:data:`axformer.scores.importance.ScoreUnits`)."""
    uses_labels: bool = True
    """Whether a label of the deciding rows has a say in what is removed."""


@dataclass(frozen=True)
class Needs:
    """What a run with some knobs needs and does beside measuring plans."""

    fitting: bool = False
    """The weights that stay are fitted."""
    gradients: bool = False
    """Derivatives are taken, which needs memory for the way back through all layers."""
    calibration: bool = False
    """Calibration data is used."""
    trains_each: bool = False
    """With training data, the model of every trial is trained, and not the kept one alone."""
    polish: int = 0
    """Epochs for which every model is trained on the calibration rows, taught by the untouched model."""
    temperatures: bool = False
    """Losses are compared at each model's own best temperature."""
    base: bool = False
    """Models are cut from a base model, where there is one, and not from the one that was trained with its new head."""
    drops: int = 0
    """Layers that every trained model lacks, as far as the knobs alone tell."""


class RunConfig(BaseModel):
    """The knobs of every method. Each method adds its own. Unknown knobs and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    about: ClassVar[About]
    """The method."""

    method: str
    """The way to a smaller model: ``axformer`` is Algorithm 1 of the AxFormer paper."""
    seed: int = Field(default=0, ge=0, le=LARGEST_INTEGER)
    """Seed of everything that is drawn at random: the rows of ``confirm``, the parts of ``safeguard``, and
    ``order=random`` (Table V, first row)."""
    confirm: float = Field(default=0.0, ge=0.0, le=0.5)
    """Share of the validation rows that do not decide on trials. Every acceptance gives a model; the one with the lowest loss
    on these rows is kept, or with ``tolerance`` the last one before a model whose loss on them may be above the limit. 0 keeps
    the model at the end of the run, as the paper does; 0.5 sets half of the rows apart."""
    within_points: Points = None
    """With ``confirm``: instead of the model with the lowest loss, keep the cheapest model on the path that is certified to
    have lost less than this many points (hundredths) of its metric. The metric is the first in the report. If it is the share
    of right answers, the test on the confirming rows is exact, one-sided at 5 %; for metrics that are not means over rows it is
    asymptotic, and the certificate says so. ``tolerance`` makes the path of a pass long; its trade also keeps the metric within
    these points on the deciding rows, each round within its share of them. ``rows`` takes as few points as the confirming rows
    are likely to certify where one answer in a hundred is lost and as many gained."""
    target_size: float | None = Field(default=None, gt=0.0, lt=1.0)
    """Stop as soon as no more than this share of the model's parameters is left; None continues to the end, as the paper does.
    Together with ``target_speedup``, both targets must be reached."""
    target_speedup: float | None = Field(default=None, gt=1.0, allow_inf_nan=False)
    """Stop as soon as the model needs this many times fewer operations, counted from its shapes at the lengths of the data;
    None continues to the end, as the paper does."""
    accept_poor_model: bool = False
    """Continue with a model that is worse than guessing on the deciding rows, or whose classes the labels seem to number in
    another order. By default a run then stops before its first trial, because the labels are usually misread."""
    max_length: int | None = Field(default=None, ge=2, le=LARGEST_INTEGER)
    """Cut inputs to this many tokens. None cuts nothing, and refuses inputs that are too long for the model."""
    batch_tokens: int | None = Field(default=None, ge=1)
    """Tokens evaluated together, including padding. Changes speed and memory, and losses only by rounding. None means 1,024 on
    a CPU; on a GPU it depends on the GPU's memory."""
    cache_budget: int | None = Field(default=None, ge=0)
    """Bytes of activations kept between trials on the computing device; None means 0.7 of the memory that is free there when
    the run begins. Changes speed, but not losses."""

    calibrate_rows: int | None = Field(default=None, ge=1)
    """Calibration rows of their own that are used, drawn at random by ``seed`` if there are more. None takes as many as have 20
    tokens for each neuron of a block, and at least 1,000: with more, the result was the same within the noise, and the time
    grows with them."""

    @model_validator(mode="before")
    @classmethod
    def _as_of_today(cls, knobs: Any) -> Any:
        if not isinstance(knobs, Mapping):
            return knobs
        today = of_today(knobs)
        refuse_removed(today)
        return today

    @property
    def loss_limit(self) -> float | None:
        """The largest loss of the result as a multiple of the untouched model's; None if the loss may only fall."""
        return None

    @property
    def measures_path(self) -> bool:
        """Whether the path is the purpose of the run, so that each model on it is measured on held-out data."""
        return self.about.of_plans or self.loss_limit is not None

    @property
    def expects_cost(self) -> bool:
        """Whether a size or a speed is asked for, whatever it costs, so that a result is judged by what it cost."""
        return self.about.of_plans and self.within_points is None

    @property
    def asks_for_time(self) -> bool:
        """Whether ``target_speedup`` is of time, and not of operations."""
        return False

    @property
    def attention_kept(self) -> int | None:
        """Attention probabilities that hard attention keeps for each query; None if the method has no hard attention."""
        return None

    @property
    def needs(self) -> Needs:
        """What the run needs and does beside measuring plans."""
        return Needs()

    @classmethod
    def trains_path(cls, knobs: Mapping[str, Any]) -> bool:  # noqa: ARG003 - for methods
        """Whether a finished run with these knobs, perhaps of an earlier version, trained every model on its path if it had
        training data."""
        return False

    @classmethod
    def applied_otherwise(cls, knobs: Mapping[str, Any], *, has_new_head: bool) -> str | None:  # noqa: ARG003 - for methods
        """How a plan on the path of a finished run, applied to its untouched model and trained, gives another model than the
        run measured, as the end of a sentence; None if it gives the same.

        Args:
            knobs: of the run; they may be of an earlier version.
            has_new_head: whether the untouched model is a base model that the run trained with a new head.
        """
        return None

    def most_trials(self, dimensions: Dimensions) -> int:
        """The largest number of trials of a run."""
        raise NotImplementedError

    def check_training(self, *, has_train: bool) -> None:
        """Check that the run goes with the training data that it has, or has not.

        Raises:
            ConfigError: it does not.
        """
        if has_train and self.needs.polish:
            raise ConfigError(
                f"polish={self.needs.polish} trains every model, and no certificate would hold for one that is trained again; "
                "give these rows as calibrate instead of train",
                "train",
            )

    def calibrated(self, *, is_trained: bool = False) -> Self:  # noqa: ARG002 - as for every method
        """The knobs of a run that has calibration data of its own, and perhaps is trained on data with labels.

        Raises:
            ConfigError: nothing would be measured on it.
        """
        if not self.needs.calibration:
            knob = self.about.calibrated_with
            raise ConfigError(
                f"calibrate is data to fit weights on, and method={self.method} fits none"
                f"{'' if knob is None else f' without {knob}'}; leave it out",
                "calibrate",
            )
        return self

    def check(self) -> None:
        """Check that the knobs fit together.

        Raises:
            ConfigError: some knobs exclude each other.
        """
        if self.within_points is not None and not self.confirm:
            raise ConfigError(
                f"within_points={self.within_points} chooses by rows that did not decide; give confirm too, for example 0.3"
            )
