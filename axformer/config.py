"""Every knob of a pass, with its default and the reason for it.

``PassConfig()`` is the preset ``paper``: Algorithm 1 as the paper gives it, but neurons are tried in groups of a twelfth of
their block, as in the authors' program (``neuron_group_size=1`` is the letter). The preset ``published`` is the authors' own
program, decision by decision. The preset ``robust`` is made for gains that hold on data that the pass has not seen, so commands
and service take it where none is named; ``docs/evidence.md`` has what is measured of it.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from axformer.errors import ConfigError, reason_of


class Preset(StrEnum):
    """A named set of knobs."""

    PAPER = "paper"
    PUBLISHED = "published"
    ROBUST = "robust"


ABOUT_PRESETS: dict[Preset, str] = {
    Preset.PAPER: "Algorithm 1 of the paper, with neurons in groups of a twelfth, as in the authors' program",
    Preset.PUBLISHED: "the authors' own program, decision by decision",
    Preset.ROBUST: "the paper's rule, but a change must gain on each of five parts of the data",
}
"""What each is, for people."""
DEFAULT_PRESET = Preset.ROBUST
"""Of who names none: of the commands, and of the service."""
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
    """What an acceptance must withstand beside the accept rule (``axformer.methods.axformer.safeguards``)."""

    NONE = "none"
    SIGN_TEST = "sign_test"
    PAIRED = "paired"
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


class PassConfig(BaseModel):
    """The knobs of a pass. Unknown knobs and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

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
    """Neurons tried together; null is a twelfth of the block, as in the authors' program; 1 is the paper's letter."""
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
    seed: int = Field(default=0, ge=0)
    """Seed of ``order=random`` (Table V, first row), of the split of ``safeguard=folds``, and of that of ``confirm``."""
    inspect_layers_first: bool = False
    """Try whole layers before their blocks (Table V, second row)."""
    coarse_margin: float = Field(default=1.0, gt=0.0, le=1.0)
    """A layer or block must bring the loss below this many times its minimum; heads and neurons always 1. Below 1 it is
    tight where it is coarse, as the adaptive threshold of Table V is, of which the paper gives no values."""
    loss_budget: float | None = Field(default=None, ge=1.0, le=100.0)
    """How far the loss may go up for the sake of size: a removal must keep it below this many times the untouched model's loss,
    not below the least loss so far; 1.02 allows 2 %. Margins count from there. Most samples must still be helped, and hard
    attention, which removes nothing, must still lower the loss. Null is the paper's rule."""
    tolerance: float | None = Field(default=None, ge=0.0, le=10.0)
    """Trade loss for size after the gains are taken: what is left is gone over again, in the same order, and goes as long as
    the loss stays below 1 + this many times the untouched model's, whether most samples are helped or not; 0.02 allows 2 %.
    That is done in four rounds, with an eighth of it, a quarter, half, and all, so that what costs little goes first. Each
    acceptance is a point on the curve of size against loss. Null ends with the gains, as the paper does."""
    safeguard: Safeguard = Safeguard.NONE
    """What an acceptance must withstand beside the paper's rule, which looks at one validation set hundreds of times:
    ``sign_test``, more samples are helped than chance would give; ``paired``, the mean gain's lower confidence bound is above
    0; ``folds``, the mean loss falls on each of several parts of the data. ``none`` is the paper's rule."""
    safeguard_alpha: float = Field(default=0.05, gt=0.0, lt=0.5)
    """How often a pass whose changes make no difference may accept any of them, by ``sign_test`` or ``paired``; each trial gets
    its share of it. 0.05 is what is usual for tests."""
    safeguard_folds: int = Field(default=5, ge=2, le=100)
    """Parts that ``folds`` splits the validation samples into: by chance alone all 5 gain once in 32 trials, and 5 leaves a
    fifth of a small set in each."""
    confirm: float = Field(default=0.0, ge=0.0, le=0.5)
    """Share of the validation rows that the pass does not look at: every acceptance is a model, and the one that has the least
    loss on these rows is kept in the end; with ``tolerance`` or ``loss_budget`` the last before one whose loss there may be
    above the limit. 0 keeps the end of the pass, as the paper does; 0.5 is half of the rows."""
    within_points: float | None = Field(default=None, ge=0.0, le=100.0)
    """With ``confirm``: keep the smallest model on the path before one whose metric may have fallen by more than so many points
    (hundredths), not the one with the least loss. The metric is the first that a report names. Where it is the share of right
    answers, Tango's score test asks the confirming rows, one-sided at 5 %; of any other a bootstrap interval is asked, which on
    few rows promises nothing. ``tolerance`` is what makes the path long; its trade keeps the metric within so many points on
    the rows that decide too, each round within its share of them."""
    target_size: float | None = Field(default=None, gt=0.0, lt=1.0)
    """Stop as soon as no more than this share of the model's parameters is left; null goes on to the end, as the paper does.
    With ``target_speedup`` too, both must be reached."""
    target_speedup: float | None = Field(default=None, gt=1.0, allow_inf_nan=False)
    """Stop as soon as the model needs this many times fewer operations, counted from its shapes at the data's own lengths;
    null goes on to the end, as the paper does."""
    evaluate_in: Literal["float32", "int8"] = "float32"
    """Arithmetic of the trials; ``int8`` decides for the model as it is after dynamic quantization, the nearest to the
    paper's Q8BERT that needs no training."""
    precision: Literal["float32", "guarded"] = "float32"
    """``guarded`` looks at each trial in low precision first, and lets float32 decide only what is accepted or near a line;
    how near is measured on the model and its data. For processors and GPUs that multiply low precision faster."""
    early_decision: bool = True
    """Stop a trial as soon as the samples seen decide its verdict; its loss in the trace is then a lower bound. ``false``
    measures every trial to the end."""
    accept_poor_model: bool = False
    """Go on with a model that is worse than guessing on the rows that decide, or whose classes these seem to count in another
    order. By default a run stops there before its first trial, because mostly the labels are read wrongly then."""
    max_length: int | None = Field(default=None, ge=2)
    """Cut inputs to this many tokens; null cuts none and refuses inputs that are longer than the model takes."""
    batch_tokens: int | None = Field(default=None, ge=1)
    """Tokens evaluated together, padding included; changes speed and memory, and losses only by rounding. Null takes 1,024 on
    a CPU, and on a GPU what its memory is good for."""
    cache_budget: int | None = Field(default=None, ge=0)
    """Bytes of activations kept between trials on the device that computes; null is 0.7 of what is free there when the
    pass begins. Changes speed, and no loss."""

    @property
    def loss_limit(self) -> float | None:
        """How many times the untouched model's loss the result may have; null where the loss may only fall."""
        return self.loss_budget if self.tolerance is None else 1 + self.tolerance

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
        """The knobs for whose sake the samples cannot be shared by several processes; null where they can."""
        if self.evaluate_in == "int8":
            return "evaluate_in='int8'"
        return "tolerance and within_points" if self.trades_within_points else None

    @field_validator("explicit_order")
    @classmethod
    def _no_block_twice(cls, ids: tuple[str, ...]) -> tuple[str, ...]:
        repeated = sorted({id for id in ids if ids.count(id) > 1})
        if repeated:
            raise ValueError(f"names {', '.join(repeated)} more than once")
        return ids

    def group_size(self, intermediate_size: int) -> int:
        """Neurons in a group for blocks of this width."""
        return self.neuron_group_size or max(1, intermediate_size // 12)


PRESETS: dict[Preset, dict[str, Any]] = {
    Preset.PAPER: {},
    Preset.PUBLISHED: {
        "helped_reference": HelpedReference.ORIGINAL,
        "ties_help": True,
        "order": Order.TOP_MIDDLE_BOTTOM,
        "max_length": 128,
    },
    Preset.ROBUST: {"safeguard": Safeguard.FOLDS},
}


def make_config(preset: str = Preset.PAPER, knobs: Mapping[str, Any] | None = None) -> PassConfig:
    """The knobs of a preset with some of them changed.

    Raises:
        ConfigError: the preset or a knob is unknown, or a value is out of range.
    """
    if preset not in list(Preset):
        raise ConfigError(f"preset '{preset}' is unknown; there are {', '.join(Preset)}")
    try:
        config = PassConfig(**{**PRESETS[Preset(preset)], **(knobs or {})})
    except ValidationError as error:
        raise ConfigError(_explain(error)) from None
    if bool(config.explicit_order) != (config.order is Order.EXPLICIT):
        raise ConfigError("order=explicit and explicit_order go together; give both or neither")
    if config.safeguard is not Safeguard.NONE and config.loss_budget is not None:
        raise ConfigError(
            f"safeguard={config.safeguard} accepts gains only, loss_budget={config.loss_budget} lets the loss go up; give one "
            "(the preset paper has no safeguard), or tolerance, which trades after the gains"
        )
    if config.within_points is not None and not config.confirm:
        raise ConfigError(
            f"within_points={config.within_points} chooses by rows that did not decide; give confirm too, for example 0.3"
        )
    if config.tolerance is not None and config.loss_budget is not None:
        raise ConfigError(
            f"loss_budget={config.loss_budget} lets the loss go up from the first block on, tolerance={config.tolerance} after "
            "the gains are taken; give one"
        )
    return config


def changed_knobs(preset: str, knobs: Mapping[str, Any]) -> dict[str, Any]:
    """Of every knob with its value, as JSON has them, those that are not as in the preset.

    Presets and knobs may be those of a newer service: such a preset is taken for ``paper``, and such knobs count as changed.
    """
    plain = make_config(preset if preset in list(Preset) else Preset.PAPER).model_dump(mode="json")
    return {name: value for name, value in knobs.items() if name not in plain or plain[name] != value}


def check_setting_name(name: str, preset: Preset) -> None:
    """Make sure that the name of a setting promises no other preset than it has.

    Raises:
        ConfigError: it is the name of another preset.
    """
    if name.lower() in list(Preset) and name.lower() != preset:
        raise ConfigError(
            f"setting '{name}' is named like a preset and would run as '{preset}'; give it preset '{name.lower()}', or another "
            "name"
        )


def parse_knob(text: str) -> tuple[str, Any]:
    """A knob written as ``name=value``, the value as JSON or, failing that, as text.

    Raises:
        ConfigError: there is no ``=``.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"'{text}' is not a knob; write name=value, for example refine_margin=1.2")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _explain(error: ValidationError) -> str:
    parts = []
    for item in error.errors():
        name = str(item["loc"][0])
        if item["type"] == "extra_forbidden":
            parts.append(f"knob '{name}' is unknown; the knobs are {', '.join(PassConfig.model_fields)}")
        else:
            reason = reason_of(item)
            parts.append(f"knob {name}={item['input']!r}: {reason[0].lower()}{reason[1:]}")
    return "; ".join(parts)
