"""Compression without training (COMPRESS, section 2): its description and its knobs."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from axformer.config.common import About, Needs, Points, RunConfig
from axformer.plan.elements import Dimensions

CONFIRM_IF_CALIBRATED = 0.8
"""The default of ``confirm`` with calibration data of its own (``docs/statistics.md``)."""
POLISHED = 0.35
"""Shares of the operations up to which a polish was measured to pay (``docs/compress.md``)."""
USUAL_POLISH = 2
"""Epochs of a polish that nobody named."""


_MADE = """
This model was made from a fine-tuned transformer {{ "and then trained" if report.is_trained else "without training" }}:
of its attention heads and feed-forward neurons those went that change its predictions least at this size
{%- if report.refit is none %}.{% else %}{{ fitted_to_whole(report.refit) }}
{{- ", at least %.1f for each unknown" % report.refit.tokens_per_unknown if report.refit.tokens_per_unknown is not none }}
{{- " (few; more rows to calibrate on, without labels, would help)" if report.refit.has_few_tokens }}
{{- ", of %d only the bias" % report.refit.bias_only if report.refit.bias_only }}.{% endif %}
{{ trained(report) }}
"""


class CompressConfig(RunConfig):
    """The knobs of ``method=compress``."""

    about = About(
        title="compression",
        method="axformer.methods.compress.method:Compress",
        made=_MADE,
        calibrated_with="repair=refit",
        uses_labels=False,
    )

    method: Literal["compress"] = "compress"
    """``compress``: a model for each of several budgets, with sizes chosen by a level table and weights refitted in closed
    form, without training and without labels."""
    confirm: float = Field(default=0.4, ge=0.0, le=0.9)
    """Share of the validation rows that neither decide nor calibrate, but choose between the models of the budgets. With
    calibration data of its own the default is 0.8: the other rows have little left to do, and more rows certify more."""
    within_points: Points = 1.0
    """Keep the cheapest model that is certified to have lost less than this many points (hundredths) of its metric, with
    95 % confidence where the report says so. None keeps the model with the lowest loss on the confirming rows, or without
    ``confirm`` the last one. With a target, ``within_points`` and ``confirm`` are not used unless they are given."""
    budgets: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
    """Shares of the encoder's cost, largest first. Each gives a model on the path. A ``target_speedup`` that the last one
    misses adds the one that reaches it, if the model can go there."""
    cost: Literal["operations", "latency"] = "operations"
    """The cost that budgets are shares of: ``operations`` at the lengths of the data, or ``latency``, the milliseconds for one
    input of median length, measured block by block on the device of the run. ``target_speedup`` counts the same."""
    repair: Literal["refit", "none"] = "refit"
    """``refit`` fits the remaining weights to the outputs of the untouched model; ``none`` leaves them as they are."""
    polish: int | None = Field(default=0, ge=0, le=100)
    """Train what each budget leaves for this many epochs on the calibration rows, all of them unless ``calibrate_rows`` says
    otherwise, with the untouched model as the only teacher (COMPRESS, section 2): no label is looked at, and the certificate is
    of the trained models. It costs a training for each budget; where no epoch brings the predictions for the deciding rows
    nearer to the teacher's, the model stays as it was. 0 trains nothing; None trains for at most two epochs where 4,000 to
    40,000 rows calibrate, as is done by default for a ``target_speedup`` of about three or more."""
    table_rows: int = Field(default=128, ge=1)
    """Number of deciding rows for the level table, or of calibration rows if fewer decide. More rows make the table more
    reliable and take proportionally longer."""

    @model_validator(mode="before")
    @classmethod
    def _a_target_needs_no_points(cls, knobs: Any) -> Any:
        """A size or a speed that is named is not held back by points that nobody named."""
        targets = ("target_size", "target_speedup")
        if isinstance(knobs, Mapping) and any(knobs.get(name) is not None for name in targets):
            return knobs if knobs.get("within_points") is not None else {"within_points": None, "confirm": 0.0, **knobs}
        return knobs

    def calibrated(self, *, is_trained: bool = False) -> Self:
        config, update = super().calibrated(is_trained=is_trained), dict[str, Any]()
        if "confirm" not in self.model_fields_set and self.within_points is not None:
            update["confirm"] = CONFIRM_IF_CALIBRATED
        is_strong = self.target_speedup is not None and 1 / self.target_speedup <= POLISHED
        if "polish" not in self.model_fields_set and is_strong and not is_trained:
            update["polish"] = None
        return config.model_copy(update=update)

    @property
    def asks_for_time(self) -> bool:
        return self.target_speedup is not None and self.cost == "latency"

    @property
    def may_go_further(self) -> bool:
        """Whether a budget may be added to reach the speed that is asked for."""
        return self.target_speedup is not None

    @property
    def needs(self) -> Needs:
        polish = USUAL_POLISH if self.polish is None else self.polish
        return Needs(fitting=self.repair == "refit", gradients=True, calibration=True, polish=polish)

    @classmethod
    def applied_otherwise(cls, knobs: Mapping[str, Any], *, has_new_head: bool) -> str | None:  # noqa: ARG003
        return "without the polish" if knobs.get("polish") else None

    def most_trials(self, dimensions: Dimensions) -> int:  # noqa: ARG002 - as for every method
        return 1 + len(self.budgets) + self.may_go_further

    @field_validator("budgets", mode="before")
    @classmethod
    def _several(cls, budgets: Any) -> Any:
        if not isinstance(budgets, list | tuple):
            raise ValueError("budgets are a list, also where there is only one, for example [0.5]")
        return budgets

    @field_validator("budgets")
    @classmethod
    def _descending(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if not budgets or list(budgets) != sorted(set(budgets), reverse=True) or not 0 < budgets[-1] <= budgets[0] < 1:
            raise ValueError("budgets are shares between 0 and 1, largest first, for example [0.8, 0.65, 0.5]")
        return budgets
