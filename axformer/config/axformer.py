"""The knobs of the pass: Algorithm 1 of the AxFormer paper, and extensions of it.

``PassConfig()`` is the preset ``paper``: Algorithm 1 as in the paper, except that neurons are tried in groups of a twelfth of
their block, as in the authors' program (``neuron_group_size=1`` follows the paper to the letter). The preset ``published`` is
the authors' program, decision by decision; it alone has the knobs of :class:`PaperVariant`. The preset ``robust`` aims at gains
that hold on data that the pass has not seen, so it is the default of the commands and the service; ``docs/results.md`` has the
measurements.
"""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from axformer.config.common import About, Needs, RunConfig
from axformer.errors import ConfigError

TRADE_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Shares of the tolerance that the rounds of a trade may spend. In a single round, the first blocks in the order would use it
up."""


class HelpedReference(StrEnum):
    """The model that a sample's loss is compared with when helped samples are counted."""

    CURRENT = "current"
    ORIGINAL = "original"


class Order(StrEnum):
    """The order in which blocks are inspected (section III-A.2, appendix A). The name of a task of Table VII stands for its
    order there."""

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
    LINGUISTIC_ACCEPTABILITY = "linguistic_acceptability"
    ENTAILMENT = "entailment"
    SEMANTIC_EQUIVALENCE = "semantic_equivalence"
    QUESTION_ANSWERING = "question_answering"
    SENTIMENT_ANALYSIS = "sentiment_analysis"
    SENTENCE_SIMILARITY = "sentence_similarity"
    READING_COMPREHENSION = "reading_comprehension"


TASKS = frozenset(
    {
        *(Order.LINGUISTIC_ACCEPTABILITY, Order.ENTAILMENT, Order.SEMANTIC_EQUIVALENCE, Order.QUESTION_ANSWERING),
        *(Order.SENTIMENT_ANALYSIS, Order.SENTENCE_SIMILARITY, Order.READING_COMPREHENSION),
    }
)
"""The orders that are named like a task of Table VII."""


class PaperVariant(BaseModel):
    """Knobs that only serve to reproduce the authors' program or a row of one of the paper's tables, with the values that other
    presets have."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    helped_reference: HelpedReference = HelpedReference.CURRENT
    """The model that a sample is compared with to see whether it is helped: ``current`` is the model just before the trial (the
    paper's text), ``original`` the untouched model (the authors' program)."""
    ties_help: bool = False
    """Count samples with unchanged loss as helped, as the authors' program does."""
    neuron_search: Literal["groups", "bisect"] = "groups"
    """``bisect`` tries the halves of a kept group whose loss is within ``refine_margin``, down to single neurons; ``groups``
    leaves groups whole."""
    explicit_order: tuple[str, ...] = ()
    """The ids of the blocks to inspect, from first to last; only with ``order=explicit``."""
    inspect_layers_first: bool = False
    """Try whole layers before their blocks (Table V, second row)."""
    coarse_margin: float = Field(default=1.0, gt=0.0, le=1.0)
    """The removal of a layer or block is accepted only if it brings the loss below this many times the smallest loss so far;
    for heads and neurons the factor is always 1. Values below 1 are tighter for coarse elements, like the adaptive threshold of
    Table V, for which the paper gives no values."""

    @field_validator("explicit_order")
    @classmethod
    def _no_block_twice(cls, ids: tuple[str, ...]) -> tuple[str, ...]:
        repeated = sorted({id for id in ids if ids.count(id) > 1})
        if repeated:
            raise ValueError(f"names {', '.join(repeated)} more than once")
        return ids


