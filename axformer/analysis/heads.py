"""The report ``heads``: which heads matter, and what a model is without the others (Chiang et al., 2020, section 3).

The importance of a head is the mean over samples of the absolute gradient of the loss by a gate on the head (equation 2; one
score for all uses of a shared head, equation 3), divided by the layer's sum (equation 4, l1). It is the score of ranked
pruning, measured here part by part. Then the heads leave from the least important on, a tenth of all at a time.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from axformer.analysis.advice import Given, advise
from axformer.analysis.study import Guessing, Study, guessing_on, metric_of_model
from axformer.config import RunConfig
from axformer.intake.checkpoint import Checkpoint
from axformer.intake.dataset import DataSet, prepare
from axformer.model.masking import masked
from axformer.plan.blocks import Block, BlockKind
from axformer.plan.plan import Plan
from axformer.scores.importance import Ranked, owners_of, scores_of
from axformer.scores.ranking import Scores, Unit, gone_after, leaving_next, normalised, without_units
from axformer.wire.analysis import Advice, HeadsReport, Kept
from axformer.wire.steps import Counter, StepName

STEP = 0.1
"""Share of all heads that leaves at a time (Michel et al., 2019)."""
ENOUGH = 0.9
"""Relative performance down to which heads are not missed (Chiang et al., section 3.3)."""
_PART = 100
"""Rows whose gradients are taken between two reports."""


@dataclass(frozen=True)
class Heads:
    """The heads of one model by importance."""

    importance: np.ndarray
    """Shape (layers, heads); every row sums to 1."""
    curve: tuple[Kept, ...]
    steps: tuple[frozenset[Unit], ...]
    """The heads that are left at each point of the curve."""
    metric: str
    """Name of the metric of the curve."""
    rows: tuple[int, int]
    """Rows that importance and the curve were measured on."""
    guessing: Guessing
    """What guessing gets on the rows of the curve."""

    @property
    def last_enough(self) -> int:
        """The last step of the curve that is still enough; 0 is the whole model."""
        good = (step for step, kept in enumerate(self.curve) if self._is_enough(kept))
        return max(good, default=0)

    def _is_enough(self, kept: Kept) -> bool:
        return kept.relative is not None and kept.relative >= ENOUGH and self.guessing.is_beaten(kept.metric)


def heads_report(heads: Heads, seconds: float, given: Given) -> HeadsReport:
    """The report on ranked heads.

    Args:
        heads: the heads.
        seconds: what ranking took.
        given: the inputs.
    """
    return HeadsReport(
        importance=tuple(tuple(row) for row in heads.importance.tolist()),
        rows=heads.rows[0],
        curve_rows=heads.rows[1],
        metric=heads.metric,
        guess=heads.guessing.value,
        curve=heads.curve,
        advice=_advice(heads, given),
        seconds=seconds,
    )


def ranked_heads(study: Study, checkpoint: Checkpoint) -> Heads:
    """Rank the heads of a model on a study's rows, and measure it without more and more of them.

    Args:
        study: gives the rows.
        checkpoint: the study's model, or another one, which reads the same rows in its own way.
    """
    gradient = study.part(study.bounds.gradient_rows)
    curve = study.part(study.bounds.curve_rows)
    if checkpoint is not study.checkpoint:
        curve = prepare(curve.rows, checkpoint, study.config)
    steps = round(1 / STEP)
    counter = Counter(StepName.IMPORTANCE, -(-len(gradient.rows) // _PART) + steps, study.surroundings.on_step)
    counter.begin()
    importance = _importance(study, checkpoint, gradient, counter)
    kept, left, metric = list[tuple[float, float]](), [], ""
    for removed, plan, there in _shrinking(checkpoint, importance, steps):
        study.surroundings.check_cancelled()
        metric, value = _metric(checkpoint, plan, curve)
        kept.append((removed, value))
        left.append(there)
        counter.advance()
    whole = kept[0][1]
    points = tuple(
        Kept(removed=removed, metric=value, relative=value / whole if whole > 0 else None) for removed, value in kept
    )
    return Heads(
        importance,
        points,
        tuple(left),
        metric,
        (len(gradient.rows), len(curve.rows)),
        guessing_on(checkpoint, curve, metric),
    )


def _importance(study: Study, checkpoint: Checkpoint, data: DataSet, counter: Counter) -> np.ndarray:
    total, owners = np.zeros((checkpoint.dimensions.layers, checkpoint.dimensions.heads)), owners_of(checkpoint)
    for part in _parts(data, checkpoint, study.config):
        study.surroundings.check_cancelled()
        ranked = Ranked(checkpoint, part.samples, nullcontext, 0.0, study.seed, owners)
        scores = scores_of("taylor", ranked)
        total += len(part.samples) * np.stack(
            [scores[Block(layer, BlockKind.ATTENTION)] for layer in range(len(total))]
        )
        counter.advance()
    shares = normalised(_by_block(total), "l1")
    return np.stack(list(shares.values()))


def _by_block(rows: np.ndarray) -> Scores:
    """The rows of an array of shape (layers, heads) by the attention block that they are of."""
    return {Block(layer, BlockKind.ATTENTION): row for layer, row in enumerate(rows)}


def _parts(data: DataSet, checkpoint: Checkpoint, config: RunConfig) -> Iterator[DataSet]:
    for start in range(0, len(data.rows), _PART):
        yield prepare(data.rows.at(range(start, min(start + _PART, len(data.rows)))), checkpoint, config)


def _shrinking(
    checkpoint: Checkpoint, importance: np.ndarray, steps: int
) -> Iterator[tuple[float, Plan, frozenset[Unit]]]:
    """The share of heads removed, the plan, and the heads left, from none removed to all."""
    plan, owners = Plan.full(checkpoint.dimensions), owners_of(checkpoint)
    scores = _by_block(importance)
    left = {(block, head) for block, row in scores.items() for head in range(len(row))}
    total = len(left)
    yield 0.0, plan, frozenset(left)
    for step in range(1, steps + 1):
        leaving = leaving_next(scores, left, gone_after(step / steps, total) - (total - len(left)), owners=owners)
        left -= set(leaving)
        plan = without_units(plan, leaving)
        yield 1 - len(left) / total, plan, frozenset(left)


def _metric(checkpoint: Checkpoint, plan: Plan, data: DataSet) -> tuple[str, float]:
    with masked(checkpoint.model, checkpoint.architecture, plan):
        return metric_of_model(checkpoint, data)[:2]


def _advice(heads: Heads, given: Given) -> Advice:
    if not heads.guessing.is_beaten(heads.curve[0].metric):
        return advise(
            f"On these rows the whole model is not reliably better than guessing ({heads.guessing.value:.4f}), so they do not "
            "tell which heads matter; a pass decides by the loss of every row."
        )
    removed = heads.curve[heads.last_enough].removed
    if not removed:
        return advise(
            "Without the least important tenth of its heads the model already has less than 90 % of its metric: there is "
            "little to take from heads."
        )
    knobs = ["units=heads", "normalisation=l1", "reestimate=false", f"step={STEP:g}"]
    if given.has_points:
        knobs.append(f"relative={ENOUGH:g}")
        kept = "the last model with 90 % of its metric on the rows that rank; held-out rows (--test) tell what it costs"
    else:
        knobs.append(f"until={max(STEP, removed):.1f}")
        kept = "the model with the lowest loss on rows that do not rank"
    return advise(
        f"Without {100 * removed:.0f} % of its heads, the least important ones, the model still has 90 % of its metric. Ranked "
        f"pruning takes them in steps and keeps {kept}.",
        given.prune("heads", "--method", "rank", set_=knobs, trained=False),
    )
