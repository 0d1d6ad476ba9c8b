"""Sets of tagged sentences."""

from pathlib import Path

from benchmarks.rows import TagsRow
from benchmarks.sets.parts import Parts, alike, held_out, read_objects, sample

_VALIDATION, _TEST = 500, 1000


def chunks(source: Path) -> Parts:
    """CoNLL-2000: the phrases of a sentence."""
    return _tagged(source / "CoNLL-2000-chunk")


def parts_of_speech(source: Path) -> Parts:
    """UD English EWT: the part of speech of each word."""
    return _tagged(source / "UD-EWT-upos")


def _tagged(directory: Path) -> Parts:
    train, validation = held_out(_read(directory / "train.jsonl"), _VALIDATION, alike)
    return Parts(train, validation, sample(_read(directory / "test.jsonl"), _TEST))


def _read(path: Path) -> list[TagsRow]:
    return [TagsRow(found["tokens"], found["tags"]) for found in read_objects(path)]
