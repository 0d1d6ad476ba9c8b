"""Sets of tagged sentences, and what can be told of a sentence from its tags."""

from pathlib import Path

from benchmarks.rows import LabelsRow, TagsRow
from benchmarks.sets.parts import Parts, alike, held_out, read_objects, sample

_VALIDATION, _TEST = 500, 1000
KINDS = ("ADJ", "ADV", "AUX", "CCONJ", "NUM", "PROPN")
"""Universal parts of speech that a fifth to three fifths of the sentences have, so that none is easy to guess."""


def chunks(source: Path) -> Parts:
    """CoNLL-2000: the phrases of a sentence."""
    return _tagged(source / "CoNLL-2000-chunk")


def parts_of_speech(source: Path) -> Parts:
    """UD English EWT: the part of speech of each word."""
    return _tagged(source / "UD-EWT-upos")


def kinds_of_words(source: Path) -> Parts:
    """UD English EWT: which of six parts of speech occur in a sentence, a set with several labels a text."""
    parts = parts_of_speech(source)
    return Parts(*([_kinds(row) for row in rows] for rows in (parts.train, parts.validation, parts.test)))


def _tagged(directory: Path) -> Parts:
    train, validation = held_out(_read(directory / "train.jsonl"), _VALIDATION, alike)
    return Parts(train, validation, sample(_read(directory / "test.jsonl"), _TEST))


def _read(path: Path) -> list[TagsRow]:
    return [TagsRow(found["tokens"], found["tags"]) for found in read_objects(path)]


def _kinds(row: TagsRow) -> LabelsRow:
    return LabelsRow(" ".join(row.tokens), [kind for kind in KINDS if kind in row.tags])
