"""Cut a class-balanced validation set off a training set, as the paper does (section IV: 15 % of the training data).

    python -m benchmarks.split train.jsonl --output DIR

writes ``DIR/train.jsonl`` and ``DIR/validation.jsonl``.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from benchmarks.rows import Row, read_rows, write_rows

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


def main(
    source: Annotated[Path, typer.Argument(help="JSON Lines with class names as labels")],
    output: Annotated[Path, typer.Option(help="directory for the two parts")],
    share: float = SHARE,
    seed: int = 0,
) -> None:
    """Split a training set."""
    train, validation = split(read_rows(source, Row), share, seed)
    write_rows(output / "train.jsonl", train)
    write_rows(output / "validation.jsonl", validation)
    print(f"{len(train)} rows to train on, {len(validation)} to validate with")


if __name__ == "__main__":
    typer.run(main)
