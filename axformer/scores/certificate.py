"""The certificate: the cheapest model whose metric fell by less than so many points, with 95 % confidence, and why no cheaper.

The search never sees the rows that certify. What they certify is of the model as it was measured.
"""

from collections.abc import Sequence

import numpy as np

from axformer.scores.confidence import CONFIDENCE
from axformer.scores.fixed_sequence import in_sequence, safest_first
from axformer.scores.paired_tests import ALPHA
from axformer.scores.task_tests import paired_test
from axformer.tasks.base import Task
from axformer.wire.report import Certificate


def certify(
    confirming: Sequence[np.ndarray],
    task: Task,
    points: float,
    seqs: Sequence[int],
    costs: Sequence[float],
    *,
    deciding: Sequence[np.ndarray] | None = None,
    passes: int = 1,
) -> tuple[int, Certificate]:
    """Choose the cheapest model that is certified, and say what is certified of it.

    Args:
        confirming: of each model on the confirming rows, the untouched one first.
        task: of the checkpoint.
        points: how far its metric may fall, in hundredths.
        seqs: the trial that made each model, in the same order.
        costs: of each model, in any unit.
        deciding: of each model on the deciding rows, which settle the order; without them it is that of the path.
        passes: how many such choices are made of which one is kept; they share the 5 %.

    Returns:
        The place of the model that is kept, and its certificate.
    """
    test = paired_test(confirming[0], task, points)
    order = _order(deciding, task, points, costs)
    tested = in_sequence(order, lambda place: test.p_value(confirming[place]), ALPHA / passes)
    place = tested.cheapest(costs) or 0
    adjusted = [min(1.0, passes * p_value) for p_value in tested.p_values]
    reason = _why_no_more(order, [seqs[one] for one in tested.places], adjusted, tested.passed)
    kept = dict(zip(tested.places, adjusted, strict=True))
    certificate = Certificate(
        points=points,
        level=CONFIDENCE,
        rows=len(confirming[0]),
        metric=test.metric,
        test=test.name,
        asymptotic=test.name == "bca_bootstrap",
        order="path" if deciding is None else "deciding",
        tested=len(tested.places),
        passed=tested.passed,
        kept=seqs[place],
        p_value=kept.get(place),
        reason=reason,
        sentence="",
    )
    return place, certificate.model_copy(update={"sentence": sentence_of(certificate)})


def sentence_of(certificate: Certificate) -> str:
    """What a certificate says, in one sentence."""
    if certificate.p_value is None:
        return f"Not certified: the untouched model is kept, for {certificate.reason}."
    lost = lost_in_words(certificate.points, certificate.metric, certificate.rows)
    return f"Certified{' (asymptotic)' if certificate.asymptotic else ''}: {lost} nobody decided with."


def lost_in_words(points: float, metric: str, rows: int) -> str:
    """What is certified where a test passes: ``less than 1 point of accuracy lost, 95 %, on 436 rows``."""
    unit = "point" if points == 1 else "points"
    return f"less than {points:g} {unit} of {metric} lost, {100 * CONFIDENCE:g} %, on {rows:,} rows"


def before_training(certificate: Certificate) -> Certificate:
    """The same where the model was trained afterwards, which no row has tested."""
    sentence = f"{certificate.sentence} That was before the training, and says nothing of the trained model."
    return certificate.model_copy(update={"before_training": True, "sentence": sentence})


def _order(deciding: Sequence[np.ndarray] | None, task: Task, points: float, costs: Sequence[float]) -> list[int]:
    """The places of the pruned models in the order of their tests."""
    places = list(range(1, len(costs)))
    if deciding is None or not places:
        return places
    test = paired_test(deciding[0], task, points)
    falls, p_values = ([ask(deciding[place]) for place in places] for ask in (test.fall, test.p_value))
    return [places[one] for one in safest_first(falls, p_values, [costs[place] for place in places])]


def _why_no_more(order: Sequence[int], seqs: Sequence[int], p_values: Sequence[float], passed: int) -> str | None:
    if not order:
        return "nothing smaller was accepted"
    if passed == len(order):
        return None
    first = f", the first of {len(order)} that were to be tested," if passed == 0 and len(order) > 1 else ""
    return f"the model of trial {seqs[-1]}{first} may have lost more (p = {p_values[-1]:.2g})"
