"""Read the right answers of questions from a data file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from axformer.data.rows import Rows

_NOTHING: tuple[Any, ...] = (None, "", "null", "[]", [])
"""Values that mean "no answer", besides an object with empty lists."""
_DIGITS = re.compile(r"\d{1,9}", re.ASCII)
_WANTED = "{'text': [...], 'answer_start': [...]} of equal lengths"
_Answers = list[tuple[str, Any]]
"""Texts with their starts, as the file has them."""


def _units(size: int, encoding: str) -> Callable[[str, int], int]:
    return lambda context, start: len(context.encode(encoding)[: size * start].decode(encoding, "ignore"))


_COUNTED: Mapping[str, Callable[[str, int], int]] = {
    "characters": lambda _, start: start,
    "UTF-16 units": _units(2, "utf-16-le"),
    "bytes of UTF-8": _units(1, "utf-8"),
    "characters from 1": lambda _, start: start - 1,
}
"""What tools count starts in, with a function that gives the character."""


@dataclass(frozen=True)
class RightAnswers:
    """The right answers of all questions, with their start in the context; empty where a question has none."""

    answers: list[list[tuple[int, str]]]
    notes: tuple[str, ...] = ()


def some_have_none(rows: Rows) -> bool:
    """Whether the rows have a column of answers and at least one question without an answer.

    Raises:
        DataError: the column holds something other than answers.
    """
    return rows.has("answers") and not all(_given(rows))


def right_answers(rows: Rows, *, may_be_none: bool) -> RightAnswers:
    """The right answers of each question, whose starts all count in the same unit.

    Raises:
        DataError: a question lacks an answer that it must have, or an answer is not at its stated position.
    """
    given, contexts = _given(rows), rows.texts("context")
    for row, answers in enumerate(given, start=1):
        if not answers and not may_be_none:
            raise rows.error(row, "it has no answer, though all questions that decide have one; leave it out")
    for unit, place in _COUNTED.items():
        placed = [_placed(answers, context, place) for answers, context in zip(given, contexts, strict=True)]
        found = [answers for answers in placed if answers is not None]
        if len(found) == len(placed):
            is_usual = unit == "characters"
            return RightAnswers(
                found, () if is_usual else (f"answer_start counts {unit}, and is converted to characters",)
            )
    raise _misplaced(rows, given, contexts)


def _placed(answers: _Answers, context: str, place: Callable[[str, int], int]) -> list[tuple[int, str]] | None:
    """The answers with the character where each begins; None if one is not there."""
    found = [(context.find(text) if start is None else place(context, start), text) for text, start in answers]
    return found if all(start >= 0 and context[start : start + len(text)] == text for start, text in found) else None


def _misplaced(rows: Rows, given: list[_Answers], contexts: list[str]) -> Exception:
    """The error about the first answer that is not where it should be."""
    for row, (answers, context) in enumerate(zip(given, contexts, strict=True), start=1):
        for text, start in answers:
            fitting = [unit for unit, place in _COUNTED.items() if _placed([(text, start)], context, place)]
            if "characters" in fitting:
                continue
            if start is None:
                return rows.error(row, f"answer {text!r} is not in the context")
            there = f"{context[start : start + len(text)]!r} is"
            counted = f"; it is if starts count {fitting[0]}, which does not hold for all rows" if fitting else ""
            return rows.error(row, f"answer {text!r} is not at character {start} of the context, {there}{counted}")
    raise AssertionError("one of the answers is misplaced")


def _given(rows: Rows) -> list[_Answers]:
    """The answers of each row with their starts as the file has them, None where it has none.

    A start need not be given for an answer that the context has once.
    """
    contexts = rows.texts("context") if rows.has("context") else [""] * len(rows)
    cells = rows.records("answers")
    return [
        _answers_in(cell, context, rows, row)
        for row, (cell, context) in enumerate(zip(cells, contexts, strict=True), 1)
    ]


def _answers_in(cell: Any, context: str, rows: Rows, row: int) -> _Answers:
    if cell in _NOTHING:
        return []
    answers = _listed(cell)
    if answers is None:
        raise rows.error(row, f"answers {cell!r} are not {_WANTED}")
    if all(text in ("", None) for text, _ in answers):
        return []
    for text, start in answers:
        is_start = start is None or (type(start) is int and start >= 0)
        if not isinstance(text, str) or not text.strip() or not is_start:
            raise rows.error(row, f"answer {text!r} at {start!r} is not a text with the character where it begins")
        if start is None and context.count(text) > 1:
            raise rows.error(row, f"answer {text!r} is in the context more than once; say where with answer_start")
    return answers


def _listed(cell: Any) -> _Answers | None:
    """The answers in a cell: an object with lists or with one answer, a list of objects or of texts, or a text."""
    if isinstance(cell, str):
        return [(cell, None)]
    if isinstance(cell, list):
        parts = [_listed(one) for one in cell]
        return None if None in parts else [answer for part in parts for answer in part or []]
    if not isinstance(cell, dict) or "text" not in cell or "answer_start" not in cell:
        return None
    texts, starts = (one if isinstance(one, list) else [one] for one in (cell["text"], cell["answer_start"]))
    return list(zip(texts, map(_start, starts), strict=True)) if len(texts) == len(starts) else None


def _start(value: Any) -> Any:
    """An integer that is written as a text or with a point becomes one."""
    text = str(value).strip().removesuffix(".0")
    return int(text) if not isinstance(value, bool) and _DIGITS.fullmatch(text) else value
