"""Compares data sets by their inputs: rows that decide, train or fit weights are no measure of what a model does on new rows.

Texts that repeat by chance are part of any data. So only sets that share a larger part of their rows are told of.
"""

from collections.abc import Mapping

from axformer.data.encoding import Encoded

SHARE = 0.05
"""A share of common rows that is reported. Fewer hardly move a metric: a model that is right on every one of them, and on nine
in ten of the others, gains half a point by them."""


def shared_with(data: Encoded, others: Mapping[str, Encoded]) -> str | None:
    """Why what a set tells does not hold for new rows, as the end of a sentence, or None: it shares rows with others.

    Args:
        data: rows that measure.
        others: what a result is made with, by its name in the sentence, such as "the training rows".
    """
    own = data.keys
    counts = {name: sum(map(set(other.keys).__contains__, own)) for name, other in others.items()}
    told = [f"{count:,} are also among {name}" for name, count in counts.items() if count > SHARE * len(own)]
    return f"of its {len(own):,} rows {' and '.join(told)}; give every row to one of them alone" if told else None
