"""The certificate: the cheapest model whose metric fell by less than the allowed points, with 95 % confidence.

The search never sees the confirming rows. The certificate holds for the model as it was measured on them. The models of a path
are tested in its order, in which each is smaller than the one before. An order by figures on the deciding rows (Pareto Testing,
Laufer-Goldshtein and others, 2023) begins too often with a model that fails (``docs/statistics.md``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from axformer.scores.confidence import CONFIDENCE
from axformer.scores.labelling import Labels, PathStanding, standing_of
from axformer.scores.paired_tests import ALPHA, ASYMPTOTIC, PairedTest
from axformer.scores.planning import lost_in_words
from axformer.wire.answer_sheet import AnswerSheet
from axformer.wire.metrics import EMBEDDING, REGRESSION
from axformer.wire.verdicts import Certificate


@dataclass(frozen=True)
class Tested:
    """The models that were tested."""

    indices: tuple[int, ...]
    """In the order of their tests. The last one failed, unless all passed."""
    p_values: tuple[float, ...]
    passed: int
    """How many passed, counted from the first."""

    def cheapest(self, costs: Sequence[float]) -> int | None:
        """Index of the cheapest model that passed, of equal ones the last tested; None if none passed.

        Args:
            costs: the cost of every model by its index.
        """
        return min(reversed(self.indices[: self.passed]), key=lambda index: costs[index], default=None)


def in_sequence(order: Sequence[int], p_value: Callable[[int], float]) -> Tested:
    """Test one model after another, up to the first that fails, on rows that did not determine the order.

    The order is fixed before the confirming rows are seen, so each test may use the whole 5 %; the first failure ends the
    sequence (Maurer, Hothorn and Lehmacher, 1995).
    """
    p_values: list[float] = []
    for index in order:
        p_values.append(p_value(index))
        if not p_values[-1] <= ALPHA:
            return Tested(tuple(order[: len(p_values)]), tuple(p_values), len(p_values) - 1)
    return Tested(tuple(order), tuple(p_values), len(p_values))


def certify(
    confirming: Sequence[np.ndarray],
    test: PairedTest,
    points: float,
    seqs: Sequence[int],
    costs: Sequence[float],
    doubt: str | None = None,
) -> tuple[int, Certificate]:
    """Choose the cheapest model that can be certified, and write its certificate.

    Args:
        confirming: the table of each model on the confirming rows, one row for each different input, the untouched model
            first, then in the order of the tests.
        test: the test against the untouched model.
        points: how far the metric may fall, in hundredths.
        seqs: the trial that led to each model.
        doubt: why these rows can certify nothing, such as that models were made with some of them; then none is tested.

    Returns:
        The index of the model that is kept, and its certificate.
    """
    order = range(1, len(costs) if doubt is None else 1)
    tested = in_sequence(order, lambda index: test.p_value(confirming[index]))
    kept = tested.cheapest(costs) or 0
    reason = doubt or _why_no_more(order, [seqs[index] for index in tested.indices], tested.p_values, tested.passed)
    p_value_of = dict(zip(tested.indices, tested.p_values, strict=True))
    certificate = Certificate(
        points=points,
        level=CONFIDENCE,
        rows=len(confirming[0]),
        metric=test.metric,
        test=test.name,
        asymptotic=test.name in ASYMPTOTIC,
        order="path",
        tested=len(tested.indices),
        passed=tested.passed,
        kept=seqs[kept],
        p_value=p_value_of.get(kept),
        reason=reason,
        sentence="",
    )
    return kept, certificate.model_copy(update={"sentence": sentence_of(certificate)})


def certify_sheet(sheet: AnswerSheet, form: str, labels: Labels) -> Certificate:
    """The certificate of a path whose rows have few labels, or none.

    Args:
        form: whose models are tested.
        labels: those that people gave.
    """
    return certificate_of(sheet, standing_of(sheet, form, labels), labels)


def certificate_of(sheet: AnswerSheet, standing: PathStanding, labels: Labels) -> Certificate:
    """The certificate of a standing; the arguments are as for :func:`certify_sheet`.

    Labels of answers that models of this form did not change are none of its labels: what other forms answer changes nothing.
    """
    kept = standing.kept
    own = {place for model in sheet.models if model.form == standing.form for place in model.answers}
    given = sum(row.label is None and row.id in labels and row.place in own for row in sheet.changed)
    certificate = Certificate(
        points=sheet.points,
        level=CONFIDENCE,
        rows=sheet.rows,
        unlabelled=sheet.unlabelled - given,
        metric=sheet.metric,
        test=sheet.test,
        asymptotic=sheet.test in ASYMPTOTIC,
        order="path",
        tested=standing.tested,
        passed=standing.passed,
        kept=0 if kept is None else kept.seq,
        p_value=standing.p_value,
        reason=_why_not(standing, sheet.task),
        sentence="",
    )
    certificate = certificate.model_copy(update={"sentence": sentence_of(certificate, given)})
    return before_training(certificate) if sheet.before_training else certificate


def next_told(standing: PathStanding, task: str) -> str:
    """What the next certificate of a form takes, in a sentence."""
    if standing.upcoming is None:
        return "Every model of the path is certified."
    model = f"the model with {standing.upcoming.times:.2f} times fewer operations"
    if standing.best_p_value is not None and task == REGRESSION:
        return f"Its labels do not certify {model} (p = {standing.best_p_value:.2g}), and no more are asked for it."
    if standing.best_p_value is not None:
        best = f"were all of them in its favour, p would be {standing.best_p_value:.2g}"
        return f"No labels can certify {model}: {best}, and 0.05 is the most."
    most = len(standing.needed)
    return f"At most {most:,} more label{'' if most == 1 else 's'} decide about {model}."


def _why_not(standing: PathStanding, task: str) -> str | None:
    if standing.upcoming is None:
        return None if standing.tested else "nothing smaller was accepted"
    model = f"the model of trial {standing.upcoming.seq}"
    if task == EMBEDDING:
        return f"{model} finds other nearest texts too often"
    if standing.is_futile and task == REGRESSION:
        return f"{model} may have lost more (p = {standing.best_p_value:.2g}), and no more labels are asked for it"
    if standing.is_futile:
        return f"{model} lost more on these rows than can be certified, whatever further labels say"
    return f"{model} waits for labels: at most {len(standing.needed):,} decide about it"


def sentence_of(certificate: Certificate, given: int = 0) -> str:
    """A certificate in one sentence.

    Args:
        given: how many labels people gave for it.
    """
    if certificate.p_value is None and certificate.unlabelled:
        within = f"{certificate.points:g} point{'' if certificate.points == 1 else 's'}"
        return f"Not certified: only the untouched model is sure to be within {within}, for {certificate.reason}."
    if certificate.p_value is None:
        return f"Not certified: the untouched model is kept, for {certificate.reason}."
    lost = lost_in_words(certificate.points, certificate.metric, certificate.rows)
    without = certificate.unlabelled
    labels = (
        ""
        if not without
        else ", all without labels"
        if without == certificate.rows
        else f", {without:,} of them without labels"
    )
    by = "" if not given else f" by {given:,} label{'' if given == 1 else 's'}"
    return f"Certified{' (asymptotic)' if certificate.asymptotic else ''}{by}: {lost} nobody decided with{labels}."


def before_training(certificate: Certificate) -> Certificate:
    """The certificate of a model that was trained afterwards; the trained model itself was not tested."""
    sentence = f"{certificate.sentence} That was before the training, and says nothing of the trained model."
    return certificate.model_copy(update={"before_training": True, "sentence": sentence})


def _why_no_more(order: Sequence[int], seqs: Sequence[int], p_values: Sequence[float], passed: int) -> str | None:
    if not order:
        return "nothing smaller was accepted"
    if passed == len(order):
        return None
    first = f", the first of {len(order)} that were to be tested," if passed == 0 and len(order) > 1 else ""
    return f"the model of trial {seqs[-1]}{first} may have lost more (p = {p_values[-1]:.2g})"
