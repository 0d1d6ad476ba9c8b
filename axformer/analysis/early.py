"""Early exit: each text is answered by the probe on the lowest hidden state that is sure enough, else by the model itself
(after Xin et al., DeeBERT, 2020). Easy texts then cost less, with all weights kept.

How sure is sure enough is tested without labels, on rows that no probe learned from: that at most so many answers differ from
the model's own. Thresholds are tested from the strictest on, and the last before a failure counts, so that the level of the
test holds for the choice too.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import softmax
from scipy.stats import binom

from axformer.scores.confidence import CONFIDENCE
from axformer.wire.analysis import EarlyExit

MAY_DIFFER = (0.01, 0.02, 0.05)
"""The shares of answers that may differ."""
THRESHOLDS = (0.999, 0.998, 0.995, 0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
"""The probabilities of an answer at which a text leaves, the strictest first."""


def early_exits(scores: Sequence[np.ndarray], own: np.ndarray, expected: np.ndarray) -> tuple[EarlyExit, ...]:
    """The loosest threshold for each share of answers that may differ; none where no threshold passes.

    Args:
        scores: of the probe on each hidden state below the highest, the embeddings first, each of shape (rows, classes).
        own: the model's answers, shape (rows,).
        expected: the right answers, shape (rows,).
    """
    sure = np.stack([softmax(one, axis=1).max(axis=1) for one in scores])
    answers = np.stack([one.argmax(axis=1) for one in scores])
    found = []
    for share in MAY_DIFFER:
        passed = None
        for threshold in THRESHOLDS:
            exits = exits_at(threshold, sure)
            given = np.vstack([answers, own])[exits, np.arange(len(own))]
            changed = int((given != own).sum())
            if binom.cdf(changed, len(own), share) > 1 - CONFIDENCE:
                break
            passed = EarlyExit(
                may_differ=share,
                threshold=threshold,
                changed=changed,
                rows=len(own),
                layers=float(exits.mean()),
                right=float((given == expected).mean()),
            )
        if passed is not None:
            found.append(passed)
    return tuple(found)


def exits_at(threshold: float, sure: np.ndarray) -> np.ndarray:
    """The lowest state that is sure of each row, and the number of states where none is.

    Args:
        sure: the probability of each answer, shape (states, rows).
    """
    is_sure = sure >= threshold
    return np.where(is_sure.any(axis=0), is_sure.argmax(axis=0), len(sure))
