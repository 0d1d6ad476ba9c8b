"""The knobs of the pass: Algorithm 1 of the AxFormer paper, and extensions of it.

``PassConfig()`` is the preset ``paper``: Algorithm 1 as in the paper, except that neurons are tried in groups of a twelfth of
their block, as in the authors' program (``neuron_group_size=1`` follows the paper to the letter). The preset ``published`` is
the authors' program, decision by decision. The preset ``robust`` aims at gains that hold on data that the pass has not seen, so
it is the default of the commands and the service; ``docs/results.md`` has the measurements.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from axformer.config.about import About, Needs
from axformer.config.common import RunConfig
from axformer.errors import ConfigError

TRADE_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the tolerance that the rounds of a trade may spend. In a single round, the first blocks in the order would use it
up."""


class HelpedReference(StrEnum):
    """The model that a sample's loss is compared with when helped samples are counted."""

    CURRENT = "current"
    ORIGINAL = "original"


class Order(StrEnum):
    """The order in which blocks are inspected (section III-A.2, appendix A)."""

    AUTO = "auto"
    TOP_MIDDLE_BOTTOM = "top-middle-bottom"
    TOP_BOTTOM_MIDDLE = "top-bottom-middle"
    MIDDLE_TOP_BOTTOM = "middle-top-bottom"
    MIDDLE_BOTTOM_TOP = "middle-bottom-top"
    BOTTOM_TOP_MIDDLE = "bottom-top-middle"
    BOTTOM_MIDDLE_TOP = "bottom-middle-top"
    IMPORTANCE = "importance"
    RANDOM = "random"
    EXPLICIT = "explicit"


class Safeguard(StrEnum):
    """A condition on acceptances in addition to the accept rule (:mod:`axformer.methods.axformer.judge`)."""

    NONE = "none"
    FOLDS = "folds"


TaskName = Literal[
    "linguistic_acceptability",
    "entailment",
    "semantic_equivalence",
    "question_answering",
    "sentiment_analysis",
    "sentence_similarity",
    "reading_comprehension",
]

REMOVED: dict[str, tuple[Any, str]] = {
    "loss_budget": (None, "tolerance, with majority_fraction, trades loss for size after the gains"),
    "safeguard_alpha": (0.05, "it was of the safeguards sign_test and paired; safeguard=folds takes no level"),
}
"""Knobs of earlier versions: the neutral value, which is dropped, and advice for any other value."""
PAPER_ONLY = frozenset({"helped_reference", "ties_help", "inspect_layers_first", "coarse_margin", "explicit_order"})
"""Knobs that only serve to reproduce the authors' program or a row of one of the paper's tables."""
_WITHOUT_REFIT: dict[str, Any] = {"neuron_search": "groups", "precision": "float32", "evaluate_in": "float32"}
"""Values that ``refit`` requires of other knobs: groups are ranked, not halved, and the fits are for float32."""
REMOVED_SAFEGUARDS = ("sign_test", "paired")
REMOVED_ORDER = "search"


_MADE = """
This model was made from a fine-tuned transformer {{ "without training" if report.finetune is none else "and then trained" }}:
parts {{ condition(report.config) }} were removed ({{ paper }}).
{% if report.refit is not none %}
Before each measurement the weights that a part left in its block were fitted in closed form, without labels:
{{ report.refit.blocks }} blocks of this model, on {{ "{:,}".format(report.refit.tokens) }} tokens.
{% endif %}
{{ trained(report) }}
"""
_NOTHING_MET = """
{% if config.get("tolerance") is not none %}
no removal kept the loss within what was allowed
{% else %}
no removal lowered the loss and {{ helped(config) }}
{% endif %}
"""


