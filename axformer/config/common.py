"""The knobs of every method: which data decides, when a run ends, and how losses are computed."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axformer.config.earlier import of_today, refuse_removed
from axformer.errors import ConfigError

LARGEST_INTEGER = 2**31 - 1
"""The largest seed and length: of 32 bits with a sign, as what draws numbers and cuts inputs everywhere takes."""


class RunConfig(BaseModel):
    """The knobs of every method. Each method adds its own. Unknown knobs and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    finetune_defaults: ClassVar[Mapping[str, Any]] = {}
    """The method's own defaults of the settings of a training after it."""

    method: str
    """The way to a smaller model: ``axformer`` is Algorithm 1 of the AxFormer paper."""
    seed: int = Field(default=0, ge=0, le=LARGEST_INTEGER)
    """Seed of everything that is drawn at random: the rows of ``confirm``, the parts of ``safeguard``, and
    ``order=random`` (Table V, first row)."""
    confirm: float = Field(default=0.0, ge=0.0, le=0.5)
    """Share of the validation rows that do not decide on trials. Every acceptance gives a model; the one with the lowest loss
    on these rows is kept, or with ``tolerance`` the last one before a model whose loss on them may be above the limit. 0 keeps
    the model at the end of the run, as the paper does; 0.5 sets half of the rows apart."""
    within_points: float | None = Field(default=None, ge=0.0, le=100.0)
    """With ``confirm``: instead of the model with the lowest loss, keep the cheapest model on the path that is certified to
    have lost less than this many points (hundredths) of its metric. The metric is the first in the report. If it is the share
    of right answers, the test on the confirming rows is exact, one-sided at 5 %; for metrics that are not means over rows it is
    asymptotic, and the certificate says so. ``tolerance`` makes the path of a pass long; its trade also keeps the metric within
    these points on the deciding rows, each round within its share of them."""
    target_size: float | None = Field(default=None, gt=0.0, lt=1.0)
    """Stop as soon as no more than this share of the model's parameters is left; None continues to the end, as the paper does.
    Together with ``target_speedup``, both targets must be reached."""
    target_speedup: float | None = Field(default=None, gt=1.0, allow_inf_nan=False)
    """Stop as soon as the model needs this many times fewer operations, counted from its shapes at the lengths of the data;
    None continues to the end, as the paper does."""
    evaluate_in: Literal["float32", "int8"] = "float32"
    """Arithmetic of the trials. ``int8`` decides for the model after dynamic quantization, which of all ways without training
    is the closest to the paper's Q8BERT."""
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
        return self.loss_limit is not None

    @property
    def expects_cost(self) -> bool:
        """Whether a size or a speed is asked for, whatever it costs, so that a result is judged by what it cost."""
        return False

    @property
    def attention_kept(self) -> int | None:
        """Attention probabilities that hard attention keeps for each query; None if the method has no hard attention."""
        return None

    @property
    def is_refitted(self) -> bool:
        """Whether the remaining weights are fitted."""
        return False

    @property
    def takes_gradients(self) -> bool:
        """Whether derivatives are taken, which needs memory for the way back through all layers."""
        return False

    @property
    def polish_epochs(self) -> int:
        """Epochs for which every model is trained on the calibration rows, taught by the untouched model."""
        return 0

    @property
    def dropped_before_training(self) -> int:
        """Layers that every trained model lacks, as far as the knobs alone tell."""
        return 0

    @property
    def why_not_trained(self) -> str | None:
        """Why training data cannot be used, as the beginning of a sentence; None if it can."""
        return (
            f"polish={self.polish_epochs} trains every model, and no certificate would hold for one that is trained again"
            if self.polish_epochs
            else None
        )

    @property
    def why_not_calibrated(self) -> str | None:
        """Why calibration data would change nothing, as a sentence; None if it is used."""
        return f"method={self.method} fits no weights, so nothing is calibrated"

    @property
    def drops_from_base(self) -> bool:
        """Whether models are cut from a base model, where there is one, and not from the one trained with its new head."""
        return False

    @property
    def why_training(self) -> str | None:
        """Why the run needs training data, as the beginning of a sentence; None if it does without."""
        return None

    def calibrated(self) -> Self:
        """The knobs of a run that has calibration data of its own.

        Raises:
            ConfigError: nothing would be measured on it.
        """
        if self.why_not_calibrated is not None:
            raise ConfigError(f"--calibrate: {self.why_not_calibrated}; leave it out")
        return self

    @property
    def evaluates_in_float32(self) -> bool:
        """Whether an evaluator measures the trials in float32, and can thus measure the untouched model for the check too."""
        return False

    @property
    def pass_name(self) -> str:
        """The name that distinguishes a pass from the others of its run."""
        return self.method

    def check(self) -> None:
        """Check that the knobs fit together.

        Raises:
            ConfigError: some knobs exclude each other.
        """
        if self.within_points is not None and not self.confirm:
            raise ConfigError(
                f"within_points={self.within_points} chooses by rows that did not decide; give confirm too, for example 0.3"
            )