_MADE = """
This model was made from a fine-tuned transformer {{ "and then trained" if report.is_trained else "without training" }}:
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
        calibrated_with="repair=refit",
        instead_of_points="use tolerance alone",
    )

    method: Literal["axformer"] = "axformer"
    """The way to a smaller model: ``axformer`` is Algorithm 1 of the AxFormer paper."""
    refine_margin: float = Field(default=1.1, ge=1.0, le=100.0)
    """If a kept block's loss is below this many times the smallest loss, its parts are tried (Alg. 1 line 19)."""
    majority_fraction: float = Field(default=0.5, ge=0.0, lt=1.0)
    """Strictly more than this share of the samples must be helped (Alg. 1 line 4): of the different inputs, and for hard
    attention of those that it can change."""
    attention_top_k: int | None = Field(default=30, ge=1)
    """Attention probabilities that hard attention keeps for each query (section III-B: 30 was best for all tasks). Hard
    attention is tried layer by layer before any removal; with None it is not, which gives a row of Table V. It can change texts
    of more tokens than that alone, and is left out where there are too few."""
    neuron_group_size: int | None = Field(default=None, ge=1)
    """Number of neurons tried together. None means a twelfth of the block, as in the authors' program; 1 follows the paper to
    the letter."""
    neuron_groups: Literal["contiguous", "ranked"] = "contiguous"
    """Which neurons form a group: neighbours, whose numbers mean nothing, or with ``ranked`` those of similar importance, the
    least important ones first, by the gradients of gates on them. With ``repair=refit`` they are always grouped by
    what can be repaired best."""
    order: Order = Order.AUTO
    """The order in which blocks are inspected. ``auto`` is top to bottom, and the name of a task its order in Table
    VII. ``importance`` inspects the block first that the loss depends on least, by the gradients of gates on its heads or
    neurons (:mod:`axformer.scores.importance`), and needs no name of a task. ``axformer orders`` makes a run in
    each of the six orders of the regions (appendix A)."""
    tolerance: float | None = Field(default=None, ge=0.0, le=10.0)
    """Trade loss for size after the gains: the remaining elements are tried again in the same order, and removed as long as the
    loss stays below (1 + ``tolerance``) times the untouched model's, whether or not most samples are helped; 0.02 allows 2 %.
    The trade has four rounds, with an eighth, a quarter, half and all of the tolerance, so that cheap removals come first. Each
    acceptance is a point on the curve of size against loss. None ends with the gains, as the paper does."""
    safeguard: int | None = Field(default=None, ge=2, le=100)
    """A condition on acceptances beside the paper's rule, which uses one validation set hundreds of times: the mean loss must
    fall on each of this many parts of the data. By chance alone, all of 5 parts gain once in 32 trials; with 5 parts, each
    has a fifth of a small set. None is the paper's rule."""
    conditions: tuple[Literal["temperature", "stable", "metric"], ...] = ()
    """More conditions on acceptances before a trade. ``temperature`` compares losses at each model's own best temperature, so
    that a removal must add information and not doubt; ``stable`` accepts what the rule would accept in 90 % of bootstrap draws
    of the rows; ``metric`` accepts nothing that lowers the first metric of the deciding rows."""
    repair: Literal["none", "refit"] = "none"
    """``refit`` fits the rest of a trial's block in closed form before the loss is measured. The output projection of a block
    that lost heads or neurons then gives nearly the same outputs as before, and a removed block leaves a constant. Neurons are
    grouped in the order in which their loss can be repaired best. The fit uses no labels. ``none`` fits nothing."""
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
    def variant(self) -> PaperVariant:
        """What only the preset ``published`` can change."""
        return PaperVariant()

    @property
    def counts_every_row(self) -> bool:
        """Whether copies of an input, and for hard attention those that it cannot change, are counted as helped or not."""
        return False

    @property
    def has_ranked_groups(self) -> bool:
        """Whether a group may hold neurons that do not lie side by side, so that the data says which."""
        return self.repair == "refit" or self.neuron_groups == "ranked"

    @property
    def needs(self) -> Needs:
        gradients = self.order is Order.IMPORTANCE or self.neuron_groups == "ranked"
        return Needs(
            fitting=self.repair == "refit",
            gradients=gradients,
            calibration=self.repair == "refit",
            temperatures="temperature" in self.conditions,
        )

    @property
    def is_guarded(self) -> bool:
        """Whether more than the paper's rule decides before a trade."""
        return self.safeguard is not None or bool({"stable", "metric"} & set(self.conditions))

    @property
    def trade_shares(self) -> tuple[float, ...]:
        """The share of the tolerance that each round of a trade may spend; empty without a trade."""
        return () if self.tolerance is None else TRADE_SHARES

    @property
    def trades_within_points(self) -> bool:
        """Whether a trade must also keep the metric."""
        return self.tolerance is not None and self.within_points is not None

    def check(self) -> None:
        super().check()
        if bool(self.variant.explicit_order) != (self.order is Order.EXPLICIT):
            raise ConfigError(
                "order=explicit and explicit_order go together, with preset=published; give both or neither"
            )
        if self.needs.fitting and self.variant.neuron_search != "groups":
            raise ConfigError(
                f"repair=refit ranks groups of neurons, and does not go with neuron_search={self.variant.neuron_search}"
            )
        self._check_groups()

    def _check_groups(self) -> None:
        if self.neuron_groups == "contiguous":
            return
        if self.needs.fitting:
            raise ConfigError(
                "neuron_groups=ranked: with repair=refit, neurons are grouped by what can be repaired best; leave one out"
            )
        if self.variant.neuron_search != "groups":
            raise ConfigError(
                f"neuron_groups=ranked goes with neuron_search=groups alone, not with {self.variant.neuron_search}"
            )

    def group_size(self, intermediate_size: int) -> int:
        """Number of neurons in a group for blocks of this width."""
        return self.neuron_group_size or max(1, intermediate_size // 12)


class PublishedConfig(PaperVariant, PassConfig):
    """The knobs of the preset ``published``."""

    @property
    def variant(self) -> PaperVariant:
        return self

    @property
    def counts_every_row(self) -> bool:
        return True  # as the authors' program does