class PassConfig(RunConfig):
    """The knobs of Algorithm 1."""

    about = About(
        title="the pass",
        method="axformer.methods.axformer.method:AxFormer",
        made=_MADE,
        nothing_met=_NOTHING_MET,
        meter="axformer.methods.axformer.progress:PassMeter",
        of_plans=False,
        calibrated_with="refit=true",
        instead_of_points="use tolerance alone",
    )

    method: Literal["axformer"] = "axformer"
    """The way to a smaller model: ``axformer`` is Algorithm 1 of the AxFormer paper."""
    refine_margin: float = Field(default=1.1, ge=1.0, le=100.0)
    """If a kept block's loss is below this many times the smallest loss, its parts are tried (Alg. 1 line 19)."""
    majority_fraction: float = Field(default=0.5, ge=0.0, lt=1.0)
    """Strictly more than this share of the samples must be helped (Alg. 1 line 4)."""
    helped_reference: HelpedReference = HelpedReference.CURRENT
    """The model that a sample is compared with to see whether it is helped: ``current`` is the model just before the trial (the
    paper's text), ``original`` the untouched model (the authors' program)."""
    ties_help: bool = False
    """Count samples with unchanged loss as helped, as the authors' program does."""
    hard_attention: bool = True
    """Try hard attention layer by layer before any removal (section III-B); ``false`` gives a row of Table V."""
    attention_top_k: int = Field(default=30, ge=1)
    """Attention probabilities that hard attention keeps for each query (section III-B: 30 was best for all tasks)."""
    neuron_group_size: int | None = Field(default=None, ge=1)
    """Number of neurons tried together. None means a twelfth of the block, as in the authors' program; 1 follows the paper to
    the letter."""
    neuron_search: Literal["groups", "bisect"] = "groups"
    """``bisect`` tries the halves of a kept group whose loss is within ``refine_margin``, down to single neurons; ``groups``
    leaves groups whole."""
    neuron_groups: Literal["contiguous", "ranked"] = "contiguous"
    """Which neurons form a group: neighbours, whose numbers mean nothing, or with ``ranked`` those of similar importance, the
    least important ones first, by the gradients of gates on them. With ``refit`` they are always grouped by what can be
    repaired best."""
    order: Order = Order.AUTO
    """The order in which blocks are inspected. ``auto`` takes Table VII's order for ``task_name``, or top to bottom without
    one. ``importance`` inspects the block first that the loss depends on least, by the gradients of gates on its heads or
    neurons (:mod:`axformer.scores.importance`), and needs no name of a task. ``axformer orders`` makes a run
    in each of the six orders of the regions (appendix A)."""
    task_name: TaskName | None = None
    """The task in the terms of Table VII; only ``order=auto`` reads it."""
    explicit_order: tuple[str, ...] = ()
    """The ids of the blocks to inspect, from first to last; only with ``order=explicit``."""
    inspect_layers_first: bool = False
    """Try whole layers before their blocks (Table V, second row)."""
    coarse_margin: float = Field(default=1.0, gt=0.0, le=1.0)
    """The removal of a layer or block is accepted only if it brings the loss below this many times the smallest loss so far;
    for heads and neurons the factor is always 1. Values below 1 are tighter for coarse elements, like the adaptive threshold of
    Table V, for which the paper gives no values."""
    tolerance: float | None = Field(default=None, ge=0.0, le=10.0)
    """Trade loss for size after the gains: the remaining elements are tried again in the same order, and removed as long as the
    loss stays below (1 + ``tolerance``) times the untouched model's, whether or not most samples are helped; 0.02 allows 2 %.
    The trade has four rounds, with an eighth, a quarter, half and all of the tolerance, so that cheap removals come first. Each
    acceptance is a point on the curve of size against loss. None ends with the gains, as the paper does."""
    safeguard: Safeguard = Safeguard.NONE
    """A condition on acceptances in addition to the paper's rule, which uses one validation set hundreds of times. ``folds``:
    the mean loss must fall on each of several parts of the data. ``none`` is the paper's rule."""
    safeguard_folds: int = Field(default=5, ge=2, le=100)
    """Number of parts that ``folds`` splits the validation samples into. By chance alone, all 5 gain once in 32 trials; with 5
    parts, each has a fifth of a small set."""
    precision: Literal["float32", "guarded"] = "float32"
    """``guarded`` measures each trial in low precision first; float32 then decides only the trials that are accepted or close
    to a threshold. How close is measured on the model and its data. For processors and GPUs that multiply faster in low
    precision."""
    refit: bool = False
    """Fit the rest of a trial's block in closed form before the loss is measured. The output projection of a block that lost
    heads or neurons then gives nearly the same outputs as before, and a removed block leaves a constant. Neurons are grouped in
    the order in which their loss can be repaired best. The fit uses no labels."""
    non_inferiority: float | None = Field(default=None, gt=0.0, lt=0.5)
    """With ``refit``, a test in place of the majority. A removal is accepted if the loss falls and, with 95 % confidence, the
    share of samples whose loss is below the untouched model's is less than this margin short of one half. A repaired removal
    changes most losses a little and in both directions, so a majority is a matter of luck. None asks for the majority."""
    early_decision: bool = True
    """Stop a trial as soon as the samples measured so far decide its verdict; its loss in the trace is then a lower bound.
    ``false`` measures every trial on all samples."""

    @property
    def loss_limit(self) -> float | None:
        return None if self.tolerance is None else 1 + self.tolerance

    @property
    def attention_kept(self) -> int | None:
        return self.attention_top_k

    @property
    def is_guarded(self) -> bool:
        return self.precision == "guarded"

    @property
    def has_ranked_groups(self) -> bool:
        """Whether a group may hold neurons that do not lie side by side, so that the data says which."""
        return self.refit or self.neuron_groups == "ranked"

    @property
    def needs(self) -> Needs:
        gradients = self.order is Order.IMPORTANCE or self.neuron_groups == "ranked"
        return Needs(fitting=self.refit, gradients=gradients, calibration=self.refit)

    @property
    def compared_with(self) -> HelpedReference:
        """The model that a sample is compared with. ``non_inferiority`` is always to the untouched model."""
        return self.helped_reference if self.non_inferiority is None else HelpedReference.ORIGINAL

    @property
    def evaluates_in_float32(self) -> bool:
        return self.evaluate_in == "float32"

    @property
    def trade_shares(self) -> tuple[float, ...]:
        """The share of the tolerance that each round of a trade may spend; empty without a trade."""
        return () if self.tolerance is None else TRADE_SHARES

    @property
    def trades_within_points(self) -> bool:
        """Whether a trade must also keep the metric."""
        return self.tolerance is not None and self.within_points is not None

    @property
    def one_process(self) -> str | None:
        if self.refit:
            return "refit"
        return super().one_process or ("tolerance and within_points" if self.trades_within_points else None)

    @model_validator(mode="before")
    @classmethod
    def _without_removed(cls, knobs: Any) -> Any:
        if not isinstance(knobs, Mapping):
            return knobs
        for name, (neutral, instead) in REMOVED.items():
            if knobs.get(name, neutral) != neutral:
                raise ValueError(f"knob {name}={knobs[name]!r} is of an earlier version and no longer there: {instead}")
        if knobs.get("safeguard") in REMOVED_SAFEGUARDS:
            raise ValueError(
                f"safeguard={knobs['safeguard']} is of an earlier version and no longer there: it accepted "
                "nothing on most data; take folds"
            )
        if knobs.get("order") == REMOVED_ORDER:
            raise ValueError(
                f"order={REMOVED_ORDER} is of an earlier version and no longer there: the command axformer orders makes a run "
                "in each order and compares them"
            )
        return {name: value for name, value in knobs.items() if name not in REMOVED}

    @field_validator("explicit_order")
    @classmethod
    def _no_block_twice(cls, ids: tuple[str, ...]) -> tuple[str, ...]:
        repeated = sorted({id for id in ids if ids.count(id) > 1})
        if repeated:
            raise ValueError(f"names {', '.join(repeated)} more than once")
        return ids

    def check(self) -> None:
        super().check()
        if bool(self.explicit_order) != (self.order is Order.EXPLICIT):
            raise ConfigError("order=explicit and explicit_order go together; give both or neither")
        for name, plain in _WITHOUT_REFIT.items():
            if self.refit and getattr(self, name) != plain:
                raise ConfigError(f"refit goes with {name}={plain} alone, not with {name}={getattr(self, name)}")

        self._check_groups()
        self._check_non_inferiority()

    def _check_groups(self) -> None:
        if self.neuron_groups == "contiguous":
            return
        if self.refit:
            raise ConfigError(
                "neuron_groups=ranked: with refit, neurons are grouped by what can be repaired best; leave one of them out"
            )
        if self.neuron_search != "groups":
            raise ConfigError(
                f"neuron_groups=ranked goes with neuron_search=groups alone, not with neuron_search={self.neuron_search}"
            )

    def _check_non_inferiority(self) -> None:
        if self.non_inferiority is None:
            return
        given = f"non_inferiority={self.non_inferiority:g}"
        if not self.refit:
            raise ConfigError(f"{given} is a rule for removals that are repaired; give refit=true too, or leave it out")
        if self.majority_fraction != PassConfig.model_fields["majority_fraction"].default:
            raise ConfigError(
                f"{given} takes the place of the majority, so majority_fraction={self.majority_fraction:g} would not be looked "
                "at; give one of them"
            )

    def group_size(self, intermediate_size: int) -> int:
        """Number of neurons in a group for blocks of this width."""
        return self.neuron_group_size or max(1, intermediate_size // 12)
