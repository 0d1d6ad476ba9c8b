"""Schemes of tags for chunks: how the first, inner and last words of a chunk are marked, and how the marks are written.

Chunks are counted as in the CoNLL-2000 shared task (its program ``conlleval``): tags are ``B-TYPE`` (a chunk begins),
``I-TYPE`` (it continues) and ``O``, and an ``I`` without a chunk to continue begins one. A predicted chunk is correct if its
type, first and last word are.

BIO (also called IOB2) marks the first word of each chunk with B and the others with I. IOB1 has B only where a chunk follows
another of its kind. BIOES (IOBES) and BILOU also mark last words (E, L) and chunks of one word (S, U). Bare names mark nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from axformer.data.written import seen

OUTSIDE = "O"
_NOTHING = (OUTSIDE, "")
_CALLED = {"L": "E", "U": "S", "W": "S", "M": "I"}
"""Letters of other schemes for the same mark."""
_INSTEAD = {"S": ("S", "B", "I", ""), "B": ("B", "I", ""), "E": ("E", "I", ""), "I": ("I", ""), OUTSIDE: (OUTSIDE,)}
"""What says a mark, or as much of it as a scheme has."""
_FIRST, _LAST = re.compile(r"([BIESLUWM])(?:[-_.:](.+))?", re.IGNORECASE), re.compile(r"(.+)[-_.:]([BIESLUWM])", re.I)

_Part = tuple[str, str]
"""A mark, which is empty for a bare name, and the kind of a chunk."""


@dataclass(frozen=True)
class TagScheme:
    """The tags of a model or of data, taken apart."""

    parts: dict[str, _Part]
    """Mark and kind of each name."""

    @classmethod
    def of(cls, names: Iterable[str]) -> "TagScheme":
        """Take names apart: they all begin or all end with a mark, or are bare."""
        given = dict.fromkeys(names)
        inside = [name for name in given if not _is_outside(name)]
        pairs = [("", name) for name in inside]
        for pattern, mark, kind in ((_LAST, 2, 1), (_FIRST, 1, 2)):
            matches = [match for match in map(pattern.fullmatch, inside) if match]
            if len(matches) == len(inside):
                pairs = [(match[mark].upper(), match[kind] or "") for match in matches]
        parts = {name: (mark, seen(kind).casefold()) for name, (mark, kind) in zip(inside, pairs, strict=True)}
        return cls(parts | {name: _NOTHING for name in given if _is_outside(name)})

    @property
    def marks(self) -> set[str]:
        """The marks as B, I, E and S; none for ``O``."""
        return {_CALLED.get(mark, mark) for mark, _ in self.parts.values()} - {OUTSIDE}

    @property
    def has_ends(self) -> bool:
        """Whether last words are marked."""
        return bool(self.marks & {"E", "S"})

    @property
    def name(self) -> str:
        """What people call the scheme."""
        if self.has_ends:
            return "BILOU" if {"L", "U"} & {mark for mark, _ in self.parts.values()} else "BIOES"
        return "BIO" if "B" in self.marks else "IO" if "I" in self.marks else "bare names"

    def part(self, tag: str) -> _Part:
        """The mark of a tag, as B, I, E or S, and its kind."""
        mark, kind = self.parts[tag]
        return _CALLED.get(mark, mark), kind

    def marked(self, tags: Sequence[str]) -> list[_Part]:
        """The same sentence in BIOES."""
        parts = list(map(self.part, tags))
        begins = [_begins(before, part) for before, part in zip([_NOTHING, *parts], parts, strict=False)]
        ends = [part == _NOTHING or begin for begin, part in zip(begins[1:], parts[1:], strict=True)] + [True]
        marks = {(True, True): "S", (True, False): "B", (False, True): "E", (False, False): "I"}
        return [
            part if part == _NOTHING else (marks[begin, end], part[1])
            for part, begin, end in zip(parts, begins, ends, strict=True)
        ]


def in_scheme_of(names: Sequence[str], sentences: Sequence[Sequence[str]]) -> tuple[list[list[str]], str] | None:
    """Tags in the scheme of a model's names, and what is said of that; None if there is nothing to convert.

    Raises:
        ValueError: the schemes differ, and the tags do not say what the model's tags say; the message continues "tags ".
    """
    model = TagScheme.of(names)
    known = {_folded(name): part for name, part in model.parts.items()}
    tags = dict.fromkeys(tag for sentence in sentences for tag in sentence)
    is_known = all(_folded(tag) in known for tag in tags)
    given = TagScheme({tag: known[_folded(tag)] for tag in tags}) if is_known else TagScheme.of(tags)
    kinds = {kind for _, kind in given.parts.values()} - {kind for _, kind in model.parts.values()}
    if not given.marks or kinds or (is_known and given.has_ends == model.has_ends) or {""} >= given.marks | model.marks:
        return None
    is_same = given.has_ends == model.has_ends and given.marks <= model.marks
    told = "are written otherwise than the model's" if is_same else f"are {given.name} and the model's {model.name}"
    marked = [list(map(given.part, sentence)) for sentence in sentences]
    if given.marks == {""} or (model.has_ends and not given.has_ends):
        marked = list(map(given.marked, sentences))
        if "B" in model.marks and "B" not in given.marks and any(mark in "IE" for one in marked for mark, _ in one):
            raise ValueError(
                f"{told}, and only B says where a chunk follows another of its kind; mark each chunk's first word"
            )
    by_part = {model.part(name): name for name in names}
    return [
        [_name(by_part, mark, kind) for mark, kind in sentence] for sentence in marked
    ], f"{told}, and are converted"


def looks_like_iob1(names: Sequence[str], sentences: Sequence[Sequence[str | None]]) -> bool:
    """Whether tags of a model that has B and I begin chunks with I, and with B only where they follow one of their kind.

    Nothing is said of a word after one without a tag, which is None.
    """
    scheme = TagScheme.of(names)
    if scheme.marks != {"B", "I"}:
        return False
    parts = [[_NOTHING, *(tag and scheme.part(tag) for tag in sentence)] for sentence in sentences]
    steps = [
        (part[0], _begins(before, ("I", part[1]))) for one in parts for before, part in pairwise(one) if before and part
    ]
    return ("I", True) in steps and ("B", True) not in steps


def _name(by_part: dict[_Part, str], mark: str, kind: str) -> str:
    found = next(
        (by_part[instead, kind] for instead in _INSTEAD.get(mark, (mark,)) if (instead, kind) in by_part), None
    )
    if found is None:
        raise ValueError(f"have chunks of kind '{kind}', and no tag of the model marks them with {mark}")
    return found


def _begins(before: _Part, part: _Part) -> bool:
    """Whether a word inside of a chunk is its first."""
    return part[0] in ("B", "S") or before[0] in (OUTSIDE, "E", "S") or before[1] != part[1]


def _is_outside(name: str) -> bool:
    return seen(name).upper() == OUTSIDE


def _folded(name: str) -> str:
    return seen(name).casefold()


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
