import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.data.written import words_of
from axformer.tasks.question_answering import MAX_ANSWER_TOKENS, SpanScores, Window, best_span, exact_match, word_f1


def test_what_counts_of_an_answer() -> None:
    assert words_of("The  Cat's, a hat: an  End. ") == ["cats", "hat", "end"]
    assert words_of("theatre another") == ["theatre", "another"]


@pytest.mark.parametrize(
    ("predicted", "expected", "exact", "overlap"),
    [
        ("The Denver Broncos", ["Denver Broncos"], 1, 1),
        ("Broncos of Denver", ["Denver Broncos"], 0, 4 / 5),
        ("Denver", ["Denver Broncos", "Denver"], 1, 1),
        ("Denver Denver", ["Denver Broncos"], 0, 1 / 2),
        ("", ["Denver"], 0, 0),
        ("the", ["a"], 1, 1),
        ("Carolina", ["Denver"], 0, 0),
    ],
)
def test_scores_worked_by_hand(predicted: str, expected: list[str], exact: float, overlap: float) -> None:
    assert exact_match(predicted, expected) == exact
    assert word_f1(predicted, expected) == pytest.approx(overlap)


@given(st.text(max_size=20))
def test_a_perfect_answer_scores_one(answer: str) -> None:
    assert exact_match(answer, [answer]) == word_f1(answer, [answer]) == 1.0


WINDOW = Window(first=2, offsets=np.array([[4 * place, 4 * place + 3] for place in range(5)]), nowhere=0)


def scores(starts: dict[int, float], ends: dict[int, float], nowhere: float = 0.0) -> SpanScores:
    columns = [np.array(list(values)) for part in (starts, ends) for values in (part.keys(), part.values())]
    return SpanScores(*columns, nowhere)


def test_an_answer_is_located_where_the_window_holds_it_whole() -> None:
    assert WINDOW.locate(0, 3) == (2, 2)
    assert WINDOW.locate(4, 11) == (3, 4)
    assert WINDOW.locate(5, 9) == (3, 4), "an answer that begins or ends inside a token takes the whole token"
    assert WINDOW.locate(16, 19) == (6, 6)
    assert WINDOW.locate(16, 20) == (0, 0)
    later = Window(first=2, offsets=WINDOW.offsets[1:], nowhere=7)
    assert later.locate(0, 3) == later.locate(0, 7) == (7, 7)


def test_the_best_span_is_in_the_context_ends_after_it_begins_and_is_short() -> None:
    assert best_span([(WINDOW, scores({3: 1.0, 0: 9.0}, {4: 1.0, 2: 5.0, 0: 9.0}))]) == (4, 11)
    assert best_span([(WINDOW, scores({0: 9.0}, {0: 9.0}))]) == (0, 0), "no span, no answer"
    long = Window(0, np.array([[place, place + 1] for place in range(50)]), 0)
    assert best_span([(long, scores({1: 9.0, 40: 0.0}, {MAX_ANSWER_TOKENS + 1: 9.0, 41: 0.0}))]) == (40, 42)
    assert best_span([(long, scores({1: 9.0}, {MAX_ANSWER_TOKENS: 9.0}))]) == (1, MAX_ANSWER_TOKENS + 1)


def test_the_best_window_wins() -> None:
    weak, strong = scores({2: 1.0}, {2: 1.0}), scores({3: 2.0}, {3: 2.0})
    assert best_span([(WINDOW, weak), (WINDOW, strong)]) == best_span([(WINDOW, strong), (WINDOW, weak)]) == (4, 7)
