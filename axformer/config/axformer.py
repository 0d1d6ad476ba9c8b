"""The knobs of the pass: Algorithm 1 of the AxFormer paper, and what may be done beside it.

``PassConfig()`` is the preset ``paper``: Algorithm 1 as the paper gives it, but neurons are tried in groups of a twelfth of
their block, as in the authors' program (``neuron_group_size=1`` is the letter). The preset ``published`` is the authors' own
program, decision by decision. The preset ``robust`` is made for gains that hold on data that the pass has not seen, so commands
and service take it when none is named; ``docs/evidence.md`` has what is measured of it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from axformer.config.common import RunConfig
from axformer.errors import ConfigError

TRADE_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""What the rounds of a trade may spend of its tolerance. With all of it at once, the first blocks in the order would."""


class HelpedReference(StrEnum):
    """What a sample's loss is compared with when helped samples are counted."""

    CURRENT = "current"
    ORIGINAL = "original"


class Order(StrEnum):
    """In which order the blocks are inspected (section III-A.2, appendix A)."""

    AUTO = "auto"
    TOP_MIDDLE_BOTTOM = "top-middle-bottom"
    TOP_BOTTOM_MIDDLE = "top-bottom-middle"
    MIDDLE_TOP_BOTTOM = "middle-top-bottom"
    MIDDLE_BOTTOM_TOP = "middle-bottom-top"
    BOTTOM_TOP_MIDDLE = "bottom-top-middle"
    BOTTOM_MIDDLE_TOP = "bottom-middle-top"
    RANDOM = "random"
    EXPLICIT = "explicit"
    SEARCH = "search"


class Safeguard(StrEnum):
    """What an acceptance must withstand beside the accept rule (:mod:`axformer.methods.axformer.safeguards`)."""

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
"""Knobs of earlier versions: the value that changed nothing, which is dropped, and what to do with any other."""
PAPER_ONLY = frozenset({"helped_reference", "ties_help", "inspect_layers_first", "coarse_margin", "explicit_order"})
"""Knobs that reproduce a row of a table of the paper, or the authors' program, and serve nothing else."""
_WITHOUT_REFIT: dict[str, Any] = {"neuron_search": "groups", "precision": "float32", "evaluate_in": "float32"}
"""What refit needs of other knobs: groups are ranked, not halved, and fits are measured in the precision that they are for."""
REMOVED_SAFEGUARDS = ("sign_test", "paired")


class PassConfig(RunConfig):
    """The knobs of Algorithm 1."""

    method: Literal["axformer"] = "axformer"
    """The way to a smaller model: ``axformer`` is Algorithm 1 of the AxFormer paper."""
    refine_margin: float = Field(default=1.1, ge=1.0, le=100.0)
    """A kept block whose loss is below this many times the least loss has its parts tried (Alg. 1 line 19)."""
    majority_fraction: float = Field(default=0.5, ge=0.0, lt=1.0)
    """Strictly more than this share of the samples must be helped (Alg. 1 line 4)."""
    helped_reference: HelpedReference = HelpedReference.CURRENT
    """Whether a sample is helped against the model just before the trial (the paper's text) or the untouched one (the
    authors' program)."""
    ties_help: bool = False
    """Count a sample whose loss did not change as helped, as the authors' program does."""
    hard_attention: bool = True
    """Try hard attention layer by layer before anything is removed (section III-B); false gives a row of Table V."""
    attention_top_k: int = Field(default=30, ge=1)
    """Attention probabilities that hard attention keeps for each query (section III-B: 30 was best for all tasks)."""
    neuron_group_size: int | None = Field(default=None, ge=1)
    """Neurons tried together; None is a twelfth of the block, as in the authors' program; 1 is the paper's letter."""
    neuron_search: Literal["groups", "bisect"] = "groups"
    """``bisect`` goes on into the halves of a group that is kept but whose loss is below ``refine_margin``, down to one
    neuron; ``groups`` leaves groups whole."""
    order: Order = Order.AUTO
    """In which order blocks are inspected; ``auto`` takes Table VII's order for ``task_name``, else top to bottom. ``search``
    runs six passes, one for each permutation of the regions, and keeps the one with the least validation loss (appendix A)."""
    task_name: TaskName | None = None
    """What the data asks for, in the words of Table VII; only ``order=auto`` reads it."""
    explicit_order: tuple[str, ...] = ()
    """The ids of the blocks to inspect, first to last; only with ``order=explicit``."""
    inspect_layers_first: bool = False
    """Try whole layers before their blocks (Table V, second row)."""
    coarse_margin: float = Field(default=1.0, gt=0.0, le=1.0)
    """A layer or block must bring the loss below this many times its minimum; heads and neurons always 1. Below 1 it is
    tight where it is coarse, as the adaptive threshold of Table V is, of which the paper gives no values."""
    tolerance: float | None = Field(default=None, ge=0.0, le=10.0)
    """Trade loss for size after the gains are taken: what is left is gone over again, in the same order, and goes as long as
    the loss stays below 1 + this many times the untouched model's, whether most samples are helped or not; 0.02 allows 2 %.
    That is done in four rounds, with an eighth of it, a quarter, half, and all, so that what costs little goes first. Each
    acceptance is a point on the curve of size against loss. None ends with the gains, as the paper does."""
    safeguard: Safeguard = Safeguard.NONE
    """What an acceptance must withstand beside the paper's rule, which looks at one validation set hundreds of times:
    ``folds``, the mean loss falls on each of several parts of the data. ``none`` is the paper's rule."""
    safeguard_folds: int = Field(default=5, ge=2, le=100)
    """Parts that ``folds`` splits the validation samples into: by chance alone all 5 gain once in 32 trials, and 5 leaves a
    fifth of a small set in each."""
    precision: Literal["float32", "guarded"] = "float32"
    """``guarded`` looks at each trial in low precision first, and lets float32 decide only what is accepted or near a line;
    how near is measured on the model and its data. For processors and GPUs that multiply low precision faster."""
    refit: bool = False
    """Fit what a trial leaves of its block, in closed form, before the loss is measured: the output projection of each block
    that lost heads or neurons then gives nearly what it gave before, and a removed block leaves a constant. Neurons are
    grouped in the order in which their loss can be repaired best. No label is used for the fit."""
    early_decision: bool = True
    """Stop a trial as soon as the samples seen decide its verdict; its loss in the trace is then a lower bound. ``false``
    measures every trial to the end."""

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
    def is_refitted(self) -> bool:
        return self.refit

    @property
    def why_not_calibrated(self) -> str | None:
        return (
            None if self.refit else f"method={self.method} fits no weights without refit=true, so nothing is calibrated"
        )

    @property
    def evaluates_in_float32(self) -> bool:
        return self.evaluate_in == "float32"

    @property
    def pass_name(self) -> str:
        return self.order.value

    @property
    def trade_shares(self) -> tuple[float, ...]:
        """What each round of a trade may spend of the tolerance; none without a trade."""
        return () if self.tolerance is None else TRADE_SHARES

    @property
    def trades_within_points(self) -> bool:
        """Whether a trade must keep the metric too."""
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

    def group_size(self, intermediate_size: int) -> int:
        """Neurons in a group for blocks of this width."""
        return self.neuron_group_size or max(1, intermediate_size // 12)
