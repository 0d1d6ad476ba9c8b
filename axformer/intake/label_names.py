"""The names of a model's classes, from two maps in its config that should agree.

``id2label`` and ``label2id`` are often written by hand: with numbers as texts, with one of them left at its default, half
filled, or inverted. Reading labels by the wrong map would prune for wrong answers without an error. A name therefore counts
only if the maps and ``num_labels`` agree; a contradiction is an error.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from axformer.intake.limits import LABELS

ID2LABEL, LABEL2ID, COUNT = "id2label", "label2id", "num_labels"
_SHOWN = 10
"""Entries of a map that a message shows."""
_SHOWN_LETTERS = 300
"""Characters of a map that a message shows."""

_Names = Mapping[int, set[str]]
"""The names that a map gives each class, by index."""


def label_names(raw: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of the classes by index; ``LABEL_0`` and so on for unnamed classes.

    Args:
        raw: the keys of a ``config.json``.

    Returns:
        Distinct names; None if the config does not mention classes, which transformers reads as two classes.

    Raises:
        ValueError: the maps or ``num_labels`` contradict each other, or a class has no name or shares one.
    """
    maps = [_names_in(key, raw.get(key)) for key in (ID2LABEL, LABEL2ID)]
    count = 0 if raw.get(COUNT) is None else _index(COUNT, raw[COUNT])
    if count > LABELS:  # names are made for so many
        raise ValueError(f"{COUNT}={count} is more than the {LABELS} that is taken")
    by_index, by_name = map(_without_defaults, maps)
    if not by_index and not by_name:
        return tuple(map(_default, range(count or max(map(len, maps))))) or None
    names = {index: _agreed(index, by_index, by_name, raw) for called in maps for index in called}
    _check_shared((names, by_index, by_name), raw)
    unnamed = next(index for index in range(len(names) + 1) if index not in names)
    if unnamed < max(count, max(names) + 1):
        raise ValueError(f"class {unnamed} has no name ({_shown(raw)})")
    if count and len(names) > count:
        raise ValueError(f"{len(names)} classes have names, and {COUNT} is {count} ({_shown(raw)})")
    return tuple(names[index] for index in range(len(names)))


def label_maps(names: tuple[str, ...]) -> dict[str, Any]:
    """Both maps of classes with these names, each the inverse of the other."""
    return {ID2LABEL: dict(enumerate(names)), LABEL2ID: {name: index for index, name in enumerate(names)}}


def _agreed(index: int, by_index: _Names, by_name: _Names, raw: Mapping[str, Any]) -> str:
    """The name of a class. If it has several, the one in ``id2label`` counts, provided that ``label2id`` has it too."""
    first, second = by_index.get(index, set()), by_name.get(index, set())
    agreed = first & second if first and second else first | second
    if len(first) > 1 or len(agreed) > 1 or ((first or second) and not agreed):
        shown = " and ".join(repr(name) for name in sorted(first | second))
        raise ValueError(f"class {index} is called {shown} ({_shown(raw)})")
    return next(iter(agreed), _default(index))


def _check_shared(maps: Iterable[Mapping[int, str | set[str]]], raw: Mapping[str, Any]) -> None:
    owners: dict[str, int] = {}
    for index, called in chain.from_iterable(names.items() for names in maps):
        for name in [called] if isinstance(called, str) else called:
            if owners.setdefault(name, index) != index:
                raise ValueError(f"classes {owners[name]} and {index} are both called {name!r} ({_shown(raw)})")


def _without_defaults(names: _Names) -> _Names:
    real = {index: called - {_default(index)} for index, called in names.items()}
    return {index: called for index, called in real.items() if called}


def _names_in(key: str, value: Any) -> _Names:
    """The names that a map gives each class, in either direction; null entries are ignored."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} is not an object: {_short(value)}")
    pairs = [(left, right) for left, right in value.items() if right is not None]
    if key == LABEL2ID:
        pairs = [(right, left) for left, right in pairs]
    if pairs and not all(_is_index(left) for left, _ in pairs) and all(_is_index(right) for _, right in pairs):
        pairs = [(right, left) for left, right in pairs]
    names: defaultdict[int, set[str]] = defaultdict(set)
    for index, name in pairs:
        names[_index(key, index)].add(name if isinstance(name, str) else json.dumps(name))
    return names


def _is_index(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.removesuffix(".0").isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value % 1 == 0


def _index(key: str, value: Any) -> int:
    if not _is_index(value):
        raise ValueError(f"{key} has {_short(value)} where a whole number from 0 on is needed")
    return int(value.removesuffix(".0") if isinstance(value, str) else value)


def _default(index: int) -> str:
    return f"LABEL_{index}"


def _shown(raw: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} is {_short(raw[key])}" for key in (ID2LABEL, LABEL2ID, COUNT) if raw.get(key) is not None)


def _short(value: Any) -> str:
    if isinstance(value, Mapping) and len(value) > _SHOWN:
        return f"{_short(dict(list(value.items())[:_SHOWN]))[:-1]}, ...}}"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}..."
