"""Read the right answers of questions from a data file."""

from dataclasses import replace
from typing import Any

from axformer.data.rows import Rows

_NOTHING: tuple[Any, ...] = (None, "", "null", "[]", [])
"""Values that mean "no answer", besides an object with empty lists."""


def some_have_none(rows: Rows) -> bool:
    """Whether the rows have a column of answers and at least one question without an answer.

    Raises:
        DataError: the column holds something other than answers.
    """
    return rows.has("answers") and any(map(is_no_answer, _filled(rows).records("answers")))


def is_no_answer(cell: Any) -> bool:
    """Whether a cell says that its question has no answer, as rows of SQuAD 2.0 do."""
    if isinstance(cell, dict):
        return "text" in cell and "answer_start" in cell and not cell["text"] and not cell["answer_start"]
    return cell in _NOTHING


def right_answers(rows: Rows, *, may_be_none: bool) -> list[list[tuple[int, str]]]:
    """The right answers of each question, with their start in the context; empty if there are none.

    Raises:
        DataError: a question lacks an answer that it must have, or an answer is not at its stated position.
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
    """The rows, with an object of empty lists in every empty cell of answers."""
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
