"""What a result is judged to be, in ``report.json``: whether it is better, reaches its target, and is certified."""

from enum import StrEnum
from typing import Literal

from axformer.wire.base import Schema
from axformer.wire.bounds import Text, Word


class McNemarTest(Schema):
    """The samples whose answers became right or wrong, copies of an input counted once, and McNemar's exact two-sided test."""

    gained: int
    """Wrong before, right after."""
    lost: int
    """Right before, wrong after."""
    p_value: float


class FindingVerdict(StrEnum):
    """Whether the finished model is better, judged on data that did not decide."""

    GAIN = "gain"
    NO_RELIABLE_GAIN = "no_reliable_gain"
    WITHIN_LIMIT = "within_limit"
    AT_A_COST = "at_a_cost"
    LOSS = "loss"
    NOT_MEASURED = "not_measured"


class Finding(Schema):
    """Whether the finished model is better, in one line."""

    data: Literal["test", "confirming"] | None
    """The data it was measured on: held-out data, or else the rows that confirmed; null if there were none."""
    verdict: FindingVerdict
    """`loss` where the 95 % interval of the loss's change lies above 0, or more answers became wrong than right (McNemar's p at
    most 0.05), or the first metric, where it is another than the share of right answers, became worse by its whole interval;
    but `within_limit` where a smaller model was asked for within some points of the metric, and the metric fell by no more than
    these, and `at_a_cost` where a size or a speed was asked for whatever it costs. Else `gain` where the loss's interval lies
    below 0, `no_reliable_gain` where it holds 0 or no more than rounding, `not_measured` without such data."""
    sentence: Text
    """The same for people, with figures."""
    advice: Text
    """Advice that follows the sentence; may be empty."""
    answers: Text
    """How many answers changed between right and wrong, and McNemar's p-value, where a task knows such a thing; and how far the
    first metric fell, where it did so reliably and is another than the share of right answers."""


class TargetOutcome(Schema):
    """Whether the finished model is as small or fast as it was to be."""

    reached: bool
    usable: bool | None = None
    """Of a reached target, whether the model is shown to have lost no more than was allowed (true), or lost more, is no better
    than guessing or answers fewer classes (false); null where neither is shown, and in reports of earlier versions."""
    sentence: Text
    """The same for people, with figures."""


class Standing(StrEnum):
    """What the rows show of a form."""

    SHOWN = "shown"
    """It lost no more than was allowed."""
    NOT_SHOWN = "not_shown"
    """It may have lost more."""
    WORSE = "worse"
    """It lost more, by its whole interval."""
    GUESSING = "guessing"
    """It is right no more often than the most frequent answer."""
    FEWER_CLASSES = "fewer_classes"
    """It answers fewer classes than the untouched model."""
    UNKNOWN = "unknown"
    """No labels say anything."""


class Judgement(Schema):
    """What the rows show of a form."""

    standing: Standing
    is_certified: bool = False
    """Whether its own test certifies what was allowed."""
    classes: Word = ""
    """How many classes it answers, and of how many, where these are fewer: `1 of 3`."""
    more_rows: int | None = None
    """About how many more rows would show it, if it goes on as on these; null if that is not known or no number would."""


class Certificate(Schema):
    """The certificate of the kept model: a bound on the fall of its metric, from rows that did not decide."""

    points: float
    """The metric fell by less than this many hundredths (`within_points`)."""
    level: float
    """Confidence: at most 1 minus this share of data sets certify a model that fell further."""
    rows: int
    """Number of confirming rows; copies of an input are counted once."""
    unlabelled: int = 0
    """Those of them that have no label: where their answers changed, they are counted as lost."""
    metric: Word
    """The metric that is certified."""
    test: Literal["exact", "betting", "worst_case", "sampled", "delta_method", "bca_bootstrap"]
    """`exact`: the exact unconditional test of right and wrong answers. `betting`: the paired betting test of differences of
    any size. For metrics that are no means over rows, `worst_case` where rows have no labels, `delta_method` for Spearman's
    correlation of an embedder, else `bca_bootstrap`. `sampled`: of the mean squared error, by labels that are drawn."""
    asymptotic: bool
    """Whether the level holds only approximately, on many rows, instead of exactly."""
    order: Literal["path", "deciding"]
    """The order of the tests, fixed beforehand: along the path. Reports of earlier versions may say `deciding`, which is safest
    first by the deciding rows."""
    tested: int
    """Models that were tested; the first that fails ends it."""
    passed: int
    """Models that passed; the cheapest of them is kept."""
    kept: int
    """The trial whose acceptance led to the kept model; 0 is the untouched one."""
    p_value: float | None
    """Of the model that is kept; null where it is the untouched one. A search of orders of an earlier version counted it six
    times."""
    reason: Text | None
    """Why no smaller model was kept; null if every model passed."""
    before_training: bool = False
    """Whether the model was trained afterwards; the certificate is about the model before."""
    sentence: Text
    """The certificate in one sentence."""


class JudgedRows(Schema):
    """What a form is judged by before it is advised."""

    data: Literal["test", "confirming", "validation", "unlabelled"] | None
    """The rows: held-out data, else those that confirmed, else, with a method that looks at no label, the validation data, else
    the unlabelled rows that confirmed, on which every changed answer counts as lost; null if there are none whose labels did
    not decide."""
    rows: int
    """How many different inputs there are."""
    is_share: bool = False
    """Whether the first metric is the share of right answers, so that the exact test applies."""
    points: float
    """How many points (hundredths) of the first metric a form may cost: those of the certificate, or `at_most`. Percent of a
    metric that is no share."""
    guess: float | None = None
    """The share that the most frequent answer gets right; null where the first metric is not that share."""
