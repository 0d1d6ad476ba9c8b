"""The three parts of a data set, and how they are read and drawn.

The public sets lie in one directory: JSON Lines, the large ones gzipped.
"""

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.rows import Row, write_rows

SEED = 0
SHARE = 0.15
"""Of the training rows, with every class in balance: what the paper validates with (section IV)."""

RowT = TypeVar("RowT")


@dataclass(frozen=True)
class Parts:
    """What a model learns from, what a pass decides on, and what neither sees."""

    train: Sequence[Any]
    validation: Sequence[Any]
    test: Sequence[Any]

    def write(self, directory: Path) -> None:
        """Write each part as JSON Lines."""
        for name in ("train", "validation", "test"):
            write_rows(directory / f"{name}.jsonl", getattr(self, name))


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


def alike(row: Any) -> Hashable:  # noqa: ARG001 - every row is of the same kind
    """The kind of rows that have no classes to keep in balance."""
    return None


def sample(rows: Sequence[RowT], size: int, kind: Callable[[RowT], Hashable] = alike) -> list[RowT]:
    """About ``size`` rows in their old order, or all if there are no more; every kind gives the same share."""
    return list(rows) if len(rows) <= size else split(rows, size / len(rows), SEED, kind)[1]


def held_out(
    rows: Sequence[RowT], size: int, kind: Callable[[RowT], Hashable] = label_of
) -> tuple[list[RowT], list[RowT]]:
    """Rows to train on, and at most ``size`` of the 15 % that are kept from training."""
    train, validation = split(rows, SHARE, SEED, kind)
    return train, sample(validation, size, kind)


def by_group(
    rows: Sequence[RowT], group: Callable[[RowT], Hashable], shares: Sequence[float]
) -> tuple[list[RowT], ...]:
    """Cut rows so that a group, such as an article, falls whole into one part.

    Args:
        rows: what is cut.
        group: the group of a row.
        shares: share of the groups that each part but the last gets; the last gets what is left.

    Returns:
        One part for each share and the last, each in the rows' order.
    """
    groups = list(dict.fromkeys(group(row) for row in rows))
    random.Random(SEED).shuffle(groups)  # noqa: S311 - an experiment's seed, not a secret
    part_of: dict[Hashable, int] = {}
    start = 0
    for part, share in enumerate([*shares, 1.0]):
        stop = min(len(groups), start + round(share * len(groups)))
        part_of |= dict.fromkeys(groups[start:stop], part)
        start = stop
    return tuple([row for row in rows if part_of[group(row)] == part] for part in range(len(shares) + 1))


def read_objects(path: Path) -> list[dict[str, Any]]:
    """All objects of ``path``, or of the same name with ``.gz``."""
    packed = path.with_name(f"{path.name}.gz")
    content = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    return [json.loads(line) for line in content.decode().split("\n") if line]


def read_labelled(path: Path) -> list[Row]:
    """Labelled texts, or pairs of texts."""
    return [Row(**found) for found in read_objects(path)]
