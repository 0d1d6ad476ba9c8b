"""The right answers of questions, as a data file holds them."""

from dataclasses import replace
from typing import Any

from axformer.data.rows import Rows

_NOTHING: tuple[Any, ...] = (None, "", "null", "[]", [])
"""What stands for "no answer" beside an object with empty lists."""


def some_have_none(rows: Rows) -> bool:
    """Whether the rows have the column of answers, and a question among them has no answer.

    Raises:
        DataError: the column holds something else.
    """
    return rows.has("answers") and any(map(is_no_answer, _filled(rows).records("answers")))


def is_no_answer(cell: Any) -> bool:
    """Whether a cell says that its question has no answer, as rows of SQuAD 2.0 do."""
    if isinstance(cell, dict):
        return "text" in cell and "answer_start" in cell and not cell["text"] and not cell["answer_start"]
    return cell in _NOTHING


def right_answers(rows: Rows, *, may_be_none: bool) -> list[list[tuple[int, str]]]:
    """The right answers of each question: where in the context they begin, and what they say; none where it has no answer.

    Args:
        may_be_none: whether a question may have no answer.

    Raises:
        DataError: a question has none and must, or one is not where it is said to be.
    """
    found: list[list[tuple[int, str]]] = []
    records = _filled(rows).records("answers")
    for row, (record, context) in enumerate(zip(records, rows.texts("context"), strict=True), start=1):
        if not is_no_answer(record):
            found.append(_answers_in(record, context, rows, row))
        elif may_be_none:
            found.append([])
        else:
            raise rows.error(row, "it has no answer, though all questions that decide have one; leave it out")
    return found


def _filled(rows: Rows) -> Rows:
    """The rows with an object of empty lists in every cell of answers that holds nothing."""
    cells = rows.table.get(rows.columns.answers, [])
    if not any(map(is_no_answer, cells)):
        return rows
    filled = [{"text": [], "answer_start": []} if is_no_answer(cell) else cell for cell in cells]
    return replace(rows, table={**rows.table, rows.columns.answers: filled})


def _answers_in(record: dict[str, Any], context: str, rows: Rows, row: int) -> list[tuple[int, str]]:
    texts, starts = record.get("text"), record.get("answer_start")
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        raise rows.error(row, f"answers {record!r} are not {{'text': [...], 'answer_start': [...]}} of equal lengths")
    for text, start in zip(texts, starts, strict=True):
        if not isinstance(text, str) or not text.strip() or not isinstance(start, int) or start < 0:
            raise rows.error(row, f"answer {text!r} at {start!r} is not a text with the character where it begins")
        there = context[start : start + len(text)]
        if there != text:
            raise rows.error(row, f"answer {text!r} is not at character {start} of the context, {there!r} is")
    return list(zip(starts, texts, strict=True))
