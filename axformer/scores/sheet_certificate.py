"""The certificate of a path by the answers on a sheet and the labels that are known, and what more it takes. No PyTorch."""

from axformer.scores.confidence import CONFIDENCE
from axformer.scores.labelling import Labels, Standing, fewest_labels, standing_of
from axformer.wire.answer_sheet import AnswerSheet
from axformer.wire.verdicts import Certificate


def certify_sheet(sheet: AnswerSheet, form: str, labels: Labels, points: float | None = None) -> Certificate:
    """The certificate of a path whose rows have few labels, or none.

    Args:
        form: whose models are tested.
        labels: those that people gave.
        points: how far the metric may fall; None for what the sheet says.
    """
    return certificate_of(sheet, standing_of(sheet, form, labels, points), labels, points)


def certificate_of(sheet: AnswerSheet, standing: Standing, labels: Labels, points: float | None = None) -> Certificate:
    """The certificate of a standing; the arguments are as for :func:`certify_sheet`."""
    kept = standing.kept
    given = sum(row.label is None and row.id in labels for row in sheet.changed)
    certificate = Certificate(
        points=sheet.points if points is None else points,
        level=CONFIDENCE,
        rows=sheet.rows,
        unlabelled=sheet.unlabelled - given,
        metric=sheet.metric,
        test=sheet.test,
        asymptotic=False,
        order="path",
        tested=standing.tested,
        passed=standing.passed,
        kept=0 if kept is None else kept.seq,
        p_value=standing.p_value,
        reason=_why_not(standing),
        sentence="",
    )
    return certificate.model_copy(update={"sentence": sentence_of(certificate, given)})


def _why_not(standing: Standing) -> str | None:
    if standing.upcoming is None:
        return None if standing.tested else "nothing smaller was accepted"
    model = f"the model of trial {standing.upcoming.seq}"
    if standing.is_futile:
        return f"{model} lost more on these rows than can be certified, whatever further labels say"
    return f"{model} waits for labels: at most {len(standing.needed):,} decide about it"


def next_told(sheet: AnswerSheet, standing: Standing, labels: Labels) -> str:
    """What the next certificate of a form takes, in a sentence."""
    if standing.upcoming is None:
        return "Every model of the path is certified."
    model = f"the model with {standing.upcoming.times:.2f} times fewer operations"
    if standing.best_p_value is not None:
        best = f"were all of them in its favour, p would be {standing.best_p_value:.2g}"
        return f"No labels can certify {model}: {best}, and 0.05 is the most."
    fewest, most = fewest_labels(sheet, standing.upcoming, labels), len(standing.needed)
    count = f"{fewest:,} to {most:,}" if fewest < most else f"{most:,}"
    return f"{count} more label{'' if most == 1 else 's'} decide{'s' if most == 1 else ''} about {model}."


def sentence_of(certificate: Certificate, labels: int = 0) -> str:
    """A certificate in one sentence.

    Args:
        labels: how many people gave for it.
    """
    if certificate.p_value is None:
        return f"Not certified: the untouched model is kept, for {certificate.reason}."
    lost = lost_in_words(certificate.points, certificate.metric, certificate.rows)
    without, asymptotic = certificate.unlabelled, " (asymptotic)" if certificate.asymptotic else ""
    by = "" if not labels else f" by {labels:,} label{'' if labels == 1 else 's'}"
    rest = (
        ""
        if not without
        else ", all without labels"
        if without == certificate.rows
        else f", {without:,} of them without labels"
    )
    return f"Certified{asymptotic}{by}: {lost} nobody decided with{rest}."


def lost_in_words(points: float, metric: str, rows: int) -> str:
    """What a passed test certifies: ``less than 1 point of accuracy lost, 95 %, on 436 rows``."""
    unit = "point" if points == 1 else "points"
    return f"less than {points:g} {unit} of {metric} lost, {100 * CONFIDENCE:g} %, on {rows:,} rows"
