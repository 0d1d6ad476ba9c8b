"""Sets of questions about a text.

SQuAD's training set is not at hand, so its dev set is cut by article, and TyDiQA's English questions help to train.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.rows import QuestionRow
from benchmarks.sets.parts import Parts, by_group, read_objects, sample

_TRAIN, _VALIDATION, _TEST = 1500, 80, 500
_SHARES = (1 / 6, 1 / 6)
"""Of 48 articles 8 to validate with and 8 held out."""
_LONGEST = 120
"""Words of a context. More than half of SQuAD's dev is no longer, and training takes half as long."""

Found = dict[str, Any]


def questions(source: Path) -> Parts:
    """SQuAD 1.1 dev by article, with TyDiQA in the part to train on."""
    validation, test, train = _articles(source)
    more = read_objects(source / "TyDiQA-GoldP-en/train.jsonl")
    return Parts(
        sample(list(_short([*train, *more])), 2 * _TRAIN),
        sample(list(_short(validation)), _VALIDATION),
        sample(list(_short(test)), _TEST),
    )


def _articles(source: Path) -> tuple[list[Found], ...]:
    return by_group(read_objects(source / "SQuAD-v1.1/dev.jsonl"), lambda found: found["title"], _SHARES)


def _short(rows: Iterable[Found]) -> Iterator[QuestionRow]:
    for found in rows:
        if len(found["context"].split()) <= _LONGEST:
            yield QuestionRow(found["question"], found["context"], found["answers"])
