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


def shared_with(data: Encoded, others: Mapping[str, Encoded]) -> str | None:
    """Why what a set tells does not hold for new rows, as the end of a sentence, or None: it shares rows with others.

    Args:
        data: rows that measure.
        others: what a result is made with, by its name in the sentence, such as "the training rows".
    """
    own = _keys(data)
    counts = {name: sum(map(set(_keys(other)).__contains__, own)) for name, other in others.items()}
    told = [f"{count:,} are also among {name}" for name, count in counts.items() if count > SHARE * len(own)]
    return f"of its {len(own):,} rows {' and '.join(told)}; give every row to one of them alone" if told else None


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
