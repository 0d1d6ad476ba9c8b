"""Sets of questions about a text: find the answer, or choose the sentence that holds it.

SQuAD's training set is not at hand, so its dev set is cut by article, and TyDiQA's English questions help to train.
"""

import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.rows import ChoiceRow, QuestionRow
from benchmarks.sets.parts import SEED, Parts, by_group, read_objects, sample

_TRAIN, _VALIDATION, _TEST = 1500, 80, 500
_SHARES = (1 / 6, 1 / 6)
"""Of 48 articles 8 to validate with and 8 held out."""
_LONGEST = 120
"""Words of a context. More than half of SQuAD's dev is no longer, and training takes half as long."""
_CHOICES = 4
_LONGEST_CHOICE = 40
"""Words of a sentence to choose; nine of ten have fewer."""
_BETWEEN_SENTENCES = re.compile(r'(?<=[.!?])\s+(?=[A-Z0-9"“(])')

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


def sentences(source: Path) -> Parts:
    """Which of four sentences of the same context holds the answer, from SQuAD 1.1 dev by article."""
    chance = random.Random(SEED)  # noqa: S311 - an experiment's seed, not a secret
    validation, test, train = ([row for found in part for row in choice(found, chance)] for part in _articles(source))
    return Parts(sample(train, _TRAIN), sample(validation, _VALIDATION), sample(test, _TEST))


def choice(found: Found, chance: random.Random) -> Iterator[ChoiceRow]:
    """The question with four sentences in random order, if the context has four and one of them holds the answer."""
    start, answer = found["answers"]["answer_start"][0], found["answers"]["text"][0]
    spans = [
        span
        for span in sentence_spans(found["context"])
        if len(found["context"][slice(*span)].split()) <= _LONGEST_CHOICE
    ]
    right = [span for span in spans if span[0] <= start and start + len(answer) <= span[1]]
    others = [span for span in spans if answer not in found["context"][slice(*span)]]
    if right and len(others) >= _CHOICES - 1:
        chosen = [*right, *chance.sample(others, _CHOICES - 1)]
        chance.shuffle(chosen)
        texts = [found["context"][low:high] for low, high in chosen]
        yield ChoiceRow(found["question"], texts, chosen.index(right[0]))


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends, in characters; a full stop before a capital or a number ends one."""
    start = 0
    for gap in _BETWEEN_SENTENCES.finditer(text):
        yield start, gap.start()
        start = gap.end()
    yield start, len(text)


def _articles(source: Path) -> tuple[list[Found], ...]:
    return by_group(read_objects(source / "SQuAD-v1.1/dev.jsonl"), lambda found: found["title"], _SHARES)


def _short(rows: Iterable[Found]) -> Iterator[QuestionRow]:
    for found in rows:
        if len(found["context"].split()) <= _LONGEST:
            yield QuestionRow(found["question"], found["context"], found["answers"])
