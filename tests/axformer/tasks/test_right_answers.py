"""Answers in every shape that rows of SQuAD have, and starts in every unit."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.reading import rows_of
from axformer.errors import DataError
from axformer.tasks.right_answers import right_answers

CONTEXT = "\U0001f600 word1 word2 word3"
START = CONTEXT.index("word2")


def row(**more: Any) -> list[dict[str, Any]]:
    return [{"question": "word4", "context": CONTEXT, **more}]


@pytest.mark.parametrize(
    "rows",
    [
        row(answers={"text": ["word2"], "answer_start": [START]}),
        row(answers={"text": "word2", "answer_start": START}),
        row(answers={"text": "word2", "answer_start": float(START)}),
        row(answers=[{"text": "word2", "answer_start": START}]),
        row(answers=[{"text": "word2", "answer_start": str(START)}]),
        row(answers=["word2"]),
        row(answers="word2"),
        row(answers=str({"text": ["word2"], "answer_start": [START]})),
        row(answers=f"{{'text': array(['word2'], dtype=object), 'answer_start': array([{START}])}}"),
        row(answer="word2", answer_start=START),
        row(answer_text="word2", answer_start=str(START)),
        row(answers=["word2"], answer_start=[START]),
    ],
)
def test_every_shape_of_an_answer_is_read(rows: list[dict[str, Any]]) -> None:
    assert right_answers(rows_of(rows), may_be_none=False).answers == [[(START, "word2")]]


@pytest.mark.parametrize(("answer", "start"), [("", -1), ("", None), (None, None), (None, float("nan"))])
def test_no_answer_in_columns_of_their_own_is_none(answer: Any, start: Any) -> None:
    rows = rows_of(row(answer="word2", answer_start=START) + row(answer=answer, answer_start=start))
    assert right_answers(rows, may_be_none=True).answers == [[(START, "word2")], []]


UNITS: dict[str, Callable[[str], int]] = {
    "UTF-16 units": lambda before: len(before.encode("utf-16-le")) // 2,
    "bytes of UTF-8": lambda before: len(before.encode()),
    "characters from 1": lambda before: len(before) + 1,
}


@given(st.lists(st.text("\U0001f600éab", max_size=8), min_size=1, max_size=5), st.sampled_from(sorted(UNITS)))
def test_starts_in_another_unit_are_converted_and_said(befores: list[str], unit: str) -> None:
    befores = ["\U0001f600\U0001f600é", *befores]  # where each unit gives another number
    rows = [
        {"context": f"{before}word2", "answers": {"text": ["word2"], "answer_start": [UNITS[unit](before)]}}
        for before in befores
    ]
    found = right_answers(rows_of(rows), may_be_none=False)
    assert found.answers == [[(len(before), "word2")] for before in befores]
    assert found.notes == (f"answer_start counts {unit}, and is converted to characters",)


def test_units_are_not_mixed() -> None:
    mixed = row(answers={"text": ["word2"], "answer_start": [START]}) + row(
        answers={"text": ["word2"], "answer_start": [START + 1]}
    )
    with pytest.raises(
        DataError, match=r"row 2: .* it is if starts count UTF-16 units, which does not hold for all rows"
    ):
        right_answers(rows_of(mixed), may_be_none=False)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("word", "answer 'word' is in the context more than once; say where with answer_start"),
        ("word9", "answer 'word9' is not in the context"),
        ({"text": ["word2"], "answer_start": [0]}, "answer 'word2' is not at character 0"),
        ({"text": ["word2"], "answer_start": [True]}, "not a text with the character"),
        ([["word2"], 7], "holds .*, not an object"),
    ],
)
def test_what_cannot_be_placed_is_refused(answers: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"row 1: .*{message}"):
        right_answers(rows_of(row(answers=answers)), may_be_none=False)
