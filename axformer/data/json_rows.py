"""Read rows from JSON: one object per line, one list of objects, or ``{"data": [objects]}``."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

FORMS = 'write one object a line, one list of objects, or {"data": [objects]}'


class JsonRowsError(ValueError):
    """The text does not contain rows; the message says where and what to do."""


def read_json_rows(text: str) -> list[Row]:
    """Parse rows.

    SQuAD's own files, whose questions are nested in paragraphs of articles, become rows of questions.

    Raises:
        JsonRowsError: the text is not JSON, or contains values other than objects.
    """
    if text.lstrip().startswith("["):
        return _objects(_parsed(text, "its list"), "item")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if lines and (len(lines) == 1 or not _is_whole(lines[0][1])) and (data := _data_of(text)) is not None:
        return _questions(_objects(data, "item"))
    return [_object(_parsed(line, f"line {number}"), f"line {number}", line) for number, line in lines]


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonRowsError(f"{what} is not JSON: {_why(error)}; {FORMS}") from None


def _why(error: ValueError | RecursionError) -> str:
    match error:
        case json.JSONDecodeError():
            return error.msg
        case RecursionError():
            return "its objects are nested too deep"
        case _:
            return "it holds a number that is too long"


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _data_of(text: str) -> list[Any] | None:
    """The ``data`` of a single object; None if the text is something else, such as a file with one row."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict):
        return None
    data = whole.get("data")
    if isinstance(data, list):
        return data
    return None if "\n" not in text.strip() else [whole]  # one row over several lines


def _objects(values: Any, what: str) -> list[Row]:
    return [_object(value, f"{what} {place}", json.dumps(value)) for place, value in enumerate(values, start=1)]


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
