"""The first summary of a run: the validation data, and the untouched model's figures next to guessing."""

from collections.abc import Mapping

from axformer.wire.metrics import first_metric
from axformer.wire.report import Report

_SHOWN = 4
"""Most classes that are named, by frequency."""
_NAME_SHOWN = 40
"""Most characters of a class name that are shown."""


def first_look(
    rows: int,
    shares: Mapping[str, float] | None,
    figures: Mapping[str, float],
    guess: Mapping[str, float],
    labels_as: str | None,
) -> str:
    """Summarize the data and the untouched model in one line.

    For example "872 rows, 51 % positive / 49 % negative, labels read as names of classes; the untouched model: accuracy
    0.9106, loss 0.2534 (guessing: accuracy 0.5092, loss 0.6931)".

    Args:
        rows: number of rows.
        shares: frequency of each class, the most frequent first; None if answers are not classes.
        figures: loss and metrics of the untouched model.
        guess: loss of guessing, and its accuracy if there is one.
        labels_as: how the column of labels was read; None if there was only one way.
    """
    metric = first_metric(figures)
    classes = "" if shares is None else f", {_shares(shares)}"
    model = f"{metric.replace('_', ' ')} {figures[metric]:.4f}, loss {figures['loss']:.4f}"
    bar = "".join(f"{name} {guess[name]:.4f}, " for name in (metric,) if name in guess)
    read = "" if labels_as is None else f", labels read as {labels_as}"
    return f"{rows:,} rows{classes}{read}; the untouched model: {model} (guessing: {bar}loss {guess['loss']:.4f})"


def first_look_of(report: Report) -> str | None:
    """The summary for the report of a finished run; None for reports of earlier versions."""
    data = report.data["validation"]
    if data is None or data.guess is None:
        return None
    return first_look(data.rows, data.shares, report.base.validation, data.guess, data.labels_as)


def _shares(shares: Mapping[str, float]) -> str:
    shown = [f"{share:.0%} {name[:_NAME_SHOWN]}".replace("%", " %", 1) for name, share in list(shares.items())[:_SHOWN]]
    more = len(shares) - len(shown)
    return " / ".join(shown) + (f" and {more} more" if more else "")
