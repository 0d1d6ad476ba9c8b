"""Read rows from JSON: one object per line, one list of objects, or an object that holds rows or columns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from axformer.data.columns import MOST_COLUMNS
from axformer.data.written import unique_keys

Row = Mapping[str, Any]

FORMS = 'write one object a line, one list of objects, or {"data": [objects]}'


class JsonRowsError(ValueError):
    """The text does not contain rows; the message says where and what to do."""


def read_json_rows(text: str, *, by_lines: bool = True) -> tuple[list[Row], Any]:
    """Parse rows.

    One object may hold them as ``data`` or ``rows``, as pandas writes a table, or as the hub's rows API answers. SQuAD's own
    files, whose questions are nested in paragraphs of articles, become rows of questions.

    Args:
        by_lines: whether a line of its own is a row even if it could hold columns.

    Returns:
        The rows, and the features that the rows API names; None if there are none.

    Raises:
        JsonRowsError: the text is not JSON, names a key twice, or contains values other than objects.
    """
    if text.lstrip().startswith("["):
        return _held_by_list(_parsed(text, "its list"))
    lines = text.split("\n")
    filled = [stripped for line in lines if (stripped := line.strip())]
    if filled and (len(filled) == 1 or _whole(filled[0]) is None) and isinstance(whole := _whole(text), dict):
        return _held_by(whole, may_be_row=by_lines and len(filled) == 1)
    return _together(filled) or [
        _object(_parsed(line, f"line {number}"), f"line {number}", line)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ], None


def _together(lines: Sequence[str]) -> list[Row]:
    """The objects of lines, read at once, which is twice as fast; none where a line is no object, and must be named."""
    if not all(line[0] == "{" and line[-1] == "}" for line in lines):
        return []
    values = _whole(f"[{_BETWEEN.join(lines)}]")
    if values is None or len(values) != 2 * len(lines) - 1 or not all(isinstance(value, dict) for value in values[::2]):
        return []
    return values[::2] if all(value == _LINE for value in values[1::2]) else []


_LINE = "the end of a line"
_BETWEEN = f',"{_LINE}",'
"""Stands between lines that are read at once, so that no object goes over the end of one."""
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def _parsed(text: str, what: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise JsonRowsError(f"{what} {_why(error, text)}") from None


def _why(error: ValueError | RecursionError, text: str) -> str:
    match error:
        case json.JSONDecodeError() if text.lstrip("[ \n").startswith("{'"):
            return "is written as Python prints it, not as JSON; write it with json.dumps"
        case json.JSONDecodeError():
            return f"is not JSON: {error.msg}; {FORMS}"
        case RecursionError():
            return f"is not JSON: its objects are nested too deep; {FORMS}"
        case _ if "twice" in str(error):
            return f"{str(error).removeprefix('it ')}; keep one of them"
        case _:
            return f"is not JSON: it holds a number that is too long; {FORMS}"


def _whole(text: str) -> Any:
    """The value of a text; None if it is not JSON."""
    try:
        return _parsed(text, "it")
    except JsonRowsError:
        return None


def _held_by_list(values: list[Any]) -> tuple[list[Row], Any]:
    if len(values) == 1 and isinstance(values[0], dict) and _splits(values[0]):
        return _held_by(values[0], may_be_row=False)
    return _objects(values), None


def _held_by(whole: dict[str, Any], *, may_be_row: bool) -> tuple[list[Row], Any]:
    """The rows in an object, and their features."""
    rows = _dicts(whole.get("rows"))
    if rows and all(isinstance(one.get("row"), dict) for one in rows):
        return _of_rows_api(rows), {one.get("name"): one.get("type") for one in _dicts(whole.get("features"))}
    if isinstance(data := whole.get("data"), list):
        names = whole.get("columns")
        if isinstance(names, list) and data and all(isinstance(one, list) and len(one) == len(names) for one in data):
            return [dict(zip(names, one, strict=True)) for one in data], None  # as pandas splits a table
        return _questions(_objects(data)), None
    found = _of_pandas(whole) or (None if may_be_row else _of_splits(whole) or _of_columns(whole))
    return found or [whole], None


def _of_splits(whole: Row) -> list[Row] | None:
    """The rows of the one split in an object."""
    splits = _splits(whole)
    if len(splits) > 1:
        raise JsonRowsError(
            f"it holds the splits {', '.join(splits)}; write the one that is meant into a file of its own"
        )
    return _objects(next(iter(splits.values()))) if splits else None


def _of_pandas(whole: Row) -> list[Row] | None:
    """The rows of columns or of rows that are objects by the numbers of their rows."""
    parts = list(whole.values())
    if not 0 < len(parts) <= MOST_COLUMNS or not all(isinstance(part, dict) and part for part in parts):
        return None
    if all(map(_are_numbers, parts)):
        return [{name: values.get(number) for name, values in whole.items()} for number in parts[0]]
    return parts if _are_numbers(whole) else None


def _of_columns(whole: Row) -> list[Row] | None:
    """The rows of columns that are lists of equal lengths."""
    parts = list(whole.values())
    if not all(isinstance(part, list) for part in parts) or len(set(map(len, parts))) != 1:
        return None
    return [dict(zip(whole, values, strict=True)) for values in zip(*parts, strict=True)]


def _of_rows_api(rows: Sequence[Row]) -> list[Row]:
    cut = next((place for place, one in enumerate(rows, start=1) if one.get("truncated_cells")), None)
    if cut is not None:
        raise JsonRowsError(
            f"item {cut} has cells that the hub has cut ({rows[cut - 1]['truncated_cells']}); give the file"
        )
    return [one["row"] for one in rows]


def _splits(whole: Row) -> dict[str, list[Any]]:
    """The lists of objects in an object that holds nothing else but notes."""
    lists = {name: value for name, value in whole.items() if value and isinstance(value, list)}
    others = [value for name, value in whole.items() if name not in lists]
    is_plain = all(len(_dicts(value)) == len(value) for value in lists.values())
    return lists if is_plain and not any(isinstance(value, dict) for value in others) else {}


def _are_numbers(names: Mapping[str, Any]) -> bool:
    return all(name.isascii() and name.isdigit() for name in names)


def _objects(values: list[Any]) -> list[Row]:
    return [_object(value, f"item {place}", json.dumps(value)) for place, value in enumerate(values, start=1)]


def _object(value: Any, what: str, shown: str) -> Row:
    if not isinstance(value, dict):
        raise JsonRowsError(f"{what} is not a JSON object but {shown.strip()[:40]}; {FORMS}")
    return value


def _questions(rows: Sequence[Row]) -> list[Row]:
    """The rows unchanged, or for SQuAD's articles one row per question."""
    if not rows or not all(isinstance(row.get("paragraphs"), list) for row in rows):
        return list(rows)
    return [
        {**asked, "context": paragraph.get("context"), **_answers_of(asked)}
        for article in rows
        for paragraph in _dicts(article["paragraphs"])
        for asked in _dicts(paragraph.get("qas"))
    ]


def _dicts(values: Any) -> list[Row]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _answers_of(asked: Row) -> Row:
    """The answers of a question as columns; what is not a list of objects stays as it is, for the task to judge."""
    answers = asked.get("answers")
    if not isinstance(answers, list) or len(found := _dicts(answers)) < len(answers):
        return {}
    return {"answers": {name: [answer.get(name) for answer in found] for name in ("text", "answer_start")}}
