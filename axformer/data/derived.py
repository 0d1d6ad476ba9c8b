"""Columns that a table has in other words: within objects, answers in a column each for text and start, and passages in two
columns, those that fit a query and the others."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from axformer.data.columns import JOINT, MOST_COLUMNS, Columns
from axformer.data.written import seen, written_out

_WITHIN = "."
"""Joins the names of an object's column and of a part of it, as in ``input.text``."""
_DEPTH = 3
_LOOKED_AT = 100
"""Rows that are looked at for the parts that objects have."""
_POSITIVE, _NEGATIVE = "positive", "negative"
_ANSWER_TEXTS, _ANSWER_STARTS = ("answer", "answer_text", "answers", "text"), ("answer_start", "answer_starts", "start")


def with_derived(table: Mapping[str, list[Any]], columns: Columns) -> dict[str, list[Any]]:
    """A table with the columns that were named as parts of objects, and with ``answers`` or ``passages`` where it has them
    in two columns.

    Names of columns are as they look, without invisible characters.
    """
    looks = {name: seen(name) for name in table}
    table = {looks[name] if list(looks.values()).count(looks[name]) == 1 else name: table[name] for name in table}
    for field in Columns.model_fields:
        for name in map(seen, getattr(columns, field).split(JOINT)):
            column, _, path = name.partition(_WITHIN)
            if name not in table and path and column in table:
                values = [_part(value, path.split(_WITHIN)) for value in table[column]]
                if any(value is not None for value in values):
                    table[name] = values
    starts = next((name for name in _ANSWER_STARTS if name in table), None)
    texts = next((name for name in (columns.answers, *_ANSWER_TEXTS) if name in table), None)
    if columns.context in table and starts is not None and texts is not None and all(map(_is_flat, table[texts])):
        table[columns.answers] = [
            {"text": text, "answer_start": start} for text, start in zip(table[texts], table[starts], strict=True)
        ]
    if columns.query in table and columns.passages not in table and {_POSITIVE, _NEGATIVE} <= set(table):
        both = [[_listed(value) for value in table[name]] for name in (_POSITIVE, _NEGATIVE)]
        table[columns.passages] = [right + wrong for right, wrong in zip(*both, strict=True)]
        grades = [[1] * len(right) + [0] * len(wrong) for right, wrong in zip(*both, strict=True)]
        if columns.label == Columns.model_fields["label"].default or columns.label not in table:
            table[columns.label] = grades  # whatever else a column of this name says is not about these lists
    return table


def _listed(value: Any) -> list[Any]:
    value = written_out(value)
    return value if isinstance(value, list) else [] if value is None else [value]


def parts_in(table: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The first values of all columns, and of all parts of objects under the names that they can be asked by."""
    found: dict[str, list[Any]] = {}
    for name, values in table.items():
        found[name] = values[:_LOOKED_AT]
        paths = (path for value in found[name] for path in _paths(value))
        for path in dict.fromkeys(islice(paths, max(0, MOST_COLUMNS - len(found)))):
            found[_WITHIN.join((name, *path))] = [_part(value, path) for value in found[name]]
    return found


def _part(value: Any, path: list[str] | tuple[str, ...]) -> Any:
    """What an object holds under names within one another; of a list, of each of its items."""
    for place, name in enumerate(path):
        if isinstance(value, list):
            return [_part(one, path[place:]) for one in value]
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _paths(value: Any, depth: int = _DEPTH) -> Iterator[tuple[str, ...]]:
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping) and depth:
        for name, part in value.items():
            yield (str(name),)
            yield from ((str(name), *path) for path in _paths(part, depth - 1))


def _is_flat(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, list) and all(isinstance(one, str) for one in value))
    )
