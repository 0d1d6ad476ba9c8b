"""Steps: counted in order, with the time left, and readable by clients that do not know their names."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axformer.wire.base import read_answer
from axformer.wire.steps import Counter, Step, StepName


@given(parts=st.lists(st.integers(1, 3), max_size=8), known=st.integers(1, 12))
def test_a_counter_never_goes_back_nor_beyond_its_end(parts: list[int], known: int) -> None:
    told: list[Step] = []
    counter = Counter(StepName.PATH, known, told.append, count().__next__)
    for number in parts:
        counter.advance(number)
    dones = [step.done for step in told]
    assert dones == [min(sum(parts[: index + 1]), known) for index in range(len(parts))]
    assert {step.known for step in told} <= {known}


def test_the_time_left_is_that_of_the_parts_left_at_their_mean_time() -> None:
    told: list[Step] = []
    counter = Counter(StepName.PACKAGING, 4, told.append, iter([10.0, 14.0, 16.0]).__next__)
    counter.begin("measuring both models")
    counter.advance()
    counter.advance()
    assert [(step.done, step.detail, step.seconds_left) for step in told] == [
        (0, "measuring both models", None),
        (1, None, 12.0),
        (2, None, 6.0),
    ]


@pytest.mark.parametrize("name", StepName)
def test_every_step_has_words(name: StepName) -> None:
    assert Step(name=name, done=1, known=2).sentence.endswith(": 1 of 2")


def test_a_client_reads_steps_of_a_newer_service() -> None:
    step = read_answer(Step, '{"name": "brewing_tea", "done": 1, "known": 2, "cups": 3}')
    assert step.sentence == "brewing tea: 1 of 2"
