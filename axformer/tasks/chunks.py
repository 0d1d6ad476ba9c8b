"""Chunks in tagged words, counted as in the CoNLL-2000 shared task (its program ``conlleval``).

Tags are ``B-TYPE`` (a chunk begins), ``I-TYPE`` (it continues) and ``O``. As in that program, an ``I`` without a chunk to
continue begins one; a predicted chunk is correct if its type, first and last word are.
"""

from collections.abc import Iterable, Sequence

OUTSIDE = "O"


def is_chunk_scheme(names: Iterable[str]) -> bool:
    """Whether these are names of such tags: each ``O``, ``B-...`` or ``I-...``, and not ``O`` alone."""
    marked = [name for name in names if name != OUTSIDE]
    return bool(marked) and all(name.startswith(("B-", "I-")) for name in marked)


def chunks_of(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """The chunks of one sentence: type, first word, last word."""
    found = set()
    kind, start = "", -1
    for place, tag in enumerate([*tags, OUTSIDE]):
        mark, _, name = tag.partition("-")
        if start >= 0 and (mark != "I" or name != kind):
            found.add((kind, start, place - 1))
            start = -1
        if start < 0 and tag != OUTSIDE:
            kind, start = name, place
    return found


def count_chunks(expected: Sequence[str], predicted: Sequence[str]) -> tuple[int, int, int]:
    """The numbers of correct, predicted and expected chunks of a sentence."""
    truly, claimed = chunks_of(expected), chunks_of(predicted)
    return len(truly & claimed), len(claimed), len(truly)
