"""Compares data sets by their inputs: rows that decide, train or fit weights are no measure of what a model does on new rows.

Texts that repeat by chance are part of any data. So only sets that share a larger part of their rows are told of.
"""

import hashlib
from array import array
from collections.abc import Mapping
from typing import Any

from axformer.data.encoding import Encoded

SHARE = 0.05
"""A share of common rows that is reported. Fewer hardly move a metric: a model that is right on every one of them, and on nine
in ten of the others, gains half a point by them."""
_MEASURES = {"test": ("train", "calibration", "deciding"), "confirming": ("train", "calibration", "deciding")}
"""The sets that tell what a result is worth, and those that it is made with."""
_PARTS = {"train": "the training data", "calibration": "the calibration data", "deciding": "the rows that decide"}


def doubts_about(sets: Mapping[str, Encoded]) -> dict[str, str]:
    """Why what some sets tell does not hold for new rows, as ends of sentences by the set: it shares rows with another.

    Args:
        sets: any of ``test``, ``confirming``, ``deciding``, ``train`` and ``calibration``.
    """
    keys = {name: _keys(data) for name, data in sets.items()}
    doubts = {}
    for name, others in _MEASURES.items():
        own = keys.get(name, [])
        counts = {other: sum(key in known for key in own) for other in others if (known := set(keys.get(other, [])))}
        told = [f"{count:,} are in {_PARTS[other]} too" for other, count in counts.items() if count > SHARE * len(own)]
        if told:
            doubts[name] = f"of its {len(own):,} rows {' and '.join(told)}; give rows that are in one of them alone"
    return doubts


def _keys(data: Encoded) -> list[bytes]:
    """A digest of the input of each sample, over all of its model rows."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(data.samples)]
    for sample, ids in zip(data.sample_of_row, data.features["input_ids"], strict=True):
        digests[sample].update(_bytes(ids))
    return [digest.digest() for digest in digests]


def _bytes(ids: list[Any]) -> bytes:
    """Token ids of a model row, or of each of its choices, with the length before them."""
    if ids and isinstance(ids[0], list):
        return b"".join(map(_bytes, ids))
    return array("q", [len(ids), *ids]).tobytes()
