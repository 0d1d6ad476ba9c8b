"""Cut a class-balanced validation set off a training set, as the paper does (section IV: 15 % of the training data)."""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

SHARE = 0.15

RowT = TypeVar("RowT")


def label_of(row: Any) -> Hashable:
    """The class of a row."""
    label: Hashable = row.label
    return label


def split(
    rows: Sequence[RowT], share: float, seed: int, kind: Callable[[RowT], Hashable] = label_of
) -> tuple[list[RowT], list[RowT]]:
    """The rows to train on and those to validate with, each in their old order; every kind gives the same share."""
    places = defaultdict(list)
    for place, row in enumerate(rows):
        places[kind(row)].append(place)
    chance = random.Random(seed)  # noqa: S311 - an experiment's seed, not a secret
    held = {place for group in places.values() for place in chance.sample(group, round(share * len(group)))}
    train = [row for place, row in enumerate(rows) if place not in held]
    return train, [rows[place] for place in sorted(held)]
