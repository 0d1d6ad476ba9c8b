"""The knobs that every method has: what data decides, when a run ends, how its losses are computed."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from axformer.errors import ConfigError


class RunConfig(BaseModel):
    """The knobs that every method has. Each method adds its own; unknown knobs and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str
    """The way to a smaller model: ``axformer`` is Algorithm 1 of the AxFormer paper."""
    seed: int = Field(default=0, ge=0)
    """Seed of all that is drawn at random: the split of ``confirm``, that of ``safeguard=folds``, and ``order=random`` (Table
    V, first row)."""
    confirm: float = Field(default=0.0, ge=0.0, le=0.5)
    """Share of the validation rows that the run does not look at: every acceptance is a model, and the one that has the least
    loss on these rows is kept in the end; with ``tolerance`` the last before one whose loss there may be above the limit. 0
    keeps the end of the run, as the paper does; 0.5 is half of the rows."""
    within_points: float | None = Field(default=None, ge=0.0, le=100.0)
    """With ``confirm``: keep the cheapest model on the path that is certified to have lost less than so many points
    (hundredths) of its metric, not the one with the least loss. The metric is the first that a report names. Where it is the
    share of right answers, an exact test asks the confirming rows, one-sided at 5 %; for metrics that are no means over rows
    the test is asymptotic, and the certificate says so. ``tolerance`` is what makes the path of a pass long; its trade keeps
    the metric within so many points on the rows that decide too, each round within its share of them."""
    target_size: float | None = Field(default=None, gt=0.0, lt=1.0)
    """Stop as soon as no more than this share of the model's parameters is left; None goes on to the end, as the paper does.
    With ``target_speedup`` too, both must be reached."""
    target_speedup: float | None = Field(default=None, gt=1.0, allow_inf_nan=False)
    """Stop as soon as the model needs this many times fewer operations, counted from its shapes at the data's own lengths;
    None goes on to the end, as the paper does."""
    evaluate_in: Literal["float32", "int8"] = "float32"
    """Arithmetic of the trials; ``int8`` decides for the model as it is after dynamic quantization, the nearest to the
    paper's Q8BERT that needs no training."""
    accept_poor_model: bool = False
    """Go on with a model that is worse than guessing on the rows that decide, or whose classes these seem to count in another
    order. By default a run stops there before its first trial, because mostly the labels are read wrongly then."""
    max_length: int | None = Field(default=None, ge=2)
    """Cut inputs to this many tokens; None cuts none and refuses inputs that are longer than the model takes."""
    batch_tokens: int | None = Field(default=None, ge=1)
    """Tokens evaluated together, padding included; changes speed and memory, and losses only by rounding. None takes 1,024 on
    a CPU, and on a GPU what its memory is good for."""
    cache_budget: int | None = Field(default=None, ge=0)
    """Bytes of activations kept between trials on the device that computes; None is 0.7 of what is free there when the
    run begins. Changes speed, and no loss."""

    @property
    def loss_limit(self) -> float | None:
        """How many times the untouched model's loss the result may have; None where the loss may only fall."""
        return None

    @property
    def measures_path(self) -> bool:
        """Whether the path is what was asked for, so that each model on it is measured on held-out data."""
        return self.loss_limit is not None

    @property
    def attention_kept(self) -> int | None:
        """Attention probabilities that hard attention keeps for each query; None where the method has no hard attention."""
        return None

    @property
    def is_refitted(self) -> bool:
        """Whether the weights that a plan leaves are fitted anew."""
        return False

    @property
    def why_not_calibrated(self) -> str | None:
        """Why data that calibrates would change nothing, in words; None where something is measured on it."""
        return f"method={self.method} fits no weights, so nothing is calibrated"

    def check_calibrates(self) -> None:
        """Refuse calibration data that would change nothing.

        Raises:
            ConfigError: nothing is measured on it.
        """
        if self.why_not_calibrated is not None:
            raise ConfigError(f"--calibrate: {self.why_not_calibrated}; leave it out")

    @property
    def is_guarded(self) -> bool:
        """Whether trials are looked at in low precision first."""
        return False

    @property
    def evaluates_in_float32(self) -> bool:
        """Whether an evaluator measures the trials, and in float32, so that a look at the untouched model can be its base."""
        return False

    @property
    def pass_name(self) -> str:
        """What tells a pass from the others of its run."""
        return self.method

    @property
    def one_process(self) -> str | None:
        """The knobs for whose sake the samples cannot be shared by several processes; None where they can."""
        return "evaluate_in='int8'" if self.evaluate_in == "int8" else None

    def check(self) -> None:
        """Make sure that the knobs fit together.

        Raises:
            ConfigError: they do not.
        """
        if self.within_points is not None and not self.confirm:
            raise ConfigError(
                f"within_points={self.within_points} chooses by rows that did not decide; give confirm too, for example 0.3"
            )
