"""Suggestions for words that do not exist: the known one that is most like it."""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

_LONGEST = 64
"""Characters; nobody mistypes a longer word, and comparing one takes long."""
_SHORTEST = 3
"""Characters of a part that is told from an accident."""
_LIKE = 0.65
"""Least likeness of words, from 0 to 1: with less, ``best`` would be like ``robust``."""
_CHOICES = ("enum", "literal_error")
"""Pydantic's errors for a value that is none of the given words."""


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that is most like another one; None if none is.

    Capitals, dashes and underscores do not count, and a part of a word, such as ``top_k`` of ``attention_top_k``, is like it.

    Args:
        word: what was written; anything but a string is like no word.
        known: the words that exist.
    """
    if not isinstance(word, str) or not 0 < len(word) <= _LONGEST:
        return None
    plain = {_plain(name): name for name in known}
    written = _plain(word)
    holding = [name for name in plain if written in name and len(written) >= _SHORTEST]
    close = get_close_matches(written, holding, n=1, cutoff=0) or get_close_matches(written, plain, n=1, cutoff=_LIKE)
    return plain[close[0]] if close else None


def suggestion(word: object, known: Iterable[str]) -> str:
    """The words ``did you mean X?`` for the nearest known word; empty if there is none."""
    near = nearest(word, known)
    return "" if near is None else f"did you mean {near}?"


def or_all(word: object, known: Collection[str], list_: str = "there are") -> str:
    """A suggestion, or where nothing is near, all known words after ``list_``."""
    return suggestion(word, known) or f"{list_} {', '.join(known)}"


def choice_suggestion(refused: Mapping[str, Any]) -> str:
    """A suggestion for a value that pydantic refuses since it is none of some words; empty for other errors.

    Args:
        refused: an item of ``ValidationError.errors()``.
    """
    if refused["type"] not in _CHOICES:
        return ""
    return suggestion(refused["input"], re.findall(r"'([^']*)'", refused["ctx"]["expected"]))


def _plain(word: str) -> str:
    return re.sub("[-_ ]", "", word).lower()
