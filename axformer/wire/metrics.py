"""What can be told of a metric by its name alone, for those who see figures without their task."""

from collections.abc import Iterable

LOSS = "loss"
LOWER_IS_BETTER = frozenset(("perplexity", LOSS))
"""Figures that rise when a model gets worse. They are no shares, so their changes are not given in points."""
_OF_CHUNKS = frozenset(("precision", "recall", "f1"))
"""The figures of a tagger whose tags are chunks. Its F1 comes first: a model that answers O everywhere has most words right."""
EMBEDDING, REGRESSION, RERANKING = "embedding", "regression", "reranking"
"""The names of tasks. To the changed answers of an embedder nobody gives labels."""
SAME_NEAREST = "same_nearest"
"""Of an embedder: the share of texts that find the same text nearest as with the untouched model."""
PEARSON = "pearson"
"""Of numbers; on rows without labels that of the answers with those of before, and no share of answers."""
OLD_INDEX = "old_index_ndcg_10"
"""Of an embedder's pairs: what its queries find among the untouched model's vectors."""
_NAMES = {"ndcg_10": "nDCG@10", "recall_10": "recall@10", "mrr_10": "MRR@10", OLD_INDEX: "nDCG@10 over the old index"}
_FIRST = ("perplexity", "exact_match", "accuracy", PEARSON, SAME_NEAREST)
"""The first metric of each other task; of several that are there, the first one here."""


def first_metric(figures: Iterable[str]) -> str:
    """The name of the task's first metric, whatever order the figures come in; ``loss`` if there is none.

    A database keeps no order of figures, so the first one that it gives may be any.
    """
    names = [name for name in figures if name != LOSS]
    if set(names) >= _OF_CHUNKS:
        return "f1"
    return next((name for name in _FIRST if name in names), names[0] if names else LOSS)


def judging_metric(figures: Iterable[str], data: str) -> str:
    """The metric by which rows tell what a smaller model costs: the first one; of an embedder's pairs that are held out or
    confirm, how well it finds what belongs together, which says more of its use than whether the same text is nearest."""
    names = list(figures)
    first = first_metric(names)
    if first != SAME_NEAREST or data not in ("test", "confirming"):
        return first
    return next((name for name in ("ndcg_10", "spearman") if name in names), first)


def in_words(name: str) -> str:
    """An identifier for people: ``exact match``, and of metrics that have a name of their own, that one."""
    return _NAMES.get(name, name.replace("_", " "))
