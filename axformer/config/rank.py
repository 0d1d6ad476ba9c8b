"""Ranked pruning, the baselines of Table IV of the AxFormer paper and of *Why Can You Lay Off Heads?*: its description and its
knobs."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from axformer.config.common import About, Needs, Points, RunConfig
from axformer.errors import ConfigError
from axformer.plan.elements import Dimensions

Score = Literal["taylor", "gradient", "fisher", "activation", "l1", "magnitude", "random", "given"]
"""What a unit is ranked by (:mod:`axformer.scores.importance`)."""


RANKING = "ranking.jsonl"
"""The file with the score of every unit of the untouched model, and the step in which it left."""
_MADE = """
This model was made from a fine-tuned transformer {{ "and then trained" if report.is_trained else "without training" }}:
of its {{ {"both": "attention heads and feed-forward neurons", "heads": "attention heads",
"neurons": "feed-forward neurons"}[report.config.units] }}
those with the lowest score left, {{ "%g" % (100 * report.config.step) }} % of them in every step
(score: {{ report.config.score }})
{%- if report.config.get("finetune_each") %}, and what stayed was trained after each of them{% endif %}
{%- if report.refit is none %}.{% else %}{{ fitted_to_whole(report.refit) }}.{% endif %}
{{ trained(report) }}
"""


class RankConfig(RunConfig):
    """The knobs of ``method=rank``."""

    about = About(
        title="ranked pruning",
        method="axformer.methods.rank.method:Rank",
        made=_MADE,
        calibrated_with="repair=refit",
        instead_of_points="use relative=0.9, which goes by Recall@1",
        files=(RANKING,),
        takes_score=True,
    )

    method: Literal["rank"] = "rank"
    """``rank``: heads and neurons leave in the order of a score, the lowest first, a share of them in every step."""
    confirm: float = Field(default=0.4, ge=0.0, le=0.5)
    """Share of the validation rows that neither rank nor decide, but choose between the models of the steps."""
    within_points: Points = 1.0
    """Keep the cheapest model that is certified to have lost less than this many points (hundredths) of its metric. None keeps
    the model with the lowest loss on the confirming rows, or without ``confirm`` the last one."""
    score: Score = "taylor"
    """What units are ranked by: ``taylor`` and ``fisher`` by the gradient of a gate on each unit (first-order Taylor expansion,
    Molchanov et al., 2017, which is also the importance of Michel et al., 2019, for heads; and its square), ``gradient`` by
    that of the unit's weights, ``activation`` by the unit's activations, ``l1`` and ``magnitude`` by the unit's weights, and
    ``random`` by nothing, as a control. ``given`` stands for a function that a Python program passes in, with
    ``axformer.prune(..., score=f)``."""
    units: Literal["both", "heads", "neurons"] = "both"
    """What is removed. Heads and neurons are ranked apart; ``both`` takes the same share of each in a step."""
    normalisation: Literal["none", "l1", "l2"] = "none"
    """Divide the scores of a block by their sum (``l1``) or by the root of the sum of their squares (``l2``), so that blocks
    compare (Chiang et al., 2020, equation 4; it finds ``l1`` best for heads)."""
    step: float = Field(default=0.05, gt=0.0, le=0.5)
    """Share of the original units that leaves in a step; Table IV of the AxFormer paper takes 5 %."""
    until: float = Field(default=0.95, gt=0.0, le=1.0)
    """Share of the original units that has left after the last step."""
    reestimate: bool = True
    """Rank the remaining units again after every step, on the model as it is then. Otherwise the untouched model's ranking is
    used throughout."""
    keep_one_head: bool = False
    """Let no layer lose its last head. By default a layer without heads keeps only the bias of its output projection."""
    relative: float | None = Field(default=None, gt=0.0, le=1.0)
    """Accept a step only if the metric on the deciding rows is at least this share of the untouched model's, for example 0.9 as
    in Chiang et al.; the last such step ends the path. A language model's metric is then Recall@1, its accuracy (section 4.3
    there). ``within_points`` and ``confirm`` are not used with it unless they are given. None accepts every step."""
    finetune_each: int = Field(default=0, ge=0, le=100)
    """Train what is left for this many epochs after every step, and rank it as it is then (Molchanov et al., 2017; AxFormer,
    section III-A). It needs training data, takes as many trainings as there are steps, and the certificate is then of trained
    models. 0 trains only the model that is kept, where there is training data."""
    repair: Literal["none", "refit"] = "none"
    """``refit`` fits the remaining weights to the outputs of the untouched model after every step; ``none`` leaves them."""

    @model_validator(mode="before")
    @classmethod
    def _a_share_needs_no_choice(cls, knobs: Any) -> Any:
        if isinstance(knobs, Mapping) and knobs.get("relative") is not None:
            return {"within_points": None, "confirm": 0.0, **knobs}
        return knobs

    def check(self) -> None:
        super().check()
        if self.finetune_each and self.needs.fitting:
            raise ConfigError(
                f"finetune_each={self.finetune_each} and repair=refit both change what every step leaves; give one of them"
            )
        if self.step > self.until:
            raise ConfigError(f"step={self.step:g} is above until={self.until:g}, so no step would be made")

    @property
    def needs(self) -> Needs:
        is_fitted = self.repair == "refit"
        return Needs(
            fitting=is_fitted,
            gradients=self.score in ("taylor", "gradient", "fisher"),
            calibration=is_fitted,
            trains_each=self.finetune_each > 0,
        )

    def check_training(self, *, has_train: bool) -> None:
        super().check_training(has_train=has_train)
        if self.finetune_each and not has_train:
            raise ConfigError(
                f"finetune_each={self.finetune_each} trains after every step, and there is no training data; give train too",
                "config",
            )

    @classmethod
    def trains_path(cls, knobs: Mapping[str, Any]) -> bool:
        return bool(knobs.get("finetune_each"))

    @classmethod
    def applied_otherwise(cls, knobs: Mapping[str, Any], *, has_new_head: bool) -> str | None:  # noqa: ARG003
        return "trained once, and not after every step" if knobs.get("finetune_each") else None

    def most_trials(self, dimensions: Dimensions) -> int:  # noqa: ARG002 - as for every method
        return 1 + len(self.shares)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the units that has left after each step, ascending; the last is ``until``."""
        whole = round(self.until / self.step + 0.499999)
        return tuple(round(min(self.until, self.step * count), 10) for count in range(1, whole + 1))
